"""Hive reads and changes tables after statements of Spark. Some of these failed, and some moved rows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from metastore.spark import transaction
from tests.hive4.conftest import Story
from tests.hive4.spark.test_spark import ACID, Both
from tests.support.engines.spark_session import session

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with session(tmp_path_factory.mktemp("spark-warehouse")) as opened:
        yield opened


def test_a_failed_statement_is_not_seen_by_hive(spark: SparkSession, story: Story) -> None:
    story.sql(f"CREATE TABLE t (id int, n tinyint CHECK (n < 50)) {ACID}")
    both = Both(spark, story, "t")
    story.sql("INSERT INTO t VALUES (1, 1Y), (2, 40Y)")
    with transaction(spark, story.place.uri) as txn:
        inside = txn.table(f"{story.name}.t")
        for change in ("n + 20", "n + 100"):
            with pytest.raises(ValueError, match=r"column n|constraint"):
                inside.update(None, {"n": change})
        inside.update("id = 1", {"n": "5"})
    assert both.read() == [("1", "5"), ("2", "40")]


@pytest.mark.parametrize("compactor", ["Spark", "Hive"])
def test_rows_go_to_the_partition_and_bucket_that_they_are_given(spark: SparkSession, story: Story, compactor: str) -> None:
    story.sql(f"CREATE TABLE t (id int, b string) PARTITIONED BY (p string) CLUSTERED BY (b) INTO 4 BUCKETS {ACID}")
    both = Both(spark, story, "t")
    story.sql("INSERT INTO t VALUES (1, 'a', 'x'), (2, 'b', 'x'), (3, 'c', 'y')")
    both.table.update("id = 1", {"p": "'z'"})
    both.table.merge(spark.sql("select 2 id, 'e' b, 'y' p"), "target.id = source.id").whenMatchedUpdateAll().execute()
    want = [("1", "a", "z"), ("2", "e", "y"), ("3", "c", "y")]
    assert both.read() == want
    assert both.read("id", "p = 'y' AND b = 'e'") == [("2",)]
    story.sql("UPDATE t SET id = 20 WHERE b = 'e'")
    both.table.update("id = 20", {"b": "'f'", "p": "'x'"})
    want = [("1", "a", "z"), ("20", "f", "x"), ("3", "c", "y")]
    assert both.read() == want
    for partition in ("p=x", "p=y", "p=z"):
        if compactor == "Spark":
            assert both.compact_by_spark("major", partition) == "compacted"
        else:
            both.compact_by_hive("major", partition)
    assert both.read() == want
    story.sql("DELETE FROM t WHERE p = 'x' AND b = 'f'")
    assert both.read() == [want[0], want[2]]


def test_maps_with_null_keys(spark: SparkSession, story: Story) -> None:
    story.sql(f"CREATE TABLE t (id int, m map<string,int>, n map<int,timestamp>, k int) {ACID}")
    both = Both(spark, story, "t")
    for number in (1, 2):
        maps = f"map(cast(NULL AS string), 5, 'x', {number}), map(cast(NULL AS int), timestamp '1960-01-01 00:00:00.5')"
        story.sql(f"INSERT INTO t SELECT {number}, {maps}, 0")
    both.table.insert(spark.sql("select 3 id, map('y', 1) m, 0 k"))
    assert both.read("id, k") == [("1", "0"), ("2", "0"), ("3", "0")]
    before = sorted(story.sql("SELECT * FROM t"))
    assert before[0][1] == '{null:5,"x":1}'
    with both.table, pytest.raises(Exception, match="column m has maps with null keys"):
        both.table.toDF().collect()
    assert both.compact_by_spark("minor") == "compacted"
    assert sorted(story.sql("SELECT * FROM t")) == before
    assert both.table.delete("id = 1") == 1
    assert both.compact_by_spark("major") == "compacted"
    assert sorted(story.sql("SELECT * FROM t")) == before[1:]
    story.sql("UPDATE t SET k = 1 WHERE id = 2")
    assert both.table.update("id = 2", {"m": "map('z', 2)", "n": "null"}) == 1
    assert both.compact_by_spark("major") == "compacted"
    assert both.read("id, m['z'], k") == [("2", "2", "1"), ("3", "NULL", "0")]
