import threading
from collections.abc import Sequence

import pytest

from metastore.errors import MetaError, NoSuchLock, NoSuchTransaction
from metastore.idl import LockComponent, LockLevel, LockRequest, LockState, LockType
from metastore.service.call import clock
from metastore.service.call.context import Call
from metastore.service.transactions import locks
from tests.support.acid.txns import begin, begin_one
from tests.support.catalog.catalog import MetastoreMaker, call_of
from tests.support.databases.statement_counts import StatementCounts

READ, WRITE, EXCLUSIVE = LockType.SHARED_READ, LockType.SHARED_WRITE, LockType.EXCLUSIVE
GRANTED, WAITING = LockState.ACQUIRED, LockState.WAITING


def component(kind: int, database: str, table: str | None = None, partition: str | None = None) -> LockComponent:
    level = LockLevel.DB if table is None else LockLevel.TABLE if partition is None else LockLevel.PARTITION
    return LockComponent(type=kind, level=level, dbname=database, tablename=table, partitionname=partition)


def ask(call: Call, *components: LockComponent, **options: object) -> tuple[int, int]:
    answer = locks.lock(call, LockRequest(component=list(components), user="alice", hostname="here", **options))
    return answer.lockid, answer.state


def check(call: Call, key: int) -> int:
    return locks.check_lock(call, key).state


def shown(call: Call, **filters: object) -> list[tuple[int, int]]:
    return [(each.lockid, each.state) for each in locks.show_locks(call, **filters)]  # type: ignore[arg-type]


def test_a_second_exclusive_lock_waits_for_the_first(call: Call) -> None:
    first, state = ask(call, component(EXCLUSIVE, "Default", "T"))
    assert state == GRANTED
    second, state = ask(call, component(EXCLUSIVE, "default", "t"))
    assert state == WAITING
    assert check(call, second) == WAITING
    assert check(call, first) == GRANTED
    locks.unlock(call, first)
    assert check(call, second) == GRANTED
    assert check(call, second) == GRANTED
    locks.unlock(call, second)
    locks.unlock(call, second)
    assert shown(call) == []


def test_locks_are_granted_in_the_order_they_were_asked_for(call: Call) -> None:
    reader, _ = ask(call, component(READ, "db", "t"))
    writer, state = ask(call, component(EXCLUSIVE, "db", "t"))
    assert state == WAITING
    late, state = ask(call, component(READ, "db", "t"))
    assert state == WAITING
    locks.unlock(call, reader)
    assert check(call, late) == WAITING
    assert check(call, writer) == GRANTED
    locks.unlock(call, writer)
    assert check(call, late) == GRANTED


def test_a_request_gets_all_of_its_components_or_none(call: Call) -> None:
    ask(call, component(EXCLUSIVE, "db2", "t"))
    _, state = ask(call, component(EXCLUSIVE, "db1", "t"), component(EXCLUSIVE, "db2", "t"))
    assert state == WAITING
    assert ask(call, component(EXCLUSIVE, "db1", "t"))[1] == WAITING
    assert ask(call, component(EXCLUSIVE, "db3", "t"))[1] == GRANTED


def test_a_client_that_will_not_wait_leaves_no_lock(call: Call) -> None:
    first, _ = ask(call, component(EXCLUSIVE, "db", "t"))
    answer = locks.lock(call, LockRequest(component=[component(READ, "db", "t")], user="u", hostname="h", zeroWaitReadEnabled=True))
    assert answer.state == LockState.NOT_ACQUIRED
    assert f"lock {first} on hive.db.t" in answer.errorMessage
    assert shown(call) == [(first, GRANTED)]


def test_locks_of_one_transaction_do_not_block_each_other(call: Call) -> None:
    mine, other = begin(call, 2)
    ask(call, component(EXCLUSIVE, "db", "t"), txnid=mine)
    assert ask(call, component(EXCLUSIVE, "db", "t"), txnid=mine)[1] == GRANTED
    assert ask(call, component(EXCLUSIVE, "db", "t"), txnid=other)[1] == WAITING
    assert ask(call, component(EXCLUSIVE, "db", "t"))[1] == WAITING


def test_unknown_locks_and_incomplete_requests_are_refused(call: Call) -> None:
    with pytest.raises(NoSuchLock, match="lockid:77"):
        locks.check_lock(call, 77)
    with pytest.raises(NoSuchLock, match="lockid:77"):
        locks.heartbeat(call, 77, 0)
    with pytest.raises(NoSuchTransaction, match="txnid:9"):
        locks.heartbeat(call, 0, 9)
    with pytest.raises(MetaError, match="at least one component"):
        ask(call)
    locks.unlock(call, 77)


def test_locks_are_shown_by_object_and_transaction(call: Call) -> None:
    transaction = begin_one(call)
    one, _ = ask(call, component(EXCLUSIVE, "db", "t"), agentInfo="tests")
    two, _ = ask(call, component(READ, "db", "t", "P=Q"), txnid=transaction)
    three, _ = ask(call, component(READ, "other", "t"))
    assert shown(call) == [(one, GRANTED), (two, WAITING), (three, GRANTED)]
    assert shown(call, database="DB") == [(one, GRANTED), (two, WAITING)]
    assert shown(call, database="db", table="t", partition="p=Q") == [(two, WAITING)]
    assert shown(call, transaction=transaction) == [(two, WAITING)]
    first, second = locks.show_locks(call, "db")
    assert (first.user, first.hostname, first.agentInfo, first.dbname, first.tablename) == ("alice", "here", "tests", "db", "t")
    assert first.acquiredat is not None
    assert (second.acquiredat, second.blockedByExtId, second.blockedByIntId, second.txnid) == (None, one, 1, transaction)


def test_a_lock_that_waits_says_since_when(call: Call) -> None:
    before = clock.now_ms()
    one, _ = ask(call, component(EXCLUSIVE, "db", "t"))
    two, _ = ask(call, component(READ, "db", "t"))
    waits = locks.waiting_since(call.database)
    assert list(waits) == [two]
    assert before <= waits[two] <= clock.now_ms()
    locks.unlock(call, one)
    locks.check_lock(call, two)
    assert locks.waiting_since(call.database) == {}
    (held,) = locks.show_locks(call)
    assert held.acquiredat >= waits[two]


def test_the_first_of_all_that_hold_a_lock_back_is_shown(call: Call) -> None:
    """A lock is held back by one on its table or on its database. A lock on a database is held back by one on any table in it, too."""
    on_table, _ = ask(call, component(EXCLUSIVE, "db", "t"))
    on_other, _ = ask(call, component(EXCLUSIVE, "db", "u"))
    ask(call, component(EXCLUSIVE, "elsewhere", "t"))
    whole, _ = ask(call, component(EXCLUSIVE, "db"))
    later, _ = ask(call, component(READ, "db", "t"), component(READ, "db", "v"))
    another, _ = ask(call, component(READ, "db", "u", "p=q"))
    blockers = {(each.lockid, each.lockIdInternal): (each.blockedByExtId, each.blockedByIntId) for each in locks.show_locks(call)}
    assert blockers[whole, 1] == (on_table, 1)
    assert (blockers[later, 1], blockers[later, 2]) == ((on_table, 1), (whole, 1))
    assert blockers[another, 1] == (on_other, 1)
    locks.unlock(call, on_table)
    blockers = {(each.lockid, each.lockIdInternal): (each.blockedByExtId, each.blockedByIntId) for each in locks.show_locks(call)}
    assert (blockers[whole, 1], blockers[later, 1]) == ((on_other, 1), (whole, 1))


def test_a_name_that_is_none_is_refused_whether_there_are_locks_or_not(call: Call) -> None:
    for _ in range(2):
        with pytest.raises(MetaError, match="@db is prefixed"):
            locks.show_locks(call, "@db")
        ask(call, component(READ, "db", "t"))


def test_a_server_that_saw_no_lock_shows_the_next_one(call: Call, make_metastore: MetastoreMaker) -> None:
    other = call_of(make_metastore())
    for _ in range(2):
        assert shown(other) == shown(other) == []
        held, _ = ask(call, component(READ, "db", "t"))
        assert shown(other) == shown(other) == [(held, GRANTED)]
        locks.unlock(call, held)


def test_a_lock_without_heartbeat_expires(call: Call, make_metastore: MetastoreMaker) -> None:
    impatient = call_of(make_metastore(txn_timeout=0.001))
    dead, _ = ask(call, component(EXCLUSIVE, "db", "t"), component(EXCLUSIVE, "db", "u"))
    waiting, _ = ask(call, component(EXCLUSIVE, "db", "t"))
    while shown(impatient):
        pass
    assert len(shown(call)) == 3
    fresh, state = ask(impatient, component(EXCLUSIVE, "db", "t"))
    assert state == GRANTED
    for gone in (dead, waiting):
        with pytest.raises(NoSuchLock):
            locks.check_lock(call, gone)
        with pytest.raises(NoSuchLock):
            locks.heartbeat(call, gone, 0)
    assert shown(call) == [(fresh, GRANTED)]


def test_a_heartbeat_keeps_a_lock(call: Call) -> None:
    key, _ = ask(call, component(EXCLUSIVE, "db", "t"))
    before = locks.show_locks(call)[0].lastheartbeat
    while locks.show_locks(call)[0].lastheartbeat == before:
        locks.heartbeat(call, key, 0)
    assert check(call, key) == GRANTED


@pytest.mark.parametrize("number", [1, 5])
def test_statements_do_not_grow_with_the_queue(call: Call, counts: StatementCounts, number: int) -> None:
    first, _ = ask(call, component(EXCLUSIVE, "db", "t"))
    waiting = [ask(call, component(EXCLUSIVE, "db", "t"))[0] for _ in range(number)]
    key, _ = counts("lock", lambda: ask(call, component(EXCLUSIVE, "db", "t"), component(READ, "db", "u")))
    counts("check one that waits", lambda: check(call, waiting[-1]))  # reads itself, and the locks before it
    counts("check one that is held", lambda: check(call, first))
    counts("unlock", lambda: locks.unlock(call, key))
    counts("heartbeat", lambda: locks.heartbeat(call, waiting[0], 0))


class Holders:
    """Counts the holders of each table, and keeps each table that two hold exclusively at once: the test then fails."""

    def __init__(self) -> None:
        self.guard = threading.Lock()
        self.now: dict[str, int] = {}
        self.overlaps: list[str] = []
        self.granted = 0

    def enter(self, tables: Sequence[str]) -> None:
        with self.guard:
            self.granted += 1
            for table in tables:
                self.now[table] = self.now.get(table, 0) + 1
                if self.now[table] > 1:
                    self.overlaps.append(table)

    def leave(self, tables: Sequence[str]) -> None:
        with self.guard:
            for table in tables:
                self.now[table] -= 1


def test_exclusive_holders_never_overlap_on_two_servers(call: Call, make_metastore: MetastoreMaker) -> None:
    servers = [call.metastore, make_metastore()]
    holders = Holders()
    errors: list[BaseException] = []
    start = threading.Barrier(8)

    def client(number: int) -> None:
        mine = call_of(servers[number % 2])
        tables = [["a.t"], ["b.t"], ["a.t", "b.t"], ["b.t", "a.t"]][number % 4]
        try:
            start.wait()
            for _ in range(5):
                key, state = ask(mine, *(component(EXCLUSIVE, *table.split(".")) for table in tables))
                while state == WAITING:
                    state = check(mine, key)
                assert state == GRANTED
                holders.enter(tables)
                locks.heartbeat(mine, key, 0)
                holders.leave(tables)
                locks.unlock(mine, key)
        except BaseException as error:  # noqa: BLE001  # reported by the main thread
            errors.append(error)

    threads = [threading.Thread(target=client, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert holders.overlaps == []
    assert holders.granted == 40
    assert shown(call) == []


def test_a_table_of_shown_locks_may_be_given_with_its_database(call: Call) -> None:
    held, _ = ask(call, component(READ, "db", "t"))
    ask(call, component(READ, "db", "u"))
    assert [each.lockid for each in locks.show_locks(call, table="DB.t")] == [held]
    assert [each.lockid for each in locks.show_locks(call, "default", "db.t")] == [held]
    assert [each.lockid for each in locks.show_locks(call, "db", "hive.db.t")] == [held]
    assert locks.show_locks(call, table="other.t") == []
