"""Statements that are sent to the database together: their answers can be read in any order, on each database."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from metastore.service.call.context import Call
from metastore.store.core.database import Session
from metastore.store.drivers import mysql_connection
from metastore.store.drivers.contract import FEW, Retry
from metastore.store.schema.model import lock_components, lock_queues, locks
from metastore.store.transactions.locks import COMPONENT_COLUMNS

Q = lock_queues.c
NAMES = sa.select(Q.name).order_by(Q.name)
RENAME = sa.update(lock_queues).where(Q.name == sa.bindparam("old")).values(name=sa.bindparam("new"))
COMPONENTS = (
    sa.select(lock_components.c.number, lock_components.c.table)
    .where(lock_components.c.lock_id == sa.bindparam("key"))
    .order_by(lock_components.c.number)
)
LOCK = {
    "transaction_id": 0,
    "state": "a",
    "user": "u",
    "host": "h",
    "agent": "%s;'\"\\ä😀",
    "heartbeat_ms": 1,
    "acquired_ms": None,
    "writers_wait": 0,
}


def test_answers_come_in_any_order(call: Call) -> None:
    def work(session: Session) -> None:
        session.enqueue_insert(lock_queues, ("name",), [("a",), ("b",)])
        first = session.enqueue(RENAME, old="a", new="c")
        none = session.enqueue(RENAME, old="a", new="d")
        names = session.enqueue(NAMES)
        last = session.enqueue(RENAME, old="b", new="a")
        assert [tuple(row) for row in names.rows] == [("b",), ("c",)]
        assert (first.count, none.count, last.count) == (1, 0, 1)
        assert session.rows(NAMES)[0][0] == "a"
        later = session.enqueue(NAMES)
        assert session.execute(RENAME, old="c", new="e") == 1
        assert [tuple(row) for row in later.rows] == [("a",), ("c",)]

    call.database.write(work)


def test_waiting_statements_run_at_the_end_of_a_change_that_commits_by_itself(call: Call) -> None:
    call.database.autocommit(lambda session: session.enqueue_insert(lock_queues, ("name",), [("a",), ("b",)]))
    assert [tuple(row) for row in call.database.read(lambda session: session.rows(NAMES))] == [("a",), ("b",)]
    call.database.autocommit(lambda session: session.enqueue(RENAME, old="a", new="c"))
    assert [tuple(row) for row in call.database.read(lambda session: session.rows(NAMES))] == [("b",), ("c",)]


@pytest.mark.parametrize("together", [mysql_connection.TOGETHER, 1])
@pytest.mark.parametrize("number", [0, 1, 3, FEW + 1])
def test_rows_below_a_new_one_have_its_key(call: Call, monkeypatch: pytest.MonkeyPatch, number: int, together: int) -> None:
    monkeypatch.setattr(mysql_connection, "TOGETHER", together)
    rows = [(place, "hive", "db", f"%s;'\"\\ä😀{place}" if place % 2 else None, None, 3) for place in range(number)]

    def work(session: Session) -> list[int]:
        keys = []
        for _ in range(2):
            lock = session.insert_keyed(locks, **LOCK)
            session.insert_below(lock, lock_components, COMPONENT_COLUMNS, rows)
            found = session.enqueue(COMPONENTS, key=lock.key)
            keys.append(lock.key)
            assert [tuple(row) for row in found.rows] == [(row[0], row[3]) for row in rows]
        return keys

    first, second = call.database.write(work)
    assert second > first
    found = call.database.read(lambda session: session.rows(sa.select(locks.c.agent)))
    assert [tuple(row) for row in found] == [(LOCK["agent"],)] * 2


def test_waiting_statements_run_again_with_the_unit_of_work(call: Call) -> None:
    attempts: list[int] = []

    def work(session: Session) -> object:
        attempts.append(1)
        answer = session.insert_keyed(locks, **LOCK)
        if len(attempts) == 1:
            raise Retry
        return answer

    answer = call.database.write(work)
    ids = [key for (key,) in call.database.read(lambda session: session.rows(sa.select(locks.c.id)))]
    assert ids == [answer.key]  # type: ignore[attr-defined]  # an Answer
