"""Hive 4's view of a table for clients that declare capabilities, compared with the answers of its server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from metastore.app import build, close
from metastore.client import Client, connect
from metastore.config import Config
from metastore.idl import GetPartitionsByNamesRequest, GetTableRequest, GetTablesRequest, Table
from metastore.service.catalog.catalogs import create_startup_objects
from metastore.store.core import migrate
from metastore.wire.connection.server import ServerThread
from metastore.wire.sockets.settings import WireSettings
from tests.support.catalog.catalog import add_partitions, call_of, make_table

EXTERNAL = {"EXTERNAL": "TRUE"}


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    """A client of a server with an external table in four buckets, and its partition."""
    metastore = build(
        Config(db=f"sqlite:///{tmp_path / 'm.db'}", warehouse=str(tmp_path / "warehouse"), data_directory=str(tmp_path / "data"))
    )
    migrate.upgrade(metastore.database)
    create_startup_objects(metastore)
    call = call_of(metastore)
    make_table(call, "plain", kind="EXTERNAL_TABLE", parameters=EXTERNAL)
    name = make_table(call, "t", keys=[("p", "string")], kind="EXTERNAL_TABLE", parameters=EXTERNAL)
    with ServerThread(WireSettings(port=0), metastore) as started, connect(started.uri, timeout=20) as connected:
        table = connected.get_table("default", "t")
        table.sd.bucketCols, table.sd.numBuckets = ["a"], 4
        connected.alter_table("default", "t", table)
        add_partitions(call, name, [["x"]])
        (partition,) = connected.get_partitions("default", "t", -1)
        partition.sd.bucketCols, partition.sd.numBuckets = ["a"], 4
        connected.alter_partition("default", "t", partition)
        yield connected
    close(metastore)


def seen(client: Client, name: str, capabilities: list[str] | None) -> Table:
    found: Table = client.get_table_req(GetTableRequest(dbName="default", tblName=name, processorCapabilities=capabilities)).table
    return found


def buckets_of_partition(client: Client, capabilities: list[str] | None) -> int:
    request = GetPartitionsByNamesRequest(db_name="default", tbl_name="t", names=["p=x"], processorCapabilities=capabilities)
    (found,) = client.get_partitions_by_names_req(request).partitions
    number: int = found.sd.numBuckets
    return number


@pytest.mark.parametrize("capabilities", [None, [], ["MANAGERAWMETADATA"], ["MANAGE_RAW_METADATA"]])
def test_clients_without_capabilities_or_for_raw_metadata_see_a_table_as_it_is_stored(
    client: Client, capabilities: list[str] | None
) -> None:
    table = seen(client, "plain", capabilities)
    assert (table.accessType, table.requiredReadCapabilities, table.requiredWriteCapabilities) == (None, None, None)
    assert seen(client, "t", capabilities).sd.numBuckets == 4
    assert buckets_of_partition(client, capabilities) == 4


def test_buckets_of_external_tables_are_hidden_from_who_does_not_know_their_hash(client: Client) -> None:
    table = seen(client, "t", ["EXTREAD", "EXTWRITE"])
    assert (table.accessType, table.requiredWriteCapabilities, table.sd.numBuckets, table.sd.bucketCols) == (2, ["HIVEBUCKET2"], -1, ["a"])
    request = GetTablesRequest(dbName="default", tblNames=["t"], processorCapabilities=["EXTREAD"])
    assert [each.sd.numBuckets for each in client.get_table_objects_by_name_req(request).tables] == [-1]
    assert buckets_of_partition(client, ["EXTREAD"]) == -1


def test_clients_with_the_hash_see_buckets(client: Client) -> None:
    table = seen(client, "t", ["HIVEBUCKET2"])
    assert (table.accessType, table.sd.numBuckets) == (8, 4)
    assert buckets_of_partition(client, ["HIVEBUCKET2"]) == 4


def test_a_client_of_unmodified_metadata_may_not_write_but_sees_buckets(client: Client) -> None:
    table = seen(client, "t", ["ACCEPTS_UNMODIFIED_METADATA", "EXTREAD", "EXTWRITE"])
    assert (table.accessType, table.requiredWriteCapabilities, table.sd.numBuckets) == (2, ["HIVEBUCKET2"], 4)


def test_hiding_buckets_leaves_the_stored_table(client: Client) -> None:
    seen(client, "t", ["EXTREAD"])
    buckets_of_partition(client, ["EXTREAD"])
    assert client.get_table("default", "t").sd.numBuckets == 4
    assert client.get_partition("default", "t", ["x"]).sd.numBuckets == 4
