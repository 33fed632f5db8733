"""Take what many methods share out of their argument structs. Never calls a service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from metastore.errors import MetaError, MissingArgument
from metastore.idl import EnvironmentContext
from metastore.service.call.context import Call
from metastore.service.call.names import TableName, database_name, table_name

T = TypeVar("T")


def table(call: Call, database: str | None, name: str | None, catalog: str | None = None) -> TableName:
    """Return a table's normalised full name."""
    return table_name(database, name, catalog, call.config.default_catalog)


ENDS_WITHOUT_NAMES = frozenset(
    {
        "add_partitions_pspec",
        "get_partition_names",
        "get_partition_names_ps",
        "get_partition_with_auth",
        "get_partitions",
        "get_partitions_by_filter",
        "get_partitions_by_names",
        "get_partitions_ps_with_auth",
        "get_partitions_pspec",
    }
)
"""Methods in which Java's server ends the connection when a name is absent; in the others it answers MetaException."""


def partitioned(call: Call, database: str | None, name: str | None, catalog: str | None = None) -> TableName:
    """Return a table's normalised full name in a method about its partitions. MissingArgument or MetaError when a part is absent."""
    if call.method in ENDS_WITHOUT_NAMES and (name is None or database_name(database, catalog, call.config.default_catalog)[1] is None):
        raise MissingArgument(f"{call.method} needs the names of database and table; got {database} and {name}")
    return table(call, database, name, catalog)


def database(call: Call, name: str | None, catalog: str | None = None) -> tuple[str, str | None]:
    """Return (catalog, database), normalised."""
    return database_name(name, catalog, call.config.default_catalog)


def target(call: Call, request: Any) -> TableName:
    """Return the table that a request struct with catName, dbName and tblName (or tableName) is about."""
    name = request.tblName if hasattr(request, "tblName") else request.tableName
    catalog = request.catName if hasattr(request, "catName") else getattr(request, "catalogName", None)
    return table(call, request.dbName, name, catalog)


def environment(context: EnvironmentContext | None) -> Mapping[str, str]:
    """Return the properties of an environment context, empty for none."""
    return (context.properties if context is not None else None) or {}


def required(call: Call, value: T | None, field: str) -> T:
    """Return a field that the method can not do without. MetaError when it was not sent."""
    if value is None:
        raise MetaError(f"{call.method} needs {field}: it was not sent")
    return value


def limit(value: int | None) -> int:
    """Return a maximum number, -1 where it was not sent."""
    return -1 if value is None else value
