"""Put the rules of table types (`rules.table_types`) to the server's settings and roots. Makes no directory itself."""

from __future__ import annotations

from collections.abc import Sequence

from metastore.idl import Database, Table
from metastore.service.context import Call
from metastore.warehouse.locations import join


def on_create(call: Call, table: Table, capabilities: Sequence[str] | None) -> Table:
    agree(table)
    return table


def on_alter(call: Call, old: Table, new: Table) -> None:
    agree(new)


def agree(table: Table) -> None:
    external = (table.parameters or {}).get("EXTERNAL", "").lower() == "true"
    if table.tableType == "MANAGED_TABLE" and external:
        table.tableType = "EXTERNAL_TABLE"
    elif table.tableType == "EXTERNAL_TABLE" and not external:
        table.tableType = "MANAGED_TABLE"


def place(call: Call, database: Database, table: Table) -> None:
    if not table.sd.location:
        table.sd.location = join(database.locationUri, table.tableName)
    else:
        table.sd.location = call.warehouse.qualified(table.sd.location)


def moves_on_rename(table: Table) -> bool:
    return table.tableType == "MANAGED_TABLE" or (table.parameters or {}).get("TRANSLATED_TO_EXTERNAL", "").upper() == "TRUE"


def database_root(call: Call, database: Database, table: Table) -> str:
    return database.locationUri


def identify(call: Call, capabilities: Sequence[str] | None, identifier: str | None) -> None:
    return None


def check_readable(call: Call, table: Table, capabilities: object) -> None:
    return None


def on_get(call: Call, table: Table, capabilities: Sequence[str] | None, identifier: str | None) -> Table:
    return table
