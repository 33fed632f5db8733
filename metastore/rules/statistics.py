"""Join column statistics of several partitions, or of old and new data, into one. Never reads or stores them.

Source: Hive's columnstats.aggr and columnstats.merge. Over partitions the number of distinct values is estimated between its bounds, as
Hive does unless it is told to read bit vectors; of old and new data it is counted by their bit vectors. A histogram is not joined.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache, reduce
from typing import Any

from metastore.idl import ColumnStatisticsData, ColumnStatisticsObj, Decimal
from metastore.rules import distinct_sketches

KINDS = (
    "booleanStats",
    "longStats",
    "doubleStats",
    "stringStats",
    "binaryStats",
    "decimalStats",
    "dateStats",
    "timestampStats",
)
STRUCT = 12
"""Thrift's number of the type of a struct."""
SUMMED = ("numNulls", "numTrues", "numFalses")
GREATEST = ("maxColLen", "avgColLen")


def _decimal(value: Decimal) -> Fraction:
    return Fraction(int.from_bytes(value.unscaled, "big", signed=True)) / Fraction(10) ** value.scale


ORDERS: dict[str, Callable[[Any], Any]] = {
    "dateStats": lambda value: value.daysSinceEpoch,
    "timestampStats": lambda value: value.secondsSinceEpoch,
    "decimalStats": _decimal,
}
"""What a bound of each kind is ordered by; a plain number by itself."""


def kind_of(data: ColumnStatisticsData) -> str | None:
    """Return the name of the field that is set, None for an empty union."""
    return next((kind for kind in KINDS if getattr(data, kind) is not None), None)


@cache
def _needed(struct: type) -> tuple[tuple[str, bool, bool], ...]:
    """Return name, whether it is required and whether it is a struct, of the fields of a struct that are either."""
    fields = ((field[1], field[-1], field[0] == STRUCT) for field in struct.thrift_spec.values())  # type: ignore[attr-defined]
    return tuple(field for field in fields if field[1] or field[2])


def missing_field(struct: Any) -> str | None:
    """Return the first required field that a struct of statistics lacks, such as `longStats.numDVs`: Java reads none without it."""
    for name, is_required, is_struct in _needed(type(struct)):  # type: ignore[arg-type]  # a class is hashable
        value = getattr(struct, name)
        if value is None:
            if is_required:
                return name
        elif is_struct and (inner := missing_field(value)):
            return f"{name}.{inner}"
    return None


def merge(old: ColumnStatisticsObj, new: ColumnStatisticsObj) -> ColumnStatisticsObj:
    """Return statistics of old and new data together; the new alone when the column changed its type.

    Without two bit vectors that can be joined there are at least as many distinct values as in either.
    """
    kind = kind_of(new.statsData)
    if kind is None or kind != kind_of(old.statsData):
        return new
    joined = aggregate([old, new])
    data, *parts = (getattr(each.statsData, kind) for each in (joined, old, new))
    if hasattr(data, "numDVs") and (sketch := distinct_sketches.merged(*(part.bitVectors for part in parts))):
        data.bitVectors, count = sketch
        data.numDVs = max(data.numDVs or 0, count)
    return joined


def aggregate(columns: Sequence[ColumnStatisticsObj], tuner: float = 0.0) -> ColumnStatisticsObj:
    """Return statistics of one column over all partitions in `columns`, at least one.

    Distinct values: lower + (upper - lower) * `tuner`, from 0 to 1, where the lower bound is the greatest count of a partition and the
    upper bound the sum of all. Partitions whose statistics are of another type than the first's are left out.
    """
    first = columns[0]
    kind = kind_of(first.statsData)
    if kind is None or len(columns) == 1:
        return first
    parts = [data for data in (getattr(column.statsData, kind) for column in columns) if data is not None]
    data = type(parts[0])()
    for _, name, *_ in data.thrift_spec.values():
        setattr(data, name, _joined(kind, name, [getattr(part, name) for part in parts], tuner))
    return ColumnStatisticsObj(colName=first.colName, colType=first.colType, statsData=ColumnStatisticsData(**{kind: data}))


def _joined(kind: str, name: str, values: Sequence[Any], tuner: float) -> Any:
    known = [value for value in values if value is not None]
    if not known:
        return None
    if name in SUMMED:
        return sum(known)
    if name in GREATEST:
        return max(known)
    if name == "numDVs":
        return int(max(known) + (sum(known) - max(known)) * tuner)
    order = ORDERS.get(kind, lambda value: value)
    if name == "lowValue":
        return reduce(lambda low, value: value if order(value) < order(low) else low, known)
    if name == "highValue":
        return reduce(lambda high, value: value if order(value) > order(high) else high, known)
    return None
