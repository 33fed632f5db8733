"""Statistics that are answered from stored bytes read as if each had been a struct."""

from __future__ import annotations

from metastore import idl
from metastore.binary import from_bytes, to_bytes
from metastore.idl import ColumnStatisticsData, ColumnStatisticsObj, PartitionsStatsResult
from metastore.wire.statistics_lists import encoded

DATA = {
    "booleanStats": ColumnStatisticsData(booleanStats=idl.BooleanColumnStatsData(1, 2, 3)),
    "longStats": ColumnStatisticsData(longStats=idl.LongColumnStatsData(-5, 2**40, 0, 7, b"\0\xff")),
    "stringStats": ColumnStatisticsData(stringStats=idl.StringColumnStatsData(24, 11.5, 17, 40)),
    "doubleStats": ColumnStatisticsData(doubleStats=idl.DoubleColumnStatsData(float("-inf"), 0.5, 0, 1)),
    "decimalStats": ColumnStatisticsData(decimalStats=idl.DecimalColumnStatsData(
        lowValue=idl.Decimal(scale=2, unscaled=b"\x80"), numNulls=1, numDVs=2,
    )),
    "dateStats": ColumnStatisticsData(dateStats=idl.DateColumnStatsData(highValue=idl.Date(9), numNulls=0, numDVs=1)),
    "nothing": ColumnStatisticsData(),
}  # fmt: skip


def test_bytes_and_structs_say_the_same() -> None:
    stored = {
        "k=1/ä=😀": [(name, f"type of {name}", to_bytes(data)) for name, data in DATA.items()],
        "k=2": [("longStats", "bigint", to_bytes(DATA["longStats"]))],
        "k=3": [],
    }
    expected = {
        partition: [
            ColumnStatisticsObj(colName=name, colType=kind, statsData=from_bytes(ColumnStatisticsData, raw)) for name, kind, raw in columns
        ]
        for partition, columns in stored.items()
    }
    reply = encoded(stored, PartitionsStatsResult(isStatsCompliant=True))
    data = reply.encode_success("binary")
    assert data is not None
    for read in (from_bytes(PartitionsStatsResult, data), reply.value()):
        assert read.partStats == expected
        assert read.isStatsCompliant is True
    assert from_bytes(PartitionsStatsResult, encoded({}, PartitionsStatsResult()).encode_success("binary") or b"").partStats == {}
