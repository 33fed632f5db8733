"""Each writer puts rows into the file of the bucket in their row ids. Misplaced rows of an earlier version are found and corrected."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyspark
import pytest
from pyarrow import orc
from pyspark.sql import DataFrame, SparkSession
from typer.testing import CliRunner

from metastore.acid.buckets import buckets
from metastore.acid.files import FileError
from metastore.acid.folders import placing
from metastore.cli import app
from metastore.client import Client
from metastore.spark import AcidTable, transaction
from metastore.spark.compaction.compactor import Compactor
from metastore.spark.work import Work
from tests.support.acid.acid_tables import TableMaker
from tests.support.acid.misplaced_rows import misplaced, numbered, remove, rewrite, scatter

HAS_FORMAT = int(pyspark.__version__.split(".")[0]) >= 4
"""Whether there is `hive_acid`: Python data sources came with Spark 4."""


@pytest.fixture(scope="module", autouse=True)
def registered(spark: SparkSession) -> None:
    if HAS_FORMAT:
        from metastore.spark.data_source import register

        register(spark)


@pytest.fixture
def two_tasks(spark: SparkSession) -> Iterator[None]:
    """Let Spark divide the rows of a local DataFrame between two tasks, as a session with two cores does."""
    spark.conf.set("spark.sql.leafNodeDefaultParallelism", "2")
    yield
    spark.conf.unset("spark.sql.leafNodeDefaultParallelism")


def root(table: AcidTable) -> Path:
    return Path(table.detail().first().location.removeprefix("file:"))


def ids(table: AcidTable) -> list[int]:
    """Return the ids of all rows, after a check that `AcidTable` and the format read the same ones."""
    found = sorted(row.id for row in table.toDF().collect())
    table.close()
    if HAS_FORMAT:
        rows = table._spark.read.format("hive_acid").option("table", table.name).load()
        assert sorted(row.id for row in rows.collect()) == found
    return found


def compact(table: AcidTable, kind: str, partition: str | None = None) -> str:
    table.close()
    table.compact(kind, partition)
    outcome = Compactor(table._spark, table._uri).run_once()
    assert outcome is not None
    return outcome.state


ARROW = pa.table({"id": pa.array(range(6), pa.int32()), "p": ["x", "y"] * 3})
FOLDED: dict[str, Callable[[SparkSession], DataFrame]] = {
    "values": lambda spark: spark.sql("select * from values (0, 'x'), (1, 'y'), (2, 'x'), (3, 'y'), (4, 'x'), (5, 'y') v(id, p)"),
    "arrow": lambda spark: spark.createDataFrame(ARROW if HAS_FORMAT else ARROW.to_pandas()),
    "sorted": lambda spark: spark.sql("select * from values (5, 'x'), (4, 'y'), (3, 'x'), (2, 'y'), (1, 'x'), (0, 'y') v(id, p)").sort(
        "id"
    ),
    "union": lambda spark: spark.sql("values (0, 'x'), (1, 'y'), (2, 'x') union all values (3, 'y'), (4, 'x'), (5, 'y')").toDF("id", "p"),
}
SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        ("values", "p string"),
        pytest.param("values", "", marks=SLOW),
        pytest.param("arrow", "", marks=SLOW),
        pytest.param("sorted", "p string", marks=SLOW),
        pytest.param("union", "", marks=SLOW),
    ],
)
def test_a_frame_that_spark_computes_on_the_driver(
    spark: SparkSession, make_table: TableMaker, two_tasks: None, kind: str, keys: str
) -> None:
    """Two tasks write the frame. In an earlier version both used the same row ids: deleted rows came back, for good after a compaction."""
    table = make_table("id int" if keys else "id int, p string", keys)
    with transaction(spark) as txn:
        for _ in range(2):  # the second statement has another statement number
            txn.table(table.name).insert(FOLDED[kind](spark))
    table.insert_overwrite(FOLDED[kind](spark))
    table.insert(FOLDED[kind](spark))
    assert misplaced(root(table)) == {}
    assert table.delete("id >= 3") == 6
    assert ids(table) == [0, 0, 1, 1, 2, 2]
    assert compact(table, "major", "p=x" if keys else None) == "compacted"
    assert ids(table) == [0, 0, 1, 1, 2, 2]
    assert table.check().collect() == []


def damaged(table: AcidTable, spark: SparkSession, keys: str, statement: int = 0) -> list[int]:
    """Insert rows 0 to 7, and move the second half to the file of another bucket than their row ids have; return their ids."""
    rows = spark.range(8).selectExpr("cast(id as int) id", "string(id) v", *(["'x' p"] if keys else [])).coalesce(1)
    with transaction(spark) as txn:
        for _ in range(statement):
            txn.table(table.name).insert(rows.where("false"))
        txn.table(table.name).insert(rows)
    (file,) = root(table).rglob(f"delta_*_{statement:04d}/bucket_*")
    scatter(file)
    return list(range(8))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "keys", "statement"), [("minor", "p string", 2), ("major", "", 0), ("minor", "", 0), ("major", "p string", 2)]
)
def test_tables_of_an_earlier_version_are_found_read_and_mended(
    spark: SparkSession, make_table: TableMaker, kind: str, keys: str, statement: int
) -> None:
    table = make_table("id int, v string", keys)
    assert table.check().collect() == []
    left = damaged(table, spark, keys, statement)
    (found,) = table.check().collect()
    assert found.partition == ("p=x" if keys else "")
    assert found.file.endswith(f"{'p=x/' if keys else ''}delta_0000001_0000001_{statement:04d}/bucket_00001")
    assert found.problem == "its rows name bucket 0: Hive shows deleted rows of the file again"
    assert "compact it (major) by `metastore compactor`" in found.advice
    assert table.delete("id in (1, 6)") == 2
    assert table.update("id = 5", {"v": "'new'"}) == 1
    left = [number for number in left if number not in (1, 6)]
    assert ids(table) == left
    table.insert(spark.range(100, 104).selectExpr("cast(id as int) id", "'' v", *(["'x' p"] if keys else [])).repartition(2))
    left += range(100, 104)
    assert compact(table, kind, "p=x" if keys else None) == "compacted"
    assert ids(table) == left
    assert table.check().collect() == []
    (made,) = root(table).rglob(f"{'base' if kind == 'major' else 'delta'}_*_v*")
    assert misplaced(made) == {}
    assert [row.v for row in table.toDF().where("id = 5").collect()] == ["new"]
    table.close()
    assert table.delete("id in (4, 101)") == 2
    left = [number for number in left if number not in (4, 101)]
    assert ids(table) == left
    assert compact(table, "major", "p=x" if keys else None) == "compacted"
    assert ids(table) == left


@pytest.mark.slow
def test_a_base_that_an_earlier_compaction_made_of_such_files(spark: SparkSession, make_table: TableMaker) -> None:
    """The earlier compaction merged files by their names, so that one file has rows of two buckets. There is no delta left to compact."""
    table = make_table("id int, v string")
    damaged(table, spark, "")
    table.insert(spark.range(100, 104).selectExpr("cast(id as int) id", "'' v").repartition(2))
    place = root(table)
    for name in ("bucket_00000", "bucket_00001"):
        parts = [orc.ORCFile(str(place / f"delta_000000{number}_000000{number}_0000" / name)).read() for number in (1, 2)]
        rewrite(place / "base_0000002_v0000001" / name, parts)
    for number in (1, 2):
        shutil.rmtree(place / f"delta_000000{number}_000000{number}_0000")
    assert misplaced(place) == {"base_0000002_v0000001/bucket_00001": {0, 1}}
    (found,) = table.check().collect()
    assert found.problem == (
        "its rows name bucket 0, 1: Hive shows deleted rows of the file again; the compaction that made this file may have "
        "brought back rows that were deleted before it"
    )
    assert ids(table) == [*range(8), *range(100, 104)]
    assert compact(table, "major") == "compacted"
    (base,) = {*place.glob("base_*_v*")} - {place / "base_0000002_v0000001"}
    assert misplaced(base) == {}
    assert ids(table) == [*range(8), *range(100, 104)]
    assert table.check().collect() == []
    assert table.delete("id in (2, 6, 100, 103)") == 4
    assert ids(table) == [0, 1, 3, 4, 5, 7, 101, 102]
    assert compact(table, "major") == "compacted"
    assert ids(table) == [0, 1, 3, 4, 5, 7, 101, 102]


@pytest.mark.slow
def test_rows_of_both_encodings(spark: SparkSession, make_table: TableMaker) -> None:
    """Row ids of Hive 2 have the plain bucket number. Statistics of a file with both encodings exclude no number between them."""
    table = make_table("id int, v string")
    table.insert(spark.range(6).selectExpr("cast(id as int) id", "'' v").coalesce(1))
    (file,) = root(table).rglob("bucket_00000")
    events = orc.ORCFile(str(file)).read()
    right = numbered(events.slice(0, 3), [1, 1, buckets.encode(1)])
    wrong = numbered(events.slice(3), [1, buckets.encode(0), buckets.encode(1)])
    remove(file)
    rewrite(file.with_name("bucket_00001"), [right])
    assert table.check().collect() == []
    assert ids(table) == [0, 1, 2]
    rewrite(file.with_name("bucket_00001"), [right, wrong])
    (found,) = table.check().collect()
    assert "bucket 0, 1:" in found.problem
    assert table.delete("id in (0, 4, 5)") == 3
    assert ids(table) == [1, 2, 3]
    assert compact(table, "major") == "compacted"
    assert ids(table) == [1, 2, 3]
    assert table.check().collect() == []


def test_no_file_is_placed_whose_rows_name_another_bucket(spark: SparkSession, make_table: TableMaker) -> None:
    table = make_table("id int, v string")
    table.insert(spark.range(4).selectExpr("cast(id as int) id", "'' v").coalesce(1))
    place = root(table)
    shutil.copytree(next(place.glob("delta_*")), place / ".aside")
    file = str(place / ".aside" / "bucket_00000")
    transaction = Work(spark, table._uri)
    with transaction.txn:
        info = transaction.load(*table.name.split("."))
        with pytest.raises(FileError, match="is the file of bucket 1, but its rows name bucket 0; nothing was moved"):
            placing.place(transaction.files, info, f"{place}/delta_0000002_0000002_0000", [(file, 1)])
    assert Path(file).exists()
    assert not list(place.glob("delta_0000002*"))
    if HAS_FORMAT:
        _hive_acid_places_no_such_file(spark, table, file)


def _hive_acid_places_no_such_file(spark: SparkSession, table: AcidTable, file: str) -> None:
    from metastore.spark.data_source_plan import Staged
    from metastore.spark.data_source_writing import CanNotPlace, WriteRequest, finish

    transaction = Work(spark, table._uri)
    with transaction.txn:
        info = transaction.load(*table.name.split("."))
    schema = spark.sql("select 1 id, '' v").schema
    plan = WriteRequest.of(table._uri, info, schema, "UTC", {}, overwrite=False).begin()
    with pytest.raises(CanNotPlace, match="is to become bucket_00001, but its rows name bucket 0"):
        finish(plan, [Staged(file, "", 0, "bucket_00001")])
    assert [path.name for path in root(table).glob("delta_*")] == ["delta_0000001_0000001_0000"]
    assert ids(table) == [0, 1, 2, 3]


def test_the_command_line_checks_a_table_a_database_or_all(spark: SparkSession, client: Client, make_table: TableMaker) -> None:
    good, bad, plain = (make_table("id int, v string", suffix=suffix, insert_only=suffix == "_c") for suffix in ("_a", "_b", "_c"))
    good.insert(spark.sql("select 1 id, '' v"))
    plain.insert(spark.sql("select 1 id, '' v"))
    uri = ("--uri", good._uri)
    for table in (good, plain):
        found = CliRunner().invoke(app, ["check", table.name, *uri])
        assert (found.exit_code, found.output) == (0, "")
    damaged(bad, spark, "")
    (root(bad) / "part-00000-0123.snappy.orc").write_bytes((root(bad) / "delta_0000001_0000001_0000" / "bucket_00000").read_bytes())
    for arguments in ([bad.name], ["default"], []):
        found = CliRunner().invoke(app, ["check", *arguments, *uri])
        rows = [line.split("\t") for line in found.output.splitlines() if line.startswith(bad.name)]
        assert found.exit_code == 1
        assert [row[3] for row in rows] == [
            "its rows name bucket 0: Hive shows deleted rows of the file again",
            "Hive refuses the whole table for a file of this name",
        ]
        assert good.name not in found.output
    (root(bad) / "delta_0000001_0000001_0000" / "bucket_00001").write_bytes(b"no ORC")
    broken = CliRunner().invoke(app, ["check", bad.name, *uri])
    assert broken.exit_code == 1
    assert f"{bad.name} can not be checked: NotOrc: the file does not end as ORC files do" in broken.output


@pytest.mark.slow
def test_more_tasks_than_row_ids_distinguish(spark: SparkSession, make_table: TableMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is lowered here; `test_five_thousand_tasks` has Hive's own."""
    monkeypatch.setattr(buckets, "MAX_BUCKETS", 3)
    table = make_table("id int, v string")
    rows = spark.range(0, 40, 1, 8).selectExpr("cast(id as int) id", "'' v")
    table.insert(rows)
    assert len(list(root(table).glob("delta_0000001_*/bucket_*"))) == 3
    assert table.update("true", {"v": "'u'"}) == 40
    merge = table.merge(rows.selectExpr("id + 20 id", "v"), "target.id = source.id").whenMatchedUpdateAll().whenNotMatchedInsertAll()
    assert merge.execute() == {"updated": 20, "deleted": 0, "inserted": 20}
    table.insert_overwrite(table.toDF())
    assert ids(table) == list(range(60))
    assert misplaced(root(table)) == {}
    plain = make_table("id int, v string", suffix="_p", insert_only=True)
    plain.insert(rows)
    assert len(list(root(plain).glob("delta_*/*_0"))) == 8
    assert plain.toDF().count() == 40
    plain.close()


def test_a_table_of_more_buckets_than_row_ids_distinguish(spark: SparkSession, client: Client, make_table: TableMaker) -> None:
    table = make_table("id int", buckets=5000, bucketed_by=("id",))
    with pytest.raises(buckets.TooManyBuckets, match="has 5000 buckets, and row ids can number only 4096"):
        table.insert(spark.sql("select cast(raise_error('computed') as int) id"))  # no task computes this value
    assert list(root(table).iterdir()) == []
    if HAS_FORMAT:
        rows = spark.sql("select 1 id").write.format("hive_acid").option("table", table.name).mode("append")
        with pytest.raises(Exception, match="TooManyBuckets"):
            rows.save()
        assert list(root(table).iterdir()) == []


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_five_thousand_tasks(spark: SparkSession, make_table: TableMaker) -> None:
    table = make_table("id int")
    rows = spark.range(0, 5_000, 1, 5_000).selectExpr("cast(id as int) id")
    table.insert(rows)
    assert len(list(root(table).glob("delta_0000001_*/bucket_*"))) == buckets.MAX_BUCKETS
    assert misplaced(root(table)) == {}


@pytest.mark.skipif(not HAS_FORMAT, reason="Python data sources came with Spark 4")
def test_the_format_refuses_a_task_that_row_ids_do_not_distinguish(spark: SparkSession, make_table: TableMaker, tmp_path: Path) -> None:
    """The task is refused before it has read a row. An append into a table without buckets may have sixteen times as many tasks."""
    from pyspark import TaskContext

    from metastore.spark.data_source_writing import CanNotPlace, WriteRequest, _task_number, give_up

    made = [
        make_table("id int", suffix="_a"),
        make_table("id int", suffix="_b", buckets=2, bucketed_by=("id",)),
        make_table("id int", suffix="_c", insert_only=True),
    ]
    schema = spark.sql("select 1 id").schema
    context = TaskContext._getOrCreate()
    try:
        for table, overwrite, most in ((made[0], False, 65_536), (made[0], True, 4096), (made[1], False, 4096), (made[2], True, None)):
            transaction = Work(spark, table._uri)
            with transaction.txn:
                info = transaction.load(*table.name.split("."))
            plan = WriteRequest.of(table._uri, info, schema, "UTC", {}, overwrite=overwrite).begin()
            context._partitionId = 100_000 if most is None else most - 1
            assert _task_number(plan) == context._partitionId
            if most is not None:
                context._partitionId = most
                with pytest.raises(
                    CanNotPlace, match=f"more than {most} tasks would give the same ids to different rows; .* coalesce.{most}."
                ):
                    _task_number(plan)
            give_up(plan)
    finally:
        TaskContext._taskContext = None


@pytest.mark.skipif(not HAS_FORMAT, reason="Python data sources came with Spark 4")
def test_tasks_of_the_format_that_write_the_same_bucket(spark: SparkSession, make_table: TableMaker) -> None:
    """From the 4,097th task on, bucket numbers repeat, with statement numbers that no other task has."""
    from metastore.spark.data_source_files import TaskFiles
    from metastore.spark.data_source_plan import FILES_OF_A_TASK
    from metastore.spark.data_source_writing import WriteRequest, finish

    table = make_table("id int")
    transaction = Work(spark, table._uri)
    with transaction.txn:
        info = transaction.load(*table.name.split("."))
    plan = WriteRequest.of(table._uri, info, spark.sql("select 1 id").schema, "UTC", {}, overwrite=False).begin()
    staged = []
    for number, task in enumerate((7, 4096 + 7, 15 * 4096 + 7)):
        files = TaskFiles(plan, ["id"], task)
        files.append(pa.record_batch({"id": pa.array([number * 2, number * 2 + 1], pa.int32())}))
        staged += files.close()
    assert [(file.name, file.statement) for file in staged] == [("bucket_00007", group * FILES_OF_A_TASK) for group in (0, 1, 15)]
    finish(plan, staged)
    assert misplaced(root(table)) == {}
    assert table.toDF(row_id=True).select("row__id").distinct().count() == 6
    table.close()
    assert table.delete("id in (1, 2, 5)") == 3
    assert ids(table) == [0, 3, 4]


@pytest.mark.skipif(not HAS_FORMAT, reason="Python data sources came with Spark 4")
def test_a_task_of_the_format_keeps_its_last_files_open(
    spark: SparkSession, make_table: TableMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With many partitions a task ends files and begins others, until its statement numbers are used up."""
    from metastore.spark import data_source_files
    from metastore.spark.data_source_writing import WriteRequest, finish

    monkeypatch.setattr(data_source_files, "MAX_OPEN_FILES", 1)
    monkeypatch.setattr(data_source_files, "FILES_OF_A_TASK", 2)
    table = make_table("id int", "k int")
    transaction = Work(spark, table._uri)
    with transaction.txn:
        info = transaction.load(*table.name.split("."))
    plan = WriteRequest.of(table._uri, info, spark.sql("select 1 id, 1 k").schema, "UTC", {}, overwrite=False).begin()
    files = data_source_files.TaskFiles(plan, ["id", "k"], 0)
    for number in range(12):
        files.append(pa.record_batch({"id": pa.array([number], pa.int32()), "k": pa.array([number % 3], pa.int32())}))
    staged = files.close()
    assert sorted((file.partition, file.statement) for file in staged) == [(f"k={key}", again) for key in range(3) for again in range(2)]
    finish(plan, staged)
    assert ids(table) == list(range(12))
    assert table.toDF(row_id=True).select("row__id", "k").distinct().count() == 12
    table.close()
