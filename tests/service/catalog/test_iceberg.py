"""Snapshots of Iceberg tables, read from their metadata files."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

from metastore.errors import InvalidOperation, MetaError, NoSuchObject
from metastore.service.call.context import Call
from metastore.service.call.names import TableName
from metastore.service.catalog import iceberg
from metastore.service.catalog.tables.alter_table import alter_table
from metastore.service.catalog.tables.tables import drop_table, find_table
from tests.support.catalog.catalog import make_table

pytestmark = pytest.mark.on_one_database

METADATA: dict[str, Any] = {
    "format-version": 2,
    "current-snapshot-id": 9007199254740993,
    "refs": {"main": {"snapshot-id": 9007199254740993, "type": "branch"}, "v1": {"snapshot-id": 7, "type": "tag"}},
    "snapshots": [
        {"snapshot-id": 7, "timestamp-ms": 1000, "summary": {"operation": "append", "added-records": "5"}},
        {"snapshot-id": 9007199254740993, "parent-snapshot-id": 7, "timestamp-ms": 2000, "summary": {"operation": "delete"}},
    ],
}


def lake(call: Call, content: bytes, name: str = "v2.metadata.json", outside: str = "") -> TableName:
    """Make an Iceberg table, and a metadata file with a content."""
    made = make_table(call, "lake", kind="EXTERNAL_TABLE", parameters={"EXTERNAL": "TRUE", "table_type": "ICEBERG"})
    table = find_table(call, made)
    folder = Path(table.sd.location.removeprefix("file:")) / "metadata"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)
    table.parameters["metadata_location"] = outside or f"file:{folder / name}"
    alter_table(call, made, table, environment={})
    return made


def test_the_last_snapshot_comes_first(call: Call) -> None:
    found = iceberg.snapshots(call, lake(call, json.dumps(METADATA).encode()))
    assert found == [
        (9007199254740993, 7, 2000, "delete", {}, True, ["main"]),
        (7, None, 1000, "append", {"added-records": "5"}, False, ["v1"]),
    ]


def test_a_packed_file_is_read(call: Call) -> None:
    packed = gzip.compress(json.dumps(METADATA).encode())
    assert len(iceberg.snapshots(call, lake(call, packed, "v2.gz.metadata.json"))) == 2


def test_a_table_without_snapshots_has_none(call: Call) -> None:
    assert iceberg.snapshots(call, lake(call, b'{"format-version": 2, "current-snapshot-id": -1}')) == []


@pytest.mark.parametrize(
    ("content", "name", "text"),
    [
        (b"{", "a.metadata.json", "not JSON"),
        (b"[]", "a.metadata.json", "not metadata of an Iceberg table"),
        (b'{"snapshots": [{}]}', "a.metadata.json", "not metadata of an Iceberg table"),
        (b'{"snapshots": 1}', "a.metadata.json", "not metadata of an Iceberg table"),
        (b'{"refs": {"a": {}}}', "a.metadata.json", "not metadata of an Iceberg table"),
        (b"no gzip", "a.gz.metadata.json", "can not be unpacked"),
    ],
)
def test_a_file_that_is_not_metadata_is_reported(call: Call, content: bytes, name: str, text: str) -> None:
    with pytest.raises(MetaError, match=text):
        iceberg.snapshots(call, lake(call, content, name))


def test_a_file_that_is_too_large_is_not_read(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(iceberg, "LARGEST", 100)
    with pytest.raises(MetaError, match="larger than 100 bytes"):
        iceberg.snapshots(call, lake(call, json.dumps(METADATA).encode()))
    with pytest.raises(MetaError, match="larger than 100 bytes"):
        iceberg.snapshots(call, lake_again(call, gzip.compress(b" " * 100_000)))


def lake_again(call: Call, packed: bytes) -> TableName:
    drop_table(call, TableName("hive", "default", "lake"), delete_data=False)
    return lake(call, packed, "v3.gz.metadata.json")


def test_a_file_elsewhere_is_not_read(call: Call, tmp_path: Path) -> None:
    """Else a user who may change a table could read any JSON file that the server can read."""
    secret = tmp_path / "secret.json"
    secret.write_text(json.dumps(METADATA))
    with pytest.raises(InvalidOperation, match="outside of"):
        iceberg.snapshots(call, lake(call, b"{}", outside=f"file:{secret}"))


def test_a_path_that_climbs_out_is_not_read(call: Call, tmp_path: Path) -> None:
    secret = tmp_path / "secret.json"
    secret.write_text(json.dumps(METADATA))
    made = make_table(call, "other")
    own = find_table(call, made).sd.location
    way = os.path.relpath(secret, own.removeprefix("file:"))
    with pytest.raises((InvalidOperation, MetaError)):
        iceberg.snapshots(call, lake(call, b"{}", outside=f"{own.removesuffix('other')}lake/../other/{way}"))


def test_a_missing_file_or_table_is_reported(call: Call) -> None:
    made = lake(call, b"{}")
    place = Path(find_table(call, made).parameters["metadata_location"].removeprefix("file:"))
    place.unlink()
    with pytest.raises(MetaError, match="is not there"):
        iceberg.snapshots(call, made)
    with pytest.raises(InvalidOperation, match="not an Iceberg table"):
        iceberg.snapshots(call, make_table(call, "plain"))
    with pytest.raises(NoSuchObject):
        iceberg.snapshots(call, TableName("hive", "default", "nothing"))
