"""Locks of transactions: they note the writes of their components, wait for other locks, and give up holders that timed out."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from metastore.errors import MetaError, NoSuchLock, NoSuchTransaction, TransactionAborted, TransactionOpen
from metastore.idl import DataOperationType, LockRequest, LockState, TxnType
from metastore.service.call.clock import now_ms
from metastore.service.call.context import Call
from metastore.service.transactions import house_keeping, locks
from metastore.store.core.database import Session
from metastore.store.drivers.contract import Row
from metastore.store.schema import model as schema
from metastore.store.transactions import locks as lock_rows
from metastore.store.transactions.locks import Held
from tests.support.acid.txns import (
    DELETE,
    EXCL_WRITE,
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
    component,
    rows,
)
from tests.support.catalog.catalog import MetastoreMaker, call_of

GRANTED, WAITING, REFUSED = LockState.ACQUIRED, LockState.WAITING, LockState.NOT_ACQUIRED
NO_TXN = DataOperationType.NO_TXN


def check(call: Call, key: int) -> int:
    return locks.check_lock(call, key).state


def test_a_lock_needs_its_transaction_to_be_open(call: Call) -> None:
    committed, aborted = begin(call, 2)
    commit(call, committed)
    abort(call, aborted)
    for key, error in ((committed, NoSuchTransaction), (aborted, TransactionAborted), (77, NoSuchTransaction)):
        with pytest.raises(error, match=f"txnid:{key}"):
            ask(call, component(READ), transaction=key)
    assert rows(call, schema.locks, "id") == []
    assert rows(call, schema.lock_components, "lock_id") == []


def test_locks_end_with_their_transaction_and_no_sooner(call: Call) -> None:
    for end in (commit, abort):
        key = begin_one(call)
        held, _ = ask(call, component(EXCLUSIVE), transaction=key)
        waiting, state = ask(call, component(EXCLUSIVE))
        assert state == WAITING
        with pytest.raises(TransactionOpen, match=f"lockid:{held}"):
            locks.unlock(call, held)
        end(call, key)
        with pytest.raises(NoSuchLock):
            locks.check_lock(call, held)
        assert check(call, waiting) == GRANTED
        locks.unlock(call, waiting)


def test_a_lock_of_a_transaction_that_still_waits_can_be_released(call: Call) -> None:
    ask(call, component(EXCLUSIVE), transaction=begin_one(call))
    waiting, state = ask(call, component(READ), transaction=begin_one(call))
    assert state == WAITING
    locks.unlock(call, waiting)
    with pytest.raises(NoSuchLock):
        check(call, waiting)


@pytest.mark.parametrize(
    ("kind", "table", "reads"),
    [
        (READ, "t", 1),
        (WRITE, "t", 1),
        (EXCL_WRITE, "t", 1),
        (EXCLUSIVE, "t", 51),
        (READ, None, 1),
        (EXCLUSIVE, "u", 0),
    ],
)
def test_a_lock_reads_of_others_only_those_that_it_may_wait_for(
    call: Call, kind: int, table: str | None, reads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(50):
        assert ask(call, component(READ, "t"))[1] == GRANTED
    exclusive, state = ask(call, component(EXCLUSIVE, "t"))
    assert state == WAITING
    read: list[int] = []
    real = lock_rows._held

    def noted(found: Sequence[Row]) -> list[Held]:
        read.append(len(found))
        return real(found)

    monkeypatch.setattr(lock_rows, "_held", noted)
    waiting, state = ask(call, component(kind, table))
    assert read == ([reads] if reads or call.database.driver.name == "sqlite" else [])  # the others add one that meets none without reading
    blocked = table == "t"
    assert state == (WAITING if blocked else GRANTED)
    if blocked:
        read.clear()
        assert check(call, waiting) == WAITING
        assert read == [1, reads]  # the lock itself, and the locks before it
        locks.unlock(call, exclusive)
        assert check(call, waiting) == (WAITING if kind == EXCLUSIVE else GRANTED)


@pytest.mark.parametrize(
    ("operation", "transactional", "noted"),
    [
        (INSERT, True, "i"),
        (UPDATE, True, "u"),
        (DELETE, None, "d"),
        (SELECT, True, None),
        (NO_TXN, True, None),
        (UPDATE, False, None),
        (None, True, "u"),
    ],
)
def test_the_operations_of_components_are_noted(call: Call, operation: int | None, transactional: bool | None, noted: str | None) -> None:
    key = begin_one(call)
    allocate(call, [key], "t")
    ask(call, component(WRITE, "T", "P=1", operation=operation, transactional=transactional), transaction=key)
    names = ("transaction_id", "catalog", "database", "table", "partition", "operation", "write_id")
    stored = rows(call, schema.transaction_components, *names)
    assert stored == ([] if noted is None else [(key, "hive", "db", "t", "p=1", noted, 1)])


def test_without_a_transaction_nothing_is_noted(call: Call) -> None:
    ask(call, component(WRITE, operation=UPDATE))
    assert rows(call, schema.transaction_components, "id") == []


def test_a_reader_that_will_not_wait_is_refused_but_its_other_components_wait(call: Call) -> None:
    ask(call, component(EXCLUSIVE), transaction=begin_one(call))
    key = begin_one(call)
    assert ask(call, component(READ), transaction=key, waits=False) == (0, REFUSED)
    assert rows(call, schema.locks, "id", transaction_id=key) == []
    assert ask(call, component(WRITE, operation=UPDATE), transaction=key, waits=False)[1] == WAITING
    assert ask(call, component(EXCL_WRITE), transaction=key, exclusiveCTAS=True) == (0, REFUSED)


def test_shared_writes_wait_for_each_other_only_for_clients_before_hive_4(call: Call) -> None:
    assert ask(call, component(WRITE), transaction=begin_one(call))[1] == GRANTED
    assert ask(call, component(WRITE), transaction=begin_one(call))[1] == GRANTED
    request = LockRequest(component=[component(WRITE)], txnid=begin_one(call), user="alice", hostname="here")
    old = locks.lock(call, request)
    assert (old.state, check(call, old.lockid)) == (WAITING, WAITING)
    shown = {each.lockid: each for each in locks.show_locks(call)}
    assert shown[old.lockid].blockedByExtId == min(shown)
    assert ask(call, component(EXCL_WRITE), transaction=begin_one(call))[1] == WAITING


def test_asking_again_grants_a_free_lock_and_beats_once_a_second(call: Call) -> None:
    first, second = begin(call, 2)
    ask(call, component(EXCL_WRITE), transaction=first)
    waiting, _ = ask(call, component(EXCL_WRITE), transaction=second)
    beats = rows(call, schema.transactions, "heartbeat_ms", id=second)
    assert check(call, waiting) == WAITING
    assert rows(call, schema.transactions, "heartbeat_ms", id=second) == beats
    while rows(call, schema.transactions, "heartbeat_ms", id=second) == beats:
        assert check(call, waiting) == WAITING
    (after,), (before,) = rows(call, schema.transactions, "heartbeat_ms", id=second)[0], beats[0]
    assert int(str(after)) - int(str(before)) >= 1000
    commit(call, first)
    assert check(call, waiting) == GRANTED
    assert rows(call, schema.locks, "state", id=waiting) == [("a",)]


def test_a_request_gives_up_holders_whose_transactions_timed_out(call: Call, make_metastore: MetastoreMaker) -> None:
    impatient = call_of(make_metastore(txn_timeout=0.05))
    dead, replicated = begin_one(call), begin_one(call, replPolicy="p", replSrcTxnIds=[1])
    ask(call, component(EXCLUSIVE, "t"), transaction=dead)
    ask(call, component(EXCLUSIVE, "u"), transaction=replicated)
    while house_keeping.late_holders(impatient.config, held := _held(call), now_ms()) != {(held[0].id, dead)}:
        pass
    assert ask(impatient, component(READ, "t"))[1] == GRANTED
    assert ask(impatient, component(READ, "u"))[1] == WAITING
    assert rows(call, schema.transactions, "id", "state") == [(dead, "a"), (replicated, "o")]


def _held(call: Call) -> list[Held]:
    return call.database.read(lock_rows.all_of)


def test_asking_again_gives_up_holders_that_timed_out_meanwhile(call: Call, make_metastore: MetastoreMaker) -> None:
    impatient = call_of(make_metastore(txn_timeout=0.05))
    dead = begin_one(call)
    ask(call, component(EXCLUSIVE), transaction=dead)
    plain, _ = ask(call, component(EXCLUSIVE, "u"))
    waiting, state = ask(call, component(READ), component(READ, "u"), transaction=begin_one(call))
    assert state == WAITING
    while check(impatient, waiting) != GRANTED:
        pass
    assert rows(call, schema.transactions, "state", id=dead) == [("a",)]
    assert rows(call, schema.locks, "id", id=plain) == []


def test_a_heartbeat_of_the_transaction_keeps_its_locks(call: Call, make_metastore: MetastoreMaker) -> None:
    """Heartbeats of a minute ago are too old. New ones are valid for a minute, so that a pause of the machine does not matter."""
    impatient = call_of(make_metastore(txn_timeout=60))
    key = begin_one(call)
    held, _ = ask(call, component(EXCLUSIVE), transaction=key)
    waiting, _ = ask(call, component(READ))

    def grow_old(session: Session) -> None:
        for table in ("transactions", "locks"):
            session.cursor.execute(f"UPDATE {table} SET heartbeat_ms = {now_ms() - 60_001}")

    for _ in range(2):
        call.database.write(grow_old)
        locks.heartbeat(call, held, key)
        locks.heartbeat(call, waiting, 0)
        assert check(impatient, waiting) == WAITING
        house_keeping.keep_house(impatient.metastore)
        assert rows(call, schema.transactions, "state", id=key) == [("o",)]
    call.database.write(grow_old)
    assert check(impatient, waiting) == GRANTED
    assert rows(call, schema.transactions, "state", id=key) == [("a",)]


def test_leavings_of_an_ended_transaction_hold_nobody_back(call: Call) -> None:
    key = begin_one(call)
    stale, _ = ask(call, component(EXCLUSIVE), transaction=key)
    call.database.write(lambda session: session.cursor.execute(f"UPDATE transactions SET state = 'c' WHERE id = {key}"))
    assert locks.show_locks(call) == []
    assert ask(call, component(EXCLUSIVE))[1] == GRANTED
    with pytest.raises(NoSuchLock):
        check(call, stale)
    assert house_keeping.expire_locks(call.metastore) == 1
    assert len(rows(call, schema.locks, "id")) == 1


def test_types_of_transactions_lock_alike(call: Call) -> None:
    for kind in (TxnType.READ_ONLY, TxnType.COMPACTION, TxnType.MATER_VIEW_REBUILD):
        assert ask(call, component(READ), transaction=begin_one(call, txn_type=kind))[1] == GRANTED


def test_an_incomplete_component_leaves_nothing(call: Call) -> None:
    key = begin_one(call)
    with pytest.raises(MetaError, match="needs dbname"):
        ask(call, component(READ), component(READ, database=None), transaction=key)  # type: ignore[arg-type]
    assert rows(call, schema.locks, "id") == []


@pytest.mark.parametrize("wanted", [READ, WRITE, EXCL_WRITE, EXCLUSIVE])
def test_a_transaction_goes_on_while_others_wait_for_it(call: Call, wanted: int) -> None:
    """Its next lock of any type is granted before older ones that wait for it. Else both would wait for each other until one gives up."""
    first, second, third = begin(call, 3)
    ask(call, component(EXCL_WRITE, operation=UPDATE), transaction=first)
    waiting, state = ask(call, component(EXCLUSIVE, operation=UPDATE), transaction=second)
    behind, state_behind = ask(call, component(READ), transaction=third)
    assert (state, state_behind) == (WAITING, WAITING)
    key, state = ask(call, component(wanted, operation=DELETE if wanted != READ else INSERT), transaction=first)
    assert (state, check(call, key)) == (GRANTED, GRANTED)
    assert [check(call, each) for each in (waiting, behind)] == [WAITING, WAITING]
    commit(call, first)
    assert [check(call, each) for each in (waiting, behind)] == [GRANTED, WAITING]


def test_a_transaction_that_waits_for_a_third_goes_on_before_those_who_wait_for_it(call: Call) -> None:
    first, second, reader = begin(call, 3)
    ask(call, component(EXCL_WRITE, operation=UPDATE), transaction=first)
    held, _ = ask(call, component(READ), transaction=reader)
    waiting, _ = ask(call, component(EXCL_WRITE, operation=UPDATE), transaction=second)
    key, state = ask(call, component(EXCLUSIVE, operation=UPDATE), transaction=first)
    assert state == WAITING
    assert locks.show_locks(call, transaction=first)[-1].blockedByExtId == held
    commit(call, reader)
    assert (check(call, waiting), check(call, key)) == (WAITING, GRANTED)
