"""Tables and partitions at places that they share, and the ways to drop a partition."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

from structlog.testing import capture_logs

from metastore.errors import MetaError
from metastore.idl import Partition, SerDeInfo, StorageDescriptor, Table
from metastore.service.call.context import Call
from metastore.service.call.names import TableName
from metastore.service.catalog.partitions.add_partitions import add_partitions as add
from metastore.service.catalog.partitions.drop_partitions import drop_partition, drop_partition_by_name, drop_partitions
from metastore.service.catalog.partitions.expressions import Dropped, drop_partitions_by_expressions
from metastore.service.catalog.tables import tables
from metastore.service.catalog.tables.create_table import create_table
from tests.support.catalog.catalog import (
    columns_of,
)

KEYS = [("k", "string")]
EXTERNAL = {"EXTERNAL": "TRUE"}
SPELLINGS: list[Callable[[str], str]] = [
    lambda path: f"file:{path}",
    lambda path: f"file://{path}",
    lambda path: f"file://localhost{path}/",
    lambda path: f"file:/{path[1:].replace('/', '//')}",
    lambda path: path,
]


def path_of(location: str) -> Path:
    return Path("/" + location.removeprefix("file:").removeprefix("//localhost").lstrip("/"))


def put(location: str | Path) -> Path:
    """Write a file at a location; return it."""
    folder = path_of(location) if isinstance(location, str) else location
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "file").touch()
    return folder / "file"


def place(call: Call, name: TableName) -> str:
    return tables.get_table(call, name).sd.location


def table_at(call: Call, name: str, location: str | Path | None, keys: bool = False, database: str = "default", **fields: Any) -> TableName:
    sd = StorageDescriptor(
        cols=columns_of(("a", "int")),
        inputFormat="in",
        outputFormat="out",
        location=str(location) if location else None,
        serdeInfo=SerDeInfo(serializationLib="lib", parameters={}),
        parameters={},
    )
    create_table(
        call,
        Table(
            **{
                "dbName": database,
                "tableName": name,
                "owner": "alice",
                "sd": sd,
                "partitionKeys": columns_of(*KEYS) if keys else [],
                "tableType": "MANAGED_TABLE",
                "parameters": {},
                **fields,
            }
        ),
    )
    catalog, _, own = database[1:].partition("#") if database.startswith("@") else ("hive", "", database)
    return TableName(catalog, own, name)


def add_at(call: Call, name: TableName, value: str, location: str | Path | None) -> str:
    """Add a partition; return its location."""
    sd = deepcopy(tables.get_table(call, name).sd)
    sd.location = str(location) if location else None  # type: ignore[assignment]  # None is the default place
    new = Partition(values=[value], dbName=name.database, tableName=name.table, catName=name.catalog, sd=sd, parameters={})
    return add(call, name, [new])[0].sd.location


Drop = Callable[[Call, TableName, str], object]
DROPS: dict[str, Drop] = {
    "values": lambda call, name, value: drop_partition(call, name, [value], delete_data=True),
    "name": lambda call, name, value: drop_partition_by_name(call, name, f"k={value}", delete_data=True),
    "names": lambda call, name, value: drop_partitions(call, name, [f"k={value}"], delete_data=True, if_exists=False),
    "expression": lambda call, name, value: drop_partitions_by_expressions(
        call, name, [Dropped(f"k = '{value}'".encode(), None)], delete_data=True, if_exists=False
    ),
    "purge": lambda call, name, value: drop_partition(call, name, [value], delete_data=True, environment={"ifPurge": "true"}),
    "truncate": lambda call, name, value: tables.truncate_table(call, name, [f"k={value}"], None),
}


def dropped_or_refused(drop: Callable[[], object]) -> list[Any]:
    """Call `drop`, and return the log's warnings of data that stays. If it is refused, as a truncation may be, return its message."""
    with capture_logs() as logs:
        try:
            drop()
        except MetaError as error:
            return [{"kept": [error.message]}]
    return [entry for entry in logs if entry["log_level"] == "warning" and "stay" in entry["event"]]
