"""A Hive transactional table on Spark, in the manner of `DeltaTable`.

    table = AcidTable.forName(spark, "sales.orders")
    table.toDF().where("day = '2024-05-01'").show()
    table.update("id = 7", {"amount": "amount * 2"})
    table.merge(changes, "id = source.id").whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()

Each writing call is one transaction of its own, unless the table comes from `transaction(spark)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # the name that everyone gives it

from metastore.acid import statistics
from metastore.client import connect
from metastore.idl import CompactionRequest, CompactionType, DataOperationType, LockType, ShowCompactRequest
from metastore.spark import writing
from metastore.spark.assignment import told
from metastore.spark.catalog import AcidTableInfo, metastore_uri
from metastore.spark.faithful import check_kept
from metastore.spark.merging import MergeBuilder
from metastore.spark.reading import ROW_ID
from metastore.spark.work import LEASE, Work

T = TypeVar("T")
KINDS = {CompactionType.MINOR: "minor", CompactionType.MAJOR: "major", CompactionType.REBALANCE: "rebalance"}
Expression = str | Column
"""SQL text or a column."""


class CanNotChange(Exception):
    """The operation does not fit the kind of table."""


class AcidTable:
    """One transactional table. Reading and writing calls raise the Thrift exceptions of the metastore, FileError and what Spark raises."""

    def __init__(self, spark: SparkSession, name: str, uri: str, work: Work | None = None, alias: str | None = None) -> None:
        self._spark = spark
        self._name = name
        self._uri = uri
        self._work = work
        self._alias = alias
        self._readers: list[Work] = []

    @classmethod
    def forName(cls, spark: SparkSession, name: str, uri: str | None = None) -> AcidTable:  # noqa: N802  # as DeltaTable names it
        """Return the table `database.table`; `uri` is the metastore's, by default that of Spark's own configuration.

        NoSuchObjectException; NotTransactional for any other kind of table.
        """
        found = uri or metastore_uri(spark)
        database, _, table = name.replace("`", "").rpartition(".")
        full = f"{database or spark.catalog.currentDatabase()}.{table}".lower()
        with connect(found) as client:
            AcidTableInfo.load(client, *full.rsplit(".", 1))
        return cls(spark, full, found)

    @property
    def name(self) -> str:
        """`database.table`."""
        return self._name

    @classmethod
    def within(cls, work: Work, name: str) -> AcidTable:
        """Return a table whose operations belong to a transaction."""
        info = work.load(name)
        return cls(work.spark, info.full_name, "", work)

    def alias(self, name: str) -> AcidTable:
        """Return the table under a name by which conditions of a merge may call it."""
        return AcidTable(self._spark, self._name, self._uri, self._work, name)

    def __enter__(self) -> AcidTable:  # noqa: PYI034  # Self needs Python 3.11
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the snapshots of `toDF`: the cleaner may remove their files."""
        while self._readers:
            self._readers.pop().close()

    def toDF(  # noqa: N802  # as DeltaTable names it
        self, *, row_id: bool = False, partitions: str | None = None, lease: float = LEASE
    ) -> DataFrame:
        """Return the rows as they are now: data columns, partition columns, with `row_id` also `row__id`.

        `partitions` is a filter on partition columns that the metastore evaluates, as in get_partitions_by_filter; without it Spark prunes
        by directory names. The files are kept from the cleaner for `lease` seconds, or until `close`; within a transaction, until it ends.
        """
        work = self._work
        if work is None:
            work = Work(self._spark, self._uri, read_only=True)
            self._readers.append(work)
            work.release_after(lease)
        info = work.load(self._name)
        if row_id and info.is_insert_only:
            raise CanNotChange(f"{self._name} is insert-only: its rows have no ids")
        work.lock_to_read([info])
        return work.rows(info, row_id=row_id, partition_filter=partitions)

    def insert(self, rows: DataFrame) -> None:
        """Add rows; columns are matched by name, missing ones are null. WrongColumns."""
        self._insert(rows, LockType.SHARED_READ, overwrite=False)

    def insert_overwrite(self, rows: DataFrame) -> None:
        """Put rows in the place of all rows of the table, or of the partitions that they lie in. WrongColumns."""
        self._insert(rows, LockType.EXCL_WRITE, overwrite=True)

    def _insert(self, rows: DataFrame, lock: int, *, overwrite: bool) -> None:
        def run(work: Work, info: AcidTableInfo) -> None:
            work.lock(info, lock, DataOperationType.UPDATE if overwrite else DataOperationType.INSERT)
            statement = work.txn.next_statement(info.database, info.name)
            reached = writing.insert(work, info, writing.fitted(info, rows), statement=statement, overwrite=overwrite)
            _tell(work, info, reached, DataOperationType.INSERT)

        self._run(run)

    def update(self, condition: Expression | None = None, set: Mapping[str, Expression] | None = None) -> int:  # noqa: A002  # DeltaTable's
        """Change columns of the rows that fulfil a condition (None: all); return how many there were. CanNotChange, CanNotKeep."""
        values = dict(set or {})

        def run(work: Work, info: AcidTableInfo) -> int:
            with self._matched(work, info, condition) as rows:
                _check_settable(info, values)
                check_kept(work, info, rows, values)
                given = rows.select(*(_column(values[name]).alias(name) if name in values else F.col(name) for name in info.schema.names))
                changed = given.select(*(
                    writing.stored(info, name, F.col(name), given.schema[name].dataType) if name in values else F.col(name)
                    for name in info.schema.names
                ))
                return _replace(work, info, rows, changed, DataOperationType.UPDATE)

        return self._run(run)

    def delete(self, condition: Expression | None = None) -> int:
        """Remove the rows that fulfil a condition (None: all); return how many there were. CanNotChange."""

        def run(work: Work, info: AcidTableInfo) -> int:
            with self._matched(work, info, condition) as rows:
                return _replace(work, info, rows, None, DataOperationType.DELETE)

        return self._run(run)

    def merge(self, source: DataFrame, condition: Expression) -> MergeBuilder:
        """Begin a merge of `source` into the table; see `MergeBuilder`. Conditions name columns by `alias`es or, where clear, alone."""
        return MergeBuilder(self, source, condition, self._alias)

    @contextmanager
    def _matched(self, work: Work, info: AcidTableInfo, condition: Expression | None) -> Iterator[DataFrame]:
        """Lock the table and yield the rows to change with their ids, computed once."""
        lock_to_change(work, info)
        rows = work.rows(info, row_id=True)
        found = (rows if condition is None else rows.where(condition)).persist(StorageLevel.MEMORY_AND_DISK)
        try:
            yield found
        finally:
            found.unpersist()

    def _run(self, operation: Callable[[Work, AcidTableInfo], T]) -> T:
        """Run an operation in the table's transaction, or in one of its own that is committed or aborted. DoesNotFit."""
        if self._work is not None:
            with told():
                return operation(self._work, self._work.load(self._name))
        work = Work(self._spark, self._uri)
        with work.txn, told():
            return operation(work, work.load(self._name))

    def compact(self, kind: str = "major", partition: str | None = None, *, pool: str | None = None) -> int:
        """Queue a compaction, `major` or `minor`, of the table or a partition `k=v/..`; return its id in `SHOW COMPACTIONS`.

        A worker (`metastore compactor`) of the pool does it. Raises CanNotChange when one is queued already.
        """
        database, table = self._name.rsplit(".", 1)
        number = next(number for number, name in KINDS.items() if name == kind.lower())
        request = CompactionRequest(dbname=database, tablename=table, partitionname=partition, type=number, poolName=pool)
        with connect(self._uri or metastore_uri(self._spark)) as client:
            answer = client.compact2(request)
        if not answer.accepted:
            raise CanNotChange(f"{self._name}: {answer.errormessage or answer.state}")
        return int(answer.id)

    def history(self) -> DataFrame:
        """Return the compactions of the table, newest first: id, partition, type, state, worker, times in milliseconds, error."""
        database, table = self._name.rsplit(".", 1)
        with connect(self._uri or metastore_uri(self._spark)) as client:
            found = client.show_compact(ShowCompactRequest(dbName=database, tbName=table)).compacts
        rows = [
            (each.id, each.partitionname, KINDS.get(each.type), each.state, each.workerid, each.enqueueTime, each.start, each.endTime,
             each.errorMessage)
            for each in sorted(found, key=lambda each: -(each.id or 0)) if (each.dbname, each.tablename) == (database, table)
        ]
        return self._spark.createDataFrame(
            rows, "id bigint, partition string, type string, state string, worker string, enqueued bigint, started bigint, ended bigint, "
            "error string",
        )

    def detail(self) -> DataFrame:
        """Return one row: name, location, kind, columns it is partitioned and bucketed by, files, bytes, newest write id, properties."""

        def run(work: Work, info: AcidTableInfo) -> DataFrame:
            snapshot = work.snapshot(info)
            selected = work.selected(info, snapshot)
            files = sum(len(each.inserts) + len(each.deletes) + len(each.originals) + len(each.growing) for each in selected)
            row = (
                info.full_name, info.location, "insert_only" if info.is_insert_only else "full", info.partition_columns.names,
                info.bucket_columns, info.buckets, files, sum(each.bytes for each in selected),
                snapshot.write_ids.high_watermark, info.parameters,
            )
            return self._spark.createDataFrame(
                [row], "name string, location string, kind string, partitionColumns array<string>, bucketColumns array<string>, "
                "buckets int, numFiles bigint, sizeInBytes bigint, writeId bigint, properties map<string,string>",
            )

        return self._run(run)


def lock_to_change(work: Work, info: AcidTableInfo) -> None:
    """Lock a table against all other writers that update or delete. CanNotChange for an insert-only table."""
    if info.is_insert_only:
        raise CanNotChange(f"{info.full_name} is insert-only: rows can be added and overwritten, not updated, deleted or merged")
    work.lock(info, LockType.EXCL_WRITE, DataOperationType.UPDATE)


def _check_settable(info: AcidTableInfo, values: Mapping[str, Expression]) -> None:
    fixed = {*info.partition_columns.names, *info.bucket_columns}
    for name in values:
        if name not in info.schema.names:
            raise writing.WrongColumns(f"{info.full_name} has no column {name}; its columns are {', '.join(info.schema.names)}")
        if name in fixed:
            raise CanNotChange(f"{info.full_name}: {name} says in which partition or bucket a row lies; delete the row and insert it again")


def _column(value: Expression) -> Column:
    return F.expr(value) if isinstance(value, str) else value


def _replace(work: Work, info: AcidTableInfo, gone: DataFrame, new: DataFrame | None, operation: int) -> int:
    """Write delete events for rows and rows in their place; return how many went."""
    count = gone.count()
    if count:
        statement = work.txn.next_statement(info.database, info.name)
        reached = writing.delete(work, info, gone.select(ROW_ID, *info.partition_columns.names), statement=statement)
        if new is not None:
            writing.insert(work, info, new, statement=statement)
        _tell(work, info, reached, operation)
    return count


def _tell(work: Work, info: AcidTableInfo, partitions: list[str], operation: int) -> None:
    """Tell the metastore what was written, before the commit."""
    statistics.forget(work.txn, info.table, partitions)
    if partitions:
        work.txn.wrote_partitions(info.database, info.name, partitions, operation)
