"""Mark a table's statistics as no longer exact, since Hive answers `count(*)`, `min` and `max` from them. This module computes none.

Hive's own writers store new statistics before they commit; a writer that has none removes the number of rows and the mark that it is exact,
likewise before it commits. The alteration has the transaction's write id.
Source: Hive's StatsSetupConst, BasicStatsTask and StatsOptimizer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from metastore.acid.transactions import TableSnapshot
from metastore.client import Client
from metastore.idl import AlterPartitionsRequest, AlterTableRequest, EnvironmentContext, Table
from metastore.rules.transactions.snapshots import format_table, snapshot

FORGOTTEN = ("COLUMN_STATS_ACCURATE", "numRows", "rawDataSize")
"""The mark, and the numbers that Hive's next ANALYZE, as after a compaction, would declare exact again."""
_NOT_GATHERED = EnvironmentContext(properties={"DO_NOT_UPDATE_STATS": "true"})


T = TypeVar("T")


class WritingTransaction(Protocol):
    """A transaction that has written, such as `metastore.acid.transactions.Transaction`."""

    def call(self, work: Callable[[Client], T]) -> T:
        """Run calls on the transaction's connection."""
        ...

    def snapshots(self, tables: Iterable[tuple[str, str]]) -> Mapping[tuple[str, str], TableSnapshot]:
        """Return the present snapshots of tables, with the transaction's own writes."""
        ...

    def write_id(self, database: str, table: str) -> int:
        """Return the transaction's write id of a table."""
        ...


def forget(transaction: WritingTransaction, table: Table, partitions: Sequence[str]) -> None:
    """Mark the statistics of a table, as read by this transaction, and of the partitions `k=v/..` that were written as not exact."""
    database, name = table.dbName, table.tableName
    held = [] if not partitions else transaction.call(lambda client: client.get_partitions_by_names(database, name, list(partitions)))
    stale = [partition for partition in held if any(key in (partition.parameters or {}) for key in FORGOTTEN)]
    marked = any(key in (table.parameters or {}) for key in FORGOTTEN)
    if not stale and not marked:
        return
    seen = transaction.snapshots([(database, name)])[database, name].write_ids
    text = format_table(f"{database}.{name}", snapshot(seen.high_watermark, seen.open, seen.aborted))
    write_id = transaction.write_id(database, name)

    def alter(client: Client) -> None:
        if stale:
            for partition in stale:
                partition.parameters = _without(partition.parameters)
            client.alter_partitions_req(
                AlterPartitionsRequest(
                    dbName=database,
                    tableName=name,
                    partitions=stale,
                    environmentContext=_NOT_GATHERED,
                    writeId=write_id,
                    validWriteIdList=text,
                )
            )
        if marked:
            table.parameters = _without(table.parameters)
            client.alter_table_req(
                AlterTableRequest(
                    dbName=database,
                    tableName=name,
                    table=table,
                    environmentContext=_NOT_GATHERED,
                    writeId=write_id,
                    validWriteIdList=text,
                )
            )

    transaction.call(alter)


def _without(parameters: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in parameters.items() if key not in FORGOTTEN}
