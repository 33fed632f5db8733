"""Hive 4 and the writers of this package use one name for a partition's value. Each finds and reads the other's partitions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from metastore.rules.values.partition_values import canonical
from tests.hive4.conftest import Story
from tests.hive4.spark.test_spark import ACID, Both
from tests.support.engines.spark_session import session

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

VALUES = [
    # type, Hive's literal, Spark's literal, a filter that finds it in both
    ("tinyint", "5", "cast(5 as tinyint)", "p = 5"),
    ("decimal(6,2)", "1.10", "1.10BD", "p = 1.1"),
    ("decimal(6,2)", "100", "cast(100 as decimal(6,2))", "p = 100"),
    ("double", "cast(1 as double)", "1D", "p = 1"),
    ("double", "cast('1e20' as double)", "1e20D", "p > 1"),
    ("float", "cast(0.25 as float)", "cast(0.25 as float)", "p = 0.25"),
    ("boolean", "true", "true", "p = true"),
    ("date", "date'2024-07-01'", "date'2024-07-01'", "p = date'2024-07-01'"),
    ("timestamp", "timestamp'2024-07-01 00:30:00.120'", "timestamp'2024-07-01 00:30:00.120'", "p = timestamp'2024-07-01 00:30:00.12'"),
    ("char(5)", "cast('ab' as char(5))", "'ab'", "p = 'ab'"),
    ("varchar(5)", "cast('ab ' as varchar(5))", "'ab '", "p = 'ab '"),
    ("string", "'a b/c=é%'", "'a b/c=é%'", "p = 'a b/c=é%'"),
]


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with session(tmp_path_factory.mktemp("spark-warehouse"), {"spark.sql.session.timeZone": "UTC"}) as opened:
        opened.conf.set("spark.sql.session.timeZone", "UTC")
        yield opened


def test_one_value_is_one_partition_for_both(spark: SparkSession, story: Story) -> None:
    for number, (kind, hives, sparks, condition) in enumerate(VALUES):
        name = f"t{number}"
        story.sql(f"CREATE TABLE {name} (id int) PARTITIONED BY (p {kind}) {ACID}")
        story.sql(f"INSERT INTO {name} PARTITION (p) SELECT 1, {hives}")
        made = story.client.get_partitions(story.name, name, -1)
        assert [canonical(kind, each.values[0]) for each in made] == [each.values[0] for each in made], kind
        both = Both(spark, story, name)
        both.table.insert(spark.sql(f"select 2 id, {sparks} p"))
        assert len(story.client.get_partition_names(story.name, name, -1)) == 1, kind
        assert both.table.update("id = 1", {"id": "id + 10"}) == 1
        assert sorted(story.sql(f"SELECT id FROM {name} WHERE {condition}")) == [("11",), ("2",)], kind
        with both.table as table:
            assert sorted(row.id for row in table.toDF().where(condition).collect()) == [2, 11], kind
