"""Timestamps of text are read with fractions of any length."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from metastore.rules.values.times import timestamp


@pytest.mark.parametrize(
    ("fraction", "microseconds"),
    [("", 0), (".1", 100_000), (".12", 120_000), (".123", 123_000), (".1234567", 123_456), (".123456789", 123_456), (",5", 500_000)],
)
def test_fractions(fraction: str, microseconds: int) -> None:
    assert timestamp(f"2024-01-31 10:20:30{fraction}") == datetime(2024, 1, 31, 10, 20, 30, microseconds)  # noqa: DTZ001  # no zone
    zone = timezone(timedelta(hours=2))
    assert timestamp(f"2024-01-31T10:20:30{fraction}+02:00") == datetime(2024, 1, 31, 10, 20, 30, microseconds, zone)


@pytest.mark.parametrize("text", ["", "now", "2024-01-31 10:20:30.", "2024-02-30 10:20:30.5", "2024-01-31 10:20:30.5x"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"Invalid isoformat|day is out of range|must be in"):
        timestamp(text)
