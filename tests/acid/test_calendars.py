"""Days that are written for Hive are read back as the same dates, from the year 1 on, in every kind of column."""

from __future__ import annotations

from datetime import date, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest

from metastore.acid.rewriting.bucket_files import DAY, hybrid_day
from metastore.acid.values.calendars import GREGORIAN, as_read, proleptic_days

DAYS = [*range(-719_162, GREGORIAN - 10, 97), *range(GREGORIAN - 400, GREGORIAN - 10), *range(GREGORIAN, GREGORIAN + 3), 0, 20_000]
"""Days of both calendars, without the ten days that the change of calendars left out: Hive's files can not hold those."""
EPOCH = date(1970, 1, 1)


def written(day: int) -> int:
    return hybrid_day(day) if day < GREGORIAN else day


def test_days_come_back() -> None:
    old = np.asarray([day for day in DAYS if day < GREGORIAN])
    assert proleptic_days(np.asarray([hybrid_day(int(day)) for day in old])).tolist() == old.tolist()


@pytest.mark.parametrize("shape", ["plain", "list", "struct", "map"])
def test_columns_come_back(shape: str) -> None:
    days = pa.array([None, *map(written, DAYS)], pa.int32()).cast(pa.date32())
    times = pa.array([None, *(written(day) * DAY + 12_345_678 for day in DAYS)], pa.int64()).cast(pa.timestamp("us"))
    want_days = [None, *(EPOCH + timedelta(days=day) for day in DAYS)]
    want_times = [None, *(datetime(1970, 1, 1) + timedelta(days=day, microseconds=12_345_678) for day in DAYS)]  # noqa: DTZ001
    if shape == "plain":
        assert as_read(days).to_pylist() == want_days
        assert as_read(times).to_pylist() == want_times
    elif shape == "list":
        values = pa.ListArray.from_arrays([0, 2, len(days)], days)
        assert as_read(values).to_pylist() == [want_days[:2], want_days[2:]]
    elif shape == "struct":
        values = pa.StructArray.from_arrays([days, times], names=["d", "t"])
        assert as_read(values).to_pylist() == [{"d": d, "t": t} for d, t in zip(want_days, want_times, strict=True)]
    else:
        keys = pa.array(range(len(days)), pa.int32())
        values = pa.MapArray.from_arrays([0, len(days)], keys, days)
        assert as_read(values).to_pylist() == [list(enumerate(want_days))]
