"""Judge the statistics of tables and partitions that were read for a query, by its snapshot of write ids. Stores nothing.

Clients answer `count(*)`, `min` and `max` from statistics that are called exact; so those that do not hold are not called so.
Source: Hive's ObjectStore.getTable and getPartition.
"""

from __future__ import annotations

from collections.abc import Iterable

from metastore.idl import Partition, Table
from metastore.rules import accuracy
from metastore.rules.snapshots import Snapshot
from metastore.rules.table_kinds import is_transactional


def judge_table(table: Table, seen: Snapshot) -> None:
    """Judge a transactional table without partitions; others have theirs, or no write ids."""
    if is_transactional(table) and not table.partitionKeys:
        table.isStatsCompliant = accuracy.holds(table.parameters, table.writeId, seen)
        if not table.isStatsCompliant:
            table.parameters = accuracy.without_mark(table.parameters)


def judge_partitions(partitions: Iterable[Partition], seen: Snapshot) -> None:
    """Judge those of the partitions that were written under a write id: they are of a transactional table.

    Hive's server does so for a single one only, and says it in isStatsCompliant, which no client reads.
    """
    for partition in partitions:
        parameters = partition.parameters or {}
        if accuracy.ACCURATE in parameters and not accuracy.holds(parameters, partition.writeId, seen):
            partition.parameters = accuracy.without_mark(parameters)
