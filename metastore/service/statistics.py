"""Read column statistics of tables and partitions, one by one or joined. Nothing here looks at the data of a table.

Source: Hive's HMSHandler (get_*_statistics, get_aggr_stats_for). `write_statistics.py` writes them.
`rules/statistics_validity.py` has the mark
COLUMN_STATS_ACCURATE and for which query statistics hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from metastore.errors import MetaError, NoSuchObject
from metastore.idl import AggrStats, ColumnStatistics, ColumnStatisticsDesc, Table
from metastore.rules import statistics_validity
from metastore.rules.names import normalize
from metastore.rules.partition_names import stored_names
from metastore.rules.snapshots import Snapshot
from metastore.rules.statistics import aggregate
from metastore.rules.table_kinds import is_transactional
from metastore.service.context import Call
from metastore.service.names import TableName
from metastore.service.tables import find_table
from metastore.store import statistics, tables
from metastore.store.database import Session

ENGINE = "hive"
NDV_TUNER = "metastore.stats.ndv.tuner"

StoredColumn = tuple[str, str, bytes]
"""A column's name, its type, and its ColumnStatisticsData in the binary protocol."""


def partitions_named(call: Call, table: Table, names: Iterable[str | None]) -> list[str]:
    """Return the names as they are stored. MetaError for one that is missing, InvalidObject for one that is none of this table."""
    given = list(names)
    if None in given:
        raise MetaError(f"Statistics of a partition of {table.dbName}.{table.tableName} need its name: set statsDesc.partName")
    keys = [key.name for key in table.partitionKeys]
    return stored_names(keys, (name for name in given if name is not None), call.config.default_partition_name)


def get_table(
    call: Call, name: TableName, columns: Sequence[str] | None, engine: str | None = None, seen: Snapshot | None = None
) -> ColumnStatistics:
    """Return the statistics of those of the columns that have any and hold for the snapshot, if one is given. NoSuchObject."""

    def work(session: Session) -> statistics.Encoded:
        if seen is None:
            key = tables.key(session, *name)
        else:
            table = tables.find(call.database, session, *name)
            key = None if table is None else table.id
            if table is not None and is_transactional(table) and not statistics_validity.is_valid(table.parameters, table.writeId, seen):
                return {}
        if key is None:
            raise NoSuchObject(f"{name} table not found")
        return statistics.of_table(session, key, engine or ENGINE)

    found = call.database.read(work)
    return _struct(name, None, found, columns, engine)


def get_partitions(
    call: Call,
    name: TableName,
    partitions: Sequence[str] | None,
    columns: Sequence[str] | None,
    engine: str | None = None,
    seen: Snapshot | None = None,
) -> dict[str, ColumnStatistics]:
    """Return by partition name the statistics of those of the columns that have any and hold for the snapshot, if one is given.

    NoSuchObject for a missing table.
    """
    wanted = set(columns_named(columns))
    found = _read(call, name, partitions, engine, seen)
    return {
        partition: _struct(name, partition, raw, columns, engine)
        for partition, raw in found.items()
        if raw is not None and wanted & raw.keys()
    }


def get_stored(
    call: Call,
    name: TableName,
    partitions: Sequence[str] | None,
    columns: Sequence[str] | None,
    engine: str | None = None,
    seen: Snapshot | None = None,
) -> dict[str, list[StoredColumn]]:
    """Return what `get_partitions` does, as it is stored."""
    wanted = columns_named(columns)
    out = {}
    for partition, raw in _read(call, name, partitions, engine, seen).items():
        found = [(column, raw[column][0], statistics.data_of(raw[column])) for column in wanted if column in raw] if raw else []
        if found:
            out[partition] = found
    return out


def get_partition(call: Call, name: TableName, partition: str | None, column: str, engine: str | None = None) -> ColumnStatistics:
    """Return the statistics of one column of a partition. NoSuchObject when there are none."""
    found = get_partitions(call, name, [partition or ""], [column], engine)
    if not found:
        raise NoSuchObject(f"{name} partition {partition}: column {column} has no statistics")
    return next(iter(found.values()))


def get_table_column(call: Call, name: TableName, column: str, engine: str | None = None) -> ColumnStatistics:
    """Return the statistics of one column of a table. NoSuchObject when there are none."""
    found = get_table(call, name, [column], engine)
    if not found.statsObj:
        raise NoSuchObject(f"{name}: column {column} has no statistics")
    return found


def _read(
    call: Call, name: TableName, partitions: Sequence[str] | None, engine: str | None, seen: Snapshot | None
) -> Mapping[str, statistics.Encoded | None]:
    """Return statistics by partition; None for those that do not hold for a snapshot."""
    if not partitions:
        return {}
    table = find_table(call, name)
    key = table.id
    assert key is not None
    names = partitions_named(call, table, dict.fromkeys(partitions))
    if seen is None or not is_transactional(table):
        return call.database.read(lambda session: statistics.of_partitions(session, key, names, engine or ENGINE))
    found = call.database.read(lambda session: statistics.states_of_partitions(session, key, names, engine or ENGINE))
    return {
        partition: raw if statistics_validity.is_valid(parameters, write_id, seen) else None
        for partition, (raw, parameters, write_id) in found.items()
    }


def columns_named(columns: Sequence[str] | None) -> list[str]:
    """Return each of the columns once, as it is stored."""
    return list(dict.fromkeys(normalize(column) for column in columns or ()))


def _struct(
    name: TableName, partition: str | None, raw: statistics.Encoded, columns: Sequence[str] | None, engine: str | None
) -> ColumnStatistics:
    wanted = [column for column in columns_named(columns) if column in raw]
    description = ColumnStatisticsDesc(
        isTblLevel=partition is None,
        dbName=name.database,
        tableName=name.table,
        partName=partition,
        catName=name.catalog,
        lastAnalyzed=max((raw[column][1] for column in wanted), default=None),
    )
    found = [statistics.decode(column, raw[column]) for column in wanted]
    return ColumnStatistics(statsDesc=description, statsObj=found, engine=engine or ENGINE)


def get_aggregated(
    call: Call,
    name: TableName,
    partitions: Sequence[str] | None,
    columns: Sequence[str] | None,
    engine: str | None = None,
    seen: Snapshot | None = None,
) -> AggrStats:
    """Return the statistics of columns over partitions, and how many partitions have them for all of the columns.

    Nothing when those of a partition do not hold for the snapshot, if one is given.
    """
    wanted = columns_named(columns)
    if not wanted or not partitions:
        return AggrStats(colStats=[], partsFound=0)
    read = _read(call, name, partitions, engine, seen)
    found = {partition: raw for partition, raw in read.items() if raw is not None}
    if len(found) < len(read):
        return AggrStats(colStats=[], partsFound=0)
    tuner = float(call.config.hive_value(NDV_TUNER, "0") or 0)
    joined = []
    for column in wanted:
        parts = [raw[column] for raw in found.values() if column in raw]
        if parts:
            joined.append(aggregate(statistics.decode_all(column, parts), tuner))
    return AggrStats(colStats=joined, partsFound=sum(set(wanted) <= raw.keys() for raw in found.values()))
