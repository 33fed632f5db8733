"""Read Parquet files whose columns have other types than their table's now, as Hive does: by the files' types, then cast to the table's.

Spark's own reader refuses most of them. Columns are matched by name. One file of each directory is read for all files in it. This module
reads ends of files alone. Source: Hive's ETypeConverter.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from py4j.protocol import Py4JJavaError
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # the name that everyone gives it
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DecimalType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from metastore.acid.files import FileError, in_parallel
from metastore.acid.folders.table import Folder
from metastore.spark.reading.physical import Located, check_case
from metastore.spark.reading.plain_files import wall_clock
from metastore.spark.session.assignment import tried
from metastore.spark.session.catalog import AcidTableInfo
from metastore.spark.session.java import java_class

_SAME = ((TimestampType, TimestampNTZType), (StringType, BinaryType))
"""Pairs of types that Spark's reader reads as each other, as Hive does."""


class Typed(NamedTuple):
    """Files, the types by which to read the table's columns from them, and the columns converted to the table's types."""

    schema: StructType
    columns: list[Column]
    files: Located


def by_types(spark: SparkSession, table: AcidTableInfo, files: Sequence[tuple[Folder, Sequence[str]]], zone: str) -> list[Typed]:
    """Group files by those types of their columns that are not the table's; times are wall-clock times of `zone`.

    FileError, CaseMatters.
    """
    samples = {_directory(path): path for _, paths in files for path in paths}
    found = in_parallel(lambda item: (item[0], schema_of(spark, item[1])), samples.items())
    for directory, schema in found:
        check_case(spark, f"Parquet files in {directory}", schema.simpleString())
    read = {directory: _read_as(table.columns, schema).json() for directory, schema in found}
    out: dict[str, Located] = {}
    for folder, paths in files:
        of_folder: dict[str, list[str]] = {}
        for path in paths:
            of_folder.setdefault(read[_directory(path)], []).append(path)
        for each, listed in of_folder.items():
            out.setdefault(each, []).append((folder, listed))
    return [_typed(table, StructType.fromJson(json.loads(each)), located, zone) for each, located in out.items()]


def schema_of(spark: SparkSession, path: str) -> StructType:
    """Return the columns of a file as Spark takes them. FileError."""
    location = java_class(spark, "org.apache.hadoop.fs.Path")(path)
    try:
        place = java_class(spark, "org.apache.parquet.hadoop.util.HadoopInputFile").fromPath(location, spark._jsc.hadoopConfiguration())  # noqa: SLF001  # PySpark's only way to Java's reader
        reader = java_class(spark, "org.apache.parquet.hadoop.ParquetFileReader").open(place)
        try:
            message = reader.getFileMetaData().getSchema()
        finally:
            reader.close()
        converter = java_class(spark, "org.apache.spark.sql.execution.datasources.parquet.ParquetToSparkSchemaConverter")
        made = converter(spark._jsparkSession.sessionState().conf()).convert(message)  # noqa: SLF001  # see above
    except Py4JJavaError as error:
        raise FileError(f"{path} can not be read: {error.java_exception}") from error
    return StructType.fromJson(json.loads(made.json()))


def _directory(path: str) -> str:
    return path.rpartition("/")[0]


def _typed(table: AcidTableInfo, schema: StructType, files: Located, zone: str) -> Typed:
    there = {field.name: field.dataType for field in schema}
    columns = [
        _as_table(
            F.col(f"`{column.name}`"), there[column.name], column.dataType, lambda value, old, new: _made(value, old, new, zone)
        ).alias(column.name)
        for column in table.columns
    ]
    return Typed(schema, columns, files)


def _read_as(wanted: DataType, there: DataType) -> Any:
    """Return a table's type, in which a file's types replace simple types that differ."""
    if isinstance(wanted, StructType) and isinstance(there, StructType):
        given = {field.name.lower(): field.dataType for field in there}
        return StructType(
            [StructField(field.name, _read_as(field.dataType, given.get(field.name.lower(), field.dataType))) for field in wanted]
        )
    if isinstance(wanted, ArrayType) and isinstance(there, ArrayType):
        return ArrayType(_read_as(wanted.elementType, there.elementType))
    if isinstance(wanted, MapType) and isinstance(there, MapType):
        return MapType(_read_as(wanted.keyType, there.keyType), _read_as(wanted.valueType, there.valueType))
    nested = any(isinstance(each, (StructType, ArrayType, MapType)) for each in (wanted, there))
    return wanted if nested or any(isinstance(wanted, same) and isinstance(there, same) for same in _SAME) else there


Made = Callable[[Column, DataType, DataType], Column]
"""A function that converts a value from one simple type to another."""


def _as_table(value: Column, there: DataType, wanted: DataType, made: Made) -> Column:
    """Return a value that was read by `_read_as` as one of the table's type."""
    if there == wanted:
        return value
    if isinstance(there, StructType) and isinstance(wanted, StructType):
        pairs = zip(there, wanted, strict=True)
        fields = [_as_table(value[new.name], old.dataType, new.dataType, made).alias(new.name) for old, new in pairs]
        return F.when(value.isNotNull(), F.struct(*fields))
    if isinstance(there, ArrayType) and isinstance(wanted, ArrayType):
        old, new = there.elementType, wanted.elementType
        return F.transform(value, lambda each: _as_table(each, old, new, made))
    if isinstance(there, MapType) and isinstance(wanted, MapType):
        keys = F.transform(F.map_keys(value), lambda each: _as_table(each, there.keyType, wanted.keyType, made))
        values = F.transform(F.map_values(value), lambda each: _as_table(each, there.valueType, wanted.valueType, made))
        return F.map_from_arrays(keys, values)
    return made(value, there, wanted)


def _made(value: Column, there: DataType, wanted: DataType, zone: str) -> Column:
    """Return a simple value converted to another type as by Hive; null where that is not possible."""
    if not isinstance(wanted, StringType):
        return tried(value, wanted)
    if isinstance(there, TimestampType):
        return F.regexp_replace(wall_clock(value, zone), r"\.?0*\z", "")
    text = value.cast("string")
    return F.regexp_replace(text, r"\.0*\z|(\.\d*?)0+\z", "$1") if isinstance(there, DecimalType) else text
