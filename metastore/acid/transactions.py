"""Open, keep alive, commit or abort a transaction as a client of any Hive metastore; take locks, write ids and snapshots in it.

    with Transaction.begin("thrift://host:9083") as txn:
        txn.lock([component("db", "t", LockType.EXCL_WRITE, DataOperationType.UPDATE)])
        write_id = txn.write_id("db", "t")
        ...                                     # leaving the block commits; an error aborts

This module never reads or writes a file.
"""

from __future__ import annotations

import getpass
import os
import platform
import random
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import TypeVar

from metastore import idl, log
from metastore.client import Client, connect
from metastore.idl import (
    AbortTxnRequest,
    AddDynamicPartitions,
    AllocateTableWriteIdsRequest,
    CheckLockRequest,
    CommitTxnKeyValue,
    CommitTxnRequest,
    GetValidWriteIdsRequest,
    HeartbeatRequest,
    LockComponent,
    LockLevel,
    LockRequest,
    LockResponse,
    LockState,
    OpenTxnRequest,
    TxnType,
)
from metastore.rules.transactions.acid_directories import SeenWriteIds, Transactions
from metastore.rules.transactions.snapshots import format_transactions, of_reply, of_table_reply, snapshot

T = TypeVar("T")
Connect = Callable[[], Client]
"""A function that opens a connection to a metastore."""
LOCK_PATIENCE = 300.0
"""Seconds to wait for a lock, unless the caller gives another time."""
DEFAULT_TIMEOUT = 300.0
"""Seconds after which a server aborts a silent transaction, where its setting can not be read."""


class TransactionLost(Exception):
    """The transaction was aborted while its owner still worked: nothing that it wrote will be seen. Begin again."""


class LockTimeout(Exception):
    """Another transaction held the object of a lock for longer than the caller waits."""


@dataclass(frozen=True)
class TableSnapshot:
    """The snapshot of one table: the write ids that a reader sees, and the compactors' transactions that have committed."""

    write_ids: SeenWriteIds
    transactions: Transactions


def component(
    database: str,
    table: str,
    kind: int,
    operation: int,
    *,
    partition: str | None = None,
    dynamic: bool = False,
    transactional: bool = True,
) -> LockComponent:
    """Return the component of a lock request for one table or partition; `kind` is a LockType, `operation` a DataOperationType."""
    return LockComponent(
        type=kind,
        level=LockLevel.TABLE if partition is None else LockLevel.PARTITION,
        dbname=database,
        tablename=table,
        partitionname=partition,
        operationType=operation,
        isTransactional=transactional,
        isDynamicPartitionWrite=dynamic,
    )


@dataclass(frozen=True)
class Agent:
    """The owner of transactions, as SHOW TRANSACTIONS and SHOW LOCKS show it."""

    user: str = field(default_factory=getpass.getuser)
    host: str = field(default_factory=platform.node)
    name: str = field(default_factory=lambda: f"metastore-python-{os.getpid()}")


class Transaction:
    """One open transaction with a heartbeat of its own. Its methods may be called from several threads.

    Methods raise the Thrift exceptions of the server (NoSuchTxnException, TxnAbortedException, ...), OSError when it does not answer.
    """

    def __init__(self, connected: Connect, key: int, agent: Agent, kind: int, timeout: float) -> None:
        self.id = key
        self.agent = agent
        self._connect = connected
        self._kind = kind
        self._client = connected()
        self._guard = threading.Lock()
        self._write_ids: dict[tuple[str, str], int] = {}
        self._statements: dict[tuple[str, str], int] = {}
        self._lost: BaseException | None = None
        self._ended = threading.Event()
        self._state = "open"
        self._beat = threading.Thread(target=self._keep_alive, args=(timeout / 3,), name=f"heartbeat-{key}", daemon=True)
        self._beat.start()

    @classmethod
    def begin(
        cls, metastore: str | Connect, *, agent: Agent | None = None, read_only: bool = False, compaction: bool = False
    ) -> Transaction:
        """Open a transaction on a metastore, by its address or a function that connects. MetaException when the server has too many."""
        connected = partial(connect, metastore) if isinstance(metastore, str) else metastore
        agent = agent or Agent()
        kind = TxnType.READ_ONLY if read_only else TxnType.COMPACTION if compaction else TxnType.DEFAULT
        with connected() as client:
            request = OpenTxnRequest(num_txns=1, user=agent.user, hostname=agent.host, agentInfo=agent.name, txn_type=kind)
            key = client.open_txns(request).txn_ids[0]
            return cls(connected, key, agent, kind, server_timeout(client))

    @property
    def is_open(self) -> bool:
        """Whether the transaction is neither committed nor aborted here; the server may have given it up."""
        return self._state == "open"

    def __enter__(self) -> Transaction:  # noqa: PYI034  # Self needs Python 3.11
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._state != "open":
            return
        if error is None:
            self.commit()
        else:
            self.abort()

    def call(self, work: Callable[[Client], T]) -> T:
        """Run calls on this transaction's connection."""
        with self._guard:
            return work(self._client)

    def lock(self, components: Sequence[LockComponent], *, patience: float = LOCK_PATIENCE) -> None:
        """Take locks on all components at once; they last until the transaction ends. LockTimeout after `patience` seconds."""
        wanted = LockRequest(
            component=list(components),
            txnid=self.id,
            user=self.agent.user,
            hostname=self.agent.host,
            agentInfo=self.agent.name,
            zeroWaitReadEnabled=False,
        )
        take_locks(self.call, wanted, self.check, patience)

    def write_id(self, database: str, table: str) -> int:
        """Return this transaction's write id of a table; all writes of the transaction to it share one."""
        found = self._write_ids.get((database, table))
        if found is None:
            request = AllocateTableWriteIdsRequest(dbName=database, tableName=table, txnIds=[self.id])
            reply = self.call(lambda client: client.allocate_table_write_ids(request))
            found = self._write_ids[database, table] = reply.txnToWriteIds[0].writeId
        return found

    def next_statement(self, database: str, table: str) -> int:
        """Return the number of the next write to a table, from 0."""
        number = self._statements.get((database, table), 0)
        self._statements[database, table] = number + 1
        return number

    def snapshots(self, tables: Iterable[tuple[str, str]]) -> dict[tuple[str, str], TableSnapshot]:
        """Return the snapshots of tables (database, name), all at one moment, with this transaction's own writes."""
        return self.call(lambda client: take_snapshots(client, self.id, self._write_ids, list(tables)))

    def wrote_partitions(self, database: str, table: str, partitions: Sequence[str], operation: int) -> None:
        """Report the partitions of a dynamic write to the server; conflicts are detected by them."""
        request = AddDynamicPartitions(
            txnid=self.id,
            writeid=self.write_id(database, table),
            dbname=database,
            tablename=table,
            partitionnames=list(partitions),
            operationType=operation,
        )
        self.call(lambda client: client.add_dynamic_partitions(request))

    def check(self) -> None:
        """Raise TransactionLost if the server has given the transaction up, or it was spoiled."""
        if self._lost is not None:
            raise TransactionLost(f"transaction {self.id} is lost: {self._lost}") from self._lost

    def spoil(self, reason: Exception) -> None:
        """Refuse all further work, and the commit, with TransactionLost: the transaction has written rows that must not be seen."""
        self._lost = self._lost or reason

    def commit(self, *, table_parameter: tuple[int, str, str] | None = None) -> None:
        """Commit. TxnAbortedException when another transaction won; TransactionLost when the server had given it up.

        `table_parameter` (table id, key that begins with `_meta`, value) is written into a table's parameters by the same commit.
        After an error the transaction is over: aborted, or left to its time-out; only after OSError it may be committed all the same.
        """
        value = None if table_parameter is None else CommitTxnKeyValue(*table_parameter)
        request = CommitTxnRequest(txnid=self.id, keyValue=value, exclWriteEnabled=True, txn_type=self._kind)
        try:
            self.check()
            try:
                self.call(lambda client: client.commit_txn(request))
            except OSError:
                # Commits are idempotent: a commit whose answer was lost is requested again, on a new connection.
                self.call(lambda client: client.commit_txn(request))
        except BaseException:
            self.abort()  # the server refuses to abort a committed transaction
            raise
        self._end("committed")

    def abort(self) -> None:
        """Abort; a transaction that the server has given up, or that can not be reached, is left to its time-out."""
        with suppress(Exception):
            self.call(lambda client: client.abort_txn(AbortTxnRequest(txnid=self.id, txn_type=self._kind)))
        self._end("aborted")

    def leave_open(self) -> None:
        """Release the transaction without ending it: other processes keep it alive, or it ends by its time-out."""
        self._end("left open")

    def _end(self, state: str) -> None:
        self._state = state
        self._ended.set()
        with self._guard:
            self._client.close()

    def _keep_alive(self, interval: float) -> None:
        """Send heartbeats on a connection of its own, so that a long call does not hold them up."""
        client = self._connect()
        request = HeartbeatRequest(lockid=0, txnid=self.id)
        while not self._ended.wait(interval):
            try:
                client.heartbeat(request)
            except (idl.NoSuchTxnException, idl.TxnAbortedException) as error:
                if not self._ended.is_set():
                    self._lost = error
                break
            except Exception as error:  # noqa: BLE001  # the server may be restarting: the next beat may reach it
                log.get("metastore.acid").warning("heartbeat failed", transaction=self.id, reason=str(error))
        client.close()


def take_locks(
    call: Callable[[Callable[[Client], LockResponse]], LockResponse], request: LockRequest, check: Callable[[], None], patience: float
) -> None:
    """Request locks of a transaction and wait until they are granted; `check` raises an error when waiting is of no use. LockTimeout."""
    answer = call(lambda client: client.lock(request))
    key, txn = answer.lockid, request.txnid
    deadline, pause = time.monotonic() + patience, 0.01
    while answer.state == LockState.WAITING:
        if time.monotonic() > deadline:
            call(lambda client: client.unlock(idl.UnlockRequest(lockid=key)))
            names = ", ".join(f"{each.dbname}.{each.tablename}" for each in request.component)
            raise LockTimeout(f"transaction {txn}: {names} is locked by others; `metastore locks list` shows the owners")
        time.sleep(pause * random.uniform(0.5, 1))  # noqa: S311  # spreads retries
        pause = min(pause * 2, 1.0)
        check()
        answer = call(lambda client: client.check_lock(CheckLockRequest(lockid=key, txnid=txn)))
    if answer.state != LockState.ACQUIRED:
        raise LockTimeout(f"transaction {txn}: the lock was not granted: {answer.errorMessage or answer.state}")


def take_snapshots(
    client: Client, txn: int, own: Mapping[tuple[str, str], int], tables: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], TableSnapshot]:
    """Return the present snapshots of tables, with a transaction's own writes under its own write ids."""
    seen = of_reply(client.get_open_txns())
    others = [id_ for id_ in seen.exceptions if id_ != txn and id_ not in seen.aborted]
    mine = snapshot(max(seen.mark, txn), others, seen.aborted)
    names = {f"{database}.{table}": (database, table) for database, table in tables}
    request = GetValidWriteIdsRequest(fullTableNames=list(names), validTxnList=format_transactions(mine, runs=False))
    visible = Transactions(mine.mark, frozenset(mine.exceptions) - mine.aborted, mine.aborted)
    out = {}
    for reply in client.get_valid_write_ids(request).tblValidWriteIds:
        found, key = of_table_reply(reply), names[reply.fullTableName]
        written = own.get(key, 0)
        ids = SeenWriteIds(
            max(found.mark, written), frozenset(found.exceptions) - found.aborted - {written}, found.aborted, reply.fullTableName
        )
        out[key] = TableSnapshot(ids, visible)
    return out


def server_timeout(client: Client) -> float:
    """Return the seconds after which the server gives up a silent transaction."""
    try:
        text = str(client.get_config_value("hive.txn.timeout", f"{DEFAULT_TIMEOUT:g}s"))
    except (OSError, idl.ConfigValSecurityException):
        return DEFAULT_TIMEOUT
    units: Mapping[str, float] = {"ms": 0.001, "min": 60.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "s": 1.0}
    for unit, seconds in units.items():
        if text.endswith(unit) and _is_number(text[: -len(unit)]):
            return float(text[: -len(unit)]) * seconds
    return float(text) if _is_number(text) else DEFAULT_TIMEOUT


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).isdigit()
