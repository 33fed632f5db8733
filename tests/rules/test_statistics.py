from decimal import Decimal as Number

from hypothesis import given
from hypothesis import strategies as st

from metastore.idl import (
    ColumnStatisticsData,
    ColumnStatisticsObj,
    Decimal,
    DecimalColumnStatsData,
    LongColumnStatsData,
)
from metastore.rules.distinct_sketches import SPARSE_BITS, Sketch, encode
from metastore.rules.statistics import aggregate, merge

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


def test_new_statistics_of_another_type_replace_the_old() -> None:
    old = column(longStats=LongColumnStatsData(numNulls=1, numDVs=4))
    new = column(decimalStats=DecimalColumnStatsData(numNulls=2, numDVs=1))
    assert merge(old, new) == new
