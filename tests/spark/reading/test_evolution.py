"""Columns of ORC files are matched by position, as in Hive: for each writer of the files, and in reads, changes and compactions."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from metastore.acid.folders.selecting import is_loaded
from metastore.acid.folders.table import CAPABILITIES, Folder
from metastore.client import Client
from metastore.idl import AlterTableRequest, FieldSchema
from metastore.spark import AcidTable
from metastore.spark.compaction.compactor import Compactor
from metastore.spark.reading.physical import CaseMatters
from metastore.spark.session.catalog import AcidTableInfo
from metastore.streaming import StreamingConnection
from tests.support.acid.acid_tables import TableMaker
from tests.support.servers.servers import Server

Columns = list[tuple[str, str]]
OLD = "id int, a string, s struct<x:int,y:string>, k int"
NEW: Columns = [("id", "bigint"), ("b", "string"), ("s", "struct<y:string,x:int,z:int>"), ("k", "int"), ("a", "int")]
"""Changed columns: `a` is renamed to `b`, and another column `a` is added. Fields of `s` change places, and one is added."""


def altered(client: Client, table: AcidTable, columns: Columns) -> None:
    """Change the columns as Hive does, of either kind of transactional table."""
    database, name = table.name.split(".")
    found = AcidTableInfo.load(client, database, name).table
    found.sd.cols = [FieldSchema(column, kind, None) for column, kind in columns]
    client.alter_table_req(
        AlterTableRequest(
            dbName=database,
            tableName=name,
            table=found,
            processorCapabilities=CAPABILITIES,
            processorIdentifier="tests",
        )
    )


def rows(table: AcidTable, *columns: str) -> list[tuple[object, ...]]:
    found = sorted((tuple(row) for row in table.toDF().selectExpr(*columns or ["*"]).collect()), key=repr)
    table.close()
    return found


def outcome(spark: SparkSession, server: Server, table: AcidTable, kind: str = "major") -> tuple[str, str]:
    table.compact(kind)
    done = Compactor(spark, server.uri).run_once()
    assert done is not None
    return done.state, done.detail


def by_insert(spark: SparkSession, server: Server, table: AcidTable) -> None:
    for number in (1, 2):
        table.insert(spark.sql(f"select {number} id, 'v{number}' a, named_struct('x', {number}, 'y', 'y') s, 0 k"))


def by_stream(spark: SparkSession, server: Server, table: AcidTable) -> None:
    with StreamingConnection(server.uri, table.name) as connection, connection.batch(2) as batch:
        for number in (1, 2):
            with batch.transaction():
                batch.write({"id": number, "a": f"v{number}", "s": {"x": number, "y": "y"}, "k": 0})


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        (by_stream, "minor"),
        *(pytest.param(*each, marks=pytest.mark.slow) for each in ((by_insert, "minor"), (by_insert, "major"), (by_stream, "major"))),
    ],
)
def test_renamed_columns_keep_their_values(
    spark: SparkSession, server: Server, client: Client, make_table: TableMaker, written: Callable[..., None], kind: str
) -> None:
    table = make_table(OLD)
    written(spark, server, table)
    altered(client, table, NEW)
    want = [(number, f"v{number}", Row(y="y", x=number, z=None), 0, None) for number in (1, 2)]
    assert rows(table) == want
    assert rows(table.alias("t"), "s.x", "b") == [(1, "v1"), (2, "v2")]
    assert [row.id for row in table.toDF().where("b = 'v1'").collect()] == [1]
    assert table.update("id = 1", {"k": "7"}) == 1
    merge = table.merge(spark.sql("select 2L id"), "target.id = source.id").whenMatchedUpdate(set={"a": "8"})
    assert merge.execute()["updated"] == 1
    want = [(1, "v1", Row(y="y", x=1, z=None), 7, None), (2, "v2", Row(y="y", x=2, z=None), 0, 8)]
    assert rows(table) == want
    assert outcome(spark, server, table, kind)[0] == "compacted"
    assert rows(table) == want


def test_growing_and_older_files_go_by_position_too(
    spark: SparkSession, server: Server, client: Client, make_table: TableMaker, tmp_path: Path
) -> None:
    place = tmp_path / "old"
    spark.sql("select 1 id, 'v1' a, named_struct('x', 1, 'y', 'y') s, 0 k").coalesce(1).write.orc(str(place))
    next(place.glob("*.orc")).rename(place / "000000_0")
    table = make_table(OLD, location=place)
    with StreamingConnection(server.uri, table.name) as connection, connection.batch(2) as batch:
        with batch.transaction():
            batch.write({"id": 2, "a": "v2", "s": {"x": 2, "y": "y"}, "k": 0})
        altered(client, table, NEW)
        want = [(number, f"v{number}", Row(y="y", x=number, z=None), 0, None) for number in (1, 2)]
        assert rows(table) == want
    assert outcome(spark, server, table)[0] == "compacted"
    assert rows(table) == want


@pytest.mark.parametrize("old", ["_col", pytest.param("a", marks=pytest.mark.slow)])
def test_names_that_changed_places_or_were_none(
    spark: SparkSession, server: Server, client: Client, make_table: TableMaker, old: str
) -> None:
    """ORC itself matches Hive's old names `_col0`, `_col1` .. by position, with any columns that Spark prunes."""
    table = make_table(f"{old}0 int, {old}1 int, {old}2 string")
    table.insert(spark.sql(f"select 1 {old}0, 2 {old}1, 'x' {old}2"))
    altered(client, table, [(f"{old[-1]}1", "int"), (f"{old[-1]}0", "int"), ("c", "string")])
    assert rows(table) == [(1, 2, "x")]
    assert rows(table, f"{old[-1]}0") == [(2,)]
    assert rows(table, "c") == [("x",)]
    table.insert(spark.sql(f"select 3 {old[-1]}1, 4 {old[-1]}0, 'y' c"))
    assert outcome(spark, server, table)[0] == "compacted"
    assert rows(table) == [(1, 2, "x"), (3, 4, "y")]


@pytest.mark.parametrize("file_format", ["orc", pytest.param("parquet", marks=pytest.mark.slow)])
def test_insert_only_tables_go_as_hive_does(
    spark: SparkSession, server: Server, client: Client, make_table: TableMaker, file_format: str
) -> None:
    """Columns of ORC are read by position, columns of Parquet by name: its compaction would lose the values of a removed column."""
    table = make_table("id int, a string, s struct<x:int>", "p int", insert_only=True, file_format=file_format)
    table.insert(spark.sql("select 1 id, 'one' a, named_struct('x', 1) s, 5 p"))
    altered(client, table, [("id", "int"), ("b", "string"), ("s", "struct<x:int>")])
    table.insert(spark.sql("select 2 id, 'two' b, named_struct('x', 2) s, 5 p"))
    want = [(1, "one" if file_format == "orc" else None, Row(x=1), 5), (2, "two", Row(x=2), 5)]
    assert rows(table) == want
    assert rows(table, "s.x", "b") == [(1, want[0][1]), (2, "two")]
    table.compact("major", "p=5")
    done = Compactor(spark, server.uri).run_once()
    assert done is not None
    if file_format == "orc":
        assert done.state == "compacted", done
    else:
        assert (done.state, "a column a" in done.detail) == ("refused", True), done
    assert rows(table) == want


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ([("id", "int"), ("a", "string"), ("s", "struct<z:int,y:string>"), ("k", "int")], "has no field x"),
        ([("id", "int"), ("a", "string"), ("s", "struct<x:int,y:string>"), ("k", "smallint")], "int does not fit into smallint"),
        ([("id", "int"), ("k", "int")], "the dropped columns are unknown"),
    ],
)
def test_a_compaction_that_would_lose_values_is_refused(
    spark: SparkSession, server: Server, client: Client, make_table: TableMaker, columns: Columns, reason: str
) -> None:
    table = make_table(OLD)
    by_insert(spark, server, table)
    client.setMetaConf("metastore.disallow.incompatible.col.type.changes", "false")
    altered(client, table, columns)
    state, detail = outcome(spark, server, table)
    assert (state, reason in detail) == ("refused", True), detail
    entries = table.history().collect()
    assert entries[0].state == "refused"
    assert reason in entries[0].error
    altered(client, table, [("id", "int"), ("a", "string"), ("s", "struct<x:int,y:string>"), ("k", "int")])
    assert rows(table, "id", "a", "s.x") == [(1, "v1", 1), (2, "v2", 2)]


def test_the_format_goes_by_position(spark: SparkSession, client: Client, make_table: TableMaker) -> None:
    pytest.importorskip("pyspark.sql.datasource", reason="Python data sources came with Spark 4")
    from metastore.spark.data_source import register

    register(spark)
    table = make_table(OLD)
    table.insert(spark.sql("select 1 id, 'v1' a, named_struct('x', 1, 'y', 'y') s, 0 k"))
    altered(client, table, NEW)
    read = spark.read.format("hive_acid").option("table", table.name)
    assert [tuple(row) for row in read.load().collect()] == [(1, "v1", Row(y="y", x=1, z=None), 0, None)]
    assert [tuple(row) for row in read.option("columns", "k,b").load().collect()] == [(0, "v1")]


SHORTENED: Columns = [
    ("id", "int"),
    ("c", "char(3)"),
    ("v", "varchar(3)"),
    ("l", "array<varchar(2)>"),
    ("m", "map<string,struct<f:char(2)>>"),
]


@pytest.mark.parametrize("insert_only", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_texts_of_shortened_columns_are_cut_as_hive_does(
    spark: SparkSession, server: Server, client: Client, make_table: TableMaker, insert_only: bool
) -> None:
    table = make_table("id int, c string, v varchar(9), l array<string>, m map<string,struct<f:string>>", insert_only=insert_only)
    table.insert(spark.sql("select 1 id, 'abcdef' c, 'ä  def' v, array('abc', null) l, map('key', named_struct('f', 'x y')) m"))
    table.insert(spark.sql("select 2 id, 'ab' c, null v, null l, map('key', null) m"))
    altered(client, table, SHORTENED)
    want = [
        (1, "abc", "ä  ", ["ab", None], {"key": Row(f="x")}),
        (2, "ab", None, None, {"key": None}),
    ]
    assert rows(table) == want
    assert [row.id for row in table.toDF().where("c = 'abc'").collect()] == [1]
    if not insert_only:
        assert sorted((tuple(row) for row in by_format(spark, table).collect()), key=repr) == want
    assert outcome(spark, server, table)[0] == "compacted"
    assert rows(table) == want


def by_format(spark: SparkSession, table: AcidTable) -> DataFrame:
    data_source = pytest.importorskip("metastore.spark.data_source", exc_type=ImportError)
    data_source.register(spark)
    return spark.read.format("hive_acid").option("table", table.name).load()


PROMOTED = (
    ("double", "string", "1e20D", "1.0E20"),
    ("float", "string", "cast(0.1 as float)", "0.10000000149011612"),
    ("decimal(10,2)", "string", "1.10BD", "1.1"),
    ("timestamp", "string", "timestamp'2024-01-01 10:00:00.12'", r"2024-01-0\d \d\d:00:00\.12"),
    ("timestamp", "string", "timestamp'2024-01-01 10:00:00'", r"2024-01-0\d \d\d:00:00"),
    ("decimal(10,4)", "decimal(10,2)", "1.5555BD", "1.56"),
    ("decimal(10,2)", "decimal(4,2)", "123.45BD", None),
    ("bigint", "decimal(5,2)", "7L", "7.00"),
)


@pytest.mark.parametrize(("old", "new", "value", "shown"), PROMOTED, ids=[f"{old} to {new}" for old, new, *_ in PROMOTED])
def test_readers_agree_on_values_of_another_type(
    spark: SparkSession, client: Client, make_table: TableMaker, old: str, new: str, value: str, shown: str | None
) -> None:
    """Each reader shows the same values as Hive 4.0.1."""
    table = make_table(f"id int, c {old}")
    table.insert(spark.sql(f"select 1 id, {value} c"))
    altered(client, table, [("id", "int"), ("c", new)])
    [(found,)] = rows(table, "cast(c as string)")
    if shown is None or old != "timestamp":
        assert found == shown
    else:  # a wall-clock time of the JVM's zone
        assert isinstance(found, str)
        assert re.fullmatch(shown, found)
    assert [row.c for row in by_format(spark, table).selectExpr("cast(c as string) c").collect()] == [found]


@pytest.mark.parametrize("file_format", ["orc", "parquet"])
def test_files_with_upper_case_where_case_matters(
    spark: SparkSession, server: Server, make_table: TableMaker, file_format: str, tmp_path: Path
) -> None:
    """Files with upper-case names are refused in a case-sensitive session, by compactions too: their values would be read as null."""
    place = tmp_path / "old"
    spark.sql("select 1 ID, named_struct('X', 'a') s").coalesce(1).write.format(file_format).save(str(place))
    next(path for path in place.glob("part-*")).rename(place / "000000_0")
    table = make_table("id int, s struct<x:string>", insert_only=True, file_format=file_format, location=place)
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        with pytest.raises(CaseMatters, match="columns have no case"):
            rows(table)
        table.compact("major")
        done = Compactor(spark, server.uri).run_once()
        assert done is not None
        assert (done.state, "CaseMatters" in done.detail) == ("failed", True), done
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
    assert rows(table, "id", "s.x") == [(1, "a")]
    assert outcome(spark, server, table)[0] == "compacted"
    assert rows(table, "id", "s.x") == [(1, "a")]


def loaded(spark: SparkSession, table: AcidTable, *selects: str) -> None:
    """Replace the files of an insert's delta by files without row ids, one for each select, as Hive's LOAD DATA does."""
    table.insert(spark.createDataFrame([(0, "gone")], "id int, v string").coalesce(1))
    root = Path(table.detail().first().location.removeprefix("file:"))
    (delta,) = root.glob("delta_*")
    for path in delta.iterdir():
        path.unlink()
    for number, select in enumerate(selects):
        spark.sql(select).coalesce(1).write.orc(str(root / f".aside{number}"))
        next((root / f".aside{number}").glob("part-*")).rename(delta / f"00000{number // 2}_0{'_copy_1' if number % 2 else ''}")


LOADED = ("select 1 id, 'a' v union all select 2, 'b'", "select 3 x, 'c' y", "select 4 id, 'd' v")


@pytest.mark.parametrize("kind", ["minor", pytest.param("major", marks=pytest.mark.slow)])
def test_files_that_hive_has_loaded(spark: SparkSession, server: Server, make_table: TableMaker, kind: str) -> None:
    """LOAD DATA moves files into a delta unchanged. Their rows are numbered by position, as in original files."""
    table = make_table("id int, v string")
    loaded(spark, table, *LOADED)
    assert rows(table) == [(1, "a"), (2, "b"), (3, "c"), (4, "d")]
    assert rows(table, "id") == sorted((row.id,) for row in by_format(spark, table).collect())
    with table:
        ids = {(row.row__id.writeid, row.row__id.bucketid >> 16 & 0xFFF, row.row__id.rowid) for row in table.toDF(row_id=True).collect()}
    assert ids == {(1, 0, 0), (1, 0, 1), (1, 0, 2), (1, 1, 0)}
    assert table.update("id = 1", {"v": "'new'"}) == 1
    assert table.delete("id in (3, 4)") == 2
    table.insert(spark.sql("select 5 id, 'e' v"))
    want = [(1, "new"), (2, "b"), (5, "e")]
    assert rows(table) == want
    assert outcome(spark, server, table, kind)[0] == "compacted"
    assert rows(table) == want
    assert sorted((tuple(row) for row in by_format(spark, table).collect()), key=repr) == want


def test_files_of_a_table_that_is_called_as_a_delta_were_not_loaded() -> None:
    folder = Folder("file:/warehouse/delta_1_2")
    where = {name: is_loaded(folder, f"{folder.location}/{name}") for name in ("000000_0", "part/000000_0", "delta_3_3_0/000000_0")}
    assert where == {"000000_0": False, "part/000000_0": False, "delta_3_3_0/000000_0": True}


def test_loaded_files_that_call_their_columns_otherwise(spark: SparkSession, server: Server, make_table: TableMaker) -> None:
    table = make_table("id int, v string", insert_only=True)
    loaded(spark, table, *LOADED)
    table.insert(spark.sql("select 5 id, 'e' v"))
    want = [(1, "a"), (2, "b"), (3, "c"), (4, "d"), (5, "e")]
    assert rows(table) == want
    assert outcome(spark, server, table, "minor")[0] == "compacted"
    assert rows(table) == want
