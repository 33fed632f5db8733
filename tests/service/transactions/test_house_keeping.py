"""House keeping: it gives up and removes old transactions and locks, keeps rows that an open reader needs, and bounds their number."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

import pytest

from metastore.errors import NoSuchTransaction, TransactionAborted
from metastore.idl import LockState
from metastore.listeners.events import AbortTransactions
from metastore.service.call.clock import now_ms
from metastore.service.call.context import Call, Metastore
from metastore.service.transactions import house_keeping, locks, rebuilds, transactions
from metastore.store.catalog import dependents
from metastore.store.core.database import Session
from metastore.store.schema import model as schema
from metastore.store.transactions import house_keeping as row_functions
from metastore.store.transactions.write_ids import TableKey
from tests.support.acid.txns import (
    EXCLUSIVE,
    INSERT,
    READ,
    SELECT,
    UPDATE,
    WRITE,
    abort,
    allocate,
    ask,
    begin,
    begin_one,
    commit,
    completed,
    component,
    count,
    judged_by,
    rows,
    tick,
    valid,
    write,
)
from tests.support.catalog.catalog import MetastoreMaker, call_of
from tests.support.catalog.recording import Remembering, Within, listening

EVERYTHING = (
    schema.transactions,
    schema.transaction_components,
    schema.write_ids,
    schema.write_id_ranges,
    schema.min_history,
    schema.locks,
    schema.lock_components,
    schema.materialization_rebuilds,
    schema.replicated_transactions,
)


@pytest.fixture
def hasty(make_metastore: MetastoreMaker) -> Metastore:
    """A second server on the database that gives up and forgets after 1 ms."""
    return make_metastore(txn_timeout=0.001)


def ids(call: Call) -> list[int]:
    return [int(str(row[0])) for row in rows(call, schema.transactions, "id")]


def test_transactions_without_heartbeat_are_aborted_with_all_they_hold(call: Call, hasty: Metastore) -> None:
    keys = begin(call, 3)
    write(call, keys[0])
    replicated = begin_one(call, replPolicy="p", replSrcTxnIds=[7])
    tick()
    heard: list[object] = []
    after = Remembering()
    loud = listening(hasty, Within(lambda event, _: heard.append(event)), after)
    assert house_keeping.abort_timed_out(loud) == 3
    assert house_keeping.abort_timed_out(loud) == 0
    assert rows(call, schema.transactions, "id", "state") == [*((key, "a") for key in keys), (replicated, "o")]
    assert locks.show_locks(call) == []
    (aborted,) = heard
    assert isinstance(aborted, AbortTransactions)
    assert (aborted.transactions, aborted.databases) == (keys, {keys[0]: ["db"]})
    assert [event.transactions for event, _ in after.seen] == [keys]
    with pytest.raises(TransactionAborted):
        locks.heartbeat(call, 0, keys[0])


def test_replicated_transactions_have_a_time_out_of_their_own(call: Call, make_metastore: MetastoreMaker) -> None:
    begin_one(call, replPolicy="p", replSrcTxnIds=[7])
    ordinary = begin_one(call)
    tick()
    assert house_keeping.abort_timed_out(make_metastore(repl_txn_timeout=0.001)) == 1
    assert transactions.get_open_transactions(call).min_open_txn == ordinary


def test_a_heartbeat_that_comes_in_between_saves_a_transaction(call: Call, hasty: Metastore) -> None:
    late, saved = begin(call, 2)
    tick()
    call.database.write(
        lambda session: session.cursor.execute(f"UPDATE transactions SET heartbeat_ms = {now_ms() + 60_000} WHERE id = {saved}")
    )
    assert house_keeping.abort_late(hasty, [late, saved]) == [late]


def test_locks_without_heartbeat_go(call: Call, hasty: Metastore) -> None:
    ask(call, component(EXCLUSIVE))
    kept, _ = ask(call, component(EXCLUSIVE, "u"), transaction=begin_one(call))
    tick()
    assert house_keeping.expire_locks(hasty) == 1
    assert rows(call, schema.locks, "id") == [(kept,)]
    assert len(rows(call, schema.lock_components, "lock_id")) == 1


def test_ended_transactions_answer_for_a_while_and_are_then_forgotten(call: Call, hasty: Metastore) -> None:
    committed, aborted = begin(call, 2)
    write(call, committed)
    commit(call, committed)
    abort(call, aborted)
    house_keeping.delete_ended(call.metastore)
    commit(call, committed)
    with pytest.raises(TransactionAborted):
        commit(call, aborted)
    tick()
    house_keeping.delete_ended(hasty)
    assert ids(call) == []
    for key in (committed, aborted):
        with pytest.raises(NoSuchTransaction):
            commit(call, key)
    assert begin_one(call) == aborted + 1


def test_writes_that_an_open_reader_may_not_see_stay(call: Call, hasty: Metastore) -> None:
    """The reader began while the writer was open: to it the writer stays open, however long ago it committed."""
    early, writer = begin(call, 2)
    number = write(call, writer, INSERT)
    reader = begin_one(call)
    seen = f"{reader}:{early}:{early},{writer}:"
    commit(call, early)
    commit(call, writer)
    tick()
    assert number == 1
    assert valid(call, valid_transactions=seen) == (1, [1], set(), 1)
    house_keeping.delete_ended(hasty)
    assert valid(call, valid_transactions=seen) == (1, [1], set(), 1)
    assert writer in ids(call)
    commit(call, reader)
    tick()
    house_keeping.delete_ended(hasty)
    assert ids(call) == []
    assert rows(call, schema.write_ids, "write_id") == []
    assert valid(call) == (1, [], set(), None)


@pytest.mark.parametrize("ends", [commit, abort])
def test_later_writes_of_an_earlier_transaction_stay_seen(
    call: Call, hasty: Metastore, monkeypatch: pytest.MonkeyPatch, ends: Callable[[Call, int], object]
) -> None:
    """Write ids are not in the order of transactions. A removed write id counts as seen only if it is below all remaining ones."""
    monkeypatch.setattr(house_keeping, "BATCH", 1)
    first, early, later = begin(call, 3)
    assert [write(call, key, INSERT) for key in (first, later, early)] == [1, 2, 3]
    commit(call, first)
    commit(call, early)
    ends(call, later)
    tick()
    expected = (3, [], set(), None) if ends is commit else (3, [2], {2}, None)
    assert valid(call) == expected
    house_keeping.delete_ended(hasty)
    assert valid(call) == expected
    assert [row[0] for row in rows(call, schema.write_ids, "write_id")] == ([] if ends is commit else [3, 2])


def test_write_ids_of_a_table_that_is_made_again_meanwhile_stay(call: Call, hasty: Metastore, monkeypatch: pytest.MonkeyPatch) -> None:
    early = begin_one(call)
    write(call, early, INSERT)
    commit(call, early)
    tick()
    free = row_functions.free_write_ids
    later: list[int] = []

    def find(session: Session, low: int, most: int) -> list[tuple[TableKey, int]]:
        found = free(session, low, most)
        for key, _ in found:
            call.database.write(lambda session, key=key: dependents.delete_table(session, key))  # type: ignore[misc]  # bound now
            later.extend(begin(call, 1))
            assert allocate(call, later) == {later[0]: 1}
        return found

    monkeypatch.setattr(row_functions, "free_write_ids", find)
    house_keeping.delete_ended(hasty)
    assert rows(call, schema.write_ids, "transaction_id", "write_id") == [(later[0], 1)]


def test_an_aborted_transaction_stays_until_its_writes_are_cleaned(call: Call, hasty: Metastore) -> None:
    aborted, after = begin(call, 2)
    write(call, aborted, INSERT)
    write(call, after, INSERT)
    abort(call, aborted)
    commit(call, after)
    tick()
    house_keeping.delete_ended(hasty)
    assert ids(call)[0] == aborted
    assert valid(call) == (2, [1], {1}, None)
    call.database.write(lambda session: session.cursor.execute("DELETE FROM transaction_components"))
    house_keeping.delete_ended(hasty)
    house_keeping.delete_ended(hasty)
    assert ids(call) == []
    assert valid(call) == (2, [], set(), None)


def test_conflicts_are_judged_as_long_as_there_is_one_to_judge(call: Call, hasty: Metastore) -> None:
    first, second = begin(call, 2)
    write(call, first)
    write(call, second)
    commit(call, first)
    tick()
    house_keeping.delete_ended(hasty)
    with pytest.raises(TransactionAborted, match="write conflict"):
        commit(call, second)
    assert judged_by(call, "transaction_id") == [(first,)]  # it stays until a compaction


def test_completed_components_without_write_id_are_superseded_too(call: Call) -> None:
    for number in (None, None, 1, None):
        key = begin_one(call)
        if number:
            write(call, key)
        else:
            ask(call, component(WRITE, operation=UPDATE), transaction=key)
        commit(call, key)
    assert house_keeping.delete_ended(call.metastore)["completed components"] == 2
    assert completed(call, "transaction_id", "write_id") == [(3, 1), (4, None)]


def test_facts_for_judging_open_transactions_are_superseded_once_none_is_open(call: Call) -> None:
    keys = begin(call, 3)
    for key in keys:
        write(call, key, partition="p=1")
    commit(call, keys[0])
    commit(call, keys[1], exclWriteEnabled=True)
    assert house_keeping.delete_ended(call.metastore)["completed components"] == 0
    with pytest.raises(TransactionAborted, match=f"committed by .txnid:{keys[0]},"):
        commit(call, keys[2])
    assert house_keeping.delete_ended(call.metastore)["completed components"] == 1
    assert completed(call, "transaction_id") == [(keys[1],)]


def test_completed_components_are_kept_once_for_each_object_and_kind(call: Call) -> None:
    for operation, partition in ((INSERT, "p=1"), (INSERT, "p=1"), (UPDATE, "p=1"), (INSERT, None), (INSERT, None), (INSERT, "p=1")):
        key = begin_one(call)
        write(call, key, operation, partition=partition)
        commit(call, key)
    counts = house_keeping.delete_ended(call.metastore)
    assert counts["completed components"] == 3
    stored = completed(call, "partition", "operation", "write_id")
    assert sorted(stored, key=str) == sorted([("p=1", "u", 3), (None, "i", 5), ("p=1", "i", 6)], key=str)


def test_a_replicated_transaction_that_timed_out_is_known_until_it_is_forgotten(call: Call, make_metastore: MetastoreMaker) -> None:
    begin_one(call, replPolicy="p", replSrcTxnIds=[7])
    tick()
    impatient = make_metastore(txn_timeout=0.001, repl_txn_timeout=0.001)
    house_keeping.abort_timed_out(impatient)
    with pytest.raises(TransactionAborted):
        commit(call, 7, replPolicy="p")
    tick()
    house_keeping.delete_ended(impatient)
    assert rows(call, schema.replicated_transactions, "source_id") == []


def test_rebuilds_without_heartbeat_are_forgotten(call: Call, hasty: Metastore) -> None:
    rebuilds.lock_rebuild(call, "db", "v", begin_one(call))
    tick()
    assert house_keeping.delete_ended(hasty)["rebuilds"] == 1
    assert rebuilds.lock_rebuild(call, "db", "v", begin_one(call)).state == LockState.ACQUIRED


def test_house_is_kept_by_several_servers_at_once(call: Call, hasty: Metastore) -> None:
    for _ in range(3):
        key = begin_one(call)
        write(call, key)
        commit(call, key)
    begin(call, 3)
    tick()
    for metastore in (hasty, call.metastore, hasty):
        house_keeping.keep_house(metastore)
    assert transactions.get_open_transactions(call).open_txns == []


def load(call: Call, random: Random) -> Iterator[int]:
    """Run short transactions of every kind beside a reader that is renewed now and then. Yield the number of rows."""
    reader = begin_one(call)
    for turn in range(60):
        if turn % 10 == 9:
            commit(call, reader)
            reader = begin_one(call)
        opened = begin(call, 5)
        for key in opened:
            kind = random.randrange(5)
            table = f"t{random.randrange(2)}"
            if kind == 0:
                allocate(call, [key], table)
            elif kind < 3:
                write(call, key, random.choice((INSERT, UPDATE)), table, random.choice((None, "p=1")))
            elif kind == 3:
                ask(call, component(READ, table, operation=SELECT), transaction=key)
        for key in opened:
            try:
                commit(call, key, exclWriteEnabled=random.random() < 0.5)
            except TransactionAborted:
                # As a compaction does it: the components of an aborted transaction are removed.
                call.database.write(
                    lambda session, key=key: session.cursor.execute(  # type: ignore[misc]
                        f"DELETE FROM transaction_components WHERE transaction_id = {key}"
                    )
                )
        if turn % 10 == 9:
            tick()
            house_keeping.delete_ended(call.metastore)
            yield sum(count(call, EVERYTHING).values())
    commit(call, reader)


@pytest.mark.slow
def test_the_number_of_rows_levels_off(make_metastore: MetastoreMaker) -> None:
    metastore = make_metastore(txn_timeout=0.001)
    call = call_of(metastore)
    random = Random(7)
    sizes = [size for _ in range(8) for size in load(call, random)]
    assert max(sizes[len(sizes) // 4 :]) <= 120, sizes
