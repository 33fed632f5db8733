"""What a call takes of the database is noted: statements, and the times of round trips, of waits for locks and for connections."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from metastore.service import databases, tables
from metastore.service.context import Call
from metastore.store import tables as stored_tables
from metastore.store.database import Session
from metastore.store.drivers.contract import UniqueViolation
from metastore.store.pool import Pool
from metastore.store.work import KINDS, DatabaseWork, here, kind_of
from tests.service.conftest import Statements
from tests.service.waiting import beside
from tests.support.catalog import make_table


def noted(call: Call, work: object) -> DatabaseWork:
    """Run some work and return what the thread noted of it."""
    here.work.begin()
    work()  # type: ignore[operator]
    return here.work


def test_statements_and_their_time_are_noted(call: Call, statements: Statements) -> None:
    make_table(call, "t")
    before = list(call.database.statements)
    with statements() as seen:
        work = noted(call, lambda: tables.get_tables(call, "hive", "default", "t"))
    assert work.statements == len(seen) > 0
    assert work.seconds > 0
    assert sum(call.database.statements) - sum(before) == len(seen)
    assert call.database.statements[KINDS.index("select")] > before[KINDS.index("select")]
    assert noted(call, lambda: None).seconds == 0, "a new call begins with nothing"


def test_all_ways_of_running_statements_are_noted(call: Call) -> None:
    """One row, few rows later, and so many that each driver takes its own way for them."""
    for number in (1, 20, 12_000):
        work = noted(call, lambda count=number: call.database.write(lambda session: insert(session, count)))
        assert work.seconds > 0
        assert work.statements >= 2


def insert(session: Session, count: int) -> None:
    from metastore.store.schema import counters as rows

    session.execute(sa.delete(rows).where(rows.c.name.like("work%")))
    session.insert_many(rows, ("name", "value"), [(f"work{number}", number) for number in range(count)])


def test_each_thread_notes_its_own(call: Call) -> None:
    here.work.begin()
    with ThreadPoolExecutor(1) as other:
        assert other.submit(lambda: noted(call, lambda: databases.get_databases(call, "hive", "*")).statements).result() > 0
    assert here.work.statements == 0


def test_a_wait_for_a_lock_is_noted(call: Call) -> None:
    make_table(call, "t")

    def change(session: Session) -> None:
        assert stored_tables.lock(session, "hive", "default", "t") is not None

    def waits() -> DatabaseWork:
        return noted(call, lambda: call.database.write(change))

    work = beside(call, change, waits)
    assert work.lock_seconds > 0
    if call.database.driver.name != "sqlite":
        assert work.lock_seconds <= work.seconds
        assert call.database.statements[KINDS.index("lock")] >= 2


def test_only_who_finds_no_connection_idle_waits() -> None:
    lent = Pool(object, 1)
    here.work.begin()
    only = lent.take()
    opening = here.work.pool_seconds
    assert opening > 0
    assert (lent.waits, lent.in_use, lent.waiting) == (1, 1, 0)
    with ThreadPoolExecutor(1) as other:
        taken = other.submit(lambda: (lent.take(), here.work.pool_seconds))
        while not lent.waiting:
            assert not taken.done()
        lent.give(only)
        assert taken.result(10)[1] > 0
    lent.give(only)
    assert lent.in_use == 0
    assert lent.take() is only
    assert here.work.pool_seconds == opening
    assert lent.waits == 2
    assert lent.waited > opening


def test_statements_that_fail_take_their_time_too(call: Call) -> None:
    here.work.begin()

    def twice(session: Session) -> None:
        from metastore.store.schema import counters as rows

        session.insert(rows, name="twice", value=1)
        with pytest.raises(Exception) as raised:  # noqa: PT011  # each driver raises its own
            session.insert(rows, name="twice", value=1)
        assert call.database.driver.classify(raised.value) is UniqueViolation
        raise KeyError

    seconds = 0.0
    with pytest.raises(KeyError):
        call.database.write(twice)
    assert here.work.statements == 2
    assert here.work.seconds > seconds


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
