"""Read Hive's column statistics into the bytes that records have. Source: Hive's StatObjectConverter."""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Iterable
from decimal import Decimal as Number
from decimal import InvalidOperation
from typing import Any

from metastore.binary import each_to_bytes
from metastore.idl import (
    BinaryColumnStatsData,
    BooleanColumnStatsData,
    ColumnStatisticsData,
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
from metastore.transfer.hive.schema import HiveSchema

COLUMNS = (
    "ENGINE", "COLUMN_NAME", "COLUMN_TYPE", "LAST_ANALYZED", "NUM_NULLS", "NUM_DISTINCTS", "LONG_LOW_VALUE", "LONG_HIGH_VALUE",
    "DOUBLE_LOW_VALUE", "DOUBLE_HIGH_VALUE", "BIG_DECIMAL_LOW_VALUE", "BIG_DECIMAL_HIGH_VALUE", "BIT_VECTOR", "HISTOGRAM", "AVG_COL_LEN",
    "MAX_COL_LEN", "NUM_TRUES", "NUM_FALSES",
)  # fmt: skip
NONE = (b"HL", b"")
"""Bytes that Hive 3 and 4 write in place of a missing bit vector or histogram."""
INTEGERS = ("tinyint", "smallint", "int", "bigint")
Statistics = dict[str, dict[str, list[Any]]]
"""Statistics by engine and column: type, when it was analysed, and the data."""


def load(schema: HiveSchema, table: str, by: str, keys: Iterable[int]) -> dict[int, Statistics]:
    """Return the statistics of tables or partitions by their numbers."""
    rows = list(schema.among(table, by, keys, *COLUMNS))
    with_timestamps = schema.has(table, "HISTOGRAM") or schema.has(table, "ENGINE")
    data = each_to_bytes([_data(row[3], row[5:], with_timestamps) for row in rows])
    found: dict[int, Statistics] = {}
    for row, raw in zip(rows, data, strict=True):
        engine = found.setdefault(row[0], {}).setdefault(row[1] or "hive", {})
        engine[row[2]] = [row[3], row[4], b2a_base64(raw, newline=False).decode()]
    return found


def _data(kind: str, row: Any, with_timestamps: bool) -> ColumnStatisticsData:
    nulls, distinct, low, high, double_low, double_high, decimal_low, decimal_high, bits, histogram, average, longest, trues, falses = row
    base = kind.partition("(")[0].strip().lower()
    of_values = {"numNulls": nulls, "numDVs": distinct, "bitVectors": None if bits in NONE else bits, "histogram": histogram or None}
    texts = {"numNulls": nulls, "numDVs": distinct, "bitVectors": of_values["bitVectors"]}
    if base == "boolean":
        return ColumnStatisticsData(booleanStats=BooleanColumnStatsData(numTrues=trues, numFalses=falses, numNulls=nulls))
    if base in ("string", "varchar", "char"):
        return ColumnStatisticsData(stringStats=StringColumnStatsData(maxColLen=longest, avgColLen=average, **texts))
    if base == "binary":
        return ColumnStatisticsData(binaryStats=BinaryColumnStatsData(maxColLen=longest, avgColLen=average, numNulls=nulls))
    if base in INTEGERS or (base == "timestamp" and not with_timestamps):
        return ColumnStatisticsData(longStats=LongColumnStatsData(lowValue=low, highValue=high, **of_values))
    if base in ("double", "float"):
        return ColumnStatisticsData(doubleStats=DoubleColumnStatsData(lowValue=double_low, highValue=double_high, **of_values))
    if base == "decimal":
        return ColumnStatisticsData(
            decimalStats=DecimalColumnStatsData(lowValue=_decimal(decimal_low), highValue=_decimal(decimal_high), **of_values)
        )
    if base == "date":
        dates = [None if value is None else Date(daysSinceEpoch=value) for value in (low, high)]
        return ColumnStatisticsData(dateStats=DateColumnStatsData(lowValue=dates[0], highValue=dates[1], **of_values))
    if base == "timestamp":
        times = [None if value is None else Timestamp(secondsSinceEpoch=value) for value in (low, high)]
        return ColumnStatisticsData(timestampStats=TimestampColumnStatsData(lowValue=times[0], highValue=times[1], **of_values))
    return ColumnStatisticsData()


def _decimal(text: str | None) -> Decimal | None:
    """Return a decimal as in Thrift: the unscaled number, in as few bytes as Java writes, and the scale."""
    if text is None:
        return None
    try:
        sign, digits, exponent = Number(text).as_tuple()
    except InvalidOperation:
        return None
    number = int("".join(map(str, digits))) * (-1 if sign else 1)
    size = (number if number >= 0 else ~number).bit_length() // 8 + 1
    return Decimal(scale=-int(exponent), unscaled=number.to_bytes(size, "big", signed=True))
