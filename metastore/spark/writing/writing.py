"""Write rows and delete events of one statement into delta directories, exactly as Hive lays them out. This module never commits.

Spark writes into a hidden folder of the table, `.staging_txn_N_S`; once all files of the statement are there (`statements.py`), each is
renamed to its place:

    delta_W_W_S/bucket_B           rows that were inserted: bucket B is the task that wrote it, or the hash bucket of a bucketed table
    delete_delta_W_W_S/bucket_B    ids of deleted rows, sorted, in the bucket of the row
    base_W/bucket_B                an overwrite
    delta_W_W_S/000000_0           files of an insert-only table

W is the transaction's write id, S its statement. Source: Hive's OrcRecordUpdater, AcidUtils and the files that Hive 4.0.1 writes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the name that everyone gives it
from pyspark.sql.types import TimestampType

from metastore.acid.buckets import buckets
from metastore.acid.files import FileError, Status, in_parallel
from metastore.acid.folders import placing
from metastore.acid.folders.placing import remove_staged, staging
from metastore.acid.folders.table import Folder
from metastore.acid.orc.orc_files import cast
from metastore.acid.partitions import found_or_added
from metastore.acid.rewriting.event_file import SIZES
from metastore.acid.values.constraints import Constraints
from metastore.idl import LockType, Table
from metastore.rules.transactions.acid_directories import base_name, delta_name
from metastore.rules.values.partition_names import DEFAULT_PARTITION, make_partition_name, unescape
from metastore.rules.values.partition_values import WITH_ZONE, canonical, text_of
from metastore.rules.values.types import type_name
from metastore.spark.reading.plain_files import as_hive_writes, to_write
from metastore.spark.reading.reading import key_texts, row_id_name, time_zone
from metastore.spark.session.assignment import stored
from metastore.spark.session.catalog import AcidTableInfo, WrongColumns
from metastore.spark.session.orc_metadata import describe
from metastore.spark.transaction.spark_transaction import CanNotChange, SparkTransaction
from metastore.spark.writing.constraints import default
from metastore.spark.writing.hashing import bucket_of

BUCKET = "__metastore_bucket"
"""The column, and so the directory, of the bucket in the staging folder."""
KEY = "__metastore_key"
"""The beginning of names of partition columns, and so of directories, in the staging folder: their own names may be anything."""
ROW_NUMBERS = (1 << 33) - 1
"""The bits of `monotonically_increasing_id` that number the rows of a task."""
_PART = re.compile(r"part-(\d+)-")
_OF_SPARK = ("_SUCCESS", "_temporary", "_metadata", "_common_metadata")


def fitted(table: AcidTableInfo, new: DataFrame, constraints: Constraints) -> DataFrame:
    """Return rows with the table's columns in its order and types; missing ones have their defaults.

    WrongColumns, DoesNotFit, CanNotKeepConstraint.
    """
    given = table.given(new.columns)
    if unknown := [name for lowered, name in given.items() if lowered not in table.schema.names]:
        raise WrongColumns(f"{table.full_name} has no column {', '.join(unknown)}; its columns are {', '.join(table.schema.names)}")
    if missing := [name for name in table.partition_columns.names if name not in given]:
        raise WrongColumns(f"{table.full_name} is partitioned by {', '.join(missing)}, which the rows do not have")
    return new.select(
        *(
            stored(table, column.name, F.col(f"`{given[column.name]}`"), new.schema[given[column.name]].dataType)
            if column.name in given
            else default(new.sparkSession, table, constraints, column.name)
            for column in table.schema
        )
    )


@dataclass(frozen=True)
class StagedFiles:
    """Files of a staging folder, and where they belong."""

    name: str
    """The name of the directories, one in each partition, that the files belong into."""
    files: list[tuple[str, Status]]
    """(path of the directories below the staging folder, file)."""
    named: Callable[[list[str]], str]
    """A function that makes the name of a partition from the texts in the staging folder."""
    overwrite: bool = False
    emptied: tuple[str, ...] = ()
    """Partitions, by Hive's names, that an overwrite empties if they get no row."""


def insert(
    transaction: SparkTransaction, table: AcidTableInfo, new: DataFrame, part: str, *, statement: int, overwrite: bool = False
) -> StagedFiles:
    """Write rows (`fitted`) as inserted by this transaction into the staging folder of a part of its work. TooManyBuckets.

    With `overwrite` they replace all rows of the table, or of their partitions.
    """
    write_id = transaction.txn.write_id(table.database, table.name)
    name = base_name(write_id) if overwrite else delta_name(write_id, write_id, statement)
    keys = [f"{KEY}{place}" for place in range(len(table.partition_columns))]
    with_buckets, events = _placed(table, new.select("*", *_key_texts(table)), keys)
    if table.is_insert_only:
        others = [*keys, *([BUCKET] if with_buckets else [])]
        plain = events.select(*(F.col(f"`{column}`") for column in [*table.columns.names, *others]))
        rows, source, options = to_write(table, plain, others, time_zone(transaction.spark))
    else:
        source, options = "orc", orc_options(table)
        number = F.col(BUCKET) if with_buckets else F.spark_partition_id()
        rows = events.select(
            F.lit(0).alias("operation"),
            F.lit(write_id).cast("bigint").alias("originalTransaction"),
            _encoded(number, 0 if overwrite else statement).alias("bucket"),
            F.monotonically_increasing_id().bitwiseAND(F.lit(ROW_NUMBERS)).alias("rowId"),
            F.lit(write_id).cast("bigint").alias("currentTransaction"),
            F.struct(*(F.col(f"`{column}`") for column in table.columns.names)).alias("row"),
            *keys,
            *([BUCKET] if with_buckets else []),
        )
    by = [*keys, *([BUCKET] if with_buckets else [])]
    if by and not table.is_insert_only:
        rows = rows.sortWithinPartitions(*by, "rowId")
    found = write_staged(transaction, table, rows, part, source, options, by)
    if not table.is_insert_only:
        describe(transaction.spark, lengths(found), deletes=False)
    return StagedFiles(name, found, lambda texts: _hive_name(table, texts, time_zone(transaction.spark)), overwrite)


def _key_texts(table: AcidTableInfo) -> list[Column]:
    """Return the values of the partition columns as texts from which `_hive_name` makes names: timestamps in microseconds since 1970."""
    out = []
    for place, (column, key) in enumerate(zip(table.partition_columns, table.table.partitionKeys or [], strict=True)):
        value = F.col(f"`{column.name}`")
        if isinstance(column.dataType, TimestampType):
            value = F.unix_micros(value)
        elif type_name(key.type) == "char":
            value = F.rtrim(value)
        out.append(value.cast("string").alias(f"{KEY}{place}"))
    return out


def _hive_name(table: AcidTableInfo, texts: Sequence[str], zone: str) -> str:
    """Return Hive's name of the partition whose values Spark has put into texts."""
    named = []
    for text, key in zip(texts, table.table.partitionKeys, strict=True):
        if text != DEFAULT_PARTITION and type_name(key.type).startswith("timestamp"):
            moment = pa.array([int(text)], pa.timestamp("us", "UTC"))
            here = cast(moment, pa.timestamp("us"), "UTC" if type_name(key.type) == WITH_ZONE else zone)
            named.append(text_of(key.type, here[0].as_py()))
        else:
            named.append(canonical(key.type, text))
    return make_partition_name([key.name for key in table.table.partitionKeys], named)


def orc_options(table: AcidTableInfo) -> dict[str, str]:
    """Return the options of a table's ORC files; Snappy is read by every release of Hive."""
    sizes = {name: table.parameters[name] for name in SIZES if name in table.parameters}
    return {"compression": table.parameters.get("orc.compress", "snappy").lower(), **sizes}


def _placed(table: AcidTableInfo, new: DataFrame, keys: Sequence[str]) -> tuple[bool, DataFrame]:
    """Bring rows into the tasks that will write them; return whether each row has its hash bucket in a column. TooManyBuckets."""
    if table.buckets:
        if not table.is_insert_only:
            buckets.check_count(table.full_name, table.buckets)
        column = bucket_of(table, new)
        with_bucket = new.withColumn(BUCKET, column)
        return True, one_task_for_each(with_bucket, (*keys, BUCKET))
    return False, new if table.is_insert_only else _in_tasks(new)


def _in_tasks(rows: DataFrame) -> DataFrame:
    """Bring rows into as many tasks as row ids can number, and rows that Spark computes on the driver into one.

    On the driver Spark would compute the ids too, as if one task wrote the rows; after a `coalesce` it does not. Spark drops the first of
    two consecutive `coalesce` calls, which would be the user's own.
    """
    plan = rows._jdf.queryExecution().optimizedPlan()  # noqa: SLF001  # PySpark shows a plan as text alone
    if _kind(plan) == "LocalRelation":
        return rows.coalesce(1)
    while _kind(plan) == "Project":
        plan = plan.child()
    if _kind(plan) == "Repartition" and not plan.shuffle() and plan.numPartitions() <= buckets.MAX_BUCKETS:
        return rows
    return rows.coalesce(buckets.MAX_BUCKETS)


def _kind(plan: Any) -> str:
    return str(plan.getClass().getSimpleName())


def _encoded(bucket: Column, statement: int) -> Column:
    return (F.lit(buckets.encode(0, statement)) + bucket * F.lit(1 << 16)).cast("int")


def decoded(number: Column) -> Column:
    """Return the bucket that a row names, as `buckets.decode` does."""
    version = F.shiftrightunsigned(number, 29)
    return F.when(version == 1, F.shiftright(number, 16).bitwiseAND(F.lit(0xFFF))).otherwise(number)


def delete(transaction: SparkTransaction, table: AcidTableInfo, gone: DataFrame, part: str, *, statement: int) -> StagedFiles:
    """Write delete events for rows (ids and `__metastore_folder`) into the staging folder of a part of the transaction's work."""
    write_id = transaction.txn.write_id(table.database, table.name)
    keys = [F.expr(text).alias(f"{KEY}{place}") for place, text in enumerate(key_texts(table))]
    identity = F.col(row_id_name(table))
    by = [*(f"{KEY}{place}" for place in range(len(keys))), BUCKET]
    events = gone.select(
        F.lit(2).alias("operation"),
        identity["writeid"].alias("originalTransaction"),
        identity["bucketid"].alias("bucket"),
        identity["rowid"].alias("rowId"),
        F.lit(write_id).cast("bigint").alias("currentTransaction"),
        F.lit(None).cast(table.columns).alias("row"),
        *keys,
        decoded(identity["bucketid"]).alias(BUCKET),
    )
    events = one_task_for_each(events, by).sortWithinPartitions(*by, "originalTransaction", "bucket", "rowId")
    found = write_staged(transaction, table, events, part, "orc", orc_options(table), by)
    describe(transaction.spark, lengths(found), deletes=True)
    name = delta_name(write_id, write_id, statement, is_delete=True)
    return StagedFiles(name, found, lambda texts: make_partition_name(table.partition_columns.names, texts))


def one_task_for_each(rows: DataFrame, by: Sequence[str]) -> DataFrame:
    """Bring rows that agree in some columns into one task: they become one file. Given their number, Spark does not split tasks by size."""
    return rows.repartition(int(rows.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1), *(F.col(name) for name in by))


def write_staged(
    transaction: SparkTransaction,
    table: AcidTableInfo,
    rows: DataFrame,
    part: str,
    source: str,
    options: dict[str, str],
    by: Sequence[str] = (),
) -> list[tuple[str, Status]]:
    """Let Spark write into the staging folder; return (path of the directories below it, file) of all files, `part-N-..` of task N."""
    folder = staging(transaction.txn.id, table, part)
    try:
        writer = rows.write.format(source).mode("overwrite").options(**options).option("maxRecordsPerFile", 0)
        with as_hive_writes(transaction.spark, source):
            writer.option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false").partitionBy(*by).save(folder)
        return list(_below(transaction, folder, ""))
    except BaseException:
        remove_staged(transaction.files, folder)
        raise


def lengths(found: Iterable[tuple[str, Status]]) -> list[tuple[str, int]]:
    """Return (path, length) of files that were staged."""
    return [(status.path, status.length) for _, status in found]


def _below(transaction: SparkTransaction, folder: str, inner: str) -> Iterable[tuple[str, Status]]:
    """Yield the files of `write_staged`. FileError for any file that Spark does not write there: a skipped one would be lost."""
    directories = []
    for status in transaction.files.list(folder):
        if status.is_directory and status.name.startswith((f"{KEY}", f"{BUCKET}=")):
            directories.append(status)
        elif not status.is_directory and _PART.match(status.name):
            yield inner, status
        elif not status.name.startswith(".") and status.name not in _OF_SPARK:
            raise FileError(f"{status.path} is not a file that Spark writes; no file of the statement was moved")
    below = in_parallel(
        lambda status: list(_below(transaction, status.path, f"{inner}/{status.name}" if inner else status.name)), directories
    )
    for each in below:
        yield from each


def write_plain(transaction: SparkTransaction, table: AcidTableInfo, rows: DataFrame, target: Table) -> None:
    """Write rows of a table, as files without events, into a plain table of the same columns and format. FileError."""
    into = AcidTableInfo(target)
    keys = [f"{KEY}{place}" for place in range(len(table.partition_columns))]
    zone = time_zone(transaction.spark)
    plain = rows.select("*", *_key_texts(table)).select(*(F.col(f"`{column}`") for column in [*table.columns.names, *keys]))
    written, source, options = to_write(table, plain, keys, zone) if table.is_insert_only else (plain, "orc", {})
    found = write_staged(transaction, into, written, "plain", source, options, keys)
    by_texts = [(_parts(inner)[0], status) for inner, status in found]
    named = [(_hive_name(table, texts, zone) if texts else "", status) for texts, status in by_texts]
    folders = _folders(transaction, into, list(dict.fromkeys(name for name, _ in named)))
    for folder in folders.values():
        transaction.files.make(folder.location)
    in_parallel(lambda item: transaction.files.rename(item[1].path, f"{folders[item[0]].location}/{item[1].name}"), named)
    in_parallel(lambda folder: transaction.files.sync(folder.location, into.location), folders.values())
    remove_staged(transaction.files, staging(transaction.txn.id, into, "plain"))


def _folders(transaction: SparkTransaction, table: AcidTableInfo, names: Sequence[str], *, overwrite: bool = False) -> dict[str, Folder]:
    """Return the folders of partitions by Hive's names; new partitions are added to the metastore first."""
    if not table.table.partitionKeys:
        return {"": Folder(table.location)}
    partitions = transaction.txn.call(lambda client: found_or_added(client, table.table, names, overwrite=overwrite))
    return {name: table.folder(partitions[name]) for name in names}


def move(transaction: SparkTransaction, table: AcidTableInfo, staged: StagedFiles, made: list[str]) -> list[str]:
    """Give files their places, noting in `made` the directories first; return the names of the partitions. FileError."""
    by_partition: dict[str, list[tuple[str, int]]] = {}
    for inner, status in staged.files:
        texts, bucket = _parts(inner)
        partition = staged.named(texts) if texts else ""
        by_partition.setdefault(partition, []).append((status.path, task_of(status) if bucket is None else bucket))
    if staged.overwrite and not table.table.partitionKeys:
        by_partition.setdefault("", [])
    for partition in staged.emptied:
        by_partition.setdefault(partition, [])
    folders = _folders(transaction, table, list(by_partition), overwrite=staged.overwrite)

    def put(partition: str) -> None:
        target = f"{folders[partition].location}/{staged.name}"
        made.append(target)
        placing.place(transaction.files, table, target, by_partition[partition])

    in_parallel(put, by_partition)
    return sorted(folders[partition].name for partition in by_partition if partition)


def _parts(inner: str) -> tuple[list[str], int | None]:
    """Return the texts of the partition columns, and the bucket, from the directories of a file."""
    texts, bucket = [], None
    for directory in inner.split("/") if inner else []:
        column, _, text = directory.partition("=")
        if column == BUCKET:
            bucket = int(text)
        else:
            texts.append(unescape(text))
    return texts, bucket


def task_of(file: Status) -> int:
    """Return the number of the task that wrote a file. FileError for a file that Spark does not write."""
    match = _PART.match(file.name)
    if match is None:
        raise FileError(f"{file.path} is not a file that Spark writes")
    return int(match[1])


def lock_to_change(transaction: SparkTransaction, info: AcidTableInfo, *operations: int) -> int:
    """Lock a table against all other writers that update or delete, and return the number of the statement.

    `operations` (DataOperationType) are all that it does: the metastore asks for a privilege for each. CanNotChange for an insert-only
    table, or one that the transaction has overwritten.
    """
    if info.is_insert_only:
        raise CanNotChange(f"{info.full_name} is insert-only: rows can be added and overwritten, not updated, deleted or merged")
    statement = transaction.next_statement(info)
    transaction.lock(info, LockType.EXCL_WRITE, *operations)
    return statement
