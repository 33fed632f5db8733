from decimal import Decimal as Number

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metastore.idl import (
    BooleanColumnStatsData,
    ColumnStatisticsData,
    ColumnStatisticsObj,
    Decimal,
    DecimalColumnStatsData,
    LongColumnStatsData,
    StringColumnStatsData,
    Timestamp,
    TimestampColumnStatsData,
)
from metastore.rules.statistics.distinct_sketches import SPARSE_BITS, Sketch, encode
from metastore.rules.statistics.statistics import aggregate, are_joinable, merge

LONGS = st.integers(-(2**63), 2**63 - 1)
COUNTS = st.integers(0, 10**9)
STATISTICS = st.builds(
    lambda low, high, nulls, distinct: LongColumnStatsData(lowValue=low, highValue=high, numNulls=nulls, numDVs=distinct),
    st.none() | LONGS, st.none() | LONGS, COUNTS, COUNTS,
)  # fmt: skip


def column(**data: object) -> ColumnStatisticsObj:
    return ColumnStatisticsObj(colName="a", colType="bigint", statsData=ColumnStatisticsData(**data))


def decimal(text: str) -> Decimal:
    number = Number(text)
    scale = -int(number.as_tuple().exponent)
    unscaled = int(number.scaleb(scale))
    return Decimal(unscaled=unscaled.to_bytes(unscaled.bit_length() // 8 + 1, "big", signed=True), scale=scale)


@given(st.lists(STATISTICS, min_size=2, max_size=6), st.floats(0, 1))
def test_bounds_hold_over_all_partitions(parts: list[LongColumnStatsData], tuner: float) -> None:
    joined = aggregate([column(longStats=part) for part in parts], tuner).statsData.longStats
    lows = [part.lowValue for part in parts if part.lowValue is not None]
    highs = [part.highValue for part in parts if part.highValue is not None]
    assert joined.lowValue == min(lows, default=None)
    assert joined.highValue == max(highs, default=None)
    assert joined.numNulls == sum(part.numNulls for part in parts)
    assert max(part.numDVs for part in parts) <= joined.numDVs <= sum(part.numDVs for part in parts)


def test_decimals_are_compared_by_value() -> None:
    parts = [
        column(decimalStats=DecimalColumnStatsData(lowValue=decimal(low), highValue=decimal(high), numNulls=0, numDVs=1))
        for low, high in (("-1.50", "9"), ("-12", "100.25"), ("3", "99.999"))
    ]
    joined = aggregate(parts).statsData.decimalStats
    assert (joined.lowValue, joined.highValue) == (decimal("-12"), decimal("100.25"))


def test_a_joined_result_has_no_bit_vector_of_one_part() -> None:
    one, two = (column(longStats=LongColumnStatsData(numNulls=0, numDVs=4, bitVectors=bits)) for bits in (b"HLa", b"HLb"))
    assert aggregate([one]).statsData.longStats.bitVectors == b"HLa"
    assert aggregate([one, two]).statsData.longStats.bitVectors is None


def test_old_and_new_data_have_as_many_distinct_values_as_their_sketches_say() -> None:
    sketches = [encode(Sketch(10, SPARSE_BITS, dict.fromkeys(keys, 1)), len(keys)) for keys in (range(1, 9), range(5, 16))]
    old, new = (
        column(longStats=LongColumnStatsData(numNulls=0, numDVs=distinct, bitVectors=sketch))
        for distinct, sketch in zip((8, 11), sketches, strict=True)
    )
    joined = merge(old, new).statsData.longStats
    assert joined.numDVs == 15
    assert joined.bitVectors == encode(Sketch(10, SPARSE_BITS, dict.fromkeys(range(1, 16), 1)), 15)
    assert merge(old, column(longStats=LongColumnStatsData(numNulls=0, numDVs=11))).statsData.longStats == LongColumnStatsData(
        numNulls=0, numDVs=11
    )


def test_old_and_new_data_are_joined_in_the_kind_of_the_new() -> None:
    old = column(longStats=LongColumnStatsData(lowValue=1, numNulls=1, numDVs=4))
    new = column(timestampStats=TimestampColumnStatsData(lowValue=Timestamp(3), highValue=Timestamp(9), numNulls=2, numDVs=1))
    assert are_joinable(old, new)
    assert merge(old, new).statsData.timestampStats == TimestampColumnStatsData(Timestamp(1), Timestamp(9), numNulls=3, numDVs=4)
    text = column(stringStats=StringColumnStatsData(maxColLen=1, avgColLen=1.0, numNulls=0, numDVs=1))
    assert not are_joinable(text, new)
    with pytest.raises(ValueError, match="can not be joined"):
        merge(text, new)


def test_an_unknown_count_is_no_number() -> None:
    one, two = (
        column(stringStats=StringColumnStatsData(maxColLen=length, avgColLen=float(length), numNulls=nulls, numDVs=distinct))
        for length, nulls, distinct in ((-1, -1, -1), (7, 5, 3))
    )
    for tuner in (0.0, 1.0):
        assert aggregate([one, two], tuner).statsData.stringStats == StringColumnStatsData(7, 7.0, numNulls=-1, numDVs=3)
        assert aggregate([one, one], tuner).statsData.stringStats == StringColumnStatsData(-1, -1.0, numNulls=-1, numDVs=-1)
    booleans = [column(booleanStats=BooleanColumnStatsData(numTrues=1, numFalses=falses, numNulls=0)) for falses in (-1, 4)]
    assert aggregate(booleans).statsData.booleanStats == BooleanColumnStatsData(numTrues=2, numFalses=-1, numNulls=0)


@pytest.mark.parametrize("tuner", [0.0, 0.5, 1.0])
def test_a_sum_ends_at_the_greatest_count_there_is(tuner: float) -> None:
    most = 2**63 - 1
    parts = [column(longStats=LongColumnStatsData(numNulls=most, numDVs=most)) for _ in range(3)]
    assert aggregate(parts, tuner).statsData.longStats == LongColumnStatsData(numNulls=most, numDVs=most)
