"""Compute the default places of objects without a location, by the same rules as the call. Never decides, never makes anything.

An object that the call will refuse has no place here: the call reports why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy, deepcopy
from functools import wraps
from typing import ParamSpec

from metastore.errors import MetastoreError
from metastore.idl import Table
from metastore.rules.catalog.table_kinds import VIEWS
from metastore.rules.catalog.table_types import moves_on_rename
from metastore.rules.values.partition_names import values_for_keys
from metastore.service.call.context import Call
from metastore.service.call.names import TableName
from metastore.service.catalog import translation
from metastore.service.catalog.databases import default_location, find_database
from metastore.service.catalog.exchange import selected
from metastore.service.catalog.partitions.partitions import partition_names
from metastore.service.catalog.tables.alter_table import place_of_new_name
from metastore.service.catalog.tables.create_table import dry_run
from metastore.service.catalog.tables.tables import find_table
from metastore.store.catalog import catalogs
from metastore.warehouse.locations import join

P = ParamSpec("P")


def _of_what_is_taken(find: Callable[P, Iterable[str]]) -> Callable[P, Sequence[str]]:
    """Make a function return no places where it raises a MetastoreError: the call will be refused."""

    @wraps(find)
    def places(*args: P.args, **kwargs: P.kwargs) -> Sequence[str]:
        try:
            return tuple(find(*args, **kwargs))
        except MetastoreError:
            return ()

    return places


@_of_what_is_taken
def of_database(call: Call, catalog: str, name: str) -> Iterable[str]:
    """Return the place of a new database."""
    found = call.database.read(lambda session: catalogs.find(session, catalog))
    return () if found is None else [default_location(call, found, name)]


@_of_what_is_taken
def of_table(
    call: Call, new: Table, capabilities: Sequence[str] | None, identifier: str | None, environment: Mapping[str, str] | None
) -> Iterable[str]:
    """Return the place of a new table."""
    made = dry_run(call, deepcopy(new), capabilities=capabilities, identifier=identifier, environment=environment)
    return [made.sd.location] if made.tableType not in VIEWS and made.sd.location else []


@_of_what_is_taken
def of_new_name(call: Call, old: TableName, new: Table, new_name: TableName) -> Iterable[str]:
    """Return the place to which a rename moves the directory of a table."""
    before, database = find_table(call, old), find_database(call, new_name.catalog, new_name.database)
    after = copy(new)
    after.catName, after.dbName, after.tableName = new_name
    after.tableType, after.parameters = new.tableType or before.tableType, dict(new.parameters or {})
    if before.sd is None or not before.sd.location or new.sd is None:
        return []
    after.sd = copy(new.sd)
    after.sd.location = call.warehouse.qualified(new.sd.location, before.sd.location)
    after = translation.on_alter(call, database, before, after)
    place = call.database.read(lambda session: place_of_new_name(call, session, before, after, database))
    return [] if place is None else [place]


def _in(call: Call, table: Table, many: Iterable[Sequence[str] | None]) -> Iterable[str]:
    if table.tableType in VIEWS or table.sd is None or not table.sd.location:
        return []
    return [join(table.sd.location, each) for each in partition_names(call, table, many)]


@_of_what_is_taken
def of_partitions(call: Call, name: TableName, many: Sequence[Sequence[str] | None]) -> Iterable[str]:
    """Return the places of new partitions of these values."""
    return _in(call, find_table(call, name), many) if many else []


@_of_what_is_taken
def of_partition_name(call: Call, name: TableName, partition: str) -> Iterable[str]:
    """Return the place of a new partition of a name."""
    table = find_table(call, name)
    return _in(call, table, [values_for_keys([key.name for key in table.partitionKeys], partition, may_have_more=True)])


@_of_what_is_taken
def of_new_values(call: Call, name: TableName, values: Sequence[str] | None) -> Iterable[str]:
    """Return the place to which new values may move the directory of a partition."""
    table = find_table(call, name)
    return _in(call, table, [values]) if moves_on_rename(table) else []


@_of_what_is_taken
def of_exchanged(call: Call, spec: Mapping[str, str], source: TableName, target: TableName) -> Iterable[str]:
    """Return the directory that is, or holds, the locations of the partitions that a spec moves to another table."""
    prefix, _ = selected(call, spec, find_table(call, source))
    return [join(find_table(call, target).sd.location, prefix.rstrip("/"))]
