"""Tell how ORC files themselves call their columns: Hive takes a table's columns by position, Spark by name. This module reads ends of
files alone.

All files of events in one base or delta directory are written by one statement, so that one of them tells it for all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession
from pyspark.sql.types import StructField, StructType

from metastore.acid.types import parts
from metastore.spark.catalog import Folder
from metastore.spark.hadoop import FileError, in_parallel

SPARK = "org.apache.spark.version"
"""What Spark notes in each ORC file."""
Names = tuple[str, ...]
Located = list[tuple[Folder, list[str]]]
"""Paths of files by the folder that they belong to."""


class CaseMatters(ValueError):
    """Spark is set to tell names apart by their case, and would not find columns of files. The text says what to do."""


def is_case_sensitive(spark: SparkSession) -> bool:
    """Tell whether Spark tells names apart by their case."""
    return str(spark.conf.get("spark.sql.caseSensitive")).lower() == "true"


def check_case(spark: SparkSession, files: str, columns: str) -> None:
    """Raise CaseMatters where files have columns, or fields of structs, that are not in lower case as a table's are."""
    if columns != columns.lower() and is_case_sensitive(spark):
        raise CaseMatters(
            f"{files}: there are columns {columns}, which Spark would not find and take for null; set spark.sql.caseSensitive to false, as "
            "names of Hive's columns have no case"
        )


def by_names(spark: SparkSession, files: Sequence[tuple[Folder, Sequence[str]]], *, events: bool) -> list[tuple[Names, Located]]:
    """Group files by the names of their columns; those within `row` where they are files of events. FileError, CaseMatters."""
    first = {_sample(folder, path, events=events): path for folder, paths in files for path in paths}
    found = in_parallel(lambda item: (item[0], columns_of(spark, item[1], events=events)), first.items())
    for sample, columns in found:
        check_case(spark, first[sample], str(columns))
    names = {sample: tuple(name for name, _ in columns) for sample, columns in found}
    out: dict[Names, Located] = {}
    for folder, paths in files:
        of_folder: dict[Names, list[str]] = {}
        for path in paths:
            of_folder.setdefault(names[_sample(folder, path, events=events)], []).append(path)
        for each, listed in of_folder.items():
            out.setdefault(each, []).append((folder, listed))
    return list(out.items())


def _sample(folder: Folder, path: str, *, events: bool) -> str:
    """Return what a file shares its columns' names with: its directory; nothing where it has rows alone, which may have been loaded."""
    if not events:
        return path
    directory = path.rpartition("/")[0]
    return directory if f"{directory[len(folder.location) :]}/".startswith(("/base_", "/delta_", "/delete_delta_")) else path


def columns_of(spark: SparkSession, path: str, *, events: bool, length: int | None = None) -> list[tuple[str, str]]:
    """Return (name, type) of a file's columns, in an event file of those within `row`; `length` is that of a growing file. FileError."""
    with _opened(spark, path, length) as reader:
        found = parts(str(reader.getSchema().toString()))
    return parts(found[-1][1]) if events else found


def not_of_spark(spark: SparkSession, files: Iterable[str]) -> list[str]:
    """Return those of event files that Spark has not written, by what it notes in one file of each directory. FileError."""
    listed = list(files)

    def is_of_spark(item: tuple[str, str]) -> tuple[str, bool]:
        with _opened(spark, item[1]) as reader:
            return item[0], bool(reader.hasMetadataValue(SPARK))

    found = dict(in_parallel(is_of_spark, {path.rpartition("/")[0]: path for path in listed}.items()))
    return [path for path in listed if not found[path.rpartition("/")[0]]]


@contextmanager
def _opened(spark: SparkSession, path: str, length: int | None = None) -> Iterator[Any]:
    """Open a file by Java's reader of ORC. FileError."""
    jvm: Any = spark._jvm  # noqa: SLF001  # PySpark's only way to Java's reader
    orc = jvm.org.apache.orc.OrcFile
    options = orc.readerOptions(spark._jsc.hadoopConfiguration())  # noqa: SLF001  # see above
    try:
        reader = orc.createReader(jvm.org.apache.hadoop.fs.Path(path), options if length is None else options.maxLength(length))
        try:
            yield reader
        finally:
            reader.close()
    except Py4JJavaError as error:
        raise FileError(f"{path} can not be read: {error.java_exception}") from error


def as_called(columns: StructType, names: Names) -> StructType:
    """Return a table's columns as far as files have them, by the files' names."""
    return StructType([StructField(name, column.dataType) for name, column in zip(names, columns, strict=False)])


def is_called_so(columns: StructType, names: Names) -> bool:
    """Tell whether files call their columns as the table does, but for those that they do not have, or that it does not have any more."""
    return all(name.lower() == column.name.lower() for name, column in zip(names, columns, strict=False))


def is_nameless(names: Names) -> bool:
    """Tell whether files have Hive's old names `_col0`, `_col1` .., which ORC's own reader takes by position."""
    return bool(names) and all(name.startswith("_col") for name in names)
