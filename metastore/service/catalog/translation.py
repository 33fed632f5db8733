"""Apply the rules of table types (`rules.catalog.table_types`) with the server's settings and roots. Makes no directory itself."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from copy import copy
from itertools import count
from typing import cast

from metastore.errors import InvalidObject, InvalidOperation, MetaError
from metastore.idl import ClientCapabilities, ClientCapability, Database, Partition, StorageDescriptor, Table
from metastore.rules.catalog import capabilities as capability_rules
from metastore.rules.catalog import table_types
from metastore.rules.catalog.capabilities import RAW_METADATA, access, is_bucketed, misreads_buckets
from metastore.rules.catalog.table_kinds import TRANSLATED, VIEWS, is_external, is_transactional, is_true, table_label
from metastore.rules.catalog.table_types import Mode, Roots
from metastore.rules.names import directory_name
from metastore.service.call.context import Call
from metastore.store.transactions import write_ids
from metastore.store.transactions.write_ids import TableKey
from metastore.warehouse.locations import is_root, join, parse, same_place

DEFAULT_DATABASE = "default"
"""The database that every catalog begins with."""
AS_EXTERNAL = "create_table_as_external"
"""The property that Hive 4 sends with a new table where its setting `hive.create.as.external.legacy` is on."""
AT_ROOT = "{subject} can not be at {place}, the root of a file system: give a directory in it"
CAPABILITY_NAMES = {ClientCapability.TEST_CAPABILITY: "TEST_CAPABILITY", ClientCapability.INSERT_ONLY_TABLES: "INSERT_ONLY_TABLES"}


def _roots(call: Call, database: Database) -> Roots:
    """Return the directories for a database's tables. A database of another catalog has only its own, as in Java's server."""
    warehouse, name = call.warehouse, database.name or DEFAULT_DATABASE
    return Roots(
        managed=warehouse.root,
        external=warehouse.external_root if is_default_catalog(call, database.catalogName) else None,
        database=database.locationUri or warehouse.root,
        database_managed=database.managedLocationUri,
        database_name=name,
        keeps_own=call.config.table_translation == "legacy" and not _lies_by_default(call, name, database.locationUri),
    )


def is_default_catalog(call: Call, catalog: str | None) -> bool:
    """Return whether a catalog, or none, is the one to which the warehouse's roots belong."""
    return (catalog or call.config.default_catalog).lower() == call.config.default_catalog.lower()


def _lies_by_default(call: Call, name: str, location: str | None) -> bool:
    warehouse = call.warehouse
    default = warehouse.external_root or warehouse.root if name == DEFAULT_DATABASE else warehouse.database_location(name)
    return not location or same_place(location, default)


def managed_location(call: Call, database: Database) -> str | None:
    """Return the managed location of a new database; None for none. It is also set where two roots would separate the database's tables.

    In legacy mode a client that gives a location, such as Spark, writes all tables there, even if the location is the default one.
    """
    given, qualified = database.locationUri, call.warehouse.of_database
    if database.managedLocationUri:
        return qualified(database.managedLocationUri)
    if not given or call.warehouse.external_root is None or not is_default_catalog(call, database.catalogName):
        return None
    parted = call.config.table_translation == "legacy" and _lies_by_default(call, database.name, qualified(given))
    return qualified(given) if parted else None


def _client_name(call: Call, identifier: str | None = None) -> str:
    return identifier or call.client.user or call.client.address


def on_create(
    call: Call,
    database: Database,
    table: Table,
    capabilities: Sequence[str] | None,
    identifier: str | None,
    environment: Mapping[str, str],
) -> Table:
    """Return the table as it will be stored, with its location. MetaError when the rules refuse it."""
    given = table.sd.location if table.sd is not None else None
    if given and table.tableType not in VIEWS:
        table.sd.location = call.warehouse.qualified(given, database.locationUri)
        if is_root(given):
            raise InvalidObject(f"{table.tableName} location must not be root path")  # in Java's words, which Hive's tests expect
    if call.config.full_acid_check and not capabilities:
        capability_rules.check_made_by_spark(table)
    roots = _roots(call, database)
    translated = table_types.translate(
        table,
        mode=cast(Mode, call.config.table_translation),
        roots=roots,
        capabilities=capabilities,
        client_name=_client_name(call, identifier),
        default_catalog=call.config.default_catalog,
        create_as_acid=call.config.create_as_acid,
        as_external=is_true(environment.get(AS_EXTERNAL)),
    )
    stored, directory = translated.table, table_types.default_directory(translated.root, roots)
    if directory is not None and not stored.sd.location:
        stored.sd.location = _free_place(call, directory, stored)
    if stored.sd is not None and stored.sd.location:
        stored.sd.location = table_types.place_of_new(stored, stored.sd.location)
    return stored


def _free_place(call: Call, directory: str, table: Table) -> str:
    """Return the default place of a new table; the settings decide about an existing directory that a translated table would take over.

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
    """Return the altered table as it will be stored. MetaError when the rules refuse it, InvalidOperation for the root of a file system."""
    place = new.sd.location if new.sd is not None and new.tableType not in VIEWS else None
    if place and is_root(place) and not (old.sd is not None and old.sd.location and same_place(old.sd.location, place)):
        raise InvalidOperation(AT_ROOT.format(subject=table_label(new), place=place))
    if call.config.full_acid_check and call.client.release.is_2_3 and not is_transactional(old):
        capability_rules.check_made_by_spark(new)
    return table_types.translate_alter(
        old,
        new,
        mode=cast(Mode, call.config.table_translation),
        roots=_roots(call, database),
        default_catalog=call.config.default_catalog,
    )


def default_location(call: Call, database: Database, table: Table) -> str | None:
    """Return the default place of a table of this kind and name in a database; None for a view."""
    directory = table_types.default_directory(table_types.root_of(table), _roots(call, database))
    return None if directory is None else join(directory, directory_name(table.tableName))


def lies_by_default(call: Call, database: Database, table: Table) -> bool:
    """Return whether a table's location is its name in its default directory. Letter case, as in Hive, and encoding do not matter."""
    default, parsed = default_location(call, database, table), parse(table.sd.location)
    if default is None or same_place(table.sd.location, default):
        return default is not None
    parent, _, name = parsed.key[2].rpartition("/")
    wanted = parse(default).key
    return (*parsed.key[:2], parent) == (*wanted[:2], wanted[2].rpartition("/")[0]) and name.lower() == table.tableName


def check_readable(call: Call, table: Table, capabilities: ClientCapabilities | None) -> None:
    """Refuse a table that the client would misread. MetaError."""
    if call.config.client_capability_check:
        sent = (capabilities.values if capabilities is not None else None) or []
        known = [CAPABILITY_NAMES[value] for value in sent if value in CAPABILITY_NAMES]
        table_types.check_capabilities(table, known, _client_name(call))


def check_full_acid(call: Call, table: Table, *named: Collection[object] | None) -> None:
    """Refuse a full ACID table to a client that names no capability in either language, where it would misread it. MetaError."""
    if call.config.client_capability_check and call.config.full_acid_check and not any(named):
        key = TableKey(table.catName or "", table.dbName, table.tableName)
        capability_rules.check_full_acid(table, lambda: call.database.read(lambda session: write_ids.last(session, key)) is not None)


def on_get(table: Table, capabilities: Sequence[str] | None) -> Table:
    """Add the allowed accesses to a table for a client that declares its capabilities; others get the table as stored.

    Buckets of an external table that it would misread are hidden. Source: Hive's MetastoreDefaultTransformer.
    """
    if not capabilities or RAW_METADATA & {*capabilities}:
        return table
    allowed = access(table, capabilities)
    seen = copy(table)
    seen.accessType = allowed.type
    seen.requiredReadCapabilities = list(allowed.missing_read) or None
    seen.requiredWriteCapabilities = list(allowed.missing_write) or None
    if misreads_buckets(capabilities) and is_external(table) and is_bucketed(table.sd):
        seen.sd = _without_buckets(table.sd)
    return seen


def on_get_partitions(table: Table, found: list[Partition]) -> list[Partition]:
    """Hide the buckets of an external table's partitions from a client that would misread them (`capabilities.misreads_buckets`)."""
    if not is_external(table):
        return found
    seen = [copy(partition) for partition in found]
    for partition in seen:
        if is_bucketed(partition.sd):
            partition.sd = _without_buckets(partition.sd)
    return seen


def _without_buckets(sd: StorageDescriptor) -> StorageDescriptor:
    slim = copy(sd)
    slim.numBuckets = -1
    return slim
