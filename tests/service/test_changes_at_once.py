"""Commits of transactions that changed rows, beside what others do: MariaDB tries them in one packet, and else goes the long way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from metastore.errors import TransactionAborted
from metastore.idl import AddDynamicPartitions, NotificationEventRequest, TxnType
from metastore.rules.transactions import INSERT as INSERTED
from metastore.rules.transactions import UPDATE as UPDATED
from metastore.rules.transactions import Intent
from metastore.service import notifications, write_ids
from metastore.service.context import Call, Client
from metastore.store import components, followers, schema
from metastore.store.at_once import mysql
from metastore.store.database import Database, Session
from metastore.store.drivers import BrokenAtCommit
from metastore.store.transactions import COMPONENTS, hold
from metastore.store.write_ids import Key
from tests.service.conftest import MetastoreMaker, Statements
from tests.service.txns import (
    DELETE,
    INSERT,
    READ,
    UPDATE,
    WRITE,
    abort,
    allocate,
    ask,
    begin,
    begin_one,
    commit,
    component,
    count,
    rows,
    write,
)
from tests.service.waiting import beside, waited_for

TABLE = Key("hive", "db", "t")
LEFT = (schema.transaction_components, schema.locks, schema.lock_components)
"""Tables in which nothing stays of a transaction that has committed."""


@pytest.fixture
def logged(make_metastore: MetastoreMaker) -> Call:
    """A call to a server whose messages are plain."""
    return Call(make_metastore(event_message_format="json-0.2"), Client("127.0.0.1:1", user="alice"), "test")


def of_another(call: Call) -> Call:
    return Call(call.metastore, Client("127.0.0.1:2", user="bob"), "test")


def state(call: Call, key: int) -> object:
    return rows(call, schema.transactions, "state", id=key)[0][0]


def judged_by(call: Call) -> list[tuple[object, ...]]:
    return rows(call, schema.write_set, "transaction_id", "commit_id", "table", "partition", "operation")


def completed(call: Call, key: int) -> list[tuple[object, ...]]:
    return rows(call, schema.completed_components, "table", "partition", "updates", "write_id", transaction_id=key)


def events(call: Call) -> list[str | None]:
    found = [each.eventType for each in notifications.get_next(call, NotificationEventRequest(lastEvent=0))]
    return [each for each in found if each not in {"OPEN_TXN", "ALLOC_WRITE_ID"}]


def just_before_its_commit(monkeypatch: pytest.MonkeyPatch, call: Call, end: Callable[[], None], other: Callable[[], Any]) -> Any:
    """Run `end`; when all that it does but COMMIT is done, begin with `other`, and go on when that waits. Return what `other` returns."""
    real = Database._commit
    begun: list[Future[Any]] = []
    with ThreadPoolExecutor(1) as pool:

        def commit_beside(database: Database, cursor: Any) -> None:
            if not begun:
                database.driver.flush(cursor)
                begun.append(pool.submit(other))
                while not waited_for(Session(database, cursor)):
                    assert not begun[0].done(), "it did not wait"
            real(database, cursor)

        monkeypatch.setattr(Database, "_commit", commit_beside)
        end()
        monkeypatch.undo()
        return begun[0].result()


def went_the_long_way(seen: Sequence[str]) -> bool:
    """Tell whether statements locked rows to read them."""
    return any("FOR UPDATE" in each and "exp(" not in each for each in seen)


@pytest.fixture
def call_of_many(call: Call) -> Call:
    """A call to a database in which several write at a time."""
    if call.database.driver.name == "sqlite":
        pytest.skip("only one writes at a time")
    return call


@pytest.mark.parametrize("opened", [1, 3])
def test_none_opens_between_the_reading_of_the_commit_id_and_the_commit(
    call_of_many: Call, monkeypatch: pytest.MonkeyPatch, opened: int
) -> None:
    """It would not see the commit in its snapshot, and would not lose to it either."""
    call = call_of_many
    key = begin_one(call)
    write(call, key)
    later = just_before_its_commit(monkeypatch, call, lambda: commit(call, key), lambda: begin(of_another(call), opened))
    assert judged_by(call) == [(key, key, "t", None, "u")]
    assert later[0] > key
    write(call, later[0])
    commit(call, later[0])


@pytest.mark.parametrize("partition", ["p=1", None])
def test_of_two_that_commit_a_change_at_the_same_time_the_second_waits_and_loses(
    call_of_many: Call, monkeypatch: pytest.MonkeyPatch, partition: str | None
) -> None:
    call, other = call_of_many, of_another(call_of_many)
    first, second = begin_one(call), begin_one(other)
    write(call, first, partition=partition)
    write(other, second, DELETE, partition=partition)

    def lose() -> None:
        name = "db/t" if partition is None else f"db/t/{partition}"
        text = rf"^Aborting \[txnid:{second},{second}\] due to a write conflict on {name} committed by \[txnid:{first},{second}\] d/u$"
        with pytest.raises(TransactionAborted, match=text):
            commit(other, second)

    just_before_its_commit(monkeypatch, call, lambda: commit(call, first), lose)
    assert (state(call, first), state(call, second)) == ("c", "a")
    assert judged_by(call) == [(first, second, "t", partition, "u")]
    assert completed(call, second) == []
    assert rows(call, schema.transaction_components, "transaction_id", "operation") == [(second, "d")]  # for the cleaner
    assert count(call, [schema.locks]) == {"locks": 0}


def test_changes_of_other_partitions_that_commit_at_the_same_time_both_win(call_of_many: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    call, other = call_of_many, of_another(call_of_many)
    first, second = begin_one(call), begin_one(other)
    one, two = write(call, first, partition="p=1"), write(other, second, partition="p=2")
    just_before_its_commit(monkeypatch, call, lambda: commit(call, first), lambda: commit(other, second))
    assert judged_by(call) == [(first, second, "t", "p=1", "u"), (second, second, "t", "p=2", "u")]
    assert [completed(call, key) for key in (first, second)] == [[("t", "p=1", 1, one)], [("t", "p=2", 1, two)]]


def test_a_change_that_was_committed_before_a_transaction_began_is_no_conflict_but_one_after_it_is(logged: Call) -> None:
    """Whether the other one opened first does not matter, but whether it had committed."""
    old, mine = begin_one(logged), begin_one(logged)
    write(logged, old)
    write(logged, mine)
    commit(logged, old)
    late = begin_one(logged)
    write(logged, late)
    with pytest.raises(TransactionAborted, match=rf"committed by \[txnid:{old},{mine}\]"):
        commit(logged, mine)
    commit(logged, late)
    assert [row[:2] for row in judged_by(logged)] == [(old, mine), (late, late)]
    assert events(logged) == ["COMMIT_TXN", "ABORT_TXN", "COMMIT_TXN"]


@pytest.mark.parametrize("operation", [UPDATE, DELETE])
def test_a_change_goes_in_one_packet(call: Call, statements: Statements, operation: int) -> None:
    if call.database.driver.name != "mysql":
        pytest.skip("MariaDB does so")
    before = begin_one(call)
    write(call, before, partition="p=1")
    commit(call, before)
    key = begin_one(call)
    number = write(call, key, operation, partition="p=1")
    for table, partition in (("t", "p=2"), ("t", None), ("u", "p=1")):
        meanwhile = begin_one(call)
        write(call, meanwhile, table=table, partition=partition)
        commit(call, meanwhile)
    with statements() as seen:
        commit(call, key)
    assert not went_the_long_way(seen)
    assert judged_by(call)[-1] == (key, meanwhile, "t", "p=1", "u" if operation == UPDATE else "d")
    assert completed(call, key) == [("t", "p=1", 1, number)]
    assert set(count(call, LEFT).values()) == {0}
    commit(call, key)  # once more
    assert len(judged_by(call)) == 5


@pytest.mark.parametrize("excludes", [True, False])
def test_a_client_with_exclusive_locks_is_not_judged(call: Call, statements: Statements, excludes: bool) -> None:
    first, second, third = (begin_one(call) for _ in range(3))
    for key in (first, second, third):
        write(call, key)
    commit(call, first)
    if excludes:
        with statements() as seen:
            commit(call, second, exclWriteEnabled=True)
        assert went_the_long_way(seen) == (call.database.driver.name == "postgresql")
    else:
        with pytest.raises(TransactionAborted):
            commit(call, second, exclWriteEnabled=False)
    assert [row[0] for row in judged_by(call)] == [first, second][: 1 + excludes]
    assert len(completed(call, second)) == excludes


@pytest.mark.parametrize("operation", [INSERT, UPDATE])
@pytest.mark.parametrize("table", ["t", "other"])
def test_what_another_client_asked_for_is_committed_too(call: Call, operation: int, table: str) -> None:
    """The client that commits knows of one change only."""
    key, other = begin_one(call), of_another(call)
    write(call, key)
    allocate(call, [key], table)
    ask(other, component(READ, "read"), transaction=key)
    ask(other, component(WRITE if operation == UPDATE else READ, table, "p=2", operation=operation), transaction=key)
    commit(call, key)
    assert sorted(completed(call, key), key=str) == sorted(
        [("t", None, 1, 1), (table, "p=2", int(operation == UPDATE), 1)], key=str
    )
    assert len(judged_by(call)) == 1 + (operation == UPDATE)
    assert set(count(call, LEFT).values()) == {0}


def test_a_commit_takes_along_the_change_that_is_noted_while_it_waits(call: Call) -> None:
    key = begin_one(call)
    number = write(call, key)

    def change(session: Session) -> None:
        assert hold(session, key, COMPONENTS, 1)
        components.insert(session, [(key, Intent("hive", "db", "t", "p=1", UPDATED, number))])

    beside(call, change, lambda: commit(call, key))
    assert {row[3] for row in judged_by(call)} == {None, "p=1"}
    assert len(completed(call, key)) == 2


@pytest.mark.parametrize("locks", [True, False])
@pytest.mark.parametrize("operation", [UPDATE, DELETE])
def test_of_two_that_changed_a_partition_found_while_writing_one_wins(call: Call, locks: bool, operation: int) -> None:
    """With a lock on the table as a whole, and without any."""
    first, second, other = begin(call, 3)
    for key, partition in ((first, "p=1"), (second, "p=1"), (other, "p=2")):
        number = allocate(call, [key])[key]
        if locks:
            ask(call, component(WRITE, operation=operation, dynamic=True), transaction=key)
        write_ids.add_dynamic_partitions(call, AddDynamicPartitions(
            txnid=key, writeid=number, dbname="db", tablename="t", partitionnames=[partition], operationType=operation
        ))
    commit(call, second)
    with pytest.raises(TransactionAborted, match="write conflict on db/t/p=1"):
        commit(call, first)
    commit(call, other)
    assert [row[3] for row in judged_by(call)] == ["p=1", "p=2"]
    assert [completed(call, key) for key in (second, other)] == [[("t", "p=1", 1, 2)], [("t", "p=2", 1, 3)]]


@pytest.mark.parametrize("partition", ["p=1", "p=2"])
def test_a_change_that_turned_out_to_be_an_insert_is_one(call: Call, partition: str) -> None:
    first, second = begin_one(call), begin_one(call)
    write(call, first, partition="p=2")
    number = allocate(call, [second])[second]
    ask(call, component(WRITE, operation=UPDATE, dynamic=True), transaction=second)
    write_ids.add_dynamic_partitions(of_another(call), AddDynamicPartitions(
        txnid=second, writeid=number, dbname="db", tablename="t", partitionnames=[partition], operationType=INSERT
    ))
    assert rows(call, schema.transaction_components, "operation", transaction_id=second) == [(INSERTED,)]
    commit(call, first)
    commit(call, second)
    assert [row[0] for row in judged_by(call)] == [first]
    assert completed(call, second) == [("t", partition, 0, number)]


def test_a_change_of_a_table_without_counter_makes_one(call: Call) -> None:
    key = begin_one(call)
    ask(call, component(WRITE, operation=UPDATE), transaction=key)
    commit(call, key)
    assert completed(call, key) == [("t", None, 1, None)]
    assert judged_by(call) == [(key, key, "t", None, "u")]
    assert rows(call, schema.write_id_counters, "table", "next") == [("t", 1)]


def test_others_are_not_judged_by_the_change_of_a_type_that_is_not(call: Call) -> None:
    key = begin_one(call, txn_type=TxnType.SOFT_DELETE)
    number = write(call, key)
    commit(call, key)
    assert judged_by(call) == []
    assert completed(call, key) == [("t", None, 1, number)]


def test_a_change_of_what_is_not_within_a_table_is_noted(call: Call) -> None:
    for _ in range(2):
        key = begin_one(call)
        ask(call, component(WRITE, None, operation=UPDATE), transaction=key)
        commit(call, key)
    assert [row[2] for row in judged_by(call)] == ["", ""]


@pytest.mark.parametrize("knows", [True, False])
def test_what_else_a_transaction_holds_goes_with_it(call: Call, knows: bool) -> None:
    key = begin_one(call)
    write(call, key)
    write_ids.add_to_history(call if knows else of_another(call), key, {"db.t": 1})
    commit(call, key)
    assert count(call, [schema.min_history, *LEFT]) == dict.fromkeys(("min_history", *(each.name for each in LEFT)), 0)
    assert len(judged_by(call)) == 1


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


def test_one_that_is_aborted_meanwhile_is_not_committed(logged: Call) -> None:
    key = begin_one(logged)
    write(logged, key)

    def change(session: Session) -> None:
        session.cursor.execute(f"UPDATE transactions SET state = 'a' WHERE id = {key}")

    def then() -> None:
        with pytest.raises(TransactionAborted, match="already aborted"):
            commit(logged, key)

    beside(logged, change, then)
    assert (judged_by(logged), completed(logged, key), events(logged)) == ([], [], [])


@pytest.mark.parametrize("is_done", [True, False])
def test_a_commit_of_a_change_that_nobody_knows_of_is_looked_after(
    logged: Call, monkeypatch: pytest.MonkeyPatch, is_done: bool
) -> None:
    """The connection breaks at the first commit, which was done or not."""
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
    assert completed(logged, key) == [("t", None, 1, number)]
    assert events(logged) == ["COMMIT_TXN"]
    assert set(count(logged, LEFT).values()) == {0}


@pytest.mark.parametrize("kind", ["table", "partition"])
@pytest.mark.parametrize("operation", [UPDATE, INSERT])
def test_what_is_renamed_meanwhile_is_committed_by_its_new_name(call: Call, kind: str, operation: int) -> None:
    key = begin_one(call)
    number = write(call, key, operation, partition="p=1")

    def change(session: Session) -> None:
        if kind == "table":
            followers.rename_table(session, TABLE, TABLE._replace(table="new"))
        else:
            followers.rename_partition(session, TABLE, "p=1", "p=2")

    beside(call, change, lambda: commit(call, key))
    new = ("new", "p=1") if kind == "table" else ("t", "p=2")
    changes = operation == UPDATE
    assert judged_by(call) == [(key, key, *new, "u")][:changes]
    assert completed(call, key) == [(*new, int(changes), number)]
    assert set(count(call, LEFT[:1]).values()) == {0}


def test_a_renamed_table_takes_along_what_its_changes_are_judged_by(call: Call) -> None:
    first, second = begin_one(call), begin_one(call)
    write(call, first)
    write(call, second)
    commit(call, first)
    call.database.write(lambda session: followers.rename_table(session, TABLE, TABLE._replace(table="new")))
    with pytest.raises(TransactionAborted, match="write conflict on db/new"):
        commit(call, second)


@pytest.mark.parametrize("others", [0, 300])
def test_no_row_is_held_but_those_of_the_transaction_and_its_table(call: Call, others: int) -> None:
    """However few rows there are: MariaDB would hold each that it reads."""
    if call.database.driver.name != "mysql":
        pytest.skip("MariaDB does so")
    key = begin_one(call)
    write(call, key)
    for number in range(others):
        write(call, begin_one(call), table=f"t{number % 50}")
    names = {"catalog": "hive", "database": "db", "table": "t", "partition": None, "operation": "u", "write_id": 1, "key": key}

    def work(session: Session) -> list[tuple[Any, ...]]:
        found = []
        for clause in (mysql.TAKE_INTENT, mysql.HOLD_COUNTER):
            text, literals = call.database.compiled(clause)
            session.cursor.execute(f"EXPLAIN {text.replace('row_count() = 1', '1 = 1')}", {**literals, **names})
            found += [(line[2], line[3], line[5]) for line in session.cursor.fetchall()]
        return found

    assert call.database.read(work) == [
        ("transaction_components", "range", "ix_transaction_components_transaction_id"), ("write_id_counters", "range", "PRIMARY"),
    ]
