"""Databases: create, read, alter, drop, list. Names in arguments are normalised here."""

from __future__ import annotations

import time
from collections.abc import Mapping
from copy import copy

import structlog

from metastore.errors import AlreadyExists, InvalidObject, InvalidOperation, MetaError, MetastoreError, NoSuchObject
from metastore.idl import Database, PrincipalType, Table
from metastore.listeners.events import AlterDatabase, CreateDatabase, DropDatabase, DropTable, ReadDatabase
from metastore.rules.names import normalize, pattern_matcher, validate_database_name
from metastore.rules.table_kinds import is_transactional
from metastore.rules.table_types import purges_data
from metastore.service.change import change
from metastore.service.context import Call
from metastore.store import bulk, catalogs, databases, followers, partitions, tables, view_sources
from metastore.store.database import Session
from metastore.store.drivers import ReferenceViolation

log = structlog.get_logger()
DEFAULT_DATABASE = "default"
"""The database that every catalog begins with."""


def create_database(call: Call, database: Database) -> None:
    """Make a database and its directory. InvalidObject for its name or catalog, AlreadyExists, MetaError.

    Without an owner it belongs to the caller; to the server's own user if the client has not said who calls.
    """
    if database.name is None:
        raise MetaError("Database name cannot be null.")
    catalog = database.catalogName = normalize(database.catalogName or call.config.default_catalog)
    validate_database_name(database.name)
    name = database.name = normalize(database.name)
    database.parameters = database.parameters or {}
    database.createTime = int(time.time())
    database.ownerName = call.caller if database.ownerName is None else database.ownerName
    database.ownerType = database.ownerType or PrincipalType.USER
    with change(call, CreateDatabase(client=call.info, database=database), ("database", catalog, name)) as current:

        def work(session: Session) -> None:
            found = catalogs.find(session, catalog)
            if found is None:
                raise InvalidObject(f"No such catalog {catalog}")
            if databases.find(session, catalog, name) is not None:
                raise AlreadyExists(f"Database {name} already exists")
            root = None if catalog == call.config.default_catalog else found.locationUri
            warehouse = call.warehouse
            database.locationUri = (
                warehouse.qualified(database.locationUri or warehouse.database_location(name, catalog_root=root))
            )
            wanted = [database.locationUri]
            if database.managedLocationUri:
                database.managedLocationUri = warehouse.qualified(database.managedLocationUri)
                wanted.append(database.managedLocationUri)
            databases.insert(session, database)
            current.make_directories(wanted)

        try:
            current.write(work)
        except ReferenceViolation as error:
            raise InvalidObject(f"Catalog {catalog} was dropped meanwhile") from error


def find_database(call: Call, catalog: str, name: str) -> Database:
    """Return a database by its normalised name. NoSuchObject."""
    found = call.database.read(lambda session: databases.find(session, catalog, name))
    if found is None:
        raise NoSuchObject(f"There is no database {catalog}.{name}")
    return found


def get_database(call: Call, catalog: str, name: str | None) -> Database:
    """Return a database. NoSuchObject; MetaError without a name."""
    if name is None:
        raise MetaError("Database name cannot be null.")
    found = find_database(call, normalize(catalog), normalize(name))
    if call.listeners.pre:
        call.listeners.before(ReadDatabase(client=call.info, database=found))
    return found


def get_databases(call: Call, catalog: str, pattern: str | None) -> list[str]:
    """Return the names that match a pattern, ascending; all without one."""
    matches = pattern_matcher(pattern)
    return [name for name in call.database.read(lambda session: databases.names(session, normalize(catalog))) if matches(name)]


def get_database_objects(call: Call, catalog: str, pattern: str | None) -> list[Database]:
    """Return the databases whose names match a pattern, ascending."""
    matches = pattern_matcher(pattern)
    return [each for each in call.database.read(lambda session: databases.all_of(session, catalog)) if matches(each.name)]


def alter_database(call: Call, catalog: str, name: str | None, new: Database) -> None:
    """Change location, owner, comment and parameters; the name stays. NoSuchObject, MetaError."""
    if name is None:
        raise MetaError("Database name cannot be null.")
    catalog, name = normalize(catalog), normalize(name)
    before = find_database(call, catalog, name)
    with change(call, AlterDatabase(client=call.info, before=before, after=_altered(call, before, new))) as current:

        def work(session: Session) -> None:
            found = databases.find(session, catalog, name) if databases.lock(session, catalog, name) is not None else None
            if found is None:
                raise NoSuchObject(f"There is no database {catalog}.{name}")
            after = _altered(call, found, new)
            databases.update(session, catalog, name, after)
            current.event = AlterDatabase(client=call.info, before=found, after=after)

        current.write(work)


def _altered(call: Call, before: Database, new: Database) -> Database:
    """Return the database as it will be stored."""
    after = copy(before)
    after.parameters, after.ownerName = dict(new.parameters or {}), new.ownerName
    for field in ("description", "locationUri", "managedLocationUri", "ownerType"):
        value = getattr(new, field)
        if value is not None:
            setattr(after, field, value)
    for field in ("locationUri", "managedLocationUri"):
        if getattr(new, field):
            setattr(after, field, call.warehouse.qualified(getattr(new, field)))
    return after


def drop_database(
    call: Call, catalog: str, name: str | None, *, delete_data: bool, cascade: bool, ignore_unknown: bool = False,
    environment: Mapping[str, str] | None = None,
) -> None:
    """Remove a database; with `cascade` its tables and functions too. NoSuchObject, InvalidOperation, MetaError."""
    if name is None:
        raise MetaError("Database name cannot be null.")
    catalog, name = normalize(catalog), normalize(name)
    if name == DEFAULT_DATABASE and catalog == call.config.default_catalog:
        raise MetaError(f"Can not drop {name} database in catalog {catalog}")
    try:
        database = find_database(call, catalog, name)
    except NoSuchObject:
        if ignore_unknown:
            return
        raise
    dropped: list[Table] = []
    outside: dict[int, list[str]] = {}
    environment = environment or {}
    with change(call, DropDatabase(client=call.info, database=database, environment=environment)) as current:
        asked: set[int | None] = set()

        def ask(table: Table) -> DropTable:
            event = DropTable(client=call.info, table=table, delete_data=delete_data, environment=environment)
            if table.id not in asked:
                call.listeners.before(event)
                asked.add(table.id)
            return event

        if call.listeners.pre and cascade:
            # Asked before the transaction, so that a slow listener holds no lock; a table that is made meanwhile is asked for inside it.
            for table in call.database.read(lambda session: tables.all_of(call.database, session, catalog, name)):
                ask(table)

        def work(session: Session) -> None:
            key = databases.lock(session, catalog, name)
            if key is None:
                raise NoSuchObject(f"There is no database {catalog}.{name}")
            has_tables, has_functions = databases.has_tables_or_functions(session, key)
            if has_tables and not cascade:
                raise InvalidOperation(f"Database {name} is not empty. One or more tables exist.")
            if has_functions and not cascade:
                raise InvalidOperation(f"Database {name} is not empty. One or more functions exist.")
            if has_tables:
                tables.lock_all(session, key)
                used = view_sources.made_from_database(session, catalog, name)
                if used:
                    raise MetaError(f"Cannot drop database {name} as its tables are used in the following materialized views {used}")
            dropped[:] = tables.all_of(call.database, session, catalog, name) if has_tables else []
            call.listeners.within([ask(table) for table in dropped], session)
            for table in dropped:
                if table.partitionKeys and delete_data and purges_data(table):
                    assert table.id is not None
                    outside[table.id] = partitions.locations_outside(session, table.id)
            if has_tables or has_functions:
                bulk.delete_contents(session, key)
            if any(is_transactional(table) for table in dropped):
                followers.forget_database(session, catalog, name)
            databases.delete(session, key)

        current.write(work)
    purge = environment.get("ifPurge", "").lower() == "true"
    for table in dropped:
        call.listeners.after(DropTable(client=call.info, table=table, delete_data=delete_data, environment=environment), None)
        if delete_data and purges_data(table) and table.sd is not None:
            for location in [*outside.get(table.id or 0, ()), table.sd.location]:
                delete_directory(call, location, purge=purge or skips_trash(table))
    if delete_data:
        for location in (database.managedLocationUri, database.locationUri):
            if location:
                delete_directory(call, location, purge=purge, only_empty=_holds_kept_tables(call, location, dropped))


def _holds_kept_tables(call: Call, location: str, dropped: list[Table]) -> bool:
    """Tell whether data of an external table that must survive its database lies in the database's directory."""
    return any(
        not purges_data(table) and table.sd is not None and table.sd.location and call.warehouse.is_below(table.sd.location, location)
        for table in dropped
    )


def skips_trash(table: Table) -> bool:
    """Tell whether a table's data is to go for good when dropped (`auto.purge`, `skip.trash`)."""
    parameters = table.parameters or {}
    return any(parameters.get(key, "").lower() == "true" for key in ("auto.purge", "skip.trash"))


def delete_directory(call: Call, location: str | None, *, purge: bool, only_empty: bool = False) -> None:
    """Delete a dropped object's directory. The metadata is gone already, so a failure is only logged."""
    if not location:
        return
    try:
        if not only_empty:
            call.warehouse.delete(location, purge=purge)
        else:
            call.warehouse.remove_if_empty(location)
    except (MetastoreError, OSError):
        log.exception("data of a dropped object was not deleted", location=location)
