"""Read the common parts of many methods out of their argument structs. Never calls a service."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from metastore.errors import MetaError, MissingArgument
from metastore.idl import EnvironmentContext
from metastore.service.call.context import Call
from metastore.service.call.names import TableName, database_name, table_name

T = TypeVar("T")


def table(call: Call, database: str | None, name: str | None, catalog: str | None = None) -> TableName:
    """Return a table's normalised full name."""
    return table_name(database, name, catalog, call.config.default_catalog)


def check_named(call: Call, database: str | None, name: str | None, catalog: str | None = None) -> None:
    """Raise MissingArgument where a table's name or database is absent: in some methods Java's server ends the connection there."""
    if name is None or database_name(database, catalog, call.config.default_catalog)[1] is None:
        raise MissingArgument(f"{call.method} needs the names of database and table; got {database} and {name}")


def ends_without_names(handler: Callable[[Call, Any], Any]) -> Callable[[Call, Any], Any]:
    """Return a handler of arguments db_name and tbl_name that raises MissingArgument where one is absent, see `check_named`."""

    def answer(call: Call, args: Any) -> Any:
        check_named(call, args.db_name, args.tbl_name)
        return handler(call, args)

    return answer


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
    """Return a required field of the method. MetaError when it was not sent."""
    if value is None:
        raise MetaError(f"{call.method} needs {field}: it was not sent")
    return value


def limit(value: int | None) -> int:
    """Return a maximum number, -1 where it was not sent."""
    return -1 if value is None else value
