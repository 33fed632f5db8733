"""Add partitions: rows and directories of all or of none. Source: Hive's HMSHandler.add_partitions_core."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from copy import copy

from metastore.errors import AlreadyExists, InvalidObject, MetaError, NoSuchObject
from metastore.idl import Partition, Table
from metastore.listeners.events import AddPartitions
from metastore.rules.catalog.columns import is_clustered, repeated_column, strangers, without_keys
from metastore.rules.catalog.table_kinds import VIEWS, table_label
from metastore.rules.values.partition_names import validate_values, values_for_keys
from metastore.rules.values.types import invalid_column
from metastore.service.call.context import Call
from metastore.service.call.names import TableName
from metastore.service.catalog.partitions.partitions import check_belongs, partition_names
from metastore.service.catalog.statistics import quick_stats, write_statistics
from metastore.service.catalog.tables.tables import find_table
from metastore.service.catalog.translation import AT_ROOT
from metastore.service.changes.change import change
from metastore.store.catalog.partitions import partitions
from metastore.store.catalog.partitions.partition_structs import share_columns
from metastore.store.core.database import Session
from metastore.warehouse import Reach
from metastore.warehouse.locations import is_root, join

INHERIT = "metastore.partition.inherit.table.properties"


def add_partitions(
    call: Call, name: TableName, new: Sequence[Partition], *, if_not_exists: bool = False, environment: Mapping[str, str] | None = None
) -> list[Partition]:
    """Add partitions to a table and return those that were added.

    MetaError for a partition of another table, for wrong values, and for a new partition that is in the list twice. AlreadyExists for an
    existing partition; with `if_not_exists` it is left out instead. InvalidObject for a missing table. On any failure nothing remains.
    """
    environment = environment or {}
    try:
        table = find_table(call, name)
    except NoSuchObject as error:
        raise InvalidObject(f"Unable to add partitions because database or table {name.database}.{name.table} does not exist") from error
    brought = [partition.colStats for partition in new if partition is not None and partition.colStats is not None]
    if brought:
        write_statistics.check_brought(call, table, brought)
    event = AddPartitions(client=call.info, table=table, partitions=new, environment=environment)
    with change(call, event) as current:
        named = _named(call, name, table, new)
        share_columns(call.database, new)
        _check_columns(name, table, new)
        current.subject = ("partitions", *name, [each for each, _ in named])

        reach = quick_stats.reach_of(call, table)
        initialized = _all_initialized(call, table, named, environment, reach)

        def work(session: Session) -> tuple[list[Partition], list[Partition]]:
            held, there = partitions.existing_in(session, table, [each for each, _ in named])
            if held is None:
                raise InvalidObject(f"Unable to add partitions because table {name} was dropped meanwhile")
            if there and not if_not_exists:
                raise AlreadyExists(f"Partition already exists: {name} {min(there)}")
            _check_distinct(name, [each for each, _ in named if each not in there])
            ready = initialized if held is table else _all_initialized(call, held, named, environment, reach)
            added = [(each, partition) for each, partition in ready if each not in there]
            current.event = AddPartitions(
                client=call.info, table=held, partitions=[partition for _, partition in added], environment=environment
            )
            if added:
                partitions.insert(session, held, added)
                places = [each.sd.location for _, each in added if each.sd is not None and each.sd.location]
                current.make_directories(places, reach)
            return [partition for _, partition in added], [partition for each, partition in dict(named).items() if each in there]

        added, existing = current.write(work)
    if brought:
        _write_brought(call, name, table, named, added)
    if existing:
        event = AddPartitions(client=call.info, table=table, partitions=existing, environment=environment)
        call.listeners.after(event, AlreadyExists(f"{len(existing)} partitions of {name} exist already"))
    return added


def _write_brought(call: Call, name: TableName, table: Table, named: Sequence[tuple[str, Partition]], added: Sequence[Partition]) -> None:
    """Write the statistics that added partitions brought along."""
    names = {*partition_names(call, table, [partition.values for partition in added])}
    brought = []
    for each, partition in named:
        if each in names and partition.colStats is not None:
            own = copy(partition.colStats)
            own.statsDesc = copy(own.statsDesc)
            own.statsDesc.partName = each
            brought.append((own, partition.writeId))
    write_statistics.write_brought(call, name, brought)


def append_partition(
    call: Call, name: TableName, values: Sequence[str] | None, *, environment: Mapping[str, str] | None = None
) -> Partition:
    """Add a partition with the table's definition at its default place. InvalidObject, AlreadyExists, MetaError."""
    try:
        table = find_table(call, name)
    except NoSuchObject as error:
        raise InvalidObject(f"Unable to add partition because table or database do not exist: {name}") from error
    if table.tableType in VIEWS:
        raise MetaError("Cannot append a partition to a view")
    sd = copy(table.sd)
    sd.location = None  # type: ignore[assignment]  # the default place
    partition = Partition(values=list(values or []), dbName=name.database, tableName=name.table, catName=name.catalog, sd=sd, parameters={})
    return add_partitions(call, name, [partition], environment=environment)[0]


def append_partition_by_name(
    call: Call, name: TableName, partition: str | None, *, environment: Mapping[str, str] | None = None
) -> Partition:
    """Add a partition by its name, as `append_partition` does by its values."""
    if not partition:
        raise MetaError(f"{name}: the partition name is null or empty")
    try:
        table = find_table(call, name)
    except NoSuchObject as error:
        raise InvalidObject(f"Unable to add partition because table or database do not exist: {name}") from error
    values = values_for_keys([key.name for key in table.partitionKeys], partition, may_have_more=True)
    return append_partition(call, name, values, environment=environment)


def _named(call: Call, name: TableName, table: Table, new: Sequence[Partition]) -> list[tuple[str, Partition]]:
    """Check partitions against the table; return them with their names."""
    for partition in new:
        if partition is None:
            raise MetaError(f"{name}: a partition in the list is null")
        check_belongs(name, partition)
        validate_values(partition.values or [], call.config.partition_name_whitelist)
    named = list(zip(partition_names(call, table, [partition.values for partition in new]), new, strict=True))
    for each, partition in named:
        if table.tableType not in VIEWS and (partition.sd is None or partition.sd.serdeInfo is None):
            raise MetaError(f"Partition {each} of {name} has no storage descriptor with a serde: set sd and sd.serdeInfo")
    return named


def _check_distinct(name: TableName, names: Sequence[str]) -> None:
    seen: set[str] = set()
    for each in names:
        if each in seen:
            raise MetaError(f"Duplicate partitions in the list: {name} {each}")
        seen.add(each)


def _check_columns(name: TableName, table: Table, new: Sequence[Partition]) -> None:
    """Raise InvalidObject for invalid, repeated or missing columns. A list of columns that partitions share is checked once.

    Partition keys may be among them, as Hive's own clients send them: their names and types are read from the table.
    """
    checked = {id(table.sd.cols)} if table.sd is not None else set()
    for partition in new:
        sd = partition.sd
        if sd is None:
            continue
        if sd.cols is not None and id(sd.cols) not in checked:
            checked.add(id(sd.cols))
            if wrong := invalid_column(without_keys(sd.cols, table.partitionKeys)):
                raise InvalidObject(f"Invalid column {wrong} in partition [{', '.join(partition.values)}] of {name}")
            if twice := repeated_column(sd.cols):
                raise InvalidObject(f"Partition [{', '.join(partition.values)}] of {name} has the column {twice} twice")
        if is_clustered(sd) and (missing := strangers(sd, table.sd)):
            raise InvalidObject(f"Partition [{', '.join(partition.values)}] of {name} has no columns {missing} to bucket, sort or skew by")


def _all_initialized(
    call: Call, table: Table, named: Sequence[tuple[str, Partition]], environment: Mapping[str, str], reach: Reach
) -> list[tuple[str, Partition]]:
    """Return (name, partition) as they will be stored, by the parameters and the location of the table."""
    inherited = _inherited(call, table)
    return call.warehouse.each(
        lambda pair: (pair[0], _initialized(call, table, pair[0], pair[1], inherited, environment, reach)),
        named,
        (table.sd.location if table.sd is not None else None) or call.warehouse.root,
    )


def _initialized(
    call: Call, table: Table, each: str, partition: Partition, inherited: Mapping[str, str], environment: Mapping[str, str], reach: Reach
) -> Partition:
    """Return the partition as it will be stored: place, times, inherited parameters, basic statistics of data that is there."""
    stored = copy(partition)
    stored.colStats = None
    sd = stored.sd = copy(partition.sd)
    stored.catName, stored.dbName, stored.tableName = table.catName, table.dbName, table.tableName
    if table.tableType in VIEWS:
        if sd is not None and sd.location:
            raise MetaError(f"Partition {each} of view {table.tableName} has the location {sd.location}: a view has no data")
    elif not sd.location:
        sd.location = join(table.sd.location, each)
    else:
        sd.location = call.warehouse.qualified(sd.location, table.sd.location)
        if is_root(sd.location):
            raise MetaError(AT_ROOT.format(subject=f"Partition {each} of {table_label(table)}", place=sd.location))
    stored.createTime = int(time.time())
    parameters = {**inherited, **(stored.parameters or {})}
    parameters.setdefault("transient_lastDdlTime", str(stored.createTime))
    if (
        sd is not None
        and sd.location
        and quick_stats.wanted(call, parameters, environment)
        and reach.look(call.warehouse.is_directory, sd.location, False)
    ):
        parameters = quick_stats.from_directory(call, parameters, sd.location, environment, reach)
    stored.parameters = quick_stats.without_marker(parameters)
    return stored


def _inherited(call: Call, table: Table) -> dict[str, str]:
    """Return the table parameters that new partitions take over."""
    wanted = [part.strip() for part in (call.config.hive_value(INHERIT, "") or "").split(",")]
    return {key: value for key, value in table.parameters.items() if key in wanted or "*" in wanted}
