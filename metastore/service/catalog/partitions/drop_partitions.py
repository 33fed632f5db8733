"""Drop partitions by values, names or request: rows first, then data. Source: Hive's HMSHandler.drop_partition_common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from metastore.errors import InvalidObject, MetaError, NoSuchObject
from metastore.idl import Partition, Table
from metastore.listeners.events import DropPartitions
from metastore.places import is_in, place_of
from metastore.rules.catalog.table_kinds import VIEWS, is_transactional
from metastore.rules.catalog.table_types import purges_data
from metastore.rules.values.partition_names import values_for_keys
from metastore.service.call.context import Call
from metastore.service.call.names import TableName
from metastore.service.catalog.databases import skips_trash
from metastore.service.catalog.partitions.partitions import names_as_stored, partition_name
from metastore.service.catalog.tables import empty_bases, soft_drops
from metastore.service.catalog.tables.tables import find_table
from metastore.service.changes.change import change
from metastore.service.changes.deletion import Doomed
from metastore.store.catalog import dependents
from metastore.store.catalog.partitions import partitions
from metastore.store.core.database import Session
from metastore.store.transactions.write_ids import TableKey
from metastore.warehouse.locations import parse, prefix


def drop_partition(
    call: Call, name: TableName, values: Sequence[str] | None, *, delete_data: bool, environment: Mapping[str, str] | None = None
) -> None:
    """Drop the partition with these values. NoSuchObject, MetaError."""
    if values is None:
        raise MetaError(f"{name}: partition values cannot be null")
    table = _table(call, name)
    found = partition_name(call, table, values)
    drop_named(call, name, table, [found], delete_data=delete_data, environment=environment)


def drop_partition_by_name(
    call: Call, name: TableName, partition: str | None, *, delete_data: bool, environment: Mapping[str, str] | None = None
) -> None:
    """Drop the partition of this name, with its keys in any order. NoSuchObject, MetaError.

    Keys that the table does not have are ignored, which Hive's clients expect of this call alone.
    """
    table = _table(call, name)
    if not partition:
        raise MetaError(f"{name}: the partition name is null or empty")
    try:
        values = values_for_keys([key.name for key in table.partitionKeys], partition, may_have_more=True)
    except InvalidObject as error:
        raise NoSuchObject(error.message) from error
    found = partition_name(call, table, values)
    drop_named(call, name, table, [found], delete_data=delete_data, environment=environment)


def drop_partitions(
    call: Call,
    name: TableName,
    wanted: Sequence[str],
    *,
    delete_data: bool,
    if_exists: bool,
    environment: Mapping[str, str] | None = None,
) -> list[Partition]:
    """Drop the named partitions; with `if_exists` missing ones are left out. Returns the dropped. NoSuchObject, MetaError."""
    table = _table(call, name)
    wanted = names_as_stored(call, table, wanted)
    return drop_named(call, name, table, wanted, delete_data=delete_data, if_exists=if_exists, environment=environment)


def _table(call: Call, name: TableName) -> Table:
    return find_table(call, name)


def drop_named(
    call: Call,
    name: TableName,
    table: Table,
    wanted: Sequence[str],
    *,
    delete_data: bool,
    if_exists: bool = False,
    environment: Mapping[str, str] | None = None,
) -> list[Partition]:
    """Drop partitions by their stored names in one transaction."""
    environment = environment or {}
    event = DropPartitions(client=call.info, table=table, partitions=[], delete_data=delete_data, environment=environment)
    with change(call, event) as current:

        def work(session: Session) -> tuple[Table, list[Partition], Sequence[str]]:
            locked = partitions.Locking(session, table, list(dict.fromkeys(wanted))).locked()
            if locked is None:
                raise NoSuchObject(f"{name} table not found")
            held, found = locked
            names = [each for _, each, _ in found]
            missing = set(wanted) - set(names)
            if missing and not if_exists:
                raise NoSuchObject(f"Partition or table doesn't exist. {name} {min(missing)}")
            dropped = [partition for _, _, partition in found]
            current.event = DropPartitions(
                client=call.info, table=table, partitions=dropped, delete_data=delete_data, environment=environment
            )
            purges = delete_data and purges_data(held) and held.tableType not in VIEWS
            if purges:
                _check_writable(call, dropped)
            if found:
                partitions.delete(session, held, [key for key, _, _ in found])
                if is_transactional(held):
                    dependents.delete_partitions(session, TableKey(*name), names)
                    if not delete_data:
                        _hand_over(call, session, name, held, dict(zip(names, dropped, strict=True)), environment)
            if purges:
                doomed = _doomed(name, held, dict(zip(names, dropped, strict=True)), purge=_purges(held, environment))
                current.deletion.take(session, doomed)
                return held, dropped, doomed.batches[0][0]
            if dropped and is_transactional(held) and (write_id := soft_drops.dropping_write_id(environment)) > 0:
                # The cleaner leaves the directory alone if a later partition uses it. The base hides these rows from that partition.
                locations = [each.sd.location for each in dropped if each.sd is not None]
                empty_bases.write(current, locations, write_id, empty_bases.DROPPED)
            return held, dropped, []

        held, dropped, locations = current.write(work)
    remove_empty_parents(call, held, locations)
    return dropped


def _hand_over(
    call: Call, session: Session, name: TableName, table: Table, dropped: Mapping[str, Partition], environment: Mapping[str, str]
) -> None:
    """Leave the files of dropped partitions to the cleaner, if the transaction that drops them asks for it."""
    if soft_drops.dropping_transaction(environment):
        places = [(each, partition.sd.location) for each, partition in dropped.items() if partition.sd is not None]
        soft_drops.hand_over(call, session, name, places, environment, purge=_purges(table, environment))


def _purges(table: Table, environment: Mapping[str, str]) -> bool:
    return environment.get("ifPurge", "").lower() == "true" or skips_trash(table)


def _check_writable(call: Call, partitions: Sequence[Partition]) -> None:
    """Refuse before anything changes when a directory could not be removed from its parent. MetaError."""
    locations = [location for partition in partitions if (location := _data(partition))]
    for parent, location in {location.rstrip("/").rpartition("/")[0]: location for location in locations}.items():
        if not call.warehouse.is_writable(parent):
            raise MetaError(f"Table partition not deleted since its parent directory is not writable: {location}")


def _data(partition: Partition) -> str | None:
    """Return the location of a partition's data; for an archived one it is the original location."""
    if (partition.parameters or {}).get("is_archived", "").lower() == "true":
        return partition.parameters.get("original_location")
    return partition.sd.location if partition.sd is not None else None


def _doomed(name: TableName, table: Table, dropped: Mapping[str, Partition], *, purge: bool) -> Doomed:
    """Return the locations to delete of dropped partitions."""
    locations = list(dict.fromkeys(location for partition in dropped.values() if (location := _data(partition))))
    subject = f"{len(dropped)} partitions of {name}" if len(dropped) != 1 else f"partition {name} {min(dropped)}"
    return Doomed(subject, [(locations, purge)], below=table.sd.location, own=(table.id, dropped.keys()))


def remove_empty_parents(call: Call, table: Table, locations: Sequence[str]) -> None:
    """Remove the directories above the dropped partitions' directories, below the table's, that are empty now."""
    root = place_of(table.sd.location) or ""

    def is_inside(location: str) -> bool:
        place = place_of(location)
        return place is not None and place != root and is_in(place, root)

    inner = [parse(location) for location in locations if len(table.partitionKeys) > 1 and is_inside(location)]
    above = {f"{prefix(each)}{each.path}".rstrip("/").rpartition("/")[0] for each in inner}
    for _ in range(len(table.partitionKeys) - 1):
        above = set(filter(is_inside, above))
        for parent in above:
            call.warehouse.remove_if_empty(parent)
        above = {parent.rpartition("/")[0] for parent in above}
