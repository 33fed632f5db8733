"""The rows of a stream's commit are on the disk before the server is notified. If a disk refuses them, the commit fails."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from metastore.acid import durable
from metastore.client import Client
from metastore.streaming import BatchEnded, CanNotWrite, StreamingConnection
from tests.streaming.conftest import TableMaker, folder
from tests.streaming.reading import rows
from tests.support.databases.disk import DISK_ERRORS, Disk, Synced, tapped
from tests.support.servers.servers import Server


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


@pytest.fixture
def uri(server: Server, disk: Disk) -> Iterator[str]:
    with tapped(server.uri, disk) as found:
        yield found


@pytest.mark.parametrize("keys", ["", "day string"])
def test_each_commit_is_on_the_disk(client: Client, make_table: TableMaker, disk: Disk, uri: str, keys: str) -> None:
    table = make_table("id int, v string", keys, buckets=2, bucketed_by=["id"])
    disk.refuses = _data_before_length
    with StreamingConnection(uri, f"default.{table.tableName}") as connection, connection.batch(3) as batch:
        for number in range(3):
            with batch.transaction():
                batch.write([{"id": number * 10 + row, "v": "x" * 1000, **({"day": "d"} if keys else {})} for row in range(6)])
            (delta,) = folder(table).rglob("delta_*")
            assert len(list(delta.glob("bucket_*_flush_length"))) == 2
            disk.assert_placed(delta, folder(table), "commit_txn")
        disk.seen.clear()
    for file in delta.glob("bucket_*"):
        assert [each.size for each in disk.seen if isinstance(each, Synced) and each.path == str(file)] == [file.stat().st_size]
    assert not list(delta.glob("*_flush_length"))
    assert len(rows(client, table, "day=d" if keys else "")) == 18


def _data_before_length(path: str) -> None:
    """Assert that the recorded length does not cover bytes that are being written through: a reader could stop in mid-file."""
    side = Path(f"{path}_flush_length")
    if side.exists():
        assert int.from_bytes(side.read_bytes()[-8:], "big") < Path(path).stat().st_size


@pytest.mark.parametrize("number", DISK_ERRORS)
@pytest.mark.parametrize("refused", ["bucket_00000", "bucket_00000_flush_length", "_orc_acid_version", "delta_0000002_0000003", ""])
def test_a_disk_that_refuses_fails_the_commit(
    client: Client, make_table: TableMaker, disk: Disk, uri: str, number: int, refused: str
) -> None:
    """`refused` is the name of the file or folder that can not be written through; "" is the table's own folder."""
    table = make_table("id int")
    wanted = refused or folder(table).name
    with StreamingConnection(uri, f"default.{table.tableName}") as connection:
        with connection.batch(1) as batch, batch.transaction():
            batch.write({"id": 1})
        disk.seen.clear()
        disk.refuses = lambda path: number if Path(path).name == wanted else None
        batch = connection.batch(2)
        with (
            pytest.raises(CanNotWrite, match=f"{wanted} can not be written through to the disk: .*{os.strerror(number)}"),
            batch.transaction(),
        ):
            batch.write({"id": 2})
        assert "commit_txn" not in [each.method for each in disk.seen if not isinstance(each, Synced)]
        with pytest.raises(BatchEnded, match="can not continue"):
            batch.begin_next()
        batch.close()
        assert [row["id"] for row in rows(client, table)] == [1]
        disk.refuses = lambda _: None
        with connection.batch(1) as batch, batch.transaction():
            batch.write({"id": 3})
    assert [row["id"] for row in rows(client, table)] == [1, 3]


def test_a_disk_that_refuses_the_end_of_a_file_leaves_the_committed_rows(
    client: Client, make_table: TableMaker, disk: Disk, uri: str
) -> None:
    """The file with the length up to which rows can be read stays."""
    table = make_table("id int")
    with StreamingConnection(uri, f"default.{table.tableName}") as connection:
        batch = connection.batch(2)
        with batch.transaction():
            batch.write({"id": 1})
        disk.refuses = lambda path: DISK_ERRORS[0] if path.endswith("bucket_00000") else None
        with pytest.raises(CanNotWrite, match="can not be written through"):
            batch.close()
    (side,) = folder(table).rglob("*_flush_length")
    assert int.from_bytes(side.read_bytes()[-8:], "big") < Path(str(side).removesuffix("_flush_length")).stat().st_size
    assert [row["id"] for row in rows(client, table)] == [1]


def test_a_file_system_that_does_not_know_this_of_directories(client: Client, make_table: TableMaker, disk: Disk, uri: str) -> None:
    """EINVAL for a directory is ignored, since some mounted file systems give it for all directories. For a file it is an error."""
    table = make_table("id int")
    with StreamingConnection(uri, f"default.{table.tableName}") as connection:
        disk.refuses = lambda path: errno.EINVAL if Path(path).is_dir() else None
        with connection.batch(1) as batch, batch.transaction():
            batch.write({"id": 1})
        disk.refuses = lambda path: errno.EINVAL if Path(path).is_file() else None
        batch = connection.batch(1)
        with pytest.raises(CanNotWrite, match="can not be written through"), batch.transaction():
            batch.write({"id": 2})
        batch.close()
    assert [row["id"] for row in rows(client, table)] == [1]


@pytest.mark.parametrize(
    ("directory", "top", "found"),
    [
        ("/w/t/p=1/q=2/delta_1_1", "/w/t", ["/w/t/p=1/q=2/delta_1_1", "/w/t/p=1/q=2", "/w/t/p=1", "/w/t"]),
        ("/w/t/delta_1_1", "/w/t", ["/w/t/delta_1_1", "/w/t"]),
        ("/elsewhere/p/delta_1_1", "/w/t", ["/elsewhere/p/delta_1_1", "/elsewhere/p"]),
        ("/w/t", "/w/t", ["/w/t", "/w"]),
    ],
)
def test_the_directories_above_one_in_its_table(directory: str, top: str, found: list[str]) -> None:
    assert durable.up_to(directory, top) == found


@pytest.mark.parametrize(("location", "path"), [("file:/a b/c", "/a b/c"), ("file:///a", "/a"), ("s3a://b/c", None), ("hdfs://h/c", None)])
def test_which_locations_are_the_machines_own(location: str, path: str | None) -> None:
    assert durable.local_path(location) == path
