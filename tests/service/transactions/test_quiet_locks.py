"""A server does not look for other locks if it saw none that a new lock would wait for, until one may have been added."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

import pytest

from metastore.errors import NoSuchTransaction, TransactionAborted
from metastore.idl import LockRequest, LockState
from metastore.service.call.clock import now_ms
from metastore.service.call.context import Call
from metastore.service.call.names import TableName
from metastore.service.catalog.databases import drop_database
from metastore.service.catalog.tables import tables
from metastore.service.catalog.tables.alter_table import alter_table
from metastore.service.transactions import locks
from metastore.store.core.caches import QuietQueue
from metastore.store.core.database import Session
from metastore.store.fast_paths import mysql
from metastore.store.schema import model as schema
from metastore.store.transactions import locks as lock_rows
from metastore.store.transactions.components import Intent
from metastore.store.transactions.locks import NewLock
from tests.support.acid.txns import (
    EXCL_WRITE,
    EXCLUSIVE,
    INSERT,
    READ,
    UPDATE,
    WRITE,
    abort,
    allocate,
    ask,
    begin_one,
    commit,
    component,
    count,
    rows,
)
from tests.support.catalog.catalog import MetastoreMaker, call_of, make_database, make_table
from tests.support.databases.statement_counts import StatementCounts
from tests.support.servers.waiting import beside

ACQUIRED, WAITING = LockState.ACQUIRED, LockState.WAITING


@pytest.fixture
def other(call: Call, make_metastore: MetastoreMaker) -> Call:  # after the first server, which makes objects
    """A call to another server on the same database, which has not seen the changes of the first one."""
    return call_of(make_metastore())


def quieten(call: Call, *parts: tuple[int, str | None]) -> None:
    """Let a server see that such locks do not have to wait. The first lock makes the queue."""
    for _ in range(3):
        for kind, table in parts or ((READ, "t"), (WRITE, "t")):
            key, state = ask(call, component(kind, table))
            assert state == ACQUIRED
            locks.unlock(call, key)


@pytest.fixture
def quiet(call: Call) -> Call:
    """A call to a server that saw no locks on the table."""
    quieten(call)
    return call


@pytest.mark.parametrize("kind", [READ, WRITE])
def test_it_does_not_look_again(quiet: Call, counts: StatementCounts, kind: int) -> None:
    if quiet.database.driver.name != "mysql":
        pytest.skip("the others look in the statement that adds the lock")
    key = begin_one(quiet)
    assert counts("a lock where nothing was seen", lambda: ask(quiet, component(kind), transaction=key))[1] == ACQUIRED
    quiet.database.caches.lock_queues.clear()
    key = begin_one(quiet)
    assert counts("a lock that looks", lambda: ask(quiet, component(kind), transaction=key))[1] == ACQUIRED


@pytest.mark.parametrize(
    ("held", "kind", "state"),
    [
        (EXCLUSIVE, READ, WAITING),
        (EXCLUSIVE, WRITE, WAITING),
        (EXCL_WRITE, WRITE, WAITING),
        (EXCL_WRITE, READ, ACQUIRED),
        (WRITE, WRITE, ACQUIRED),
        (READ, WRITE, ACQUIRED),
    ],
)
@pytest.mark.parametrize("table", ["t", None])
def test_it_waits_for_the_locks_of_another_server(quiet: Call, other: Call, held: int, kind: int, state: int, table: str | None) -> None:
    first, granted = ask(other, component(held, table))
    assert granted == ACQUIRED
    second, found = ask(quiet, component(kind))
    assert found == state
    locks.unlock(quiet, second)
    assert ask(quiet, component(kind, "other"))[1] == (ACQUIRED if table else state)
    locks.unlock(other, first)
    assert ask(quiet, component(kind))[1] == ACQUIRED


def test_it_waits_for_one_that_waits_itself(quiet: Call, other: Call) -> None:
    reader, _ = ask(quiet, component(READ))
    writer, state = ask(other, component(EXCLUSIVE))
    assert state == WAITING
    assert ask(quiet, component(READ))[1] == WAITING
    locks.unlock(quiet, reader)
    assert locks.check_lock(other, writer).state == ACQUIRED


def test_one_table_is_quiet_beside_another_that_is_not(quiet: Call, other: Call) -> None:
    assert ask(other, component(EXCLUSIVE, "u"))[1] == ACQUIRED
    quieten(quiet)
    for table in ("u", None):
        assert ask(quiet, component(WRITE, table))[1] == WAITING


def test_it_waits_for_locks_added_while_it_waited_for_its_turn(quiet: Call) -> None:
    def change(session: Session) -> None:
        assert lock_rows.overlapping(session, [("hive", "db", "t", None, EXCLUSIVE)], [EXCLUSIVE]) == []
        lock = NewLock(0, "a", "bob", "there", None, now_ms(), now_ms(), 0)
        lock_rows.insert(session, lock, [("hive", "db", "t", None, EXCLUSIVE)], [])

    assert beside(quiet, change, lambda: ask(quiet, component(READ))[1]) == WAITING


def test_writers_of_old_clients_wait_for_each_other(quiet: Call, other: Call) -> None:
    for client in (quiet, other, quiet, other):
        states = [ask_as_before(client, WRITE) for _ in range(2)]
        assert [state for _, state in states] == [ACQUIRED, WAITING]
        for key, _ in states:
            locks.unlock(client, key)


def ask_as_before(call: Call, kind: int) -> tuple[int, int]:
    answer = locks.lock(call, LockRequest(component=[component(kind)], txnid=0, user="alice", hostname="here"))
    return answer.lockid, answer.state


def test_locks_in_two_databases_look_for_both(quiet: Call, other: Call) -> None:
    both = (component(READ), component(READ, database="second"))
    for _ in range(2):
        key, state = ask(quiet, *both)
        assert state == ACQUIRED
        locks.unlock(quiet, key)
    ask(other, component(EXCLUSIVE, database="second"))
    assert ask(quiet, *both)[1] == WAITING


def test_one_of_an_ended_transaction_is_refused(quiet: Call) -> None:
    committed, aborted = (begin_one(quiet) for _ in range(2))
    commit(quiet, committed)
    abort(quiet, aborted)
    with pytest.raises(NoSuchTransaction, match="txnid"):
        ask(quiet, component(READ), transaction=committed)
    with pytest.raises(TransactionAborted):
        ask(quiet, component(READ), transaction=aborted)
    assert count(quiet, [schema.locks, schema.lock_components]) == {"locks": 0, "lock_components": 0}
    assert ask(quiet, component(READ), transaction=begin_one(quiet))[1] == ACQUIRED


@pytest.fixture
def table(call: Call) -> TableName:
    """A transactional table."""
    make_database(call, "db")
    return transactional(call)


def transactional(call: Call) -> TableName:
    return make_table(call, "t", database="db", parameters={"transactional": "true", "transactional_properties": "insert_only"})


def rename(call: Call, name: TableName, new: str) -> None:
    before = tables.get_table(call, name)
    after = deepcopy(before)
    after.tableName = new
    alter_table(call, name, after)


def noted(call: Call, key: int) -> dict[object, object]:
    """Return the write ids that a transaction noted, by tables."""
    return dict(rows(call, schema.transaction_components, "table", "write_id", transaction_id=key))  # type: ignore[arg-type]


def to_insert(call: Call, key: int, name: str = "t") -> None:
    assert ask(call, component(READ, name, operation=INSERT), transaction=key)[1] == ACQUIRED


def test_a_known_write_id_is_noted(quiet: Call) -> None:
    for _ in range(3):  # the first makes the counter
        key = begin_one(quiet)
        number = allocate(quiet, [key])[key]
        ask(quiet, component(READ, operation=INSERT), component(WRITE, "u", operation=UPDATE), transaction=key)
        ask(quiet, component(READ, operation=INSERT), transaction=key)
        assert rows(quiet, schema.transaction_components, "table", "write_id", transaction_id=key) == [
            ("t", number),
            ("u", None),
            ("t", number),
        ]


def test_a_known_write_id_is_not_looked_up(quiet: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    if quiet.database.driver.name != "mysql":
        pytest.skip("the others look it up in the statement that adds the lock")
    looked_up: list[str | None] = []
    note = mysql._note

    def noting(session: Session, transaction: int, intents: Sequence[Intent]) -> None:
        looked_up.extend(intent[2] for intent in intents)
        note(session, transaction, intents)

    monkeypatch.setattr(mysql, "_note", noting)
    for _ in range(3):  # the first makes the counter, the second sees that there is nothing to wait for
        key = begin_one(quiet)
        allocate(quiet, [key])
        looked_up.clear()
        ask(quiet, component(READ, operation=INSERT), component(WRITE, "u", operation=UPDATE), transaction=key)
    assert looked_up == ["u"]  # a table in which the transaction has no write id


def test_locks_follow_a_renamed_table(quiet: Call, other: Call, table: TableName) -> None:
    quieten(quiet, (READ, "new"))
    assert ask(other, component(EXCLUSIVE))[1] == ACQUIRED
    quieten(quiet, (READ, "new"))
    rename(other, table, "new")
    assert ask(quiet, component(READ, "new"))[1] == WAITING
    assert ask(quiet, component(READ))[1] == ACQUIRED


@pytest.mark.parametrize("how", ["rename", "drop"])
@pytest.mark.parametrize("again", [True, False], ids=["seen since", "not seen since"])
def test_a_later_table_of_the_name_has_no_write_id(quiet: Call, other: Call, table: TableName, how: str, again: bool) -> None:
    key = begin_one(quiet)
    number = allocate(quiet, [key])[key]
    if how == "rename":
        rename(other, table, "new")
    else:
        tables.drop_table(other, table, delete_data=False)
    transactional(other)
    if again:
        quieten(quiet)
    to_insert(quiet, key)
    assert noted(quiet, key) == {"t": None}
    if how == "rename":
        to_insert(quiet, key, "new")
        assert noted(quiet, key) == {"t": None, "new": number}
    new = allocate(quiet, [key])[key]
    later = begin_one(quiet)
    assert allocate(quiet, [later])[later] == new + 1
    to_insert(quiet, later)
    assert noted(quiet, later) == {"t": new + 1}


def test_a_dropped_database_takes_write_ids_with_it(quiet: Call, other: Call, table: TableName) -> None:
    key = begin_one(quiet)
    allocate(quiet, [key])
    drop_database(other, table.catalog, table.database, delete_data=False, cascade=True)
    to_insert(quiet, key)
    assert noted(quiet, key) == {"t": None}


def test_a_write_id_that_another_server_allocates_again_is_noted(quiet: Call, other: Call) -> None:
    key = begin_one(quiet)
    number = allocate(quiet, [key])[key]
    assert allocate(other, [key], reallocate=True) == {key: number + 1}
    to_insert(quiet, key)
    assert noted(quiet, key) == {"t": number + 1}


def test_the_memory_is_bounded(quiet: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    if quiet.database.driver.name != "mysql":
        pytest.skip("the others remember nothing")
    monkeypatch.setattr(QuietQueue, "LIMIT", 3)
    queues = quiet.database.caches.lock_queues
    for number in range(5):
        quieten(quiet, (READ, f"further{number}"))
    seen = queues.get("hive.db")
    assert seen is not None
    assert len(seen._quiet) == 3
    monkeypatch.setattr(queues, "limit", 2)
    for name in ("one", "another", "third"):
        for _ in range(3):
            locks.unlock(quiet, ask(quiet, component(READ, database=name))[0])
    assert len(queues) == 2
    assert queues.get("hive.db") is None
