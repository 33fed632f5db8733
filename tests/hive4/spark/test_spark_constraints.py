"""Hive and Spark keep the same constraints: both refuse the same rows, and give absent columns the same defaults."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from metastore.acid.values.constraints import ConstraintViolated
from metastore.streaming import BadRecord, StreamingConnection
from tests.hive4.conftest import Story
from tests.hive4.spark.test_spark import ACID, INSERT_ONLY, Both
from tests.support.engines.hive import HiveError
from tests.support.engines.spark_session import session

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
CHECKED = (
    "id int NOT NULL ENABLE, n int CHECK (n > 0 AND n % 7 <> 0), s string CHECK (s <> 'it\\'s' OR s LIKE 'a\\_%'), "
    "d date CHECK (d > date '2020-01-01'), free string NOT NULL DISABLE, c string CHECK (cast(c AS int) < 5)"
)
ROWS = [
    "1, 1, 'a', date '2021-01-01', 'x', '4'",
    "NULL, 1, 'a', date '2021-01-01', 'x', '4'",
    "2, 0, 'a', date '2021-01-01', 'x', '4'",
    "3, 7, 'a', date '2021-01-01', 'x', '4'",
    "4, 8, 'it\\'s', date '2021-01-01', 'x', '4'",
    "5, 8, 'a', date '2020-01-01', NULL, '4'",
    "6, 8, 'a', date '2020-01-02', NULL, 'a text'",
    "7, 8, 'a', date '2020-01-02', NULL, '5'",
    "8, cast(NULL AS int), cast(NULL AS string), cast(NULL AS date), NULL, cast(NULL AS string)",
]


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with session(tmp_path_factory.mktemp("spark-warehouse")) as opened:
        yield opened


@pytest.mark.parametrize("kind", ["full", "insert_only"])
def test_hive_and_spark_refuse_the_same_rows(spark: SparkSession, story: Story, kind: str) -> None:
    story.sql(f"CREATE TABLE t ({CHECKED}) {ACID if kind == 'full' else INSERT_ONLY}")
    both = Both(spark, story, "t")
    names = both.table.toDF().columns
    both.table.close()
    for row in ROWS:
        refused = []
        try:
            story.sql(f"INSERT INTO t SELECT {row}")
            refused.append(False)
        except HiveError:
            refused.append(True)
        try:
            both.table.insert(spark.sql(f"select {row}").toDF(*names))
            refused.append(False)
        except ConstraintViolated:
            refused.append(True)
        assert refused[0] == refused[1], row
    assert [row[0] for row in both.read("id")] == ["1", "1", "6", "6", "8", "8"]
    if kind == "full":
        for change in ("n = 14", "id = NULL", "free = NULL, d = NULL", "c = '5'"):
            refused = []
            try:
                story.sql(f"UPDATE t SET {change} WHERE id = 1")
                refused.append(False)
            except HiveError:
                refused.append(True)
            try:
                both.table.update("id = 1", dict(part.split(" = ") for part in change.split(", ")))
                refused.append(False)
            except ConstraintViolated:
                refused.append(True)
            assert refused == [change != "free = NULL, d = NULL"] * 2
        assert both.read("free, d", "id = 1") == [("NULL", "NULL")] * 2


def test_hive_spark_and_streams_fill_in_the_same_defaults(spark: SparkSession, story: Story) -> None:
    """Hive takes a default of the column's own type alone."""
    defaults = {
        "a bigint": "5L",
        "b varchar(3)": "cast('abcd' AS varchar(3))",
        "c decimal(5,2)": "cast(1.5 AS decimal(5,2))",
        "d date": "date '2020-01-02'",
        "e timestamp": "timestamp '2020-01-02 03:04:05'",
        "f boolean": "true",
        "g double": "1.5D",
        "h string": "'a\\\\b\\'c'",
        "i string": "'it''s'",
        "j float": "cast(0.1 AS float)",
        "k tinyint": "1Y",
    }
    columns = ", ".join(f"{column} DEFAULT {value}" for column, value in defaults.items())
    story.sql(f"CREATE TABLE t (id int NOT NULL, {columns}) {ACID}")
    both = Both(spark, story, "t")
    story.sql("INSERT INTO t (id) VALUES (1)")
    both.table.insert(spark.sql("select 2 id"))
    both.table.merge(spark.sql("select 3 id"), "target.id = source.id").whenNotMatchedInsert(values={"id": "source.id"}).execute()
    with StreamingConnection(story.place.uri, f"{story.name}.t") as connection, connection.batch(1) as batch, batch.transaction():
        batch.write({"id": 4})
        with pytest.raises(BadRecord, match="column id is NOT NULL"):
            batch.write({"a": 1})
    shown = "a, b, cast(c as string), d, cast(e as string), f, g, h, i, cast(j as string), k"
    (first, *others) = both.read(shown)
    assert others == [first] * 3
    both.table.update("id = 2", {"h": "'x'", "a": "7"})
    story.sql("UPDATE t SET h = DEFAULT WHERE id = 2")
    both.table.update("id = 2", {"a": "DEFAULT"})
    assert both.read(shown) == [first] * 4
