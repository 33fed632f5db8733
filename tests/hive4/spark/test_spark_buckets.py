"""Hive and Spark each find the rows of the other in the buckets where they look for them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from metastore.spark import AcidTable
from tests.hive4.conftest import Story
from tests.support.engines.spark_session import session

pytestmark = pytest.mark.slow
BUCKETS = 4


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with session(tmp_path_factory.mktemp("spark-warehouse")) as opened:
        yield opened


@pytest.mark.parametrize("version", ["1", "2"])
def test_a_sample_reads_its_bucket(spark: SparkSession, story: Story, version: str) -> None:
    for name in ("by_spark", "by_hive"):
        story.sql(
            f"CREATE TABLE {name} (id bigint, name string, v int) CLUSTERED BY (id, name) INTO {BUCKETS} BUCKETS STORED AS ORC "
            f"TBLPROPERTIES ('transactional' = 'true', 'bucketing_version' = '{version}', 'no_auto_compaction' = 'true')"
        )
    table = AcidTable.forName(spark, f"{story.name}.by_spark", story.place.uri)
    rows = [(7919 * number - 50_000, f"ä{number}", number) for number in range(60)]
    table.insert(spark.createDataFrame(rows, "id bigint, name string, v int"))
    story.sql("INSERT INTO by_hive SELECT * FROM by_spark")
    places = "SELECT v, shiftright(ROW__ID.bucketid, 16) & 4095 FROM {} ORDER BY v"
    placed = story.sql(places.format("by_spark"))
    assert placed == story.sql(places.format("by_hive"))
    assert {bucket for _, bucket in placed} == {str(number) for number in range(BUCKETS)}
    assert table.update("v % 2 = 0", {"v": "v + 1000"}) == 30
    story.sql("DELETE FROM by_spark WHERE v < 10")
    left = {str(1000 + v if v % 2 == 0 else v): bucket for v, bucket in ((int(v), bucket) for v, bucket in placed)}
    left = {v: bucket for v, bucket in left.items() if int(v) >= 10}
    assert dict(story.sql(places.format("by_spark"))) == left
    for number in range(BUCKETS):
        found = story.sql(f"SELECT v FROM by_spark TABLESAMPLE (BUCKET {number + 1} OUT OF {BUCKETS} ON id, name)")
        assert sorted(v for (v,) in found) == sorted(v for v, bucket in left.items() if bucket == str(number))
    key = next(row for row in rows if row[2] == 11)
    assert story.sql(f"SELECT v FROM by_spark WHERE id = {key[0]} AND name = '{key[1]}'") == [("11",)]
    assert sorted(row.v for row in table.toDF().collect()) == sorted(map(int, left))
    table.close()
