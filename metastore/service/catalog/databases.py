"""Databases: create, read, alter, drop, list. Names in arguments are normalised here."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from copy import copy

from metastore.errors import AlreadyExists, InvalidObject, InvalidOperation, MetaError, NoSuchObject
from metastore.idl import Catalog, Database, DatabaseType, PrincipalType, Table
from metastore.listeners.events import AlterDatabase, CreateDatabase, DropDatabase, DropTable, ReadDatabase
from metastore.places import place_of
from metastore.rules.catalog.table_kinds import is_transactional, table_label
from metastore.rules.catalog.table_types import purges_data
from metastore.rules.names import normalize, pattern_matcher, validate_database_name
from metastore.service.call.context import Call
from metastore.service.catalog import translation
from metastore.service.catalog.translation import DEFAULT_DATABASE
from metastore.service.changes.change import change
from metastore.service.changes.deletion import Doomed
from metastore.service.changes.occupants import Occupant
from metastore.service.transactions.replication import SOURCE, is_source
from metastore.store.catalog import bulk, catalogs, databases, dependents
from metastore.store.catalog.partitions import partitions
from metastore.store.catalog.tables import tables, view_sources
from metastore.store.core.database import Session
from metastore.store.drivers.contract import ReferenceViolation


def create_database(call: Call, database: Database) -> None:
    """Make a database and its directory. InvalidObject for its name, catalog or lack of a data connector, AlreadyExists, MetaError.

    Without an owner it belongs to the caller; to the server's own user if the client is anonymous.
    """
    if database.name is None:
        raise MetaError("Database name cannot be null.")
    catalog = database.catalogName = normalize(database.catalogName or call.config.default_catalog)
    name = normalize(database.name)
    validate_database_name(name, call.takes_special_characters)
    if database.type == DatabaseType.REMOTE and not database.connector_name:
        raise InvalidObject(f"Database {name} is of type REMOTE and names no data connector: set connector_name")
    database.name = name
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
            stored = copy(database)
            stored.managedLocationUri = translation.managed_location(call, database)
            stored.locationUri = call.warehouse.of_database(database.locationUri or default_location(call, found, name))
            databases.insert(session, stored)
            current.make_directories([place for place in (stored.locationUri, stored.managedLocationUri) if place])
            current.event = CreateDatabase(client=call.info, database=stored)

        try:
            current.write(work)
        except ReferenceViolation as error:
            raise InvalidObject(f"Catalog {catalog} was dropped meanwhile") from error


def default_location(call: Call, catalog: Catalog, name: str) -> str:
    """Return the default place of a database of a catalog."""
    root = None if catalog.name == call.config.default_catalog else catalog.locationUri
    return call.warehouse.database_location(name, catalog_root=root)


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


def refuse_remote(call: Call, catalog: str, name: str) -> None:
    """Raise MetaError for an existing database of type REMOTE: its tables are in another system, and this server does not fetch them.

    Hive's server asks the system that the data connector names. Where it can not, it also refuses `get_table` and `get_tables`, and other
    listings are empty.
    """
    found = call.database.read(lambda session: databases.find(session, catalog, name))
    if found is not None and found.type == DatabaseType.REMOTE:
        raise MetaError(
            f"Database {catalog}.{name} is of type REMOTE: its tables are reached by the data connector {found.connector_name}, "
            "and this server does not fetch them"
        )


def get_databases(call: Call, catalog: str, pattern: str | None) -> list[str]:
    """Return the names that match a pattern, ascending; all without one."""
    matches = pattern_matcher(pattern)
    return [name for name in call.database.read(lambda session: databases.names(session, normalize(catalog))) if matches(name)]


def get_database_objects(call: Call, catalog: str, pattern: str | None) -> list[Database]:
    """Return the databases whose names match a pattern, ascending."""
    matches = pattern_matcher(pattern)
    return [each for each in call.database.read(lambda session: databases.all_of(session, catalog)) if matches(each.name)]


def alter_database(call: Call, catalog: str, name: str | None, new: Database) -> None:
    """Change location, owner, comment and parameters. NoSuchObject, MetaError; InvalidOperation for another name.

    Another name is ignored where the request has no other value: Hive's own tests send one, and no client renames a database this way.
    """
    if name is None:
        raise MetaError("Database name cannot be null.")
    catalog, name = normalize(catalog), normalize(name)
    before = find_database(call, catalog, name)
    says_more = any(value is not None for field, value in vars(new).items() if field not in {"name", "catalogName"})
    if new.name is not None and normalize(new.name) != name and says_more:
        raise InvalidOperation(f"Database {catalog}.{name} can not be renamed to {new.name}: make that one and rename the tables into it")
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
            setattr(after, field, call.warehouse.of_database(getattr(new, field), before.locationUri))
    if before.locationUri and before.managedLocationUri == before.locationUri == after.managedLocationUri:
        after.managedLocationUri = after.locationUri
    return after


def drop_database(
    call: Call,
    catalog: str,
    name: str | None,
    *,
    delete_data: bool,
    cascade: bool,
    ignore_unknown: bool = False,
    environment: Mapping[str, str] | None = None,
) -> None:
    """Remove a database; with `cascade` all that is in it too. NoSuchObject, InvalidOperation, MetaError."""
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
    if is_source(database):
        raise InvalidOperation(
            f"can not drop a database which is a source of replication: {catalog}.{name}; take {SOURCE} out of its parameters first"
        )
    drop = _Drop(call, catalog, name, environment or {}, delete_data=delete_data)
    with change(call, DropDatabase(client=call.info, database=database, environment=drop.environment)) as current:
        if call.listeners.pre and cascade:
            drop.ask_of_all()

        def remove(session: Session) -> None:
            drop.remove(session, cascade=cascade)
            if delete_data:
                purge = drop.environment.get("ifPurge", "").lower() == "true"
                current.deletion.take(session, _doomed(database, drop.tables, drop.outside, purge=purge))

        current.write(remove)
    for table in drop.tables:
        call.listeners.after(drop.event(table), None)


class _Drop:
    """The drop of one database: the objects that it removes, and the tables about which the listeners were asked."""

    def __init__(self, call: Call, catalog: str, name: str, environment: Mapping[str, str], *, delete_data: bool) -> None:
        self._call = call
        self._where = (catalog, name)
        self._delete_data = delete_data
        self._asked: set[int | None] = set()
        self.environment = environment
        self.tables: list[Table] = []
        self.outside: dict[int | None, list[str]] = {}
        """Locations of partitions beside their table's, by the table's key."""

    def event(self, table: Table) -> DropTable:
        """Return the event of a dropped table."""
        return DropTable(client=self._call.info, table=table, delete_data=self._delete_data, environment=self.environment)

    def ask_of_all(self) -> None:
        """Ask the listeners about all tables before the transaction, so that a slow one holds no lock.

        A table that is made meanwhile is asked about inside the transaction.
        """
        database = self._call.database
        for table in database.read(lambda session: tables.all_of(session, *self._where)):
            self._ask(table)

    def _ask(self, table: Table) -> DropTable:
        """Ask the listeners about a table once; return its event."""
        event = self.event(table)
        if table.id not in self._asked:
            self._call.listeners.before(event)
            self._asked.add(table.id)
        return event

    def remove(self, session: Session, *, cascade: bool) -> None:
        """Remove the rows of the database and of all in it. NoSuchObject, InvalidOperation, MetaError."""
        key = databases.lock(session, *self._where)
        if key is None:
            raise NoSuchObject(f"There is no database {'.'.join(self._where)}")
        kinds = databases.contents(session, key)
        if kinds and not cascade:
            raise InvalidOperation(f"Database {self._where[1]} is not empty. One or more {kinds[0]} exist.")
        self.tables = self._locked_tables(session, key) if "tables" in kinds else []
        self._call.listeners.within([self._ask(table) for table in self.tables], session)
        self.outside = self._outside(session, key)
        bulk.delete_contents(session, key, kinds)
        if any(is_transactional(table) for table in self.tables):
            dependents.delete_database(session, *self._where)
        databases.delete(session, key)

    def _locked_tables(self, session: Session, key: int) -> list[Table]:
        """Lock all tables and return them. MetaError if a materialized view elsewhere is made from one."""
        tables.lock_all(session, key)
        used = view_sources.made_from_database(session, *self._where)
        if used:
            raise MetaError(f"Cannot drop database {self._where[1]} as its tables are used in {named_views(self._call, used)}")
        return tables.all_of(session, *self._where)

    def _outside(self, session: Session, key: int) -> dict[int | None, list[str]]:
        found: dict[int | None, list[str]] = defaultdict(list)
        if self._delete_data and any(table.partitionKeys for table in self.tables):
            for table_id, location in partitions.locations_outside_in(session, key):
                found[table_id].append(location)
        return found


def named_views(call: Call, used: Sequence[str]) -> str:
    """Return an error's text about materialized views that prevent a drop: only their number where the names are hidden."""
    if call.may_name_others:
        return f"the following materialized views {used}"
    return f"{len(used)} materialized views: drop them first, or have an administrator do it"


def _doomed(database: Database, dropped: Sequence[Table], outside: Mapping[int | None, Sequence[str]], *, purge: bool) -> Doomed:
    """Return the locations to delete of a dropped database and its tables; `outside` are partitions' locations beside their table's, by its
    key.

    The data of its external tables stays, wherever it is.
    """
    doomed: dict[bool, list[str]] = {False: [], True: []}
    kept: list[Occupant] = []
    for table in dropped:
        locations = [*outside.get(table.id, ()), *([table.sd.location] if table.sd is not None and table.sd.location else ())]
        if purges_data(table):
            doomed[purge or skips_trash(table)] += locations
        else:
            label = f"data of the external table {table.catName}.{table_label(table)}"
            kept += [Occupant(place, location, label) for location in locations if (place := place_of(location))]
    own = [location for location in (database.managedLocationUri, database.locationUri) if location]
    batches = [*((places, skips) for skips, places in doomed.items()), (own, purge)]
    return Doomed(f"database {database.catalogName}.{database.name}", batches, below=database.locationUri, kept=kept)


def skips_trash(table: Table) -> bool:
    """Return whether a table's data is to be deleted for good when dropped (`auto.purge`, `skip.trash`)."""
    parameters = table.parameters or {}
    return any(parameters.get(key, "").lower() == "true" for key in ("auto.purge", "skip.trash"))
