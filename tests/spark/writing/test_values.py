"""Each writer stores values unchanged or refuses them, with ANSI rules and without. Stored values are read back the same."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc
from pyspark.sql import Row, SparkSession

from metastore.acid.buckets import buckets
from metastore.acid.folders.table import CAPABILITIES
from metastore.acid.orc.orc_files import event_schema
from metastore.client import Client
from metastore.idl import AlterTableRequest, ClientCapabilities, GetTableRequest
from metastore.spark import AcidTable
from metastore.spark.compaction.compactor import Compactor
from metastore.spark.session.assignment import DoesNotFit
from metastore.spark.writing.faithful import CanNotKeep
from tests.support.acid.acid_tables import TableMaker
from tests.support.servers.servers import Server

NANOSECONDS = 1_700_000_000_123_456_789


@pytest.fixture
def _rules(spark: SparkSession, ansi: str) -> Iterator[None]:
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    yield
    spark.conf.set("spark.sql.ansi.enabled", before)


def rows(table: AcidTable, *columns: str) -> list[tuple[object, ...]]:
    found = sorted((tuple(row) for row in table.toDF().selectExpr(*columns or ["*"]).collect()), key=repr)
    table.close()
    return found


def by_insert(spark: SparkSession, table: AcidTable, column: str, value: str) -> None:
    table.insert(spark.sql(f"select 1 id, {value} {column}"))


def by_update(spark: SparkSession, table: AcidTable, column: str, value: str) -> None:
    table.update("id = 1", {column: value})


def by_merge_update(spark: SparkSession, table: AcidTable, column: str, value: str) -> None:
    source = spark.sql(f"select 1 id, {value} {column}")
    table.merge(source, "target.id = source.id").whenMatchedUpdate(set={column: f"source.{column}"}).execute()


def by_merge_insert(spark: SparkSession, table: AcidTable, column: str, value: str) -> None:
    source = spark.sql(f"select 2 id, {value} {column}")
    values = {"id": "source.id", column: f"source.{column}"}
    table.merge(source, "target.id = source.id").whenNotMatchedInsert(values=values).execute()


QUICK = [("false", by_insert), ("true", by_update)]
WRITERS = [
    pytest.param(ansi, write, id=f"{rules} rules-{write.__name__}", marks=() if (ansi, write) in QUICK else pytest.mark.slow)
    for ansi, rules in (("false", "usual"), ("true", "ANSI"))
    for write in (by_insert, by_update, by_merge_insert, by_merge_update)
]
MISFITS = [
    ("int", "'abc'"),
    ("int", "3000000000L"),
    ("tinyint", "300"),
    ("bigint", "1e30D"),
    ("decimal(4,2)", "123.45BD"),
    ("date", "'today?'"),
    ("timestamp", "'noon'"),
    ("boolean", "'perhaps'"),
    ("float", "1e300D"),
    ("varchar(3)", "'abcd'"),
    ("char(3)", "'abcd'"),
    ("array<varchar(3)>", "array('abc', 'abcd')"),
    ("map<string,tinyint>", "map('a', 300)"),
    ("struct<x:int,y:array<char(2)>>", "named_struct('x', 1, 'y', array('abc'))"),
]


@pytest.mark.usefixtures("_rules")
@pytest.mark.parametrize(("ansi", "write"), WRITERS)
def test_values_that_do_not_fit_are_refused(spark: SparkSession, make_table: TableMaker, write: Callable[..., None]) -> None:
    """The message names the column; the table stays unchanged. Inserts try every misfit, other writers, which share the rule, a few."""
    misfits = {f"v{place}": misfit for place, misfit in enumerate(MISFITS if write is by_insert else MISFITS[:1] + MISFITS[-3::2])}
    table = make_table(", ".join(["id int", *(f"{column} {kind}" for column, (kind, _) in misfits.items())]))
    table.insert(spark.sql("select 1 id"))
    for column, (_, value) in misfits.items():
        with pytest.raises(DoesNotFit, match=rf"{table.name}: column {column}.* is .* and can not hold"):
            write(spark, table, column, value)
    assert rows(table) == [(1, *[None] * len(misfits))]


@pytest.mark.parametrize(
    ("kind", "value", "reason"),
    [
        ("int", "true", "a value of type boolean does not fit"),
        ("int", "array(1)", "does not fit"),
        ("date", "1", "a value of type int does not fit"),
        ("struct<x:int>", "named_struct('x', 1, 'z', 2)", "has no field z"),
        ("struct<x:int>", "named_struct('x', 1, 'X', 2)", "the field x is given twice"),
    ],
)
def test_types_that_never_fit_are_refused(spark: SparkSession, make_table: TableMaker, kind: str, value: str, reason: str) -> None:
    table = make_table(f"id int, v {kind}")
    with pytest.raises(DoesNotFit, match=reason):
        table.insert(spark.sql(f"select 1 id, {value} v"))
    assert rows(table) == []


@pytest.mark.usefixtures("_rules")
@pytest.mark.parametrize("ansi", [pytest.param("false", marks=pytest.mark.slow), "true"], ids=["usual rules", "ANSI rules"])
def test_values_that_fit_are_stored(spark: SparkSession, make_table: TableMaker) -> None:
    table = make_table(
        "id int, c char(5), v varchar(3), d decimal(5,2), f float, s struct<x:bigint,y:array<char(3)>>, m map<varchar(2),date>"
    )
    table.insert(
        spark.sql(
            "select 1L id, 'ab   ' c, 'abc  ' v, 1.5D d, double('inf') f, named_struct('Y', array('z ', null), 'X', 7) s, "
            "map('k', '2024-01-02') m "
            "union all select 2, null, null, null, null, null, null"
        ).coalesce(1)
    )
    table.update("id = 2", {"c": "'  x '", "v": "'ß𝄞'"})
    want = (1, "ab", "abc", Decimal("1.50"), float("inf"), Row(x=7, y=["z", None]), {"k": datetime.date(2024, 1, 2)})
    assert rows(table) == [want, (2, "  x", "ß𝄞", None, None, None, None)]
    assert [row.id for row in table.toDF().where("c = 'ab'").collect()] == [1]
    table.close()


def test_the_format_refuses_and_stores_the_same(spark: SparkSession, make_table: TableMaker) -> None:
    pytest.importorskip("pyspark.sql.datasource", reason="Python data sources came with Spark 4")
    from metastore.spark.data_source import register

    register(spark)
    table = make_table("id int, c char(5), v varchar(3), s struct<x:int,y:array<char(2)>>, m map<string,date>")

    def write(select: str) -> None:
        spark.sql(select).coalesce(1).write.format("hive_acid").option("table", table.name).mode("append").save()

    write("select 1 id, 'ab  ' c, 'abc ' v, named_struct('x', 1, 'y', array('z ')) s, cast(null as map<string,date>) m")
    want = [(1, "ab", "abc", Row(x=1, y=["z"]), None)]
    assert rows(table) == want
    read = spark.read.format("hive_acid").option("table", table.name).load()
    assert [tuple(row) for row in read.collect()] == want
    for value, reason in (
        ("'abcd' v", "column v"),
        ("'abcdef' c", "column c"),
        ("named_struct('x', 1, 'z', 2) s", "no field z"),
        ("named_struct('x', 1, 'X', 2) s", "x is given twice"),
        ("named_struct('x', 1, 'y', array('abc')) s", "column s"),
        ("3000000000 id", "column id"),
    ):
        with pytest.raises(Exception, match=reason):
            write(f"select {value}")
    assert rows(table) == want


def finer(path: Path, *moments: int | None) -> None:
    """Write an event file of nanoseconds, (id, at, k), as Hive would."""
    count = len(moments)
    times = pa.array(moments, pa.int64()).cast(pa.timestamp("ns"))
    row = pa.StructArray.from_arrays([pa.array(range(count), pa.int32()), times, pa.array([0] * count, pa.int32())], ["id", "at", "k"])
    events = [[0] * count, [1] * count, [buckets.encode(0)] * count, list(range(count)), [1] * count, row]
    path.write_bytes(b"")
    orc.write_table(pa.Table.from_batches([pa.record_batch(events, schema=event_schema(row.type))]), path)


def with_nanoseconds(table: AcidTable, spark: SparkSession) -> Path:
    """Insert two rows, and replace the second row's times by times with nanoseconds."""
    table.insert(spark.sql("select id, at, 0 k from values (0, timestamp'2024-01-01 00:00:00'), (1, null) as t(id, at)").coalesce(1))
    (path,) = Path(table.detail().first().location.removeprefix("file:")).glob("delta_*/bucket_00000")
    for each in path.parent.glob(".*.crc"):
        each.unlink()
    finer(path, 0, NANOSECONDS)
    return path


def test_updates_keep_nanoseconds_or_are_refused(spark: SparkSession, make_table: TableMaker) -> None:
    table = make_table("id int, at timestamp, k int")
    with_nanoseconds(table, spark)
    with pytest.raises(CanNotKeep, match="a time of nanoseconds"):
        table.update("id = 1", {"k": "1"})
    with pytest.raises(CanNotKeep, match="a time of nanoseconds"):
        table.merge(spark.sql("select 1 id"), "target.id = source.id").whenMatchedUpdate(set={"k": "1"}).execute()
    assert table.update("id = 0", {"k": "1"}) == 1
    assert table.update("id = 1", {"at": "timestamp'2024-01-01 00:00:00'", "k": "2"}) == 1
    assert [(row[0], row[2]) for row in rows(table)] == [(0, 1), (1, 2)]


def test_a_compaction_that_spark_must_do_keeps_nanoseconds_or_is_refused(
    spark: SparkSession, server: Server, make_table: TableMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make_table("id int, at timestamp, k int")
    path = with_nanoseconds(table, spark)
    table.insert(spark.sql("select 2 id, timestamp'1500-01-01 00:00:00' at, 0 k"))
    table.compact("major")
    done = Compactor(spark, server.uri).run_once()
    assert done is not None
    assert (done.state, "times of nanoseconds" in done.detail) == ("refused", True), done
    assert orc.ORCFile(path).read().column("row").to_pylist()[1]["at"].value == NANOSECONDS
    assert [row[0] for row in rows(table)] == [0, 1, 2]


TEXTS = ["  lead and trail ", "", None, "NULL", "q\"uo'te,\t;", "back\\slash", "Zürich 日本 𝄞", "null", "a\x02b\x03c"]
PLAIN = "id int, s string, b boolean, f float, d double, n decimal(10,3), day date, at timestamp, data binary, c char(5), v varchar(3)"
VALUES: list[tuple[Any, ...]] = [
    (
        True,
        1.5,
        1e300,
        Decimal("12.340"),
        datetime.date(1500, 3, 1),
        datetime.datetime(2024, 7, 1, 12, 30, 0, 123456),  # noqa: DTZ001
        b"bin\\x",
        "ab",
        "xy ",
    ),
    (
        False,
        0.0,
        0.1,
        Decimal("-0.001"),
        datetime.date(9999, 12, 31),
        datetime.datetime(1950, 1, 1, 0, 0, 0, 500000),  # noqa: DTZ001
        bytes(range(256)),
        "",
        "",
    ),
    (None,) * 9,
]


@pytest.mark.parametrize("file_format", ["text", *(pytest.param(each, marks=pytest.mark.slow) for each in ("parquet", "json", "orc"))])
def test_insert_only_tables_read_back(spark: SparkSession, server: Server, make_table: TableMaker, file_format: str) -> None:
    """Rows read back after their insert, and after a compaction, which copies lines of text unchanged."""
    table = make_table(PLAIN, insert_only=True, file_format=file_format)
    given = [(place, text, *VALUES[place % 3]) for place, text in enumerate(TEXTS)]
    frame = spark.createDataFrame(
        given, "id int, s string, b boolean, f float, d double, n decimal(10,3), day date, at timestamp, data binary, c string, v string"
    )
    table.insert(frame.where("id < 5").coalesce(1))
    table.insert(frame.where("id >= 5").coalesce(1))
    want = sorted((tuple(row) for row in frame.collect()), key=repr)
    assert rows(table) == want
    table.compact("major")
    done = Compactor(spark, server.uri).run_once()
    assert done is not None
    assert done.state == "compacted", done
    assert rows(table) == want


@pytest.mark.parametrize("text", ["a\x01b", "a\nb", "a\rb", "\\N"])
def test_values_that_a_line_of_text_can_not_hold_are_refused(spark: SparkSession, make_table: TableMaker, text: str) -> None:
    table = make_table("id int, s string", insert_only=True, file_format="text")
    with pytest.raises(DoesNotFit, match="column s is string in a text file and can not hold"):
        table.insert(spark.createDataFrame([(1, text)], "id int, s string"))
    assert rows(table) == []


def test_nested_columns_of_text_are_refused(spark: SparkSession, make_table: TableMaker) -> None:
    table = make_table("id int, l array<int>", insert_only=True, file_format="text")
    with pytest.raises(DoesNotFit, match="column l is array<int>, which is not read and written as text"):
        table.insert(spark.sql("select 1 id, array(1) l"))


ESCAPED = {"field.delim": ",", "escape.delim": "\\"}
LINES: tuple[tuple[str, dict[str, str], str, list[tuple[object, ...]]], ...] = (
    ("id int, s string", {"field.delim": ","}, "1.7,a\n 7,b\n+5,c\n1e3,d\n", [(1, "a"), (5, "c"), (None, "b"), (None, "d")]),
    ("id int, b boolean", {"field.delim": ","}, "1,TRUE\n2,t\n3,1\n4,yes\n", [(1, True), (2, None), (3, None), (4, None)]),
    ("id int, b boolean", {"field.delim": ",", "hive.lazysimple.extended_boolean_literal": "true"}, "1,T\n2,0\n", [(1, True), (2, False)]),
    ("id int, c char(3), v varchar(3)", {"field.delim": ","}, "1,abcd,abcd\n2,a  ,a  \n", [(1, "abc", "abc"), (2, "a", "a  ")]),
    ("id int, s string", ESCAPED, "1,x\\\n2,a\\nb\n3,a\\\\nb\n4,\\r\\n\n", [(1, "x\\"), (2, "a\nb"), (3, "a\\nb"), (4, "\r\n")]),
    ("id int, s string", {"field.delim": ",", "serialization.last.column.takes.rest": "true"}, "1,a,b\n2\n", [(1, "a,b"), (2, None)]),
)


def text_table(
    client: Client, make_table: TableMaker, columns: str, serde: dict[str, str], files: dict[str, str], **more: str
) -> AcidTable:
    """Return an insert-only table of text with the lines of other writers."""
    table = make_table(columns, insert_only=True, file_format="text", parameters=more)
    found = client.get_table_req(
        GetTableRequest("default", table.name.split(".")[1], ClientCapabilities([2]), processorCapabilities=CAPABILITIES)
    ).table
    found.sd.serdeInfo.parameters = serde
    client.alter_table_req(AlterTableRequest(dbName="default", tableName=found.tableName, table=found, processorCapabilities=CAPABILITIES))
    root = Path(table.detail().first().location.removeprefix("file:"))
    for name, text in files.items():
        (root / name).write_bytes(text.encode())
    return table


@pytest.mark.parametrize(("columns", "serde", "text", "want"), LINES)
def test_lines_of_others_are_read_as_hive_reads_them(
    client: Client, make_table: TableMaker, columns: str, serde: dict[str, str], text: str, want: list[tuple[object, ...]]
) -> None:
    """The expected rows are those that Hive 4.0.1 reads from the same lines."""
    table = text_table(client, make_table, columns, serde, {"000000_0": text})
    assert rows(table) == want


def test_lines_that_are_no_rows_are_passed_over(spark: SparkSession, server: Server, client: Client, make_table: TableMaker) -> None:
    files = {"000000_0": "id,s\n1,a\n2,b\nend", "000001_0": "id,s\r\n3,c\r\n\r\nend\r\n", "000002_0": "id,s\n", "000003_0": ""}
    skip = {"skip.header.line.count": "1", "skip.footer.line.count": "1"}
    table = text_table(client, make_table, "id int, s string", {"field.delim": ","}, files, **skip)
    want = [(1, "a"), (2, "b"), (3, "c"), (None, None)]
    assert rows(table) == want
    with pytest.raises(DoesNotFit, match=r"skips lines at the beginning or end of its files \(skip.header.line.count"):
        table.insert(spark.sql("select 4 id, 'd' s"))
    table.compact("major")
    done = Compactor(spark, server.uri).run_once()
    assert done is not None
    assert (done.state, "begin or end with lines that are not rows" in done.detail) == ("refused", True), done
    assert rows(table) == want


@pytest.mark.parametrize(
    ("more", "serde", "reason"),
    [
        ({"skip.header.line.count": "one"}, {}, "must be numbers"),
        ({}, {**ESCAPED, "serialization.last.column.takes.rest": "true"}, "takes.rest with escape.delim is not read here"),
    ],
)
def test_text_that_is_not_understood_is_refused(
    client: Client, make_table: TableMaker, more: dict[str, str], serde: dict[str, str], reason: str
) -> None:
    table = text_table(client, make_table, "id int, s string", serde, {"000000_0": "1,a\n"}, **more)
    with pytest.raises(DoesNotFit, match=reason):
        rows(table)


def test_json_with_header_lines_is_refused(make_table: TableMaker) -> None:
    table = make_table("id int", insert_only=True, file_format="json", parameters={"skip.header.line.count": "1"})
    with pytest.raises(DoesNotFit, match="with lines at the beginning or end of files that are not rows is not read"):
        rows(table)


@pytest.mark.parametrize("insert_only", [False, True])
def test_times_are_times_for_any_timestamp_type_of_the_session(spark: SparkSession, make_table: TableMaker, insert_only: bool) -> None:
    table = make_table("id int, at timestamp", "p timestamp", insert_only=insert_only)
    moment = "to_timestamp_ltz('2024-07-01 12:30:00.5')"
    with setting(spark, "spark.sql.timestampType", "TIMESTAMP_NTZ"):
        table.insert(spark.sql(f"select 1 id, {moment} at, {moment} p"))
        if not spark.version.startswith("3."):  # Spark 3's ORC reader refuses these files in such a session
            assert rows(table, "id", f"at = {moment}", f"p = {moment}") == [(1, True, True)]
    assert rows(table, "id", f"at = {moment}", f"p = {moment}") == [(1, True, True)]


def test_parquet_keeps_microseconds_for_any_setting_of_the_session(spark: SparkSession, make_table: TableMaker) -> None:
    table = make_table("id int, at timestamp", insert_only=True, file_format="parquet")
    with setting(spark, "spark.sql.parquet.outputTimestampType", "TIMESTAMP_MILLIS"):
        table.insert(spark.sql("select 1 id, timestamp'2024-07-01 12:30:00.123456' at"))
        assert spark.conf.get("spark.sql.parquet.outputTimestampType") == "TIMESTAMP_MILLIS"
    assert rows(table, "cast(at as string)") == [("2024-07-01 12:30:00.123456",)]


@contextmanager
def setting(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    spark.conf.set(name, value)
    try:
        yield
    finally:
        spark.conf.unset(name)
