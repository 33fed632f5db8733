"""The kind of statistics that a column's type calls for, and the same statistics in another kind."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metastore.idl import (
    BinaryColumnStatsData,
    BooleanColumnStatsData,
    ColumnStatisticsData,
    ColumnStatisticsObj,
    Date,
    DateColumnStatsData,
    Decimal,
    DecimalColumnStatsData,
    DoubleColumnStatsData,
    LongColumnStatsData,
    StringColumnStatsData,
    Timestamp,
    TimestampColumnStatsData,
)
from metastore.rules.statistics.statistics_kinds import alike, in_kind, kind_for, kind_of, order_of

LONGS = st.integers(-(2**63), 2**63 - 1)


def longs(low: int | None, high: int | None, **more: object) -> ColumnStatisticsData:
    return ColumnStatisticsData(longStats=LongColumnStatsData(lowValue=low, highValue=high, numNulls=1, numDVs=2, **more))


def doubles(low: float, high: float) -> ColumnStatisticsData:
    return ColumnStatisticsData(doubleStats=DoubleColumnStatsData(lowValue=low, highValue=high, numNulls=1, numDVs=2))


def decimals(unscaled: int, scale: int) -> ColumnStatisticsData:
    bound = Decimal(unscaled=unscaled.to_bytes(unscaled.bit_length() // 8 + 1, "big", signed=True), scale=scale)
    return ColumnStatisticsData(decimalStats=DecimalColumnStatsData(lowValue=bound, highValue=bound, numNulls=1, numDVs=2))


TEXTS = ColumnStatisticsData(stringStats=StringColumnStatsData(maxColLen=1, avgColLen=1.0, numNulls=0, numDVs=1))


@pytest.mark.parametrize(
    ("column_type", "kind"),
    [
        ("int", "longStats"),
        ("BIGINT", "longStats"),
        ("float", "doubleStats"),
        ("decimal(10,2)", "decimalStats"),
        ("varchar(9)", "stringStats"),
        ("boolean", "booleanStats"),
        ("binary", "binaryStats"),
        ("date", "dateStats"),
        ("timestamp", "timestampStats"),
        ("timestamp with local time zone", "timestampStats"),
        ("array<int>", None),
        ("nonsense", None),
        ("", None),
    ],
)
def test_the_type_calls_for_a_kind(column_type: str, kind: str | None) -> None:
    assert kind_for(column_type) == kind
    assert kind_for(column_type, timestamps_are_longs=True) == ("longStats" if kind == "timestampStats" else kind)


@given(st.none() | LONGS, st.none() | LONGS, st.none() | st.binary(max_size=3))
def test_times_are_converted_to_longs_and_back(low: int | None, high: int | None, sketch: bytes | None) -> None:
    plain = longs(low, high, bitVectors=sketch, histogram=sketch)
    for kind in ("timestampStats", "dateStats"):
        converted = in_kind(plain, kind)
        assert converted is not None
        assert kind_of(converted) == kind
        assert in_kind(converted, "longStats") == plain


@given(st.floats() | st.integers(-(10**20), 10**20).map(float))
def test_bounds_that_another_kind_does_not_hold_grow_wider(number: float) -> None:
    converted = in_kind(doubles(number, number), "longStats")
    if math.isnan(number):
        assert converted is None
        return
    assert converted is not None
    low, high = converted.longStats.lowValue, converted.longStats.highValue
    assert low <= number or number < low == -(2**63)
    assert high >= number or number > high == 2**63 - 1
    assert high - low <= 1


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_double_is_the_decimal_by_which_it_is_written(number: float) -> None:
    converted = in_kind(doubles(number, number), "decimalStats")
    assert converted is not None
    assert order_of("decimalStats")(converted.decimalStats.lowValue) == Fraction(repr(number))


@given(st.integers(-(10**400), 10**400), st.integers(0, 330))
def test_a_decimal_lies_between_its_doubles(unscaled: int, scale: int) -> None:
    converted = in_kind(decimals(unscaled, scale), "doubleStats")
    assert converted is not None
    low, high = converted.doubleStats.lowValue, converted.doubleStats.highValue
    assert low == high or math.nextafter(low, math.inf) == high
    assert low <= Fraction(unscaled, 10**scale) <= high


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (TEXTS, "longStats"),
        (longs(1, 2), "stringStats"),
        (longs(1, 2), "booleanStats"),
        (longs(1, 2), None),
        (ColumnStatisticsData(), "longStats"),
        (ColumnStatisticsData(binaryStats=BinaryColumnStatsData(1, 1.0, 0)), "stringStats"),
        (ColumnStatisticsData(booleanStats=BooleanColumnStatsData(1, 1, 0)), "longStats"),
        (ColumnStatisticsData(dateStats=DateColumnStatsData(Date(1), Date(2), 0, 1)), "timestampStats"),
        (ColumnStatisticsData(timestampStats=TimestampColumnStatsData(Timestamp(1), Timestamp(2), 0, 1)), "doubleStats"),
        (doubles(math.inf, math.inf), "decimalStats"),
    ],
)
def test_statistics_of_another_meaning_are_not_converted(data: ColumnStatisticsData, kind: str | None) -> None:
    assert in_kind(data, kind) is None


def test_sketches_of_other_hashes_go() -> None:
    converted = in_kind(longs(1, 2, bitVectors=b"HL", histogram=b"h"), "doubleStats")
    assert converted == doubles(1.0, 2.0)


def column(data: ColumnStatisticsData, column_type: str) -> ColumnStatisticsObj:
    return ColumnStatisticsObj(colName="a", colType=column_type, statsData=data)


def test_partitions_of_several_types_are_converted_to_one_kind() -> None:
    long, double, text = column(longs(1, 2), "int"), column(doubles(0.5, 3.0), "double"), column(TEXTS, "string")
    assert alike([long, long]) == [long, long]
    assert alike([long, double]) == [column(doubles(1.0, 2.0), "double"), double]
    assert alike([long, text, double]) == [long, None, column(longs(0, 3), "int")]
    assert alike([text, long]) == [text, None]
    assert alike([column(decimals(15, 1), "decimal(2,1)"), long, double])[0] == column(doubles(1.5, 1.5), "double")
