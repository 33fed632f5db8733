"""Transactions, write ids and locks under many clients of two servers, and at the size that a busy warehouse has.

SCALE (environment METASTORE_TEST_SCALE) is the number of open and of aborted transactions. The clients' work does not depend on it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from metastore.app import build, close
from metastore.config import Config
from metastore.errors import MetaError, NoSuchLock, NoSuchTransaction, TransactionAborted
from metastore.idl import LockState
from metastore.rules.transactions.snapshots import of_reply
from metastore.service.call.context import Call, Client, Metastore
from metastore.service.transactions import house_keeping, locks, transactions
from metastore.store.schema import model as schema
from tests.support.acid.txns import (
    EXCL_WRITE,
    EXCLUSIVE,
    INSERT,
    READ,
    SELECT,
    UPDATE,
    WRITE,
    abort,
    ask,
    begin,
    begin_one,
    commit,
    component,
    count,
    rows,
    valid,
    write,
)

SCALE = int(os.environ.get("METASTORE_TEST_SCALE", "100000"))
TURNS = 40
"""The number of transactions that each client of a race runs."""


@pytest.fixture
def servers(database_url: str, tmp_path: Path) -> Iterator[list[Metastore]]:
    """Two servers on one database."""
    config = Config(
        db=database_url,
        warehouse=str(tmp_path / "warehouse"),
        data_directory=str(tmp_path / "data"),
        txn_max_open=2 * SCALE,
        txn_max_open_batch=1000,
    )
    made = [build(config) for _ in range(2)]
    yield made
    for metastore in made:
        close(metastore)


def call_of(metastore: Metastore) -> Call:
    return Call(metastore, Client("127.0.0.1:1", user="alice"), "test")


def race(servers: list[Metastore], *clients: Callable[[Call, Random], object]) -> list[object]:
    """Run clients at once, on one server and the other in turn; return their results."""
    start = threading.Barrier(len(clients))

    def run(number: int) -> object:
        start.wait()
        return clients[number](call_of(servers[number % len(servers)]), Random(number))

    with ThreadPoolExecutor(len(clients)) as pool:
        return list(pool.map(run, range(len(clients))))


def test_of_two_that_change_one_object_exactly_one_wins(servers: list[Metastore]) -> None:
    call = call_of(servers[0])
    for turn in range(TURNS):
        pair = begin(call, 2)
        for key in pair:
            write(call, key, UPDATE, "t", "p=1")

        def end(call: Call, _: Random, key: int) -> bool:
            try:
                commit(call, key)
            except TransactionAborted:
                return False
            return True

        won = race(servers, *(lambda call, random, key=key: end(call, random, key) for key in pair))
        assert sorted(won, key=str) == [False, True], turn


def test_no_snapshot_misses_a_lower_id(servers: list[Metastore]) -> None:
    """A snapshot with an id as its mark accounts for every lower id: it is in the list of open ones, or committed and never open again."""
    ended: set[int] = set()
    guard = threading.Lock()
    running = threading.Event()
    running.set()

    def opening(call: Call, random: Random) -> None:
        for _ in range(TURNS):
            for key in begin(call, random.randrange(1, 4)):
                if random.random() < 0.7:
                    with guard:
                        ended.add(key)
                    commit(call, key)

    def watching(call: Call, _: Random) -> int:
        looked = 0
        while running.is_set():
            reply = transactions.get_open_transactions(call)
            with guard:
                known = set(ended)
            missing = set(range(1, reply.txn_high_water_mark + 1)) - set(reply.open_txns) - known
            assert not missing
            assert all(key <= reply.txn_high_water_mark for key in reply.open_txns)
            looked += 1
        return looked

    with ThreadPoolExecutor(2) as pool:
        watchers = [pool.submit(watching, call_of(server), Random(0)) for server in servers]
        race(servers, *[opening] * 4)
        running.clear()
        assert all(watcher.result() > 0 for watcher in watchers)


def test_a_committed_write_is_seen_by_all_who_begin_later_and_by_nobody_before(servers: list[Metastore]) -> None:
    def client(call: Call, random: Random) -> None:
        for _ in range(TURNS // 2):
            key = begin_one(call)
            number = write(call, key, INSERT, "t")
            before = of_reply(transactions.get_open_transactions(call))
            assert not before.is_valid(key)
            if random.random() < 0.3:
                abort(call, key)
                mark, unseen, aborted, _ = valid(call)
                assert number > mark or (number in unseen and number in aborted)
            else:
                commit(call, key)
                mark, unseen, _, _ = valid(call)
                assert number <= mark
                assert number not in unseen

    race(servers, *[client] * 6)


class Table:
    """The holders of each kind of lock. A conflict between granted locks is kept."""

    def __init__(self) -> None:
        self.guard = threading.Lock()
        self.held: list[tuple[int, str]] = []
        self.conflicts: list[tuple[tuple[int, str], tuple[int, str]]] = []

    def enter(self, kind: int, name: str) -> None:
        clash = {READ: {EXCLUSIVE}, WRITE: {EXCLUSIVE, EXCL_WRITE}, EXCL_WRITE: {WRITE, EXCL_WRITE, EXCLUSIVE}}
        with self.guard:
            self.conflicts += [
                (other, (kind, name))
                for other in self.held
                if other[1] == name and other[0] in clash.get(kind, {READ, WRITE, EXCL_WRITE, EXCLUSIVE})
            ]
            self.held.append((kind, name))

    def leave(self, kind: int, name: str) -> None:
        with self.guard:
            self.held.remove((kind, name))


def test_granted_locks_never_meet_while_others_are_killed(servers: list[Metastore]) -> None:
    table = Table()

    def client(call: Call, random: Random) -> int:
        granted = 0
        for _ in range(TURNS // 2):
            kind, name = random.choice((READ, WRITE, EXCL_WRITE, EXCLUSIVE)), random.choice("ab")
            key = begin_one(call)
            lock, state = ask(call, component(kind, name, operation=SELECT), transaction=key)
            if random.random() < 0.2:
                abort(call, key)  # killed while it waits, or as soon as it holds
                continue
            while state == LockState.WAITING:
                state = locks.check_lock(call, lock).state
            table.enter(kind, name)
            granted += 1
            table.leave(kind, name)
            commit(call, key)
        return granted

    assert sum(int(str(each)) for each in race(servers, *[client] * 8)) > 0
    assert table.conflicts == []
    assert count(call_of(servers[0]), [schema.locks, schema.lock_components]) == {"locks": 0, "lock_components": 0}


def test_everything_at_once_ends(servers: list[Metastore]) -> None:
    """Locks and writes of several tables in opposite orders, heartbeats, reapers and housekeepers: no deadlock stays."""
    keys: list[int] = []
    tables = [("a", "t"), ("b", "t"), ("a", "u"), ("b", "u")]

    def client(call: Call, random: Random) -> int:
        done = 0
        for _ in range(TURNS // 2):
            key = begin_one(call)
            keys.append(key)
            order = random.sample(tables, 3)
            try:
                for database, table in order:
                    write(call, key, random.choice((INSERT, UPDATE)), table, random.choice((None, "p=1")), database)
                ask(call, *(component(READ, table, database=database) for database, table in order), transaction=key)
                commit(call, key)
                done += 1
            except (TransactionAborted, NoSuchTransaction, MetaError):
                assert key not in transactions.get_open_transactions(call).open_txns or state(call, key) == "a"
        return done

    def state(call: Call, key: int) -> str:
        return str(rows(call, schema.transactions, "state", id=key)[0][0])

    def beating(call: Call, random: Random) -> int:
        for _ in range(TURNS):
            with suppress(NoSuchTransaction, TransactionAborted):
                locks.heartbeat(call, 0, random.choice(keys[-20:] or [1]))
            transactions.heartbeat_range(call, max(1, len(keys) - 20), len(keys) + 1)
        return 0

    def reaping(call: Call, random: Random) -> int:
        for _ in range(TURNS // 8):
            transactions.abort_transactions(call, random.sample(keys[-10:], min(2, len(keys[-10:]))))
            house_keeping.keep_house(call.metastore)
        return 0

    done = race(servers, *[client] * 6, beating, reaping, reaping)
    assert sum(int(str(each)) for each in done) > 0
    call = call_of(servers[0])
    assert transactions.get_open_transactions(call).min_open_txn is None
    assert count(call, [schema.locks]) == {"locks": 0}


@pytest.mark.slow
def test_a_hundred_thousand_open_and_aborted_transactions(servers: list[Metastore]) -> None:
    """Every list is complete, other calls are answered meanwhile, and all transactions can be given up."""
    call = call_of(servers[0])
    opened = [key for _ in range(SCALE // 1000) for key in begin(call, 1000)]
    aborted = [key for _ in range(SCALE // 1000) for key in begin(call, 1000)]
    assert transactions.abort_transactions(call, aborted) == aborted
    seen = of_reply(transactions.get_open_transactions(call))
    assert (len(seen.exceptions), len(seen.aborted), seen.min_open) == (2 * SCALE, SCALE, opened[0])
    assert seen.aborted == set(aborted)
    key = begin_one(call)
    assert write(call, key, UPDATE) == 1
    assert valid(call) == (1, [1], set(), 1)
    commit(call, key)
    assert valid(call)[0] == 1
    call.database.write(lambda session: session.cursor.execute("UPDATE transactions SET heartbeat_ms = 0"))
    house_keeping.keep_house(call.metastore)
    assert transactions.get_open_transactions(call).min_open_txn is None
    with pytest.raises(NoSuchLock):
        locks.check_lock(call, 10**9)
