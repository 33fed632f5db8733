"""Turn records - JSON, delimited text, dicts, Arrow - into Arrow columns of a table's types, or refuse all of them. This module writes
nothing.

A value that does not fit its column exactly is refused. No value is cut, rounded or made null, or lost because a record names its column
twice. A float takes the nearest number, as usual, but not infinity for a finite number, and not another whole number. A column that a
record does not name has its default, or is null; one that must not be null needs a value.
"""

from __future__ import annotations

import base64
import json
import math
import re
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal
from functools import cached_property
from typing import Any, Protocol, TypeVar

import pyarrow as pa

from metastore.acid.values.constraints import CanNotKeepConstraint, Constraints, ConstraintViolated, wall_clock
from metastore.acid.values.exact import Changed, checked, exact, named_once
from metastore.acid.values.types import arrow_type, decimal_of, parts
from metastore.rules.values.times import timestamp

Check = Callable[[Any], Any]
T = TypeVar("T")


class BadRecord(ValueError):
    """A record does not fit the table; none of those that were given with it was written."""


class RecordColumns:
    """The columns of a stream's records in their order: names, in lower case, and Hive types."""

    def __init__(
        self, table: str, columns: Iterable[tuple[str, str]], constraints: Constraints | None = None, *, zone: str = "UTC"
    ) -> None:
        """`zone` is the time zone of defaults such as `current_timestamp()`."""
        self.table = table
        self._constraints = constraints or Constraints(table)
        self._zone = zone
        self.kinds = {name.lower(): kind for name, kind in columns}
        self.schema = pa.schema([(name, arrow_type(kind)) for name, kind in self.kinds.items()])

    @cached_property
    def checks(self) -> dict[str, Check | None]:
        """The check of each column for values that Arrow would change or can not read; None where there is nothing to check."""
        return {name: checker(kind) for name, kind in self.kinds.items()}

    def refuse_unknown(self, names: Iterable[str]) -> None:
        """Raise BadRecord for names that are not columns."""
        if unknown := sorted(set(names) - self.kinds.keys()):
            raise BadRecord(f"{self.table} has no column {', '.join(unknown)}; its columns are {', '.join(self.kinds)}")

    def of_dicts(self, records: Sequence[Mapping[str, Any]]) -> pa.RecordBatch:
        """Return records as Arrow columns. BadRecord."""
        lowered = [self._by_column(record.items()) for record in records]
        for record in lowered:
            if not record.keys() <= self.kinds.keys():
                self.refuse_unknown(record)
        arrays = []
        for field in self.schema:
            absent = None if all(field.name in record for record in lowered) else self._absent(field.name)
            values = [record.get(field.name, absent) for record in lowered]
            check = self.checks[field.name]
            try:
                fitting = values if check is None else [None if each is None else check(each) for each in values]
                arrays.append(checked(pa.array(fitting, field.type), self.kinds[field.name]))
            except (ValueError, TypeError, ArithmeticError, pa.ArrowException) as error:
                raise self._bad(field.name, error) from error
        return self._kept(arrays)

    def of_arrow(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return Arrow columns, found by their names, in the table's types. BadRecord."""
        there = self._by_column((name, place) for place, name in enumerate(rows.schema.names))
        self.refuse_unknown(there)
        arrays = []
        for field in self.schema:
            try:
                if field.name in there:
                    arrays.append(exact(rows.column(there[field.name]), self.kinds[field.name]))
                else:
                    arrays.append(pa.repeat(pa.scalar(self._absent(field.name), field.type), len(rows)))
            except (ValueError, TypeError, pa.ArrowException) as error:
                raise self._bad(field.name, error) from error
        return self._kept(arrays)

    def of_texts(self, texts: Mapping[str, Sequence[str | None]]) -> pa.RecordBatch:
        """Return columns of texts in the table's types; missing ones have their defaults. BadRecord."""
        count = len(next(iter(texts.values())))
        arrays = []
        for field in self.schema:
            try:
                if field.name not in texts:
                    arrays.append(pa.repeat(pa.scalar(self._absent(field.name), field.type), count))
                elif pa.types.is_nested(field.type):
                    raise BadRecord(f"{self.kinds[field.name]} can not be written as delimited text; use JSON")
                elif pa.types.is_floating(field.type):
                    real = _real(field.type == pa.float32())
                    arrays.append(pa.array([None if text is None else real(_number(text)) for text in texts[field.name]], field.type))
                else:
                    arrays.append(checked(pa.array(texts[field.name], pa.string()).cast(field.type), self.kinds[field.name]))
            except (ValueError, TypeError, pa.ArrowException) as error:
                raise self._bad(field.name, error) from error
        return self._kept(arrays)

    def _absent(self, name: str) -> Any:
        """Return the value of a column that a record lacks: its default, or None. BadRecord."""
        try:
            return self._constraints.constant(name, self.kinds[name], wall_clock(self._zone))
        except CanNotKeepConstraint as error:
            raise BadRecord(str(error)) from error

    def _kept(self, arrays: Sequence[Any]) -> pa.RecordBatch:
        """Return columns as rows that keep the table's constraints. BadRecord."""
        rows = pa.record_batch(arrays, schema=self.schema)
        try:
            self._constraints.check_not_null(rows)
        except ConstraintViolated as error:
            raise BadRecord(str(error)) from error
        return rows

    def _by_column(self, named: Iterable[tuple[str, T]]) -> dict[str, T]:
        """Return the values of a record, by columns in lower case. BadRecord for a column that is given twice."""
        try:
            return named_once([(name.lower(), given) for name, given in named])
        except Changed as error:
            raise BadRecord(f"{self.table}: {error}") from error

    def _bad(self, name: str, error: Exception) -> BadRecord:
        return BadRecord(f"{self.table}: column {name}, which is {self.kinds[name]}: {error}")


class RecordWriter(Protocol):
    """A reader of one form of records."""

    def rows(self, records: Any, columns: RecordColumns) -> pa.RecordBatch:
        """Return records as columns of the table. BadRecord when one does not fit."""
        ...


class StrictJson:
    """Each record is a JSON object, as text or UTF-8 bytes; dates and timestamps are texts, binary values base64."""

    def rows(self, records: Any, columns: RecordColumns) -> pa.RecordBatch:
        """Return one record or several as columns. BadRecord."""
        found = []
        for record in [records] if isinstance(records, (str, bytes)) else records:
            try:
                value = _JSON.decode(record if isinstance(record, str) else str(record, "utf-8-sig"))
            except (ValueError, RecursionError) as error:
                raise BadRecord(f"{columns.table}: {_shown(record)} is not JSON: {error}") from error
            if not isinstance(value, dict):
                raise BadRecord(f"{columns.table}: {_shown(record)} is not a JSON object")
            found.append(value)
        return columns.of_dicts(found)


class Delimited:
    """Each record is a line of values, as text or UTF-8 bytes, without quotes: a value can not contain a delimiter.

    `names` are the columns in the line's order, by default all of the table. A text equal to `null` is null, and so is an empty one unless
    its column is text.
    """

    def __init__(self, delimiter: str = ",", names: Sequence[str] | None = None, null: str = "\\N") -> None:
        self._delimiter = delimiter
        self._names = None if names is None else list(named_once([(name.lower(), None) for name in names]))
        self._null = null

    def rows(self, records: Any, columns: RecordColumns) -> pa.RecordBatch:
        """Return one record or several as columns. BadRecord."""
        names = self._names or list(columns.kinds)
        columns.refuse_unknown(names)
        found = []
        for record in [records] if isinstance(records, (str, bytes)) else records:
            try:
                line = record.decode() if isinstance(record, bytes) else record
            except UnicodeDecodeError as error:
                raise BadRecord(f"{columns.table}: {_shown(record)} is not UTF-8: {error}") from error
            values = line.rstrip("\r\n").split(self._delimiter)
            if len(values) != len(names):
                raise BadRecord(f"{columns.table}: {_shown(record)} has {len(values)} values instead of {len(names)}: {', '.join(names)}")
            found.append(values)
        if not found:
            return columns.of_dicts([])
        nulls = {name: {self._null} if columns.schema.field(name).type == pa.string() else {self._null, ""} for name in names}
        return columns.of_texts(
            {
                name: [None if value in nulls[name] else value for value in values]
                for name, values in zip(names, zip(*found, strict=True), strict=True)
            }
        )


class Rows:
    """Records are dicts by the columns' names, one or several, or Arrow tables and record batches."""

    def rows(self, records: Any, columns: RecordColumns) -> pa.RecordBatch:
        """Return records as columns. BadRecord."""
        if isinstance(records, pa.Table):
            whole = records.combine_chunks().to_batches()
            return columns.of_arrow(whole[0]) if whole else columns.of_dicts([])
        if isinstance(records, pa.RecordBatch):
            return columns.of_arrow(records)
        return columns.of_dicts([records] if isinstance(records, Mapping) else list(records))


_JSON = json.JSONDecoder(parse_float=Decimal, object_pairs_hook=named_once)


def _shown(record: str | bytes) -> str:
    return repr(record if len(record) <= 100 else record[:100])


def checker(kind: str) -> Check | None:
    """Return the function that reads or refuses a value of a Hive type that is not null; None where Arrow reads it."""
    text = kind.strip().lower()
    outer = text.partition("<")[0]
    if text in ("tinyint", "smallint", "int", "integer", "bigint"):
        return _whole
    if text in ("float", "double"):
        return _real(text == "float")
    if text in _TEXTUAL:
        return _TEXTUAL[text]
    if decimal_of(text) is not None:
        return _exact
    if outer == "array":
        return _list_of(checker(parts(kind)[0][1]))
    if outer == "map":
        return _map_of(*(checker(each) for _, each in parts(kind)))
    if outer == "struct":
        return _struct_of({name.lower(): checker(inner) for name, inner in parts(kind)})
    return None


def _whole(value: Any) -> Any:
    if isinstance(value, (float, Decimal, bool)):
        raise TypeError(f"{value} is not a whole number")
    return value


def _real(single: bool) -> Check:
    """Return the reader of numbers of `single` or double precision. It refuses changes to another whole number, 0 or infinity."""

    def run(value: Any) -> float:
        if isinstance(value, (str, bool)):
            raise TypeError(f"{value!r} is not a number")
        found = float(value)
        if single and math.isfinite(found):
            try:
                (found,) = struct.unpack("<f", struct.pack("<f", found))
            except OverflowError:
                found = math.inf
        if math.isinf(found) and not _is_infinite(value):
            raise ValueError(f"{value} is out of the range of {'float' if single else 'double'}")
        if (found == 0 and value != 0) or (isinstance(value, int) and int(found) != value):
            raise ValueError(f"{value} would become {found}")
        return found

    return run


def _is_infinite(value: Any) -> bool:
    return value.is_infinite() if isinstance(value, Decimal) else isinstance(value, float) and math.isinf(value)


def _number(text: str) -> Any:
    """Read a number from a text; whole numbers are exact. ValueError."""
    with suppress(ValueError, ArithmeticError):
        if "_" not in text:  # Python ignores underscores in numbers
            return int(text) if text.lstrip("+-").isdecimal() else Decimal(text)
    raise ValueError(f"{text!r} is not a number")


def _exact(value: Any) -> Any:
    return _number(value) if isinstance(value, str) else value


def _day(value: Any) -> Any:
    if isinstance(value, str):
        return date.fromisoformat(value)
    if isinstance(value, datetime) or not isinstance(value, date):
        raise TypeError(f"{value!r} is not a date")
    return value


def _moment(value: Any) -> Any:
    found = timestamp(value) if isinstance(value, str) else value
    if not isinstance(found, datetime):
        raise TypeError(f"{value!r} is not a timestamp")
    if (isinstance(value, str) and _FINER.search(value) is not None) or bool(getattr(value, "nanosecond", 0)):
        raise ValueError(f"{value} has digits after the microseconds, which the column would lose")
    if found.tzinfo is not None:
        raise TypeError(f"{value} has a zone, which the column can not hold")
    return found


def _data(value: Any) -> Any:
    return base64.b64decode(value, validate=True) if isinstance(value, str) else value


_FINER = re.compile(r"[.,]\d{6}\d*[1-9]")
"""A fraction of a second that has more than microseconds."""
_TEXTUAL: dict[str, Check] = {"date": _day, "timestamp": _moment, "binary": _data}


def _list_of(check: Check | None) -> Check | None:
    if check is None:
        return None
    return lambda values: [None if value is None else check(value) for value in values]


def _map_of(key_check: Check | None, check: Check | None) -> Check:
    def run(value: Any) -> Any:
        pairs = value.items() if isinstance(value, Mapping) else value
        found = [
            (key if key_check is None else key_check(key), item if check is None or item is None else check(item)) for key, item in pairs
        ]
        named_once(found)
        return found

    return run


def _struct_of(checks: Mapping[str, Check | None]) -> Check:
    def run(value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise TypeError(f"{value!r} is not a struct")
        lowered = named_once([(name.lower(), item) for name, item in value.items()])
        if unknown := sorted(lowered.keys() - checks.keys()):
            raise ValueError(f"there is no field {', '.join(unknown)}; the fields are {', '.join(checks)}")
        out = {}
        for name, check in checks.items():
            item = lowered.get(name)
            out[name] = item if check is None or item is None else check(item)
        return out

    return run
