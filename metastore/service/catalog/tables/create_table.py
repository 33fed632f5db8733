"""Create a table: check, translate, claim its name, make its directory. Source: Hive's HMSHandler.create_table_core."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from metastore.errors import AlreadyExists, InvalidObject, MetaError, NoSuchObject
from metastore.idl import Database, DatabaseType, PrincipalType, StorageDescriptor, Table
from metastore.listeners.events import AddConstraints, CreateTable
from metastore.rules.catalog.columns import repeated_column, strangers
from metastore.rules.catalog.table_kinds import VIEWS
from metastore.rules.names import normalize, validate_table_name
from metastore.rules.statistics import statistics_validity
from metastore.rules.values.types import validate_columns
from metastore.service.call.clock import now_ms
from metastore.service.call.context import Call
from metastore.service.call.names import TableName, table_name
from metastore.service.catalog import constraints as constraint_service
from metastore.service.catalog import privileges, translation
from metastore.service.catalog.statistics import quick_stats, write_statistics
from metastore.service.changes.change import change
from metastore.store.catalog import databases
from metastore.store.catalog.tables import tables
from metastore.store.core.database import Session

CREATION_MARKS = ("created_with_ctas", "created_with_ctlt")


def create_table(
    call: Call,
    table: Table,
    *,
    environment: Mapping[str, str] | None = None,
    constraints: Sequence[Any] = (),
    capabilities: Sequence[str] | None = None,
    identifier: str | None = None,
) -> None:
    """Make a table, its directory and its constraints (structs such as SQLPrimaryKey).

    InvalidObject for names and columns, NoSuchObject for the database, AlreadyExists, MetaError.
    """
    environment = environment or {}
    name = _claimed_name(call, table)
    _check(call, table)
    columns = statistics_validity.wanted_columns(table.dictionary)
    gathers = _complete(call, table, environment)
    brought, table.colStats = table.colStats, None  # they are not part of the event
    if brought is not None:
        write_statistics.check_brought(call, table, [brought])
    with change(call, CreateTable(client=call.info, table=table, environment=environment), ("table", *name)) as current:

        def work(session: Session) -> None:
            key, database = _free(call, session, name)
            stored = translation.on_create(call, database, table, capabilities, identifier, environment)
            place = stored.sd.location if stored.tableType not in VIEWS else None
            reach = quick_stats.reach_of(call, stored)
            if columns is not None and place and reach.look(call.warehouse.is_empty, place, False):
                stored.parameters = statistics_validity.of_empty(stored.parameters, columns or [column.name for column in stored.sd.cols])
            if gathers and place and reach.look(call.warehouse.is_directory, place, False):
                stored.parameters = quick_stats.from_directory(call, stored.parameters, place, environment, reach)
            stored.id = tables.insert(session, key, stored)
            if table.privileges is not None:
                privileges.grant_with_table(session, stored, table.privileges)
            if constraints:
                constraint_service.insert(call, session, stored, constraints)
            if place:
                current.make_directories([place], reach)
            current.event = CreateTable(client=call.info, table=stored, environment=environment)
            if constraints:
                current.further = [AddConstraints(client=call.info, table=stored, constraints=constraints)]

        current.write(work)
    if brought is not None:
        write_statistics.write_brought(call, name, [(brought, table.writeId)])


def _claimed_name(call: Call, table: Table) -> TableName:
    """Normalise the catalog, database and name in a table, and return them. MetaError, InvalidObject."""
    if table.tableName is None:
        raise MetaError("Table name cannot be null: set tableName")
    if table.dbName is None:
        raise InvalidObject(f"Database name of table {table.tableName} cannot be null: set dbName")
    name = table_name(table.dbName, table.tableName, table.catName, call.config.default_catalog)
    table.catName, table.dbName, table.tableName = name
    return name


def _complete(call: Call, table: Table, environment: Mapping[str, str]) -> bool:
    """Give a table its times, its type of owner and the parameters to store; return whether its basic statistics are to be gathered."""
    table.createTime = int(time.time())
    table.ownerType = table.ownerType or PrincipalType.USER
    if table.creationMetadata is not None:
        table.creationMetadata.materializationTime = now_ms()
    table.parameters = {key: value for key, value in (table.parameters or {}).items() if key not in CREATION_MARKS}
    table.parameters.setdefault("transient_lastDdlTime", str(table.createTime))
    gathers = quick_stats.wanted(call, table.parameters, environment) and not table.partitionKeys
    table.parameters = quick_stats.without_marker(table.parameters)
    return gathers


def _free(call: Call, session: Session, name: TableName) -> tuple[int, Database]:
    """Lock the database of a table that does not exist yet; return its key and the database. NoSuchObject, AlreadyExists, MetaError."""
    key = databases.share(session, name.catalog, name.database)
    database = databases.find(session, name.catalog, name.database) if key is not None else None
    if database is None or key is None:
        raise NoSuchObject(f"The database {name.catalog}.{name.database} does not exist")
    if database.type == DatabaseType.REMOTE:
        raise MetaError(f"Create table in REMOTE database {name.database} is not allowed: make it where the database's tables are")
    if tables.find(session, *name) is not None:
        raise AlreadyExists(f"Table {name} already exists")
    return key, database


def dry_run(
    call: Call, table: Table, *, capabilities: Sequence[str] | None, identifier: str | None, environment: Mapping[str, str] | None = None
) -> Table:
    """Return the table as `create_table` would store it, and store nothing. InvalidObject, NoSuchObject, MetaError."""
    name = table_name(table.dbName, table.tableName, table.catName, call.config.default_catalog)
    table.catName, table.dbName, table.tableName = name
    _check(call, table)
    database = call.database.read(lambda session: databases.find(session, name.catalog, name.database))
    if database is None:
        raise NoSuchObject(f"The database {name.catalog}.{name.database} does not exist")
    return translation.on_create(call, database, table, capabilities, identifier, environment or {})


def _check(call: Call, table: Table) -> None:
    """Refuse invalid values, and set containers that were not sent to empty ones."""
    validate_table_name(table.tableName, call.takes_special_characters)
    if table.sd is None:
        if table.tableType not in VIEWS:
            raise MetaError(f"Table {table.dbName}.{table.tableName} has no storage descriptor: set sd")
        table.sd = StorageDescriptor(cols=[])
    if table.sd.serdeInfo is None and table.tableType not in VIEWS:
        raise MetaError(f"Table {table.dbName}.{table.tableName} has no serde: set sd.serdeInfo")
    validate_columns(table.sd.cols, table.partitionKeys, table.sd.skewedInfo)
    table.partitionKeys = table.partitionKeys or []
    columns = {normalize(column.name) for column in table.sd.cols}
    for key in table.partitionKeys:
        if normalize(key.name) in columns:
            raise InvalidObject(f"Partition column name {key.name} conflicts with table columns.")
    if twice := repeated_column(table.sd.cols, table.partitionKeys):
        raise InvalidObject(f"Table {table.dbName}.{table.tableName} has the column {twice} twice; names are the same in any case")
    if missing := strangers(table.sd):
        raise InvalidObject(
            f"Table {table.dbName}.{table.tableName} has no columns {missing} to bucket, sort or skew by: name some of its columns"
        )
