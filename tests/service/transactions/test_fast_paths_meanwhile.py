"""Fast paths of the ends of transactions, of write ids and of locks, beside other sessions that change the same rows meanwhile."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event

import orjson
import pytest

from metastore.errors import MetaError
from metastore.idl import LockState, NotificationEventRequest
from metastore.listeners.notifications.packing import EVENTS
from metastore.rules.transactions.locks import WAITS_FOR
from metastore.rules.transactions.transactions import UPDATE as UPDATED
from metastore.rules.transactions.transactions import Intent
from metastore.service.call.clock import now_ms
from metastore.service.call.context import Call
from metastore.service.call.hints import MAX_TRANSACTIONS
from metastore.service.operations import notifications
from metastore.service.transactions import house_keeping, locks, transactions
from metastore.store.core.database import Database, Session
from metastore.store.drivers.contract import BrokenAtCommit
from metastore.store.schema import model as schema
from metastore.store.transactions import components
from metastore.store.transactions import locks as lock_rows
from metastore.store.transactions import transactions as transaction_rows
from metastore.store.transactions.locks import NewLock
from metastore.store.transactions.transactions import ABORTED, COMPONENTS, LOCKS, OPEN, add_holds
from tests.support.acid.changes import of_another
from tests.support.acid.txns import (
    EXCLUSIVE,
    INSERT,
    READ,
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
from tests.support.servers.waiting import beside, waited_for


def test_a_commit_includes_writes_noted_while_it_waits(call: Call) -> None:
    key = begin_one(call)
    number = write(call, key, INSERT)

    def change(session: Session) -> None:
        assert add_holds(session, key, COMPONENTS | LOCKS, 1)()
        components.insert(session, [(key, Intent("hive", "db", "t", "p=1", UPDATED, number))])

    beside(call, change, lambda: commit(call, key))
    done = completed(call, "partition", "operation", "write_id", transaction_id=key)
    assert sorted(done, key=str) == [("p=1", "u", number), (None, "i", number)]
    assert judged_by(call, "partition", "operation", transaction_id=key) == [("p=1", "u")]
    assert (intended(call, "id"), rows(call, schema.locks, "id")) == ([], [])


def test_a_commit_beside_a_heartbeat_commits(call: Call) -> None:
    key = begin_one(call)
    beside(call, lambda session: None if add_holds(session, key, 0, 1)() else pytest.fail("not open"), lambda: commit(call, key))
    assert transactions.get_open_transactions(call).open_txns == []


@pytest.mark.parametrize("apart", [1, 2])
def test_many_are_aborted_with_the_writes_that_one_notes_meanwhile(logged: Call, apart: int) -> None:
    keys = begin(logged, 3 * apart)[::apart]
    others = set(transactions.get_open_transactions(logged).open_txns) - set(keys)
    number = write(logged, keys[0], INSERT)
    allocate(logged, keys)
    ask(logged, component(READ), transaction=keys[2])
    last = notifications.current_id(logged)

    def change(session: Session) -> None:
        assert add_holds(session, keys[1], COMPONENTS, 1)()
        components.insert(session, [(keys[1], Intent("hive", "other", "t", None, UPDATED, number))])

    beside(logged, change, lambda: transactions.abort_transactions(logged, keys))
    _, found = logged.database.read(transaction_rows.shown)
    assert {each.id: each.state for each in found} == dict.fromkeys(keys, ABORTED) | dict.fromkeys(others, OPEN)
    events = notifications.get_next(logged, NotificationEventRequest(lastEvent=last))
    messages = [orjson.loads(each.message) for each in events]
    assert [(each["txnid"], each["dbsUpdated"]) for each in messages] == [(keys[0], ["db"]), (keys[1], ["other"]), (keys[2], [])]
    assert count(logged, [schema.locks]) == {"locks": 0}


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
    house_keeping.delete_ended(call.metastore)
    assert completed(call, "table", "operation", "write_id", transaction_id=key) == [("t", "i", 1)]


ALLOCATED = (schema.write_ids, schema.write_id_ranges)


def allocations(call: Call) -> list[tuple[list[int], list[int]]]:
    events = notifications.get_next(call, NotificationEventRequest(lastEvent=0))
    messages = [orjson.loads(each.message) for each in events if each.eventType == "ALLOC_WRITE_ID"]
    return [(each["txnIdList"], each["writeIdList"]) for each in messages]


def test_when_one_ends_meanwhile_none_gets_a_write_id(logged: Call) -> None:
    keys = begin(logged, 6)[::2]

    def change(session: Session) -> None:
        found = transaction_rows.lock(session, keys[1])()
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


def test_a_lock_meets_locks_added_while_it_waited_for_its_turn(call: Call) -> None:
    ask(call, component(READ, "other"))  # the database has its queue

    def change(session: Session) -> None:
        assert lock_rows.overlapping(session, [("hive", "db", "t", None, EXCLUSIVE)], [EXCLUSIVE]) == []
        lock = NewLock(0, "a", "bob", "there", None, now_ms(), now_ms(), 0)
        lock_rows.insert(session, lock, [("hive", "db", "t", None, EXCLUSIVE)], [])

    states: list[int] = []
    beside(call, change, lambda: states.append(ask(call, component(READ))[1]))
    assert states == [LockState.WAITING]


def test_an_abort_reports_the_databases_that_are_noted_while_it_waits(logged: Call) -> None:
    key = begin_one(logged)

    def change(session: Session) -> None:
        assert add_holds(session, key, COMPONENTS, 1)()
        components.insert(session, [(key, Intent("hive", "other", "t", None, UPDATED, None))])

    beside(logged, change, lambda: abort(logged, key))
    events = notifications.get_next(logged, NotificationEventRequest(lastEvent=1))
    assert [orjson.loads(each.message)["dbsUpdated"] for each in events] == [["other"]]


def test_a_commit_that_nobody_knows_of_is_looked_after(logged: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection breaks once after each commit. MariaDB's changes in one packet are requested once more, and done once."""
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


def test_a_lock_waits_for_turns_of_databases_that_had_no_lock_before(call: Call) -> None:
    for database in ("one", "other"):
        ask(call, component(READ, database=database))
    ask(call, component(READ, database="one"), component(READ, database="third"))
    assert sorted(rows(call, schema.lock_queues, "name")) == [("hive.one",), ("hive.other",), ("hive.third",)]


def test_equal_components_that_another_client_noted_are_all_completed(call: Call) -> None:
    other = of_another(call)
    key = begin_one(other)
    write(other, key, INSERT)
    ask(other, component(READ, operation=INSERT), transaction=key)
    commit(call, key)
    assert completed(call, "table", "operation", "write_id", transaction_id=key) == [("t", "i", 1)] * 2


def test_old_transactions_of_a_client_are_forgotten_and_looked_up(call: Call) -> None:
    old = begin_one(call)
    write(call, old, INSERT)
    for _ in range(3):
        begin(call, MAX_TRANSACTIONS // 2)
    assert len(call.client.hints) <= MAX_TRANSACTIONS
    commit(call, old)
    assert completed(call, "table", transaction_id=old) == [("t",)]
    assert (intended(call, "id"), rows(call, schema.locks, "id")) == ([], [])


def test_a_lock_waits_its_turn_in_a_queue_that_is_made_while_it_waits_in_another(call: Call, database_kind: str) -> None:
    if database_kind == "sqlite":
        return  # only one writes
    locks.unlock(call, ask(call, component(EXCLUSIVE, database="a"))[0])
    has_turn = Event()
    asked: list[Future[tuple[int, int]]] = []

    def ask_for_both() -> tuple[int, int]:
        return ask(call, component(EXCLUSIVE, database="a"), component(EXCLUSIVE, database="b"))

    def lock_in_turn(session: Session) -> int:
        part = ("hive", "b", "t", None, EXCLUSIVE)
        assert lock_rows.overlapping(session, [part], WAITS_FOR[EXCLUSIVE]) == []
        has_turn.set()
        while not (asked and (asked[0].done() or waited_for(session))):
            pass
        lock = NewLock(0, lock_rows.ACQUIRED, "u", "h", None, now_ms(), now_ms(), 0)
        return lock_rows.insert(session, lock, [part], []).key

    with ThreadPoolExecutor(2) as pool:

        def wait_in_a(session: Session) -> Future[int]:
            session.rows(lock_rows.QUEUES, names=["hive.a"])
            asked.append(pool.submit(ask_for_both))
            while not waited_for(session):
                assert not asked[0].done()
            locks.unlock(call, ask(call, component(EXCLUSIVE, "u", database="b"))[0])  # makes the queue
            holder = pool.submit(call.database.write, lock_in_turn)
            has_turn.wait(60)
            return holder

        holder = call.database.write(wait_in_a)
        held, (key, state) = holder.result(60), asked[0].result(60)
    assert state == LockState.WAITING
    locks.unlock(call, held)
    assert locks.check_lock(call, key).state == LockState.ACQUIRED
