"""Hive and Spark read the same values from both writers, in each format, to the last nanosecond and blank."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from metastore.spark import AcidTable
from metastore.spark.writing.faithful import CanNotKeep
from tests.hive4.conftest import Story
from tests.hive4.spark.test_spark import ACID, INSERT_ONLY, Both
from tests.support.engines.spark_session import session

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
COLUMNS = "id int, s string, b boolean, d double, n decimal(10,3), day date, at timestamp, data binary, c char(5), v varchar(3)"
ROWS = r"""
    select 1 id, '  lead and trail ' s, true b, 1e300D d, 12.340BD n, date'1500-03-01' day, timestamp'2024-07-01 12:30:00.123456' at,
        cast('bin' as binary) data, 'ab' c, 'xy ' v
    union all select 2, '', false, 0.1D, -0.001BD, date'9999-12-31', timestamp'1500-03-01 01:02:03.5', unhex('00FF0A0D'), '', ''
    union all select 3, 'q"uo,te \\ back', null, null, null, null, timestamp'1950-01-01 00:00:00.5', cast('' as binary), 'abcde', 'abc'
    union all select 4, null, null, null, null, null, null, null, null, null
"""
WANT = [
    ("1", "[  lead and trail ]", "true", "1.0E300", "12.340", "1500-03-01", "2024-07-01 12:30:00.123456", "62696E", "[ab]", "[xy ]"),
    ("2", "[]", "false", "0.1", "-0.001", "9999-12-31", "1500-03-01 01:02:03.5", "00FF0A0D", "[]", "[]"),
    ("3", '[q"uo,te \\ back]', "NULL", "NULL", "NULL", "NULL", "1950-01-01 00:00:00.5", "", "[abcde]", "[abc]"),
    ("4", *("NULL",) * 9),
]
SHOWN = "id, concat('[', s, ']'), b, d, n, day, at, hex(data), concat('[', c, ']'), concat('[', v, ']')"


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with session(tmp_path_factory.mktemp("spark-warehouse")) as opened:
        yield opened


@pytest.mark.parametrize("stored", ["TEXTFILE", "JSONFILE", "PARQUET", "ORC", "acid"])
def test_hive_reads_the_rows_of_spark_and_back(spark: SparkSession, story: Story, stored: str) -> None:
    how = ACID if stored == "acid" else f"STORED AS {stored} {INSERT_ONLY}"
    story.sql(f"CREATE TABLE t ({COLUMNS}) {how}")
    table = AcidTable.forName(spark, f"{story.name}.t", story.place.uri)
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    table.insert(spark.sql(ROWS).coalesce(1))
    assert sorted(story.sql(f"SELECT {SHOWN} FROM t")) == WANT
    assert story.sql("SELECT id FROM t WHERE c = 'ab' AND v = 'xy '") == [("1",)]
    before = sorted((tuple(row) for row in table.toDF().collect()), key=repr)
    story.sql(f"CREATE TABLE u ({COLUMNS}) {how}")
    story.sql("INSERT INTO u SELECT * FROM t")
    other = AcidTable.forName(spark, f"{story.name}.u", story.place.uri)
    assert sorted((tuple(row) for row in other.toDF().collect()), key=repr) == before
    table.close()
    other.close()


@pytest.mark.parametrize("old", ["1950-01-01 00:00:00", "1969-12-30 23:59:59.999999999", "1700-01-01 00:00:00.000000001"])
def test_nanoseconds_survive(spark: SparkSession, story: Story, old: str) -> None:
    story.sql(f"CREATE TABLE t (id int, k int, at timestamp) {ACID}")
    both = Both(spark, story, "t")
    new = "2024-07-01 12:00:00.123456789"
    story.sql(f"INSERT INTO t VALUES (1, 0, '{old}'), (2, 0, '{new}')")
    story.sql("UPDATE t SET k = 1 WHERE id = 1")
    with pytest.raises(CanNotKeep):
        both.table.update("id = 2", {"k": "1"})
    assert both.compact_by_spark("major") == "compacted"
    assert sorted(story.sql("SELECT id, k, at FROM t")) == [("1", "1", old), ("2", "0", new)]


def test_values_that_spark_would_cut_are_not_compacted(spark: SparkSession, story: Story) -> None:
    story.sql(f"CREATE TABLE t (id int, at timestamp) {ACID}")
    both = Both(spark, story, "t")
    rows = [("1", "1400-01-01 00:00:00"), ("2", "2024-07-01 12:00:00.123456789")]
    story.sql(f"INSERT INTO t VALUES ({rows[0][0]}, '{rows[0][1]}'), ({rows[1][0]}, '{rows[1][1]}')")
    story.sql("INSERT INTO t VALUES (3, NULL)")
    assert both.compact_by_spark("major") == "refused"
    assert sorted(story.sql("SELECT * FROM t")) == [*rows, ("3", "NULL")]
