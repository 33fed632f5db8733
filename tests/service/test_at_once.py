"""What a transaction's end does beside others that change the same transaction, where one statement does all of it and where more do."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import orjson
import pytest

from metastore.errors import MetaError, TransactionAborted
from metastore.idl import LockState, NotificationEventRequest, TxnType
from metastore.listeners.notifications.packing import EVENTS
from metastore.rules.transactions import UPDATE as UPDATED
from metastore.rules.transactions import Intent
from metastore.service import house_keeping, notifications, transactions
from metastore.service.clock import now_ms
from metastore.service.context import MOST_WORKS, Call
from metastore.store import components, schema
from metastore.store import locks as lock_rows
from metastore.store import transactions as transaction_rows
from metastore.store.database import Database, Session
from metastore.store.drivers import FEW, BrokenAtCommit
from metastore.store.locks import NewLock
from metastore.store.transactions import ABORTED, COMPONENTS, LOCKS, OPEN, RANGES, hold
from tests.service.changes import of_another
from tests.service.waiting import beside
from tests.support.txns import (
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
    intended,
    judged_by,
    rows,
    write,
)

ALLOCATED = (schema.write_ids, schema.write_id_ranges)


def test_a_commit_takes_along_what_is_noted_while_it_waits(call: Call) -> None:
    key = begin_one(call)
    number = write(call, key, INSERT)

    def change(session: Session) -> None:
        assert hold(session, key, COMPONENTS | LOCKS, 1)
        components.insert(session, [(key, Intent("hive", "db", "t", "p=1", UPDATED, number))])

    beside(call, change, lambda: commit(call, key))
    done = completed(call, "partition", "operation", "write_id", transaction_id=key)
    assert sorted(done, key=str) == [("p=1", "u", number), (None, "i", number)]
    assert judged_by(call, "partition", "operation", transaction_id=key) == [("p=1", "u")]
    assert (intended(call, "id"), rows(call, schema.locks, "id")) == ([], [])


def test_a_commit_beside_a_heartbeat_commits(call: Call) -> None:
    key = begin_one(call)
    beside(call, lambda session: None if hold(session, key, 0, 1) else pytest.fail("not open"), lambda: commit(call, key))
    assert transactions.get_open_transactions(call).open_txns == []


@pytest.mark.parametrize("apart", [1, 2])
def test_many_are_aborted_with_what_one_of_them_notes_meanwhile(logged: Call, apart: int) -> None:
    keys = begin(logged, 3 * apart)[::apart]
    others = set(transactions.get_open_transactions(logged).open_txns) - set(keys)
    number = write(logged, keys[0], INSERT)
    allocate(logged, keys)
    ask(logged, component(READ), transaction=keys[2])
    last = notifications.current_id(logged)

    def change(session: Session) -> None:
        assert hold(session, keys[1], COMPONENTS, 1)
        components.insert(session, [(keys[1], Intent("hive", "other", "t", None, UPDATED, number))])

    beside(logged, change, lambda: transactions.abort_transactions(logged, keys))
    _, found = logged.database.read(transaction_rows.shown)
    assert {each.id: each.state for each in found} == dict.fromkeys(keys, ABORTED) | dict.fromkeys(others, OPEN)
    events = notifications.get_next(logged, NotificationEventRequest(lastEvent=last))
    told = [orjson.loads(each.message) for each in events]
    assert [(each["txnid"], each["dbsUpdated"]) for each in told] == [(keys[0], ["db"]), (keys[1], ["other"]), (keys[2], [])]
    assert count(logged, [schema.locks]) == {"locks": 0}


@pytest.mark.parametrize("kind", [TxnType.READ_ONLY, TxnType.COMPACTION])
def test_those_of_which_one_is_special_are_aborted_too(logged: Call, kind: int) -> None:
    keys = [*begin(logged, 2), *begin(logged, 1, txn_type=kind)]
    assert transactions.abort_transactions(logged, [keys[2], *keys, *keys]) == keys
    events = notifications.get_next(logged, NotificationEventRequest(lastEvent=0))
    told = [orjson.loads(each.message)["txnid"] for each in events if each.eventType == "ABORT_TXN"]
    assert told == (keys[:2] if kind == TxnType.READ_ONLY else keys)


@pytest.mark.parametrize("apart", [1, 2])
@pytest.mark.parametrize("size", [2, EVENTS, EVENTS + 1])
def test_many_are_aborted_once(logged: Call, size: int, apart: int) -> None:
    keys = begin(logged, size * apart)[::apart]
    ask(logged, component(READ), transaction=keys[1])
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda _: transactions.abort_transactions(logged, keys), range(2)))
    assert sorted(done) == [[], keys]
    assert count(logged, [schema.locks]) == {"locks": 0}
    events = notifications.get_next(logged, NotificationEventRequest(lastEvent=1))
    assert [orjson.loads(each.message)["txnid"] for each in events] == keys


def test_two_requests_for_the_first_write_id_get_one(call: Call) -> None:
    key = begin_one(call)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: allocate(call, [key])[key], range(4)))
    assert found == [1] * 4
    assert rows(call, schema.write_ids, "write_id", transaction_id=key) == [(1,)]
    assert allocate(call, begin(call, 1)).popitem()[1] == 2


def test_equal_components_are_all_completed(call: Call) -> None:
    key = begin_one(call)
    write(call, key, INSERT)
    ask(call, component(READ, operation=INSERT), transaction=key)
    commit(call, key)
    assert completed(call, "table", "operation", "write_id", transaction_id=key) == [("t", "i", 1)] * 2
    house_keeping.forget_ended(call.metastore)
    assert completed(call, "table", "operation", "write_id", transaction_id=key) == [("t", "i", 1)]


def test_what_only_the_statement_knows_stands_in_the_message(logged: Call) -> None:
    opened = begin(logged, 3)
    table = '"writeIdList":[-1]'  # a name that looks like the place of the write id
    allocate(logged, opened[:1], table)
    write(logged, opened[1], INSERT)
    commit(logged, opened[1])
    abort(logged, opened[2])
    reader = begin(logged, 1, txn_type=TxnType.READ_ONLY)[0]
    commit(logged, reader)
    events = notifications.get_next(logged, NotificationEventRequest(lastEvent=0))
    told = [(each.eventType, orjson.loads(each.message)) for each in events]
    wanted: list[tuple[str, dict[str, object]]] = [
        ("OPEN_TXN", {"txnIds": opened, "fromTxnId": opened[0], "toTxnId": opened[2]}),
        ("ALLOC_WRITE_ID", {"dbName": "db", "tableName": table.lower(), "txnIdList": opened[:1], "writeIdList": [1]}),
        ("ALLOC_WRITE_ID", {"dbName": "db", "tableName": "t", "txnIdList": opened[1:2], "writeIdList": [1]}),
        ("COMMIT_TXN", {"txnid": opened[1]}),
        ("ABORT_TXN", {"txnid": opened[2], "dbsUpdated": []}),
    ]
    assert [kind for kind, _ in told] == [kind for kind, _ in wanted]
    for (_, message), (_, part) in zip(told, wanted, strict=True):
        assert part.items() <= message.items()


def test_a_read_only_transaction_gets_no_write_id(call: Call) -> None:
    with pytest.raises(MetaError, match="read-only"):
        allocate(call, begin(call, 1, txn_type=TxnType.READ_ONLY))


def allocations(call: Call) -> list[tuple[list[int], list[int]]]:
    events = notifications.get_next(call, NotificationEventRequest(lastEvent=0))
    told = [orjson.loads(each.message) for each in events if each.eventType == "ALLOC_WRITE_ID"]
    return [(each["txnIdList"], each["writeIdList"]) for each in told]


@pytest.mark.parametrize("size", [1, 2, 12])
def test_many_get_write_ids_in_their_order(logged: Call, size: int) -> None:
    keys = begin(logged, size)
    other = allocate(logged, begin(logged, 1))
    numbers = allocate(logged, [*reversed(keys), *keys])
    assert numbers == {key: number for number, key in enumerate(keys, 2)}
    assert allocate(logged, keys) == numbers
    more = begin(logged, 1)
    assert allocate(logged, [keys[0], *more]) == {keys[0]: 2, more[0]: size + 2}
    assert allocations(logged) == [(list(other), [1]), (keys, list(numbers.values())), (more, [size + 2])]


@pytest.mark.parametrize("kind", ["aborted", "read-only", "unknown"])
def test_when_one_may_have_no_write_id_none_gets_one(logged: Call, kind: str) -> None:
    keys = begin(logged, 3)
    bad = {"aborted": keys[2], "unknown": keys[2] + 1000}.get(kind) or begin_one(logged, txn_type=TxnType.READ_ONLY)
    if kind == "aborted":
        abort(logged, bad)
    with pytest.raises(MetaError, match="not all input txns in open state"):
        allocate(logged, [*keys[:2], bad])
    assert allocations(logged) == []
    assert count(logged, ALLOCATED) == {"write_ids": 0, "write_id_ranges": 0}
    assert allocate(logged, keys[:2]) == {keys[0]: 1, keys[1]: 2}
    assert set(rows(logged, schema.transactions, "holds", id=keys[0])) == {(RANGES,)}


def test_when_one_ends_meanwhile_none_gets_a_write_id(logged: Call) -> None:
    keys = begin(logged, 6)[::2]

    def change(session: Session) -> None:
        found = transaction_rows.lock(session, keys[1])
        assert found is not None
        transactions.abort(logged, session, [found])

    def then() -> None:
        with pytest.raises(MetaError, match="not all input txns in open state"):
            allocate(logged, keys)

    beside(logged, change, then)
    assert allocations(logged) == []
    assert count(logged, ALLOCATED) == {"write_ids": 0, "write_id_ranges": 0}
    assert allocate(logged, [keys[0], keys[2]]) == {keys[0]: 1, keys[2]: 2}


def test_two_that_allocate_for_the_same_get_the_same(logged: Call) -> None:
    keys = begin(logged, 40)
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda _: allocate(logged, keys), range(4)))
    assert done == [{key: number for number, key in enumerate(keys, 1)}] * 4
    assert allocations(logged) == [(keys, list(range(1, 41)))]


def test_a_lock_meets_what_was_added_while_it_waited_for_its_turn(call: Call) -> None:
    ask(call, component(READ, "other"))  # the database has its queue

    def change(session: Session) -> None:
        assert lock_rows.meeting(session, [("hive", "db", "t", None, EXCLUSIVE)], [EXCLUSIVE]) == []
        lock = NewLock(0, "a", "bob", "there", None, now_ms(), now_ms(), 0)
        lock_rows.insert(session, lock, [("hive", "db", "t", None, EXCLUSIVE)], [])

    states: list[int] = []
    beside(call, change, lambda: states.append(ask(call, component(READ))[1]))
    assert states == [LockState.WAITING]


def test_an_abort_tells_what_is_noted_while_it_waits(logged: Call) -> None:
    key = begin_one(logged)

    def change(session: Session) -> None:
        assert hold(session, key, COMPONENTS, 1)
        components.insert(session, [(key, Intent("hive", "other", "t", None, UPDATED, None))])

    beside(logged, change, lambda: abort(logged, key))
    events = notifications.get_next(logged, NotificationEventRequest(lastEvent=1))
    assert [orjson.loads(each.message)["dbsUpdated"] for each in events] == [["other"]]


@pytest.mark.parametrize("operation", [SELECT, INSERT, UPDATE])
@pytest.mark.parametrize("opens", [True, False])
def test_one_client_ends_what_another_did(logged: Call, operation: int, opens: bool) -> None:
    """Whether it opened the transaction itself, and so believes to know it, or not."""
    other = of_another(logged)
    committed, aborted = (begin_one(logged if opens else other) for _ in range(2))
    for key in (committed, aborted):
        allocate(other, [key])
        ask(other, component(READ if operation == SELECT else WRITE, f"t{key}", operation=operation), transaction=key)
    commit(logged, committed)
    abort(logged, aborted)
    assert count(logged, [schema.locks]) == {"locks": 0}
    assert completed(logged, "transaction_id") == [(committed,)] * (operation != SELECT)
    assert judged_by(logged, "transaction_id") == [(committed,)] * (operation == UPDATE)
    assert intended(logged, "transaction_id") == [(aborted,)] * (operation != SELECT)  # left for the cleaner
    events = notifications.get_next(logged, NotificationEventRequest(lastEvent=4))
    told = [(each.eventType, orjson.loads(each.message)["txnid"]) for each in events]
    assert told == [("COMMIT_TXN", committed), ("ABORT_TXN", aborted)]


@pytest.mark.parametrize("kind", [TxnType.READ_ONLY, TxnType.COMPACTION, TxnType.SOFT_DELETE])
@pytest.mark.parametrize("end", [commit, abort])
def test_one_client_ends_what_another_opened_with_a_type(logged: Call, kind: int, end: Callable[[Call, int], None]) -> None:
    other = of_another(logged)
    [key] = begin(other, 1, txn_type=kind)
    ask(other, component(READ), transaction=key)
    end(logged, key)
    assert count(logged, [schema.locks]) == {"locks": 0}
    assert transactions.get_open_transactions(logged).open_txns == ([] if end is commit else [key])
    events = notifications.get_next(logged, NotificationEventRequest(lastEvent=0))
    assert [each.eventType for each in events] == (
        [] if kind == TxnType.READ_ONLY else ["OPEN_TXN", "COMMIT_TXN" if end is commit else "ABORT_TXN"]
    )


def test_a_commit_that_nobody_knows_of_is_looked_after(logged: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection breaks once after each commit: MariaDB's changes in one packet are asked for once more, and done once."""
    if logged.database.driver.name != "mysql":
        pytest.skip("the others know, or say that they do not")
    real = Database._commit
    broken: list[object] = []

    def commit_and_break(database: Database, cursor: object) -> None:
        real(database, cursor)
        if len(broken) % 2 == 0:
            broken.append(cursor)
            raise BrokenAtCommit("the connection to the database broke at commit")
        broken.append(cursor)

    keys = begin(logged, 2)
    monkeypatch.setattr(Database, "_commit", commit_and_break)
    assert allocate(logged, keys[:1]) == {keys[0]: 1}
    commit(logged, keys[0])
    abort(logged, keys[1])
    monkeypatch.undo()
    assert len(broken) == 6
    events = notifications.get_next(logged, NotificationEventRequest(lastEvent=1))
    assert [each.eventType for each in events] == ["ALLOC_WRITE_ID", "COMMIT_TXN", "ABORT_TXN"]


def test_what_a_client_did_long_ago_is_forgotten_and_looked_up(call: Call) -> None:
    old = begin_one(call)
    write(call, old, INSERT)
    for _ in range(3):
        begin(call, MOST_WORKS // 2)
    assert len(call.client.works) <= MOST_WORKS
    commit(call, old)
    assert completed(call, "table", transaction_id=old) == [("t",)]
    assert (intended(call, "id"), rows(call, schema.locks, "id")) == ([], [])


def test_a_lock_waits_for_turns_of_databases_that_had_no_lock_before(call: Call) -> None:
    for database in ("one", "other"):
        ask(call, component(READ, database=database))
    ask(call, component(READ, database="one"), component(READ, database="third"))
    assert sorted(rows(call, schema.lock_queues, "name")) == [("hive.one",), ("hive.other",), ("hive.third",)]


def test_a_lock_of_very_many_components_is_one_all_the_same(call: Call) -> None:
    key = begin_one(call)
    number = allocate(call, [key])[key]
    ask(call, *(component(READ, "t", f"p={part}", operation=INSERT) for part in range(FEW + 1)), transaction=key)
    assert count(call, [schema.locks, schema.lock_components]) == {"locks": 1, "lock_components": FEW + 1}
    assert rows(call, schema.transaction_components, "write_id", transaction_id=key) == [(number,)] * (FEW + 1)


@pytest.mark.parametrize("operation", [SELECT, INSERT])
def test_a_transaction_that_has_ended_locks_nothing(call: Call, operation: int) -> None:
    ask(call, component(READ))
    key = begin_one(call)
    abort(call, key)
    with pytest.raises(TransactionAborted):
        ask(call, component(READ, operation=operation), transaction=key)
    assert rows(call, schema.locks, "transaction_id") == [(0,)]
    assert count(call, [schema.transaction_components]) == {"transaction_components": 0}


def test_equal_components_that_another_client_noted_are_all_completed(call: Call) -> None:
    other = of_another(call)
    key = begin_one(other)
    write(other, key, INSERT)
    ask(other, component(READ, operation=INSERT), transaction=key)
    commit(call, key)
    assert completed(call, "table", "operation", "write_id", transaction_id=key) == [("t", "i", 1)] * 2


@pytest.mark.parametrize("kind", ["aborted", "read-only", "unknown"])
def test_when_one_of_a_range_may_have_no_write_id_none_gets_one(logged: Call, kind: str) -> None:
    """In a table that has a counter, and for consecutive transactions: then they would be a range."""
    allocate(logged, begin(logged, 1))
    keys = begin(logged, 3)
    wanted = [*keys, keys[-1] + 1] if kind != "aborted" else keys
    if kind == "aborted":
        abort(logged, keys[1])
    elif kind == "read-only":
        begin(logged, 2, txn_type=TxnType.READ_ONLY)
    with pytest.raises(MetaError, match="not all input txns in open state or read-only"):
        allocate(logged, wanted)
    assert len(allocations(logged)) == 1
    assert count(logged, ALLOCATED) == {"write_ids": 1, "write_id_ranges": 0}
    assert allocate(logged, keys[:1]) == {keys[0]: 2}


def test_one_that_was_opened_alone_is_in_no_range(call: Call) -> None:
    allocate(call, begin(call, 1))
    keys = [*begin(call, 2), *begin(call, 1)]
    assert allocate(call, keys) == dict(zip(keys, (2, 3, 4), strict=True))
    assert count(call, ALLOCATED) == {"write_ids": 4, "write_id_ranges": 0}
