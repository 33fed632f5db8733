"""Hive's transactional tables as a Python data source, for SQL and for `spark.read.format`. Needs Spark 4.

    register(spark)
    spark.read.format("hive_acid").option("table", "db.t").load().createOrReplaceTempView("t")

    df.write.format("hive_acid").option("table", "db.t").mode("append").save()
    stream.writeStream.format("hive_acid").option("table", "db.t").option("checkpointLocation", "/checkpoints/t").start()

Rows are read and written by Python on the executors, which read one bucket of a partition in a task; `AcidTable` does it by Spark's own ORC
source and is faster. Options: `table`, `uri` of the metastore (by default the one of the session that registered), `columns`, a list of the
columns to read, separated by commas, `partitions`, a filter by which the metastore chooses partitions, as in get_partitions_by_filter.

The format takes no filters from Spark (`pushFilters`, since 4.1): Spark keeps a plan with a filter for the next query of the same
DataFrame, which may have another filter. By default it refuses a reader that takes filters.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from metastore.acid.folders.table import Folder
from metastore.spark.session.catalog import AcidTableInfo, NeedsSpark4, ddl_type, metastore_uri, split_table_name

try:
    from pyspark.sql.datasource import (
        DataSource,
        DataSourceReader,
        DataSourceStreamWriter,
        DataSourceWriter,
        InputPartition,
    )
except ModuleNotFoundError as error:
    raise NeedsSpark4("the format hive_acid needs Spark 4, with which Python data sources came; on Spark 3.5 use AcidTable") from error

from metastore.acid.buckets import buckets
from metastore.acid.files import FsspecFiles
from metastore.acid.folders.selecting import select
from metastore.acid.rewriting.unchanged import check_unchanged
from metastore.acid.transactions import Agent, Transaction, component
from metastore.acid.values.null_keys import NullKeys
from metastore.client import connect
from metastore.idl import DataOperationType, LockType
from metastore.rules.transactions.acid_directories import SeenWriteIds
from metastore.spark.data_source_writing import HiveAcidStreamWriter, HiveAcidWriter, WriteRequest
from metastore.spark.reading.arrow import arrow_schema
from metastore.spark.reading.reading import time_zone
from metastore.spark.session.heartbeats import Heartbeats
from metastore.spark.session.zones import local_zone
from metastore.spark.transaction.readers import agent_of_format

if TYPE_CHECKING:
    import pyarrow as pa


def register(spark: SparkSession) -> None:
    """Make `hive_acid` known to a session.

    Where the environment has METASTORE_URI, Spark has found the format by itself (`pyspark_hive_acid`); ValueError if that is of another
    metastore than the session's, or the machine's zone is not the JVM's. ValueError too where Spark refuses it to a second session.
    """
    uri, zone, agent = metastore_uri(spark), time_zone(spark), agent_of_format(spark)

    class Source(HiveAcidDataSource):
        default_uri = uri
        zone_name = zone
        reading_agent = agent

    try:
        spark.dataSource.register(Source)
    except AnalysisException as error:
        if "ALREADY_EXISTS" not in str(error):
            raise
        _check_found(uri, zone)


def _check_found(uri: str, zone: str) -> None:
    """Raise ValueError where the format that Spark has found itself is not the session's."""
    found = os.environ.get("METASTORE_URI", "")
    if not found:
        raise ValueError(
            "Spark accepts a Python data source in only one session of a program, and another session has hive_acid: use that session, "
            "or AcidTable, which works in all"
        )
    if found != uri:
        raise ValueError(f"METASTORE_URI={found} makes the format hive_acid use another metastore than the session's, {uri}: unset it")
    if local_zone() != zone:
        raise ValueError(f"METASTORE_URI is set, so hive_acid uses this machine's time zone {local_zone()}, not the JVM's {zone}: unset it")


class HiveAcidDataSource(DataSource):
    """One transactional table."""

    default_uri = ""
    zone_name = "UTC"
    reading_agent: Agent | None = None
    """The owner of the transactions of readers, if the program is known."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "hive_acid"

    def _table(self) -> AcidTableInfo:
        with connect(self._uri) as client:
            return AcidTableInfo.load(client, *_names(self.options))

    @property
    def _uri(self) -> str:
        found = self.options.get("uri") or self.default_uri
        if not found:
            raise ValueError("no metastore is known: register(spark) finds the session's, or set the option uri=thrift://HOST:9083")
        return str(found)

    def schema(self) -> str:
        """Return the columns as DDL. NotTransactional, NoSuchObjectException; ValueError for an unknown one in the option `columns`."""
        table = self._table().table
        there = {column.name: f"`{column.name}` {ddl_type(column.type)}" for column in [*table.sd.cols, *(table.partitionKeys or [])]}
        wanted = [name.strip().lower() for name in self.options.get("columns", "").split(",") if name.strip()]
        if unknown := [name for name in wanted if name not in there]:
            raise ValueError(f"{table.dbName}.{table.tableName} has no column {', '.join(unknown)}; its columns are {', '.join(there)}")
        return ", ".join(there[name] for name in wanted or there)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader, which plans and reads."""
        return HiveAcidReader(self._uri, self._table(), schema, self.zone_name, self.options.get("partitions"), self.reading_agent)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return the writer of a DataFrame. WrongColumns, CanNotPlace."""
        return HiveAcidWriter(WriteRequest.of(self._uri, self._table(), schema, self.zone_name, self.options, overwrite=overwrite))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802  # Spark's name
        """Return the writer of a stream's batches. WrongColumns, CanNotPlace."""
        return HiveAcidStreamWriter(
            WriteRequest.of(self._uri, self._table(), schema, self.zone_name, self.options, overwrite=overwrite, stream=True)
        )


def _names(options: Any) -> tuple[str, str]:
    database, table = split_table_name(options.get("table", ""))
    if database is None:
        raise ValueError('the option table has to name a database and a table: .option("table", "database.table")')
    return database, table


@contextmanager
def _naming_the_table(table: AcidTableInfo) -> Iterator[None]:
    try:
        yield
    except NullKeys as error:
        raise NullKeys(f"{table.full_name}: {error} (the option columns selects the columns to read)") from error


@dataclass
class BucketTask(InputPartition):
    """The files that one task reads."""

    folder: Folder
    files: buckets.Bucket
    write_ids: SeenWriteIds
    transaction: int
    delete_directories: Sequence[str] = ()

    def deletes(self) -> list[str]:
        """Return the files of delete events that may concern the rows: the files of all buckets where rows are in another bucket's file."""
        from metastore.acid.orc.orc_files import open_orc
        from metastore.acid.orc.orc_footer import footer_of
        from metastore.acid.orc.own_bucket import named

        if self.delete_directories:
            found = (named(footer_of(open_orc(path))) for path, length in self.files.inserts if length is None)
            if any(each is not None and each.bucket != self.files.number for each in found):
                listed = [status for directory in self.delete_directories for status in FsspecFiles().list(directory)]
                return [status.path for status in listed if status.length and buckets.of_file(status.name) is not None]
        return self.files.deletes


class HiveAcidReader(DataSourceReader):
    """A reader that plans one task for each bucket, and reads it without Spark's help."""

    def __init__(
        self,
        uri: str,
        table: AcidTableInfo,
        schema: StructType,
        zone: str,
        partition_filter: str | None = None,
        agent: Agent | None = None,
    ) -> None:
        if table.is_insert_only:
            raise ValueError(f"{table.full_name} is insert-only: read it with AcidTable.toDF")
        self._uri = uri
        self._table = table
        self._schema = schema
        self._zone = zone
        self._keys = {key.name: key.type for key in table.table.partitionKeys or []}
        self._filter = partition_filter
        self._agent = agent

    def partitions(self) -> Sequence[InputPartition]:
        """Take a snapshot and choose the files of each bucket.

        The snapshot's transaction stays open: the tasks keep it alive while they read, and it ends by its time-out when none reads any
        more, or when the program changes the table (`give_way`).
        """
        database, name = self._table.database, self._table.name
        txn = Transaction.begin(self._uri, agent=self._agent, read_only=True)
        try:
            txn.lock([component(database, name, LockType.SHARED_READ, DataOperationType.SELECT)])
            check_unchanged(self._table.table, txn.call(lambda client: AcidTableInfo.read(client, database, name)).table)
            snapshot = txn.snapshots([(database, name)])[database, name]
            folders = txn.call(lambda client: self._table.folders(client, self._filter))
            found = select(FsspecFiles(), folders, snapshot, insert_only=False)
        except BaseException:
            txn.abort()
            raise
        txn.leave_open()
        return [
            BucketTask(each.folder, files, snapshot.write_ids, txn.id, each.delete_directories())
            for each in found
            for files in each.by_bucket()
        ] or [BucketTask(Folder(self._table.location), buckets.Bucket(0), snapshot.write_ids, txn.id)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one bucket."""
        import pyarrow as pa

        from metastore.acid.orc.orc_files import cast, event_schema, read_events, read_original
        from metastore.acid.rewriting.deleted import Deleted, kept
        from metastore.acid.rewriting.portions import repeated

        assert isinstance(partition, BucketTask)
        given = dict(zip(self._keys, partition.folder.values, strict=False))
        wanted = arrow_schema(self._schema)
        events = event_schema(pa.struct([field for field in wanted if field.name not in self._keys]))
        columns = [(column.name, column.type) for column in self._table.table.sd.cols]
        files = partition.files
        with Heartbeats(self._uri, partition.transaction), _naming_the_table(self._table):
            gone = Deleted.read(partition.deletes(), partition.write_ids)
            sources = [read_events(path, events, self._zone, columns=columns, length=length) for path, length in files.inserts]
            sources += [read_original(each, events, self._zone, columns=columns) for each in files.originals]
            for source in sources:
                for batch in kept(source, gone, partition.write_ids):
                    rows = batch.column("row")
                    values = [
                        cast(repeated(self._keys[field.name], given[field.name], len(rows)), field.type, self._zone)
                        if field.name in given
                        else rows.field(rows.type.get_field_index(field.name))
                        for field in wanted
                    ]
                    yield pa.record_batch(values, schema=wanted) if values else pa.record_batch([pa.nulls(len(rows))], names=["_"])
