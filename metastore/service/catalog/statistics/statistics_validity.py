"""Judge the statistics of tables and partitions that were read for a query, by its snapshot, and add column statistics. Stores nothing.

Clients answer `count(*)`, `min` and `max` from statistics that are marked exact; so invalid ones lose the mark.
Source: Hive's ObjectStore.getTable and getPartition, GetTableHandler and GetPartitionsHandler.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from metastore.idl import Partition, Table
from metastore.rules.catalog.table_kinds import is_transactional
from metastore.rules.statistics import statistics_validity
from metastore.rules.transactions.snapshots import Snapshot
from metastore.service.call.context import Call
from metastore.service.call.names import TableName
from metastore.service.catalog.partitions.partitions import partition_names
from metastore.service.catalog.statistics import statistics
from metastore.service.catalog.tables.tables import find_table


def show_validity_of_table(table: Table, seen: Snapshot) -> None:
    """Judge the statistics of a transactional table without partitions. Other tables have partitions with statistics, or no write ids."""
    if is_transactional(table) and not table.partitionKeys:
        table.isStatsCompliant = statistics_validity.is_valid(table.parameters, table.writeId, seen)
        if not table.isStatsCompliant:
            table.parameters = statistics_validity.without_mark(table.parameters)


def show_validity_of_partitions(partitions: Iterable[Partition], seen: Snapshot) -> None:
    """Remove the mark of exact statistics from partitions of a transactional table in which a snapshot does not see these statistics.

    Hive's server checks only single partitions, and reports it in isStatsCompliant, which no client reads.
    """
    for partition in partitions:
        parameters = partition.parameters or {}
        if statistics_validity.ACCURATE in parameters and not statistics_validity.is_valid(parameters, partition.writeId, seen):
            partition.parameters = statistics_validity.without_mark(parameters)


def add_to_table(call: Call, name: TableName, table: Table, engine: str | None, seen: Snapshot | None) -> None:
    """Put the statistics of the columns that are marked exact into a table; without any the table stays unchanged. NoSuchObject."""
    columns = sorted(statistics_validity.exact_columns(table.parameters or {}))
    found = statistics.get_table(call, name, columns, engine, seen) if columns else None
    if found is not None and found.statsObj:
        table.colStats = found


def add_to_partitions(call: Call, name: TableName, found: Sequence[Partition], engine: str | None, seen: Snapshot | None) -> None:
    """Put into each partition the statistics of the columns that are marked exact in it. NoSuchObject."""
    exact = [statistics_validity.exact_columns(partition.parameters or {}) for partition in found]
    columns = sorted(set().union(*exact))
    if not columns:
        return
    names = partition_names(call, find_table(call, name), [partition.values for partition in found])
    stored = statistics.get_partitions(call, name, names, columns, engine, seen)
    for partition, own_name, own in zip(found, names, exact, strict=True):
        if own_name in stored:
            with_others = stored[own_name]
            with_others.statsObj = [column for column in with_others.statsObj if column.colName in own]
            partition.colStats = with_others if with_others.statsObj else None
