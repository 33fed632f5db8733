"""Put the rules of table types (`rules.table_types`) to the server's settings and roots. Makes no directory itself."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from itertools import count
from typing import cast

from metastore.errors import MetaError
from metastore.idl import ClientCapabilities, ClientCapability, Database, Table
from metastore.rules import table_types
from metastore.rules.capabilities import RAW_METADATA, access
from metastore.rules.names import directory_name
from metastore.rules.table_kinds import TRANSLATED, VIEWS
from metastore.rules.table_types import Mode, Roots
from metastore.service.context import Call
from metastore.warehouse.locations import join

CAPABILITY_NAMES = {ClientCapability.TEST_CAPABILITY: "TEST_CAPABILITY", ClientCapability.INSERT_ONLY_TABLES: "INSERT_ONLY_TABLES"}


def _roots(call: Call, database: Database) -> Roots:
    return Roots(
        managed=call.warehouse.root, external=call.warehouse.external_root, database=database.locationUri or call.warehouse.root,
        database_managed=database.managedLocationUri, database_name=database.name or "default",
    )


def _client_name(call: Call, identifier: str | None = None) -> str:
    return identifier or call.client.user or call.client.address


def on_create(call: Call, database: Database, table: Table, capabilities: Sequence[str] | None, identifier: str | None) -> Table:
    """Return the table as it will be stored, with its location. MetaError when the rules refuse it."""
    given = table.sd.location if table.sd is not None else None
    if given and table.tableType not in VIEWS:
        table.sd.location = call.warehouse.qualified(given)
    roots = _roots(call, database)
    translated = table_types.translate(
        table, mode=cast(Mode, call.config.table_translation), roots=roots, capabilities=capabilities,
        client_name=_client_name(call, identifier), default_catalog=call.config.default_catalog,
        create_as_acid=call.config.create_as_acid,
    )
    stored, directory = translated.table, table_types.default_directory(translated.root, roots)
    if directory is None:
        if stored.sd is not None:
            stored.sd.location = None  # type: ignore[assignment]  # a view has no directory
    elif not stored.sd.location:
        stored.sd.location = _free_place(call, directory, stored)
    return stored


def _free_place(call: Call, directory: str, table: Table) -> str:
    """Return the default place of a new table; the settings say what to do when a directory is there that a translated one would take over.

    Source: Hive's MetastoreDefaultTransformer.TableLocationStrategy. MetaError.
    """
    name, mode = directory_name(table.tableName), call.config.translated_location
    place = join(directory, name)
    if mode == "force" or TRANSLATED not in table.parameters or not call.warehouse.is_directory(place):
        return place
    if mode == "prohibit":
        raise MetaError(
            f"Default location is not available for table: {place}: remove the directory, give the table a location, or set "
            "translated_location to something other than prohibit"
        )
    names = (f"{number}_{name}" if mode == "seqprefix" else f"{name}_{number}" for number in count(1))
    return next(place for place in (join(directory, each) for each in names) if not call.warehouse.is_directory(place))


def on_alter(call: Call, database: Database, old: Table, new: Table) -> Table:
    """Return the altered table as it will be stored. MetaError when the rules refuse it."""
    return table_types.translate_alter(
        old, new, mode=cast(Mode, call.config.table_translation), roots=_roots(call, database),
        default_catalog=call.config.default_catalog,
    )


def default_location(call: Call, database: Database, table: Table) -> str | None:
    """Return where a table of this kind and name lies by default in a database; None for a view."""
    directory = table_types.default_directory(table_types.root_of(table), _roots(call, database))
    return None if directory is None else join(directory, directory_name(table.tableName))


def check_readable(call: Call, table: Table, capabilities: ClientCapabilities | None) -> None:
    """Refuse a table that the client would misread. MetaError."""
    if call.config.client_capability_check:
        sent = (capabilities.values if capabilities is not None else None) or []
        known = [CAPABILITY_NAMES[value] for value in sent if value in CAPABILITY_NAMES]
        table_types.check_capabilities(table, known, _client_name(call))


def on_get(call: Call, table: Table, capabilities: Sequence[str] | None, identifier: str | None) -> Table:
    """Tell a client that declares its capabilities what it may do with the table; others see it as it is stored."""
    if capabilities is None or RAW_METADATA in capabilities:
        return table
    allowed = access(table, capabilities)
    seen = copy(table)
    seen.accessType = allowed.type
    seen.requiredReadCapabilities = list(allowed.missing_read) or None
    seen.requiredWriteCapabilities = list(allowed.missing_write) or None
    return seen
