"""Columns whose type was changed: reads, filters, changes and compactions use the old values in the new type, as readers get them."""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple

import pyspark
import pytest
from pyspark.sql import SparkSession

from metastore.client import Client
from metastore.spark import AcidTable
from metastore.streaming import StreamingConnection
from tests.spark.reading.test_evolution import altered, outcome, rows
from tests.support.acid.acid_tables import TableMaker
from tests.support.servers.servers import Server


class Change(NamedTuple):
    """A column of a table: its types, a value in SQL, the value read from ORC, and the one from Parquet where it differs."""

    old: str
    new: str
    value: str
    shown: object
    in_parquet: object = None


CHANGES = [
    Change("int", "bigint", "5", 5),
    Change("int", "string", "-7", "-7"),
    Change("bigint", "double", "9007199254740993L", 9007199254740992.0),
    Change("bigint", "float", "16777217L", 16777216.0),
    Change("bigint", "varchar(3)", "12345L", "123"),
    Change("smallint", "decimal(10,2)", "7S", Decimal("7.00")),
    Change("int", "decimal(3,1)", "1000", None),
    Change("float", "double", "float(0.1)", 0.10000000149011612),
    Change("float", "string", "float(0.1)", "0.10000000149011612", "0.1"),
    Change("double", "string", "1e22D", "1.0E22"),
    Change("double", "char(4)", "1e-5D", "1.0E"),
    Change("decimal(5,2)", "double", "-0.05", -0.05),
    Change("decimal(5,2)", "string", "1.50", "1.5"),
    Change("decimal(5,2)", "decimal(8,3)", "1.50", Decimal("1.500")),
    Change("date", "string", "date '2020-01-02'", "2020-01-02"),
    Change("timestamp", "string", "timestamp '2020-01-02 03:04:05.12 {zone}'", "2020-01-02 03:04:05.12"),
    Change("char(6)", "string", "'abc'", "abc"),
    Change("string", "varchar(2)", "'abc'", "ab"),
    Change("struct<x:int,y:float>", "struct<y:string,x:string>", "named_struct('x', 5, 'y', float(2.5))", ("2.5", "5")),
    Change("array<decimal(3,1)>", "array<string>", "array(1.5)", ["1.5"]),
    Change("map<string,float>", "map<string,string>", "map('k', float(0.5))", {"k": "0.5"}),
]
NAMES = [f"c{place}" for place in range(len(CHANGES))]


class Format(NamedTuple):
    """The format of a table's files, and whether the table is insert-only."""

    kind: str = "orc"
    insert_only: bool = False


FULL = Format()
FORMATS = [FULL, Format("orc", insert_only=True), Format("parquet", insert_only=True)]


def shown(change: Change, file_format: Format) -> object:
    return change.in_parquet or change.shown if file_format.kind == "parquet" else change.shown


in_each_format = pytest.mark.parametrize(
    "file_format", [FULL, *(pytest.param(each, marks=pytest.mark.slow) for each in FORMATS[1:])], ids=["full", "ORC", "Parquet"]
)


def made(spark: SparkSession, client: Client, make_table: TableMaker, file_format: Format) -> AcidTable:
    """A table with a row of each value and one of nulls from before the change, and a row from after it."""
    from metastore.spark.reading.reading import time_zone

    columns = ", ".join(f"{name} {change.old}" for name, change in zip(NAMES, CHANGES, strict=True))
    table = make_table(f"id int, {columns}", file_format=file_format.kind, insert_only=file_format.insert_only)
    values = ", ".join(f"{change.value.format(zone=time_zone(spark))} {name}" for name, change in zip(NAMES, CHANGES, strict=True))
    table.insert(spark.sql(f"select 1 id, {values} union all select 2, {', '.join(['null'] * len(CHANGES))}").coalesce(1))
    altered(client, table, [("id", "int"), *((name, change.new) for name, change in zip(NAMES, CHANGES, strict=True))])
    table.insert(spark.sql("select 3 id"))
    return table


def expected(file_format: Format, key: int = 1) -> list[tuple[object, ...]]:
    nulls = [None] * len(CHANGES)
    return sorted([(key, *(shown(change, file_format) for change in CHANGES)), (2, *nulls), (3, *nulls)], key=repr)


def compared(change: Change, name: str, file_format: Format) -> str | None:
    """Return a filter that the first row alone fulfils."""
    value = shown(change, file_format)
    if value is None or isinstance(value, (list, dict)):
        return None
    if isinstance(value, tuple):
        return f"{name}.x = '5' and {name}.y in ('2.5', 'z')"
    kind = "string" if isinstance(value, str) else change.new
    return f"{name} = cast('{value}' as {kind}) and {name} >= cast('{value}' as {kind}) and {name} in (cast('{value}' as {kind}))"


@in_each_format
def test_filters_choose_among_the_shown_rows(spark: SparkSession, client: Client, make_table: TableMaker, file_format: Format) -> None:
    table = made(spark, client, make_table, file_format)
    assert rows(table) == expected(file_format)
    with table:
        frame, conditions = table.toDF(), []
        for name, change in zip(NAMES, CHANGES, strict=True):
            condition = compared(change, name, file_format)
            if condition is not None:
                assert [row.id for row in frame.where(condition).select("id").collect()] == [1], (change, condition)
                conditions.append(condition)
        assert frame.where(" or ".join(f"not ({condition})" for condition in conditions)).collect() == []
        assert sorted(row.id for row in frame.where("c1 is null and id > 1").collect()) == [2, 3]


@pytest.mark.parametrize("names", [("c1", "c18"), pytest.param(("c3", "c8", "c11", "c12", "c14", "c15"), marks=pytest.mark.slow)])
def test_updates_deletes_and_merges_find_the_rows(
    spark: SparkSession, client: Client, make_table: TableMaker, names: tuple[str, ...]
) -> None:
    table = made(spark, client, make_table, FULL)
    key = 1
    for place, name in enumerate(names):
        change = CHANGES[NAMES.index(name)]
        condition = compared(change, name, FULL)
        assert condition is not None
        if place % 2:
            assert table.update(condition, {"id": "id + 10"}) == 1, change
            key += 10
        else:
            matches = f"target.id = source.id and {condition.replace(name, f'target.{name}')}"
            merge = table.merge(spark.sql(f"select {key} id"), matches).whenMatchedUpdate(set={"id": "source.id + 1"})
            assert merge.execute()["updated"] == 1, change
            key += 1
    assert rows(table) == expected(FULL, key)
    assert table.delete("c1 = '-7'") == 1
    assert [row[0] for row in rows(table)] == [2, 3]


@pytest.mark.parametrize(
    ("file_format", "kind"),
    [
        (FULL, "minor"),
        *(
            pytest.param(each, kind, marks=pytest.mark.slow)
            for each in FORMATS
            for kind in ("minor", "major")
            if (each, kind) != (FULL, "minor")
        ),
    ],
)
def test_compactions_keep_the_shown_rows(
    spark: SparkSession, server: Server, client: Client, make_table: TableMaker, file_format: Format, kind: str
) -> None:
    table = made(spark, client, make_table, file_format)
    assert outcome(spark, server, table, kind)[0] == "compacted"
    assert rows(table) == expected(file_format)
    with table:
        assert [row.id for row in table.toDF().where("c1 = '-7'").collect()] == [1]


@pytest.mark.skipif(int(pyspark.__version__.split(".")[0]) < 4, reason="Python data sources came with Spark 4")
def test_the_format_shows_the_same(spark: SparkSession, client: Client, make_table: TableMaker) -> None:
    from metastore.spark.data_source import register

    table = made(spark, client, make_table, FULL)
    register(spark)
    found = spark.read.format("hive_acid").option("table", table.name).load().collect()
    assert sorted((tuple(row) for row in found), key=repr) == expected(FULL)


def test_parquet_files_of_several_types_are_read_together(spark: SparkSession, client: Client, make_table: TableMaker) -> None:
    table = make_table("id int, c int", "p string", file_format="parquet", insert_only=True)
    for number, kind in enumerate(("int", "bigint", "double", "string")):
        altered(client, table, [("id", "int"), ("c", kind)])
        table.insert(spark.sql(f"select {number} id, cast({number} as {kind}) c, 'p' p"))
    with table:
        assert sorted((row.id, row.c) for row in table.toDF().collect()) == [(0, "0"), (1, "1"), (2, "2.0"), (3, "3")]
        assert [row.id for row in table.toDF().where("c = '2.0'").collect()] == [2]


@pytest.mark.parametrize("closed", [True, False], ids=["closed", "growing"])
def test_the_padding_of_a_char_is_no_part_of_the_text_that_it_becomes(
    spark: SparkSession, server: Server, client: Client, make_table: TableMaker, closed: bool
) -> None:
    """Streams and Hive write chars as ORC's own type, which pads them; Python reads and copies such files."""
    table = make_table("id int, c char(6), s struct<x:char(4)>")
    with StreamingConnection(server.uri, table.name) as connection:
        batch = connection.batch(2)
        for number in (1, 2):
            with batch.transaction():
                batch.write({"id": number, "c": "abc", "s": {"x": "d"}})
        if closed:
            batch.close()
        altered(client, table, [("id", "int"), ("c", "string"), ("s", "struct<x:string>")])
        want = [(number, "[abc]", "[d]") for number in (1, 2)]
        shown = ("id", "concat('[', c, ']')", "concat('[', s.x, ']')")
        assert rows(table, *shown) == want
        batch.close()
    assert outcome(spark, server, table)[0] == "compacted"
    assert rows(table, *shown) == want
