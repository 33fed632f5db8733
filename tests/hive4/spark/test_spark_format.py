"""Hive reads and changes rows written by Spark's format `hive_acid`: DataFrames and streams, partitions and buckets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from metastore.spark import AcidTable
from tests.hive4.conftest import Story
from tests.spark.writing.test_streaming_sink import feed
from tests.support.engines.spark_session import session

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(int(pyspark.__version__.split(".")[0]) < 4, reason="Python data sources came with Spark 4"),
]
PROPERTIES = "TBLPROPERTIES ('transactional' = 'true', 'no_auto_compaction' = 'true'"


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    from metastore.spark.data_source import HiveAcidDataSource

    with session(tmp_path_factory.mktemp("spark-warehouse")) as opened:
        opened.dataSource.register(HiveAcidDataSource)
        yield opened


def test_dataframes(spark: SparkSession, story: Story) -> None:
    story.sql(
        "CREATE TABLE t (id int, d decimal(9,2), day date, at timestamp, tags array<string>) PARTITIONED BY (k string) "
        f"CLUSTERED BY (id) INTO 2 BUCKETS STORED AS ORC {PROPERTIES})"
    )
    rows = spark.sql(
        "select cast(id as int) id, cast(id as decimal(9,2)) / 4 d, date_add(date'1500-02-28', cast(id as int) * 9000) day, "
        "timestamp_seconds(id * 1000000007) at, array(concat('t', id), null) tags, concat('k', id % 2) k from range(0, 40, 1, 3)"
    )
    write = rows.write.format("hive_acid").option("table", f"{story.name}.t").option("uri", story.place.uri)
    write.mode("append").save()
    table = AcidTable.forName(spark, f"{story.name}.t", story.place.uri)
    table_rows = sorted((str(row.id), str(row.d), str(row.day), row.tags[0]) for row in table.toDF().collect())
    table.close()
    shown = "SELECT id, cast(d AS decimal(9,2)), day, tags[0] FROM t"
    assert sorted((a, f"{float(b):.2f}", c, d) for a, b, c, d in story.sql(shown)) == table_rows
    assert len(table_rows) == 40
    assert story.sql("SELECT at FROM t WHERE id = 3") == [("2065-01-24 05:20:21",)]
    story.sql("UPDATE t SET tags = array('hive') WHERE id % 4 = 0")
    story.sql("DELETE FROM t WHERE id = 7")
    assert story.sql("SELECT count(*), count(DISTINCT id) FROM t") == [("39", "39")]
    assert sorted(story.sql("SELECT id FROM t WHERE k = 'k1' AND id < 10")) == [("1",), ("3",), ("5",), ("9",)]
    write_one = rows.where("id < 4").coalesce(1).write.format("hive_acid").option("table", f"{story.name}.t")
    write_one.option("uri", story.place.uri).mode("overwrite").save()
    assert sorted(story.sql("SELECT id, k FROM t")) == [("0", "k0"), ("1", "k1"), ("2", "k0"), ("3", "k1")]


@pytest.mark.parametrize("stored", ["ORC", "PARQUET"])
def test_insert_only_tables(spark: SparkSession, story: Story, stored: str) -> None:
    story.sql(
        "CREATE TABLE t (id int, d decimal(9,2), day date, at timestamp) PARTITIONED BY (k string) "
        f"STORED AS {stored} {PROPERTIES}, 'transactional_properties' = 'insert_only')"
    )
    rows = spark.sql(
        "select cast(id as int) id, cast(id as decimal(9,2)) / 4 d, date_add(date'2024-02-28', cast(id as int)) day, "
        "timestamp_seconds(id * 1000) at, concat('k', id % 2) k from range(0, 4, 1, 2)"
    )
    rows.write.format("hive_acid").option("table", f"{story.name}.t").option("uri", story.place.uri).mode("append").save()
    assert sorted(story.sql("SELECT id, cast(d AS string), day, date_format(at, 'HH:mm:ss'), k FROM t")) == [
        ("0", "0.00", "2024-02-28", "00:00:00", "k0"),
        ("1", "0.25", "2024-02-29", "00:16:40", "k1"),
        ("2", "0.50", "2024-03-01", "00:33:20", "k0"),
        ("3", "0.75", "2024-03-02", "00:50:00", "k1"),
    ]
    story.sql("INSERT INTO t PARTITION (k = 'k0') VALUES (9, 9, '2024-01-01', '2024-01-01 00:00:00')")
    assert story.sql("SELECT count(*) FROM t") == [("5",)]


def test_a_stream(spark: SparkSession, story: Story, tmp_path: Path) -> None:
    story.sql(f"CREATE TABLE t (id int, name string) STORED AS ORC {PROPERTIES})")
    feed(tmp_path / "source", 0, 1, 2)
    rows = spark.readStream.schema("id int, name string").option("maxFilesPerTrigger", 1).json(str(tmp_path / "source"))
    writer = rows.writeStream.format("hive_acid").option("table", f"{story.name}.t").option("uri", story.place.uri)
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
    assert query.awaitTermination(300)
    assert story.sql("SELECT count(*), count(DISTINCT id), max(id) FROM t") == [("30", "30", "29")]
    story.engine.compact(story.name, "t", "MAJOR")
    story.until(lambda: [state for _, state in story.compactions("t")] == ["succeeded"])
    assert story.sql("SELECT name, count(*) FROM t GROUP BY name ORDER BY name") == [("n0", "10"), ("n1", "10"), ("n2", "10")]
