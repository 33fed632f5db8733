#!/usr/bin/env python3
"""Measure calls on transactions, locks and write ids through a real server, beside the floor, and with many clients.

    python benchmarks/transactions.py [--db URL ...] [--rounds 200] [--seconds 3] [--clients 1 8 32] [--json FILE]

Starts `metastore serve` of this checkout on each database (SQLite in a temporary folder without --db; use an empty database), with the
notification log. Prints for each call the median in ms, its ratio to the floor, and the mean CPU time of the server's processes, then
the numbers of transactions that so many clients complete in a second. The floor is a bare round trip to the server and the commit of one
row by the database's own driver. Calls are encoded before the clock starts and their replies decoded after it stops: this work of a client
is not the server's time. Only ratios of one run hold on a busy machine. It never touches a server that it did not start.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from threading import Barrier
from typing import Any
from urllib.parse import urlsplit

from thriftpy2.thrift import TMessageType

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.operations import cpu_seconds  # noqa: E402
from metastore import idl  # noqa: E402
from metastore.client import Client, connect  # noqa: E402
from metastore.idl import (  # noqa: E402
    AbortTxnRequest,
    AllocateTableWriteIdsRequest,
    CheckLockRequest,
    CommitTxnRequest,
    DataOperationType,
    GetValidWriteIdsRequest,
    HeartbeatRequest,
    LockComponent,
    LockLevel,
    LockRequest,
    LockType,
    OpenTxnRequest,
    ShowLocksRequest,
    UnlockRequest,
)
from metastore.rules.transactions.snapshots import format_transactions, of_reply  # noqa: E402
from metastore.store.core.database import Database  # noqa: E402
from metastore.wire.messages.protocol import Dialect, decode, write_message  # noqa: E402
from metastore.wire.sockets.settings import WireSettings  # noqa: E402
from tests.support.servers.servers import COMMAND, serving  # noqa: E402

Call = Callable[..., Any]
Step = tuple[str, Call, str]
"""The name of the measure, the call, and the method whose reply it returns; no method for anything but a call."""
FRAMED, SETTINGS = Dialect("binary", framed=True), WireSettings()
ROUND_TRIP, COMMIT = "getStatus, a bare round trip", "one row and its commit, without a server"
READ, WRITE = LockType.SHARED_READ, LockType.SHARED_WRITE


def opening(number: int) -> OpenTxnRequest:
    """Return the request that opens transactions."""
    return OpenTxnRequest(num_txns=number, user="bench", hostname="here")


def allocating(keys: Sequence[int], table: str) -> AllocateTableWriteIdsRequest:
    """Return the request for write ids."""
    return AllocateTableWriteIdsRequest(dbName="bench", tableName=table, txnIds=list(keys))


def locking(key: int, table: str, kind: int = READ, operation: int = DataOperationType.SELECT, partition: str | None = None) -> LockRequest:
    """Return the request to lock a table, or a partition of it, in the transaction `key`; 0 is no transaction."""
    component = LockComponent(
        type=kind, level=LockLevel.PARTITION if partition else LockLevel.TABLE, dbname="bench", tablename=table,
        partitionname=partition, operationType=operation, isTransactional=True,
    )  # fmt: skip
    return LockRequest(component=[component], txnid=key, user="bench", hostname="here", zeroWaitReadEnabled=False)


class Caller:
    """Short forms of the calls of one client."""

    def __init__(self, client: Client | Wire) -> None:
        self.client = client

    def open(self, number: int = 1) -> list[int]:
        """Open transactions."""
        return list(self.client.open_txns(opening(number)).txn_ids)

    def commit(self, key: int) -> None:
        """Commit a transaction."""
        self.client.commit_txn(CommitTxnRequest(txnid=key))

    def lock(self, *wanted: Any) -> int:
        """Request a lock and return its id; the arguments are those of `locking`."""
        return int(self.client.lock(locking(*wanted)).lockid)

    def allocate(self, keys: Sequence[int], table: str) -> None:
        """Allocate write ids."""
        self.client.allocate_table_write_ids(allocating(keys, table))

    def update(self, key: int, table: str, partition: str | None = None) -> None:
        """Allocate a write id and lock the table, or a partition of it, to change rows."""
        self.allocate([key], table)
        self.lock(key, table, WRITE, DataOperationType.UPDATE, partition)

    def valid(self, table: str) -> None:
        """Ask which write ids a new snapshot sees, as an engine does before it reads."""
        text = format_transactions(of_reply(self.client.get_open_txns()))
        self.client.get_valid_write_ids(GetValidWriteIdsRequest(fullTableNames=[f"bench.{table}"], validTxnList=text))


class Wire:
    """One connection to a server, which prepares calls before they are made. Every Thrift method is a method of it, as of `Client`."""

    def __init__(self, uri: str) -> None:
        address = urlsplit(uri)
        self._socket = socket.create_connection((address.hostname, address.port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def __getattr__(self, method: str) -> Call:
        return lambda *args: result(method, self.prepared(method, *args)())

    def prepared(self, method: str, *args: Any) -> Call:
        """Encode a call's arguments, and return a function that makes the call and returns its reply as bytes."""
        arguments = getattr(idl.service, f"{method}_args")()
        for (_, name, *_), value in zip(arguments.thrift_spec.values(), args, strict=False):
            setattr(arguments, name, value)
        message = write_message(FRAMED, method, TMessageType.CALL, 0, arguments)

        def ask() -> bytes:
            self._socket.sendall(message)
            reply = b""
            while len(reply) < 4 or len(reply) < 4 + int.from_bytes(reply[:4], "big"):
                part = self._socket.recv(1 << 20)
                if not part:
                    raise ConnectionResetError(f"The server closed the connection during {method}")
                reply += part
            return reply[4:]

        return ask


def result(method: str, reply: bytes) -> Any:
    """Return the result in a reply, or raise the exception in it. RuntimeError for any other message."""
    if reply[3] != TMessageType.REPLY:
        raise RuntimeError(f"{method} failed: {reply!r}")
    body = decode(reply, FRAMED.protocol, SETTINGS, getattr(idl.service, f"{method}_result"))
    for name, value in vars(body).items():
        if name != "success" and value is not None:
            raise value
    return getattr(body, "success", None)


def calls(wire: Wire, number: int, commit: Call) -> Generator[Step, Any, None]:
    """Yield the calls of one round, and get their results sent. The objects that a call needs are made before it is yielded."""
    caller = Caller(wire)  # an engine also asks and commits on one connection
    reader, inserter, changer, of_partition, aborted, alive = (caller.open()[0] for _ in range(6))  # singly, as engines do
    batch = caller.open(100)
    caller.lock(reader, "t")
    lock = caller.lock(0, "t")
    caller.update(changer, f"c{number}")
    caller.update(of_partition, "p", f"k={number}")
    text = format_transactions(of_reply(wire.get_open_txns()))

    def call(what: str, method: str, *args: Any) -> Step:
        return what, wire.prepared(method, *args), method

    yield call(ROUND_TRIP, "getStatus")
    yield COMMIT, commit, ""
    yield call("heartbeat", "heartbeat", HeartbeatRequest(lockid=0, txnid=alive))
    opened = yield call("open_txns", "open_txns", opening(1))
    yield call("commit_txn, nothing done", "commit_txn", CommitTxnRequest(txnid=opened.txn_ids[0]))
    yield call("get_open_txns", "get_open_txns")
    yield call("get_valid_write_ids", "get_valid_write_ids", GetValidWriteIdsRequest(fullTableNames=["bench.t"], validTxnList=text))
    yield call("allocate_table_write_ids", "allocate_table_write_ids", allocating([inserter], "t"))
    yield call("lock, to insert", "lock", locking(inserter, "t", READ, DataOperationType.INSERT))
    yield call("check_lock", "check_lock", CheckLockRequest(lockid=lock))
    yield call("unlock", "unlock", UnlockRequest(lockid=lock))
    yield call("show_locks", "show_locks", ShowLocksRequest())
    yield call("commit_txn of a reader", "commit_txn", CommitTxnRequest(txnid=reader))
    yield call("commit_txn of an insert", "commit_txn", CommitTxnRequest(txnid=inserter))
    yield call("commit_txn of an update", "commit_txn", CommitTxnRequest(txnid=changer))
    yield call("commit_txn of an update of a partition", "commit_txn", CommitTxnRequest(txnid=of_partition))
    yield call("abort_txn", "abort_txn", AbortTxnRequest(txnid=aborted))
    yield call("allocate_table_write_ids 100", "allocate_table_write_ids", allocating(batch, "t"))
    for key in (alive, *batch):
        caller.commit(key)


def committing(url: str) -> Call:
    """Return a function that adds a row to a table of its own and commits, on a connection as the server opens them."""
    connection = Database(url).driver.connect()
    connection.cursor().execute("CREATE TABLE IF NOT EXISTS benchmark_floor (number INTEGER)")
    return lambda: connection.cursor().execute("INSERT INTO benchmark_floor VALUES (1)")


def measure(wire: Wire, process: int, rounds: int, commit: Call) -> dict[str, dict[str, float]]:
    """Return the median ms and the mean CPU ms of each call, from `rounds` rounds each: reading the CPU time slows down the next call."""
    times: dict[str, list[float]] = {}
    cpu: dict[str, float] = {}
    for number in range(2 * rounds):
        steps, returned = calls(wire, number, commit), None
        with suppress(StopIteration):
            while True:
                name, call, method = steps.send(returned)
                if number % 2:
                    before = cpu_seconds(process)
                    reply = call()
                    cpu[name] = cpu.get(name, 0) + (cpu_seconds(process) - before) * 1000
                else:
                    started = time.perf_counter()
                    reply = call()
                    times.setdefault(name, []).append((time.perf_counter() - started) * 1000)
                returned = result(method, reply) if method else None
    return {name: {"median_ms": statistics.median(values), "cpu_ms": cpu[name] / rounds} for name, values in times.items()}


def nothing(caller: Caller, _: int) -> None:
    """Open and commit."""
    caller.commit(caller.open()[0])


def reading(caller: Caller, _: int) -> None:
    """Make an engine's calls for a query."""
    key = caller.open()[0]
    caller.valid("t")
    caller.lock(key, "t")
    caller.commit(key)


def inserting(caller: Caller, place: int) -> None:
    """Make an engine's calls for an insert, each client into a table of its own."""
    key = caller.open()[0]
    caller.allocate([key], f"own{place}")
    caller.lock(key, f"own{place}", READ, DataOperationType.INSERT)
    caller.commit(key)


def throughput(uri: str, clients: int, seconds: float, work: Callable[[Caller, int], None]) -> float:
    """Return the number of transactions that `clients` clients, each on its connection, complete in a second."""
    together = Barrier(clients)

    def run(place: int) -> tuple[int, float]:
        with connect(uri) as client:
            caller, done = Caller(client), 0
            together.wait()
            started = time.perf_counter()
            while time.perf_counter() - started < seconds:
                work(caller, place)
                done += 1
            return done, time.perf_counter() - started

    with ThreadPoolExecutor(clients) as pool:
        found = list(pool.map(run, range(clients)))
    return sum(done for done, _ in found) / max(took for _, took in found)


def benchmark(database: str | None, rounds: int, seconds: float, clients: Sequence[int]) -> dict[str, dict[str, dict[str, float]]]:
    """Return the times of the calls, and the transactions a second of each number of clients."""
    with tempfile.TemporaryDirectory() as folder:
        url = database or f"sqlite:///{folder}/metastore.db"
        options = ["--warehouse", f"file:{folder}/warehouse", "--set", f"data_directory={folder}/data", "--set", "log_level=warning"]
        with serving(*options, "--db", url, home=Path(folder), command=COMMAND) as running, closing(Wire(running.uri)) as wire:
            cost = measure(wire, running.process.pid, rounds, committing(url))
            rates = {
                work.__name__: {str(number): throughput(running.uri, number, seconds, work) for number in clients}
                for work in (nothing, reading, inserting)
            }
            return {"calls": cost, "transactions_per_second": rates}


def main() -> None:
    """Read the options, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given = os.environ.get("METASTORE_BENCHMARK_DBS", "").split()
    parser.add_argument("--db", action="append", default=given, help="URL of an empty database; more in METASTORE_BENCHMARK_DBS")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=3.0, help="length of each measurement of many clients")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--json", type=Path, help="write the results here")
    options = parser.parse_args()
    found = {url or "sqlite": benchmark(url, options.rounds, options.seconds, options.clients) for url in options.db or [None]}
    for database, results in found.items():
        print(f"{database}\n{'':45} median ms   x floor   CPU ms of the server")
        floor = results["calls"][ROUND_TRIP]["median_ms"] + results["calls"][COMMIT]["median_ms"]
        for name, values in results["calls"].items():
            print(f"{name:45} {values['median_ms']:9.2f} {values['median_ms'] / floor:9.2f} {values['cpu_ms']:9.2f}")
        print(f"{'transactions a second of so many clients':45}" + "".join(f"{number:>10}" for number in options.clients))
        for name, rates in results["transactions_per_second"].items():
            print(f"{name:45}" + "".join(f"{rate:10.0f}" for rate in rates.values()))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
