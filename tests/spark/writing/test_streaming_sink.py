"""A query of Structured Streaming writes every row once, however often it is stopped, killed and started again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from metastore.client import Client
from metastore.spark import AcidTable
from metastore.spark.session.catalog import AcidTableInfo
from metastore.spark.streaming_sink import committed, insert_once, write_stream
from metastore.spark.transaction.spark_transaction import SparkTransaction
from metastore.spark.writing.batch_numbers import PARAMETER, add_parameter
from tests.support.acid.acid_tables import TableMaker, stored_table
from tests.support.servers.servers import ROOT, Server

COLUMNS = "id int, name string"


def feed(source: Path, *numbers: int) -> None:
    """Give the source a file of ten rows for each number."""
    source.mkdir(exist_ok=True)
    for number in numbers:
        lines = [f'{{"id": {10 * number + place}, "name": "n{number}"}}\n' for place in range(10)]
        (source / f"{number}.new").write_text("".join(lines))
        os.utime(source / f"{number}.new", (1_700_000_000 + number,) * 2)  # Spark takes the oldest file first
        (source / f"{number}.new").rename(source / f"{number}.json")


def run(spark: SparkSession, table: AcidTable, source: Path, checkpoint: Path) -> None:
    rows = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).json(str(source))
    query = write_stream(rows, table.name, str(checkpoint), trigger={"availableNow": True})
    assert query.awaitTermination(200)
    assert query.exception() is None


def ids(table: AcidTable) -> list[int]:
    found = sorted(row.id for row in table.toDF().collect())
    table.close()
    return found


def batches(client: Client, table: AcidTable) -> dict[str, int]:
    return committed(AcidTableInfo.load(client, *table.name.split(".")))


def test_a_query_does_not_wait_for_its_programs_own_readers(spark: SparkSession, make_table: TableMaker, tmp_path: Path) -> None:
    """The first batch changes the table's definition. This change waits for readers, but not for readers of its own program."""
    table = make_table(COLUMNS)
    frame = table.toDF(lease=3600)
    feed(tmp_path / "source", 0)
    run(spark, table, tmp_path / "source", tmp_path / "checkpoint")
    assert frame.columns == ["id", "name"]  # this use keeps the frame alive until here
    assert ids(table) == list(range(10))


def test_a_batch_that_spark_repeats_is_passed_over(spark: SparkSession, client: Client, make_table: TableMaker, tmp_path: Path) -> None:
    table = make_table(COLUMNS, parameters={"kept": "as it is"})
    source, checkpoint = tmp_path / "source", tmp_path / "checkpoint"
    feed(source, 0, 1)
    run(spark, table, source, checkpoint)
    assert ids(table) == list(range(20))
    ((query, newest),) = batches(client, table).items()
    assert newest == 1
    (checkpoint / "commits" / "1").unlink()
    (checkpoint / "commits" / ".1.crc").unlink(missing_ok=True)
    feed(source, 2)
    run(spark, table, source, checkpoint)
    assert ids(table) == list(range(30))
    assert batches(client, table) == {query: 2}
    assert stored_table(client, table.name.partition(".")[2]).parameters["kept"] == "as it is"


def test_a_new_checkpoint_is_a_new_query(spark: SparkSession, client: Client, make_table: TableMaker, tmp_path: Path) -> None:
    table = make_table(COLUMNS, "day string")
    source = tmp_path / "source"
    feed(source, 0)
    for name in ("first", "second"):
        rows = spark.readStream.schema(COLUMNS).json(str(source)).selectExpr("*", f"'{name}' AS day")
        assert write_stream(rows, table.name, str(tmp_path / name), trigger={"availableNow": True}).awaitTermination(200)
    assert ids(table) == sorted([*range(10), *range(10)])
    assert sorted(batches(client, table).values()) == [0, 0]
    parameters = stored_table(client, table.name.partition(".")[2]).parameters
    assert sum(name.startswith(PARAMETER) for name in parameters) == 2


def test_a_batch_that_fails_ends_the_query(spark: SparkSession, client: Client, make_table: TableMaker, tmp_path: Path) -> None:
    table = make_table("id int, other string")
    feed(tmp_path / "source", 0)
    rows = spark.readStream.schema(COLUMNS).json(str(tmp_path / "source"))
    query = write_stream(rows, table.name, str(tmp_path / "checkpoint"), trigger={"availableNow": True})
    with pytest.raises(Exception, match="has no column name"):
        query.awaitTermination(200)
    assert ids(table) == []
    assert list(batches(client, table).values()) == [-1]


@pytest.mark.slow
def test_a_query_that_is_killed_writes_every_row_once(server: Server, client: Client, make_table: TableMaker, tmp_path: Path) -> None:
    table = make_table(COLUMNS)
    source = tmp_path / "source"
    feed(source, 0, 1, 2, 3)
    for when, number, status, rows in (("after", "1", -signal.SIGKILL, 20), ("before", "2", -signal.SIGKILL, 20), ("never", "-", 0, 40)):
        arguments = (server.uri, table.name, str(source), str(tmp_path / "checkpoint"), when, number)
        with subprocess.Popen(
            [sys.executable, "-m", "tests.spark.programs.once_only", *arguments],
            cwd=ROOT,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        ) as process:
            _, errors = process.communicate(timeout=250)
        assert process.returncode == status, errors[-3000:]
        assert ids(table) == list(range(rows))
    assert list(batches(client, table).values()) == [3]


def test_two_runs_of_one_query_write_a_batch_once(spark: SparkSession, client: Client, server: Server, make_table: TableMaker) -> None:
    table = make_table(COLUMNS)
    rows = spark.createDataFrame([(1, "a")], COLUMNS)
    parameter = f"{PARAMETER}query"
    with SparkTransaction(spark, server.uri).txn as txn:
        add_parameter(txn, *table.name.split("."), parameter)  # type: ignore[call-arg]
    with ThreadPoolExecutor(3) as pool:
        wrote = list(pool.map(lambda _: insert_once(rows, 0, table.name, server.uri, parameter), range(3)))
    assert sorted(wrote) == [False, False, True]
    assert ids(table) == [1]
    assert not insert_once(rows, 0, table.name, server.uri, parameter)
    assert insert_once(rows, 1, table.name, server.uri, parameter)
    assert ids(table) == [1, 1]
