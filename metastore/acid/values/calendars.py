"""Bring days and times of files into the calendar of Arrow and Spark, and back: before 1582-10-15 the files count Julian days.

Hive and Spark write ORC in this way, and read every file in this way. Hive does the same in Parquet, unless a file notes another calendar.
Reads no file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore.acid.values.nested import lists, maps, structs

GREGORIAN = -141427
"""1582-10-15 in days since 1970."""
_JULIAN_EPOCH = 2440588
"""1970-01-01 as a Julian day number."""
_PER_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}


def as_read(values: Any) -> Any:
    """Return an Arrow array of an ORC file, its days and times in the proleptic calendar; times have no zone."""
    return _moved(values, proleptic_days)


def as_stored(values: Any) -> Any:
    """Return an Arrow array as files have it, its days and times in the calendar that is Julian before 1582-10-15; times have no zone."""
    return _moved(values, hybrid_days)


def _moved(values: Any, move: Callable[[Any], Any]) -> Any:
    kind = values.type
    if pa.types.is_date32(kind):
        return _moved_days(values, pa.int32(), 1, move)
    if pa.types.is_timestamp(kind):
        return _moved_days(values, pa.int64(), _PER_DAY[kind.unit], move)
    if not _has_days(kind):
        return values
    if pa.types.is_struct(kind):
        return structs(values, [_moved(part, move) for part in values.flatten()], kind)
    if pa.types.is_map(kind):
        return maps(values, _moved(values.keys, move), _moved(values.items, move), kind)
    return lists(values, _moved(values.values, move), kind)


def _has_days(kind: pa.DataType) -> bool:
    if pa.types.is_nested(kind):
        return any(_has_days(kind.field(place).type) for place in range(kind.num_fields))
    return bool(pa.types.is_date32(kind) or pa.types.is_timestamp(kind))


def _moved_days(values: Any, number: pa.DataType, per_day: int, move: Callable[[Any], Any]) -> Any:
    numbers = values.cast(number)
    least = pc.min(numbers).as_py()
    if least is None or least >= GREGORIAN * per_day:
        return values
    found = np.asarray(numbers.fill_null(0)).astype(np.int64)
    days, within = np.divmod(found, per_day)
    old = days < GREGORIAN
    found[old] = move(days[old]) * per_day + within[old]
    return pa.array(found, mask=np.asarray(pc.is_null(values))).cast(number).cast(values.type)


def proleptic_days(days: Any) -> Any:
    """Return Julian days as days with the same dates in the proleptic Gregorian calendar: numpy arrays of int64, since 1970."""
    shifted = days + _JULIAN_EPOCH + 32082
    years = (4 * shifted + 3) // 1461
    rest = shifted - 1461 * years // 4
    months = (5 * rest + 2) // 153
    # Years begin with March here, so that the day that only leap years have is the last.
    of_month = rest - (153 * months + 2) // 5 + 1
    return of_month + (153 * months + 2) // 5 + 365 * years + years // 4 - years // 100 + years // 400 - 32045 - _JULIAN_EPOCH


def hybrid_days(days: Any) -> Any:
    """Return proleptic days as days with the same dates in the Julian calendar: numpy arrays of int64, since 1970."""
    dates = days.astype("datetime64[D]")
    months = dates.astype("datetime64[M]")
    years, month = months.astype(np.int64) // 12 + 1970, months.astype(np.int64) % 12 + 1
    of_month = (dates - months).astype(np.int64) + 1
    shift = (14 - month) // 12
    years, month = years + 4800 - shift, month + 12 * shift - 3
    return of_month + (153 * month + 2) // 5 + 365 * years + years // 4 - 32083 - _JULIAN_EPOCH
