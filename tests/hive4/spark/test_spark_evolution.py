"""Hive and Spark read the same rows of tables whose columns changed, and of files from before a table was transactional."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from metastore.spark.migration import to_transactional
from tests.hive4.conftest import Story
from tests.hive4.spark.test_spark import ACID, INSERT_ONLY, Both
from tests.support.engines.spark_session import session

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
    """Renamed columns are matched by position at the top and by name within structs, in partitions of either column list."""
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


CHANGES = {
    "int": (["5", "-7", "2147483647"], ["bigint", "float", "double", "decimal(20,4)", "decimal(5,2)", "string", "varchar(3)", "char(20)"]),
    "bigint": (["5", "9223372036854775807", "16777217"], ["float", "double", "decimal(20,4)", "string"]),
    "tinyint": (["5", "-128"], ["int", "float", "string"]),
    "float": (["0.1", "1e-5", "'NaN'", "'-0.0'", "'Infinity'", "3.4028235e38", "0.001"], ["double", "string", "varchar(5)"]),
    "double": (["0.1", "1e22", "'NaN'", "'-0.0'", "123456789.125", "1e7"], ["string", "varchar(5)"]),
    "decimal(5,2)": (["1.5", "-0.05", "0", "100"], ["float", "double", "decimal(10,4)", "string"]),
    "date": (["'2020-01-02'", "'1500-01-01'", "'0001-01-01'"], ["string", "varchar(5)"]),
    "timestamp": (["'2020-01-02 03:04:05'", "'2020-01-02 00:00:00.120'", "'1900-01-01 00:00:00'"], ["string", "varchar(12)"]),
    "string": (["'abc'", "''", "'abcdefghi'"], ["varchar(5)", "char(5)"]),
    "varchar(10)": (["'abc'", "'abc  '"], ["string", "varchar(20)", "char(5)"]),
    "char(10)": (["'abc'"], ["string", "varchar(20)"]),
}
"""Values by the old type of a column, and the new types that Hive allows for it."""


@pytest.mark.parametrize("writer", ["Hive", "Spark"])
@pytest.mark.parametrize("kind", ["full", "ORC", "Parquet"])
def test_types_that_change_mean_the_same(spark: SparkSession, story: Story, kind: str, writer: str) -> None:
    """Both read the same, also after a compaction. In Parquet Hive fails for days and Spark's decimals as text, and rounds ints."""
    changes = [(old, new) for old, (_, wanted) in CHANGES.items() for new in wanted]
    if kind == "Parquet":
        changes = [each for each in changes if each[0] not in ("date", "decimal(5,2)") and each != ("int", "double")]
    columns = ", ".join(f"c{place} {old}" for place, (old, _) in enumerate(changes))
    stored = ACID if kind == "full" else f"STORED AS {kind} {INSERT_ONLY}"
    story.sql(f"CREATE TABLE t (id int, {columns}) {stored}")
    selects = []
    for row in range(max(len(values) for values, _ in CHANGES.values())):
        values = [(CHANGES[old][0][row] if row < len(CHANGES[old][0]) else "NULL", old) for old, _ in changes]
        selects.append(f"SELECT {row}, " + ", ".join(f"cast({value} AS {old})" for value, old in values))
    both = Both(spark, story, "t")
    if writer == "Hive":
        story.sql("INSERT INTO t " + " UNION ALL ".join(selects))
    else:
        names = ["id", *(f"c{place}" for place, _ in enumerate(changes))]
        both.table.insert(spark.sql(" UNION ALL ".join(selects)).toDF(*names).coalesce(1))
    for place, (_, new) in enumerate(changes):
        story.sql(f"ALTER TABLE t CHANGE c{place} c{place} {new}")
    both.table.insert(spark.sql("select 99 id"))
    shown = ", ".join(["id", *(f"concat('[', cast(c{place} as string), ']')" for place, _ in enumerate(changes))])
    before = both.read(shown)
    assert both.compact_by_spark("major") == "compacted"
    assert both.read(shown) == before
