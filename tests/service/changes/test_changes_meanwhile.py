"""Commits of row changes while other clients end the transaction, or rename or drop its table; and commits with an unknown outcome."""

from __future__ import annotations

from typing import Any

import pytest

from metastore.errors import TransactionAborted
from metastore.service.call.context import Call
from metastore.store.catalog import dependents
from metastore.store.core.database import Database, Session
from metastore.store.drivers.contract import BrokenAtCommit
from metastore.store.schema import model as schema
from tests.support.acid.changes import TABLE, completed, events, judged_by, left, of_another
from tests.support.acid.txns import INSERT, UPDATE, abort, begin_one, commit, intended, rows, write
from tests.support.servers.waiting import beside


def test_one_that_another_client_ended_is_not_committed(logged: Call) -> None:
    aborted, done = begin_one(logged), begin_one(logged)
    write(logged, aborted, table="u")
    write(logged, done)
    abort(of_another(logged), aborted)
    commit(of_another(logged), done)
    with pytest.raises(TransactionAborted, match=f"Transaction txnid:{aborted} already aborted"):
        commit(logged, aborted)
    commit(logged, done)
    assert [row[0] for row in judged_by(logged)] == [done]
    assert events(logged) == ["ABORT_TXN", "COMMIT_TXN"]


@pytest.mark.parametrize("operation", [INSERT, UPDATE])
def test_one_that_is_aborted_meanwhile_is_not_committed(logged: Call, operation: int) -> None:
    key = begin_one(logged)
    write(logged, key, operation)

    def change(session: Session) -> None:
        session.cursor.execute(f"UPDATE transactions SET state = 'a' WHERE id = {key}")

    def then() -> None:
        with pytest.raises(TransactionAborted, match="already aborted"):
            commit(logged, key)

    beside(logged, change, then)
    assert (judged_by(logged), completed(logged, key), events(logged)) == ([], [], [])


@pytest.mark.parametrize("is_done", [True, False])
def test_a_commit_of_a_change_that_nobody_knows_of_is_looked_after(logged: Call, monkeypatch: pytest.MonkeyPatch, is_done: bool) -> None:
    """The connection breaks at the first commit, which was done or not. In both cases the change is done once."""
    if logged.database.driver.name != "mysql":
        pytest.skip("the others say that they do not know")
    key = begin_one(logged)
    number = write(logged, key)
    real = Database._commit
    broken: list[object] = []

    def commit_and_break(database: Database, cursor: Any) -> None:
        if broken:
            real(database, cursor)
            return
        broken.append(cursor)
        if is_done:
            real(database, cursor)
        else:
            database.driver.rollback(cursor)
        raise BrokenAtCommit("the connection to the database broke at commit")

    monkeypatch.setattr(Database, "_commit", commit_and_break)
    commit(logged, key)
    monkeypatch.undo()
    assert len(broken) == 1
    assert judged_by(logged) == [(key, key, "t", None, "u")]
    assert completed(logged, key) == [("t", None, "u", number)]
    assert events(logged) == ["COMMIT_TXN"]
    assert left(logged) == 0


def rename(session: Session, kind: str) -> None:
    """Rename a partition, or else the table."""
    if kind == "partition":
        dependents.rename_partition(session, TABLE, "p=1", "p=2")
    else:
        dependents.rename_table(session, TABLE, TABLE._replace(table="new"))


@pytest.mark.parametrize("knows", [True, False])
@pytest.mark.parametrize("kind", ["whole table", "table", "partition"])
@pytest.mark.parametrize("operation", [UPDATE, INSERT])
def test_a_table_that_is_renamed_meanwhile_is_committed_by_its_new_name(call: Call, kind: str, operation: int, knows: bool) -> None:
    """The committing client is the writer, or another one that does not know the writes."""
    key, partition = begin_one(call), None if kind == "whole table" else "p=1"
    number = write(call, key, operation, partition=partition)
    beside(call, lambda session: rename(session, kind), lambda: commit(call if knows else of_another(call), key))
    new = ("t", "p=2") if kind == "partition" else ("new", partition)
    changes = operation == UPDATE
    assert judged_by(call) == [(key, key, *new, "u")][:changes]
    assert completed(call, key) == [(*new, "u" if changes else "i", number)]
    assert intended(call, "id") == []


@pytest.mark.parametrize("knows", [True, False])
@pytest.mark.parametrize("kind", ["whole table", "partition"])
def test_two_whose_table_or_partition_is_renamed_meanwhile_still_meet(call: Call, kind: str, knows: bool) -> None:
    first, second = begin_one(call), begin_one(call)
    for key in (first, second):
        write(call, key, partition=None if kind == "whole table" else "p=1")
    commit(call, first)

    def lose() -> None:
        with pytest.raises(TransactionAborted, match=f"write conflict on db/{'new' if kind == 'whole table' else 't/p=2'} "):
            commit(call if knows else of_another(call), second)

    beside(call, lambda session: rename(session, kind), lose)
    assert [row[0] for row in judged_by(call)] == [first]


@pytest.mark.parametrize("knows", [True, False])
@pytest.mark.parametrize("operation", [UPDATE, INSERT])
def test_of_a_table_that_is_dropped_meanwhile_nothing_is_left(call: Call, operation: int, knows: bool) -> None:
    key = begin_one(call)
    write(call, key, operation)
    beside(call, lambda session: dependents.delete_table(session, TABLE), lambda: commit(call if knows else of_another(call), key))
    assert rows(call, schema.transactions, "state") == [("c",)]
    assert rows(call, schema.transaction_components, "id") == rows(call, schema.write_id_counters, "table") == []


def test_a_renamed_table_takes_along_the_facts_for_judging_its_changes(call: Call) -> None:
    first, second, third = (begin_one(call) for _ in range(3))
    write(call, first)
    write(call, second)
    commit(call, first)
    call.database.write(lambda session: dependents.rename_table(session, TABLE, TABLE._replace(table="new")))
    write(call, third, table="new")
    for late in (second, third):
        with pytest.raises(TransactionAborted, match="write conflict on db/new"):
            commit(call, late)
