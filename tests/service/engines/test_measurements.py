"""Runtime statistics and metrics of replication: they are stored, found, and removed when they are old; on each database."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from metastore.errors import MetaError
from metastore.idl import GetReplicationMetricsRequest, GetRuntimeStatsRequest, ReplicationMetricList, ReplicationMetrics, RuntimeStat
from metastore.service.call.context import Call
from metastore.service.engines import replication_metrics, runtime_statistics
from tests.support.catalog.catalog import MetastoreMaker
from tests.support.databases.statement_counts import StatementCounts

pytestmark = pytest.mark.on_one_database

NOON = 1_795_694_400
Clock = Callable[[int], None]


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Sets the time; it is noon at first."""

    def set_time(time: int) -> None:
        for module in (runtime_statistics, replication_metrics):
            monkeypatch.setattr(module, "now_s", lambda: time)

    set_time(NOON)
    return set_time


def weights(call: Call, most: int | None, before: int | None = -1) -> list[int]:
    return [each.weight for each in runtime_statistics.get(call, GetRuntimeStatsRequest(maxWeight=most, maxCreateTime=before))]


def learn(call: Call, at: Clock, *found: int) -> None:
    """Store statistics of these weights, one each second from noon on."""
    for number, weight in enumerate(found):
        at(NOON + number)
        runtime_statistics.add(call, RuntimeStat(createTime=1, weight=weight, payload=bytes([weight, 0, 255])))


def test_statistics_come_back_the_newest_first(call: Call, at: Clock) -> None:
    learn(call, at, 1, 2)
    expected = [RuntimeStat(createTime=NOON + each - 1, weight=each, payload=bytes([each, 0, 255])) for each in (2, 1)]
    assert runtime_statistics.get(call, GetRuntimeStatsRequest(maxWeight=-1, maxCreateTime=-1)) == expected
    for missing in (None, RuntimeStat(weight=1), RuntimeStat(payload=b"x")):
        with pytest.raises(MetaError, match="need weight and payload"):
            runtime_statistics.add(call, missing)


@pytest.mark.parametrize(
    ("most", "before", "expected"),
    [
        (-1, -1, [3, 2, 1]), (None, None, [3, 2, 1]), (3, -1, [3]), (4, -1, [3, 2]), (5, -1, [3, 2]), (6, 0, [3, 2, 1]), (0, -1, [3]),
        (-1, NOON + 2, [2, 1]), (2, NOON + 2, [2]), (-1, NOON, []),
    ],
)  # fmt: skip
def test_weight_and_time_limit_the_read(call: Call, at: Clock, most: int | None, before: int | None, expected: list[int]) -> None:
    learn(call, at, 1, 2, 3)
    assert weights(call, most, before) == expected


def test_old_statistics_are_removed(call: Call, make_metastore: MetastoreMaker, at: Clock) -> None:
    learn(call, at, 1, 2)
    metastore = make_metastore(runtime_statistics_age=100.0)
    for later, kept in ((99, [2, 1]), (100, [2]), (101, [])):
        at(NOON + later)
        runtime_statistics.delete_old(metastore)
        assert weights(call, -1) == kept


def metrics(execution: int | None, policy: str | None = "p", dump: int | None = 7, **fields: Any) -> ReplicationMetrics:
    return ReplicationMetrics(scheduledExecutionId=execution, policy=policy, dumpExecutionId=dump, **fields)


def add(call: Call, *sent: ReplicationMetrics) -> None:
    replication_metrics.add(call, ReplicationMetricList(replicationMetricList=list(sent)))


def found(call: Call, **request: Any) -> list[ReplicationMetrics]:
    return replication_metrics.get(call, GetReplicationMetricsRequest(**request)).replicationMetricList


def test_metrics_are_found_by_policy_execution_and_dump(call: Call) -> None:
    whole = {"metadata": "m" * 5000, "progress": "p" * 20_000, "messageFormat": "gzip"}
    one, two, other = metrics(1, dump=7, **whole), metrics(2, dump=8), metrics(3, "q")
    add(call, two, one, other)
    assert found(call, policy="p") == [two, one]
    assert found(call, scheduledExecutionId=1) == [one]
    assert found(call, policy="p", scheduledExecutionId=3) == [two, one]
    assert found(call, policy="p", dumpExecutionId=8) == [two]
    assert found(call, scheduledExecutionId=1, dumpExecutionId=8) == found(call, policy="no") == found(call, scheduledExecutionId=-1) == []
    with pytest.raises(MetaError, match="set one of them"):
        found(call, dumpExecutionId=7)


def test_a_report_replaces_its_earlier_fields(call: Call) -> None:
    add(call, metrics(1, metadata="m", progress="a", messageFormat="f"))
    add(call, metrics(1, "other", 9, progress="b"), metrics(2, metadata="n"), metrics(2, metadata="o", progress=""))
    assert found(call, policy="p") == [metrics(2, metadata="o", progress=None), metrics(1, metadata="m", progress="b", messageFormat=None)]


@pytest.mark.parametrize("missing", [metrics(None), metrics(1, None), metrics(1, dump=None), None])
def test_metrics_without_a_name_are_refused(call: Call, missing: Any) -> None:
    with pytest.raises(MetaError, match="need scheduledExecutionId, policy and dumpExecutionId"):
        add(call, metrics(2), missing)
    for none in (None, ReplicationMetricList()):
        with pytest.raises(MetaError, match="list of replication metrics is null"):
            replication_metrics.add(call, none)
    assert found(call, policy="p") == []


def test_old_metrics_are_removed(call: Call, make_metastore: MetastoreMaker, at: Clock) -> None:
    add(call, metrics(1))
    at(NOON + 50)
    add(call, metrics(1, progress="goes on"), metrics(2))
    metastore = make_metastore(replication_metrics_age=100.0)
    for later, kept in ((99, [2, 1]), (100, [2]), (150, [])):
        at(NOON + later)
        replication_metrics.delete_old(metastore)
        assert [each.scheduledExecutionId for each in found(call, policy="p")] == kept


def test_reports_of_one_execution_at_a_time_are_all_kept(call: Call) -> None:
    """The first report adds the entry, and the others change it, in any order."""
    start = threading.Barrier(8)

    def one(number: int) -> None:
        start.wait()
        field = "metadata" if number % 2 else "progress"
        add(call, metrics(1, **{field: str(number)}), metrics(2, **{field: str(number)}))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(one, range(8)))
    for each in found(call, policy="p"):
        assert each.metadata in set("1357")
        assert each.progress in set("0246")


def test_the_cost_of_the_calls(call: Call, counts: StatementCounts) -> None:
    counts("add statistics", lambda: runtime_statistics.add(call, RuntimeStat(weight=1, payload=b"x")))
    counts("get statistics", lambda: weights(call, -1))
    counts("add metrics", lambda: add(call, metrics(1)))
    counts("change metrics", lambda: add(call, metrics(1)))
    counts("get metrics", lambda: found(call, policy="p"))
