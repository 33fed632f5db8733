"""A value of a partition column is one partition for each writer, under any name of the column, and in every session's time zone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import DataFrame, SparkSession

from metastore.acid.files import FileError
from metastore.acid.folders.table import CAPABILITIES
from metastore.acid.partitions import SeveralPartitions
from metastore.client import Client
from metastore.idl import AddPartitionsRequest, GetTableRequest, Partition
from metastore.spark import AcidTable
from metastore.spark.session.catalog import WrongColumns
from metastore.streaming import NotStreamable, Rows, StreamingConnection
from tests.support.acid.acid_tables import TableMaker
from tests.support.servers.servers import Server

HAS_FORMAT = int(pyspark.__version__.split(".")[0]) >= 4
VALUES = [
    # type, Spark's literal, the partition's name
    ("int", "5", "p=5"), ("decimal(6,2)", "1.10BD", "p=1.1"), ("double", "1D", "p=1.0"), ("float", "cast(0.1 as float)", "p=0.1"),
    ("boolean", "true", "p=true"), ("date", "date'2024-07-01'", "p=2024-07-01"), ("char(4)", "'ab'", "p=ab  "),
    ("timestamp", "timestamp'2024-07-01 00:30:00.120 UTC'", "p=2024-07-01 00%3A30%3A00.12"), ("string", "'05'", "p=05"),
]  # fmt: skip
NAMES = ["_day", "bucket", "rowid", "a.b"]
"""Special names: hidden to Spark, a column of the files, such a column but for case, and a name that needs quotes."""


@contextmanager
def zone(spark: SparkSession, name: str) -> Iterator[None]:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", name)
    try:
        yield
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def names(client: Client, table: AcidTable) -> list[str]:
    return sorted(client.get_partition_names(*table.name.split("."), -1))


def ids(table: AcidTable, condition: str = "true") -> list[int]:
    with table:
        return sorted(row.id for row in table.toDF().where(condition).collect())


def add(client: Client, table: AcidTable, value: str) -> None:
    """Add a partition whose value is spelled in some way."""
    database, name = table.name.split(".")
    request = GetTableRequest(dbName=database, tblName=name, processorCapabilities=CAPABILITIES, processorIdentifier="tests")
    sd = client.get_table_req(request).table.sd
    sd.location += f"/other {value}"
    partition = Partition(values=[value], dbName=database, tableName=name, sd=sd, parameters={})
    client.add_partitions_req(AddPartitionsRequest(database, name, [partition], ifNotExists=False, needResult=False))


def save(rows: DataFrame, table: AcidTable, mode: str = "append") -> None:
    from metastore.spark.data_source import register

    register(rows.sparkSession)
    rows.write.format("hive_acid").option("table", table.name).mode(mode).save()


def test_three_writers_of_a_value_write_one_partition(spark: SparkSession, server: Server, client: Client, make_table: TableMaker) -> None:
    for number, (kind, literal, name) in enumerate(VALUES):
        table = make_table("id int", f"p {kind}", suffix=str(number))
        with zone(spark, "Asia/Tokyo"):
            table.insert(spark.sql(f"select 1 id, {literal} p"))
        if HAS_FORMAT:
            save(spark.sql(f"select 2 id, {literal} p"), table)
        with StreamingConnection(server.uri, table.name, Rows()) as connection, connection.batch(1) as batch, batch.transaction():
            value = {"timestamp": "2024-07-01T00:30:00.12", "date": "2024-07-01", "decimal(6,2)": "1.1", "int": 5, "string": "05"}
            batch.write({"id": 3, "p": value.get(kind, {"boolean": True, "char(4)": "ab", "double": 1.0, "float": 0.1}.get(kind))})
        assert names(client, table) == [name], kind
        assert ids(table, f"p = {literal}") == ([1, 2, 3] if HAS_FORMAT else [1, 3]), kind


@pytest.mark.parametrize("session_zone", ["Asia/Tokyo", "America/New_York"])
def test_a_timestamp_is_one_instant_as_partition_and_as_data(spark: SparkSession, make_table: TableMaker, session_zone: str) -> None:
    table = make_table("id int, at timestamp", "p timestamp")
    moment = "timestamp'2024-03-10 02:30:00'"  # a local time that New York skipped
    with zone(spark, session_zone):
        table.insert(spark.sql(f"select 1 id, {moment} at, {moment} p"))
    for reading in ("UTC", "Asia/Tokyo", "America/New_York"):
        with zone(spark, reading), table:
            assert [tuple(row) for row in table.toDF().selectExpr("at = p", "id").collect()] == [(True, 1)]
            if HAS_FORMAT:
                source = spark.read.format("hive_acid").option("table", table.name).load()
                assert [row.same for row in source.selectExpr("at = p same").collect()] == [True]


def test_a_value_that_is_spelled_otherwise_is_found(spark: SparkSession, server: Server, client: Client, make_table: TableMaker) -> None:
    table = make_table("id int", "p int")
    add(client, table, "05")
    table.insert(spark.sql("select 1 id, 5 p"))
    if HAS_FORMAT:
        save(spark.sql("select 2 id, 5 p"), table)
    for partition, record in ((None, {"id": 3, "p": 5}), ({"p": "5"}, {"id": 3})):
        stream = StreamingConnection(server.uri, table.name, Rows(), partition=partition)
        with stream as connection, connection.batch(1) as batch, batch.transaction():
            batch.write(record)
    assert names(client, table) == ["p=05"]
    assert ids(table, "p = 5") == [1, *([2] if HAS_FORMAT else []), 3, 3]
    assert table.update("id = 3", {"id": "4"}) == 2
    assert ids(table) == [1, *([2] if HAS_FORMAT else []), 4, 4]
    table.compact("minor", "P=5")
    table.insert_overwrite(spark.sql("select 9 id, 5 p"))
    assert (names(client, table), ids(table)) == (["p=05"], [9])


def test_a_row_is_deleted_where_it_lies(spark: SparkSession, client: Client, make_table: TableMaker) -> None:
    """Rows of two partitions may have the same id, and the partitions' values, 05 and 5, are the same number."""
    table = make_table("id int", "p int")
    add(client, table, "05")
    table.insert(spark.sql("select 1 id, 5 p").coalesce(1))
    root = Path(table.detail().first().location.removeprefix("file:"))
    add(client, table, "5")
    (root / "other 5").rmdir()
    (root / "other 05").rename(root / "other 5")
    (root / "other 05").mkdir()
    for path in (root / "other 5").rglob("*"):
        target = root / "other 05" / path.relative_to(root / "other 5")
        target.mkdir() if path.is_dir() else target.write_bytes(path.read_bytes())
    assert ids(table, "p = 5") == [1, 1]
    assert table.delete("id = 1") == 2
    assert ids(table) == []
    with pytest.raises(SeveralPartitions, match="p=5 and p=05"):
        table.insert_overwrite(spark.sql("select 9 id, 5 p"))
    if HAS_FORMAT:
        with pytest.raises(Exception, match="p=5 and p=05"):
            save(spark.sql("select 9 id, 5 p"), table, "overwrite")
    assert ids(table) == []


@pytest.mark.parametrize("insert_only", [pytest.param(False, marks=pytest.mark.slow), True])
def test_partition_columns_may_be_called_anything(spark: SparkSession, make_table: TableMaker, *, insert_only: bool) -> None:
    for number, name in enumerate(NAMES[:2] if insert_only else NAMES):
        table = make_table("id int, v string", suffix=str(number), insert_only=insert_only, partition_key=(name, "string"))
        table.insert(spark.sql(f"select id, v, 'x y' `{name}` from values (1, 'a'), (2, 'b') as t(id, v)"))
        if HAS_FORMAT:
            save(spark.sql(f"select 3 id, 'c' v, 'x y' `{name}`"), table)
        if not insert_only:
            assert table.update("id = 1", {"v": "'z'"}) == 1
            assert table.delete("id = 2") == 1
        with table:
            rows = sorted(tuple(row) for row in table.toDF().where(f"`{name}` = 'x y'").collect())
        first = [(1, "a", "x y"), (2, "b", "x y")] if insert_only else [(1, "z", "x y")]
        assert rows == [*first, *([(3, "c", "x y")] if HAS_FORMAT else [])], name


def test_an_unknown_column_of_two_parts_is_not_taken_for_a_name_with_a_dot(spark: SparkSession, make_table: TableMaker) -> None:
    table = make_table("id int, `a.b` string")
    with pytest.raises(WrongColumns, match=r"has no column a\.b; its columns are id, `a\.b`"):
        table.update(None, {"a.b": "'x'"})


@pytest.mark.parametrize(
    ("columns", "keys"),
    [("id int, row__id string", ""), pytest.param("id int", "row__id string", marks=pytest.mark.slow)],
    ids=["data", "partition"],
)
def test_a_column_may_be_called_as_the_ids_of_rows(spark: SparkSession, make_table: TableMaker, columns: str, keys: str) -> None:
    table = make_table(columns, keys)
    table.insert(spark.sql("select id, v row__id from values (1, 'a'), (2, 'b'), (3, 'b') as t(id, v)"))
    assert table.update("row__id = 'a'", {"id": "10"}) == 1
    assert table.delete("row__id = 'b' and id = 3") == 1
    source = spark.sql("select 2 id, 'b' row__id union all select 4, 'c'")
    merge = table.merge(source, "target.id = source.id").whenMatchedUpdate(set={"id": "target.id * 10"}).whenNotMatchedInsertAll()
    assert merge.execute() == {"updated": 1, "deleted": 0, "inserted": 1}
    with table:
        rows = table.toDF(row_id=True)
        assert sorted((row.id, row.row__id) for row in rows.collect()) == [(4, "c"), (10, "a"), (20, "b")]
        assert rows.select("__metastore_row_id").distinct().count() == 3


def test_a_file_that_has_no_place_ends_the_statement(spark: SparkSession, make_table: TableMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unknown file in the staging folder fails the statement. Otherwise its rows would be lost."""
    from metastore.spark.writing import writing

    table = make_table("id int", "p string")
    monkeypatch.setattr(writing, "KEY", "_other")  # the writer looks for other folders than Spark makes
    own = writing._below

    def below(work: object, folder: str, inner: str) -> object:
        monkeypatch.setattr(writing, "KEY", "__metastore_key")
        return own(work, folder, inner)  # type: ignore[arg-type]

    monkeypatch.setattr(writing, "_below", below)
    with pytest.raises(FileError, match="is not a file that Spark writes"):
        table.insert(spark.sql("select 1 id, 'x' p"))
    assert ids(table) == []


def test_a_static_partition_is_a_value_of_its_column(server: Server, make_table: TableMaker) -> None:
    table = make_table("id int", "p int")
    with pytest.raises(NotStreamable, match="'abc' is not a value of partition column p, type int"):
        StreamingConnection(server.uri, table.name, Rows(), partition={"p": "abc"})


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("p = 'o''k'", ["o'k"]),
        (r"p = 'o\'k'", ["o'k"]),
        ('p = "o\'k"', ["o'k"]),
        ('p = "say ""hi"""', ['say "hi"']),
        ("p = '' or p in ('a', 'o''k')", ["a", "o'k"]),
        ("`p` = 'it''s ''so'''", ["it's 'so'"]),
    ],
)
def test_filters_on_partitions_take_quotes_as_sql_and_as_hive_write_them(
    spark: SparkSession, make_table: TableMaker, text: str, values: list[str]
) -> None:
    table = make_table("id int", "p string")
    rows = list(enumerate(["a", "o'k", 'say "hi"', "it's 'so'", "ok"]))
    table.insert(spark.createDataFrame(rows, "id int, p string"))
    assert sorted(row.p for row in table.toDF(partitions=text).collect()) == values
    with pytest.raises(WrongColumns, match="both kinds of quotes"):
        table.toDF(partitions="p = 'it''s \"so\"'")
