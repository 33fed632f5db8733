"""Read the columns' names and types in ORC files themselves: Hive takes a table's columns by position, Spark by name. This module reads
ends of files alone.

All files of events in one base or delta directory are written by one statement, so that one of them is read for all.

ORC's reader turns the values of a column whose type was changed into the table's type, as Hive shows them. But it judges filters by
statistics of the old type: it fails for a text beside numbers, and may skip rows whose new value is another number. Such columns are
kept from it (`kept_from_filters`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from py4j.protocol import Py4JJavaError
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # the name that everyone gives it
from pyspark.sql.types import StructField, StructType

from metastore.acid.files import FileError, in_parallel
from metastore.acid.folders.table import Folder
from metastore.acid.values.characters import limit_of
from metastore.acid.values.evolution import is_widened
from metastore.acid.values.null_keys import has_maps, with_null_keys
from metastore.acid.values.types import parts
from metastore.spark.session.java import java_class

SPARK = "org.apache.spark.version"
"""The property of each ORC file that Spark wrote."""
Names = tuple[str, ...]
Located = list[tuple[Folder, list[str]]]
"""Paths of files by the folder that they belong to."""


class Form(NamedTuple):
    """The form of files: column names, (place, type) of those with another type than the table's, places of those with null map keys."""

    names: Names
    changed: tuple[tuple[int, str], ...]
    null_keys: frozenset[int]


class Alike(NamedTuple):
    """Files of one form."""

    form: Form
    files: Located


class CaseMatters(ValueError):
    """Spark is set to distinguish names by their case, and would not find columns of files. The text has the remedy."""


def is_case_sensitive(spark: SparkSession) -> bool:
    """Return whether Spark distinguishes names by their case."""
    return str(spark.conf.get("spark.sql.caseSensitive")).lower() == "true"


def check_case(spark: SparkSession, files: str, columns: str) -> None:
    """Raise CaseMatters where files have columns, or fields of structs, that are not in lower case as a table's are."""
    if columns != columns.lower() and is_case_sensitive(spark):
        raise CaseMatters(
            f"{files}: names in the columns {columns} have capitals, and Spark would read such columns as null; set "
            "spark.sql.caseSensitive to false, as names of Hive's columns have no case"
        )


def alike(spark: SparkSession, files: Sequence[tuple[Folder, Sequence[str]]], kinds: Sequence[str], *, events: bool) -> list[Alike]:
    """Group files by their columns, those within `row` where they are files of events; `kinds` are the table's types.

    FileError, CaseMatters.
    """
    first = {_sample(folder, path, events=events): path for folder, paths in files for path in paths}
    found = in_parallel(lambda item: (item[0], columns_of(spark, item[1], events=events)), first.items())
    for sample, columns in found:
        check_case(spark, first[sample], str(columns))
    said = {sample: (tuple(name for name, _ in columns), _changed(columns, kinds)) for sample, columns in found}
    without: frozenset[int] = frozenset()
    null_keys: dict[str, frozenset[int]] = {}
    if has_maps(kinds):
        paths_of_all = [path for _, paths in files for path in paths]
        null_keys = dict(zip(paths_of_all, in_parallel(lambda path: null_keys_of(spark, path, events=events), paths_of_all), strict=True))
    out: dict[Form, Located] = {}
    for folder, paths in files:
        of_folder: dict[Form, list[str]] = {}
        for path in paths:
            form = Form(*said[_sample(folder, path, events=events)], null_keys.get(path, without))
            of_folder.setdefault(form, []).append(path)
        for each, listed in of_folder.items():
            out.setdefault(each, []).append((folder, listed))
    return [Alike(form, located) for form, located in out.items()]


def null_keys_of(spark: SparkSession, path: str, *, events: bool, length: int | None = None) -> frozenset[int]:
    """Return the places of a file's columns, of an event file those within `row`, that have maps with null keys. FileError."""
    with _opened(spark, path, length) as reader:
        columns = parts(str(reader.getSchema().toString()))
        statistics = reader.getStatistics()
        number = len(columns) + 1 if events else 1
        kinds = [kind for _, kind in (parts(columns[-1][1]) if events else columns)]
        return with_null_keys(kinds, number, lambda each: bool(statistics[each].hasNull()))


def _changed(columns: Sequence[tuple[str, str]], kinds: Sequence[str]) -> tuple[tuple[int, str], ...]:
    """Return (place, type) of columns whose statistics do not hold for a table's values, which have other types."""
    pairs = enumerate(zip((kind for _, kind in columns), kinds, strict=False))
    return tuple((place, old) for place, (old, new) in pairs if not _is_comparable(old, new))


def _is_comparable(old: str, new: str) -> bool:
    """Return whether statistics of a file's type hold for a table's type, or are never used by a filter on it: chars and varchars."""
    old, new = old.strip().lower(), new.strip().lower()
    outer = old.partition("<")[0]
    if "<" in old and outer == new.partition("<")[0]:
        there, here = parts(old), parts(new)
        if outer == "struct":
            fields = dict(there)
            return all(_is_comparable(fields.get(name, kind), kind) for name, kind in here)
        return all(_is_comparable(mine, kind) for (_, mine), (_, kind) in zip(there, here, strict=True))
    return old == new or is_widened(old, new) or (limit_of(new) is not None and (old == "string" or limit_of(old) is not None))


def kept_from_filters(value: Column, old: str, new: str) -> Column:
    """Return a value unchanged; where its types differ, by an expression that Spark does not pass to ORC's reader as a filter."""
    if _is_comparable(old, new):
        return value
    if "<" not in new:
        return F.greatest(value, value)
    if not new.strip().lower().startswith("struct"):
        return value  # arrays and maps have no filters
    there = dict(parts(old.lower()))
    fields = [kept_from_filters(value[name], there.get(name.lower(), kind), kind).alias(name) for name, kind in parts(new)]
    return F.when(value.isNotNull(), F.struct(*fields))


def _sample(folder: Folder, path: str, *, events: bool) -> str:
    """Return the directory whose files share their columns' names; for a file of rows alone, which may have been loaded, its own path."""
    if not events:
        return path
    directory = path.rpartition("/")[0]
    return directory if f"{directory[len(folder.location) :]}/".startswith(("/base_", "/delta_", "/delete_delta_")) else path


def columns_of(spark: SparkSession, path: str, *, events: bool, length: int | None = None) -> list[tuple[str, str]]:
    """Return (name, type) of a file's columns, in an event file of those within `row`; `length` is for a growing file. FileError."""
    with _opened(spark, path, length) as reader:
        found = parts(str(reader.getSchema().toString()))
    return parts(found[-1][1]) if events else found


def not_of_spark(spark: SparkSession, files: Iterable[str]) -> list[str]:
    """Return the event files that Spark has not written, by its note in one file of each directory. FileError."""
    listed = list(files)

    def is_of_spark(item: tuple[str, str]) -> tuple[str, bool]:
        with _opened(spark, item[1]) as reader:
            return item[0], bool(reader.hasMetadataValue(SPARK))

    found = dict(in_parallel(is_of_spark, {path.rpartition("/")[0]: path for path in listed}.items()))
    return [path for path in listed if not found[path.rpartition("/")[0]]]


@contextmanager
def _opened(spark: SparkSession, path: str, length: int | None = None) -> Iterator[Any]:
    """Open a file by Java's reader of ORC. FileError."""
    orc, location = java_class(spark, "org.apache.orc.OrcFile"), java_class(spark, "org.apache.hadoop.fs.Path")
    options = orc.readerOptions(spark._jsc.hadoopConfiguration())  # noqa: SLF001  # PySpark's only way to Java's reader
    try:
        reader = orc.createReader(location(path), options if length is None else options.maxLength(length))
        try:
            yield reader
        finally:
            reader.close()
    except Py4JJavaError as error:
        raise FileError(f"{path} can not be read: {error.java_exception}") from error


def as_read(columns: StructType, form: Form) -> StructType:
    """Return a table's columns as far as files have them and Spark can read them, by the files' names."""
    found = [StructField(name, column.dataType) for name, column in zip(form.names, columns, strict=False)]
    return StructType([field for place, field in enumerate(found) if place not in form.null_keys] or found)


def is_as_table(columns: StructType, form: Form) -> bool:
    """Return whether files have the table's columns, except missing ones and ones that the table does not have any more."""
    called_so = all(name.lower() == column.name.lower() for name, column in zip(form.names, columns, strict=False))
    return called_so and not form.changed and not form.null_keys


def is_nameless(names: Names) -> bool:
    """Return whether files have Hive's old names `_col0`, `_col1` .., which ORC's own reader takes by position."""
    return bool(names) and all(name.startswith("_col") for name in names)
