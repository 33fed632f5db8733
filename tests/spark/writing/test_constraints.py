"""Rows that Spark writes keep the enabled constraints of their table, and columns that are not given have their defaults."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal

import pyspark
import pytest
from pyspark.sql import SparkSession

from metastore.acid.values.constraints import CanNotKeepConstraint, ConstraintViolated
from metastore.client import Client
from metastore.spark import AcidTable, transaction
from metastore.spark.reading.reading import time_zone
from metastore.spark.streaming_sink import write_stream
from tests.support.acid.acid_tables import TableMaker
from tests.support.catalog.constraints import constrain

KEEPS = {"not_null": {"nn_id": "id"}, "checks": {"few": "`n` < 10", "named": "v <> 'it\\'s' or n is null"}, "defaults": {"v": "'it''s'"}}
HAS_FORMAT = int(pyspark.__version__.split(".")[0]) >= 4
Action = Callable[[AcidTable, SparkSession, str], object]


def read(table: AcidTable, *columns: str) -> list[tuple[object, ...]]:
    with table:
        return sorted((tuple(row) for row in table.toDF().selectExpr(*columns or ["*"]).collect()), key=repr)


def save(table: AcidTable, spark: SparkSession, rows: str) -> None:
    from metastore.spark.data_source import register

    register(spark)
    spark.sql(rows).write.format("hive_acid").option("table", table.name).mode("append").save()


def merge(table: AcidTable, spark: SparkSession, rows: str) -> None:
    source = spark.sql(rows)
    table.merge(source, "target.id <=> source.id").whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()


def update(table: AcidTable, spark: SparkSession, rows: str) -> None:
    """Give the row of id 1 the values of the first row."""
    (row,) = spark.sql(rows).limit(1).collect()
    table.update("id = 1", {name: "null" if value is None else repr(value) for name, value in row.asDict().items() if name != "p"})


WRITERS: dict[str, Action] = {
    "insert": lambda table, spark, rows: table.insert(spark.sql(rows)),
    "overwrite": lambda table, spark, rows: table.insert_overwrite(spark.sql(rows)),
    "merge": merge,
    "update": update,
}


VIOLATIONS = [
    ("cast(null as int) id, 1 n, 'a' v, 'x' p", r"column id is NOT NULL \(constraint nn_id\)"),
    ("1 id, 9 n, \"it's\" v, 'x' p", "the constraint named, CHECK"),
    ("1 id, 10 n, 'a' v, 'x' p", r"constraint few, CHECK \(`n` < 10\), is violated by the row \{1, 10, a, x\}"),
]


@pytest.mark.parametrize("writer", ["merge", *(pytest.param(each, marks=pytest.mark.slow) for each in ("insert", "overwrite", "update"))])
def test_a_row_that_violates_a_constraint_is_refused(spark: SparkSession, client: Client, make_table: TableMaker, writer: str) -> None:
    table = make_table("id int, n int, v string", "p string")
    table.insert(spark.sql("select 1 id, 2 n, 'a' v, 'x' p"))
    constrain(client, table.name, **KEEPS)
    for row, said in VIOLATIONS:
        with pytest.raises(ConstraintViolated, match=said):
            WRITERS[writer](table, spark, f"select {row}")
    with pytest.raises(ConstraintViolated, match=rf"{table.name}: "), transaction(spark) as txn:
        WRITERS[writer](txn.table(table.name), spark, f"select {row}")
    assert read(table) == [(1, 2, "a", "x")]
    WRITERS[writer](table, spark, "select 1 id, cast(null as int) n, \"it's\" v, 'x' p")  # n is null: both checks hold
    assert (1, None, "it's", "x") in read(table)


@pytest.mark.parametrize("file_format", ["orc", *(pytest.param(each, marks=pytest.mark.slow) for each in ("text", "parquet", "json"))])
def test_insert_only_tables_keep_their_constraints(spark: SparkSession, client: Client, make_table: TableMaker, file_format: str) -> None:
    table = make_table("id int, n int, v string", insert_only=True, file_format=file_format)
    constrain(client, table.name, **KEEPS)
    for rows in ("select cast(null as int) id", "select 1 id, 10 n"):
        for writer in ("insert", "overwrite"):
            with pytest.raises(ConstraintViolated):
                WRITERS[writer](table, spark, rows)
    table.insert(spark.sql("select 1 id"))
    assert read(table) == [(1, None, "its")]


def test_disabled_constraints_and_those_of_no_column_say_nothing(spark: SparkSession, client: Client, make_table: TableMaker) -> None:
    table = make_table("id int, n int, v string")
    constrain(client, table.name, **KEEPS, enable=False)
    table.insert(spark.sql("select cast(null as int) id, 10 n"))
    assert read(table) == [(None, 10, None)]
    assert table.update("n = 10", {"v": "DEFAULT"}) == 1
    assert read(table) == [(None, 10, None)]


def test_an_update_looks_at_the_whole_row(spark: SparkSession, client: Client, make_table: TableMaker) -> None:
    """As in Hive, a row from before the constraint refuses an update of any column, and may be deleted."""
    table = make_table("id int, n int, v string")
    table.insert(spark.sql("select 1 id, 12 n, 'a' v"))
    constrain(client, table.name, **KEEPS)
    with pytest.raises(ConstraintViolated, match="few"):
        table.update("id = 1", {"v": "'b'"})
    assert table.delete("id = 1") == 1


DEFAULTS = {
    "a": "5L",
    "b": "cast('abcd' as varchar(3))",
    "c": "cast(1.5 as decimal(5,2))",
    "d": "date '2020-01-02'",
    "e": "timestamp '2020-01-02 03:04:05'",
    "f": "true",
    "g": "1.5D",
    "h": "'a\\nb\\'c'",
}
HELD = (
    5, "abc", Decimal("1.50"), date(2020, 1, 2), datetime(2020, 1, 2, 3, 4, 5), True, 1.5, "a\nb'c",  # noqa: DTZ001  # as Spark shows it
)  # fmt: skip


@pytest.mark.parametrize("zone", ["America/New_York", pytest.param("UTC", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "writer",
    [
        "insert",
        pytest.param("hive_acid", marks=pytest.mark.skipif(not HAS_FORMAT, reason="Spark 4")),
        *(pytest.param(each, marks=pytest.mark.slow) for each in ("merge", "update")),
    ],
)
def test_columns_that_are_not_given_have_their_defaults(
    spark: SparkSession, client: Client, make_table: TableMaker, writer: str, zone: str
) -> None:
    table = make_table("id int, a bigint, b varchar(3), c decimal(5,2), d date, e timestamp, f boolean, g double, h string, i int")
    constrain(client, table.name, defaults=DEFAULTS)
    one = spark.sql("select 1 id")
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        if writer == "insert":
            table.insert(one)
        elif writer == "merge":
            table.merge(one, "target.id = source.id").whenNotMatchedInsert(values={"id": "source.id", "h": "default"}).execute()
        elif writer == "update":
            table.insert(spark.sql("select 1 id, " + ", ".join(f"null {name}" for name in DEFAULTS)))
            assert read(table) == [(1, *[None] * 9)]
            table.update("id = 1", dict.fromkeys([*DEFAULTS, "i"], " Default "))
        else:
            save(table, spark, "select 1 id")
    finally:
        spark.conf.set("spark.sql.session.timeZone", before or "UTC")
    assert read(table) == [(1, *HELD, None)]


def test_defaults_that_are_computed(spark: SparkSession, client: Client, make_table: TableMaker) -> None:
    table = make_table("id int, a string, b array<int>, c date, d timestamp, e string")
    computed = {"a": "upper('it''s')", "b": "array(1)", "c": "current_date()", "d": "current_timestamp()", "e": "current_user()"}
    constrain(client, table.name, defaults=computed)
    table.insert(spark.sql("select 1 id, null c"))
    (row,) = read(table)
    assert row[:4] == (1, "ITS", [1], None)
    assert read(table, "d > current_timestamp() - interval 1 hour", "e = current_user()") == [(True, True)]


@pytest.mark.skipif(not HAS_FORMAT, reason="Spark 4")
def test_the_format_keeps_constraints_or_refuses(spark: SparkSession, client: Client, make_table: TableMaker) -> None:
    table = make_table("id int, v string, w string")
    constrain(client, table.name, not_null={"nn_id": "id"}, defaults={"v": "'d'", "w": "upper('d')"})
    with pytest.raises(Exception, match=r"column id is NOT NULL \(constraint nn_id\), and a row has no value for it: row 1 of 1"):
        save(table, spark, "select cast(null as int) id, 'w' w")
    with pytest.raises(
        Exception, match=r"column w is not given, and this writer can not compute its default upper\('d'\) \(constraint of_w\)"
    ):
        save(table, spark, "select 1 id")
    save(table, spark, "select 1 id, 'w' w")
    constrain(client, table.name, checks={"few": "id < 10"})
    with pytest.raises(Exception, match=r"can not evaluate the constraint few, which is CHECK \(id < 10\); write the rows with AcidTable"):
        save(table, spark, "select 2 id, 'w' w")
    assert read(table) == [(1, "d", "w")]


def test_a_stream_of_spark_keeps_constraints(
    spark: SparkSession, client: Client, make_table: TableMaker, tmp_path_factory: pytest.TempPathFactory
) -> None:
    table = make_table("id int, v string")
    constrain(client, table.name, not_null={"nn_id": "id"}, checks={"few": "id < 10"}, defaults={"v": "'d'"})
    folder = tmp_path_factory.mktemp("feed")
    for place, rows in enumerate(['{"id": 1}', '{"id": 10}']):
        (folder / f"{place}.json").write_text(rows)
        stream = spark.readStream.schema("id int").option("maxFilesPerTrigger", 1).json(str(folder))
        query = write_stream(stream, table.name, str(folder / "checkpoint"), trigger={"availableNow": True})
        if rows == '{"id": 1}':
            query.awaitTermination(120)
        else:
            with pytest.raises(Exception, match="constraint few"):
                query.awaitTermination(120)
    assert read(table) == [(1, "d")]


def test_a_check_that_spark_can_not_compute_is_refused(spark: SparkSession, client: Client, make_table: TableMaker) -> None:
    table = make_table("id int, v string")
    constrain(client, table.name, checks={"own": "my_udf(id) > 0"})
    with pytest.raises(
        CanNotKeepConstraint, match=r"Spark can not compute the CHECK \(my_udf\(id\) > 0\) \(constraint own\); write the rows with Hive"
    ):
        table.insert(spark.sql("select 1 id"))
    other = make_table("id int, v string", suffix="_other")
    constrain(client, other.name, defaults={"v": "my_udf(1)"})
    with pytest.raises(CanNotKeepConstraint, match=r"default my_udf\(1\) of column v \(constraint of_v\)"):
        other.insert(spark.sql("select 1 id"))
    other.insert(spark.sql("select 1 id, 'v' v"))
    assert (read(table), read(other)) == ([], [(1, "v")])


@pytest.mark.parametrize(
    ("zone", "ansi"),
    [
        ("UTC", "true"),
        ("Asia/Tokyo", "false"),
        *(pytest.param(*each, marks=pytest.mark.slow) for each in (("UTC", "false"), ("Asia/Tokyo", "true"))),
    ],
)
def test_checks_have_hives_meaning_in_any_session(
    spark: SparkSession, client: Client, make_table: TableMaker, ansi: str, zone: str
) -> None:
    table = make_table("s string, t timestamp, a-b int")
    constrain(client, table.name, checks={
        "cast": "cast(s as int) > 5", "moment": "t = timestamp '2020-01-02 03:00:00'", "hour": "hour(t) = 3", "text": "t > '2020-01-02'",
        "quoted": "`a-b` between 1 and 2", "like": "s like 'a\\_%' or s rlike '^\\\\d$'",
    })  # fmt: skip
    moment = f"timestamp '2020-01-02 03:00:00 {time_zone(spark)}'"
    rows = spark.sql(f"select * from values ('a_b', {moment}, 1), ('6', null, null) as t(s, t, `a-b`)")
    before = {name: spark.conf.get(name) for name in ("spark.sql.ansi.enabled", "spark.sql.session.timeZone")}
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        table.insert(rows)
        with pytest.raises(ConstraintViolated, match="constraint cast"):
            table.insert(rows.selectExpr("'5' s"))
        with pytest.raises(ConstraintViolated, match="constraint hour"):
            table.insert(rows.selectExpr("t + interval 1 hour t"))
        assert spark.conf.get("spark.sql.ansi.enabled") == ansi
        assert spark.conf.get("spark.sql.session.timeZone") == zone
    finally:
        for name, value in before.items():
            spark.conf.set(name, value or "")
    assert [row[0] for row in read(table)] == ["6", "a_b"]
