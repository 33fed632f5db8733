"""Many clients and servers on one database: snapshot isolation, first committer wins, exclusive locks under kills.

Clients are processes. One calls a server process. Each other has a server of its own within it, at a third of the cost of the wire.
SCALE (environment METASTORE_TEST_SCALE) is the number of transactions, pairs and grants. Times are of one clock, the clients'.
"""

from __future__ import annotations

import logging
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from itertools import count, pairwise
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

from metastore.client import connect
from metastore.config import Config
from metastore.idl import (
    AbortTxnRequest,
    AbortTxnsRequest,
    AddDynamicPartitions,
    CheckLockRequest,
    CommitTxnRequest,
    Database,
    DataOperationType,
    FieldSchema,
    GetValidWriteIdsRequest,
    LockState,
    NoSuchLockException,
    NoSuchTxnException,
    SerDeInfo,
    StorageDescriptor,
    Table,
    TxnAbortedException,
    UnlockRequest,
)
from metastore.rules.transactions.snapshots import format_transactions, of_reply
from metastore.service.transactions.write_ids import MAX_EXCEPTIONS
from tests.races.clients import (
    CONTEXT,
    Within,
    allocate,
    die,
    exclusive,
    in_processes,
    note_update,
    open_many,
    open_one,
    wins,
)
from tests.races.histories import Txn, judge
from tests.support.servers.servers import Server, serving

log = logging.getLogger(__name__)
SCALE = int(os.environ.get("METASTORE_TEST_SCALE", "2000"))
CLIENTS = 8
HOT = 3
STAY = 150
"""The number of tables among which transactions choose at a time, and of transactions for which the tables are used."""
PAIRS = 25
"""The number of pairs of transactions that are open at a time in a process. Each pair changes a partition of its own."""
BURST = 5000
"""One in this number of transactions follows many aborted ones. They make snapshots large until the server forgets them."""

TIMEOUT = 4.0
BEAT = 1.0
"""Seconds without heartbeat after which a holder is given up, and the most seconds by which a heartbeat is older than its call."""
TICK = 0.5
POLL = 0.005
"""Seconds between two runs of the server's housekeeper, and between two checks of a waiting lock."""


class Servers:
    """A server process on a database, and the servers that clients of other processes have within them."""

    def __init__(self, url: str, home: Path, stack: ExitStack) -> None:
        self._stack = stack
        self._home = home
        self._address = home / "address"
        self._settings: dict[str, Any] = {"db": url, "warehouse": str(home / "warehouse"), "data_directory": str(home / "data")}
        self._server: Server | None = None

    def start(self, txn_timeout: float) -> None:
        """Start the server. It gives up holders without heartbeat, and forgets ended transactions, after `txn_timeout` seconds."""
        self._settings["txn_timeout"] = txn_timeout
        settings = {**self._settings, "txn_reaper_interval": TICK, "workers": 1, "log_level": "warning"}
        options = [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]
        self._server = self._stack.enter_context(serving(*options, home=self._home))
        self._address.with_suffix(".new").write_text(self._server.uri)
        self._address.with_suffix(".new").rename(self._address)

    def connect(self, place: int) -> Any:
        """Return the client of a process. The first process calls the server; the others have a server within them."""
        return connect(self._address.read_text()) if place == 0 else Within(Config(**self._settings))

    def kill(self) -> None:
        """Kill the server and its workers."""
        assert self._server is not None
        for each in (self._server.process.pid, *self._server.children()):
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        self._server.process.wait()


@pytest.fixture
def servers(database_url: str, tmp_path: Path) -> Iterator[Servers]:
    with ExitStack() as stack:
        yield Servers(database_url, tmp_path, stack)


def make_tables(client: Any, database: str, warehouse: Path) -> None:
    """Make a database with the transactional tables of a period. Transactions may write to the tables before they exist."""
    client.create_database(Database(name=database, locationUri=f"file://{warehouse}/{database}.db"))
    for place in range(HOT):
        sd = StorageDescriptor(
            cols=[FieldSchema(name="a", type="int")], inputFormat="in", outputFormat="out", serdeInfo=SerDeInfo(serializationLib="lib")
        )
        kind = {"transactional": "true", "transactional_properties": "insert_only"}
        client.create_table(Table(dbName=database, tableName=f"t{place}", sd=sd, tableType="MANAGED_TABLE", parameters=kind))


def transact(client: Any, random: Random, number: int) -> Txn:
    """Read two of the tables in use, and write to none, one or both of them."""
    asked = time.monotonic()
    txn = Txn(open_one(client), asked=asked)
    snapshot = of_reply(client.get_open_txns(), txn.id)
    txn.seen = time.monotonic()
    tables = random.sample([f"h{number // STAY}.t{place}" for place in range(HOT)], 2)
    request = GetValidWriteIdsRequest(fullTableNames=tables, validTxnList=format_transactions(snapshot))
    for each in client.get_valid_write_ids(request).tblValidWriteIds:
        txn.reads[each.fullTableName] = (each.writeIdHighWaterMark, frozenset(each.invalidWriteIds))
    for table in tables[: random.choice((0, 1, 1, 2))]:
        (txn.writes[table],) = allocate(client, [txn.id], table)
        note_update(client, txn.id, table)
    txn.ending = time.monotonic()
    if random.random() < 0.15:
        client.abort_txn(AbortTxnRequest(txnid=txn.id))
        txn.outcome = "aborted"
    else:
        txn.outcome = "committed" if wins(client, txn.id) else "lost"
    txn.ended = time.monotonic()
    return txn


@pytest.mark.slow
@pytest.mark.timeout(36000)
def test_appended_lists_show_snapshot_isolation(servers: Servers, tmp_path: Path) -> None:
    """Meanwhile databases are made and dropped, snapshots grow to thousands of ids, and the server forgets ids that no reader needs."""
    servers.start(txn_timeout=30.0)
    next_number, at = CONTEXT.Value("q", 0), CONTEXT.Array("q", CLIENTS)

    def take(place: int) -> int:
        with next_number.get_lock():
            at[place] = next_number.value
            next_number.value += 1
        return int(at[place])

    def client(place: int) -> list[Txn]:
        random, done = Random(place), []
        with servers.connect(place) as mine:
            while (number := take(place)) < SCALE:
                period, of_period = divmod(number, STAY)
                if of_period == 0:
                    make_tables(mine, f"h{period}", tmp_path / "warehouse")
                if of_period == STAY // 2 and period >= 2 and min(at[:]) >= (period - 1) * STAY:
                    mine.drop_database(f"h{period - 2}", True, True)
                if number % BURST == BURST // 5:
                    mine.abort_txns(AbortTxnsRequest(txn_ids=open_many(mine, MAX_EXCEPTIONS)))
                done.append(transact(mine, random, number))
            at[place] = SCALE
        return done

    began = time.monotonic()
    history = [each for part in in_processes(client, CLIENTS) for each in part]
    outcomes = Counter(each.outcome for each in history)
    log.info("%d transactions in %.0f s: %s", len(history), time.monotonic() - began, dict(outcomes))
    assert len(history) == SCALE
    assert set(outcomes) == {"committed", "lost", "aborted"}
    assert judge(history) == []


@pytest.mark.slow
@pytest.mark.timeout(36000)
def test_of_a_conflicting_pair_exactly_one_wins(servers: Servers) -> None:
    servers.start(txn_timeout=86400.0)

    def pairs(place: int) -> int:
        table, random, done = f"db.t{place}", Random(place), 0
        with servers.connect(place) as one, servers.connect(1) as other, ThreadPoolExecutor(1) as beside:
            while done < SCALE // CLIENTS:
                keys = open_many(one, 2 * PAIRS)
                allocate(one, keys, table)
                for turn in range(PAIRS):
                    pair = keys[2 * turn : 2 * turn + 2]
                    clients = [one, other] if random.random() < 0.5 else [other, one]
                    for mine, key in zip(clients, pair, strict=True):
                        mine.add_dynamic_partitions(
                            AddDynamicPartitions(
                                txnid=key,
                                dbname="db",
                                tablename=table.removeprefix("db."),
                                partitionnames=[f"p={turn}"],
                                operationType=DataOperationType.UPDATE,
                            )
                        )
                    second = beside.submit(wins, clients[1], pair[1])
                    won = [wins(clients[0], pair[0]), second.result()]
                    assert sorted(won) == [False, True], (table, pair, won)
                    done += 1
        return done

    began = time.monotonic()
    done = sum(in_processes(pairs, CLIENTS))
    log.info("%d pairs in %.0f s", done, time.monotonic() - began)
    assert done >= SCALE


class Held(NamedTuple):
    """A client's hold of a lock: the time when it saw the grant, the end of its right to the lock, and whether it died."""

    table: str
    start: float
    end: float
    died: bool


class Records:
    """The locks that processes held, killed processes included: one file with a line for each lock."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY)

    def add(self, held: Held) -> None:
        os.write(self._file, f"{held.table} {held.start!r} {held.end!r} {int(held.died)}\n".encode())

    def read(self) -> list[Held]:
        os.close(self._file)
        lines = (line.split() for line in self.path.read_text().splitlines())
        return [Held(table, float(start), float(end), died == "1") for table, start, end, died in lines]


def obtain(client: Any, key: int, table: str) -> tuple[int, float]:
    """Wait for an exclusive lock; return its id and the time just before the last contact."""
    contact = time.monotonic()
    lock, state = exclusive(client, key, table)
    while state == LockState.WAITING:
        time.sleep(POLL)
        contact = time.monotonic()
        state = client.check_lock(CheckLockRequest(lockid=lock)).state
    return lock, contact


def hold(client: Any, random: Random, records: Records, mortality: float) -> None:
    """Hold a lock for the length of a call, in half of the cases in a transaction. Die with it, with a probability of `mortality`."""
    key, table = open_one(client) if random.random() < 0.5 else 0, f"db.t{random.randrange(8)}"
    lock, contact = obtain(client, key, table)
    start, right = time.monotonic(), contact + TIMEOUT - BEAT
    if random.random() < mortality:
        records.add(Held(table, start, right, died=True))
        die()
    try:
        client.get_open_txns()
    finally:  # if the server dies now, the lock stays
        records.add(Held(table, start, min(time.monotonic(), right), died=False))
    if key:
        client.commit_txn(CommitTxnRequest(txnid=key))
    else:
        client.unlock(UnlockRequest(lockid=lock))


LOST = (OSError, TxnAbortedException, NoSuchTxnException, NoSuchLockException)
"""The errors of a client whose server is killed, or that was given up because it was slow."""


@pytest.mark.slow
@pytest.mark.timeout(36000)
def test_exclusive_locks_never_overlap_while_clients_and_servers_are_killed(servers: Servers, tmp_path: Path) -> None:
    """One in two thousand holders is killed, and a server up to four times. After that every table can be locked again."""
    servers.start(TIMEOUT)
    records, granted = Records(tmp_path / "held"), CONTEXT.Value("q", 0)

    def client(place: int, life: int) -> None:
        random = Random(1000 * life + place)
        while granted.value < SCALE:
            with suppress(*LOST), servers.connect(place) as mine:
                while granted.value < SCALE:
                    hold(mine, random, records, mortality=1 / 2000)
                    with granted.get_lock():
                        granted.value += 1

    def begin(place: int, life: int) -> BaseProcess:
        process = CONTEXT.Process(target=client, args=(place, life), daemon=True)
        process.start()
        return process

    began, killed, lives = time.monotonic(), 0, count(1)
    alive = {place: begin(place, 0) for place in range(CLIENTS)}
    while alive:
        wait([each.sentinel for each in alive.values()], timeout=0.05)
        if killed < 4 and granted.value > SCALE * (killed + 1) // 5:
            killed += 1
            servers.kill()
            servers.start(TIMEOUT)
        for place, process in list(alive.items()):
            code = process.exitcode
            if code == 0:
                del alive[place]
            elif code is not None:
                assert code == -signal.SIGKILL, "a client failed: see its trace in the output"
                alive[place] = begin(place, next(lives))
    ending = time.monotonic()
    with servers.connect(1) as last:
        for number in range(8):
            lock, _ = obtain(last, 0, f"db.t{number}")
            last.unlock(UnlockRequest(lockid=lock))
    held = records.read()
    log.info(
        "%d locks held in %.0f s, %d holders killed, a server %d times, all free after %.2f s",
        len(held),
        ending - began,
        sum(each.died for each in held),
        killed,
        time.monotonic() - ending,
    )
    assert len(held) >= SCALE
    assert killed
    for table in {each.table for each in held}:
        order = sorted((each for each in held if each.table == table), key=lambda each: each.start)
        assert [(one, other) for one, other in pairwise(order) if other.start < one.end] == []


@pytest.mark.slow
@pytest.mark.timeout(36000)
def test_locks_of_killed_holders_are_free_after_the_time_out(servers: Servers, tmp_path: Path) -> None:
    """A thousand processes die with a lock on a table each. Others wait for these locks: none gets one early, and all get theirs."""
    servers.start(TIMEOUT)
    number, batch = 1000, 50
    records = Records(tmp_path / "held")

    def holder(place: int) -> None:
        with servers.connect(place % 4) as mine:
            contact = None
            while contact is None:
                with suppress(TxnAbortedException):  # the machine paused the process for longer than the time-out
                    _, contact = obtain(mine, open_one(mine) if place % 3 else 0, f"db.d{place}")
            records.add(Held(f"db.d{place}", time.monotonic(), contact + TIMEOUT, died=True))
            die()

    def waiters(first: int) -> list[tuple[str, float]]:
        """Ask for all locks of a batch, in turn, until each is granted."""
        done = []
        with servers.connect(first // batch % 2) as mine:
            waiting = {place: exclusive(mine, 0, f"db.d{place}")[0] for place in range(first, first + batch)}
            while waiting:
                for place, lock in list(waiting.items()):
                    if mine.check_lock(CheckLockRequest(lockid=lock)).state == LockState.ACQUIRED:
                        done.append((f"db.d{place}", time.monotonic()))
                        mine.unlock(UnlockRequest(lockid=waiting.pop(place)))
        return done

    granted: dict[str, float] = {}
    for first in range(0, number, batch):
        dying = [CONTEXT.Process(target=holder, args=(place,)) for place in range(first, first + batch)]
        for process in dying:
            process.start()
        for process in dying:
            process.join()
            assert process.exitcode == -signal.SIGKILL
        granted.update(waiters(first))
    held = records.read()
    waited = [granted[each.table] - (each.end - TIMEOUT) for each in held]
    log.info("%d holders killed, free %.2f to %.2f s after their last call; the time-out is %.1f s and the tick %.1f s", len(held),
             min(waited), max(waited), TIMEOUT, TICK)  # fmt: skip
    assert len(granted) == len(held) == number
    assert [each for each in held if granted[each.table] < each.end] == []
