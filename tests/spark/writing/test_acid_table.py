"""Rows that are inserted, updated, deleted, merged and overwritten are read back as in a dict, in every layout of a table."""

from __future__ import annotations

import datetime
import random
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # the name that everyone gives it

from metastore import idl
from metastore.client import Client
from metastore.idl import EnvironmentContext, FieldSchema
from metastore.spark import AcidTable, transaction
from metastore.spark.compaction.compactor import Compactor
from metastore.spark.session.catalog import WrongColumns
from metastore.spark.transaction.spark_transaction import CanNotChange
from metastore.spark.writing.merging import SeveralMatches
from tests.support.acid.acid_tables import TableMaker, stored_table

EMP = "id int, name string, salary int"


def emp(spark: SparkSession, *rows: tuple[object, ...]) -> DataFrame:
    return spark.createDataFrame(list(rows), EMP)


def read(table: AcidTable) -> list[tuple[object, ...]]:
    return sorted((tuple(row) for row in table.toDF().collect()), key=repr)


def compact(table: AcidTable, kind: str, partition: str | None = None) -> None:
    key = table.compact(kind, partition)
    outcome = Compactor(table._spark, table._uri).run_once()
    assert outcome is not None
    assert (outcome.entry.id, outcome.state) == (key, "compacted"), outcome


def files(table: AcidTable) -> list[str]:
    """Paths of a table's visible files, below its location."""
    root = Path(table.detail().first().location.removeprefix("file:"))
    found = (path.relative_to(root) for path in root.rglob("*") if path.is_file())
    return sorted(str(path) for path in found if not any(part.startswith(".") for part in path.parts))


def test_an_employee_table(spark: SparkSession, make_table: TableMaker) -> None:
    table = make_table(EMP)
    table.insert(emp(spark, (1, "Jerry", 5000), (2, "Tom", 8000), (3, "Kate", 6000)))
    table.insert(emp(spark, (4, "Allen", 8000)))
    assert table.delete("id = 2") == 1
    assert table.update("name = 'Kate'", {"salary": "salary + 1"}) == 1
    assert table.update("id > 100", {"salary": "0"}) == 0
    assert read(table) == [(1, "Jerry", 5000), (3, "Kate", 6001), (4, "Allen", 8000)]
    assert table.detail().first().writeId == 4
    assert table.delete() == 3
    assert read(table) == []


def test_the_files_are_laid_out_as_hive_does(spark: SparkSession, make_table: TableMaker) -> None:
    table = make_table(EMP)
    table.insert(emp(spark, (1, "a", 1)).coalesce(1))
    table.update("id = 1", {"name": "'b'"})
    assert files(table) == [
        "delete_delta_0000002_0000002_0000/_orc_acid_version",
        "delete_delta_0000002_0000002_0000/bucket_00000",
        "delta_0000001_0000001_0000/_orc_acid_version",
        "delta_0000001_0000001_0000/bucket_00000",
        "delta_0000002_0000002_0000/_orc_acid_version",
        "delta_0000002_0000002_0000/bucket_00000",
    ]
    (row,) = table.toDF(row_id=True).collect()
    assert row.row__id == Row(writeid=2, bucketid=536870912, rowid=0)
    root = Path(table.detail().first().location.removeprefix("file:"))
    assert (root / "delta_0000001_0000001_0000/_orc_acid_version").read_text() == "2"
    events = spark.read.orc(str(root / "delete_delta_0000002_0000002_0000/bucket_00000"))
    assert events.columns == ["operation", "originalTransaction", "bucket", "rowId", "currentTransaction", "row"]
    assert [tuple(event) for event in events.collect()] == [(2, 1, 536870912, 0, 2, None)]


def test_rows_in_a_file_are_sorted_by_their_ids(spark: SparkSession, make_table: TableMaker) -> None:
    table = make_table("id int", "k string")
    table.insert(spark.range(2000).select(F.col("id").cast("int").alias("id"), (F.col("id") % 7).cast("string").alias("k")))
    table.delete("id % 3 = 0")
    root = Path(table.detail().first().location.removeprefix("file:"))
    checked = 0
    for path in root.rglob("bucket_*"):
        rows = [(r.originalTransaction, r.bucket, r.rowId) for r in spark.read.orc(str(path)).collect()]
        assert rows == sorted(set(rows)), path
        assert {bucket >> 16 & 0xFFF for _, bucket, _ in rows} == {int(path.name.removeprefix("bucket_"))}
        checked += 1
    assert checked >= 14


PARTITIONS = ["plain", "with space", "a/b", "50%", "k=v", "ü+ö", "", None, "x:y'z\"", "{a}", "it's"]


def test_partitions_of_any_name(spark: SparkSession, make_table: TableMaker) -> None:
    table = make_table("id int", "p string, n int")
    rows = [(number, name, number % 2) for number, name in enumerate(PARTITIONS)]
    table.insert(spark.createDataFrame(rows, "id int, p string, n int"))
    want = {number: (name or None, number % 2) for number, name in enumerate(PARTITIONS)}
    assert {row.id: (row.p, row.n) for row in table.toDF().collect()} == want
    assert table.update("id >= 0", {"id": "id + 100"}) == len(PARTITIONS)
    assert table.delete("p = '50%'") == 1
    assert {row.id - 100: (row.p, row.n) for row in table.toDF().collect()} == {k: v for k, v in want.items() if v[0] != "50%"}
    assert [row.id for row in table.toDF().where("p = 'k=v'").collect()] == [104]


def test_spark_reads_only_the_partitions_that_a_filter_leaves(spark: SparkSession, make_table: TableMaker) -> None:
    table = make_table("id int", "day string")
    table.insert(spark.range(50).select(F.col("id").cast("int").alias("id"), F.concat(F.lit("d"), F.col("id") % 5).alias("day")))
    found = table.toDF().where("day = 'd3'")
    assert found.count() == 10
    plan = found._jdf.queryExecution().executedPlan()
    found.collect()
    assert "day=d3" in set().union(*(row.f.split("/") for row in found.select(F.input_file_name().alias("f")).collect()))
    scans = plan.collectLeaves()
    assert scans.apply(0).metrics().get("numFiles").get().value() <= 2
    assert table.toDF(partitions="day = 'd1'").count() == 10


TYPES = {
    "a tinyint": (1, -128, None),
    "b smallint": (2, 32767, None),
    "c bigint": (3, 2**63 - 1, None),
    "d float": (0.5, -1.25, None),
    "e double": (1e300, -0.1, None),
    "f boolean": (True, False, None),
    "g decimal(20,4)": (Decimal("12.3456"), Decimal("-9999999999999999.9999"), None),
    "h date": (datetime.date(2024, 2, 29), datetime.date(1970, 1, 1), None),
    "i timestamp": (datetime.datetime(2024, 7, 1, 12, 30, 0, 123456), datetime.datetime(1999, 12, 31, 23, 59, 59), None),  # noqa: DTZ001  # Spark's own
    "j binary": (bytearray(b"\x00\xff"), bytearray(b""), None),
    "k char(3)": ("abc", "x", None),
    "l varchar(10)": ("ärger", "", None),
    "m array<int>": ([1, None, 3], [], None),
    "n map<string,int>": ({"a": 1}, {}, None),
    "o struct<x:int,y:array<string>>": (Row(x=1, y=["q"]), Row(x=None, y=None), None),
    "p string": ("line\nbreak", "", None),
}


def test_every_type(spark: SparkSession, make_table: TableMaker) -> None:
    table = make_table("id int, " + ", ".join(TYPES))
    names = [column.split(" ")[0] for column in TYPES]
    schema = table.toDF().schema
    rows = [(number, *(values[number] for values in TYPES.values())) for number in range(3)]
    table.insert(spark.createDataFrame(rows, schema))
    table.update("id = 0", {"p": "'changed'"})
    for compacted in (False, True):
        if compacted:
            compact(table, "major")
        found = {row.id: row for row in table.toDF().collect()}
        for number, row in enumerate(rows):
            for name, value in zip(names, row[1:], strict=True):
                want = "changed" if (number, name) == (0, "p") else value
                got = found[number][name]
                assert got == want or (name == "k" and got is not None and got.rstrip() == want), (name, number)


def test_a_merge(spark: SparkSession, make_table: TableMaker) -> None:
    table = make_table(EMP)
    table.insert(emp(spark, (1, "a", 10), (2, "b", 20), (3, "c", 30), (4, "d", 40)))
    changes = emp(spark, (1, "a2", 11), (2, "gone", 0), (3, "no", -1), (7, "new", 70), (8, "not", -1))
    merge = table.alias("t").merge(changes.alias("s"), "t.id = s.id")
    merge.whenMatchedDelete("s.salary = 0").whenMatchedUpdate("s.salary > 0", {"name": "s.name", "salary": "t.salary + s.salary"})
    assert merge.whenNotMatchedInsert("s.salary > 0", {"id": "s.id", "name": "upper(s.name)"}).execute() == {
        "updated": 1,
        "deleted": 1,
        "inserted": 1,
    }
    assert read(table) == [(1, "a2", 21), (3, "c", 30), (4, "d", 40), (7, "NEW", None)]
    again = table.merge(emp(spark, (3, "x", 1), (9, "y", 2)), "target.id = source.id")
    assert again.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute() == {"updated": 1, "deleted": 0, "inserted": 1}
    assert read(table) == [(1, "a2", 21), (3, "x", 1), (4, "d", 40), (7, "NEW", None), (9, "y", 2)]


def test_a_merge_in_which_two_rows_match_changes_nothing(spark: SparkSession, make_table: TableMaker) -> None:
    table = make_table(EMP)
    table.insert(emp(spark, (1, "a", 10)))
    twice = table.merge(emp(spark, (1, "x", 1), (1, "y", 2)), "target.id = source.id").whenMatchedUpdateAll()
    with pytest.raises(SeveralMatches, match="several rows of the source match"):
        twice.execute()
    assert read(table) == [(1, "a", 10)]


def test_an_overwrite_replaces_the_table_or_the_partitions_it_reaches(spark: SparkSession, make_table: TableMaker) -> None:
    whole = make_table(EMP)
    whole.insert(emp(spark, (1, "a", 1)))
    whole.insert_overwrite(emp(spark, (2, "b", 2)))
    assert read(whole) == [(2, "b", 2)]
    whole.insert_overwrite(emp(spark))
    assert read(whole) == []
    parted = make_table("id int", "p string", suffix="_parted")
    parted.insert(spark.createDataFrame([(1, "x"), (2, "y")], "id int, p string"))
    parted.insert_overwrite(spark.createDataFrame([(3, "y")], "id int, p string"))
    assert read(parted) == [(1, "x"), (3, "y")]


@pytest.mark.parametrize("file_format", ["parquet", *(pytest.param(each, marks=pytest.mark.slow) for each in ("orc", "text"))])
def test_insert_only_tables(spark: SparkSession, make_table: TableMaker, file_format: str) -> None:
    table = make_table("id int, name string", "p string", insert_only=True, file_format=file_format)
    table.insert(spark.createDataFrame([(1, "a", "x"), (2, None, "y")], "id int, name string, p string"))
    table.insert(spark.createDataFrame([(3, "c", "x")], "id int, name string, p string"))
    assert read(table) == [(1, "a", "x"), (2, None, "y"), (3, "c", "x")]
    assert "p=x/delta_0000002_0000002_0000/000000_0" in [path.replace("000001_0", "000000_0") for path in files(table)]
    with pytest.raises(CanNotChange, match="insert-only"):
        table.delete("id = 1")
    compact(table, "minor", "p=x")
    assert read(table) == [(1, "a", "x"), (2, None, "y"), (3, "c", "x")]
    table.insert(spark.createDataFrame([(4, "d", "x")], "id int, name string, p string"))
    compact(table, "major", "p=x")
    assert read(table) == [(1, "a", "x"), (2, None, "y"), (3, "c", "x"), (4, "d", "x")]


@pytest.mark.slow
def test_files_from_before_the_table_was_transactional(spark: SparkSession, make_table: TableMaker, tmp_path: Path) -> None:
    place = tmp_path / "old"
    emp(spark, *((number, f"n{number}", number) for number in range(10))).coalesce(1).write.orc(str(place))
    emp(spark, (10, "copy", 10)).coalesce(1).write.mode("append").orc(str(place))
    parts = sorted(place.glob("*.orc"))
    parts[0].rename(place / "000000_0")
    parts[1].rename(place / "000000_0_copy_1")
    for other in (*place.glob(".*"), *place.glob("_*")):
        other.unlink()
    table = make_table(EMP, location=place)
    assert len(read(table)) == 11
    ids = [row.row__id for row in table.toDF(row_id=True).collect()]
    assert sorted(row.rowid for row in ids) == list(range(11))
    assert {(row.writeid, row.bucketid) for row in ids} == {(0, 536870912)}
    assert table.delete("id in (3, 10)") == 2
    assert table.update("id = 4", {"name": "'four'"}) == 1
    want = [(number, "four" if number == 4 else f"n{number}", number) for number in range(10) if number != 3]
    assert read(table) == sorted(want, key=repr)
    compact(table, "major")
    assert read(table) == sorted(want, key=repr)


def test_columns_that_came_later_are_null_in_older_rows(spark: SparkSession, make_table: TableMaker, client: Client) -> None:
    table = make_table("id int, s struct<a:int>")
    table.insert(spark.createDataFrame([(1, Row(a=1))], "id int, s struct<a:int>"))
    name = table.detail().first().name.split(".")[1]
    altered = stored_table(client, name)
    altered.sd.cols = [*altered.sd.cols, FieldSchema("extra", "string", None)]
    client.alter_table_with_environment_context("default", name, altered, EnvironmentContext(properties={}))
    table.insert(spark.createDataFrame([(2, Row(a=2), "x")], "id int, s struct<a:int>, extra string"))
    table.update("id = 1", {"s": "named_struct('a', 7)"})
    assert read(table) == [(1, Row(a=7), None), (2, Row(a=2), "x")]


def test_a_transaction_is_all_or_nothing(spark: SparkSession, make_table: TableMaker) -> None:
    first, second = make_table(EMP), make_table("id int", "p string", suffix="_second")
    names = [each.detail().first().name for each in (first, second)]
    with pytest.raises(ZeroDivisionError), transaction(spark) as txn:  # noqa: PT012  # the error ends the transaction
        txn.table(names[0]).insert(emp(spark, (1, "a", 1)))
        txn.table(names[1]).insert(spark.createDataFrame([(1, "x")], "id int, p string"))
        raise ZeroDivisionError
    assert (read(first), read(second)) == ([], [])
    with transaction(spark) as txn:
        inside = txn.table(names[0])
        inside.insert(emp(spark, (1, "a", 1), (2, "b", 2)))
        inside.delete("id = 1")
        inside.update("id = 2", {"salary": "22"})
        inside.update("id = 2", {"salary": "salary + 1"})
        txn.table(names[1]).insert(spark.createDataFrame([(1, "x")], "id int, p string"))
        assert read(inside) == [(2, "b", 23)]
        assert read(first) == []
    assert (read(first), read(second)) == ([(2, "b", 23)], [(1, "x")])


def test_a_snapshot_does_not_see_later_rows(spark: SparkSession, make_table: TableMaker) -> None:
    table = make_table(EMP)
    table.insert(emp(spark, (1, "a", 1)))
    before = table.toDF()
    table.update("id = 1", {"name": "'b'"})
    table.insert(emp(spark, (2, "c", 2)))
    assert [tuple(row) for row in before.collect()] == [(1, "a", 1)]


def test_values_that_do_not_fit_are_refused_and_leave_nothing(spark: SparkSession, make_table: TableMaker, client: Client) -> None:
    before = {txn.id for txn in client.get_open_txns_info().open_txns}  # transactions of earlier tests' readers, which end later
    table = make_table("id int", "p string")
    with pytest.raises(WrongColumns, match="has no column other"):
        table.insert(spark.createDataFrame([(1, "x")], "other int, p string"))
    with pytest.raises(WrongColumns, match="partitioned by p"):
        table.insert(spark.createDataFrame([(1,)], "id int"))
    table.insert(spark.createDataFrame([(1, "x")], "id int, p string"))
    failing = F.udf(lambda value: 1 // (value - 1), "int")
    with pytest.raises(Exception, match="ZeroDivisionError"):
        table.update(None, {"id": failing("id")})
    assert read(table) == [(1, "x")]
    assert not list(Path(table.detail().first().location.removeprefix("file:")).rglob(".staging*"))
    table.close()
    mine = [txn for txn in client.get_open_txns_info().open_txns if (txn.agentInfo or "").startswith("tests ")]
    assert not [txn for txn in mine if txn.state == idl.TxnState.OPEN and txn.id not in before]


@pytest.mark.parametrize(("value", "reason"), [("explode(array(id, id))", "GENERATOR"), ("max(id)", "GROUP_BY")])
def test_an_update_makes_one_row_of_one(spark: SparkSession, make_table: TableMaker, value: str, reason: str) -> None:
    table = make_table("id int")
    table.insert(spark.sql("select cast(id as int) id from range(3)"))
    with pytest.raises(AnalysisException, match=reason):
        table.update(None, {"id": value})
    assert [row.id for row in table.toDF().orderBy("id").collect()] == [0, 1, 2]
    table.close()


@pytest.mark.slow
@pytest.mark.parametrize(("keys", "steps"), [("", 40), ("p string", 40)])
def test_random_work_equals_a_dict(spark: SparkSession, make_table: TableMaker, keys: str, steps: int) -> None:
    """Inserts, updates, deletes, merges and compactions in a seeded order, compared with a dict after every step."""
    random_ = random.Random(20)
    table = make_table("id int, v int", keys)
    schema = "id int, v int, p string" if keys else "id int, v int"
    model: dict[int, tuple[object, ...]] = {}
    fresh = iter(range(10_000))

    def rows(count: int) -> list[tuple[object, ...]]:
        ids = [next(fresh) for _ in range(count)]
        return [(key, random_.randrange(10), *([f"p{key % 3}"] if keys else [])) for key in ids]

    for step in range(steps):
        action = random_.choice(["insert", "update", "delete", "merge", "compact"]) if step else "insert"
        v = random_.randrange(10)
        if action == "insert":
            new = rows(random_.randrange(1, 40))
            table.insert(spark.createDataFrame(new, schema))
            model.update({row[0]: row for row in new})  # type: ignore[misc]
        elif action == "update":
            table.update(f"v = {v}", {"v": "v + 1"})
            model = {key: (key, row[1] + 1, *row[2:]) if row[1] == v else row for key, row in model.items()}
        elif action == "delete":
            table.delete(f"v = {v} and id % 2 = 0")
            model = {key: row for key, row in model.items() if not (row[1] == v and key % 2 == 0)}
        elif action == "merge":
            old = [(key, 100, *row[2:]) for key, row in model.items() if key % 5 == 0]
            new = old + rows(5)
            merge = table.merge(spark.createDataFrame(new, schema), "target.id = source.id")
            merge.whenMatchedDelete("target.id % 10 = 0").whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
            model.update({row[0]: row for row in new})  # type: ignore[misc]
            for row in old:
                if row[0] % 10 == 0:
                    del model[row[0]]
        else:
            for partition in ["p=p0", "p=p1"] if keys else [None]:
                try:
                    table.compact(random_.choice(["minor", "major"]), partition)
                except CanNotChange:
                    continue  # the entry before it waits for readers
                outcome = Compactor(spark).run_once()
                assert outcome is not None
                assert outcome.state in ("compacted", "nothing to do"), outcome
        assert {row[0]: tuple(row) for row in table.toDF().collect()} == model, (step, action)
