"""Spark reads exactly the committed rows of a stream while its files still grow, and changes rows of them."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from metastore.acid.files import FsspecFiles
from metastore.acid.folders.selecting import select
from metastore.acid.folders.table import Folder
from metastore.acid.transactions import TableSnapshot
from metastore.rules.transactions.acid_directories import EVERYTHING, SeenWriteIds
from metastore.spark import AcidTable
from metastore.spark.compaction.compactor import Compactor
from metastore.streaming import StreamingConnection
from tests.support.acid.acid_tables import TableMaker
from tests.support.servers.servers import Server


def ids(table: AcidTable) -> list[int]:
    found = sorted(row.id for row in table.toDF().collect())
    table.close()
    return found


@pytest.mark.parametrize(("keys", "buckets"), [("day string", 0), *(pytest.param("", count, marks=pytest.mark.slow) for count in (0, 3))])
def test_a_batch_is_read_while_it_grows(spark: SparkSession, server: Server, make_table: TableMaker, keys: str, buckets: int) -> None:
    table = make_table("id int, at timestamp", keys, buckets=buckets, bucketed_by=("id",) if buckets else ())

    def records(*numbers: int) -> list[dict[str, object]]:
        extra = {"day": "monday"} if keys else {}
        return [{"id": number, "at": datetime(2024, 7, number, 12), **extra} for number in numbers]  # noqa: DTZ001  # wall-clock time

    with StreamingConnection(server.uri, table.name) as connection, connection.batch(5) as batch:
        with batch.transaction():
            batch.write(records(1, 2, 3))
        batch.begin_next()
        batch.write(records(4, 5, 6))
        assert {row.id: row.at for row in table.toDF().collect()} == {n: datetime(2024, 7, n, 12) for n in (1, 2, 3)}  # noqa: DTZ001
        table.close()
        batch.abort()
        with batch.transaction():
            batch.write(records(7, 8))
        assert ids(table) == [1, 2, 3, 7, 8]
        batch.begin_next()
        batch.write(records(9))
        assert table.delete("id = 2") == 1
        assert table.update("id = 7", {"at": "timestamp'2020-01-01 00:00:00'"}) == 1
        assert ids(table) == [1, 3, 7, 8]
        batch.commit()
    wanted = {number: datetime(2024, 7, number, 12) for number in (1, 3, 8, 9)}  # noqa: DTZ001
    found = {row.id: row.at for row in table.toDF().collect()}
    table.close()
    assert {number: at for number, at in found.items() if number != 7} == wanted
    assert found[7].year in (2019, 2020)
    table.compact("major", "day=monday" if keys else None)
    outcome = Compactor(spark, server.uri).run_once()
    assert outcome is not None
    assert outcome.state == "compacted", outcome
    assert ids(table) == sorted(found)


class Closing(FsspecFiles):
    """Files of a stream that closes a bucket just before its length is read."""

    def read(self, path: str) -> bytes:
        Path(path).unlink()
        bucket = Path(path.removesuffix("_flush_length"))
        bucket.write_bytes(bucket.read_bytes() + b"footer")
        return super().read(path)


def test_a_file_that_is_closed_while_it_is_looked_at_is_whole(tmp_path: Path) -> None:
    delta = tmp_path / "delta_0000001_0000005"
    delta.mkdir()
    for number in range(3):
        (delta / f"bucket_0000{number}").write_bytes(b"rows")
    for number in (0, 2):
        (delta / f"bucket_0000{number}_flush_length").write_bytes((2).to_bytes(8, "big"))
    snapshot = TableSnapshot(SeenWriteIds(5), EVERYTHING)
    (before,) = select(FsspecFiles(), [Folder(str(tmp_path))], snapshot, insert_only=False)
    assert [(Path(path).name, length) for path, length in before.growing] == [("bucket_00000", 2), ("bucket_00002", 2)]
    (found,) = select(Closing(), [Folder(str(tmp_path))], snapshot, insert_only=False)
    assert [Path(path).name for path in found.inserts] == ["bucket_00000", "bucket_00001", "bucket_00002"]
    assert (found.growing, found.bytes) == ([], 2 * len(b"rowsfooter") + len(b"rows"))


class Unreadable(FsspecFiles):
    """Files that can not be read."""

    def read(self, path: str) -> bytes:
        raise FileNotFoundError(path)


def test_a_length_that_can_not_be_read_is_an_error(tmp_path: Path) -> None:
    delta = tmp_path / "delta_0000001_0000005"
    delta.mkdir()
    for name in ("bucket_00000", "bucket_00000_flush_length"):
        (delta / name).write_bytes(b"rows")
    with pytest.raises(FileNotFoundError, match="flush_length"):
        select(Unreadable(), [Folder(str(tmp_path))], TableSnapshot(SeenWriteIds(5), EVERYTHING), insert_only=False)
