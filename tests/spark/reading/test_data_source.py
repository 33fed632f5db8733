"""The format `hive_acid` reads rows of `AcidTable` with pruned columns, at a snapshot, and refuses other tables with a reason."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession

from metastore.acid.transactions import Agent, Transaction, component
from metastore.client import Client
from metastore.idl import DataOperationType, LockType, ShowLocksRequest
from metastore.spark import AcidTable, sql
from metastore.spark.session.catalog import AcidTableInfo, metastore_uri
from metastore.spark.transaction.readers import give_way
from tests.support.acid.acid_tables import TableMaker
from tests.support.servers.waiting import until

pytest.importorskip("pyspark.sql.datasource", reason="Python data sources came with Spark 4")


@pytest.fixture(scope="module", autouse=True)
def registered(spark: SparkSession) -> None:
    from metastore.spark.data_source import register

    register(spark)


def test_rows_are_those_of_the_table(spark: SparkSession, make_table: TableMaker) -> None:
    table = make_table("id int, name string, at timestamp, part struct<x:int>", "day string, n int")
    table.insert(
        spark.sql(
            "select cast(id as int) id, concat('n', id) name, timestamp'2024-07-01 12:30:00' at, named_struct('x', cast(id as int)) part, "
            "concat('d', id % 2) day, cast(id % 2 as int) n from range(60)"
        )
    )
    table.delete("id % 5 = 0")
    table.update("id = 7", {"name": "'seven'"})
    name = table.detail().first().name
    read = spark.read.format("hive_acid").option("table", name)
    want = sorted(map(tuple, table.toDF().collect()))
    assert sorted(map(tuple, read.load().collect())) == want
    read.load().createOrReplaceTempView("acid_rows")
    counted = spark.sql("select day, count(*) from acid_rows where day = 'd1' and id > 10 group by day").collect()
    assert [tuple(row) for row in counted] == [("d1", sum(1 for row in want if row[4] == "d1" and row[0] > 10))]
    few = read.option("columns", "n, id").load()
    assert few.columns == ["n", "id"]
    assert sorted(map(tuple, few.collect())) == sorted((row[5], row[0]) for row in want)


@pytest.mark.parametrize("pushed", ["true", *(pytest.param(each, marks=pytest.mark.slow) for each in (None, "false"))])
def test_filters_choose_rows_whether_or_not_spark_pushes_them(spark: SparkSession, make_table: TableMaker, pushed: str | None) -> None:
    setting = "spark.sql.python.filterPushdown.enabled"
    table = make_table("id int", "day string")
    table.insert(spark.sql("select cast(id as int) id, concat('d', id % 2) day from range(6)"))
    if pushed is not None:
        spark.conf.set(setting, pushed)
    try:
        rows = spark.read.format("hive_acid").option("table", table.name).load()
        assert sorted(map(tuple, rows.where("day = 'd1' and id > 1").collect())) == [(3, "d1"), (5, "d1")]
        assert sorted(map(tuple, rows.where("day = 'd0'").collect())) == [(0, "d0"), (2, "d0"), (4, "d0")]
        assert rows.count() == 6
        chosen = spark.read.format("hive_acid").option("table", table.name).option("partitions", "day = 'd1'").load()
        assert sorted(row.id for row in chosen.collect()) == [1, 3, 5]
    finally:
        spark.conf.unset(setting)


def test_an_empty_table_has_no_rows(spark: SparkSession, make_table: TableMaker) -> None:
    name = make_table("id int").detail().first().name
    assert spark.read.format("hive_acid").option("table", name).load().collect() == []


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({}, "is not a name"),
        ({"table": "t"}, "has to name a database and a table"),
        ({"table": "default.not_there"}, "not_there"),
    ],
)
def test_a_table_that_can_not_be_read_is_refused(spark: SparkSession, options: dict[str, str], reason: str) -> None:
    with pytest.raises(Exception, match=reason):
        spark.read.format("hive_acid").options(**options).load().collect()


def test_unknown_columns_and_insert_only_tables_are_refused(spark: SparkSession, make_table: TableMaker) -> None:
    name = make_table("id int").detail().first().name
    with pytest.raises(Exception, match="has no column other"):
        spark.read.format("hive_acid").option("table", name).option("columns", "other").load()
    plain = make_table("id int", suffix="_plain", insert_only=True).detail().first().name
    with pytest.raises(Exception, match="insert-only"):
        spark.read.format("hive_acid").option("table", plain).load().collect()


def locks(client: Client, table: AcidTable) -> list[int]:
    database, name = table.name.split(".")
    return [lock.txnid for lock in client.show_locks(ShowLocksRequest(dbname=database, tablename=name)).locks]


CHANGES: dict[str, Callable[[SparkSession, AcidTable], object]] = {
    "insert_overwrite": lambda spark, table: table.insert_overwrite(spark.sql("select 2 id")),
    "INSERT OVERWRITE": lambda spark, table: sql(spark, f"INSERT OVERWRITE {table.name} SELECT 2"),
    "ALTER": lambda spark, table: sql(spark, f"ALTER TABLE {table.name} ADD COLUMNS (more string)"),
    "TRUNCATE": lambda spark, table: sql(spark, f"TRUNCATE TABLE {table.name}"),
    "DROP": lambda spark, table: sql(spark, f"DROP TABLE {table.name}"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_does_not_wait_for_idle_readers_of_its_program(
    spark: SparkSession, client: Client, make_table: TableMaker, change: str
) -> None:
    table = make_table("id int")
    table.insert(spark.sql("select 1 id"))
    assert spark.read.format("hive_acid").option("table", table.name).load().count() == 1
    assert len(locks(client, table)) == 1, "the reader stays until its transaction times out"
    CHANGES[change](spark, table)
    assert locks(client, table) == []


def test_a_reader_whose_job_runs_is_not_ended(spark: SparkSession, client: Client, make_table: TableMaker) -> None:
    table = make_table("id int")
    table.insert(spark.sql("select 1 id"))
    spark.udf.register("held_up", lambda value: threading.Event().wait(5.0) or value, "int")
    frame = spark.read.format("hive_acid").option("table", table.name).load().selectExpr("held_up(id) id")
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.extend(row.id for row in frame.collect()))
    thread.start()
    until(lambda: spark.sparkContext.statusTracker().getActiveJobsIds())
    held = locks(client, table)
    give_way(spark, metastore_uri(spark), AcidTableInfo.load(client, *table.name.split(".")))
    assert len(held) == 1
    assert locks(client, table) == held
    thread.join()
    assert found == [1]


def test_a_reader_of_another_program_is_not_ended(spark: SparkSession, client: Client, make_table: TableMaker) -> None:
    table = make_table("id int")
    table.insert(spark.sql("select 1 id"))
    info = AcidTableInfo.load(client, *table.name.split("."))
    theirs = Transaction.begin(metastore_uri(spark), agent=Agent(name="hive_acid (local-1)"), read_only=True)
    theirs.lock([component(info.database, info.name, LockType.SHARED_READ, DataOperationType.SELECT)])
    give_way(spark, metastore_uri(spark), info)
    assert locks(client, table) == [theirs.id]
    theirs.commit()
