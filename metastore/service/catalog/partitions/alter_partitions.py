"""Alter and rename partitions. Source: Hive's HiveAlterHandler.alterPartition(s).

A rename moves the directory to its new default place when it is in the table's directory, the server may move the table's data, and no
other object's location is in it. It is moved back when the transaction fails. Column statistics stay where columns stay, also on a rename,
and are lost where columns are removed or change their type.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from copy import copy

import structlog

from metastore.errors import AlreadyExists, InvalidOperation, MetaError, NoSuchObject
from metastore.idl import Partition, StorageDescriptor, Table
from metastore.listeners.events import AlterPartitions
from metastore.rules.catalog.columns import difference, follow, is_clustered, lost_columns, repeated_column, strangers, without_keys
from metastore.rules.catalog.table_kinds import VIEWS, is_transactional, keeps_own_columns, table_label
from metastore.rules.catalog.table_types import moves_on_rename
from metastore.rules.statistics import statistics_validity
from metastore.rules.statistics.statistics_validity import NOBODY, StatisticsWriter
from metastore.rules.values.partition_names import validate_values
from metastore.rules.values.types import invalid_column, validate_column_changes
from metastore.service.call.context import Call
from metastore.service.call.names import TableName
from metastore.service.catalog.partitions.drop_partitions import remove_empty_parents
from metastore.service.catalog.partitions.partitions import check_belongs, partition_name, partition_names
from metastore.service.catalog.statistics import quick_stats
from metastore.service.catalog.tables.alter_table import checks_types
from metastore.service.catalog.tables.tables import find_table, on_cached_table
from metastore.service.catalog.translation import AT_ROOT
from metastore.service.changes.change import change
from metastore.service.changes.occupants import occupants
from metastore.store.catalog import dependents, statistics
from metastore.store.catalog.partitions import partitions
from metastore.store.catalog.partitions.partition_structs import share_columns
from metastore.store.catalog.tables.tables import Known
from metastore.store.core.database import Session
from metastore.store.transactions.write_ids import TableKey
from metastore.warehouse.locations import is_absolute, is_below, is_root, join, same_place

log = structlog.get_logger()
DDL_TIME = "transient_lastDdlTime"


def alter_partitions(
    call: Call, name: TableName, new: Sequence[Partition], *, environment: Mapping[str, str] | None = None, by: StatisticsWriter = NOBODY
) -> None:
    """Replace the definitions of partitions, found by their values. InvalidOperation when one is missing; MetaError.

    A partition's own write id counts where `by` has none.
    """
    try:
        on_cached_table(call, name, lambda known: _alter(call, name, known, new, environment or {}, by))
    except NoSuchObject as error:
        raise _no_table(name) from error


def _alter(
    call: Call, name: TableName, known: Known, new: Sequence[Partition], environment: Mapping[str, str], by: StatisticsWriter
) -> None:
    table = known.table
    for partition in new:
        if partition is None:
            raise MetaError(f"{name}: a partition in the list is null")
        check_belongs(name, partition)
    names = partition_names(call, table, [partition.values for partition in new])
    if len(set(names)) < len(names):
        raise MetaError(f"Duplicate partitions in the list for {name}")
    event = AlterPartitions(client=call.info, table=table, before=[], after=new, environment=environment)
    with change(call, event, ("partitions", *name, names)) as current:

        def work(session: Session) -> None:
            locking = partitions.Locking(session, table, names, known)
            share_columns(call.database, new)
            now = str(int(time.time()))
            sent = [_from_request(table, partition, now) for partition in new]
            held, locked = _locked(call, name, locking)
            found = {each: (key, old) for key, each, old in locked}
            alteration = _Alteration(call, held, environment)
            before, after, changed, other_columns, other_data = [], [], [], [], []
            for each, stored in zip(names, sent, strict=True):
                if each not in found:
                    raise InvalidOperation(
                        f"alter is not possible: partition {each} of {name} does not exist, values [{', '.join(stored.values)}]"
                    )
                key, old = found[each]
                if alteration.complete(stored, old, by):
                    other_data.append(key)
                before.append(old)
                after.append(stored)
                changed.append((key, each, stored))
                if old.sd is None or stored.sd.cols is not old.sd.cols:
                    other_columns.append((key, old, stored))
            if changed:
                partitions.replace(session, held, changed)
                _keep_statistics(session, other_columns)
                if other_data:
                    statistics.delete_partitions(session, other_data)
            current.event = AlterPartitions(client=call.info, table=held, before=before, after=after, environment=environment)

        current.write(work)


def rename_partition(
    call: Call, name: TableName, old_values: Sequence[str] | None, new: Partition, *, environment: Mapping[str, str] | None = None
) -> None:
    """Give a partition other values and definition; without old values it is an alter.

    InvalidOperation for a missing partition or a taken name (AlreadyExists and InvalidObject are mapped to it as Hive does), MetaError.
    """
    if not old_values:
        alter_partitions(call, name, [new], environment=environment)
        return
    environment = environment or {}
    try:
        table = find_table(call, name)
    except NoSuchObject as error:
        raise _no_table(name) from error
    if new is None or new.values is None:
        raise InvalidOperation(f"{name}: the new partition has no values")
    check_belongs(name, new)
    validate_values(new.values, call.config.partition_name_whitelist)
    old_name, new_name = partition_name(call, table, old_values), partition_name(call, table, new.values)
    if old_name == new_name:
        alter_partitions(call, name, [new], environment=environment)
        return
    event = AlterPartitions(client=call.info, table=table, before=[], after=[new], environment=environment)
    with change(call, event, ("partitions", *name, [new_name])) as current:

        def work(session: Session) -> tuple[Table, tuple[str, str] | None]:
            held, found = _locked(call, name, partitions.Locking(session, table, [old_name, new_name]))
            by_name = {each: (key, old) for key, each, old in found}
            if old_name not in by_name:
                raise InvalidOperation(f"Partition {old_name} of {name} does not exist: [{', '.join(old_values)}]")
            if new_name in by_name:
                raise AlreadyExists(f"Partition already exists: {name} {new_name}")
            key, old = by_name[old_name]
            stored = _from_request(held, new, str(int(time.time())))
            _Alteration(call, held, environment).complete(stored, old, NOBODY)
            lost = [*_lost(old, stored), *(field.name for field in held.partitionKeys)]
            stored.parameters = statistics_validity.without_columns(stored.parameters, lost)
            move = _new_place(call, session, held, old, stored, old_name, new_name)
            partitions.replace(session, held, [(key, new_name, stored)])
            statistics.delete_partition_columns(session, {key: lost})
            if is_transactional(held):
                dependents.rename_partition(session, TableKey(*name), old_name, new_name)
            if move:
                current.move_directory(*move)
            current.event = AlterPartitions(client=call.info, table=held, before=[old], after=[stored], environment=environment)
            return held, move

        try:
            held, move = current.write(work)
        except AlreadyExists as error:
            raise InvalidOperation(error.message) from error
    if move:
        remove_empty_parents(call, held, [move[0]])


def _no_table(name: TableName) -> InvalidOperation:
    return InvalidOperation(f"Unable to alter partition because table or database does not exist: {name}")


def _locked(call: Call, name: TableName, locking: partitions.Locking) -> partitions.Locked:
    locked = locking.locked()
    if locked is None:
        raise InvalidOperation(f"Unable to alter partition because table {name} was dropped meanwhile")
    return locked


def _from_request(table: Table, new: Partition, now: str) -> Partition:
    """Return a partition of a request as it would be stored at a time, before it is completed from the stored one."""
    stored = copy(new)
    stored.catName, stored.dbName, stored.tableName = table.catName, table.dbName, table.tableName
    parameters = new.parameters or {}
    if parameters.get(DDL_TIME) in (None, "", "0"):
        parameters = {**parameters, DDL_TIME: now}
    stored.parameters = parameters
    return stored


class _Alteration:
    """Completes the partitions of a request from the stored ones. Facts that hold for all of them are looked up once."""

    def __init__(self, call: Call, table: Table, environment: Mapping[str, str]) -> None:
        self._call = call
        self._table = table
        self._environment = environment
        self._is_transactional = is_transactional(table)
        self._has_directories = table.tableType not in VIEWS
        self._stats_are_given = quick_stats.are_given(environment)
        self._keeps_own_columns = keeps_own_columns(table)
        self._checks_types = checks_types(call, table)
        self._says_who_counted = "STATS_GENERATED" in environment
        self._reach = quick_stats.reach_of(call, table)

    def complete(self, stored: Partition, old: Partition, by: StatisticsWriter) -> bool:
        """Turn a partition into its stored form; return whether it gets a place with other data. InvalidOperation, MetaError."""
        sd = self._storage(stored, old)
        stored.sd = sd  # type: ignore[assignment]  # a view may have none
        stored.createTime = stored.createTime or old.createTime
        if self._is_moved_to_root(old.sd, sd):
            what = f"Partition [{', '.join(stored.values)}] of {table_label(self._table)}"
            raise InvalidOperation(AT_ROOT.format(subject=what, place=stored.sd.location))
        has_other_data = self._lies_elsewhere(old.sd, sd) and stored.values == old.values
        parameters = stored.parameters
        if has_other_data:
            parameters = statistics_validity.of_other_data(old.parameters or {}, parameters)
        if self._has_directories and sd is not None and self._needs_quick_stats(old.parameters, parameters, sd):
            parameters = quick_stats.from_directory(self._call, parameters, sd.location, self._environment, self._reach, force=True)
        stored.parameters = quick_stats.without_marker(parameters)
        if self._is_transactional:
            self._mark(stored, old, by)
        if sd is not None and old.sd is not None and sd.cols is not old.sd.cols and (lost := lost_columns(old.sd.cols, sd.cols)):
            stored.parameters = statistics_validity.without_columns(stored.parameters, lost)
        return has_other_data

    def _storage(self, new: Partition, old: Partition) -> StorageDescriptor | None:
        """Return the storage descriptor to store: the request's or the old one, with its location. InvalidOperation."""
        sd = new.sd if new.sd is not None else old.sd
        if sd is None:
            return None
        if old.sd is None or sd.cols is not old.sd.cols:
            self._check_columns(old.sd, sd, new.values)
        if is_clustered(sd):
            sd = self._clustered(old.sd, sd, new.values)
        if not sd.location and old.sd is not None:
            sd = copy(sd)
            sd.location = old.sd.location
        elif sd.location and sd.location[0] == "/" and self._table.sd is not None:
            sd = copy(sd)
            sd.location = self._call.warehouse.qualified(sd.location, self._table.sd.location)
        return sd

    def _mark(self, stored: Partition, old: Partition, by: StatisticsWriter) -> None:
        """Set the write id and the mark of exact statistics in a partition of a transactional table. MetaError."""
        label = f"{self._table.dbName}.{self._table.tableName}"
        counted = quick_stats.not_declared_exact(old.parameters or {}, stored.parameters)
        if by.write_id < 1 and stored.writeId:
            by = by._replace(write_id=stored.writeId)
        stored.parameters = statistics_validity.after_change(label, old.parameters or {}, counted, old.writeId, by)
        stored.writeId = statistics_validity.new_write_id(old.writeId, by)

    def _lies_elsewhere(self, old: StorageDescriptor | None, new: StorageDescriptor | None) -> bool:
        if old is None or new is None or not old.location or old.location == new.location or self._stats_are_given:
            return False
        if not self._has_directories or self._keeps_own_columns:
            return False
        return not (is_absolute(old.location) and is_absolute(new.location) and same_place(old.location, new.location))

    def _is_moved_to_root(self, old: StorageDescriptor | None, new: StorageDescriptor | None) -> bool:
        """Return whether the request gives the partition the root of a file system for its directory."""
        if new is None or not new.location or (old is not None and old.location == new.location) or not is_root(new.location):
            return False
        return old is None or not is_absolute(old.location) or not same_place(old.location, new.location)

    def _check_columns(self, old: StorageDescriptor | None, new: StorageDescriptor, values: Sequence[str]) -> None:
        """Refuse invalid and repeated columns, and types as which the data can not be read. InvalidOperation."""
        if wrong := invalid_column(without_keys(new.cols or [], self._table.partitionKeys)):
            table = f"{self._table.dbName}.{self._table.tableName}"
            raise InvalidOperation(f"Invalid column {wrong} in partition [{', '.join(values)}] of {table}")
        if twice := repeated_column(new.cols or []):
            table = f"{self._table.dbName}.{self._table.tableName}"
            raise InvalidOperation(f"Partition [{', '.join(values)}] of {table} would have the column {twice} twice")
        if self._checks_types and old is not None and new.cols:
            validate_column_changes(old.cols or [], new.cols)

    def _clustered(self, old: StorageDescriptor | None, new: StorageDescriptor, values: Sequence[str]) -> StorageDescriptor:
        """Return the storage descriptor with bucket, sort and skew columns under the names that they have now. InvalidOperation."""
        if old is not None and old.cols and new.cols and new.cols is not old.cols:
            new = follow(new, difference(old.cols, new.cols).renamed)
        if missing := strangers(new, old, self._table.sd):
            table = f"{self._table.dbName}.{self._table.tableName}"
            raise InvalidOperation(f"Partition [{', '.join(values)}] of {table} would have no columns {missing} to bucket, sort or skew by")
        return new

    def _needs_quick_stats(self, old: Mapping[str, str], new: Mapping[str, str], sd: StorageDescriptor) -> bool:
        """Return whether basic statistics are recomputed: they are missing or changed, or the request names their maker."""
        return (
            (self._says_who_counted or not quick_stats.are_same(old, new))
            and quick_stats.wanted(self._call, new, self._environment)
            and is_absolute(sd.location)
        )


def _lost(old: Partition, new: Partition) -> list[str]:
    """Return the columns whose statistics do not hold any longer: they were removed or changed their type."""
    before, after = ((each.sd.cols if each.sd is not None else None) or [] for each in (old, new))
    return lost_columns(before, after)


def _keep_statistics(session: Session, changed: Sequence[tuple[int, Partition, Partition]]) -> None:
    """Delete the statistics of columns that do not hold any longer."""
    lost = {key: gone for key, old, new in changed if (gone := _lost(old, new))}
    if lost:
        statistics.delete_partition_columns(session, lost)


def _new_place(
    call: Call, session: Session, table: Table, old: Partition, new: Partition, old_name: str, new_name: str
) -> tuple[str, str] | None:
    """Set the location after a rename; the request's location is ignored. Return the move of the directory, None for none."""
    if table.tableType in VIEWS or old.sd is None or not old.sd.location:
        return None
    new.sd = copy(new.sd)
    place = new.sd.location = old.sd.location
    target = join(table.sd.location, new_name)
    if not moves_on_rename(table) or not is_absolute(place) or same_place(place, table.sd.location):
        return None
    if not is_below(place, table.sd.location) or is_below(place, target) or is_below(target, place):
        return None
    found = occupants(session, [place], below=table.sd.location, own=(table.id, [old_name]))
    if others := sorted({each.label for each in found if (each.table_id, each.partition) != (table.id, old_name)}):
        what = "the directory of a renamed partition stays, other objects are in it"
        log.warning(what, object=f"{table.dbName}.{table.tableName} {old_name}", location=place, kept=others)
        return None
    new.sd.location = target
    if call.warehouse.was_moved(place, target):
        return None
    if call.warehouse.exists(new.sd.location):
        raise InvalidOperation(f"New location for this partition {new_name} already exists : {new.sd.location}")
    return (place, new.sd.location) if call.warehouse.is_directory(place) else None
