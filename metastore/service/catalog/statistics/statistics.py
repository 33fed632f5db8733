"""Read column statistics of tables and partitions, one by one or joined. Nothing here looks at the data of a table.

Source: Hive's HMSHandler (get_*_statistics, get_aggr_stats_for). `write_statistics.py` writes them.
`rules/statistics/statistics_validity.py` has the mark COLUMN_STATS_ACCURATE and decides for which queries statistics hold.
`rules/statistics/statistics_kinds.py` has the kinds in which clients read them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from metastore.binary import to_bytes
from metastore.errors import MetaError, NoSuchObject
from metastore.idl import AggrStats, ColumnStatistics, ColumnStatisticsDesc, ColumnStatisticsObj, Table
from metastore.rules.catalog.table_kinds import is_transactional
from metastore.rules.names import normalize
from metastore.rules.statistics import statistics_validity
from metastore.rules.statistics.statistics import aggregate
from metastore.rules.statistics.statistics_kinds import alike, in_kind, kind_for, with_data
from metastore.rules.transactions.snapshots import Snapshot
from metastore.rules.values.partition_names import stored_names
from metastore.service.call.context import Call
from metastore.service.call.names import TableName
from metastore.service.call.releases import HIVE
from metastore.service.catalog.tables.tables import find_table
from metastore.store.catalog import statistics
from metastore.store.catalog.tables import tables
from metastore.store.core.database import Session

ENGINE = HIVE
NDV_TUNER = "metastore.stats.ndv.tuner"

StoredColumn = tuple[str, str, bytes]
"""A column's name, its type, and its ColumnStatisticsData in the binary protocol."""


def partitions_named(call: Call, table: Table, names: Iterable[str | None]) -> list[str]:
    """Return names of partitions as they are stored. MetaError for a missing name, InvalidObject for one that does not fit the table."""
    given = list(names)
    if None in given:
        raise MetaError(f"Statistics of a partition of {table.dbName}.{table.tableName} need its name: set statsDesc.partName")
    keys = [key.name for key in table.partitionKeys]
    return stored_names(keys, (name for name in given if name is not None), call.config.default_partition_name)


def get_table(
    call: Call, name: TableName, columns: Sequence[str] | None, engine: str | None = None, seen: Snapshot | None = None
) -> ColumnStatistics:
    """Return the statistics of the columns that have any, as far as they are valid for the snapshot, if one is given. NoSuchObject."""

    def work(session: Session) -> statistics.Encoded:
        if seen is None:
            key = tables.key(session, *name)
        else:
            table = tables.find(session, *name)
            key = None if table is None else table.id
            if table is not None and is_transactional(table) and not statistics_validity.is_valid(table.parameters, table.writeId, seen):
                return {}
        if key is None:
            raise NoSuchObject(f"{name} table not found")
        return statistics.of_table(session, key, engine or ENGINE)

    found = call.database.read(work)
    return _struct(call, name, None, found, columns, engine)


def get_partitions(
    call: Call,
    name: TableName,
    partitions: Sequence[str] | None,
    columns: Sequence[str] | None,
    engine: str | None = None,
    seen: Snapshot | None = None,
) -> dict[str, ColumnStatistics]:
    """Return by partition name the statistics of the columns that have any, as far as they are valid for the snapshot, if one is given.

    NoSuchObject for a missing table.
    """
    wanted = set(columns_named(columns))
    found = _read(call, name, partitions, engine, seen)
    return {
        partition: _struct(call, name, partition, raw, columns, engine)
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
    """Return the same as `get_partitions`, in the bytes of the binary protocol."""
    wanted = columns_named(columns)
    shown = Shown(call, engine)
    out = {}
    for partition, raw in _read(call, name, partitions, engine, seen).items():
        found = [(column, raw[column][0], shown.data(column, raw[column])) for column in wanted if column in raw] if raw else []
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


class Shown:
    """Statistics in the kinds in which one client reads them."""

    def __init__(self, call: Call, engine: str | None) -> None:
        self._longs = not call.client.release.reads_timestamp_statistics(engine)

    def column(self, found: ColumnStatisticsObj) -> ColumnStatisticsObj:
        """Return a column's statistics in the kind of its type; unchanged if the type has no kind, or a kind that can not hold them."""
        data = in_kind(found.statsData, self._kind(found.colType))
        return found if data is None else with_data(found, data)

    def data(self, name: str, raw: Sequence[Any]) -> bytes:
        """Return the ColumnStatisticsData of a column as it is stored, for a client."""
        kind = self._kind(raw[0])
        if kind is None or statistics.kind_of(raw) == kind:
            return statistics.data_of(raw)
        return to_bytes(self.column(statistics.decode(name, raw)).statsData)

    def _kind(self, column_type: str) -> str | None:
        return kind_for(column_type, timestamps_are_longs=self._longs)


def _struct(
    call: Call, name: TableName, partition: str | None, raw: statistics.Encoded, columns: Sequence[str] | None, engine: str | None
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
    shown = Shown(call, engine)
    found = [shown.column(statistics.decode(column, raw[column])) for column in wanted]
    return ColumnStatistics(statsDesc=description, statsObj=found, engine=engine or ENGINE)


def get_aggregated(
    call: Call,
    name: TableName,
    partitions: Sequence[str] | None,
    columns: Sequence[str] | None,
    engine: str | None = None,
    seen: Snapshot | None = None,
) -> AggrStats:
    """Return the joined statistics of columns over partitions, and the number of partitions that have them for all of the columns.

    No statistics and 0 when the statistics of a partition are not valid for the snapshot, if one is given. Statistics of another kind, such
    as of a text column that was a number when its partition was made, count as missing.
    """
    wanted = columns_named(columns)
    if not wanted or not partitions:
        return AggrStats(colStats=[], partsFound=0)
    read = _read(call, name, partitions, engine, seen)
    found = {partition: raw for partition, raw in read.items() if raw is not None}
    if len(found) < len(read):
        return AggrStats(colStats=[], partsFound=0)
    tuner = float(call.config.hive_value(NDV_TUNER, "0") or 0)
    shown = Shown(call, engine)
    complete = set(found)
    joined = []
    for column in wanted:
        raw = {partition: of[column] for partition, of in found.items() if column in of}
        decoded = statistics.decode_all(column, list(raw.values()))
        parts = decoded if statistics.are_of_one_kind(raw.values()) else alike(decoded)
        complete.intersection_update(partition for partition, part in zip(raw, parts, strict=True) if part is not None)
        if there := [part for part in parts if part is not None]:
            joined.append(shown.column(aggregate(there, tuner)))
    return AggrStats(colStats=joined, partsFound=len(complete))
