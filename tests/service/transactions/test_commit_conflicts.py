"""Commits of row changes beside other transactions: conflicts and waits, on fast paths and on the portable way."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from threading import current_thread
from typing import Any

import pytest
import sqlalchemy as sa

from metastore.errors import TransactionAborted
from metastore.idl import AddDynamicPartitions, TxnType
from metastore.rules.transactions.transactions import INSERT as INSERTED
from metastore.rules.transactions.transactions import UPDATE as UPDATED
from metastore.rules.transactions.transactions import Intent
from metastore.service.call.context import Call
from metastore.service.transactions import write_ids
from metastore.store.core.database import Database, Session
from metastore.store.fast_paths import mysql_statements
from metastore.store.schema import model as schema
from metastore.store.transactions import components
from metastore.store.transactions.transactions import COMPONENTS, add_holds
from tests.support.acid.changes import completed, events, judged_by, left, of_another
from tests.support.acid.txns import (
    DELETE,
    INSERT,
    READ,
    UPDATE,
    WRITE,
    allocate,
    ask,
    begin,
    begin_one,
    commit,
    component,
    count,
    intended,
    rows,
    write,
)
from tests.support.servers.waiting import beside, waited_for


def state(call: Call, key: int) -> object:
    return rows(call, schema.transactions, "state", id=key)[0][0]


def just_before_its_commit(monkeypatch: pytest.MonkeyPatch, call: Call, end: Callable[[], None], other: Callable[[], Any]) -> Any:
    """Run `end` up to its COMMIT, start `other` in another thread, and commit when `other` waits. Return the result of `other`."""
    real, own = Database._commit, current_thread()
    begun: list[Future[Any]] = []
    with ThreadPoolExecutor(1) as pool:

        def commit_beside(database: Database, cursor: Any) -> None:
            if not begun and current_thread() is own:
                database.driver.sync(cursor)
                begun.append(pool.submit(other))
                while not waited_for(Session(database, cursor)):
                    assert not begun[0].done(), "it did not wait"
            real(database, cursor)

        monkeypatch.setattr(Database, "_commit", commit_beside)
        end()
        monkeypatch.undo()
        return begun[0].result()


@pytest.fixture
def call_of_many(call: Call) -> Call:
    """A call to a database with several writers at a time."""
    if call.database.driver.name == "sqlite":
        pytest.skip("only one writes at a time")
    return call


@pytest.mark.parametrize("opened", [1, 3])
@pytest.mark.parametrize("partition", ["p=1", None])
def test_none_opens_between_the_reading_of_the_commit_id_and_the_commit(
    call_of_many: Call, monkeypatch: pytest.MonkeyPatch, partition: str | None, opened: int
) -> None:
    """Such a transaction would not see the commit in its snapshot, and would not lose to it either."""
    call = call_of_many
    key = begin_one(call)
    write(call, key, partition=partition)
    later = just_before_its_commit(monkeypatch, call, lambda: commit(call, key), lambda: begin(of_another(call), opened))
    assert judged_by(call) == [(key, key, "t", partition, "u")]
    assert later[0] > key
    write(call, later[0], partition=partition)
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
    assert intended(call, "transaction_id", "operation") == [(second, "d")]  # kept for the cleaner
    assert count(call, [schema.locks]) == {"locks": 0}


def test_changes_of_other_partitions_that_commit_at_the_same_time_both_win(call_of_many: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    call, other = call_of_many, of_another(call_of_many)
    first, second = begin_one(call), begin_one(other)
    one, two = write(call, first, partition="p=1"), write(other, second, partition="p=2")
    just_before_its_commit(monkeypatch, call, lambda: commit(call, first), lambda: commit(other, second))
    assert judged_by(call) == [(first, second, "t", "p=1", "u"), (second, second, "t", "p=2", "u")]
    assert [completed(call, key) for key in (first, second)] == [[("t", "p=1", "u", one)], [("t", "p=2", "u", two)]]


def test_a_change_that_was_committed_before_a_transaction_began_is_no_conflict_but_one_after_it_is(logged: Call) -> None:
    """The time of the other transaction's commit decides, not the time when it was opened."""
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


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize("partition", ["p=1", None])
def test_a_change_loses_to_one_of_which_the_other_client_did_not_know(call: Call, partition: str | None, is_known: bool) -> None:
    """On MariaDB, a change of another client is committed on the portable way."""
    first, second = begin_one(call), begin_one(call)
    for key in (first, second):
        write(call, key, partition=partition)
    commit(call if is_known else of_another(call), first)
    with pytest.raises(TransactionAborted, match=f"committed by .txnid:{first},{second}"):
        commit(call, second)


def test_several_tables_that_a_transaction_changed_are_judged(call: Call) -> None:
    late = {table: begin_one(call) for table in ("t", "u")}
    key = begin_one(call)
    for table, other in late.items():
        write(call, other, table=table)
        write(call, key, table=table)
    commit(call, key)
    for table, other in late.items():
        with pytest.raises(TransactionAborted, match=f"db/{table}"):
            commit(call, other)


def test_none_who_opens_waits_for_a_commit_that_waits_for_its_table(call_of_many: Call) -> None:
    """Otherwise all clients that open a transaction would wait for the table's holder, which may itself wait for a commit."""
    call = call_of_many
    key = begin_one(call)
    write(call, key)

    def work(session: Session) -> int:
        session.cursor.execute("UPDATE write_id_counters SET next = next")
        call.database.driver.sync(session.cursor)
        done.append(pool.submit(lambda: commit(call, key)))
        while not waited_for(session):
            assert not done[0].done()
        return pool.submit(lambda: begin_one(of_another(call))).result(20)

    done: list[Future[Any]] = []
    with ThreadPoolExecutor(2) as pool:
        later = call.database.write(work)
        done[0].result()
    assert [row[:2] for row in judged_by(call)] == [(key, later)]


@pytest.mark.parametrize("table", ["t", "u"])
def test_a_change_does_not_wait_for_uncommitted_changes_of_others(call_of_many: Call, table: str) -> None:
    """Two commits that waited for each other's rows would be given up again and again, until one of them fails."""
    call = call_of_many
    key, number = begin_one(call), begin_one(call)
    write(call, key, partition="p=1")

    def work(session: Session) -> None:
        columns = (*components.COLUMNS, "committed_ms", "commit_id")
        session.insert_many(schema.transaction_components, columns, [(number, "hive", "db", table, "p=2", UPDATED, 9, 1, number)])
        pool.submit(lambda: commit(call, key)).result(20)

    with ThreadPoolExecutor(1) as pool:
        call.database.write(work)
    assert sorted(judged_by(call)) == [(key, number, "t", "p=1", "u"), (number, number, table, "p=2", "u")]


@pytest.mark.parametrize("noted", [{"operation": UPDATED}, {"operation": INSERTED}, {"partition": "p=2"}, {"write_id": 7}])
@pytest.mark.parametrize("operation", [INSERT, UPDATE])
def test_components_are_committed_as_noted(call: Call, operation: int, noted: dict[str, object]) -> None:
    """The rows of the database are committed, not the hint of the client: another client may have changed them."""
    key = begin_one(call)
    intent = {"table": "t", "partition": "p=1", "write_id": write(call, key, operation, partition="p=1")}
    intent |= {"operation": INSERTED if operation == INSERT else UPDATED} | noted
    call.database.write(lambda session: session.execute(sa.update(schema.transaction_components).values(noted)))
    commit(call, key)
    changes = intent["operation"] == UPDATED
    assert completed(call, key) == [("t", intent["partition"], intent["operation"], intent["write_id"])]
    assert judged_by(call) == [(key, key, "t", intent["partition"], UPDATED)][:changes]
    assert left(call) == 0


@pytest.mark.parametrize("operation", [INSERT, UPDATE])
@pytest.mark.parametrize("table", ["t", "other"])
def test_the_changes_of_another_client_are_committed_too(call: Call, operation: int, table: str) -> None:
    """The committing client has requested one change only."""
    key, other = begin_one(call), of_another(call)
    write(call, key)
    allocate(call, [key], table)
    ask(other, component(READ, "read"), transaction=key)
    ask(other, component(WRITE if operation == UPDATE else READ, table, "p=2", operation=operation), transaction=key)
    commit(call, key)
    assert sorted(completed(call, key), key=str) == sorted(
        [("t", None, "u", 1), (table, "p=2", "u" if operation == UPDATE else "i", 1)], key=str
    )
    assert len(judged_by(call)) == 1 + (operation == UPDATE)
    assert left(call) == 0


def test_a_commit_takes_along_the_change_that_is_noted_while_it_waits(call: Call) -> None:
    key = begin_one(call)
    number = write(call, key)

    def change(session: Session) -> None:
        assert add_holds(session, key, COMPONENTS, 1)()
        components.insert(session, [(key, Intent("hive", "db", "t", "p=1", UPDATED, number))])

    beside(call, change, lambda: commit(call, key))
    assert {row[3] for row in judged_by(call)} == {None, "p=1"}
    assert len(completed(call, key)) == 2


@pytest.mark.parametrize("locks", [True, False])
@pytest.mark.parametrize("operation", [UPDATE, DELETE])
def test_of_two_that_changed_a_partition_found_while_writing_one_wins(call: Call, locks: bool, operation: int) -> None:
    """One of two such changes wins, with a lock on the whole table, and without any lock."""
    first, second, other = begin(call, 3)
    for key, partition in ((first, "p=1"), (second, "p=1"), (other, "p=2")):
        number = allocate(call, [key])[key]
        if locks:
            ask(call, component(WRITE, operation=operation, dynamic=True), transaction=key)
        write_ids.add_dynamic_partitions(
            call,
            AddDynamicPartitions(
                txnid=key, writeid=number, dbname="db", tablename="t", partitionnames=[partition], operationType=operation
            ),
        )
    commit(call, second)
    with pytest.raises(TransactionAborted, match="write conflict on db/t/p=1"):
        commit(call, first)
    commit(call, other)
    assert [row[3] for row in judged_by(call)] == ["p=1", "p=2"]
    letter = "u" if operation == UPDATE else "d"
    assert [completed(call, key) for key in (second, other)] == [[("t", "p=1", letter, 2)], [("t", "p=2", letter, 3)]]


@pytest.mark.parametrize("partition", ["p=1", "p=2"])
def test_a_change_that_turned_out_to_be_an_insert_is_one(call: Call, partition: str) -> None:
    first, second = begin_one(call), begin_one(call)
    write(call, first, partition="p=2")
    number = allocate(call, [second])[second]
    ask(call, component(WRITE, operation=UPDATE, dynamic=True), transaction=second)
    write_ids.add_dynamic_partitions(
        of_another(call),
        AddDynamicPartitions(txnid=second, writeid=number, dbname="db", tablename="t", partitionnames=[partition], operationType=INSERT),
    )
    assert intended(call, "operation", transaction_id=second) == [(INSERTED,)]
    commit(call, first)
    commit(call, second)
    assert [row[0] for row in judged_by(call)] == [first]
    assert completed(call, second) == [("t", partition, "i", number)]


def test_a_change_of_a_table_without_counter_makes_one(call: Call) -> None:
    key = begin_one(call)
    ask(call, component(WRITE, operation=UPDATE), transaction=key)
    commit(call, key)
    assert completed(call, key) == [("t", None, "u", None)]
    assert judged_by(call) == [(key, key, "t", None, "u")]
    assert rows(call, schema.write_id_counters, "table", "next") == [("t", 1)]


def test_others_are_not_judged_by_the_change_of_a_type_that_is_not(call: Call) -> None:
    key = begin_one(call, txn_type=TxnType.SOFT_DELETE)
    number = write(call, key)
    commit(call, key)
    assert judged_by(call) == []
    assert completed(call, key) == [("t", None, "u", number)]


def test_a_change_outside_of_tables_is_noted(call: Call) -> None:
    for _ in range(2):
        key = begin_one(call)
        ask(call, component(WRITE, None, operation=UPDATE), transaction=key)
        commit(call, key)
    assert [row[2] for row in judged_by(call)] == [None, None]


@pytest.mark.parametrize("knows", [True, False])
def test_other_rows_of_a_transaction_go_with_it(call: Call, knows: bool) -> None:
    key = begin_one(call)
    write(call, key)
    write_ids.add_to_history(call if knows else of_another(call), key, {"db.t": 1})
    commit(call, key)
    assert (rows(call, schema.min_history, "table"), left(call)) == ([], 0)
    assert len(judged_by(call)) == 1


@pytest.mark.parametrize("others", [0, 300])
def test_no_row_is_held_but_those_of_the_transaction_and_its_table(call: Call, others: int) -> None:
    """MariaDB would hold each row that it reads, so it has to use an index, however few rows there are."""
    if call.database.driver.name != "mysql":
        pytest.skip("MariaDB does so")
    key = begin_one(call)
    write(call, key)
    for number in range(others):
        write(call, begin_one(call), table=f"t{number % 50}")
    names = {"catalog": "hive", "database": "db", "table": "t", "partition": None, "operation": "u", "write_id": 1}
    names |= {"key": key, "transaction_id": key, "now": 0}

    def work(session: Session) -> list[tuple[Any, ...]]:
        session.cursor.execute("ANALYZE TABLE transaction_components, write_id_counters, counters")  # otherwise rows of earlier tests count
        session.cursor.fetchall()
        found = []
        for clause in (mysql_statements.COMPLETE[True], mysql_statements.CHANGE_PARTITION[True], mysql_statements.CHANGE_TABLE[True]):
            text, literals, _ = call.database.compiled[clause]
            session.cursor.execute(f"EXPLAIN {text.replace('row_count() = 1', '1 = 1')}", {**literals, **names})
            lines = session.cursor.fetchall()
            found += [(line[2], *(line[3:6:2] if len(line) == 10 else line[4:7:2])) for line in lines]  # MySQL shows the partitions too
        return found

    counted = [("write_id_counters", "range", "PRIMARY"), ("counters", "eq_ref", "PRIMARY")]
    plans = call.database.read(work)
    assert plans.pop(2)[0] == "transaction_components"  # only read, so its plan does not matter: an UPDATE locks no rows of other tables
    assert plans == [
        ("transaction_components", "range", "ix_transaction_components_transaction_id"),
        counted[0],
        counted[1],
        *counted,
    ]


@pytest.mark.parametrize("excludes", [True, False])
def test_a_client_with_exclusive_locks_is_not_judged(call: Call, excludes: bool) -> None:
    first, second = begin_one(call), begin_one(call)
    for key in (first, second):
        write(call, key)
    commit(call, first)
    third = begin_one(call)
    write(call, third)
    with nullcontext() if excludes else pytest.raises(TransactionAborted):
        commit(call, second, exclWriteEnabled=excludes)
    assert [row[0] for row in judged_by(call)] == [first, second][: 1 + excludes]
    assert len(completed(call, second)) == excludes
    with pytest.raises(TransactionAborted, match=f"committed by .txnid:{second},") if excludes else nullcontext():
        commit(call, third, exclWriteEnabled=False)
