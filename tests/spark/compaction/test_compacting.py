"""Buckets are rewritten by Python on the executors, or by Spark for values that Python can not copy. All rows stay unchanged."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from metastore.client import Client
from metastore.idl import CompactionRequest, CompactionType, FieldSchema
from metastore.spark import AcidTable
from metastore.spark.compaction import spark_rewriter
from metastore.spark.compaction.bucket_tasks import rewritten
from metastore.spark.compaction.compactor import Compactor
from tests.support.acid.acid_tables import TableMaker, stored_table
from tests.support.servers.servers import Server


class Compaction:
    """Compacts tables and returns for each bucket whether Python has rewritten it."""

    def __init__(self, spark: SparkSession, uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self._spark = spark
        self._uri = uri
        self.by_python: list[bool] = []

        def watched(*given: Any) -> Any:
            found = rewritten(*given)
            self.by_python += [path is not None for _, path in found]
            return found

        monkeypatch.setattr(spark_rewriter, "rewritten", watched)

    def run(self, table: AcidTable, kind: str, partition: str | None = None) -> list[bool]:
        """Compact; return for each bucket that was written whether Python wrote it."""
        table.close()
        table.compact(kind, partition)
        outcome = Compactor(self._spark, self._uri).run_once()
        assert outcome is not None
        assert outcome.state == "compacted", outcome
        found, self.by_python = self.by_python, []
        return found


@pytest.fixture
def compaction(spark: SparkSession, server: Server, monkeypatch: pytest.MonkeyPatch) -> Compaction:
    return Compaction(spark, server.uri, monkeypatch)


def rows(table: AcidTable) -> list[Any]:
    found = sorted(table.toDF().collect(), key=str)
    table.close()
    return found


def leftovers(table: AcidTable) -> list[str]:
    """Return the staging folders that are left; a cleaner may delete directories meanwhile."""
    return [name for _, directories, _ in os.walk(root(table)) for name in directories if name.startswith(".staging")]


def root(table: AcidTable) -> Path:
    return Path(table.detail().first().location.removeprefix("file:"))


EVERYTHING = (
    "id int, a boolean, b tinyint, c smallint, d bigint, e float, f double, g decimal(38,6), h string, i varchar(9), j char(5), k binary, "
    "l date, m timestamp, n array<int>, o map<string,bigint>, p struct<x:int,y:array<struct<z:timestamp>>>"
)
VALUES = (
    "cast(id as int) id",
    "id % 3 = 0 a",
    "cast(id % 200 - 100 as tinyint) b",
    "cast(id as smallint) c",
    "id * 1000000007 d",
    "cast(id / 7 as float) e",
    "id / 13 f",
    "cast(id / 17 as decimal(38,6)) g",
    "if(id % 5 = 0, null, concat('ä', id)) h",
    "'abc' i",
    "concat('c', id % 10) j",
    "cast(cast(id as string) as binary) k",
    "date_add(date'1500-02-27', cast(id * 1000 as int)) l",
    "timestamp_micros(1500000000123456 + id * 7) m",
    "if(id % 4 = 0, null, array(cast(id as int), null)) n",
    "if(id % 7 = 0, null, map('k', id, 'l', null)) o",
    "if(id % 6 = 0, null, named_struct('x', cast(id as int), 'y', array(named_struct('z', timestamp_seconds(1600000000 + id)), null))) p",
)


def test_all_types_stay_the_same(spark: SparkSession, make_table: TableMaker, compaction: Compaction) -> None:
    table = make_table(EVERYTHING)
    for first, last in ((0, 400), (400, 700)):
        table.insert(spark.range(first, last, 1, 2).selectExpr(*VALUES))
    assert table.update("id % 10 = 3", {"h": "'changed'"}) == 70
    assert table.delete("id % 10 = 4") == 70
    before = rows(table)
    assert len(before) == 630
    assert compaction.run(table, "minor") == [True] * 4
    assert rows(table) == before
    assert table.update("id % 10 = 5", {"n": "null"}) == 70
    before = rows(table)
    assert compaction.run(table, "major") == [True] * 2
    assert rows(table) == before
    assert not leftovers(table)
    assert [path.name for path in sorted(root(table).glob("base*/[_b]*"))] == ["_orc_acid_version", "bucket_00000", "bucket_00001"]


@pytest.mark.parametrize("moment", ["9999-12-31 00:00:00", pytest.param("1500-06-01 00:00:00", marks=pytest.mark.slow)])
def test_times_that_python_can_not_copy(spark: SparkSession, make_table: TableMaker, compaction: Compaction, moment: str) -> None:
    table = make_table("id int, at timestamp", buckets=2, bucketed_by=("id",))
    table.insert(spark.range(0, 40, 1, 1).selectExpr("cast(id as int) id", "timestamp_seconds(1700000000 + id) at"))
    table.insert(spark.sql(f"select 1 id, timestamp'{moment}' at"))
    table.delete("id = 7")
    before = rows(table)
    assert sorted(compaction.run(table, "major")) == [False, True]
    assert rows(table) == before
    assert not leftovers(table)


def test_columns_that_were_added_and_changed(spark: SparkSession, client: Client, make_table: TableMaker, compaction: Compaction) -> None:
    table = make_table("id int, v string")
    table.insert(spark.range(0, 10, 1, 1).selectExpr("cast(id as int) id", "'a' v"))
    _alter(client, table, FieldSchema("id", "int", None), FieldSchema("v", "string", None), FieldSchema("w", "struct<x:int>", None))
    again = AcidTable.forName(spark, table.name)
    again.insert(spark.range(10, 20, 1, 1).selectExpr("cast(id as int) id", "'b' v", "named_struct('x', cast(id as int)) w"))
    before = rows(again)
    assert compaction.run(again, "major") == [True]
    assert rows(again) == before
    _alter(client, table, FieldSchema("id", "bigint", None), FieldSchema("v", "string", None), FieldSchema("w", "struct<x:int>", None))
    wider = AcidTable.forName(spark, table.name)
    wider.insert(spark.sql("select 5000000000 id, 'c' v"))
    before = rows(wider)
    assert len(before) == 21
    assert compaction.run(wider, "major") == [False]
    assert rows(wider) == before


def _alter(client: Client, table: AcidTable, *columns: FieldSchema) -> None:
    database, name = table.name.split(".")
    found = stored_table(client, name, database)
    found.sd.cols = list(columns)
    client.alter_table(database, name, found)


def test_executors_without_the_needed_packages(
    spark: SparkSession, make_table: TableMaker, compaction: Compaction, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark rewrites a bucket when its task can not even begin in Python."""
    table = make_table("id int")
    for first in (0, 10):
        table.insert(spark.range(first, first + 10, 1, 1).selectExpr("cast(id as int) id"))
    monkeypatch.setattr("metastore.spark.compaction.bucket_tasks._rewrite", _no_such_module)
    assert compaction.run(table, "major") == [False]
    assert [row.id for row in table.toDF().orderBy("id").collect()] == list(range(20))
    assert not leftovers(table)


def _no_such_module(*_: object) -> None:
    raise ModuleNotFoundError("No module named 'metastore'")


def test_an_entry_of_a_partitioned_table_as_a_whole_is_refused(
    spark: SparkSession, server: Server, client: Client, make_table: TableMaker, request: pytest.FixtureRequest
) -> None:
    """An entry for a partitioned table without a partition is refused. It was queued when the table did not exist yet."""
    client.compact2(CompactionRequest(dbname="default", tablename=request.node.name, type=CompactionType.MAJOR))
    table = make_table("id int", "k string")
    name = f"default.{request.node.name}"
    table.insert(spark.createDataFrame([(1, "a")], "id int, k string"))
    outcome = Compactor(spark, server.uri).run_once()
    assert outcome is not None
    assert (outcome.state, outcome.detail) == (
        "refused",
        f"{name} is partitioned: compact its partitions, each by its name",
    )
    assert rows(table) == [(1, "a")]
