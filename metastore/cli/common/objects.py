"""Read objects by their names from a server of any release. A missing object is an error, also where its list would be empty."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from metastore.client import Client


def in_catalog(catalog: str | None, name: str) -> str:
    """Return the name of a database in a catalog, as methods without a request struct take it."""
    return f"@{catalog}#{name}" if catalog else name


def read_table(client: Client, catalog: str | None, database: str, table: str) -> Any:
    """Read a table: Hive 4 dropped the older method, Hive 2 may lack the newer. NoSuchObjectException."""
    from metastore import idl
    from metastore.client import is_unknown_method

    known = idl.ClientCapabilities(values=[idl.ClientCapability.INSERT_ONLY_TABLES])  # the command shows the stored values
    try:
        request = idl.GetTableRequest(dbName=database, tblName=table, catName=catalog, capabilities=known)
        return client.get_table_req(request).table
    except Exception as error:
        if not is_unknown_method(error):
            raise
    return client.get_table(in_catalog(catalog, database), table)


def require(client: Client, name: str, partition: str | None = None, catalog: str | None = None) -> None:
    """Raise NoSuchObjectException where `DATABASE[.TABLE]`, or a partition of the table, is not there."""
    database, dot, table = name.partition(".")
    if not dot:
        client.get_database(in_catalog(catalog, database))
        return
    found = read_table(client, catalog, database, table)
    if partition is not None and found.partitionKeys:
        client.get_partition_by_name(in_catalog(catalog, database), table, partition)
