"""A plain table becomes transactional with its rows, and plain again. A table that can not be converted stays unchanged."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from metastore.acid.rewriting.unchanged import TableChanged
from metastore.client import Client
from metastore.idl import FieldSchema, LockState, MetaException, SerDeInfo, ShowLocksRequest, StorageDescriptor, Table
from metastore.spark import AcidTable, migration
from metastore.spark.migration import CanNotConvert, to_plain, to_transactional
from tests.support.acid.acid_tables import FORMATS, TableMaker, stored_table


def make_plain(client: Client, name: str, file_format: str, keys: str = "") -> str:
    """Make a table without any property and return its location."""
    input_format, output_format, serde = FORMATS[file_format]
    client.create_table(
        Table(
            dbName="default",
            tableName=name,
            owner="tests",
            tableType="MANAGED_TABLE",
            parameters={},
            partitionKeys=[FieldSchema(keys, "string", None)] if keys else [],
            sd=StorageDescriptor(
                cols=[FieldSchema("id", "int", None), FieldSchema("name", "string", None)],
                inputFormat=input_format,
                outputFormat=output_format,
                serdeInfo=SerDeInfo(serializationLib=serde, parameters={}),
                parameters={},
                bucketCols=[],
                sortCols=[],
            ),
        )
    )
    return str(stored_table(client, name).sd.location)


def rows(table: AcidTable) -> list[tuple[object, ...]]:
    return sorted(map(tuple, table.toDF().collect()))


def test_an_orc_table_there_and_back(spark: SparkSession, client: Client) -> None:
    location = make_plain(client, "to_acid", "orc")
    spark.range(20).selectExpr("cast(id as int) id", "concat('n', id) name").repartition(3).write.mode("append").orc(location)
    table = to_transactional(spark, "default.to_acid")
    want = sorted((number, f"n{number}") for number in range(20))
    assert rows(table) == want
    names = sorted(path.name for path in Path(location.removeprefix("file:")).iterdir() if path.name[0] not in "._")
    assert names == ["000000_0", "000000_0_copy_1", "000000_0_copy_2"]
    assert table.delete("id < 5") == 5
    assert table.update("id = 7", {"name": "'seven'"}) == 1
    want = [(number, "seven" if number == 7 else name) for number, name in want if number >= 5]
    assert rows(table) == want
    table.close()
    to_plain(spark, "default.to_acid")
    plain = stored_table(client, "to_acid")
    assert "transactional" not in plain.parameters
    assert sorted(map(tuple, spark.read.orc(plain.sd.location).collect())) == want
    client.drop_table("default", "to_acid", True)


@pytest.mark.parametrize("file_format", [pytest.param("parquet", marks=pytest.mark.slow), "orc"])
def test_a_partitioned_table_becomes_insert_only(spark: SparkSession, client: Client, file_format: str) -> None:
    name = f"to_insert_only_{file_format}"
    location = make_plain(client, name, file_format, keys="day")
    for day in ("a", "b"):
        spark.range(3).selectExpr("cast(id as int) id", f"'{day}' name").write.format(file_format).save(f"{location}/day={day}")
        client.append_partition("default", name, [day])
    table = to_transactional(spark, f"default.{name}", insert_only=True)
    table.insert(spark.sql("select 9 id, 'new' name, 'b' day"))
    want = sorted([(number, day, day) for number in range(3) for day in ("a", "b")] + [(9, "new", "b")])
    assert rows(table) == want
    table.close()
    to_plain(spark, f"default.{name}")
    assert sorted(client.get_partition_names("default", name, -1)) == ["day=a", "day=b"]
    found = spark.read.format(file_format).load(stored_table(client, name).sd.location)
    assert sorted(map(tuple, found.select("id", "name", "day").collect())) == want
    client.drop_table("default", name, True)


def test_tables_that_can_not_be_converted_stay(spark: SparkSession, client: Client) -> None:
    location = make_plain(client, "no_acid", "parquet")
    with pytest.raises(CanNotConvert, match="only become insert-only"):
        to_transactional(spark, "default.no_acid", insert_only=False)
    assert "transactional" not in stored_table(client, "no_acid").parameters
    client.drop_table("default", "no_acid", True)
    location = make_plain(client, "nested", "orc")
    spark.range(3).selectExpr("cast(id as int) id", "'x' name").write.orc(f"{location}/inner")
    spark.range(3).selectExpr("cast(id as int) id", "'x' name").write.mode("append").orc(location)
    before = sorted(path.name for path in Path(location.removeprefix("file:")).iterdir())
    with pytest.raises(CanNotConvert, match="holds directories"):
        to_transactional(spark, "default.nested")
    assert sorted(path.name for path in Path(location.removeprefix("file:")).iterdir()) == before
    client.drop_table("default", "nested", True)


def test_files_get_their_names_back_when_the_table_can_not_be_changed(spark: SparkSession, client: Client) -> None:
    location = make_plain(client, "sorted_table", "orc")
    spark.range(3).selectExpr("cast(id as int) id", "'x' name").coalesce(1).write.mode("append").orc(location)
    before = sorted(path.name for path in Path(location.removeprefix("file:")).iterdir())
    table = stored_table(client, "sorted_table")
    table.sd.inputFormat = "org.apache.hadoop.mapred.TextInputFormat"
    client.alter_table("default", "sorted_table", table)
    with pytest.raises(Exception, match=r"(?i)acid"):
        to_transactional(spark, "default.sorted_table")
    assert sorted(path.name for path in Path(location.removeprefix("file:")).iterdir()) == before
    client.drop_table("default", "sorted_table", True)


def test_an_insert_waits_until_a_table_is_plain_and_is_refused(
    spark: SparkSession, client: Client, make_table: TableMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock lasts until the tables are exchanged: rows that arrive meanwhile are not written into the table that is removed."""
    table = make_table("id int, name string")
    table.insert(spark.sql("select 1 id, 'a' name"))
    name = table.name.split(".")[1]
    exchange = migration._exchange
    with ThreadPoolExecutor(1) as pool:

        def exchange_while_another_waits(*arguments: Any) -> None:
            late.append(pool.submit(lambda: table.insert(spark.sql("select 2 id, 'b' name"))))
            while not any(
                lock.state == LockState.WAITING for lock in client.show_locks(ShowLocksRequest(dbname="default", tablename=name)).locks
            ):
                assert not late[0].done(), late[0].exception()
                threading.Event().wait(0.1)
            exchange(*arguments)

        late: list[Future[None]] = []
        monkeypatch.setattr(migration, "_exchange", exchange_while_another_waits)
        to_plain(spark, table.name)
        with pytest.raises(TableChanged):
            late[0].result()
    assert [tuple(row) for row in spark.read.orc(stored_table(client, name).sd.location).collect()] == [(1, "a")]


def refused(*_arguments: object) -> None:
    raise MetaException(message="not now")


def lost(*_arguments: object) -> None:
    raise ConnectionError("the answer was lost")


@pytest.mark.parametrize(
    ("method", "fault", "reason", "left"),
    [
        ("drop_table", refused, "not now", [""]),
        ("drop_table", lost, "may have been dropped", ["", "__plain"]),
        ("alter_table", refused, "could not be renamed", ["__plain"]),
    ],
)
def test_an_exchange_that_breaks_off_keeps_the_rows(
    spark: SparkSession,
    client: Client,
    make_table: TableMaker,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    fault: Callable[..., None],
    reason: str,
    left: list[str],
) -> None:
    table = make_table("id int, name string")
    table.insert(spark.sql("select 1 id, 'a' name"))
    name = table.name.split(".")[1]
    with monkeypatch.context() as patched:
        call = Client.__getattr__

        def faulty(self: Client, called: str) -> Any:
            tables = {"drop_table": name, "alter_table": f"{name}__plain"}
            real = call(self, called)
            if called != method:
                return real
            return lambda *arguments: (fault if arguments[1] == tables[method] else real)(*arguments)

        patched.setattr(Client, "__getattr__", faulty)
        with pytest.raises((MetaException, CanNotConvert), match=reason):
            to_plain(spark, table.name)
    left = {each for each in client.get_all_tables("default") if each.startswith(name)}  # type: ignore[assignment]
    assert (
        left == {"not now": {name}, "may have been dropped": {name, f"{name}__plain"}, "could not be renamed": {f"{name}__plain"}}[reason]
    )
    for each in left:
        found = AcidTable.forName(spark, table.name).toDF() if each == name else spark.read.orc(stored_table(client, each).sd.location)
        assert [tuple(row) for row in found.collect()] == [(1, "a")]
    table.close()
    if method == "alter_table":
        renamed = stored_table(client, f"{name}__plain")
        renamed.tableName = name
        client.alter_table("default", f"{name}__plain", renamed)
    elif "__plain" in left:
        client.drop_table("default", f"{name}__plain", True)


def test_names_of_buckets_stay_when_nobody_knows_whether_the_table_changed(
    spark: SparkSession, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """New names of files are kept when the reply is lost. Hive needs them in a transactional table, and takes any names in a plain one."""
    location = make_plain(client, "unsure", "orc")
    spark.range(3).selectExpr("cast(id as int) id", "'x' name").coalesce(1).write.mode("append").orc(location)
    with monkeypatch.context() as patched:
        call = Client.__getattr__

        def answer_lost(self: Client, called: str) -> Any:
            real = call(self, called)
            return real if called != "alter_table_with_environment_context" else lambda *arguments: lost(real(*arguments))

        patched.setattr(Client, "__getattr__", answer_lost)
        with pytest.raises(ConnectionError, match="the answer was lost"):
            to_transactional(spark, "default.unsure")
    names = [path.name for path in Path(location.removeprefix("file:")).iterdir() if path.name[0] not in "._"]
    assert names == ["000000_0"]
    table = AcidTable.forName(spark, "default.unsure")
    assert rows(table) == [(number, "x") for number in range(3)]
    client.drop_table("default", "unsure", True)


@pytest.mark.parametrize("insert_only", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_partitions_of_a_plain_table_have_hives_names(
    spark: SparkSession, client: Client, make_table: TableMaker, *, insert_only: bool
) -> None:
    table = make_table("id int, name string", "_day string, amount decimal(6,2), at timestamp", insert_only=insert_only)
    table.insert(spark.sql("select 1 id, 'a' name, 'a b' _day, 1.10BD amount, timestamp'2024-07-01 00:30:00 UTC' at"))
    to_plain(spark, table.name)
    database, name = table.name.split(".")
    (partition,) = client.get_partitions(database, name, -1)
    assert partition.values == ["a b", "1.1", "2024-07-01 00:30:00"]
    files = [path for path in Path(partition.sd.location.removeprefix("file:")).iterdir() if not path.name.startswith(".")]
    assert [tuple(row) for row in spark.read.orc([str(path) for path in files]).collect()] == [(1, "a")]
