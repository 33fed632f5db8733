"""The kinds of column statistics: the kind for a column's type, and the same statistics in another kind. Never joins or stores them.

Clients disagree about timestamps: those before Hive 4, Impala and Trino have `longStats`, Hive 4 has `timestampStats`, and each fails on
the other's. `timestampStats` are stored. Source: Hive's StatsUtils.getColStatistics, HIVE-22311, HIVE-29398.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache, lru_cache
from math import ceil, floor, inf, isfinite, nextafter
from typing import Any, NamedTuple

from metastore.idl import (
    ColumnStatisticsData,
    ColumnStatisticsObj,
    Date,
    DateColumnStatsData,
    Decimal,
    DecimalColumnStatsData,
    DoubleColumnStatsData,
    LongColumnStatsData,
    Timestamp,
    TimestampColumnStatsData,
)
from metastore.rules.values.types import FLOATS, INTEGERS, STRINGS, type_name

KINDS = tuple(field[1] for field in ColumnStatisticsData.thrift_spec.values())
LONG, DOUBLE, DECIMAL, DATE, TIMESTAMP = "longStats", "doubleStats", "decimalStats", "dateStats", "timestampStats"
STRUCT = 12
"""Thrift's number of the type of a struct."""

_BY_TYPE = {
    **dict.fromkeys(INTEGERS, LONG),
    **dict.fromkeys(FLOATS, DOUBLE),
    **dict.fromkeys(STRINGS, "stringStats"),
    **dict.fromkeys(("timestamp", "timestamp with time zone"), TIMESTAMP),
    "decimal": DECIMAL,
    "date": DATE,
    "boolean": "booleanStats",
    "binary": "binaryStats",
}


def _decimal_value(bound: Decimal) -> Fraction:
    return Fraction(int.from_bytes(bound.unscaled, "big", signed=True)) / Fraction(10) ** bound.scale


def _long(number: Any, *, up: bool) -> int | None:
    if number != number:  # noqa: PLR0124  # NaN
        return None
    bounded: int | float = max(-(2**63), min(number, 2**63 - 1))
    return ceil(bounded) if up else floor(bounded)


def _double(number: Any, *, up: bool) -> float:
    try:
        near = float(number)
    except OverflowError:
        near = inf if number > 0 else -inf
    if near == number or (near > number) == up:
        return near
    return nextafter(near, inf if up else -inf)


def _decimal(number: Any, *, up: bool) -> Decimal | None:  # a decimal holds each number, so `up` is not used
    """Return a number as a decimal: a float as the shortest text that it is read from."""
    if isinstance(number, float) and not isfinite(number):
        return None
    exact = Fraction(repr(number)) if isinstance(number, float) else Fraction(number)
    scale = 0
    while (exact * 10**scale).denominator > 1:
        scale += 1
    unscaled = int(exact * 10**scale)
    return Decimal(unscaled=unscaled.to_bytes(unscaled.bit_length() // 8 + 1, "big", signed=True), scale=scale)


class _Numbers(NamedTuple):
    """A kind whose bounds are numbers."""

    struct: type
    read: Callable[[Any], Any]
    """A function from a bound to its number."""
    write: Callable[..., Any]
    """A function from a number to the nearest bound that is not greater or, with `up`, not less; None for a number without one."""


_NUMBERS = {
    LONG: _Numbers(LongColumnStatsData, int, _long),
    DOUBLE: _Numbers(DoubleColumnStatsData, float, _double),
    DECIMAL: _Numbers(DecimalColumnStatsData, _decimal_value, _decimal),
    DATE: _Numbers(DateColumnStatsData, lambda bound: bound.daysSinceEpoch, lambda number, up: Date(daysSinceEpoch=number)),
    TIMESTAMP: _Numbers(
        TimestampColumnStatsData, lambda bound: bound.secondsSinceEpoch, lambda number, up: Timestamp(secondsSinceEpoch=number)
    ),
}
_ALIKE = [{LONG, DATE}, {LONG, TIMESTAMP}, {LONG, DOUBLE}, {LONG, DECIMAL}, {DECIMAL, DOUBLE}]
"""Pairs of kinds that can replace each other."""
_SAME_HASHES = _ALIKE[:2]
"""Pairs of kinds whose bit vectors and histograms are of the same numbers."""
_SKETCHES = ("bitVectors", "histogram")
_BOUNDS = ("lowValue", "highValue")
_WIDEST = (DOUBLE, DECIMAL, TIMESTAMP, DATE)
"""Kinds that can hold others, in order of preference: several kinds are joined in the first of these that is among them and holds all."""


@lru_cache(maxsize=4096)
def kind_for(column_type: str, *, timestamps_are_longs: bool = False) -> str | None:
    """Return the kind of statistics that clients read for a column of this type; None for a type without statistics, such as an array."""
    kind = _BY_TYPE.get(type_name(column_type))
    return LONG if kind == TIMESTAMP and timestamps_are_longs else kind


def kind_of(data: ColumnStatisticsData) -> str | None:
    """Return the name of the field that is set, None for an empty union."""
    return next((kind for kind in KINDS if getattr(data, kind) is not None), None)


def order_of(kind: str) -> Callable[[Any], Any]:
    """Return the function from a bound of a kind to the number by which bounds are ordered."""
    return _NUMBERS[kind].read


def in_kind(data: ColumnStatisticsData, kind: str | None) -> ColumnStatisticsData | None:
    """Return statistics in another kind, None if it does not hold them. Bounds that it does not hold exactly grow wider."""
    before = kind_of(data)
    if before == kind:
        return data
    if before is None or kind is None or {before, kind} not in _ALIKE:
        return None
    old, new = getattr(data, before), _NUMBERS[kind].struct()
    for _, name, *_ in new.thrift_spec.values():
        value = getattr(old, name)
        if name in _BOUNDS and value is not None:
            value = _NUMBERS[kind].write(_NUMBERS[before].read(value), up=name == "highValue")
            if value is None:
                return None
        if name not in _SKETCHES or {before, kind} in _SAME_HASHES:
            setattr(new, name, value)
    return ColumnStatisticsData(**{kind: new})


def alike(columns: Sequence[ColumnStatisticsObj]) -> list[ColumnStatisticsObj | None]:
    """Return statistics of one column from several places in one kind that holds all of them; None for those that do not fit.

    Without such a kind it is the first one's. Partitions may have a column in another type than their table.
    """
    first_of: dict[str | None, ColumnStatisticsObj] = {}
    for column in columns:
        first_of.setdefault(kind_of(column.statsData), column)
    common = next((wide for wide in _WIDEST if wide in first_of and all(each == wide or {each, wide} in _ALIKE for each in first_of)), None)
    leading = columns[0] if common is None else first_of[common]
    kind = kind_of(leading.statsData)
    found = [(column, in_kind(column.statsData, kind)) for column in columns]
    return [None if data is None else with_data(column, data, leading.colType) for column, data in found]


def with_data(column: ColumnStatisticsObj, data: ColumnStatisticsData, column_type: str | None = None) -> ColumnStatisticsObj:
    """Return the column with these data, and with another type if one is given: the same column if they are its own."""
    if data is column.statsData:
        return column
    return ColumnStatisticsObj(colName=column.colName, colType=column_type or column.colType, statsData=data)


@cache
def _needed(struct: type) -> tuple[tuple[str, bool, bool], ...]:
    """Return (name, is required, is a struct) of the fields of a struct that are required or are structs."""
    fields = ((field[1], field[-1], field[0] == STRUCT) for field in struct.thrift_spec.values())  # type: ignore[attr-defined]
    return tuple(field for field in fields if field[1] or field[2])


def missing_field(struct: Any) -> str | None:
    """Return the first required field that a struct of statistics lacks, such as `longStats.numDVs`: Java can not read the struct."""
    for name, is_required, is_struct in _needed(type(struct)):  # type: ignore[arg-type]  # a class is hashable
        value = getattr(struct, name)
        if value is None:
            if is_required:
                return name
        elif is_struct and (inner := missing_field(value)):
            return f"{name}.{inner}"
    return None
