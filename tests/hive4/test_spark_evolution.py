"""Hive and Spark read the same rows of tables whose columns changed, and of files from before a table was transactional."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from metastore.spark.migration import to_transactional
from tests.hive4.conftest import Story
from tests.hive4.test_spark import ACID, INSERT_ONLY, Both
from tests.support.spark_session import session

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with session(tmp_path_factory.mktemp("spark-warehouse")) as opened:
        yield opened


def test_columns_are_added_and_widened(spark: SparkSession, story: Story) -> None:
    story.sql(f"CREATE TABLE t (id int, v string) {ACID}")
    both = Both(spark, story, "t")
    story.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    both.table.insert(both.rows((3, "c"), (4, "d")))
    story.sql("ALTER TABLE t ADD COLUMNS (w decimal(5,1))")
    story.sql("ALTER TABLE t CHANGE id id bigint")
    want = [("1", "a", "NULL"), ("2", "b", "NULL"), ("3", "c", "NULL"), ("4", "d", "NULL")]
    assert both.read() == want
    both.table.update("id IN (1, 3)", {"w": "id + 0.5", "id": "id + 5000000000"})
    story.sql("UPDATE t SET w = 9.5 WHERE id IN (2, 5000000003)")
    both.table.insert(spark.sql("select 7 id, cast(7 as decimal(5,1)) w"))
    want = [("2", "b", "9.5"), ("4", "d", "NULL"), ("5000000001", "a", "1.5"), ("5000000003", "c", "9.5"), ("7", "NULL", "7.0")]
    assert both.read("id, v, cast(w as string)") == want
    assert both.compact_by_spark("minor") == "compacted"
    assert both.read("id, v, cast(w as string)") == want
    assert both.compact_by_spark("major") == "compacted"
    assert both.read("id, v, cast(w as string)") == want
    story.sql("DELETE FROM t WHERE v IS NULL OR id = 4")
    assert both.read("id, v, cast(w as string)") == [want[0], want[2], want[3]]


@pytest.mark.parametrize("compactor", ["Spark", "Hive"])
def test_files_from_before(spark: SparkSession, story: Story, compactor: str) -> None:
    story.sql(
        "CREATE TABLE t (id int, v string, day date, at timestamp) STORED AS ORC "
        "TBLPROPERTIES ('transactional' = 'false', 'no_auto_compaction' = 'true')"
    )
    story.sql(
        "INSERT INTO t VALUES (1, 'a', '1500-03-01', '2024-11-03 01:30:00'), (2, 'b', '1582-10-04', '1969-12-31 23:59:59.5'), "
        "(3, NULL, NULL, NULL)"
    )
    story.sql("INSERT INTO t VALUES (4, 'd', '9999-12-31', '2038-01-19 03:14:08')")
    shown = "id, v, day, date_format(at, 'yyyy-MM-dd HH:mm:ss.S')"
    want = sorted(story.sql(f"SELECT {shown} FROM t"))
    assert [row[2] for row in want] == ["1500-03-01", "1582-10-04", "NULL", "9999-12-31"]
    # The usual input format refuses such files in a transactional table.
    story.sql("SET hive.input.format=org.apache.hadoop.hive.ql.io.HiveInputFormat")
    to_transactional(spark, f"{story.name}.t", uri=story.place.uri)
    both = Both(spark, story, "t")
    assert both.read(shown) == want
    both.table.update("id = 1", {"v": "'by spark'"})
    story.sql("UPDATE t SET v = 'by hive' WHERE id = 4")
    both.table.delete("id = 3")
    want = [(want[0][0], "by spark", *want[0][2:]), want[1], (want[3][0], "by hive", *want[3][2:])]
    assert both.read(shown) == want
    if compactor == "Spark":
        assert both.compact_by_spark("major") == "compacted"
    else:
        both.compact_by_hive("major")
    assert both.read(shown) == want
    story.sql("DELETE FROM t WHERE id = 2")
    assert both.read(shown) == [want[0], want[2]]


@pytest.mark.parametrize("cascade", ["", " CASCADE"])
def test_columns_are_renamed(spark: SparkSession, story: Story, cascade: str) -> None:
    """By position at the top and by name within structs, in partitions of either column list."""
    story.sql(f"CREATE TABLE t (id int, a string, k int, s struct<x:int,l:array<struct<x:int>>>) PARTITIONED BY (p int) {ACID}")
    both = Both(spark, story, "t")
    story.sql("INSERT INTO t PARTITION (p = 1) SELECT 1, 'one', 0, named_struct('x', 1, 'l', array(named_struct('x', 1)))")
    both.table.insert(spark.sql("select 2 id, 'two' a, 0 k, named_struct('x', 2, 'l', array(named_struct('x', 2))) s, 1 p"))
    story.sql(f"ALTER TABLE t CHANGE a b string{cascade}")
    story.sql(f"ALTER TABLE t ADD COLUMNS (a string){cascade}")
    story.sql("INSERT INTO t PARTITION (p = 1) SELECT 3, 'three', 0, named_struct('x', 3, 'l', array(named_struct('x', 3))), 'new'")
    shown = "id, b, k, s.x, s.l[0].x, a"
    want = [("1", "one", "0", "1", "1", "NULL"), ("2", "two", "0", "2", "2", "NULL"), ("3", "three", "0", "3", "3", "new")]
    assert both.read(shown) == want
    both.table.update("id = 2", {"k": "7"})
    story.sql("UPDATE t SET k = 8 WHERE id = 1")
    want = [("1", "one", "8", "1", "1", "NULL"), ("2", "two", "7", "2", "2", "NULL"), want[2]]
    assert both.read(shown) == want
    assert both.read("id", "b = 'two'") == [("2",)]
    assert both.compact_by_spark("major", "p=1") == "compacted"
    assert both.read(shown) == want


def test_insert_only_columns_are_renamed(spark: SparkSession, story: Story) -> None:
    story.sql(f"CREATE TABLE t (id int, a string) STORED AS ORC {INSERT_ONLY}")
    both = Both(spark, story, "t")
    story.sql("INSERT INTO t VALUES (1, 'one')")
    both.table.insert(both.rows((2, "two")))
    story.sql("ALTER TABLE t CHANGE a b string")
    assert both.read() == [("1", "one"), ("2", "two")]
    assert both.compact_by_spark("major") == "compacted"
    assert both.read() == [("1", "one"), ("2", "two")]
