"""Read and write the files of insert-only tables by Spark, so that Hive and Spark see the same values. This module moves no file.

Text is read and written field by field, as Hive's LazySimpleSerDe does; values that it can not distinguish are refused. Times in text and
JSON are wall-clock times of the JVM's zone, as in ORC. Parquet has the days of the calendar that is Julian before 1582-10-15, as Hive takes
them to be. Source: Hive's LazySimpleSerDe, LazyUtils, LazyTimestamp, DataWritableReadSupport; Spark's LEGACY modes.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # the name that everyone gives it
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    IntegralType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from metastore.acid.values.characters import limit_of
from metastore.spark.session.assignment import DoesNotFit, refusal, tried
from metastore.spark.session.catalog import AcidTableInfo

LINE = "__metastore_line"
"""The column of a line of text."""
LINES = ("text", "json", "csv")
"""Formats in which a line is a row."""
_TIME = "yyyy-MM-dd HH:mm:ss.SSSSSS"
_PARQUET = {
    "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
    "spark.sql.parquet.int96RebaseModeInWrite": "LEGACY",
    "spark.sql.parquet.outputTimestampType": "INT96",  # Hive reads it as times of its zone, and it has all digits
}
"""Settings with which Spark writes Parquet as Hive does."""
_guard = threading.Lock()


def format_to_read(table: AcidTableInfo, zone: str) -> tuple[str, dict[str, str], StructType]:
    """Return Spark's format, its options and the columns of the files; `zone` is the JVM's. NotTransactional, DoesNotFit."""
    source, options = table.format
    _check(table)
    if source == "text":
        whole = {"wholetext": "true"} if skipped(table) else {}
        return source, whole, StructType([StructField(LINE, StringType())])
    if source == "json":
        return source, {"timestampFormat": "yyyy-MM-dd[ HH:mm:ss[.SSSSSSSSS]]", "timeZone": zone}, table.columns
    if source == "parquet":
        return source, {"datetimeRebaseMode": "LEGACY", "int96RebaseMode": "LEGACY"}, table.columns
    return source, options, table.columns


def skipped(table: AcidTableInfo) -> tuple[int, int] | None:
    """Return the numbers of lines at the beginning and at the end of each file that are not rows; None where all lines are. DoesNotFit."""
    given = [table.parameters.get(f"skip.{part}.line.count") or "0" for part in ("header", "footer")]
    if table.format[0] not in LINES or given == ["0", "0"]:
        return None
    try:
        return int(given[0]), int(given[1])
    except ValueError as error:
        raise DoesNotFit(f"{table.full_name}: skip.header.line.count and skip.footer.line.count must be numbers: {error}") from error


def lines_read(table: AcidTableInfo, found: DataFrame) -> DataFrame:
    """Return the frame of `format_to_read` with a row for each line of text that is a row. DoesNotFit."""
    lines = skipped(table)
    if lines is None:
        return found
    head, foot = lines
    every = F.split(F.regexp_replace(F.col(LINE), r"(?:\r\n|\r|\n)\z", ""), r"\r\n|\r|\n", -1)
    rows = F.slice(every, F.lit(head + 1), F.greatest(F.size(every) - (head + foot), F.lit(0)))
    return found.withColumn(LINE, F.explode(F.when(F.length(LINE) > 0, rows)))


def columns_read(table: AcidTableInfo, zone: str) -> list[Column]:
    """Return the table's columns from the frame of `format_to_read`."""
    kinds = [column.type for column in table.table.sd.cols]
    if table.format[0] != "text":
        there = [F.col(f"`{name}`") for name in table.columns.names]
        if table.format[0] != "json":
            return there
        # Hive writes the padding of a char into JSON.
        return [
            F.rtrim(value).alias(column.name) if (limit_of(kind) or (False, 0))[0] else value
            for value, column, kind in zip(there, table.columns, kinds, strict=True)
        ]
    form = _Form(table)
    values = form.split(F.col(LINE))
    return [
        _value(form, F.get(values, F.lit(place)), column.dataType, kind, zone).alias(column.name)
        for place, (column, kind) in enumerate(zip(table.columns, kinds, strict=True))
    ]


def to_write(table: AcidTableInfo, rows: DataFrame, others: Sequence[str], zone: str) -> tuple[DataFrame, str, dict[str, str]]:
    """Return rows of the table's columns, and `others`, as Spark writes them, with the format and its options. DoesNotFit."""
    source, options = table.format
    _check(table)
    if skipped(table) is not None:
        raise DoesNotFit(
            f"{table.full_name} skips lines at the beginning or end of its files (skip.header.line.count, skip.footer.line.count): rows "
            "written here would be skipped; unset these properties, or load files that have such lines"
        )
    if source == "text":
        form = _Form(table)
        texts = [F.coalesce(_text(form, table, column, zone), F.lit(form.null)) for column in table.columns]
        return rows.select(F.concat_ws(form.separator, *texts).alias(LINE), *others), source, {}
    if source == "json":
        return rows, source, {"timestampFormat": _TIME, "timeZone": zone}
    return rows, source, options


@contextmanager
def as_hive_writes(spark: SparkSession, source: str) -> Iterator[None]:
    """Have Spark write Parquet's days and times as Hive does. Spark has only session settings for that: one write runs at a time."""
    if source != "parquet":
        yield
        return
    with _guard:
        before = {name: spark.conf.get(name) for name in _PARQUET}
        try:
            for name, value in _PARQUET.items():
                spark.conf.set(name, value)
            yield
        finally:
            for name in _PARQUET:
                spark.conf.set(name, before[name] or "EXCEPTION")


class _Form:
    """The form of the lines of a text table, by the serde's parameters."""

    def __init__(self, table: AcidTableInfo) -> None:
        given = table.table.sd.serdeInfo.parameters or {}
        self.separator = _letter(given.get("field.delim") or given.get("serialization.format") or "\x01")
        self.escape = _letter(given["escape.delim"]) if given.get("escape.delim") else ""
        self.null = given.get("serialization.null.format", "\\N")
        takes_rest = given.get("serialization.last.column.takes.rest", "").lower() == "true"
        self.most = len(table.columns) if takes_rest else -1
        """The most fields of a line, the last of which has the rest of the line; -1 for no limit."""
        self.has_short_booleans = given.get("hive.lazysimple.extended_boolean_literal", "").lower() == "true"
        if takes_rest and self.escape:
            raise DoesNotFit(f"{table.full_name}: serialization.last.column.takes.rest with escape.delim is not read here; use Hive")

    def split(self, line: Column) -> Column:
        """Return the fields of a line, still escaped."""
        separator = _pattern(self.separator)
        if not self.escape:
            return F.split(line, separator, self.most)
        escape = _pattern(self.escape)
        # An escape at the end is an ordinary character.
        line = F.when(line.rlike(rf"(?<!{escape})(?:{escape}{escape})*{escape}\z"), F.concat(line, F.lit(self.escape))).otherwise(line)
        pattern = rf"((?:{escape}[\s\S]|[^{escape}{separator}])*){separator}"
        return F.regexp_extract_all(F.concat(line, F.lit(self.separator)), F.lit(pattern), F.lit(1))

    def unescaped(self, text: Column) -> Column:
        """Return the value of a field, without escapes."""
        if not self.escape:
            return text
        escape = _pattern(self.escape)
        for letter, meant in (("n", "\n"), ("r", "\r")):
            text = F.regexp_replace(text, rf"((?<!{escape})(?:{escape}{escape})*){escape}{letter}", f"$1{meant}")
        return F.regexp_replace(text, rf"{escape}([\s\S])", "$1")

    def escaped(self, text: Column) -> Column:
        """Return a field in its form within a line."""
        if not self.escape:
            return text
        letters = f"[{_pattern(self.escape)}{_pattern(self.separator)}]"
        return F.regexp_replace(text, f"({letters})", ("\\" + self.escape if self.escape in "\\$" else self.escape) + "$1")

    def is_lost(self, text: Column, escaped: Column) -> Column:
        """Return whether a reader would read a field as another one, as several, or as null."""
        lost = F.coalesce(text.rlike(r"[\r\n]"), F.lit(False)) | (escaped == self.null)
        return lost if self.escape else lost | text.contains(self.separator)


def _letter(text: str) -> str:
    return chr(int(text)) if text.isdigit() else text[0]


def _pattern(letter: str) -> str:
    return f"\\x{{{ord(letter):x}}}"


def _check(table: AcidTableInfo) -> None:
    """Raise DoesNotFit for formats and types of columns that are not supported here."""
    source = table.format[0]
    if source == "csv" or (source == "json" and skipped(table) is not None):
        library = table.table.sd.serdeInfo.serializationLib
        what = "" if source == "csv" else " with lines at the beginning or end of files that are not rows"
        raise DoesNotFit(f"{table.full_name}: {library}{what} is not read and written here as Hive does it; use Hive")
    for column in table.columns if source == "text" else ():
        if isinstance(column.dataType, (ArrayType, MapType, StructType)):
            kind = table.kinds[column.name.lower()]
            raise DoesNotFit(f"{table.full_name}: column {column.name} is {kind}, which is not read and written as text here; use Hive")


def wall_clock(value: Column, zone: str) -> Column:
    """Return a time as the wall-clock time of a zone, a text with six digits of the second's fraction."""
    return F.when(value.isNotNull(), F.to_csv(F.struct(value.alias("v")), {"timestampFormat": _TIME, "timeZone": zone}))


def _text(form: _Form, table: AcidTableInfo, column: StructField, zone: str) -> Column:
    value = F.col(f"`{column.name}`")
    if isinstance(column.dataType, TimestampType):
        return wall_clock(value, zone)
    if isinstance(column.dataType, BinaryType):
        return F.regexp_replace(F.base64(value), "[\r\n]", "")
    if not isinstance(column.dataType, StringType):
        return value.cast("string")
    escaped = form.escaped(value)
    kind = table.kinds[column.name.lower()]
    refused = refusal(value, f"{table.full_name}: column {column.name} is {kind} in a text file")
    return F.when(form.is_lost(value, escaped), refused).otherwise(escaped)


def _value(form: _Form, field: Column, wanted: DataType, kind: str, zone: str) -> Column:
    present = F.when(field != form.null, form.unescaped(field))
    if isinstance(wanted, StringType):
        limit = limit_of(kind)
        return F.rtrim(present) if limit is not None and limit[0] else present
    if isinstance(wanted, BinaryType):
        # Hive writes base64 without padding, and reads every text that may be base64 as such.
        encoded = present.rlike("^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2,3}={0,2})?$")
        return F.when(encoded, F.unbase64(present)).otherwise(present.cast("binary"))
    if isinstance(wanted, TimestampType):
        day = F.length(present) <= len("2024-07-01")
        return tried(F.concat(present, F.when(day, F.lit(" 00:00:00")).otherwise(F.lit("")), F.lit(f" {zone}")), wanted)
    if isinstance(wanted, IntegralType):
        return F.when(present.rlike(r"^[+-]?[0-9]+(\.[0-9]*)?\z"), tried(F.substring_index(present, ".", 1), wanted))
    if isinstance(wanted, BooleanType) and not form.has_short_booleans:
        return F.when(F.lower(present).isin("true", "false"), tried(present, wanted))
    return tried(present, wanted)
