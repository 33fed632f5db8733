"""Refuse to rewrite values that would change: times finer than microseconds, columns whose values would be lost.

Spark's times hold microseconds, Hive's nanoseconds. ORC's reader shows a time as text in full, by which such times are found. This module
writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial, reduce
from operator import and_, or_
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # the name that everyone gives it
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructField, StructType, TimestampType

from metastore.acid.files import in_parallel
from metastore.acid.folders.selecting import Selected
from metastore.acid.transactions import TableSnapshot
from metastore.acid.values.evolution import loss
from metastore.acid.values.null_keys import has_maps
from metastore.spark.reading.parquet_columns import schema_of
from metastore.spark.reading.physical import columns_of, not_of_spark, null_keys_of
from metastore.spark.reading.reading import FOLDER, inserted_events, plain_scans, row_id_name
from metastore.spark.session.catalog import AcidTableInfo, hive_type, spark_type
from metastore.spark.transaction.spark_transaction import SparkTransaction

FINER = r"\.\d{6}0*[1-9]"
"""A pattern of times that have more than microseconds."""


class CanNotKeep(Exception):
    """Values that nobody asked to change would change. The text has the values, and the remedy."""


def check_columns(spark: SparkSession, table: AcidTableInfo, selected: Selected) -> None:
    """Raise CanNotKeep for ORC files whose values can not be written as the table's columns by Spark. FileError."""
    wanted = [(column.name, column.type) for column in table.table.sd.cols]
    files: list[tuple[str, bool, int | None]] = [(path, not table.is_insert_only, None) for path in selected.inserts]
    files += [(path, True, length) for path, length in selected.growing]
    files += [(path, False, None) for path in selected.originals]
    for path, events, length in files:
        if (reason := loss(columns_of(spark, path, events=events, length=length), wanted)) is not None:
            raise CanNotKeep(f"{path} does not fit the present definition of {table.full_name}: {reason}; nothing was changed")
        if has_maps([kind for _, kind in wanted]) and (places := null_keys_of(spark, path, events=events, length=length)):
            names = ", ".join(name for place, (name, _) in enumerate(wanted) if place in places)
            raise CanNotKeep(
                f"{table.full_name}: {path} has maps with null keys in the columns {names}, which Spark can not hold; nothing was changed, "
                "let Hive do it"
            )


def check_bucket(spark: SparkSession, table: AcidTableInfo, selected: Selected, snapshot: TableSnapshot) -> None:
    """Raise CanNotKeep where rows of a folder have times of nanoseconds."""
    finer = has_finer(table.columns, lambda name: F.col("row")[name])
    if finer is not None and inserted_events(spark, _with_texts(table), [selected], snapshot).where(finer).limit(1).collect():
        raise _finer_error(table, selected)


def check_plain(spark: SparkSession, table: AcidTableInfo, selected: Selected) -> None:
    """Raise CanNotKeep where files of an insert-only table have parts that Spark would lose: columns, nanoseconds. FileError."""
    source = table.format[0]
    paths = [*selected.originals, *selected.inserts]
    if source == "orc":
        check_columns(spark, table, selected)
        finer = has_finer(table.columns, lambda name: F.col(f"`{name}`"))
        is_finer = finer is not None and any(
            found.where(finer).limit(1).collect() for found in plain_scans(spark, _with_texts(table), [(selected.folder, paths)])
        )
    elif source == "parquet":
        _check_parquet_columns(spark, table, paths)
        is_finer = _has_times(table.columns) and _parquet_is_finer(spark, table, paths)
    else:
        return
    if is_finer:
        raise _finer_error(table, selected)


def _check_parquet_columns(spark: SparkSession, table: AcidTableInfo, paths: Sequence[str]) -> None:
    there = {(field.name, field.dataType.json()): field for schema in in_parallel(partial(schema_of, spark), paths) for field in schema}
    for field in there.values():
        kind = table.kinds.get(field.name.lower())
        if kind is None:
            reason: str | None = (
                f"there are files with a column {field.name}, which the table does not have: Parquet matches columns by name"
            )
        else:
            reason = loss([(field.name, hive_type(field.dataType))], [(field.name, hive_type(spark_type(kind)))])
        if reason is not None:
            raise CanNotKeep(f"{table.full_name}: {reason}; nothing was changed")


def _parquet_is_finer(spark: SparkSession, table: AcidTableInfo, paths: Sequence[str]) -> bool:
    from metastore.acid.rewriting import parquet_files

    if not paths:
        return False
    try:
        return any(spark.sparkContext.parallelize(paths, len(paths)).map(parquet_files.has_finer).collect())
    except (Py4JJavaError, PySparkException) as error:
        raise CanNotKeep(
            f"{table.full_name}: executors can not check whether files have times of nanoseconds; nothing was changed: {str(error)[:500]}"
        ) from error


def _finer_error(table: AcidTableInfo, selected: Selected) -> CanNotKeep:
    return CanNotKeep(
        f"{table.full_name} {selected.folder.name}: there are times of nanoseconds, which Spark would cut to microseconds; nothing was "
        "changed, let Hive do it"
    )


def check_kept(transaction: SparkTransaction, table: AcidTableInfo, changed: DataFrame, given: Iterable[str]) -> None:
    """Raise CanNotKeep where rows that are rewritten (by id and folder) have times of nanoseconds in columns not `given`."""
    kept = StructType([column for column in table.columns if column.name not in set(given)])
    finer = has_finer(kept, lambda name: F.col("row")[name])
    if finer is None:
        return
    snapshot = transaction.snapshot(table)
    # Files of Spark have microseconds at most.
    selected = [replace(each, inserts=not_of_spark(transaction.spark, each.inserts)) for each in transaction.selected(table, snapshot)]
    if not any(each.inserts or each.growing or each.originals for each in selected):
        return
    events = inserted_events(transaction.spark, _with_texts(table), selected, snapshot).where(finer)
    ids = changed.select(F.col(row_id_name(table)).alias("__changed"), F.col(FOLDER).alias("__changed_folder"))
    same = [
        F.col("__changed.writeid") == F.col("originalTransaction"),
        F.col("__changed.bucketid") == F.col("bucket"),
        F.col("__changed.rowid") == F.col("rowId"),
        F.col("__changed_folder") == F.col(FOLDER),
    ]
    if events.join(ids, reduce(and_, same), "left_semi").limit(1).collect():
        raise CanNotKeep(
            f"{table.full_name}: a row to rewrite has a time of nanoseconds, which Spark would cut to microseconds; "
            f"change it with Hive, or set the column too ({', '.join(kept.names)})"
        )


def has_finer(columns: StructType, value: Any) -> Column | None:
    """Return the condition that a row read by `_with_texts` has a finer time than Spark's; None for columns without times."""
    found = [each for column in columns if (each := _finer(column.dataType, value(column.name))) is not None]
    return reduce(or_, found) if found else None


def _finer(kind: DataType, value: Column) -> Column | None:
    if isinstance(kind, TimestampType):
        return F.coalesce(value.rlike(FINER), F.lit(False))
    if isinstance(kind, StructType):
        return has_finer(kind, lambda name: value[name])
    if isinstance(kind, ArrayType):
        element = kind.elementType
        return None if not _has_times(element) else F.coalesce(F.exists(value, lambda each: _finer(element, each)), F.lit(False))  # type: ignore[arg-type, return-value]  # there are times
    if isinstance(kind, MapType):
        keys, items = _finer(ArrayType(kind.keyType), F.map_keys(value)), _finer(ArrayType(kind.valueType), F.map_values(value))
        return items if keys is None else keys if items is None else keys | items
    return None


def _has_times(kind: DataType) -> bool:
    return _finer(kind, F.lit(None)) is not None


def _with_texts(table: AcidTableInfo) -> AcidTableInfo:
    """Return a table with texts in the place of times."""
    out = replace(table)
    vars(out)["columns"] = _texts(table.columns)
    return out


def _texts(kind: DataType) -> DataType:
    if isinstance(kind, StructType):
        return StructType([StructField(field.name, _texts(field.dataType)) for field in kind])
    if isinstance(kind, ArrayType):
        return ArrayType(_texts(kind.elementType))
    if isinstance(kind, MapType):
        return MapType(_texts(kind.keyType), _texts(kind.valueType))
    return StringType() if isinstance(kind, TimestampType) else kind
