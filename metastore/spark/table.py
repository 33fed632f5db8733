"""A Hive transactional table on Spark, in the manner of `DeltaTable`.

    table = AcidTable.forName(spark, "sales.orders")
    table.toDF().where("day = '2024-05-01'").show()
    table.update("id = 7", {"amount": "amount * 2"})
    table.merge(changes, "id = source.id").whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()

Each writing call is one transaction of its own, unless the table comes from `transaction(spark)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import StructType

from metastore.client import connect
from metastore.idl import CompactionRequest, CompactionType, DataOperationType, ShowCompactRequest
from metastore.spark.checking import Finding, findings
from metastore.spark.definition import making
from metastore.spark.definition.builder import TableBuilder
from metastore.spark.definition.tables import defined
from metastore.spark.reading.misplaced import by_spark
from metastore.spark.reading.reading import FOLDER, row_id_name
from metastore.spark.session.assignment import naming_the_column, stored
from metastore.spark.session.catalog import AcidTableInfo, metastore_uri, table_name
from metastore.spark.transaction.readers import LEASE, Reader
from metastore.spark.transaction.spark_transaction import CanNotChange, SparkTransaction
from metastore.spark.writing import writing
from metastore.spark.writing.clauses import TARGET, Expression, field, judged_by_spark, quoted, set_columns, wholly_set
from metastore.spark.writing.constraints import default
from metastore.spark.writing.faithful import check_kept
from metastore.spark.writing.inserting import insert
from metastore.spark.writing.merging import MergeBuilder
from metastore.spark.writing.statements import Statement

T = TypeVar("T")
KINDS = {CompactionType.MINOR: "minor", CompactionType.MAJOR: "major", CompactionType.REBALANCE: "rebalance"}


class AcidTable:
    """One transactional table. Reading and writing calls raise the Thrift exceptions of the metastore, FileError and Spark's errors."""

    def __init__(
        self,
        spark: SparkSession,
        database: str,
        table: str,
        uri: str,
        transaction: SparkTransaction | None = None,
        alias: str | None = None,
    ) -> None:
        self._spark = spark
        self._database = database
        self._table = table
        self._uri = uri
        self._transaction = transaction
        self._alias = alias or TARGET
        self._readers: list[Reader] = []

    @classmethod
    def forName(cls, spark: SparkSession, name: str, uri: str | None = None) -> AcidTable:  # noqa: N802  # as DeltaTable names it
        """Return the table `database.table`; `uri` is the metastore's, by default from Spark's own configuration.

        A part of the name with other characters than letters, digits and `_` is in back quotes. ValueError for an invalid name,
        NoSuchObjectException; NotTransactional for any other kind of table.
        """
        found = uri or metastore_uri(spark)
        database, table = table_name(spark, name)
        with connect(found) as client:
            AcidTableInfo.load(client, database, table)
        return cls(spark, database, table, found)

    @classmethod
    def create(
        cls,
        spark: SparkSession,
        name: str,
        schema: str | StructType,
        *,
        if_not_exists: bool = False,
        replace: bool = False,
        uri: str | None = None,
        **options: Any,
    ) -> AcidTable:
        """Make an empty table and return it.

        `schema` is text as in Hive's CREATE TABLE, `id bigint NOT NULL, name varchar(20) COMMENT 'who'`, with constraints, or a schema of
        Spark. Options: `partitioned_by="day date"` or columns of the schema by name, `clustered_by=["id"]` with `buckets=4`,
        `sorted_by`, `comment`, `properties`, `location`, `insert_only`, and for insert-only tables `file_format`: orc, parquet, textfile,
        avro or jsonfile. Where the table is there, `if_not_exists` returns it, and `replace` empties it in one transaction and gives it the
        new properties. AlreadyExistsException, WrongDefinition, WrongStatement, and the Thrift exceptions of the metastore.
        """
        found = uri or metastore_uri(spark)
        making.make(spark, found, defined(*table_name(spark, name), schema, **options), if_not_exists=if_not_exists, replace=replace)
        return cls.forName(spark, name, found)

    @classmethod
    def createFrom(  # noqa: N802  # as `create`
        cls,
        frame: DataFrame,
        name: str,
        *,
        if_not_exists: bool = False,
        replace: bool = False,
        uri: str | None = None,
        **options: Any,
    ) -> AcidTable:
        """Make a table of the rows of a frame and return it; options and errors are those of `create` and `insert`.

        Where the insert fails the table is dropped. `if_not_exists` leaves an existing table unchanged, `replace` overwrites it.
        """
        spark = frame.sparkSession
        found = uri or metastore_uri(spark)
        definition = defined(*table_name(spark, name), frame.schema, **options)
        making.make_from(spark, found, definition, frame, if_not_exists=if_not_exists, replace=replace)
        return cls.forName(spark, name, found)

    @classmethod
    def builder(cls, spark: SparkSession, uri: str | None = None) -> TableBuilder[AcidTable]:
        """Begin a table that is described by chained methods; see `TableBuilder`."""
        return TableBuilder(partial(cls.create, spark, uri=uri))

    @property
    def name(self) -> str:
        """`database.table`."""
        return f"{self._database}.{self._table}"

    @classmethod
    def within(cls, transaction: SparkTransaction, database: str, table: str) -> AcidTable:
        """Return a table whose operations belong to a transaction."""
        info = transaction.load(database, table)
        return cls(transaction.spark, info.database, info.name, transaction.uri, transaction)

    def alias(self, name: str) -> AcidTable:
        """Return the table under a name by which conditions of a merge may call it."""
        return AcidTable(self._spark, self._database, self._table, self._uri, self._transaction, name)

    def __enter__(self) -> AcidTable:  # noqa: PYI034  # Self needs Python 3.11
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the snapshots of `toDF`: the cleaner may remove their files."""
        while self._readers:
            self._readers.pop().close()

    def toDF(  # noqa: N802  # as DeltaTable names it
        self, *, row_id: bool = False, partitions: str | None = None, lease: float = LEASE
    ) -> DataFrame:
        """Return the rows as they are now: data columns, partition columns, with `row_id` also `row__id`, the rows' ids.

        Where the table has a column of this name, the ids are `__metastore_row_id`. `partitions` is a filter on partition columns that the
        metastore evaluates, as in get_partitions_by_filter; without it Spark prunes by directory names. Within a transaction the rows can
        be computed until it ends. Outside a transaction the files are kept from the cleaner, and the table can not be dropped or
        overwritten, while Spark works and for `lease` seconds after its last job. That ends with `close`, or with the DataFrame and all
        that were made from it.
        """
        if self._transaction is not None:
            info = self._transaction.load(self._database, self._table)
            _check_row_ids(info, row_id=row_id)
            self._transaction.lock_to_read([info])
            return self._transaction.rows(info, row_id=row_id, partition_filter=partitions)
        reader = Reader(self._spark, self._uri, [(self._database, self._table)], lease)
        (info,) = reader.tables
        try:
            _check_row_ids(info, row_id=row_id)
        except CanNotChange:
            reader.close()
            raise
        frame = reader.rows(info, row_id=row_id, partition_filter=partitions)
        self._readers.append(reader)
        return frame

    def insert(self, rows: DataFrame) -> None:
        """Add rows; columns are matched by name, missing ones have their defaults, or are null.

        WrongColumns, DoesNotFit, ConstraintViolated, CanNotKeepConstraint.
        """
        self._run(lambda transaction, info: insert(transaction, info, rows))

    def insert_overwrite(self, rows: DataFrame, *, partitions: Sequence[str] = ()) -> None:
        """Replace all rows of the table, or of the partitions of the new rows. The errors of `insert`.

        `partitions` names, as `k=v/..`, further ones that are emptied, and made where they are missing. The overwrite waits for all readers
        and writers of the table, and they wait for it, as with Hive's `hive.txn.xlock.iow`: an insert that began before and committed
        afterwards would never be seen. In a transaction nothing else may be written to the table afterwards: CanNotChange.
        """
        self._run(lambda transaction, info: insert(transaction, info, rows, overwrite=True, partitions=partitions))

    def update(self, condition: Expression | None = None, set: Mapping[str, Expression] | None = None) -> int:  # noqa: A002  # DeltaTable's
        """Change columns of the rows that fulfil a condition (None: all); return the number of these rows.

        A row whose partition or bucket column is set moves to its new partition or bucket. Columns are named alone or with the table's
        alias (`target.amount`), with fields of structs after them; the word DEFAULT stands for a column's default. WrongColumns,
        CanNotChange, DoesNotFit, ConstraintViolated, CanNotKeepConstraint; CanNotKeep for rows with times of nanoseconds in columns that
        are not set.
        """

        def run(transaction: SparkTransaction, info: AcidTableInfo) -> int:
            values = set_columns(info, set or {}, self._alias, lambda name: default(self._spark, info, transaction.constraints(info), name))
            new = [(values[name] if name in values else field(self._alias, name)).alias(name) for name in info.schema.names]
            with self._matched(transaction, info, condition, new, DataOperationType.UPDATE) as (rows, number):
                check_kept(transaction, info, rows, wholly_set(info, set or {}, self._alias))
                changed = rows.select(
                    *(
                        stored(info, name, value, rows.schema[name].dataType) if name in values else value
                        for name, value in zip(info.schema.names, quoted(info.schema.names), strict=True)
                    )
                )
                return _replace(transaction, info, rows, changed, DataOperationType.UPDATE, number)

        return self._run(run)

    def delete(self, condition: Expression | None = None) -> int:
        """Remove the rows that fulfil a condition (None: all); return the number of these rows. CanNotChange."""

        def run(transaction: SparkTransaction, info: AcidTableInfo) -> int:
            with self._matched(transaction, info, condition, [], DataOperationType.DELETE) as (rows, number):
                return _replace(transaction, info, rows, None, DataOperationType.DELETE, number)

        return self._run(run)

    def merge(self, source: DataFrame, condition: Expression) -> MergeBuilder:
        """Begin a merge of `source` into the table; see `MergeBuilder`. Conditions name columns by `alias`es or, where clear, alone."""
        return MergeBuilder(self._run, source, condition, self._alias)

    @contextmanager
    def _matched(
        self, transaction: SparkTransaction, info: AcidTableInfo, condition: Expression | None, new: Sequence[Column], operation: int
    ) -> Iterator[tuple[DataFrame, int]]:
        """Lock the table and yield the `new` values of the rows to change, with their ids and folders, and the number of the statement.

        These rows are computed once. Spark refuses an aggregate in `new`, which would make one row of all, since the ids are beside it.
        """
        number = writing.lock_to_change(transaction, info, operation)
        rows = transaction.rows(info, row_id=True, folder=True).alias(self._alias)
        with judged_by_spark(self._spark, [condition]):
            found = rows if condition is None else rows.where(condition)
            changed = found.select(*new, row_id_name(info), FOLDER).persist(StorageLevel.MEMORY_AND_DISK)
            try:
                yield changed, number
            finally:
                changed.unpersist()

    def _run(self, operation: Callable[[SparkTransaction, AcidTableInfo], T]) -> T:
        """Run an operation in the table's transaction, or in one of its own that is committed or aborted."""
        if self._transaction is not None:
            with naming_the_column():
                return operation(self._transaction, self._transaction.load(self._database, self._table))
        transaction = SparkTransaction(self._spark, self._uri)
        with transaction.txn, naming_the_column():
            return operation(transaction, transaction.load(self._database, self._table))

    def compact(self, kind: str = "major", partition: str | None = None, *, pool: str | None = None) -> int:
        """Queue a compaction, `major` or `minor`, of the table or a partition `k=v/..`; return its id in `SHOW COMPACTIONS`.

        A worker (`metastore compactor`) of the pool does it. CanNotChange when one is queued already, for an unknown
        kind, and for a partition that is not there.
        """
        number = {name: number for number, name in KINDS.items()}.get(kind.lower())
        if number is None:
            raise CanNotChange(f"{self.name}: there is no compaction of the kind {kind!r}; the kinds are {', '.join(KINDS.values())}")
        with connect(self._uri) as client:
            if partition is not None:
                partition = AcidTableInfo.load(client, self._database, self._table).existing_partition(client, partition)
            request = CompactionRequest(
                dbname=self._database,
                tablename=self._table,
                partitionname=partition,
                type=number,
                poolName=pool,
            )
            answer = client.compact2(request)
        if not answer.accepted:
            raise CanNotChange(f"{self.name}: {answer.errormessage or answer.state}")
        return int(answer.id)

    def history(self) -> DataFrame:
        """Return the compactions of the table, newest first: id, partition, type, state, worker, times in milliseconds, error."""
        with connect(self._uri) as client:
            found = client.show_compact(ShowCompactRequest(dbName=self._database, tbName=self._table)).compacts
        rows = [
            (
                each.id,
                each.partitionname,
                KINDS.get(each.type),
                each.state,
                each.workerid,
                each.enqueueTime,
                each.start,
                each.endTime,
                each.errorMessage,
            )
            for each in sorted(found, key=lambda each: -(each.id or 0))
            if (each.dbname, each.tablename) == (self._database, self._table)
        ]
        return self._spark.createDataFrame(
            rows,
            "id bigint, partition string, type string, state string, worker string, enqueued bigint, started bigint, ended bigint, "
            "error string",
        )

    def detail(self) -> DataFrame:
        """Return one row: name, location, kind, columns it is partitioned and bucketed by, files, bytes, newest write id, properties."""

        def run(transaction: SparkTransaction, info: AcidTableInfo) -> DataFrame:
            snapshot = transaction.snapshot(info)
            selected = transaction.selected(info, snapshot)
            files = sum(len(each.inserts) + len(each.deletes) + len(each.originals) + len(each.growing) for each in selected)
            row = (
                info.full_name,
                info.location,
                "insert_only" if info.is_insert_only else "full",
                info.partition_columns.names,
                info.bucket_columns,
                info.buckets,
                files,
                sum(each.bytes for each in selected),
                snapshot.write_ids.high_watermark,
                info.parameters,
            )
            return self._spark.createDataFrame(
                [row],
                "name string, location string, kind string, partitionColumns array<string>, bucketColumns array<string>, "
                "buckets int, numFiles bigint, sizeInBytes bigint, writeId bigint, properties map<string,string>",
            )

        return self._run(run)

    def check(self) -> DataFrame:
        """Return a row for each file that other readers read wrongly: partition, file, problem, advice."""

        def run(transaction: SparkTransaction, info: AcidTableInfo) -> list[Finding]:
            folders = [] if info.is_insert_only else transaction.txn.call(info.folders)
            return list(findings(transaction.files, folders, transaction.snapshot(info), by_spark(self._spark)))

        return self._spark.createDataFrame(self._run(run), "partition string, file string, problem string, advice string")


def _check_row_ids(info: AcidTableInfo, *, row_id: bool) -> None:
    if row_id and info.is_insert_only:
        raise CanNotChange(f"{info.full_name} is insert-only: its rows have no ids")


def _replace(
    transaction: SparkTransaction, info: AcidTableInfo, gone: DataFrame, new: DataFrame | None, operation: int, number: int
) -> int:
    """Write delete events for rows, and new rows in their place. Return the number of deleted rows."""
    count = gone.count()
    if count:
        with Statement(transaction, info, number) as statement:
            if new is not None:
                statement.insert(new)
            statement.delete(gone.select(row_id_name(info), FOLDER), operation)
            statement.place()
    return count
