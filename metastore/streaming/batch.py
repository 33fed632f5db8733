"""A batch of transactions that are opened at once and used one after the other, all writing into the same files.

Transactions that were not used when the batch is closed are aborted. A batch whose process dies leaves files whose committed part stays
readable, and open transactions that the server aborts for want of heartbeats.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any, Protocol, TypeVar

from metastore import idl, log
from metastore.acid import statistics
from metastore.acid.rewriting.bucket_files import BucketFile
from metastore.acid.rewriting.portions import Portion
from metastore.acid.rewriting.unchanged import check_unchanged
from metastore.acid.storage import Storage
from metastore.acid.transactions import Agent, TableSnapshot, TransactionLost, component, take_locks, take_snapshots
from metastore.client import Client, connect
from metastore.idl import (
    AbortTxnRequest,
    AbortTxnsRequest,
    AddDynamicPartitions,
    AllocateTableWriteIdsRequest,
    CommitTxnRequest,
    DataOperationType,
    HeartbeatTxnRangeRequest,
    LockRequest,
    LockType,
    OpenTxnRequest,
    Table,
    TxnType,
)
from metastore.rules.transactions.acid_directories import Base, delta_name, parse

T = TypeVar("T")


class BatchEnded(Exception):
    """The batch has no transaction for the call: it is closed or used up, or none has begun."""


class Overtaken(TransactionLost):
    """An overwrite has replaced the rows of a table or partition, and with them the rows of this batch's write ids: none would be seen."""


class _Current:
    """The transaction that has begun, in the form that `statistics` takes."""

    def __init__(self, call: Callable[[Callable[[Client], Any]], Any], txn: int, write_id: int) -> None:
        self.call = call
        self._txn = txn
        self._write_id = write_id

    def snapshots(self, tables: Iterable[tuple[str, str]]) -> dict[tuple[str, str], TableSnapshot]:
        """Return the present snapshots of tables, with the transaction's own writes."""
        wanted = list(tables)
        found: dict[tuple[str, str], TableSnapshot] = self.call(
            lambda client: take_snapshots(client, self._txn, dict.fromkeys(wanted, self._write_id), wanted)
        )
        return found

    def write_id(self, database: str, table: str) -> int:  # noqa: ARG002  # the batch has one table
        """Return the transaction's write id."""
        return self._write_id


class Target(Protocol):
    """The parts of a connection that a batch needs: the table, its files, and the division of records."""

    uri: str
    agent: Agent
    patience: float
    timeout: float
    table: Table
    static_partition: str | None
    is_dynamic: bool
    schema: Any
    compression: str
    storage: Storage

    @property
    def full_name(self) -> str: ...

    def load(self, client: Client) -> Table: ...

    def portions(self, records: Any) -> list[Portion]: ...

    def location(self, partition: str) -> str: ...

    def name_of(self, partition: str) -> str: ...


class TransactionBatch:
    """Transactions that write into a table one after the other. For one thread; a second one sends the heartbeats.

    Its methods raise the Thrift exceptions of the server, OSError when it does not answer.
    """

    def __init__(self, connection: Target, count: int) -> None:
        if count < 1:
            raise ValueError(f"a batch of {count} transactions: give at least 1")
        self._connection = connection
        self._client = connect(connection.uri)
        self._guard = threading.Lock()
        self._files: dict[tuple[str, int], BucketFile] = {}
        self._written: set[tuple[str, int]] = set()
        self._current: tuple[int, int] | None = None
        self._forgotten: set[str] = set()
        self._closed = False
        self._broken: BaseException | None = None
        self._lost: set[int] = set()
        self.write_ids = self._open(count)
        """The batch's transactions and their write ids, ascending."""
        self._waiting = sorted(self.write_ids.items(), reverse=True)
        ids = list(self.write_ids.values())
        self._range = (min(ids), max(ids))
        self._stopped = threading.Event()
        self._beat = threading.Thread(target=self._keep_alive, args=(connection.timeout / 3,), name="heartbeat-stream", daemon=True)
        self._beat.start()

    def _open(self, count: int) -> dict[int, int]:
        agent, table = self._connection.agent, self._connection.table
        request = OpenTxnRequest(num_txns=count, user=agent.user, hostname=agent.host, agentInfo=agent.name, txn_type=TxnType.DEFAULT)
        opened: list[int] = []
        try:
            opened = self._call(lambda client: client.open_txns(request)).txn_ids
            wanted = AllocateTableWriteIdsRequest(dbName=table.dbName, tableName=table.tableName, txnIds=opened)
            found = self._call(lambda client: client.allocate_table_write_ids(wanted)).txnToWriteIds
        except BaseException:
            if opened:
                with suppress(Exception):
                    self._call(lambda client: client.abort_txns(AbortTxnsRequest(txn_ids=opened)))
            self._client.close()
            raise
        return {each.txnId: each.writeId for each in found}

    def __enter__(self) -> TransactionBatch:  # noqa: PYI034  # Self needs Python 3.11
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    @property
    def remaining(self) -> int:
        """The number of transactions that have not begun."""
        return 0 if self._closed else len(self._waiting)

    @contextmanager
    def transaction(self) -> Iterator[int]:
        """Begin the next transaction and yield its write id; leaving the block commits it, an error aborts it."""
        write_id = self.begin_next()
        try:
            yield write_id
            self.commit()
        except BaseException:
            if self._current is not None:
                self.abort()
            raise

    def begin_next(self) -> int:
        """Begin the next transaction, lock the table or its static partition, and return the write id.

        BatchEnded, TransactionLost, LockTimeout; NoSuchObjectException or TableChanged where the table is no longer the one that the
        connection has read: close the batch and open another connection.
        """
        if self._current is not None:
            raise BatchEnded(f"transaction {self._current[0]} has begun already: commit or abort it before the next")
        self._check_open()
        if not self._waiting:
            raise BatchEnded("the batch has no transaction left: close it and open another")
        txn, write_id = self._waiting[-1]
        self._check_kept(txn)
        connection, agent = self._connection, self._connection.agent
        wanted = component(
            connection.table.dbName,
            connection.table.tableName,
            LockType.SHARED_READ,
            DataOperationType.INSERT,
            partition=connection.static_partition,
            dynamic=connection.is_dynamic,
        )
        request = LockRequest(component=[wanted], txnid=txn, user=agent.user, hostname=agent.host, agentInfo=agent.name)
        take_locks(self._call, request, lambda: self._check_kept(txn), connection.patience)
        check_unchanged(connection.table, self._call(connection.load))
        self._waiting.pop()
        self._current = (txn, write_id)
        self._written = set()
        return write_id

    def write(self, records: Any) -> int:
        """Write one record or several, in the form that the connection's writer takes. Return the number of records.

        BadRecord when one does not fit: then none of them is written, and the transaction continues. After CanNotWrite the batch can not
        continue.
        """
        _, write_id = self._begun()
        portions = self._connection.portions(records)
        with self._breaking():
            for partition, bucket, rows in portions:
                self._file(partition, bucket).append(write_id, rows)
                self._written.add((partition, bucket))
        return sum(len(rows) for _, _, rows in portions)

    def commit(self) -> None:
        """Commit the transaction that has begun: its rows are seen from now on.

        TransactionLost, Overtaken, TxnAbortedException, CanNotWrite.
        """
        txn, write_id = self._begun()
        self._check_kept(txn)
        self._check_not_overtaken(txn, write_id)
        with self._breaking():
            for key in self._written:
                self._end_of_transaction(key)
        connection = self._connection
        partitions = sorted({connection.name_of(partition) for partition, _ in self._written})
        self._forget_statistics(_Current(self._call, txn, write_id), partitions)
        if connection.is_dynamic and partitions:
            added = AddDynamicPartitions(
                txnid=txn,
                writeid=write_id,
                dbname=connection.table.dbName,
                tablename=connection.table.tableName,
                partitionnames=partitions,
                operationType=DataOperationType.INSERT,
            )
            self._call(lambda client: client.add_dynamic_partitions(added))
        request = CommitTxnRequest(txnid=txn, exclWriteEnabled=True, txn_type=TxnType.DEFAULT)
        try:
            self._call(lambda client: client.commit_txn(request))
        except OSError:
            # Commits are idempotent: a commit whose answer was lost is requested again, on a new connection.
            self._call(lambda client: client.commit_txn(request))
        self._current = None

    def abort(self) -> None:
        """Abort the transaction that has begun: its rows will never be seen. The batch continues, unless a file is broken."""
        txn, _ = self._begun(broken=True)
        self._current = None
        if not self._connection.storage.grows:
            for key in self._written & self._files.keys():
                self._files.pop(key).remove()
        with suppress(idl.TxnAbortedException, idl.NoSuchTxnException):
            self._call(lambda client: client.abort_txn(AbortTxnRequest(txnid=txn, txn_type=TxnType.DEFAULT)))

    def heartbeat(self) -> None:
        """Send a heartbeat for the batch. A thread of the batch sends them as well; this is for callers that can not have threads."""
        with connect(self._connection.uri) as client:
            self._send_heartbeat(client)

    def close(self) -> None:
        """Abort the uncommitted transactions and end the files. CanNotWrite when a file can not be ended: committed rows stay readable."""
        if self._closed:
            return
        self._closed = True
        self._stopped.set()
        left = [txn for txn, _ in self._waiting] + ([] if self._current is None else [self._current[0]])
        try:
            for file in self._files.values():
                if self._broken is None:
                    file.close()
                else:
                    file.abandon()
        finally:
            self._files = {}
            if left:
                with suppress(Exception):
                    self._call(lambda client: client.abort_txns(AbortTxnsRequest(txn_ids=left)))
            self._client.close()
            self._beat.join()

    def _call(self, work: Callable[[Client], T]) -> T:
        with self._guard:
            return work(self._client)

    def _begun(self, *, broken: bool = False) -> tuple[int, int]:
        self._check_open(broken=broken)
        if self._current is None:
            raise BatchEnded("no transaction has begun: call begin_next first")
        return self._current

    def _check_open(self, *, broken: bool = False) -> None:
        if self._closed:
            raise BatchEnded("the batch is closed: open another")
        if self._broken is not None and not broken:
            raise BatchEnded(f"the batch can not continue, close it and open another: {self._broken}") from self._broken

    def _check_kept(self, txn: int) -> None:
        if txn in self._lost:
            raise TransactionLost(
                f"transaction {txn} was aborted by the server for missing heartbeats, or by a user: close the batch and open another"
            )

    def _check_not_overtaken(self, txn: int, write_id: int) -> None:
        """Raise Overtaken where an overwrite with a higher write id has committed: write ids are allocated when the batch is opened.

        The lock of the transaction keeps other overwrites away until it commits.
        """
        connection, current = self._connection, _Current(self._call, txn, write_id)
        table = (connection.table.dbName, connection.table.tableName)
        for partition in {partition for partition, _ in self._written}:
            found = (parse(path.rstrip("/").rpartition("/")[2]) for path in connection.storage.below(connection.location(partition)))
            later = [base for base in found if isinstance(base, Base) and base.write_id > write_id]
            if not later:
                continue
            seen = current.snapshots([table])[table].write_ids
            if passed := [base.name for base in later if seen.is_valid(base.write_id)]:
                raise Overtaken(
                    f"transaction {txn}: an overwrite of {connection.full_name} {connection.name_of(partition)} has replaced the rows to "
                    f"which write id {write_id} of this batch would add ({passed[0]}): close the batch and open another"
                )

    @contextmanager
    def _breaking(self) -> Iterator[None]:
        """Mark the batch as broken by an error within: its files may end in the middle of a row, and nothing more is written to them."""
        try:
            yield
        except BaseException as error:
            self._broken = error
            raise

    def _file(self, partition: str, bucket: int) -> BucketFile:
        key = (partition, bucket)
        if key not in self._files:
            connection = self._connection
            low, high = self._range if connection.storage.grows else (self.write_ids[self._begun()[0]],) * 2
            directory = f"{connection.location(partition)}/{delta_name(low, high)}"
            self._files[key] = BucketFile(
                connection.storage,
                directory,
                bucket,
                connection.schema,
                connection.compression,
                grows=connection.storage.grows,
            )
        return self._files[key]

    def _end_of_transaction(self, key: tuple[str, int]) -> None:
        """Make the rows of a transaction readable. Object stores show whole files only: there each transaction has its own files."""
        if self._connection.storage.grows:
            self._files[key].flush()
        else:
            self._files.pop(key).close()

    def _forget_statistics(self, current: _Current, partitions: Sequence[str]) -> None:
        """Remove the statistics from which Hive would answer, once for each partition that the batch reaches."""
        if new := [partition for partition in partitions if partition not in self._forgotten]:
            table = self._call(self._connection.load)
            statistics.forget(current, table, [partition for partition in new if partition])
            self._forgotten.update(new)

    def _keep_alive(self, interval: float) -> None:
        with connect(self._connection.uri) as client:
            while not self._stopped.wait(interval):
                try:
                    self._send_heartbeat(client)
                except Exception as error:  # noqa: BLE001  # the server may be restarting: the next beat may reach it
                    log.get("metastore.streaming").warning("heartbeat failed", reason=str(error))

    def _send_heartbeat(self, client: Client) -> None:
        current = self._current
        alive = {txn for txn, _ in list(self._waiting)} | (set() if current is None else {current[0]})
        if alive:
            answer = client.heartbeat_txn_range(HeartbeatTxnRangeRequest(min=min(alive), max=max(alive)))
            self._lost |= alive.intersection({*answer.aborted, *answer.nosuch})
