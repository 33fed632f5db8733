"""The standby of a PostgreSQL server takes over while clients write: acknowledged changes are there, and no server is started again."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from metastore.client import connect
from metastore.idl import Database, FieldSchema, MetaException, Partition, SerDeInfo, StorageDescriptor, Table
from tests.support.databases.replicas import pair
from tests.support.servers.servers import serving

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
WRITERS = 4


def storage(location: str | None = None) -> StorageDescriptor:
    return StorageDescriptor(cols=[FieldSchema("a", "int")], location=location, serdeInfo=SerDeInfo(parameters={}))


class Writer(threading.Thread):
    """Adds one partition after the other to a table of its own, and notes the acknowledged ones and the errors."""

    def __init__(self, uri: str, number: int, ended: threading.Event) -> None:
        super().__init__()
        self._uri, self.table, self._ended = uri, f"t{number}", ended
        self.added: list[str] = []
        self.failed: list[str] = []
        self.after_fail_over = threading.Event()
        self.fail_over_at = float("inf")

    def run(self) -> None:
        value = 0
        with connect(self._uri, timeout=120) as client:
            while not self._ended.is_set():
                value += 1
                new = Partition(dbName="d", tableName=self.table, values=[str(value)], sd=storage(), parameters={})
                began = time.monotonic()
                try:
                    client.add_partition(new)
                except MetaException as error:
                    self.failed.append(error.message)
                    continue
                self.added.append(f"k={value}")
                if began > self.fail_over_at:
                    self.after_fail_over.set()


def test_a_standby_takes_over_under_load_and_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    with ExitStack() as stack:
        servers = stack.enter_context(pair())
        options = ("--db", servers.url.render_as_string(), "--warehouse", str(tmp_path / "warehouse"), "--workers", "2")
        server = stack.enter_context(serving(*options, home=tmp_path))
        with connect(server.uri) as client:
            client.create_database(Database(name="d"))
            for number in range(WRITERS):
                keys = [FieldSchema("k", "int")]
                client.create_table(Table(dbName="d", tableName=f"t{number}", sd=storage(), partitionKeys=keys, parameters={}))
        ended = threading.Event()
        writers = [Writer(server.uri, number, ended) for number in range(WRITERS)]
        for writer in writers:
            writer.start()
        try:
            time.sleep(5)
            servers.fail_over()
            now = time.monotonic()
            for writer in writers:
                writer.fail_over_at = now
            assert all(writer.after_fail_over.wait(120) for writer in writers), [writer.failed[-1:] for writer in writers]
        finally:
            ended.set()
            for writer in writers:
                writer.join()
        with connect(server.uri) as client:
            for writer in writers:
                there = set(client.get_partition_names("d", writer.table, -1))
                assert len(writer.added) > 20
                assert set(writer.added) <= there
                assert all("look whether the change was made" in text for text in writer.failed), writer.failed
                assert len(there) <= len(writer.added) + len(writer.failed)
        assert server.process.poll() is None
