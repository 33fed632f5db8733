"""The full name of a table as service functions take it: normalised once, when the request is unpacked."""

from __future__ import annotations

from typing import NamedTuple

from metastore.errors import MetaError
from metastore.rules.names import normalize, split_database


class TableName(NamedTuple):
    """Catalog, database and table, trimmed and in lower case."""

    catalog: str
    database: str
    table: str

    def __str__(self) -> str:
        return f"{self.catalog}.{self.database}.{self.table}"


def database_name(name: str | None, catalog: str | None, default_catalog: str) -> tuple[str, str | None]:
    """Return (catalog, database) of a database argument; an explicit catalog wins over one in the name."""
    if name is None:
        return normalize(catalog or default_catalog), None
    found, database = split_database(name, catalog or default_catalog)
    return normalize(found), None if database is None else normalize(database)


def table_name(database: str | None, table: str | None, catalog: str | None, default_catalog: str) -> TableName:
    """Return the normalised name of a table. MetaError when a part is missing."""
    found, name = database_name(database, catalog, default_catalog)
    if name is None:
        raise MetaError("Database name cannot be null.")
    if table is None:
        raise MetaError("Table name cannot be null.")
    return TableName(found, name, normalize(table))
