"""How values are written."""

from __future__ import annotations

import time

import pytest

from metastore.console import formats
from metastore.console.pages.statistics import statistics_of
from metastore.idl import (
    ColumnStatisticsData,
    ColumnStatisticsObj,
    Date,
    DateColumnStatsData,
    Decimal,
    DecimalColumnStatsData,
    Timestamp,
    TimestampColumnStatsData,
)


def test_times() -> None:
    assert formats.moment(0) == formats.moment(None) == formats.ago(None) == ""
    assert formats.moment(1_700_000_000_000) == "2023-11-14 22:13:20 UTC"
    assert formats.moment(10**18) == str(10**18), "a client may say anything"
    assert formats.ago((time.time() - 600) * 1000) == "10 min"


@pytest.mark.parametrize(
    ("seconds", "text"), [(-1, "0 ms"), (0.0123, "12 ms"), (1, "1 s"), (59, "59 s"), (90, "1.5 min"), (3600, "1.0 h"), (864000, "10 d")]
)
def test_durations(seconds: float, text: str) -> None:
    assert formats.duration(seconds) == text


def test_sizes_and_numbers() -> None:
    assert [formats.size(number) for number in (0, 1023, 1536, 5 * 2**40, 2**60)] == [
        "0 B",
        "1023 B",
        "1.5 KiB",
        "5.0 TiB",
        "1048576.0 TiB",
    ]
    assert formats.count(1234567) == "1\u202f234\u202f567"


def test_text_with_backticks_becomes_code_and_nothing_else() -> None:
    assert formats.code("see `a<b>` & <c>") == "see <code>a&lt;b&gt;</code> &amp; &lt;c&gt;"


def test_links_leave_out_parameters_without_a_value() -> None:
    assert formats.link("/x", a="1 &2", b="", c=None, d=0) == "/x?a=1+%262&d=0"
    assert formats.link("/x") == "/x"


def test_statistics_of_every_type() -> None:
    data = [
        ColumnStatisticsData(
            dateStats=DateColumnStatsData(lowValue=Date(daysSinceEpoch=0), highValue=Date(daysSinceEpoch=10**9), numNulls=0, numDVs=1)
        ),
        ColumnStatisticsData(
            timestampStats=TimestampColumnStatsData(
                lowValue=Timestamp(secondsSinceEpoch=86400), highValue=Timestamp(secondsSinceEpoch=10**17), numNulls=0, numDVs=1
            )
        ),
        ColumnStatisticsData(
            decimalStats=DecimalColumnStatsData(
                lowValue=Decimal(unscaled=b"\xff", scale=2), highValue=Decimal(unscaled=b"\x30\x39", scale=2), numNulls=0, numDVs=1
            )
        ),
    ]  # fmt: skip
    found = statistics_of(ColumnStatisticsObj(colName=f"c{number}", colType="x", statsData=each) for number, each in enumerate(data))
    assert [(each.low, each.high) for each in found] == [
        ("1970-01-01", str(10**9)), ("1970-01-02 00:00:00", str(10**17)), ("-0.01", "123.45"),
    ]  # fmt: skip
    empty = ColumnStatisticsObj(colName="c", colType="x", statsData=ColumnStatisticsData())
    assert statistics_of([empty])[0].nulls is None
