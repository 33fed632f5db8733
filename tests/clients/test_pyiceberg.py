"""PyIceberg works on a server: namespaces, tables, commits. Of commits that race, no confirmed one is lost."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hive_metastore.ttypes import EnvironmentContext, LockResponse, LockState, MetaException
from pyiceberg.catalog.hive import HiveCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.table import Table
from pyiceberg.types import StringType

from tests.support.servers.servers import Server

TRIPS = pa.schema([pa.field("id", pa.int64()), pa.field("fare", pa.float64())])
WRITERS = 8
COMMITS = 2
"""Commits of each writer."""
LOCK_WAITS = {"lock-check-min-wait-time": "0.01", "lock-check-max-wait-time": "0.05", "lock-check-retries": "1000"}


@pytest.fixture
def catalog(server: Server) -> HiveCatalog:
    return HiveCatalog("test", uri=server.uri, **LOCK_WAITS)


def trips(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids), "fare": [float(number) for number in ids]}, schema=TRIPS)


def rows(table: Table) -> list[dict[str, Any]]:
    return sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"])


@pytest.mark.on_one_database
def test_namespaces(catalog: HiveCatalog, warehouse: Path) -> None:
    catalog.create_namespace("taxi", {"comment": "trips", "owner": "alice", "team": "data"})
    with pytest.raises(NamespaceAlreadyExistsError):
        catalog.create_namespace("taxi")
    assert set(catalog.list_namespaces()) == {("default",), ("taxi",)}
    properties = catalog.load_namespace_properties("taxi")
    assert (properties["comment"], properties["team"]) == ("trips", "data")
    assert properties["location"] == f"file:{warehouse}/taxi.db"
    summary = catalog.update_namespace_properties("taxi", removals={"team"}, updates={"city": "berlin"})
    assert (summary.removed, summary.updated) == (["team"], ["city"])
    properties = catalog.load_namespace_properties("taxi")
    assert properties["city"] == "berlin"
    assert "team" not in properties
    catalog.create_table("taxi.trips", TRIPS)
    with pytest.raises(NamespaceNotEmptyError):
        catalog.drop_namespace("taxi")
    catalog.drop_table("taxi.trips")
    catalog.drop_namespace("taxi")
    for ask in (catalog.drop_namespace, catalog.load_namespace_properties):
        with pytest.raises(NoSuchNamespaceError):
            ask("taxi")


@pytest.mark.on_one_database
def test_a_missing_namespace_is_named(catalog: HiveCatalog) -> None:
    with pytest.raises(Exception, match="missing_namespace"):
        list(catalog.list_tables("missing_namespace"))
    catalog.create_namespace("there")
    assert list(catalog.list_tables("there")) == []


@pytest.mark.on_one_database
def test_tables(catalog: HiveCatalog, warehouse: Path) -> None:
    catalog.create_namespace("taxi")
    table = catalog.create_table("taxi.trips", TRIPS, properties={"team": "data"})
    assert table.location() == f"file:{warehouse}/taxi.db/trips"
    with pytest.raises(TableAlreadyExistsError):
        catalog.create_table("taxi.trips", TRIPS)
    table.append(trips(1, 2))
    with table.update_schema() as update:
        update.add_column("note", StringType(), doc="what the driver said")
        update.rename_column("fare", "price")
    loaded = catalog.load_table("taxi.trips")
    assert [field.name for field in loaded.schema().fields] == ["id", "price", "note"]
    assert loaded.properties["team"] == "data"
    assert rows(loaded) == [{"id": number, "price": float(number), "note": None} for number in (1, 2)]

    catalog.create_namespace("archive")
    renamed = catalog.rename_table("taxi.trips", "archive.old_trips")
    assert rows(renamed) == rows(loaded)
    with pytest.raises(NoSuchTableError):
        catalog.load_table("taxi.trips")
    assert (catalog.list_tables("taxi"), catalog.list_tables("archive")) == ([], [("archive", "old_trips")])
    renamed.append(pa.table({"id": [3], "price": [3.0], "note": ["slow"]}))
    renamed.delete("id < 3")
    assert [row["note"] for row in rows(catalog.load_table("archive.old_trips"))] == ["slow"]

    metadata = renamed.metadata_location
    catalog.drop_table("archive.old_trips")
    assert not catalog.table_exists("archive.old_trips")
    assert Path(metadata.removeprefix("file:")).exists()
    assert [row["note"] for row in rows(catalog.register_table("taxi.again", metadata))] == ["slow"]


@pytest.mark.on_one_database
def test_a_staged_table_appears_when_it_is_committed(catalog: HiveCatalog) -> None:
    catalog.create_namespace("taxi")
    with catalog.create_table_transaction("taxi.trips", TRIPS) as transaction:
        assert not catalog.table_exists("taxi.trips")
        transaction.append(trips(1))
    assert [row["id"] for row in rows(catalog.load_table("taxi.trips"))] == [1]


class LockFree:
    """PyIceberg's Thrift client that commits as Iceberg's Java library does without locks: alter_table compares the
    old location of the metadata, and sets the new one only if it is still there."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def lock(self, _request: Any) -> LockResponse:
        return LockResponse(lockid=0, state=LockState.ACQUIRED)

    def unlock(self, _request: Any) -> None:
        return None

    def alter_table_with_environment_context(
        self, dbname: str, tbl_name: str, new_tbl: Any, environment_context: EnvironmentContext
    ) -> None:
        environment_context.properties |= {
            "expected_parameter_key": "metadata_location",
            "expected_parameter_value": new_tbl.parameters["previous_metadata_location"],
        }
        try:
            self._client.alter_table_with_environment_context(dbname, tbl_name, new_tbl, environment_context)
        except MetaException as error:
            if "The table has been modified" not in error.message:
                raise
            raise CommitFailedException(error.message) from error


class LockFreeConnection:
    """The context manager in which PyIceberg opens and closes its client."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def __enter__(self) -> LockFree:
        return LockFree(self._connection.__enter__())

    def __exit__(self, *error: object) -> None:
        self._connection.__exit__(*error)


class LockFreeCatalog(HiveCatalog):
    @staticmethod
    def _create_hive_client(properties: dict[str, str]) -> Any:
        return LockFreeConnection(HiveCatalog._create_hive_client(properties))


@pytest.mark.on_one_database
@pytest.mark.parametrize("kind", [HiveCatalog, LockFreeCatalog], ids=["with locks", "without locks"])
def test_no_confirmed_commit_is_lost(server: Server, kind: Callable[..., HiveCatalog]) -> None:
    first = kind("first", uri=server.uri, **LOCK_WAITS)
    first.create_namespace("taxi")
    retries = {f"commit.retry.{name}": "1" for name in ("min-wait-ms", "max-wait-ms")} | {"commit.retry.num-retries": "0"}
    first.create_table("taxi.trips", TRIPS, properties=retries)
    together = threading.Barrier(WRITERS)

    def write(writer: int) -> int:
        """Append one row in each commit; return the number of refused commits."""
        table = kind(f"writer {writer}", uri=server.uri, **LOCK_WAITS).load_table("taxi.trips")
        refused = 0
        together.wait()
        for commit in range(COMMITS):
            while True:
                try:
                    table.append(trips(writer * COMMITS + commit))
                    break
                except CommitFailedException:
                    refused += 1
                    table.refresh()
        return refused

    with ThreadPoolExecutor(WRITERS) as pool:
        refused = sum(pool.map(write, range(WRITERS)))
    table = first.load_table("taxi.trips")
    assert [row["id"] for row in rows(table)] == list(range(WRITERS * COMMITS))
    assert len(table.snapshots()) == WRITERS * COMMITS
    assert refused > 0, "the writers did not meet"
