"""Rows of a transactional table at a snapshot as a DataFrame: base and valid deltas without the rows that delete events name.

All of it is DataFrame work over Spark's own ORC source. Files that it can not read - those from before the
table was transactional, whose rows are numbered by their position, and growing ones - are read by `mapInArrow`.

ORC's schema evolution recognizes a transactional file by its six column names; a scan from which Spark prunes one of them fails. Every scan
therefore has a filter that needs all six, which costs far less than reading without pruning inside `row`.
Source: Hive's OrcRawRecordMerger and VectorizedOrcAcidRowBatchReader.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # the name that everyone gives it
from pyspark.sql.types import DataType, IntegerType, LongType, StringType, StructField, StructType

from metastore.acid.buckets.buckets import Original
from metastore.acid.files import in_parallel
from metastore.acid.folders.selecting import Selected, numbered
from metastore.acid.folders.table import Folder
from metastore.acid.transactions import TableSnapshot
from metastore.acid.values.characters import is_limited, limit_of
from metastore.acid.values.null_keys import has_maps
from metastore.acid.values.types import parts
from metastore.rules.transactions.acid_directories import SeenWriteIds
from metastore.rules.values.partition_names import DEFAULT_PARTITION, escape
from metastore.rules.values.types import type_name
from metastore.spark.reading.arrow import arrow_schema
from metastore.spark.reading.parquet_columns import by_types
from metastore.spark.reading.physical import Form, alike, as_read, is_as_table, is_nameless, kept_from_filters, null_keys_of
from metastore.spark.reading.plain_files import columns_read, format_to_read, lines_read
from metastore.spark.session.catalog import AcidTableInfo, ddl_type
from metastore.spark.session.java import java_class

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T", bound=tuple[Any, ...])
FOLDER = "__metastore_folder"
"""The column that holds the name `k=v/..` of a row's partition; "" in a table without partitions."""
_PLAIN = re.compile(r"[\w=/.,-]*", re.ASCII)
PLACE = "cast(rowId & 63 as int)"
"""SQL of the number of a row's bit among the 64 bits of its word."""
WHOLE = -1
"""The value in the place of a readable length: the whole file is readable."""
MAX_LISTED_WRITE_IDS = 1000
"""The most invalid write ids that a filter names one by one; more are excluded by a join."""


def event_schema(row: StructType) -> StructType:
    """Return the six columns of a transactional file."""
    return StructType(
        [
            StructField("operation", IntegerType()),
            StructField("originalTransaction", LongType()),
            StructField("bucket", IntegerType()),
            StructField("rowId", LongType()),
            StructField("currentTransaction", LongType()),
            StructField("row", row),
        ]
    )


def row_id_name(table: AcidTableInfo) -> str:
    """Return the column that holds a row's id: struct<writeid: bigint, bucketid: int, rowid: bigint>, as Hive names them.

    It is `row__id`, as in Hive, and `__metastore_row_id` in a table that has a column of that name itself.
    """
    return "__metastore_row_id" if "row__id" in map(str.lower, table.schema.names) else "row__id"


def rows(
    spark: SparkSession,
    table: AcidTableInfo,
    selected: Sequence[Selected],
    snapshot: TableSnapshot,
    *,
    row_id: bool,
    folder: bool = False,
) -> DataFrame:
    """Return the table's rows at a snapshot: data columns, partition columns; ids and `__metastore_folder` if asked for."""
    keys = partition_columns(table, time_zone(spark))
    if table.is_insert_only:
        return _plain_rows(spark, table, selected, keys)
    columns = [_shown(F.col("row")[column.name], column.type).alias(column.name) for column in table.table.sd.cols]
    columns += keys
    if row_id:
        columns.append(_row_id().alias(row_id_name(table)))
    if folder:
        columns.append(F.col(FOLDER))
    return _live(spark, table, selected, snapshot).select(*columns)


def _shown(value: Column, kind: str) -> Column:
    """Return a value with the texts of chars and varchars cut to the table's present lengths, as Hive shows them."""
    if not is_limited(kind):
        return value
    if (limit := limit_of(kind)) is not None:
        cut = value.substr(1, limit[1])
        return F.rtrim(cut) if limit[0] else cut
    inner = parts(kind)
    if kind.strip().lower().startswith("array"):
        return F.transform(value, lambda each: _shown(each, inner[0][1]))
    if kind.strip().lower().startswith("map"):
        return F.transform_values(value, lambda _, each: _shown(each, inner[1][1]))
    return F.when(value.isNotNull(), F.struct(*(_shown(value[name], each).alias(name) for name, each in inner)))


def live_events(spark: SparkSession, table: AcidTableInfo, selected: Selected, snapshot: TableSnapshot) -> DataFrame:
    """Return the events, six columns, of the rows of one folder that no delete event names."""
    return _live(spark, table, [selected], snapshot).select(*event_schema(table.columns).names)


def delete_events(spark: SparkSession, table: AcidTableInfo, selected: Selected, snapshot: TableSnapshot) -> DataFrame | None:
    """Return the events of delete deltas; None where there is no file."""
    found = _scan(spark, table, [(selected.folder, selected.deletes)], event_schema(table.columns))
    if found is None:
        return None
    return _valid(found, snapshot.write_ids, mixed=selected.mixed).select(*event_schema(table.columns).names)


def _live(spark: SparkSession, table: AcidTableInfo, selected: Sequence[Selected], snapshot: TableSnapshot) -> DataFrame:
    events = inserted_events(spark, table, selected, snapshot)
    deleted = _scan(spark, table, [(each.folder, each.deletes) for each in selected], event_schema(table.columns))
    if deleted is None:
        return events
    shared = ["originalTransaction", "bucket", *([FOLDER] if table.partition_columns.fields else [])]
    gone = (
        _valid(deleted, snapshot.write_ids, mixed=any(each.mixed for each in selected))
        .groupBy(*(F.col(name).alias(f"__gone_{name}") for name in shared), _word().alias("__gone_word"))
        .agg(F.bit_or(F.expr(f"shiftleft(1L, {PLACE})")).alias("__gone_rows"))
    )
    same = [F.col(name).between(F.col(f"__gone_{name}"), F.col(f"__gone_{name}")) for name in shared]
    same += [_word().between(F.col("__gone_word"), F.col("__gone_word")), F.expr(f"shiftright(__gone_rows, {PLACE}) & 1 = 1")]
    here = _packed("originalTransaction", "bucket", _word())
    there = _packed("__gone_originalTransaction", "__gone_bucket", F.col("__gone_word"))
    return events.join(gone, reduce(and_, same, here == there), "left_anti")


def _word() -> Column:
    """Return the number of a row's word of 64 rows. The deleted rows of a word are the bits of one number, so that few are joined."""
    return F.shiftright("rowId", 6)


def _packed(write_id: str, bucket: str, word: Column) -> Column:
    """Return an id as one number: Spark joins by one faster than by three. Two ids may have the same number."""
    return F.shiftleft(F.col(write_id), 44).bitwiseXOR(F.shiftleft(F.col(bucket).cast("bigint"), 24)).bitwiseXOR(word)


def _row_id() -> Column:
    return F.struct(F.col("originalTransaction").alias("writeid"), F.col("bucket").alias("bucketid"), F.col("rowId").alias("rowid"))


def inserted_events(spark: SparkSession, table: AcidTableInfo, selected: Sequence[Selected], snapshot: TableSnapshot) -> DataFrame:
    """Return the events of rows that were inserted, whether or not delete events name them: six columns and the folder."""
    schema = event_schema(table.columns)
    parts = []
    mixed = any(each.mixed for each in selected)
    for form, files in alike(spark, [(each.folder, each.inserts) for each in selected], _kinds(table), events=True):
        if is_nameless(form.names):
            for folder, paths in files:
                read = _in_arrow(spark, [(path, WHOLE) for path in paths], schema, _read_growing, table, form.null_keys)
                parts.append(_valid(_in_folder(read, folder), snapshot.write_ids, mixed=mixed))
            continue
        same = is_as_table(table.columns, form)
        scanned = _scan(spark, table, files, schema if same else event_schema(as_read(table.columns, form)))
        if scanned is not None:
            valid = _valid(scanned, snapshot.write_ids, mixed=mixed)
            parts.append(valid if same else valid.withColumn("row", F.struct(*_as_table(F.col("row"), table, form))))
    for each in selected:
        for null_keys, growing in _by_null_keys(spark, table, each.growing, events=True):
            read = _in_arrow(spark, growing, schema, _read_growing, table, null_keys)
            parts.append(_valid(_in_folder(read, each.folder), snapshot.write_ids, mixed=True))
        for null_keys, originals in _by_null_keys(spark, table, numbered(each.folder, each.originals), events=False):
            read = _in_arrow(spark, originals, schema, _read_originals, table, null_keys)
            parts.append(_in_folder(read, each.folder))
    if not parts:
        return spark.createDataFrame([], StructType([*schema.fields, StructField(FOLDER, StringType())]))
    return reduce(lambda left, right: left.unionByName(right), parts)


def _as_table(row: Column, table: AcidTableInfo, form: Form) -> list[Column]:
    """Return a table's columns out of a struct whose fields have the names of files, by position; columns that files lack are null."""
    places = enumerate(zip(form.names, table.columns, strict=False))
    found = [F.lit(None) if place in form.null_keys else row[name] for place, (name, _) in places]
    for place, old in form.changed:
        found[place] = kept_from_filters(found[place], old, table.table.sd.cols[place].type)
    found += [F.lit(None)] * (len(table.columns) - len(found))
    return _shielded(table, found, form.null_keys)


def _shielded(table: AcidTableInfo, values: Sequence[Column], null_keys: Collection[int]) -> list[Column]:
    """Return a table's columns; those that have maps with null keys fail the job that computes them."""
    said = "has maps with null keys, which Spark can not hold; read and set other columns, or let Hive do it"
    return [
        (F.raise_error(F.lit(f"{table.full_name}: column {column.name} {said}")) if place in null_keys else value)
        .cast(column.dataType)
        .alias(column.name)
        for place, (value, column) in enumerate(zip(values, table.columns, strict=True))
    ]


def _by_null_keys(spark: SparkSession, table: AcidTableInfo, files: Sequence[T], *, events: bool) -> list[tuple[frozenset[int], list[T]]]:
    """Group files that Python reads, (path, length) of events or Originals, by the places of their columns that have null keys."""
    if not has_maps(_kinds(table)):
        return [(frozenset(), list(files))] if files else []
    places = in_parallel(lambda file: null_keys_of(spark, file[0], events=events, length=file[1] if events else None), files)
    out: dict[frozenset[int], list[T]] = {}
    for file, found in zip(files, places, strict=True):
        out.setdefault(found, []).append(file)
    return list(out.items())


def _kinds(table: AcidTableInfo) -> list[str]:
    return [column.type for column in table.table.sd.cols]


def _valid(events: DataFrame, write_ids: SeenWriteIds, *, mixed: bool) -> DataFrame:
    """Keep the rows that the snapshot sees, where a file may hold more."""
    kept = complete(events)
    if not mixed:
        return kept
    kept = kept.where(F.col("currentTransaction") <= write_ids.high_watermark)
    unseen = sorted(number for number in write_ids.open | write_ids.aborted if number <= write_ids.high_watermark)
    if len(unseen) <= MAX_LISTED_WRITE_IDS:
        return kept.where(~F.col("currentTransaction").isin(unseen)) if unseen else kept
    spark = events.sparkSession
    hidden = spark.createDataFrame([(number,) for number in unseen], "__unseen bigint")
    return kept.join(F.broadcast(hidden), F.col("currentTransaction") == F.col("__unseen"), "left_anti")


def complete(events: DataFrame) -> DataFrame:
    """Keep all events by a filter that needs all columns, see the module's docstring."""
    return events.where(
        "operation >= 0 AND originalTransaction IS NOT NULL AND bucket >= 0 AND rowId >= 0 AND currentTransaction >= 0"
        " AND (row IS NULL) = (operation = 2)"
    )


def _scan(
    spark: SparkSession,
    table: AcidTableInfo,
    files: Sequence[tuple[Folder, Sequence[str]]],
    schema: StructType,
    source: str = "orc",
    options: dict[str, str] | None = None,
) -> DataFrame | None:
    """Read files with Spark's own source; add `__metastore_folder`.

    Spark's own discovery of partitions would put columns into the reader's schema, and ORC would no longer recognize the files as
    transactional. The partition is taken from the files' paths instead, by which Spark prunes files too. Folders elsewhere have scans of
    their own.
    """
    reader = spark.read.format(source).options(**(options or {})).schema(schema)
    usual: list[str] = []
    names: list[str] = []
    parts: list[DataFrame] = []
    for folder, paths in files:
        if not paths:
            continue
        if table.partition_columns.fields and folder.location == f"{table.location}/{folder.name}" and _is_flat(folder, paths):
            usual += paths
            names.append(folder.name)
        else:
            parts.append(_in_folder(reader.load(list(paths)), folder))
    if usual:
        escaped = not all(map(_PLAIN.fullmatch, names))
        folder_column = _folder_of(F.col("_metadata.file_path"), len(table.partition_columns), escaped=escaped)
        parts.append(reader.load(usual).select("*", folder_column))
    return reduce(lambda left, right: left.unionByName(right), parts) if parts else None


def _is_flat(folder: Folder, paths: Sequence[str]) -> bool:
    """Return whether all files are in directories directly below the folder, as in bases and deltas: paths are then read from their end."""
    return all(path.rpartition(f"/{folder.name}/")[2].count("/") == 1 for path in paths)


def _folder_of(path: Column, keys: int, *, escaped: bool) -> Column:
    """Return the name of the partition whose base or delta contains a file; paths are encoded as URIs."""
    name = F.substring_index(F.substring_index(path, "/", -(keys + 2)), "/", keys)
    return (F.url_decode(F.replace(name, F.lit("+"), F.lit("%2B"))) if escaped else name).alias(FOLDER)


def key_texts(table: AcidTableInfo) -> list[str]:
    """Return SQL for the texts of the partition columns of rows whose folder is known, as the partition's name spells them."""
    out = []
    for place, column in enumerate(table.partition_columns):
        part = f"substring_index(substring_index({FOLDER}, '/', {place - len(table.partition_columns)}), '/', 1)"
        text = f"substring({part}, {len(escape(column.name)) + 2})"
        out.append(f"if(contains({text}, '%'), url_decode(replace({text}, '+', '%2B')), {text})")
    return out


def partition_columns(table: AcidTableInfo, zone: str) -> list[Column]:
    """Return the partition columns of rows whose folder is known; null for a text that is not a value of the type, as in Hive.

    Timestamps are wall-clock times of `zone`, as in data columns, not of the session's zone.
    """
    keys = zip(key_texts(table), table.partition_columns, table.table.partitionKeys or [], strict=True)
    return [F.expr(_value(text, column.dataType, key.type, zone)).alias(column.name) for text, column, key in keys]


def _value(text: str, wanted: DataType, kind: str, zone: str) -> str:
    value = f"nullif({text}, '{DEFAULT_PARTITION}')"
    name = type_name(kind)
    if name == "char":
        return f"rtrim({value})"
    if name == "timestamp":
        value = f"concat({value}, if(length({text}) <= {len('2024-07-01')}, ' 00:00:00', ''), ' {zone}')"
    return value if isinstance(wanted, StringType) else f"try_cast({value} as {ddl_type(kind)})"


def _in_folder(rows: DataFrame, folder: Folder) -> DataFrame:
    """Add the same columns as `_scan`, for the rows of one folder."""
    return rows.select("*", F.lit(folder.name).alias(FOLDER))


def _plain_rows(spark: SparkSession, table: AcidTableInfo, selected: Sequence[Selected], keys: Sequence[Column]) -> DataFrame:
    files = [(each.folder, [*each.originals, *each.inserts]) for each in selected]
    columns = [_shown(F.col(f"`{column.name}`"), column.type).alias(column.name) for column in table.table.sd.cols]
    parts = [found.select(*columns, *keys) for found in plain_scans(spark, table, files)]
    return reduce(lambda left, right: left.unionByName(right), parts) if parts else spark.createDataFrame([], table.schema)


def plain_scans(spark: SparkSession, table: AcidTableInfo, files: Sequence[tuple[Folder, Sequence[str]]]) -> Iterator[DataFrame]:
    """Yield the rows of files without events: columns of ORC are matched by position, of other formats by name, as in Hive."""
    zone = time_zone(spark)
    source, options, columns = format_to_read(table, zone)
    if source == "parquet":
        for typed in by_types(spark, table, files, zone):
            if (found := _scan(spark, table, typed.files, typed.schema, source, options)) is not None:
                yield found.select(*typed.columns, FOLDER)
        return
    if source != "orc":
        if (found := _scan(spark, table, files, columns, source, options)) is not None:
            yield lines_read(table, found).select(*columns_read(table, zone), FOLDER)
        return
    for form, listed in alike(spark, files, _kinds(table), events=False):
        same = is_as_table(table.columns, form)
        found = _scan(spark, table, listed, table.columns if same else as_read(table.columns, form))
        if found is not None and same:
            yield found
        elif found is not None:
            row = F.struct(*(F.col(f"`{name}`") for name in as_read(table.columns, form).names))
            yield found.select(*_as_table(row, table, form), FOLDER)


def _in_arrow(
    spark: SparkSession,
    files: Iterable[tuple[Any, ...]],
    schema: StructType,
    read: Callable[..., Any],
    table: AcidTableInfo,
    null_keys: Collection[int],
) -> DataFrame:
    """Read event or original files on the executors, one task each. Columns at the places `null_keys` fail the job that computes them."""
    listed = [tuple(each) for each in files]
    fields = ", ".join(f"f{number} {'string' if isinstance(value, str) else 'bigint'}" for number, value in enumerate(listed[0]))
    arrow = arrow_schema(schema)
    columns = [(column.name, column.type) for column in table.table.sd.cols]
    zone = time_zone(spark)
    shielded = frozenset(columns[place][0].lower() for place in null_keys if place < len(columns))

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for each in batch.to_pylist():
                yield from read(tuple(each.values()), columns, arrow, zone, shielded)

    found = spark.createDataFrame(listed, fields).repartition(len(listed)).mapInArrow(run, schema)
    if not null_keys:
        return found
    values = [F.col("row")[column.name] for column in table.columns]
    return found.withColumn("row", F.struct(*_shielded(table, values, null_keys)))


def time_zone(spark: SparkSession) -> str:
    """Return the zone of the wall-clock times that Spark's ORC writer and reader use: the JVM's."""
    return str(java_class(spark, "java.util.TimeZone").getDefault().getID())


def _read_growing(
    file: tuple[Any, ...], columns: Sequence[tuple[str, str]], arrow: Any, zone: str, shielded: frozenset[str]
) -> Iterator[pa.RecordBatch]:
    from metastore.acid.orc.orc_files import read_events

    path, length = file
    return read_events(path, arrow, zone, columns=columns, length=None if length == WHOLE else length, shielded=shielded)


def _read_originals(
    file: tuple[Any, ...], columns: Sequence[tuple[str, str]], arrow: Any, zone: str, shielded: frozenset[str]
) -> Iterator[pa.RecordBatch]:
    from metastore.acid.orc.orc_files import read_original

    return read_original(Original(*file), arrow, zone, columns=columns, shielded=shielded)
