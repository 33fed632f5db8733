"""Move partitions from one table to another, their directories with them. Source: Hive's HMSHandler.exchange_partitions.

The directory of each partition is moved separately: the target may have other partitions below the same leading keys. If one directory can
not be moved, all are moved back. Column statistics follow, since the data is the same. Privileges do not: they were granted on another
table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy

import orjson

from metastore.errors import MetaError, NoSuchObject
from metastore.idl import FieldSchema, Partition, Table
from metastore.listeners.events import AddPartitions, DropPartitions
from metastore.rules.catalog.table_kinds import VIEWS, is_transactional
from metastore.rules.values.partition_names import partial_values
from metastore.service.call.context import Call
from metastore.service.call.names import TableName
from metastore.service.catalog.partitions.drop_partitions import remove_empty_parents
from metastore.service.catalog.tables.tables import find_table
from metastore.service.changes.change import change
from metastore.service.changes.occupants import named, occupants
from metastore.service.transactions.replication import is_source
from metastore.store.catalog import databases
from metastore.store.catalog.partitions import partitions
from metastore.store.catalog.tables import tables
from metastore.store.core.database import Session
from metastore.warehouse.locations import is_absolute, join, same_place

Moves = list[tuple[str, str]]


def exchange_partitions(call: Call, spec: Mapping[str, str], source: TableName, target: TableName) -> list[Partition]:
    """Move the partitions that a spec (key -> value) selects; return them as they are in the target, ascending by name.

    The spec gives values to leading keys; names that are not keys are ignored. MetaError when it selects nothing, when the tables' columns
    or keys differ, when the target has one of the partitions or its place is taken, and when a partition is not at its default place. Then
    nothing has changed.
    """
    if source.catalog != target.catalog:
        raise MetaError("You cannot move a partition across catalogs")
    new_table, old_table = _table(call, target, "destination"), _table(call, source, "source")
    prefix, matches = selected(call, spec, old_table)
    dropping = DropPartitions(client=call.info, table=old_table, partitions=[], delete_data=True)
    with change(call, AddPartitions(client=call.info, table=new_table, partitions=[])) as current:
        call.listeners.before(dropping)

        def work(session: Session) -> tuple[Table, list[Partition], Moves]:
            there, here = _lock(call, session, new_table, old_table)
            _check_schemas(there, here)
            _check_databases(session, source, target)
            assert here.id is not None
            assert there.id is not None
            names = [name for name, found in partitions.names_with_prefix(session, here.id, prefix) if matches(orjson.loads(found))]
            found = partitions.lock_named(session, here, names) if names else []
            if not found:
                raise MetaError(f"No partition is found with the values {dict(spec)} for the table {source}")
            names = [name for _, name, _ in found]
            current.subject = ("partitions", *target, names)
            if taken := partitions.existing(session, there.id, names):
                raise MetaError(f"The partition {min(taken)} already exists in the table {target}")
            moved = [(key, name, _moved(there, name, partition)) for key, name, partition in found]
            exchanged = [(name, old, new) for (_, name, old), (_, _, new) in zip(found, moved, strict=True)]
            moves = _moves(call, here, exchanged)
            _check_alone(call, session, here, exchanged)
            partitions.hand_over(session, here, there, moved)
            current.move_directories(moves)
            added = [partition for _, _, partition in moved]
            current.event = AddPartitions(client=call.info, table=there, partitions=added)
            current.further = [
                DropPartitions(client=call.info, table=here, partitions=[partition for _, _, partition in found], delete_data=True)
            ]
            return here, added, moves

        here, added, moves = current.write(work)
    remove_empty_parents(call, here, [place for place, _ in moves])
    return added


def _table(call: Call, name: TableName, what: str) -> Table:
    try:
        return find_table(call, name)
    except NoSuchObject as error:
        raise MetaError(f"The {what} table {name} not found") from error


def selected(call: Call, spec: Mapping[str, str], table: Table) -> tuple[str, Callable[[Sequence[str]], bool]]:
    """Return the common beginning of the names of the partitions that a spec selects, and a predicate on their values. MetaError."""
    return partial_values([key.name for key in table.partitionKeys], _values(spec, table), call.config.default_partition_name)


def _values(spec: Mapping[str, str], table: Table) -> list[str]:
    """Return the values that a spec gives to a table's leading keys. MetaError when it gives none, or leaves one out in between."""
    given = {key.lower(): value for key, value in spec.items() if value}
    keys = [key.name for key in table.partitionKeys]
    values = [given[key] for key in keys if key in given]
    if not values or any(key not in given for key in keys[: len(values)]):
        raise MetaError(
            f"The partition spec {dict(spec)} gives no values to the leading partition keys of {table.dbName}.{table.tableName}, "
            f"which are {', '.join(keys) or 'none'}: give a value to the first key, or to the first few"
        )
    return values


def _lock(call: Call, session: Session, target: Table, source: Table) -> tuple[Table, Table]:
    """Hold both tables, in the order of their names as every exchange does; return (target, source) as they are now."""
    held: dict[int | None, Table] = {}
    for table in sorted((target, source), key=lambda table: (table.dbName, table.tableName)):
        found = tables.locked(session, table, tables.lock_known(session, table))
        if found is None:
            raise MetaError(f"The table {table.dbName}.{table.tableName} was dropped meanwhile")
        held[table.id] = found
    return held[target.id], held[source.id]


def _check_schemas(target: Table, source: Table) -> None:
    for table in (target, source):
        if table.sd is None or table.tableType in VIEWS:
            raise MetaError(f"{table.dbName}.{table.tableName} is a view: it has no partitions whose data could be exchanged")
        if is_transactional(table):
            raise MetaError(
                f"{table.dbName}.{table.tableName} is transactional: the write ids of its files mean nothing in another table; "
                "insert the rows there instead"
            )
    if not _same(source.sd.cols, target.sd.cols) or not _same(source.partitionKeys, target.partitionKeys):
        raise MetaError("The tables have different schemas. Their partitions cannot be exchanged.")


def _same(some: Sequence[FieldSchema], other: Sequence[FieldSchema]) -> bool:
    return [(field.name, field.type) for field in some] == [(field.name, field.type) for field in other]


def _check_databases(session: Session, source: TableName, target: TableName) -> None:
    """Refuse to move data out of or into a database that is being replicated, unless both tables are in it."""
    if source.database == target.database:
        return
    for name in (source, target):
        database = databases.find(session, name.catalog, name.database)
        if database is not None and is_source(database):
            raise MetaError(f"Exchange partition not allowed for {source} Dest db : {target.database}: {name.database} is being replicated")


def _moved(target: Table, name: str, partition: Partition) -> Partition:
    """Return a partition as it will be in the target."""
    new = copy(partition)
    new.dbName, new.tableName = target.dbName, target.tableName
    if partition.sd is not None:
        new.sd = copy(partition.sd)
        new.sd.location = join(target.sd.location, name)
    return new


def _check_alone(call: Call, session: Session, table: Table, exchanged: Sequence[tuple[str, Partition, Partition]]) -> None:
    """Refuse to move a directory that is, or contains, the location of another object. MetaError."""
    names = {name for name, _, _ in exchanged}
    found = occupants(session, [old.sd.location for _, old, _ in exchanged], below=table.sd.location, own=(table.id, names))
    for each in found:
        if each.table_id != table.id or each.partition not in names:
            raise MetaError(
                f"The directory {each.location} is also the location of {named(call, table, [each])}: it can not be moved with a partition"
            )


def _moves(call: Call, table: Table, exchanged: Sequence[tuple[str, Partition, Partition]]) -> Moves:
    """Return the moves of directories. MetaError when one is missing or is not at its default place."""
    warehouse = call.warehouse
    for name, old, _ in exchanged:
        place = old.sd.location if old.sd is not None else None
        if not place or not is_absolute(place) or not same_place(place, join(table.sd.location, name)):
            raise MetaError(
                f"The partition {name} of {table.dbName}.{table.tableName} is at {place}, not at its default place: "
                "move its data there or drop it and add it to the other table"
            )

    def one(each: tuple[str, Partition, Partition]) -> tuple[str, str] | None:
        name, old, new = each
        if warehouse.was_moved(old.sd.location, new.sd.location):
            return None
        if warehouse.missing(old.sd.location):
            raise MetaError(f"The directory {old.sd.location} of the partition {name} does not exist")
        if warehouse.exists(new.sd.location):
            raise MetaError(f"The directory {new.sd.location} exists already: no partition can move there")
        return (old.sd.location, new.sd.location) if warehouse.is_directory(old.sd.location) else None

    return [move for move in warehouse.each(one, exchanged, table.sd.location) if move is not None]
