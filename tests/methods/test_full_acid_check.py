"""Full ACID tables are returned to clients that name a capability. A table that only Hive 2.3 made and wrote is returned to all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from metastore.app import build, close
from metastore.client import Client, connect
from metastore.config import Config
from metastore.idl import (
    AllocateTableWriteIdsRequest,
    ClientCapabilities,
    ClientCapability,
    CreateTableRequest,
    GetTableRequest,
    MetaException,
    OpenTxnRequest,
    Table,
)
from metastore.service.catalog.catalogs import create_startup_objects
from metastore.store.core import migrate
from metastore.wire.connection.server import ServerThread
from metastore.wire.sockets.settings import WireSettings
from tests.support.acid.acid_tables import definition

OF_SPARK = {"spark.sql.create.version": "4.0.1"}
OF_HIVE_3 = {"bucketing_version": "2"}


@contextmanager
def serving(tmp_path: Path, **settings: object) -> Iterator[Client]:
    config = Config(
        db=f"sqlite:///{tmp_path / 'm.db'}",
        warehouse=str(tmp_path / "warehouse"),
        data_directory=str(tmp_path / "data"),
        **settings,  # type: ignore[arg-type]  # names of settings
    )
    metastore = build(config)
    migrate.upgrade(metastore.database)
    create_startup_objects(metastore)
    with ServerThread(WireSettings(port=0), metastore) as started, connect(started.uri, timeout=20) as connected:
        yield connected
    close(metastore)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    with serving(tmp_path) as connected:
        yield connected


def make(client: Client, parameters: dict[str, str] | None = None) -> None:
    table = definition("t", "id int")
    table.parameters = {"transactional": "true", **(parameters or {})}
    client.create_table_req(CreateTableRequest(table=table, processorCapabilities=["HIVEFULLACIDWRITE", "HIVEMANAGEDINSERTWRITE"]))


def write(client: Client) -> None:
    """Allocate a write id, as every client does that writes under write ids."""
    txn = client.open_txns(OpenTxnRequest(num_txns=1, user="me", hostname="h")).txn_ids[0]
    client.allocate_table_write_ids(AllocateTableWriteIdsRequest(dbName="default", tableName="t", txnIds=[txn]))


def ways(client: Client) -> dict[str, bool]:
    """Return for each kind of request whether the table is returned."""
    known = ClientCapabilities(values=[ClientCapability.INSERT_ONLY_TABLES])
    requests = {
        "get_table": lambda: client.get_table("default", "t"),
        "nothing": lambda: client.get_table_req(GetTableRequest(dbName="default", tblName="t")),
        "empty": lambda: client.get_table_req(
            GetTableRequest(dbName="default", tblName="t", capabilities=ClientCapabilities(values=[]), processorCapabilities=[])
        ),
        "3": lambda: client.get_table_req(GetTableRequest(dbName="default", tblName="t", capabilities=known)),
        "4": lambda: client.get_table_req(GetTableRequest(dbName="default", tblName="t", processorCapabilities=["HIVEFULLACIDREAD"])),
    }
    out = {}
    for name, request in requests.items():
        try:
            request()
            out[name] = True
        except MetaException as error:
            out[name] = not {"metastore.spark", "full_acid_check=false"} <= {*error.message.replace(" (", " ").split()}
    return out


ALL = {"get_table": True, "nothing": True, "empty": True, "3": True, "4": True}
KNOWING = {"get_table": False, "nothing": False, "empty": False, "3": True, "4": True}


@pytest.mark.parametrize("parameters", [OF_SPARK, OF_HIVE_3])
def test_tables_of_spark_and_hive_3_go_to_clients_that_name_a_capability(client: Client, parameters: dict[str, str]) -> None:
    make(client, parameters)
    assert ways(client) == KNOWING


def test_tables_of_hive_2_3_are_for_all_until_somebody_writes_by_write_ids(client: Client) -> None:
    make(client)
    assert ways(client) == ALL
    write(client)
    assert ways(client) == KNOWING


def test_plain_tables_and_lists_are_for_all(client: Client) -> None:
    make(client, OF_HIVE_3)
    write(client)
    plain = definition("plain", "id int", parameters=OF_SPARK)
    plain.parameters.pop("transactional")
    client.create_table(plain)
    assert client.get_table("default", "plain").tableName == "plain"
    assert [table.tableName for table in client.get_table_objects_by_name("default", ["t", "plain"])] == ["plain", "t"]


@pytest.mark.parametrize("settings", [{"full_acid_check": False}, {"client_capability_check": False}])
def test_an_operator_may_switch_it_off(tmp_path: Path, settings: dict[str, object]) -> None:
    with serving(tmp_path, **settings) as client:
        make(client, OF_SPARK)
        write(client)
        assert ways(client) == ALL


@pytest.mark.parametrize("insert_only", [False, True])
def test_spark_creates_no_transactional_table(client: Client, insert_only: bool) -> None:
    table = definition("t", "id int", parameters=OF_SPARK, insert_only=insert_only)
    with pytest.raises(MetaException, match="to_transactional"):
        client.create_table(table)
    assert client.get_all_tables("default") == []
    table.parameters = {**table.parameters}
    del table.parameters["spark.sql.create.version"]
    client.create_table(table)  # as Hive 2.3 and 3.1 do


def altered(client: Client, table: Table) -> Table:
    table.parameters = {**table.parameters, "transactional": "true"}
    client.alter_table("default", "plain", table)
    found: Table = client.get_table_objects_by_name("default", ["plain"])[0]
    return found


def test_spark_makes_no_table_transactional_and_others_do(client: Client) -> None:
    plain = definition("plain", "id int", parameters=OF_SPARK)
    plain.parameters = {key: value for key, value in plain.parameters.items() if not key.startswith("transactional")}
    client.create_table(plain)
    table = client.get_table("default", "plain")
    with pytest.raises(MetaException, match="to_transactional"):
        altered(client, table)
    assert "transactional" not in client.get_table("default", "plain").parameters
    client.get_table_req(GetTableRequest(dbName="default", tblName="plain"))  # a request that no client of Hive 2.3 sends
    assert altered(client, table).parameters["transactional"] == "true"
