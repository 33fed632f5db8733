"""Files of a commit or compaction are on the disk before the server is notified. If a disk refuses, the work fails and leaves nothing."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyspark
import pytest
from pyspark.sql import DataFrame, SparkSession

from metastore.acid.files import FileError
from metastore.client import Client
from metastore.spark import AcidTable, transaction
from metastore.spark.compaction.compactor import Compactor
from metastore.spark.migration import to_plain
from tests.support.acid.acid_tables import TableMaker
from tests.support.databases.disk import DISK_ERRORS, Called, Disk, tapped
from tests.support.servers.servers import Server

HAS_FORMAT = int(pyspark.__version__.split(".")[0]) >= 4
"""Whether there is `hive_acid`: Python data sources came with Spark 4."""


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


@pytest.fixture
def uri(server: Server, disk: Disk) -> Iterator[str]:
    with tapped(server.uri, disk) as found:
        yield found


def root(table: AcidTable) -> Path:
    return Path(table.detail().first().location.removeprefix("file:"))


def directories(table: AcidTable) -> set[Path]:
    """Return the bases and deltas."""
    return {path for path in root(table).rglob("*delta_*") if path.is_dir()} | set(root(table).rglob("base_*"))


def ids(table: AcidTable) -> list[int]:
    found = sorted(row.id for row in table.toDF().collect())
    table.close()
    return found


def rows(spark: SparkSession, begin: int, keys: str) -> DataFrame:
    return spark.range(begin, begin + 4).selectExpr("cast(id as int) id", "'v' v", *(["concat('p', id % 2) p"] if keys else []))


Change = Callable[[AcidTable, SparkSession, str], object]
CHANGES: dict[str, Change] = {
    "insert": lambda table, spark, keys: table.insert(rows(spark, 10, keys)),
    "delete": lambda table, spark, keys: table.delete("id < 2"),
    "update": lambda table, spark, keys: table.update("id < 2", {"v": "'new'"}),
    "merge": lambda table, spark, keys: (
        table.merge(rows(spark, 2, keys), "target.id = source.id").whenMatchedUpdate(set={"v": "'m'"}).whenNotMatchedInsertAll().execute()
    ),
    "overwrite": lambda table, spark, keys: table.insert_overwrite(rows(spark, 10, keys)),
    "empty": lambda table, spark, keys: table.insert_overwrite(rows(spark, 10, keys).where("false")),
}


@pytest.mark.parametrize(
    ("change", "keys"),
    [
        ("merge", "p string"),
        *(
            pytest.param(*each, marks=pytest.mark.slow)
            for each in (
                ("update", ""),
                ("insert", ""),
                ("delete", ""),
                ("merge", ""),
                ("overwrite", ""),
                ("overwrite", "p string"),
                ("empty", ""),
            )
        ),
    ],
)
def test_each_change_is_on_the_disk(spark: SparkSession, make_table: TableMaker, disk: Disk, uri: str, change: str, keys: str) -> None:
    table = AcidTable.forName(spark, make_table("id int, v string", keys).name, uri)
    table.insert(rows(spark, 0, keys))
    known = directories(table)
    CHANGES[change](table, spark, keys)
    new = directories(table) - known
    assert new
    for directory in new:
        disk.assert_placed(directory, root(table), "commit_txn")


@pytest.mark.parametrize("file_format", ["orc", pytest.param("text", marks=pytest.mark.slow)])
def test_insert_only_tables(spark: SparkSession, make_table: TableMaker, disk: Disk, uri: str, file_format: str) -> None:
    table = AcidTable.forName(spark, make_table("id int, v string", insert_only=True, file_format=file_format).name, uri)
    for _ in range(2):
        table.insert(rows(spark, 0, ""))
    for directory in directories(table):
        disk.assert_placed(directory, root(table), "commit_txn")
    known = directories(table)
    compact(table, "major")
    (base,) = directories(table) - known
    disk.assert_placed(base, root(table), "mark_compacted")


def compact(table: AcidTable, kind: str, partition: str | None = None) -> tuple[str, str]:
    table.close()
    table.compact(kind, partition)
    outcome = Compactor(table._spark, table._uri).run_once()
    assert outcome is not None
    return outcome.state, outcome.detail


@pytest.mark.parametrize(
    ("kind", "keys", "by_spark"),
    [
        ("major", "", True),
        *(
            pytest.param(*each, marks=pytest.mark.slow)
            for each in (("minor", "p string", False), ("minor", "", True), ("major", "p string", False))
        ),
    ],
)
def test_compactions(spark: SparkSession, make_table: TableMaker, disk: Disk, uri: str, kind: str, keys: str, *, by_spark: bool) -> None:
    """A time that Python does not copy leaves the bucket to Spark's own writer."""
    moment = "timestamp'9999-12-31 00:00:00'" if by_spark else "timestamp'2024-01-01 00:00:00'"
    table = AcidTable.forName(spark, make_table("id int, v string, t timestamp", keys).name, uri)
    for begin in (0, 4):
        table.insert(rows(spark, begin, keys).withColumn("t", pyspark.sql.functions.expr(moment)))
    table.delete("id = 1")
    known = directories(table)
    disk.seen.clear()
    disk.refuses = lambda path: DISK_ERRORS[0] if "_v0" in path else None
    state, detail = compact(table, kind, "p=p1" if keys else None)
    assert (state, f"can not be written through to the disk: {os.strerror(DISK_ERRORS[0])}" in detail) == ("failed", True), detail
    assert Called("mark_compacted") not in disk.seen
    assert directories(table) == known
    assert not list(root(table).glob(".staging*"))
    disk.refuses = lambda _: None
    assert ids(table) == [0, 2, 3, 4, 5, 6, 7]
    state, detail = compact(table, kind, "p=p1" if keys else None)
    assert state == "compacted", detail
    new = [path for path in directories(table) - known if "_v" in path.name]
    assert len(new) == (2 if kind == "minor" else 1)
    for directory in new:
        disk.assert_placed(directory, root(table), "mark_compacted")
        disk.assert_placed(directory, root(table), "commit_txn")
    assert ids(table) == [0, 2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize(
    ("number", "change", "keys"),
    [
        (DISK_ERRORS[1], "update", "p string"),
        *(
            pytest.param(*each, marks=pytest.mark.slow)
            for each in ((DISK_ERRORS[0], "insert", ""), (DISK_ERRORS[1], "insert", "p string"), (DISK_ERRORS[0], "overwrite", ""))
        ),
    ],
)
def test_a_disk_that_refuses_fails_the_change(
    spark: SparkSession, make_table: TableMaker, disk: Disk, uri: str, number: int, change: str, keys: str
) -> None:
    table = AcidTable.forName(spark, make_table("id int, v string", keys).name, uri)
    table.insert(rows(spark, 0, keys))
    known = directories(table)
    disk.seen.clear()
    disk.refuses = lambda path: number if "_0000002" in path else None
    with pytest.raises(FileError, match=f"can not be written through to the disk: {os.strerror(number)}"):
        CHANGES[change](table, spark, keys)
    assert Called("commit_txn") not in disk.seen
    disk.refuses = lambda _: None
    assert directories(table) == known
    assert not list(root(table).glob(".staging*"))
    assert ids(table) == [0, 1, 2, 3]


@pytest.mark.skipif(not HAS_FORMAT, reason="Python data sources came with Spark 4")
@pytest.mark.parametrize("insert_only", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_the_format(spark: SparkSession, make_table: TableMaker, disk: Disk, uri: str, *, insert_only: bool) -> None:
    """The format's files are on the disk before its commit. The test makes the calls that Spark makes in another process."""
    from metastore.acid.storage import CanNotWrite
    from metastore.spark.data_source_files import TaskFiles
    from metastore.spark.data_source_plan import Staged, WritePlan
    from metastore.spark.data_source_writing import WriteRequest, finish, give_up

    table = AcidTable.forName(spark, make_table("id int, v string", "p string", insert_only=insert_only).name, uri)

    def written(begin: int) -> tuple[WritePlan, list[Staged]]:
        with transaction(spark, uri) as txn:
            info = txn.load(*table.name.split("."))
        plan = WriteRequest.of(uri, info, rows(spark, 0, "p").schema, "UTC", {}, overwrite=False).begin()
        files = []
        for task in range(2):
            task_files = TaskFiles(plan, ["id", "v", "p"], task)
            numbers = [begin + task * 2, begin + task * 2 + 1]
            task_files.append(pa.record_batch({"id": pa.array(numbers, pa.int32()), "v": ["v", "v"], "p": ["p0", "p1"]}))
            files += task_files.close()
        return plan, files

    finish(*written(0))
    known = directories(table)
    assert len(known) == 2
    for directory in known:
        disk.assert_placed(directory, root(table), "commit_txn")
    plan, files = written(4)
    disk.seen.clear()
    disk.refuses = lambda path: DISK_ERRORS[1] if "_0000002" in path else None
    with pytest.raises(CanNotWrite, match=f"can not be written through to the disk: {os.strerror(DISK_ERRORS[1])}"):
        finish(plan, files)
    give_up(plan)  # as Spark does after a failure
    assert Called("commit_txn") not in disk.seen
    assert directories(table) == known
    assert not list(root(table).glob(".staging*"))
    assert ids(table) == [0, 1, 2, 3]


def test_rows_of_a_table_that_becomes_plain(spark: SparkSession, client: Client, make_table: TableMaker, disk: Disk, uri: str) -> None:
    """The plain table's files are on the disk before the transactional table is dropped with its files."""
    table = AcidTable.forName(spark, make_table("id int, v string", "p string").name, uri)
    table.insert(rows(spark, 0, "p"))
    table.close()
    place = root(table)
    disk.seen.clear()
    to_plain(spark, table.name, uri=uri)
    found = disk.before("drop_table")
    for file in [path for path in place.rglob("*") if path.is_file()]:  # each folder was renamed after the drop of the old table
        assert any(each.path.endswith(f"/{file.parent.name}/{file.name}") and each.size == file.stat().st_size for each in found), file
    assert sum(1 for each in found if {"p=p0", "p=p1"} <= each.names) > 0
