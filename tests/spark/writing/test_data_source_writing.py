"""The format `hive_acid` writes each DataFrame and each batch of a stream in one transaction, even when tasks fail and repeat."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyspark
import pytest
from pyspark import TaskContext
from pyspark.serializers import CloudPickleSerializer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # the name that everyone gives it

from metastore.acid.transactions import TransactionLost
from metastore.client import Client
from metastore.idl import TxnState
from metastore.spark import AcidTable
from metastore.spark.compaction.compactor import Compactor
from metastore.spark.session.catalog import AcidTableInfo
from metastore.spark.streaming_sink import committed
from tests.spark.writing.test_streaming_sink import feed, ids
from tests.support.acid.acid_tables import TableMaker
from tests.support.servers.servers import ROOT, Server

pytestmark = pytest.mark.skipif(int(pyspark.__version__.split(".")[0]) < 4, reason="Python data sources came with Spark 4")
ALL_TYPES = (
    "id int, a tinyint, b smallint, c bigint, d float, e double, f boolean, g decimal(20,4), h date, i timestamp, j binary, "
    "k string, l array<int>, m map<string,int>, n struct<x:int,y:array<string>>, o array<timestamp>"
)
VALUES = """
    select cast(id as int) id, cast(id % 100 as tinyint) a, cast(-id as smallint) b, id * 1000000007 c, cast(id / 8 as float) d, id / 3 e,
    id % 2 = 0 f, cast(id as decimal(20,4)) / 10000 g, date_add(date'1581-01-01', cast(id * 300 as int)) h,
    timestamp_micros(id * 12345678901 - 99999999999999) i, cast(concat('b', id) as binary) j, if(id % 7 = 0, null, concat('Zürich ', id)) k,
    array(cast(id as int), null) l, map('a', cast(id as int)) m, named_struct('x', cast(id as int), 'y', array('q', null)) n,
    array(timestamp_micros(id * 1000001)) o from range(0, 900, 1, 3)
"""


@pytest.fixture(scope="module", autouse=True)
def registered(spark: SparkSession) -> None:
    from metastore.spark.data_source import register

    register(spark)


def save(rows: DataFrame, table: AcidTable, mode: str = "append", **options: str) -> None:
    rows.write.format("hive_acid").option("table", table.name).options(**options).mode(mode).save()


def root(table: AcidTable) -> Path:
    return Path(table.detail().first().location.removeprefix("file:"))


def directories(table: AcidTable) -> list[str]:
    return sorted(path.name for path in root(table).iterdir())


def read(table: AcidTable) -> list[tuple[object, ...]]:
    found = sorted((tuple(row) for row in table.toDF().collect()), key=repr)
    table.close()
    return found


def open_transactions(client: Client) -> int:
    found = client.get_open_txns_info().open_txns or []
    return len([each for each in found if each.agentInfo.startswith("hive_acid") and each.state == TxnState.OPEN])


def test_rows_of_every_type_read_back(spark: SparkSession, client: Client, make_table: TableMaker) -> None:
    table = make_table(ALL_TYPES)
    rows = spark.sql(VALUES)
    save(rows, table)
    want = sorted(map(tuple, rows.collect()), key=repr)
    assert read(table) == want
    assert directories(table) == ["delta_0000001_0000001_0000"]
    ids_of_rows = table.toDF(row_id=True).select("row__id").distinct().count()
    assert ids_of_rows == 900
    table.close()
    table.update("id % 10 = 0", {"k": "'touched'"})
    table.delete("id % 10 = 1")
    save(rows.where("id < 30").coalesce(1), table, "overwrite")
    assert read(table) == sorted((row for row in want if row[0] < 30), key=repr)
    save(rows.where("id < 0"), table, "overwrite")
    assert read(table) == []
    assert open_transactions(client) == 0


def test_columns_go_by_name_and_must_be_there(spark: SparkSession, make_table: TableMaker) -> None:
    table = make_table("id int, name string", "day date")
    save(spark.sql("select date'2024-02-29' DAY, '7' id"), table)
    assert [tuple(map(str, row)) for row in read(table)] == [("7", "None", "2024-02-29")]
    for bad, reason in (
        ("select 1 id", "partitioned by day"),
        ("select 1 id, 2 other, date'2024-01-01' day", "no column other"),
        ("select 'x' id, date'2024-01-01' day", "x"),
    ):
        with pytest.raises(Exception, match=reason):
            save(spark.sql(bad), table)
    assert len(read(table)) == 1


@pytest.mark.parametrize(
    ("buckets", "insert_only"),
    [(0, ""), *(pytest.param(*each, marks=pytest.mark.slow) for each in ((0, "orc"), (0, "parquet"), (3, ""), (3, "orc"), (3, "parquet")))],
)
def test_partitions_and_buckets(spark: SparkSession, make_table: TableMaker, buckets: int, insert_only: str) -> None:
    table = make_table(
        "id int, v string",
        "k string",
        buckets=buckets,
        bucketed_by=("id",) if buckets else (),
        insert_only=bool(insert_only),
        file_format=insert_only or "orc",
    )
    rows = spark.range(0, 600, 1, 2).selectExpr(
        "cast(id as int) id", "concat('v', id) v", "case id % 10 when 7 then null when 8 then 'a/b c' else concat('k', id % 10) end k"
    )
    save(rows, table)
    want = sorted(map(tuple, rows.collect()), key=repr)
    assert read(table) == want
    save(rows.where("k = 'k1'").withColumn("id", rows.id + 1000).coalesce(1), table, "overwrite")
    want = sorted([row if row[2] != "k1" else (row[0] + 1000, *row[1:]) for row in want], key=repr)
    assert read(table) == want
    if not insert_only:
        assert table.update("id >= 1000", {"v": "'new'"}) == 60
        assert table.toDF(row_id=True).select("row__id", "k").distinct().count() == 600
        table.close()
    table.compact("major", "k=k1")
    outcome = Compactor(spark, table._uri).run_once()
    assert outcome is not None
    assert outcome.state == "compacted", outcome
    assert len(read(table)) == 600


def test_buckets_are_hives(spark: SparkSession, make_table: TableMaker) -> None:
    ours, theirs = (make_table("id int, v string", buckets=4, bucketed_by=("v",), suffix=suffix) for suffix in ("_a", "_b"))
    rows = spark.range(0, 400, 1, 2).selectExpr("cast(id as int) id", "concat('v', id) v")
    save(rows, ours)
    theirs.insert(rows)
    bucket = "id", "shiftright(row__id.bucketid, 16) & 4095 bucket"
    assert sorted(ours.toDF(row_id=True).selectExpr(*bucket).collect()) == sorted(theirs.toDF(row_id=True).selectExpr(*bucket).collect())
    ours.close()  # or the overwrite waits for the reader's lease
    with pytest.raises(Exception, match="several tasks wrote rows of one bucket"):
        save(rows, ours, "overwrite")
    assert sorted(name for name in directories(ours) if name.startswith(("base", ".stag"))) == []
    assert len(read(ours)) == 400


@pytest.mark.slow
def test_many_partitions_of_one_task(spark: SparkSession, make_table: TableMaker) -> None:
    """A task with rows of many partitions ends files when memory is short, and begins further ones."""
    table = make_table("id int", "k int")
    rows = spark.range(0, 400, 1, 1).selectExpr("cast(id as int) id", "cast(id % 100 as int) k")
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "100")
    try:
        save(rows, table)
    finally:
        spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
    assert read(table) == sorted(map(tuple, rows.collect()), key=repr)
    again = [path for path in root(table).glob("k=*/delta_*") if not path.name.endswith("_0000")]
    assert again
    assert table.toDF(row_id=True).select("row__id", "k").distinct().count() == 400
    table.close()


def test_a_committed_write_succeeds_in_spite_of_leavings(
    spark: SparkSession, client: Client, make_table: TableMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error after the commit is not raised: Spark, or its user, would write the rows once more."""
    from metastore.spark import data_source_writing  # which Spark 3.5 can not import

    table = make_table("id int")
    info = AcidTableInfo.load(client, *table.name.split("."))
    schema = spark.range(1).selectExpr("cast(id as int) id").schema
    plan = data_source_writing.WriteRequest.of(table._uri, info, schema, "UTC", {}, overwrite=True).begin()

    def refuse(*_arguments: object) -> None:
        raise PermissionError("the storage lists nothing")

    monkeypatch.setattr(data_source_writing, "_remove_staged", refuse)
    data_source_writing.finish(plan, [])
    assert directories(table) == ["base_0000001"]
    assert read(table) == []


def holds(condition: Callable[[], bool]) -> bool:
    """Wait until a condition holds, a minute at most; return whether it does."""
    end = time.monotonic() + 60
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


def test_a_task_that_fails_leaves_nothing(spark: SparkSession, client: Client, make_table: TableMaker, tmp_path: Path) -> None:
    table = make_table("id int")
    save(spark.sql("select 1 id"), table)

    def failing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        context = TaskContext.get()
        assert context is not None
        (tmp_path / f"{context.partitionId()}").touch()
        if context.partitionId() == 1:
            assert holds(lambda: len(list(tmp_path.iterdir())) == 3)
            raise ValueError("this task fails on purpose")

    rows = spark.range(0, 100, 1, 3).selectExpr("cast(id as int) id").mapInArrow(failing, "id int")
    for mode in ("append", "overwrite"):
        with pytest.raises(Exception, match="on purpose"):
            save(rows, table, mode)
        assert read(table) == [(1,)]
        assert holds(lambda: directories(table) == ["delta_0000001_0000001_0000"])
        for marker in tmp_path.iterdir():
            marker.unlink()
    assert open_transactions(client) == 0


def stream(spark: SparkSession, table: AcidTable, source: Path, checkpoint: Path, mode: str = "append") -> None:
    rows = spark.readStream.schema("id int, name string").option("maxFilesPerTrigger", 1).json(str(source))
    writer = rows.groupBy("name").agg(F.max("id").alias("id")) if mode == "complete" else rows
    query = (
        writer.writeStream.format("hive_acid")
        .option("table", table.name)
        .option("checkpointLocation", str(checkpoint))
        .outputMode(mode)
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(250)
    assert query.exception() is None


def test_a_batch_that_spark_repeats_is_written_once(spark: SparkSession, client: Client, make_table: TableMaker, tmp_path: Path) -> None:
    table = make_table("id int, name string")
    source, checkpoint = tmp_path / "source", tmp_path / "checkpoint"
    feed(source, 0, 1)
    stream(spark, table, source, checkpoint)
    assert ids(table) == list(range(20))
    assert list(committed(AcidTableInfo.load(client, *table.name.split("."))).values()) == [1]
    (checkpoint / "commits" / "1").unlink()
    (checkpoint / "commits" / ".1.crc").unlink(missing_ok=True)
    feed(source, 2)
    stream(spark, table, source, checkpoint)
    assert ids(table) == list(range(30))
    assert list(committed(AcidTableInfo.load(client, *table.name.split("."))).values()) == [2]
    assert not [name for name in directories(table) if name.startswith(".")]
    assert open_transactions(client) == 0


def test_a_stream_in_complete_mode_overwrites(spark: SparkSession, make_table: TableMaker, tmp_path: Path) -> None:
    table = make_table("id int, name string")
    feed(tmp_path / "source", 0, 1)
    stream(spark, table, tmp_path / "source", tmp_path / "checkpoint", "complete")
    assert read(table) == [(19, "n1"), (9, "n0")]


@pytest.mark.parametrize("overwrite", [False, True], ids=["append", "complete"])
def test_a_batch_without_any_task_is_committed(
    spark: SparkSession, server: Server, client: Client, make_table: TableMaker, tmp_path: Path, overwrite: bool
) -> None:
    from metastore.spark.data_source import HiveAcidDataSource  # which Spark 3.5 can not import

    table = make_table("id int, name string")
    rows = spark.createDataFrame([(1, "a")], "id int, name string")
    table.insert(rows)
    checkpoint = tmp_path / "checkpoint"
    checkpoint.mkdir()
    (checkpoint / "metadata").write_text('{"id":"c0ffee00-0000-4000-8000-000000000000"}')
    options = {"table": table.name, "uri": server.uri, "checkpointlocation": str(checkpoint)}  # as Spark gives them
    source = HiveAcidDataSource(options)  # type: ignore[arg-type]
    writer = source.streamWriter(rows.schema, overwrite)
    CloudPickleSerializer().dumps(writer)  # as Spark does for its tasks: the transaction begins
    assert open_transactions(client) == 1
    source.streamWriter(rows.schema, overwrite).commit([], 0)  # type: ignore[attr-defined]
    assert open_transactions(client) == 0
    assert read(table) == ([] if overwrite else [(1, "a")])
    assert list(committed(AcidTableInfo.load(client, *table.name.split("."))).values()) == [0]
    with pytest.raises(TransactionLost, match="no longer open"):
        source.streamWriter(rows.schema, overwrite).commit([], 1)  # type: ignore[attr-defined]


def test_a_stream_without_a_checkpoint_of_its_own_is_refused(spark: SparkSession, make_table: TableMaker, tmp_path: Path) -> None:
    table = make_table("id int, name string")
    feed(tmp_path / "source", 0)
    spark.conf.set("spark.sql.streaming.checkpointLocation", str(tmp_path / "all"))
    try:
        rows = spark.readStream.schema("id int, name string").json(str(tmp_path / "source"))
        writer = rows.writeStream.format("hive_acid").option("table", table.name).trigger(availableNow=True).queryName("q")
        with pytest.raises(Exception, match="checkpointLocation"):
            writer.start().awaitTermination(250)
    finally:
        spark.conf.unset("spark.sql.streaming.checkpointLocation")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_stream_that_is_killed_writes_every_row_once(server: Server, client: Client, make_table: TableMaker, tmp_path: Path) -> None:
    table = make_table("id int, name string")
    source = tmp_path / "source"
    feed(source, 0, 1, 2, 3)
    for when, number, rows in (("after", "1", 20), ("before", "2", 20), ("never", "-", 40)):
        arguments = (server.uri, table.name, str(source), str(tmp_path / "checkpoint"), when, number)
        with subprocess.Popen(
            [sys.executable, "-m", "tests.spark.programs.deadly", *arguments],
            cwd=ROOT,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(ROOT)},
        ) as process:
            _, errors = process.communicate(timeout=250)
        assert (process.returncode == 0) == (when == "never"), errors[-3000:]
        assert ids(table) == list(range(rows)), errors[-3000:]
    assert list(committed(AcidTableInfo.load(client, *table.name.split("."))).values()) == [3]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_task_that_is_repeated_doubles_no_row(server: Server, make_table: TableMaker, tmp_path: Path) -> None:
    """Tasks of a session that retries them fail once, some after all of their rows were taken."""
    table = make_table("id int")
    with subprocess.Popen(
        [sys.executable, "-m", "tests.spark.programs.retried", server.uri, table.name, str(tmp_path)],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
    ) as process:
        _, errors = process.communicate(timeout=250)
    assert process.returncode == 0, errors[-3000:]
    assert len(list(tmp_path.iterdir())) == 6
    assert ids(table) == list(range(600))
    assert not [name for name in directories(table) if name.startswith(".")]
