"""Statistics of columns as pages show them, for columns of every type."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from metastore.idl import ColumnStatisticsObj


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """The known facts of a column; None where its type has no such number."""

    name: str
    type: str
    nulls: int | None
    distinct: int | None
    low: str | None
    high: str | None
    average_length: float | None
    longest: int | None
    true: int | None
    false: int | None


def statistics_of(found: Iterable[ColumnStatisticsObj]) -> list[ColumnStatistics]:
    """Return statistics in the order of their columns' names."""
    return sorted((_of(each) for each in found), key=lambda each: each.name)


def _of(each: ColumnStatisticsObj) -> ColumnStatistics:
    data: Any = next((value for value in vars(each.statsData).values() if value is not None), None)

    def part(name: str) -> Any:
        return getattr(data, name, None)

    return ColumnStatistics(
        name=each.colName,
        type=each.colType,
        nulls=part("numNulls"),
        distinct=part("numDVs"),
        low=_text(part("lowValue")),
        high=_text(part("highValue")),
        average_length=part("avgColLen"),
        longest=part("maxColLen"),
        true=part("numTrues"),
        false=part("numFalses"),
    )


def _text(value: Any) -> str | None:
    """Write a value: a number, days since 1970, seconds since 1970, or a decimal's unscaled bytes and scale."""
    if value is None:
        return None
    try:
        if (days := getattr(value, "daysSinceEpoch", None)) is not None:
            return (datetime.date(1970, 1, 1) + datetime.timedelta(days=days)).isoformat()
        if (seconds := getattr(value, "secondsSinceEpoch", None)) is not None:
            return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError, OSError):  # clients may send any number
        return str(next(iter(vars(value).values())))
    if (unscaled := getattr(value, "unscaled", None)) is not None:
        from decimal import Decimal

        digits = int.from_bytes(unscaled if isinstance(unscaled, bytes) else unscaled.encode("latin-1"), "big", signed=True)
        return f"{Decimal(digits).scaleb(-(value.scale or 0)):f}"
    return str(value)
