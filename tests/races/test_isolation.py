"""Histories of clients of two server processes, judged afterwards: snapshot isolation, first committer wins, exclusive locks under kills.

SCALE (environment METASTORE_TEST_SCALE) is how many transactions a history has. A table is a list: a transaction appends by writing under
its write id, and reads what the write ids that its snapshot sees have appended. Times are of one clock, that of the clients.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from itertools import count, pairwise
from pathlib import Path
from random import Random

import pytest

from metastore.client import Client, connect
from metastore.idl import (
    AbortTxnRequest,
    AbortTxnsRequest,
    AllocateTableWriteIdsRequest,
    CheckLockRequest,
    CommitTxnRequest,
    DataOperationType,
    GetValidWriteIdsRequest,
    LockComponent,
    LockLevel,
    LockRequest,
    LockState,
    LockType,
    NoSuchLockException,
    NoSuchTxnException,
    OpenTxnRequest,
    TxnAbortedException,
)
from metastore.rules.snapshots import format_transactions, of_reply
from metastore.service.write_ids import MOST_EXCEPTIONS
from tests.servers import Server, serving

log = logging.getLogger(__name__)
SCALE = int(os.environ.get("METASTORE_TEST_SCALE", "2000"))
CLIENTS = 8
HOT = 3
"""Tables that transactions choose from at a time, and for how many transactions they stay."""
STAY = 150

TIMEOUT = 4.0
BEAT = 1.0
"""Seconds without heartbeat after which a holder is given up, and by which a heartbeat may be older than the call that made it."""


@dataclass
class Txn:
    """What a client knows of a transaction: for each table the mark and the unseen ids of what it read, and its write ids."""

    id: int
    asked: float = 0.0
    seen: float = 0.0
    ending: float = 0.0
    ended: float = 0.0
    outcome: str = "open"
    reads: dict[str, tuple[int, frozenset[int]]] = field(default_factory=dict)
    writes: dict[str, int] = field(default_factory=dict)

    def sees(self, table: str, other: Txn) -> bool:
        mark, unseen = self.reads[table]
        return other.writes[table] <= mark and other.writes[table] not in unseen


def judge(history: list[Txn]) -> list[str]:
    """Return the anomalies of a history, each with its name and the transactions that show it."""
    found: list[str] = []
    writers: dict[str, list[Txn]] = defaultdict(list)
    for each in history:
        for table in each.writes:
            writers[table].append(each)
    visible: dict[int, list[Txn]] = {}
    for reader in history:
        others = {other.id: other for table in reader.reads for other in writers[table] if other is not reader}
        seen: dict[int, Txn] = {}
        for other in others.values():
            shared = [table for table in reader.reads if table in other.writes]
            sees = [reader.sees(table, other) for table in shared]
            if any(sees):
                seen[other.id] = other
                if other.outcome != "committed":
                    found.append(f"G1a: {reader.id} reads of {other.id}, which is {other.outcome}")
                elif other.ending >= reader.seen:
                    found.append(f"G1c: {reader.id} reads of {other.id} before that commits")
                if not all(sees):
                    found.append(f"G1b: {reader.id} reads a part of {other.id}")
            elif other.outcome == "committed" and other.ended < reader.asked:
                found.append(f"stale: {reader.id} does not read of {other.id}, which was committed before")
        visible[reader.id] = list(seen.values())
    versions: dict[str, list[Txn]] = {}
    for table, all_writers in writers.items():
        committed = [each for each in all_writers if each.outcome == "committed"]
        order = sorted(committed, key=lambda each: sum(each.sees(table, other) for other in committed if other is not each))
        versions[table] = order
        for place, each in enumerate(order):
            wrong = [other.id for number, other in enumerate(order) if other is not each and each.sees(table, other) != (number < place)]
            if wrong:
                found.append(f"G0, lost update: {each.id} and {wrong} both changed {table}")
    for reader in history:
        for table in reader.reads:
            following = next((each for each in versions.get(table, ()) if each is not reader and not reader.sees(table, each)), None)
            if following is not None and _leads(following, reader, visible):
                found.append(f"G-single: {reader.id} overlooks {following.id} in {table} and depends on it")
    return found


def _leads(first: Txn, last: Txn, visible: dict[int, list[Txn]]) -> bool:
    """Tell whether reads lead from one to the other. Along them the times of the commits ascend, so nothing older needs a look."""
    looked, todo = {last.id}, [last]
    while todo:
        for each in visible[todo.pop().id]:
            if each is first:
                return True
            if each.ending >= first.ending and each.id not in looked:
                looked.add(each.id)
                todo.append(each)
    return False


def read(mark: int, *unseen: int) -> tuple[int, frozenset[int]]:
    return mark, frozenset(unseen)


def ended(id_: int, at: float, outcome: str = "committed", **parts: object) -> Txn:
    return Txn(id_, asked=at, seen=at + 1, ending=at + 2, ended=at + 3, outcome=outcome, **parts)  # type: ignore[arg-type]


@pytest.mark.parametrize(("anomaly", "history"), [
    ("G1a", [ended(1, 0, "aborted", writes={"a": 1}, reads={"a": read(0)}), ended(2, 10, reads={"a": read(1)})]),
    ("G1b", [ended(1, 0, writes={"a": 1, "b": 1}, reads={"a": read(0), "b": read(0)}), ended(2, 1, reads={"a": read(1), "b": read(0)})]),
    ("G1c", [ended(1, 0, writes={"a": 1}, reads={"a": read(0)}), ended(2, 0, reads={"a": read(1)})]),
    ("stale", [ended(1, 0, writes={"a": 1}, reads={"a": read(0)}), ended(2, 10, reads={"a": read(0)})]),
    ("G0", [ended(1, 0, writes={"a": 1}, reads={"a": read(0)}), ended(2, 0, writes={"a": 2}, reads={"a": read(0)})]),
    ("G-single", [
        ended(1, 0, writes={"a": 1, "b": 1}, reads={"a": read(0), "b": read(0)}),
        ended(2, 10, writes={"c": 1}, reads={"b": read(1), "c": read(0)}),
        ended(3, 2, reads={"a": read(0), "c": read(1)}),
    ]),
])
def test_the_judge_finds(anomaly: str, history: list[Txn]) -> None:
    assert any(each.startswith(anomaly) for each in judge(history))


def test_the_judge_finds_nothing_in_a_good_history() -> None:
    first = ended(1, 0, writes={"a": 1}, reads={"a": read(0)})
    lost = ended(2, 1, "aborted", writes={"a": 2}, reads={"a": read(0)})
    assert judge([first, lost, ended(3, 10, writes={"a": 3}, reads={"a": read(2, 2)}), ended(4, 20, reads={"a": read(3, 2)})]) == []


Start = Callable[..., Server]


@pytest.fixture
def start(database_url: str, tmp_path: Path) -> Iterator[Start]:
    """Start a server process on the database; it forgets no aborted transaction, or gives up holders after TIMEOUT."""
    with ExitStack() as stack:
        def one(txn_timeout: float = 86400.0) -> Server:
            settings = {
                "warehouse": str(tmp_path / "warehouse"), "data_directory": str(tmp_path / "data"), "txn_timeout": str(txn_timeout),
                "txn_reaper_interval": "0.5", "workers": "1", "log_level": "warning",
            }
            options = [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]
            return stack.enter_context(serving("--db", database_url, *options, home=tmp_path))

        yield one


def open_many(client: Client, number: int) -> list[int]:
    return list(client.open_txns(OpenTxnRequest(num_txns=number, user="alice", hostname="here")).txn_ids)


def open_one(client: Client) -> int:
    return open_many(client, 1)[0]


def ask(client: Client, key: int, table: str, kind: int, operation: int) -> tuple[int, int]:
    component = LockComponent(
        type=kind, level=LockLevel.TABLE, dbname="db", tablename=table, operationType=operation, isTransactional=True
    )
    answer = client.lock(LockRequest(component=[component], txnid=key, user="alice", hostname="here", zeroWaitReadEnabled=False))
    return answer.lockid, answer.state


def append(client: Client, key: int, table: str) -> int:
    (given,) = client.allocate_table_write_ids(
        AllocateTableWriteIdsRequest(dbName="db", tableName=table, txnIds=[key])
    ).txnToWriteIds
    assert ask(client, key, table, LockType.SHARED_WRITE, DataOperationType.UPDATE)[1] == LockState.ACQUIRED
    return int(given.writeId)


def wins(client: Client, key: int) -> bool:
    """Commit; tell whether it was not aborted for a conflict."""
    try:
        client.commit_txn(CommitTxnRequest(txnid=key))
    except TxnAbortedException as error:
        assert "write conflict" in error.message  # noqa: PT017  # anything else passes on
        return False
    return True


def transact(client: Client, random: Random, number: int) -> Txn:
    """Read two tables of those that are in use and write to one or both, or only read."""
    asked = time.monotonic()
    told = Txn(open_one(client), asked=asked)
    snapshot = of_reply(client.get_open_txns(), told.id)
    told.seen = time.monotonic()
    tables = random.sample([f"t{number // STAY}_{place}" for place in range(HOT)], 2)
    request = GetValidWriteIdsRequest(fullTableNames=[f"db.{table}" for table in tables], validTxnList=format_transactions(snapshot))
    for each in client.get_valid_write_ids(request).tblValidWriteIds:
        told.reads[each.fullTableName.removeprefix("db.")] = (each.writeIdHighWaterMark, frozenset(each.invalidWriteIds))
    for table in tables[:random.choice((0, 1, 1, 2))]:
        told.writes[table] = append(client, told.id, table)
    told.ending = time.monotonic()
    if random.random() < 0.15:
        client.abort_txn(AbortTxnRequest(txnid=told.id))
        told.outcome = "aborted"
    else:
        told.outcome = "committed" if wins(client, told.id) else "lost"
    told.ended = time.monotonic()
    return told


@pytest.mark.slow
@pytest.mark.timeout(36000)
def test_appended_lists_show_snapshot_isolation(start: Start) -> None:
    uris = [start().uri for _ in range(2)]
    numbers = count()

    def client(place: int) -> list[Txn]:
        random, done = Random(place), []
        with connect(uris[place % 2]) as mine:
            while (number := next(numbers)) < SCALE:
                if number == SCALE // 2:  # from here on snapshots are large
                    mine.abort_txns(AbortTxnsRequest(txn_ids=open_many(mine, MOST_EXCEPTIONS)))
                done.append(transact(mine, random, number))
        return done

    with ThreadPoolExecutor(CLIENTS) as pool:
        history = [each for part in pool.map(client, range(CLIENTS)) for each in part]
    outcomes = {name: sum(each.outcome == name for each in history) for name in ("committed", "lost", "aborted")}
    log.info("%d transactions: %s", len(history), outcomes)
    assert len(history) == SCALE
    assert all(outcomes.values())
    assert judge(history) == []


@pytest.mark.slow
@pytest.mark.timeout(36000)
def test_of_a_conflicting_pair_exactly_one_wins(start: Start) -> None:
    with connect(start().uri) as one, connect(start().uri) as other, ThreadPoolExecutor(2) as pool:
        for turn in range(SCALE // 10):
            keys = [open_one(one), open_one(other)]
            for client, key in zip((one, other), keys, strict=True):
                append(client, key, f"t{turn % 5}")
            together = threading.Barrier(2)

            def end(client: Client, key: int, together: threading.Barrier = together) -> bool:
                together.wait()
                return wins(client, key)

            won = list(pool.map(end, (one, other), keys))
            assert sorted(won) == [False, True], (turn, keys)


@dataclass(frozen=True)
class Held:
    """When a client knew that it had a lock, and until when it had a right to it."""

    table: str
    start: float
    end: float


def kill(server: Server) -> None:
    """Kill a server and its workers."""
    pid = server.process.pid
    workers = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    for each in (pid, *map(int, workers)):
        with suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)
    server.process.wait()


@pytest.mark.slow
@pytest.mark.timeout(36000)
def test_exclusive_locks_never_overlap_while_clients_and_servers_are_killed(start: Start) -> None:
    """One in a hundred clients dies with its lock, a server in the middle; after that every table can be had again."""
    servers = [start(TIMEOUT), start(TIMEOUT)]
    numbers, turns = count(), max(SCALE // 4, 100)
    held: list[Held] = []
    dead: list[str] = []
    up = threading.Event()
    up.set()

    def hold(client: Client, random: Random) -> None:
        key, table = open_one(client), f"t{random.randrange(4)}"
        contact = time.monotonic()
        lock, state = ask(client, key, table, LockType.EXCLUSIVE, DataOperationType.NO_TXN)
        while state == LockState.WAITING:
            contact = time.monotonic()
            state = client.check_lock(CheckLockRequest(lockid=lock)).state
        start, right = time.monotonic(), contact + TIMEOUT - BEAT
        try:
            if random.random() < 0.01:
                dead.append(table)
                held.append(Held(table, start, right))
                return
            client.get_open_txns()  # holds it for a while
            held.append(Held(table, start, min(time.monotonic(), right)))
            client.commit_txn(CommitTxnRequest(txnid=key))
        except OSError:
            dead.append(table)
            raise

    def client(place: int) -> None:
        random = Random(place)
        while (number := next(numbers)) < turns:
            if number == turns // 2:
                up.clear()
                kill(servers[1])
                servers[1] = start(TIMEOUT)
                up.set()
            up.wait()
            with suppress(OSError, TxnAbortedException, NoSuchTxnException, NoSuchLockException), connect(servers[place % 2].uri) as mine:
                hold(mine, random)

    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(client, range(CLIENTS)))
    ending = time.monotonic()
    with connect(servers[0].uri) as last:
        for number in range(4):
            key = open_one(last)
            lock, state = ask(last, key, f"t{number}", LockType.EXCLUSIVE, DataOperationType.NO_TXN)
            while state == LockState.WAITING:
                state = last.check_lock(CheckLockRequest(lockid=lock)).state
            last.commit_txn(CommitTxnRequest(txnid=key))
    log.info("%d locks held, %d holders died, all free after %.2f s of %s s", len(held), len(dead), time.monotonic() - ending, TIMEOUT)
    assert len(held) >= turns // 2
    for table in {each.table for each in held}:
        order = sorted((each for each in held if each.table == table), key=lambda each: each.start)
        assert [(one, other) for one, other in pairwise(order) if other.start < one.end] == []
