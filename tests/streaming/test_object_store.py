"""A stream into an object store, which shows whole files only. The store is S3, served by moto over HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pytest
from pyarrow import orc

from metastore.client import connect
from metastore.streaming import StreamingConnection
from tests.streaming.conftest import TableMaker
from tests.support.servers.servers import Server, serving


@pytest.fixture(scope="module")
def store(s3_server: dict[str, Any]) -> dict[str, Any]:
    fsspec.filesystem("s3", **s3_server).mkdir("lake")
    return s3_server


@pytest.fixture(scope="module")
def server(store: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("s3")
    options = ("--set", f"filesystem_options={json.dumps({'s3': store})}")
    with serving("--db", f"sqlite:///{home}/m.db", "--warehouse", "s3a://lake/warehouse", *options, home=home) as started:
        yield started


def test_each_transaction_has_whole_files(
    server: Server, store: dict[str, Any], make_table: TableMaker, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", store["endpoint_url"])
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", store["key"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", store["secret"])
    table = make_table("id int", "day string", buckets=2, bucketed_by=["id"])
    assert table.sd.location.startswith("s3a://lake/")
    system = fsspec.filesystem("s3", **store)
    place = table.sd.location.removeprefix("s3a://")

    def files() -> dict[str, list[int]]:
        system.invalidate_cache()
        found = {}
        for path in system.find(place):
            if "/bucket_" in path:
                rows = orc.ORCFile(pa.BufferReader(system.cat_file(path))).read().to_pylist()
                found[path.removeprefix(place)] = sorted(row["row"]["id"] for row in rows)
        return found

    with StreamingConnection(server.uri, f"default.{table.tableName}") as connection, connection.batch(3) as batch:
        with batch.transaction():
            batch.write([{"id": number, "day": "monday"} for number in range(6)])
        first = files()
        assert {path.rpartition("/")[0] for path in first} == {"/day=monday/delta_0000001_0000001"}
        assert sorted(number for rows in first.values() for number in rows) == list(range(6))
        batch.begin_next()
        batch.write({"id": 7, "day": "tuesday"})
        batch.abort()
        assert files() == first
        with batch.transaction():
            batch.write({"id": 8, "day": "tuesday"})
    assert {**first, **files()} == files()
    assert [rows for path, rows in files().items() if "tuesday/delta_0000003_0000003" in path] == [[8]]
    assert not [path for path in system.find(place) if "flush_length" in path]
    with connect(server.uri) as client:
        assert sorted(client.get_partition_names("default", table.tableName, -1)) == ["day=monday", "day=tuesday"]
