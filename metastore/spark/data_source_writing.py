"""The writing half of the format `hive_acid`: tasks write files aside, the commit gives them their places and commits one transaction.

    .staging_txn_N_ATTEMPT/     the files of one attempt of a task; those of attempts that Spark does not choose are removed
    delta_W_W_S/bucket_B        full transactional: B is the task, S counts its files for one partition, from 256 on for tasks from 4,096 on
                                whose B starts at 0; in a bucketed table B is the hash bucket, S the task
    delta_W_W_0000/00000B_0     insert-only
    base_W/..                   an overwrite

The transaction begins where Spark plans the write, in a process that ends at once; another one sends heartbeats.
Spark gives a stream's batch number only to the commit, which knows the transaction from the tasks' messages.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from metastore import log
from metastore.acid import heartbeat_process, statistics
from metastore.acid.buckets import buckets
from metastore.acid.files import FsspecFiles, in_parallel
from metastore.acid.folders.table import Folder
from metastore.acid.orc.own_bucket import footer_at_end, named
from metastore.acid.partitions import found_or_added
from metastore.acid.rewriting.unchanged import check_unchanged
from metastore.acid.transactions import Agent, Transaction, TransactionLost, component, server_timeout
from metastore.acid.values.constraints import Constraints, wall_clock
from metastore.client import connect
from metastore.idl import AbortTxnRequest, DataOperationType, LockType, TxnState, TxnType
from metastore.rules.transactions.acid_directories import base_name, delta_name, staging_name
from metastore.spark.data_source_plan import Staged, WritePlan
from metastore.spark.session.catalog import AcidTableInfo, WrongColumns
from metastore.spark.session.heartbeats import Heartbeats
from metastore.spark.writing import batch_numbers

if TYPE_CHECKING:
    import pyarrow as pa

    from metastore.acid.storage import Storage

LEASE = 3600.0
"""Seconds for which a process of its own sends heartbeats, unless the option `lease` is given; running tasks send heartbeats too."""


class CanNotPlace(Exception):
    """The rows can not be written by this format, or the files of its tasks not be brought together in the table."""


@dataclass
class Written(WriterCommitMessage):
    """The report of one attempt of a task to the commit."""

    plan: WritePlan
    files: list[Staged] = field(default_factory=list)


@dataclass(frozen=True)
class WriteRequest:
    """The request of a write, by the options and Spark."""

    uri: str
    info: AcidTableInfo
    columns: tuple[str, ...]
    """The table's columns that the rows have."""
    overwrite: bool
    zone: str
    lease: float
    checkpoint: str = ""

    @classmethod
    def of(
        cls, uri: str, info: AcidTableInfo, schema: StructType, zone: str, options: Any, *, overwrite: bool, stream: bool = False
    ) -> WriteRequest:
        """Check the columns and the kind of the table. WrongColumns, CanNotPlace, TooManyBuckets."""
        given = tuple(info.given(schema.names))
        known = [column.name for column in [*info.table.sd.cols, *(info.table.partitionKeys or [])]]
        if unknown := [name for name in given if name not in known]:
            raise WrongColumns(f"{info.full_name} has no column {', '.join(unknown)}; its columns are {', '.join(known)}")
        if missing := [key.name for key in info.table.partitionKeys or [] if key.name not in given]:
            raise WrongColumns(f"{info.full_name} is partitioned by {', '.join(missing)}, which the rows do not have")
        if info.is_insert_only and info.format[0] not in ("orc", "parquet"):
            raise CanNotPlace(f"{info.full_name} is insert-only in {info.format[0]}: write it with AcidTable.insert")
        if not info.is_insert_only:
            buckets.check_count(info.full_name, info.buckets)
        checkpoint = options.get("checkpointlocation", "")
        if stream and not checkpoint:
            raise CanNotPlace(f"a stream into {info.full_name} needs the option checkpointLocation, which identifies its batches")
        return cls(uri, info, given, overwrite, zone, float(options.get("lease", LEASE)), checkpoint if stream else "")

    def agent(self, query: str) -> Agent:
        return Agent(name=f"hive_acid {self.info.full_name} {query or uuid4().hex}")

    def begin(self) -> WritePlan:
        """Open the transaction, lock the table, and have the transaction kept alive.

        LockTimeout, TableChanged, NoQuery, NoTableId, CanNotKeepConstraint.
        """
        database, name = self.info.database, self.info.name
        query = batch_numbers.parameter_of(FsspecFiles().read, self.checkpoint) if self.checkpoint else ""
        if query:
            batch_numbers.note(self.info, query, 0)
            with Transaction.begin(self.uri) as alone:
                batch_numbers.add_parameter(alone, database, name, query)
        txn = Transaction.begin(self.uri, agent=self.agent(query))
        try:
            kind, operation = (
                (LockType.EXCLUSIVE, DataOperationType.UPDATE) if self.overwrite else (LockType.SHARED_READ, DataOperationType.INSERT)
            )
            txn.lock([component(database, name, kind, operation, dynamic=bool(self.info.table.partitionKeys))])
            check_unchanged(self.info.table, txn.call(lambda client: AcidTableInfo.read(client, database, name)).table)
            constraints = txn.call(lambda client: Constraints.read(client, self.info.table))
            constraints.refuse_checks("write the rows with AcidTable.insert")
            defaults = constraints.constants(self.info.kinds.items(), self.columns, wall_clock(self.zone))
            write_id = txn.write_id(database, name)
            plan = WritePlan(self.uri, self.info.table, txn.id, write_id, self.overwrite, self.zone, query, constraints, defaults)
            heartbeat_process.start(self.uri, txn.id, os.getppid(), self.lease)
        except BaseException:
            txn.abort()
            raise
        txn.leave_open()
        return plan


class _Writer:
    """Parts of both writers. The transaction begins when Spark pickles the writer for its tasks, not when Spark only asks for a writer."""

    def __init__(self, request: WriteRequest) -> None:
        self._request = request
        self._plan: WritePlan | None = None

    def __getstate__(self) -> dict[str, Any]:
        if self._plan is None:
            self._plan = self._request.begin()
        return self.__dict__

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write the rows of a task aside. TransactionLost when it was aborted meanwhile, as after the failure of another task."""
        from metastore.spark.data_source_files import TaskFiles

        assert self._plan is not None
        with Heartbeats(self._plan.uri, self._plan.transaction) as transaction:
            transaction.check()
            files = TaskFiles(self._plan, self._request.columns, _task_number(self._plan))
            try:
                for batch in iterator:
                    files.append(batch)
                written = Written(self._plan, files.close())
                transaction.check()
                return written
            except BaseException:
                files.remove()
                raise


class HiveAcidWriter(_Writer, DataSourceArrowWriter):
    """Writes a DataFrame in one transaction."""

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Give the files their places and commit. CanNotPlace, TransactionLost, TxnAbortedException."""
        assert self._plan is not None
        finish(self._plan, _files(messages))

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:  # noqa: ARG002  # Spark's
        """Abort the transaction and remove its files."""
        assert self._plan is not None
        give_up(self._plan)


class HiveAcidStreamWriter(_Writer, DataSourceStreamWriter, DataSourceArrowWriter):
    """A writer of each batch of a stream in one transaction, together with the batch's number. A repeated batch is written only once."""

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int = -1) -> None:  # noqa: N803  # Spark's name
        """Give the files their places and commit; a batch that is there already is aborted instead. The errors of a DataFrame's commit."""
        plan = next((message.plan for message in messages if isinstance(message, Written)), None) or self._plan_without_tasks()
        finish(plan, _files(messages), batch=batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int = -1) -> None:  # noqa: ARG002, N803  # Spark's
        """Abort the transaction and remove its files. Where no task reported it, do this for all open transactions of the query."""
        plans = {message.plan.transaction: message.plan for message in messages if isinstance(message, Written)}
        for plan in plans.values() or self._open_plans():
            give_up(plan)

    def _plan_without_tasks(self) -> WritePlan:
        """Return the plan of a batch that has no tasks, from the query's newest open transaction. TransactionLost where none is open."""
        plans = self._open_plans()
        if not plans:
            info = self._request.info
            raise TransactionLost(f"the transaction of this batch of {info.database}.{info.name} is no longer open; nothing was written")
        newest = max(plans, key=lambda plan: plan.transaction)
        return replace(newest, write_id=resumed(newest).write_id(newest.info.database, newest.info.name))

    def _open_plans(self) -> list[WritePlan]:
        """Return plans, without write ids, of the transactions that the query has open."""
        request = self._request
        query = batch_numbers.parameter_of(FsspecFiles().read, request.checkpoint)
        name = request.agent(query).name
        with connect(request.uri) as client:
            found = client.get_open_txns_info().open_txns
        left = [each.id for each in found if each.agentInfo == name and each.state == TxnState.OPEN]
        return [WritePlan(request.uri, request.info.table, key, 0, request.overwrite, request.zone, query) for key in left]


def _task_number(plan: WritePlan) -> int:
    """Return the number of this task. CanNotPlace where its row ids would not be unique, before it has read any rows."""
    context: Any = TaskContext.get()
    number, most = int(context.partitionId()), plan.most_tasks
    if most is not None and number >= most:
        raise CanNotPlace(
            f"{plan.info.full_name}: more than {most} tasks would give the same ids to different rows; reduce the rows' partitions with "
            f"coalesce({most}), or use AcidTable, which limits its tasks itself"
        )
    return number


def _files(messages: Sequence[WriterCommitMessage | None]) -> list[Staged]:
    return [file for message in messages if isinstance(message, Written) for file in message.files]


def resumed(plan: WritePlan) -> Transaction:
    """Return the transaction of a plan, with heartbeats."""
    with connect(plan.uri) as client:
        timeout = server_timeout(client)
    return Transaction(partial(connect, plan.uri), plan.transaction, Agent(), TxnType.DEFAULT, timeout)


def finish(plan: WritePlan, files: Sequence[Staged], *, batch: int | None = None) -> None:
    """Give files their places and commit, with the number of a stream's batch. A failure before the commit leaves no directory."""
    from metastore.acid.storage import Storage

    txn = resumed(plan)
    storage = Storage(plan.info.location)
    info = plan.info
    made: list[str] = []
    noted = None
    try:
        if batch is not None:
            if not batch_numbers.is_new(txn, info.database, info.name, plan.query, batch):
                txn.abort()
                _remove_staged(plan, storage)
                return
            noted = batch_numbers.note(info, plan.query, batch)
        _check(plan, storage, files)
        partitions = _place(plan, txn, storage, files, made)
        storage.sync_placed(made)
        now = txn.call(lambda client: AcidTableInfo.load(client, info.database, info.name))
        statistics.forget(txn, now.table, partitions)
        if partitions:
            txn.wrote_partitions(info.database, info.name, partitions, DataOperationType.INSERT)
    except BaseException:
        txn.abort()
        for directory in made:
            with suppress(Exception):  # remaining files are of an aborted write id, which the cleaner removes; the error matters more
                storage.remove_directory(directory)
        raise
    txn.commit(table_parameter=noted)
    try:
        _remove_staged(plan, storage)
    except Exception as error:  # noqa: BLE001  # the rows are committed: an error would make Spark or its user write them again
        log.get("metastore.spark").warning("staged files could not be removed", table=info.full_name, reason=str(error))


def _check(plan: WritePlan, storage: Storage, files: Sequence[Staged]) -> None:
    """Raise CanNotPlace for several files of one bucket in a base, and for rows that name another bucket than their file's."""
    places = [(file.partition, file.statement, file.name) for file in files]
    if len(set(places)) < len(places):
        raise CanNotPlace(
            f"{plan.info.full_name}: several tasks wrote rows of one bucket, which an overwrite must have in one file; bring the rows into "
            "one task with coalesce(1), or use AcidTable.insert_overwrite"
        )
    if not plan.info.is_insert_only:
        in_parallel(lambda file: _check_own(plan, storage, file), files)


def _check_own(plan: WritePlan, storage: Storage, file: Staged) -> None:
    found = named(footer_at_end(lambda size: storage.read_end(file.path, size)))
    if found is not None and found.is_wrong(buckets.of_file(file.name) or 0):
        raise CanNotPlace(f"{plan.info.full_name}: {file.path} is to become {file.name}, but its rows name bucket {found}")


def _place(plan: WritePlan, txn: Transaction, storage: Storage, files: Sequence[Staged], made: list[str]) -> list[str]:
    """Rename files to their places, noting the directories that were made; return the names of the partitions."""
    info, number = plan.info, plan.write_id
    names = sorted({file.partition for file in files if file.partition})
    found = txn.call(lambda client: found_or_added(client, info.table, names, overwrite=plan.overwrite)) if names else {}
    folders = {"": Folder(info.location), **{name: info.folder(partition) for name, partition in found.items()}}
    if plan.overwrite and not files and not info.table.partitionKeys:
        _make(plan, storage, storage.path(f"{info.location}/{base_name(number)}"), made)
    for file in files:
        name = base_name(number) if plan.overwrite else delta_name(number, number, file.statement)
        directory = storage.path(f"{folders[file.partition].location}/{name}")
        if directory not in made:
            _make(plan, storage, directory, made)
        storage.rename(file.path, f"{directory}/{file.name}")
    return sorted(folders[name].name for name in names)


def _make(plan: WritePlan, storage: Storage, directory: str, made: list[str]) -> None:
    made.append(directory)
    storage.make_directory(directory, versioned=not plan.info.is_insert_only)


def give_up(plan: WritePlan) -> None:
    """Abort the transaction, which the server may have given up already, and remove the staged files of tasks."""
    from metastore.acid.storage import Storage

    with suppress(Exception), connect(plan.uri) as client:
        client.abort_txn(AbortTxnRequest(txnid=plan.transaction, txn_type=TxnType.DEFAULT))
    _remove_staged(plan, Storage(plan.info.location))


def _remove_staged(plan: WritePlan, storage: Storage) -> None:
    begin = staging_name(plan.transaction, "")
    for path in storage.below(storage.path(plan.info.location)):
        if path.rstrip("/").rpartition("/")[2].startswith(begin):
            storage.remove_directory(path)
