"""A call's use of the database is noted: statements, and the times of round trips, of waits for locks and for connections."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from time import perf_counter

import pytest
import sqlalchemy as sa

from metastore.call_time import PARTS, CallTime, here
from metastore.errors import MetaError
from metastore.service.call.context import Call
from metastore.service.catalog import databases
from metastore.service.catalog.tables import tables
from metastore.store.catalog.tables import tables as stored_tables
from metastore.store.core.database import Database, Session
from metastore.store.core.kinds import KINDS, kind_of
from metastore.store.core.pool import Pool
from metastore.store.drivers.contract import Retry, UniqueViolation
from metastore.warehouse import Warehouse, asking_first
from tests.support.catalog.catalog import Statements, make_table
from tests.support.databases.replicas import alone
from tests.support.servers.stalling import stalling
from tests.support.servers.waiting import beside


def noted(call: Call, work: object) -> CallTime:
    """Run some work and return the statements and times that its thread noted."""
    here.time.begin()
    work()  # type: ignore[operator]
    return here.time


def test_statements_and_their_time_are_noted(call: Call, statements: Statements) -> None:
    make_table(call, "t")
    before = list(call.database.statements)
    with statements() as seen:
        work = noted(call, lambda: tables.get_tables(call, "hive", "default", "t"))
    assert work.statements == len(seen) > 0
    assert work.sql_seconds > 0
    assert sum(call.database.statements) - sum(before) == len(seen)
    assert call.database.statements[KINDS.index("select")] > before[KINDS.index("select")]
    assert noted(call, lambda: None).sql_seconds == 0, "a new call begins with nothing"


def test_all_ways_of_running_statements_are_noted(call: Call) -> None:
    """One row, a few rows, and so many rows that each driver inserts them in a special way."""
    for number in (1, 20, 12_000):
        work = noted(call, lambda count=number: call.database.write(lambda session: insert(session, count)))
        assert work.sql_seconds > 0
        assert work.statements >= 2


def insert(session: Session, count: int) -> None:
    from metastore.store.schema.model import counters as rows

    session.execute(sa.delete(rows).where(rows.c.name.like("work%")))
    session.insert_many(rows, ("name", "value"), [(f"work{number}", number) for number in range(count)])


def test_each_thread_notes_its_own(call: Call) -> None:
    here.time.begin()
    with ThreadPoolExecutor(1) as other:
        assert other.submit(lambda: noted(call, lambda: databases.get_databases(call, "hive", "*")).statements).result() > 0
    assert here.time.statements == 0


def test_a_wait_for_a_lock_is_noted(call: Call) -> None:
    make_table(call, "t")

    def change(session: Session) -> None:
        assert stored_tables.lock(session, "hive", "default", "t") is not None

    def waits() -> CallTime:
        return noted(call, lambda: call.database.write(change))

    work = beside(call, change, waits)
    assert work.lock_seconds > 0
    if call.database.driver.name != "sqlite":
        assert call.database.statements[KINDS.index("lock")] >= 2


def test_only_who_finds_no_connection_idle_waits() -> None:
    lent = Pool(object, 1)
    here.time.begin()
    only = lent.take()
    opening = here.time.pool_seconds
    assert opening > 0
    assert (lent.waits, lent.in_use, lent.waiting) == (1, 1, 0)
    with ThreadPoolExecutor(1) as other:
        taken = other.submit(lambda: (lent.take(), here.time.pool_seconds))
        while not lent.waiting:
            assert not taken.done()
        lent.give(only)
        assert taken.result(60)[1] > 0
    lent.give(only)
    assert lent.in_use == 0
    assert lent.take() is only
    assert here.time.pool_seconds == opening
    assert lent.waits == 2
    assert lent.waited > opening


def test_statements_that_fail_take_their_time_too(call: Call) -> None:
    here.time.begin()

    def twice(session: Session) -> None:
        from metastore.store.schema.model import counters as rows

        session.insert(rows, name="twice", value=1)
        with pytest.raises(Exception) as raised:  # noqa: PT011  # each driver raises its own
            session.insert(rows, name="twice", value=1)
        assert call.database.driver.classify(raised.value) is UniqueViolation
        raise KeyError

    seconds = 0.0
    with pytest.raises(KeyError):
        call.database.write(twice)
    assert here.time.statements == 2
    assert here.time.sql_seconds > seconds


def test_a_pause_before_another_attempt_is_a_wait(call: Call) -> None:
    attempts: list[int] = []

    def meets_another(_session: Session) -> None:
        attempts.append(1)
        if len(attempts) < 4:
            raise Retry

    work = noted(call, lambda: call.database.write(meets_another))
    assert len(attempts) == 4
    assert work.wait_seconds > 0


def test_a_database_that_is_gone_is_waited_for_and_no_other_part_grows() -> None:
    """The server is killed and started again while a call waits for it."""
    with alone() as server:
        database = Database(server.address("primary"))
        query = sa.select(sa.literal(1))
        database.read(lambda session: session.rows(query))
        server.kill("primary")
        lost = Event()
        database.observer = lambda _text: lost.set()

        def ask() -> tuple[float, ...]:
            here.time.begin()
            began = perf_counter()
            database.read(lambda session: session.rows(query))
            return here.time.parts(perf_counter() - began)

        with ThreadPoolExecutor(1) as other:
            asking = other.submit(ask)
            assert lost.wait(30)  # the call has noticed that its connection is broken
            server.start_again("primary")
            parts = dict(zip(PARTS, asking.result(60), strict=True))
        assert parts["wait"] > sum(parts.values()) / 2
        assert parts["files"] == parts["encoding"] == 0
        database.close()


def test_files_are_a_part_of_their_own_in_every_thread(call: Call) -> None:
    make_table(call, "t")
    root = f"{call.warehouse.root}/t"
    for work in (
        lambda: call.warehouse.make(f"{root}/a"),
        lambda: call.warehouse.each(lambda number: call.warehouse.make(f"{root}/{number}"), range(400), root),
        lambda: call.warehouse.make("memory://warehouse/a"),
    ):
        done = noted(call, work)
        assert done.files_seconds > 0
        assert done.sql_seconds == done.lock_seconds == done.wait_seconds == 0
    assert not here.time.is_in_files


def test_a_storage_that_is_asked_outside_of_a_transaction_is_files(tmp_path: Path) -> None:
    """The wait for a storage that does not answer counts as `files`, though no transaction was open then."""
    with stalling() as storage:
        warehouse = Warehouse(str(tmp_path), options=storage.s3, timeout=0.5)
        here.time.begin()
        began = perf_counter()
        with pytest.raises(MetaError, match="warehouse_timeout"):
            asking_first(lambda: warehouse.exists("s3a://bucket/t"))
        parts = dict(zip(PARTS, here.time.parts(perf_counter() - began), strict=True))
    assert parts["files"] > sum(parts.values()) / 2


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("SELECT 1", "select"),
        ("SELECT 1 FROM t FOR UPDATE", "lock"),
        ("SELECT 1 FROM t LOCK IN SHARE MODE", "lock"),
        ("INSERT INTO t SELECT 1 FROM u FOR UPDATE", "insert"),
        ("UPDATE t SET a = 1", "update"),
        ("DELETE FROM t", "delete"),
        ("COPY t", "other"),
        ("WITH a AS (SELECT 1) UPDATE t SET b = 1", "other"),
    ],
)
def test_kinds_of_statements(text: str, kind: str) -> None:
    assert KINDS[kind_of(text)] == kind
