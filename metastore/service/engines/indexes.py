"""Indexes of tables, as Hive had them until 2.3: kept for its clients, used by nobody else. Source: Hive 2.3's HiveMetaStore, ObjectStore.

The content of an index is in a table of its own, which its client makes with it and fills. That table is dropped with the index, and the
index with its indexed table. Changes of indexes are not notified, since the notification log is Hive 4's; changes of their tables are.
"""

from __future__ import annotations

import time
from contextlib import suppress
from copy import copy

from metastore.errors import AlreadyExists, InvalidObject, InvalidOperation, MetaError, MetastoreError, NoSuchObject
from metastore.idl import Index, Table
from metastore.rules.catalog.table_kinds import INDEX_TABLE
from metastore.rules.names import normalize
from metastore.service.call.context import Call
from metastore.service.call.names import TableName, table_name
from metastore.service.catalog.tables.create_table import create_table
from metastore.service.catalog.tables.tables import drop_table, drop_table_and
from metastore.store.catalog.tables import indexes, tables
from metastore.store.core.database import Session

CHANGED = "transient_lastDdlTime"
"""The parameter with the time of an index's last change, in seconds."""


def index_table_name(index: Index, default_catalog: str) -> TableName:
    """Return the name of an index's own table, which may be in another database. MetaError for none."""
    database, _, name = (index.indexTableName or "").rpartition(".")
    return table_name(database or index.dbName, name or None, None, default_catalog)


def get_index(call: Call, table: TableName, name: str | None) -> Index:
    """Return an index. NoSuchObject."""
    found = call.database.read(lambda session: indexes.find(session, *table, normalize(name or "")))
    if found is None:
        raise NoSuchObject(f"{table.database}.{table.table} index={name} not found")
    return found


def get_indexes(call: Call, table: TableName, limit: int | None) -> list[Index]:
    """Return a table's indexes, ascending by name: none for a missing table, all for a negative limit."""
    found = call.database.read(lambda session: indexes.all_of(session, *table))
    return found if limit is None or limit < 0 else found[:limit]


def add_index(call: Call, index: Index | None, index_table: Table | None) -> Index:
    """Add an index and return it; its table is made first if one is sent. InvalidObject, AlreadyExists, MetaError."""
    new = _checked(index)
    base = table_name(new.dbName, new.origTableName, None, call.config.default_catalog)
    place = index_table_name(new, call.config.default_catalog)
    if index_table is not None:
        _check_free(call, base, place, new)
        create_table(call, index_table)

    def work(session: Session) -> None:
        key = tables.share(session, *base)
        if key is None:
            raise InvalidObject(f"Unable to add index because database or the orginal table do not exist: {base}")
        if indexes.find(session, *base, new.indexName) is not None:
            raise AlreadyExists(f"Index already exists: {base}.{new.indexName}")
        index_table_id = tables.share(session, *place)
        found = None if index_table_id is None else tables.find(session, *place)
        if index_table_id is None or found is None:
            raise InvalidObject(f"Underlying index table does not exist for the given index: {place}")
        if index_table is None and found.tableType != INDEX_TABLE:
            raise InvalidObject(f"Table {place} can not hold an index: its type is {found.tableType} and not {INDEX_TABLE}")
        if (owner := indexes.owner(session, index_table_id)) is not None:
            raise InvalidObject(f"Index table {place} belongs to index {owner}: send a table with the new index")
        indexes.insert(session, key, index_table_id, new)

    try:
        call.database.write(work)
    except MetastoreError:
        if index_table is not None:
            with suppress(MetastoreError):
                drop_table(call, place, delete_data=False)
        raise
    return get_index(call, base, new.indexName)


def _checked(index: Index | None) -> Index:
    """Return an index as it will be stored. InvalidObject."""
    if index is None or index.indexName is None:
        raise InvalidObject("The index or its name is missing: set Index.indexName")
    if index.sd is None:
        raise InvalidObject(f"Storage descriptor is not defined for index {index.indexName}.")
    new, now = copy(index), int(time.time())
    new.indexName, new.createTime = normalize(index.indexName), now
    new.parameters = {**(index.parameters or {}), CHANGED: str(now)}
    return new


def _check_free(call: Call, base: TableName, place: TableName, index: Index) -> None:
    """Raise the errors of `add_index` before a table is made for nothing."""
    database = call.database
    if database.read(lambda session: tables.key(session, *base)) is None:
        raise InvalidObject(f"Unable to add index because database or the orginal table do not exist: {base}")
    if database.read(lambda session: indexes.find(session, *base, index.indexName)) is not None:
        raise AlreadyExists(f"Index already exists: {base}.{index.indexName}")
    if database.read(lambda session: tables.key(session, *place)) is not None:
        raise InvalidObject(f"Unable to add index because index table already exists: {place}")


def alter_index(call: Call, table: TableName, name: str | None, new: Index | None) -> None:
    """Change the parameters of an index; Hive changes nothing else. InvalidOperation, MetaError."""
    if new is None:
        raise InvalidOperation("new index is invalid: send one")
    parameters = {**(new.parameters or {}), CHANGED: str(int(time.time()))}
    if not call.database.write(lambda session: indexes.set_parameters(session, *table, normalize(name or ""), parameters)):
        raise MetaError(f"index {name} doesn't exist")


def drop_index(call: Call, table: TableName, name: str | None, *, delete_data: bool) -> None:
    """Remove an index with its table. NoSuchObject, MetaError."""
    index = get_index(call, table, name)

    def work(session: Session) -> None:
        if not indexes.delete(session, *table, index.indexName):
            raise NoSuchObject(f"{table.database}.{table.table} index={name} not found")

    drop_table_and(call, index_table_name(index, table.catalog), work, delete_data=delete_data)
