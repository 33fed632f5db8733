"""Databases of type REMOTE: their tables are in another system, which a data connector names, and nobody fetches them from there.

Hive's server asks that system. Where it can not, it answers as this one always does: MetaException for tables that are asked for by name,
or listed by `get_tables`, and an empty list in other listings.
"""

from __future__ import annotations

from metastore.errors import MetaError, NoSuchObject
from metastore.idl import DatabaseType, Table
from metastore.service import tables
from metastore.service.context import Call
from metastore.service.names import TableName
from metastore.store import databases


def refuse(call: Call, catalog: str, name: str) -> None:
    """Raise MetaError if a database is there and of type REMOTE."""
    found = call.database.read(lambda session: databases.find(session, catalog, name))
    if found is not None and found.type == DatabaseType.REMOTE:
        raise MetaError(
            f"Database {catalog}.{name} is of type REMOTE: its tables are reached by the data connector {found.connector_name}, "
            "and this server does not fetch them"
        )


def get_table(call: Call, name: TableName) -> Table:
    """Return a table. NoSuchObject, MetaError."""
    try:
        return tables.get_table(call, name)
    except NoSuchObject:
        refuse(call, name.catalog, name.database)
        raise


def get_tables(call: Call, catalog: str, database: str | None, pattern: str | None) -> list[str]:
    """Return the names of the tables that match a pattern; empty for a missing database. MetaError."""
    found = tables.get_tables(call, catalog, database, pattern)
    if not found and database is not None:
        refuse(call, catalog, database)
    return found
