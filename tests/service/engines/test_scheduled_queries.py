"""Scheduled queries: they are stored, each due one is handed to one poller, and executions end or time out; on each database."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import sqlalchemy as sa

from metastore.errors import AlreadyExists, InvalidInput, InvalidOperation, MetaError, NoSuchObject
from metastore.idl import (
    QueryState,
    ScheduledQuery,
    ScheduledQueryKey,
    ScheduledQueryMaintenanceRequest,
    ScheduledQueryMaintenanceRequestType,
    ScheduledQueryProgressInfo,
)
from metastore.service.call import clock
from metastore.service.call.context import Call
from metastore.service.engines import scheduled_queries as service
from metastore.store.schema.engines import scheduled_executions
from tests.support.catalog.catalog import MetastoreMaker, call_of
from tests.support.databases.statement_counts import StatementCounts

pytestmark = pytest.mark.on_one_database

CREATE, ALTER, DROP = (getattr(ScheduledQueryMaintenanceRequestType, name) for name in ("CREATE", "ALTER", "DROP"))
NOON = 1_795_694_400
"""2026-11-26 at 12:00 UTC."""
Clock = Callable[[int], None]


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Sets the time; it is noon at first."""

    def set_time(time: int) -> None:
        monkeypatch.setattr(service, "now_s", lambda: time)

    set_time(NOON)
    return set_time


def key(name: str | None = "q", namespace: str | None = "hive") -> ScheduledQueryKey:
    return ScheduledQueryKey(scheduleName=name, clusterNamespace=namespace)


def query(name: str = "q", namespace: str = "hive", **fields: Any) -> ScheduledQuery:
    values: dict[str, Any] = {"enabled": True, "schedule": "0 */10 * * * ? *", "user": "alice", "query": "select 1"}
    return ScheduledQuery(scheduleKey=key(name, namespace), **{**values, **fields})


def maintain(call: Call, kind: int, changed: ScheduledQuery | None) -> None:
    service.maintain(call, ScheduledQueryMaintenanceRequest(type=kind, scheduledQuery=changed))


def create(call: Call, *names: str, **fields: Any) -> None:
    for name in names or ("q",):
        maintain(call, CREATE, query(name, **fields))


def progress(call: Call, execution: int | None, state: int | None, **fields: Any) -> None:
    service.report(call, ScheduledQueryProgressInfo(scheduledExecutionId=execution, state=state, **{"executorQueryId": "x", **fields}))


def begin(call: Call) -> int:
    """Begin the execution that is due."""
    execution = service.poll(call, "hive").executionId
    assert execution is not None
    return execution


def executions(call: Call, *columns: str) -> list[tuple[Any, ...]]:
    chosen = sa.select(*(scheduled_executions.c[name] for name in columns)).order_by(scheduled_executions.c.id)
    return [tuple(row) for row in call.database.read(lambda session: session.rows(chosen))]


@pytest.fixture
def utc(make_metastore: MetastoreMaker, at: Clock) -> Call:  # sets the time
    return call_of(make_metastore(scheduled_query_time_zone="UTC"))


def test_a_query_comes_back_as_it_was_made_with_its_next_time(utc: Call) -> None:
    create(utc, nextExecution=5)
    assert service.get(utc, key()) == query(nextExecution=NOON + 600)
    create(utc, "off", enabled=None, user=None)
    assert service.get(utc, key("off")) == query("off", enabled=False, user=None, nextExecution=NOON + 600)
    create(utc, namespace="other")
    with pytest.raises(AlreadyExists, match="Scheduled query q@hive already exists"):
        create(utc)


def test_a_query_is_altered_and_dropped(utc: Call) -> None:
    create(utc)
    maintain(utc, ALTER, query(enabled=False, schedule="0 0 0 1 1 ? 2030", user="bob", query="select 2"))
    altered = query(enabled=False, schedule="0 0 0 1 1 ? 2030", user="bob", query="select 2", nextExecution=1_893_456_000)
    assert service.get(utc, key()) == altered
    maintain(utc, ALTER, query(nextExecution=NOON))
    assert service.get(utc, key()) == query(nextExecution=NOON)
    maintain(utc, DROP, query())
    for use in (lambda: service.get(utc, key()), lambda: maintain(utc, DROP, query()), lambda: maintain(utc, ALTER, query())):
        with pytest.raises(NoSuchObject, match="There is no scheduled query q@hive"):
            use()


def test_queries_that_can_not_be_stored_are_refused(utc: Call) -> None:
    create(utc)
    for kind in (CREATE, ALTER):
        for wrong in (query(schedule="asd asd"), query(schedule=None), query(query=None), query(schedule="* * * * *", nextExecution=5)):
            with pytest.raises(InvalidInput):
                maintain(utc, kind, wrong)
        for unnamed in (None, ScheduledQuery(), ScheduledQuery(scheduleKey=key(None)), ScheduledQuery(scheduleKey=key(namespace=None))):
            with pytest.raises(MetaError):
                maintain(utc, kind, unnamed)
    for kind in (0, 4, None):
        with pytest.raises(MetaError, match="There is no maintenance of type"):
            maintain(utc, kind, query())  # type: ignore[arg-type]  # a client may send anything
    assert service.get(utc, key()) == query(nextExecution=NOON + 600)


@pytest.mark.parametrize("schedule", ["0 0 0 1 1 ? 2020", "0 0 0 1 1 ? 2039"])
def test_a_query_that_is_never_due_again_has_no_next_time(utc: Call, schedule: str) -> None:
    create(utc, schedule=schedule)
    assert service.get(utc, key()).nextExecution is None
    assert service.poll(utc, "hive").executionId is None


def test_schedules_are_in_the_zone_of_the_setting(make_metastore: MetastoreMaker, at: Clock) -> None:
    call = call_of(make_metastore(scheduled_query_time_zone="Asia/Tokyo"))
    create(call, schedule="0 0 0 * * ?")
    assert service.get(call, key()).nextExecution == NOON + 3 * 3600


def test_without_a_setting_the_zone_is_the_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, expected in (("Asia/Tokyo", "Asia/Tokyo"), (":Asia/Tokyo", "Asia/Tokyo"), ("no such zone", None)):
        clock.zone.cache_clear()
        monkeypatch.setenv("TZ", name)
        assert getattr(clock.zone(None), "key", None) == expected
    clock.zone.cache_clear()
    monkeypatch.delenv("TZ")
    assert clock.zone(None) is not None
    clock.zone.cache_clear()


def test_due_work_is_handed_out_once_and_the_longest_due_first(utc: Call, at: Clock) -> None:
    create(utc, "b", "a")
    create(utc, "early", schedule="0 5 * * * ?")
    create(utc, "off", enabled=False)
    create(utc, "elsewhere", namespace="other")
    assert service.poll(utc, "hive").executionId is None
    at(NOON + 600)
    polled = [service.poll(utc, "hive") for _ in range(4)]
    assert [each.scheduleKey and each.scheduleKey.scheduleName for each in polled] == ["early", "b", "a", None]
    assert (polled[1].query, polled[1].user) == ("/* schedule: b */select 1", "alice")
    assert polled[3] == type(polled[3])()
    assert service.get(utc, key("b")).nextExecution == NOON + 1200
    assert executions(utc, "state", "start_time", "end_time", "report_time") == [(QueryState.INITED, NOON + 600, None, NOON + 600)] * 3
    with pytest.raises(MetaError, match="set clusterNamespace"):
        service.poll(utc, None)


def test_a_query_runs_again_when_its_execution_has_ended(utc: Call, at: Clock) -> None:
    create(utc)
    at(NOON + 600)
    execution = begin(utc)
    at(NOON + 1201)
    progress(utc, execution, QueryState.EXECUTING, executorQueryId="hive_1")
    assert service.poll(utc, "hive").executionId is None
    assert executions(utc, "state", "report_time", "executor_query_id") == [(QueryState.EXECUTING, NOON + 1201, "hive_1")]
    at(NOON + 1300)
    progress(utc, execution, QueryState.FINISHED, executorQueryId=None)
    assert executions(utc, "state", "end_time", "report_time", "executor_query_id") == [(QueryState.FINISHED, NOON + 1300, None, "hive_1")]
    assert begin(utc) > execution


def test_states_follow_each_other(utc: Call, at: Clock) -> None:
    create(utc)
    at(NOON + 600)
    execution = begin(utc)
    for state in (QueryState.INITED, QueryState.AUTO_DISABLED, 77):
        with pytest.raises(InvalidOperation, match=f"Invalid state change of execution {execution}: INITED to "):
            progress(utc, execution, state)
    progress(utc, execution, QueryState.EXECUTING)
    progress(utc, execution, QueryState.EXECUTING)
    with pytest.raises(InvalidOperation, match="EXECUTING to INITED"):
        progress(utc, execution, QueryState.INITED)
    progress(utc, execution, QueryState.FAILED, errorMessage="first line" + "." * 1000 + "\nat java.lang")
    ((error,),) = executions(utc, "error")
    assert error == ("first line" + "." * 1000)[:1000]
    with pytest.raises(InvalidOperation, match="FAILED to FINISHED"):
        progress(utc, execution, QueryState.FINISHED)
    with pytest.raises(InvalidOperation, match="There is no execution 999999999"):
        progress(utc, 999_999_999, QueryState.FINISHED)
    for missing in ((None, QueryState.FINISHED), (execution, None)):
        with pytest.raises(MetaError, match="set scheduledExecutionId and state"):
            progress(utc, *missing)


def test_executions_go_with_their_query(utc: Call, at: Clock) -> None:
    create(utc)
    at(NOON + 600)
    execution = begin(utc)
    maintain(utc, DROP, query())
    assert executions(utc, "id") == []
    with pytest.raises(InvalidOperation, match="There is no execution"):
        progress(utc, execution, QueryState.FINISHED)


def test_a_silent_execution_has_timed_out(utc: Call, at: Clock) -> None:
    create(utc, "silent", "alive")
    at(NOON + 600)
    silent, alive = begin(utc), begin(utc)
    at(NOON + 660)
    progress(utc, alive, QueryState.EXECUTING)
    service.keep_house(utc.metastore)
    at(NOON + 720)
    service.keep_house(utc.metastore)
    assert executions(utc, "id", "state", "end_time") == [(silent, QueryState.TIMED_OUT, NOON + 720), (alive, QueryState.EXECUTING, None)]
    assert executions(utc, "error")[0] == ("Query stuck in state INITED: its executor reported nothing for 120 seconds",)
    at(NOON + 1200)
    assert service.poll(utc, "hive").scheduleKey == key("silent")


def test_ended_executions_are_kept_for_a_while(utc: Call, make_metastore: MetastoreMaker, at: Clock) -> None:
    metastore = make_metastore(scheduled_query_history=86_400.0, scheduled_query_timeout=1e9)
    create(utc, "ended", "runs")
    at(NOON + 600)
    ended, runs = begin(utc), begin(utc)
    progress(utc, ended, QueryState.FINISHED)
    for later, kept in ((86_399, [ended, runs]), (86_400, [runs])):
        at(NOON + 600 + later)
        service.keep_house(metastore)
        assert [found for (found,) in executions(utc, "id")] == kept


def test_failures_in_turn_leave_a_query_out_for_longer(make_metastore: MetastoreMaker, at: Clock) -> None:
    call = call_of(make_metastore(scheduled_query_time_zone="UTC", scheduled_query_skip_after=3))
    create(call)
    time, gaps = NOON + 600, []
    for state in (*[QueryState.FAILED] * 4, QueryState.FINISHED, QueryState.FAILED):
        at(time)
        progress(call, begin(call), state)
        due = service.get(call, key()).nextExecution
        assert due is not None
        gaps.append((due - time) // 600)
        time = due
    assert gaps == [1, 2, 3, 3, 1, 1]


def test_a_query_that_fails_too_often_is_switched_off(make_metastore: MetastoreMaker, at: Clock) -> None:
    call = call_of(make_metastore(scheduled_query_time_zone="UTC", scheduled_query_disable_after=2))
    create(call)
    at(NOON + 600)
    progress(call, begin(call), QueryState.FAILED)
    assert service.get(call, key()).enabled
    at(NOON + 1200)
    begin(call)
    at(NOON + 2000)
    service.keep_house(call.metastore)
    assert not service.get(call, key()).enabled
    assert service.poll(call, "hive").executionId is None
    assert executions(call, "state", "error")[-1] == (QueryState.AUTO_DISABLED, "Disabled after 2 failures in turn")
    maintain(call, ALTER, query(nextExecution=NOON + 2000))
    progress(call, begin(call), QueryState.FAILED)
    assert service.get(call, key()).enabled


def test_scheduled_queries_can_be_switched_off(utc: Call, make_metastore: MetastoreMaker, at: Clock) -> None:
    create(utc)
    at(NOON + 600)
    execution = begin(utc)
    off = call_of(make_metastore(scheduled_queries=False))
    for use in (lambda: create(off, "new"), lambda: service.poll(off, "hive"), lambda: progress(off, execution, QueryState.FINISHED)):
        with pytest.raises(MetaError, match="Scheduled queries are switched off: set scheduled_queries"):
            use()
    at(NOON + 6000)
    service.keep_house(off.metastore)
    assert executions(utc, "state") == [(QueryState.INITED,)]


def test_no_two_pollers_get_one_execution(utc: Call, make_metastore: MetastoreMaker, at: Clock) -> None:
    """Eight pollers on two servers ask at one moment for due queries. Each query is handed out once."""
    names = [f"q{number}" for number in range(20)]
    create(utc, *names)
    at(NOON + 600)
    callers = [call_of(make_metastore(scheduled_query_time_zone="UTC")) for _ in range(2)]
    pollers, start = 8, threading.Barrier(8)

    def one(number: int) -> list[tuple[str, int]]:
        start.wait()
        found = []
        while (polled := service.poll(callers[number % 2], "hive")).executionId is not None:
            assert polled.scheduleKey is not None
            found.append((polled.scheduleKey.scheduleName, polled.executionId))
        return found

    with ThreadPoolExecutor(pollers) as pool:
        got = [each for found in pool.map(one, range(pollers)) for each in found]
    assert sorted(name for name, _ in got) == sorted(names)
    assert sorted(execution for _, execution in got) == [found for (found,) in executions(utc, "id")]


def test_an_execution_ends_once(utc: Call, make_metastore: MetastoreMaker, at: Clock) -> None:
    """The executor reports the end while another server gives the execution up. One of them has an effect."""
    create(utc)
    at(NOON + 600)
    execution = begin(utc)
    at(NOON + 720)
    other, start = make_metastore(scheduled_query_time_zone="UTC"), threading.Barrier(2)

    def report() -> str:
        start.wait()
        try:
            progress(utc, execution, QueryState.FINISHED)
        except InvalidOperation:
            return "TIMED_OUT"
        return "FINISHED"

    def give_up() -> None:
        start.wait()
        service.keep_house(other)

    with ThreadPoolExecutor(2) as pool:
        outcome, ended = pool.submit(report), pool.submit(give_up)
        ended.result()
    ((state, error),) = executions(utc, "state", "error")
    assert QueryState._VALUES_TO_NAMES[state] == outcome.result()
    assert (error is None) == (outcome.result() == "FINISHED")


def test_the_cost_of_the_calls(utc: Call, counts: StatementCounts, at: Clock) -> None:
    counts.database = utc.database
    counts("create", lambda: create(utc))
    counts("alter", lambda: maintain(utc, ALTER, query()))
    counts("get", lambda: service.get(utc, key()))
    counts("poll for nothing", lambda: service.poll(utc, "hive"))
    at(NOON + 600)
    execution = counts("poll", lambda: begin(utc))
    counts("report", lambda: progress(utc, execution, QueryState.EXECUTING))
    counts("report the end", lambda: progress(utc, execution, QueryState.FINISHED))
    counts("drop", lambda: maintain(utc, DROP, query()))
