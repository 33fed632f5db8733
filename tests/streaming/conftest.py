"""A real server and transactional tables to stream into."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from metastore.client import Client, connect
from metastore.idl import (
    ClientCapabilities,
    ClientCapability,
    CreateTableRequest,
    FieldSchema,
    GetTableRequest,
    SerDeInfo,
    StorageDescriptor,
    Table,
)
from tests.support.servers.servers import Server, serving

ORC = "org.apache.hadoop.hive.ql.io.orc.Orc"
CAPABILITIES = ["HIVEFULLACIDREAD", "HIVEFULLACIDWRITE", "HIVEMANAGEDINSERTWRITE", "HIVEBUCKET2", "EXTWRITE"]
TableMaker = Callable[..., Table]


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that gives up silent transactions soon and compacts nothing."""
    home = tmp_path_factory.mktemp("streaming")
    settings = ("hive.compactor.initiator.on=false", "hive.txn.timeout=3s", "metastore.acid.housekeeper.interval=1s")
    options = [part for setting in settings for part in ("--set", setting)]
    with serving("--db", f"sqlite:///{home}/m.db", "--warehouse", str(home / "warehouse"), *options, home=home) as started:
        yield started


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    with connect(server.uri) as connected:
        yield connected


@pytest.fixture
def make_table(client: Client, request: pytest.FixtureRequest) -> TableMaker:
    """Make a transactional table, `columns` and `keys` as in `a int, b string`."""

    def make(columns: str, keys: str = "", *, suffix: str = "", location: str | None = None, **changes: Any) -> Table:
        name = "".join(letter if letter.isalnum() else "_" for letter in request.node.name).lower() + suffix
        usual = {"transactional": "true", "transactional_properties": "default", "bucketing_version": "2"}
        parameters = {**usual, **changes.pop("parameters", {})}
        table = Table(
            dbName="default",
            tableName=name,
            owner="tests",
            tableType="MANAGED_TABLE",
            partitionKeys=_fields(keys),
            parameters=parameters,
            sd=StorageDescriptor(
                cols=_fields(columns),
                inputFormat=f"{ORC}InputFormat",
                outputFormat=f"{ORC}OutputFormat",
                location=location,
                sortCols=[],
                serdeInfo=SerDeInfo(serializationLib=f"{ORC}Serde", parameters={}),
                parameters={},
                numBuckets=changes.pop("buckets", 0),
                bucketCols=changes.pop("bucketed_by", []),
            ),
        )
        assert not changes
        client.create_table_req(CreateTableRequest(table=table, processorCapabilities=CAPABILITIES, processorIdentifier="tests"))
        wanted = GetTableRequest(
            dbName="default",
            tblName=name,
            capabilities=ClientCapabilities(values=[ClientCapability.INSERT_ONLY_TABLES]),
            processorCapabilities=CAPABILITIES,
            processorIdentifier="tests",
        )
        found: Table = client.get_table_req(wanted).table
        return found

    return make


def folder(table: Table) -> Path:
    return Path(table.sd.location.removeprefix("file:"))


def _fields(text: str) -> list[FieldSchema]:
    return [FieldSchema(*part.split(" ", 1)) for part in text.split(", ")] if text else []
