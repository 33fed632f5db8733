"""Updates and merges find a column in each spelling, and refuse an unknown one before anything is read or written."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  # the name that everyone gives it

from metastore.client import Client
from metastore.spark import AcidTable
from metastore.spark.compaction.compactor import Compactor
from metastore.spark.session.catalog import WrongColumns
from metastore.spark.writing.merging import MergeBuilder
from tests.support.acid.acid_tables import TableMaker

COLUMNS = "id int, v string, s struct<x:int,inner:struct<y:string,z:int>>"
ROWS = "select 1 id, 'a' v, named_struct('x', 1, 'inner', named_struct('y', 'p', 'z', 2)) s, 'k' p"


def read(table: AcidTable, *columns: str) -> list[tuple[object, ...]]:
    with table:
        return sorted((tuple(row) for row in table.toDF().selectExpr(*columns).collect()), key=repr)


@pytest.fixture
def table(spark: SparkSession, make_table: TableMaker) -> AcidTable:
    made = make_table(COLUMNS, "p string")
    made.insert(spark.sql(ROWS))
    return made


def test_columns_are_known_by_case_alias_and_field(spark: SparkSession, table: AcidTable) -> None:
    assert table.update("TARGET.ID = 1", {"target.V": "concat(target.v, 'b')", "S.inner.Y": "'q'", "`s`.x": F.lit(7)}) == 1
    assert read(table, "id", "v", "s.x", "s.inner.y", "s.inner.z", "p") == [(1, "ab", 7, "q", 2, "k")]
    assert table.alias("t").update("t.id = 1", {"t.s.inner": "named_struct('y', t.v, 'z', 9)"}) == 1
    changes = spark.sql("select 1 ID, 'c' V union all select 2, 'd'")
    merge = table.alias("t").merge(changes.alias("c"), "t.Id = c.iD").whenMatchedUpdate(set={"T.v": "c.V", "s.x": "c.id + 1"})
    counts = merge.whenNotMatchedInsert(values={"ID": "c.id", "t.v": "c.v", "P": "'n'"}).execute()
    assert counts == {"updated": 1, "deleted": 0, "inserted": 1}
    assert read(table, "id", "v", "s.x", "s.inner.y", "s.inner.z", "p") == [(1, "c", 2, "ab", 9, "k"), (2, "d", None, None, None, "n")]
    assert table.update("id = 2", {"s.inner.z": "5"}) == 1
    assert read(table, "s.x", "s.inner.y", "s.inner.z")[1] == (None, None, 5)


def test_a_view_is_a_source_under_its_own_name_and_as_source(spark: SparkSession, table: AcidTable) -> None:
    spark.sql(ROWS.replace("'a'", "'from view'")).createOrReplaceTempView("changes")
    try:
        for name, value in (("source", "1"), ("changes", "2")):
            merge = table.merge(spark.table("changes"), f"target.id = {name}.id").whenMatchedUpdate(set={"v": f"concat({name}.v, {value})"})
            assert merge.execute()["updated"] == 1
            assert read(table, "v") == [(f"from view{value}",)]
        table.merge(spark.table("changes"), "target.id = source.id").whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
        assert read(table, "v", "s.x") == [("from view", 1)]
    finally:
        spark.catalog.dropTempView("changes")


def test_a_column_of_the_source_may_serve_a_condition_alone(spark: SparkSession, table: AcidTable) -> None:
    changes = spark.sql(f"{ROWS.replace('1 id', '2 id')}, false gone union all {ROWS}, true gone")
    merge = table.merge(changes, "target.id = source.id").whenMatchedDelete("source.gone").whenMatchedUpdateAll()
    assert merge.whenNotMatchedInsertAll(~F.col("source.gone")).execute() == {"updated": 0, "deleted": 1, "inserted": 1}
    assert read(table, "id") == [(2,)]


Clauses = Callable[[MergeBuilder], MergeBuilder]
UPDATE_ALL: Clauses = lambda merge: merge.whenMatchedUpdateAll()  # noqa: E731  # rows of a table
INSERT_ALL: Clauses = lambda merge: merge.whenNotMatchedInsertAll()  # noqa: E731  # see above
MERGES: list[tuple[str, Clauses, type[Exception], str]] = [
    (f"select id, v vv, s, p from ({ROWS})", UPDATE_ALL, WrongColumns, "no column v"),
    (f"select id, v vv, s, p from ({ROWS})", INSERT_ALL, WrongColumns, "no column v"),
    (f"select id, v, s from ({ROWS})", INSERT_ALL, WrongColumns, "no column p"),
    (f"select *, 1 extra from ({ROWS})", INSERT_ALL, WrongColumns, "no column extra"),
    (f"select *, 1 extra from ({ROWS})", UPDATE_ALL, WrongColumns, "no column extra"),
    (ROWS, lambda merge: merge.whenMatchedUpdate(set={"nope": "1"}), WrongColumns, "no column nope"),
    (ROWS, lambda merge: merge.whenMatchedUpdate(set={"s.nope": "1"}), WrongColumns, "no field nope"),
    (ROWS, lambda merge: merge.whenMatchedUpdate(set={"v.x": "1"}), WrongColumns, "no field x"),
    (ROWS, lambda merge: merge.whenMatchedUpdate(set={"v": "1", "target.V": "2"}), WrongColumns, "set twice"),
    (ROWS, lambda merge: merge.whenMatchedUpdate(set={"s.x": "1", "s": "null"}), WrongColumns, "set twice"),
    (ROWS, lambda merge: merge.whenMatchedUpdate(set={}), WrongColumns, "sets no column"),
    (ROWS, lambda merge: merge.whenMatchedUpdate(set={"a..b": "1"}), WrongColumns, "is not a name"),
    (ROWS, lambda merge: merge.whenNotMatchedInsert(values={"id": "5", "nope": "1", "p": "'x'"}), WrongColumns, "no column nope"),
    (ROWS, lambda merge: merge.whenNotMatchedInsert(values={"id": "5"}), WrongColumns, "partitioned by p"),
    (ROWS, lambda merge: merge.whenNotMatchedInsert(values={"s.x": "5", "p": "'x'"}), WrongColumns, "within a column"),
]


def test_a_merge_refuses_columns_that_do_not_fit(spark: SparkSession, client: Client, table: AcidTable) -> None:
    before = client.get_open_txns().txn_high_water_mark
    for query, clauses, kind, message in MERGES:
        with pytest.raises(kind, match=message):
            clauses(table.merge(spark.sql(query), "target.id = source.id")).execute()
    assert read(table, "id", "v") == [(1, "a")]
    assert table.detail().first().writeId == 1, "a write id was taken"
    assert client.get_open_txns().txn_high_water_mark > before


def test_updates_and_inserts_refuse_columns_that_do_not_fit(spark: SparkSession, table: AcidTable) -> None:
    for values, kind, message in (
        ({"nope": "1"}, WrongColumns, "no column nope"),
        ({"other.v": "1"}, WrongColumns, "no column other.v"),
        ({}, WrongColumns, "sets no column"),
        ({"v": None}, TypeError, "None is not an expression"),
    ):
        with pytest.raises(kind, match=message):
            table.update("id = 1", values)
    with pytest.raises(TypeError, match="None is not an expression"):
        table.merge(spark.sql(ROWS), None).whenMatchedDelete().execute()
    with pytest.raises(WrongColumns, match="the column v is given twice by the rows"):
        table.insert(spark.sql(f"select *, 'again' V from ({ROWS})"))
    assert read(table, "id", "v") == [(1, "a")]


def test_lists_with_null_in_conditions(spark: SparkSession, make_table: TableMaker) -> None:
    """Lists with null work as conditions, also of numbers, which Spark's ORC source refuses. Rows with a null condition are unchanged."""
    table = make_table("id int, d decimal(5,2), v string")
    table.insert(spark.sql("select * from values (1, 1.5, 'a'), (2, 2.5, 'b'), (3, null, 'c') as t(id, d, v)"))
    before = spark.conf.get("spark.sql.orc.filterPushdown")
    assert table.delete("id not in (1, null)") == 0
    assert table.update(F.col("id").isin(1, None), {"v": "'changed'"}) == 1
    assert table.delete("d in (2.5, null)") == 1
    merge = table.merge(spark.sql("select 3 id"), "target.id = source.id and target.id in (null, 3)")
    assert merge.whenMatchedUpdate(set={"v": "'merged'"}).execute()["updated"] == 1
    assert spark.conf.get("spark.sql.orc.filterPushdown") == before
    with table:
        assert sorted((row.id, row.v) for row in table.toDF().collect()) == [(1, "changed"), (3, "merged")]


UPDATES: dict[str, Callable[[AcidTable, SparkSession], object]] = {
    "update": lambda table, _: table.update("id = 1", {"target.P": "'new'", "v": "'z'"}),
    "merge": lambda table, spark: (
        table.merge(spark.sql("select 1 id, 'z' v, 'new' p"), "target.id = source.id")
        .whenMatchedUpdate(set={"p": "source.p", "v": "source.v"})
        .execute()
    ),
    "merge of all": lambda table, spark: (
        table.merge(spark.sql("select 1 id, 'z' v, 'new' p"), "target.id = source.id").whenMatchedUpdateAll().execute()
    ),
}


@pytest.mark.parametrize(
    ("name", "by"),
    [
        ("update", "bucket"),
        *(
            pytest.param(name, by, marks=pytest.mark.slow)
            for name in ("update", "merge", "merge of all")
            for by in ("partition", "bucket")
            if (name, by) != ("update", "bucket")
        ),
    ],
)
def test_a_row_goes_where_it_belongs(spark: SparkSession, client: Client, make_table: TableMaker, by: str, name: str) -> None:
    """A partition column is the name of its folder, a bucket column the number of its file."""
    columns = ("id int, v string", "p string") if by == "partition" else ("id int, v string, p string",)
    table = make_table(*columns, buckets=0 if by == "partition" else 4, bucketed_by=() if by == "partition" else ("p",))
    table.insert(spark.sql("select id, 'a' v, p from values (1, 'old'), (2, 'old') as t(id, p)"))
    UPDATES[name](table, spark)
    assert read(table, "id", "v", "p") == [(1, "z", "new"), (2, "a", "old")]
    with table:
        assert [row.id for row in table.toDF().where("p = 'new'").collect()] == [1]
    if name != "update":
        return
    table.compact("major", "p=old" if by == "partition" else None, pool=name)
    outcome = Compactor(spark, table._uri, pool=name).run_once()
    assert outcome is not None
    assert outcome.state == "compacted"
    assert table.update("p = 'new'", {"v": "'y'"}) == 1
    assert table.delete("p = 'old'") == 1
    assert read(table, "id", "v", "p") == [(1, "y", "new")]
    if by == "partition":
        assert client.get_partition_names("default", table.name.split(".")[1], -1) == ["p=new", "p=old"]


def test_a_source_without_the_partition_leaves_rows_where_they_are(spark: SparkSession, table: AcidTable) -> None:
    source = spark.sql("select 1 id, 'z' v, named_struct('x', 2, 'inner', named_struct('y', 'p', 'z', 2)) s")
    assert table.merge(source, "target.id = source.id").whenMatchedUpdateAll().execute()["updated"] == 1
    assert read(table, "id", "v", "s.x", "p") == [(1, "z", 2, "k")]


@pytest.mark.parametrize("shape", ["both", *(pytest.param(each, marks=pytest.mark.slow) for each in ("view", "filter", "projection"))])
def test_a_source_keeps_its_alias_below_a_filter_or_a_projection(spark: SparkSession, table: AcidTable, shape: str) -> None:
    changes = spark.createDataFrame([(1, "c"), (2, "d")], "id int, v string")
    changes.createOrReplaceTempView("changes")
    source = {
        "filter": lambda: changes.alias("changes").where("changes.id = 1"),
        "projection": lambda: changes.alias("changes").select("changes.id", "changes.v").where("id = 1"),
        "both": lambda: changes.alias("changes").where("v > 'a'").select("id", "v").where("id < 2"),
        "view": lambda: spark.table("changes").where("id = 1").select("id", "v"),
    }[shape]()
    table.merge(source, "target.id = changes.id").whenMatchedUpdate("changes.v > 'a'", set={"v": "changes.v"}).execute()
    assert read(table, "id", "v") == [(1, "c")]
