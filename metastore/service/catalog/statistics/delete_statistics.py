"""Delete statistics of columns, and the mark that calls them exact. Source: Hive's HMSHandler.delete_column_statistics_req."""

from __future__ import annotations

from collections.abc import Sequence

from metastore.errors import NoSuchObject
from metastore.listeners.events import DeleteStatistics
from metastore.rules.statistics import statistics_validity
from metastore.service.call.context import Call
from metastore.service.call.names import TableName
from metastore.service.catalog.statistics.statistics import columns_named, partitions_named
from metastore.service.catalog.tables.tables import find_table
from metastore.service.changes.change import change
from metastore.store.catalog import statistics
from metastore.store.catalog.partitions.partitions import Locking
from metastore.store.catalog.tables import tables
from metastore.store.core.database import Session


def from_table(call: Call, name: TableName, columns: Sequence[str] | None, engine: str | None = None) -> None:
    """Delete statistics of a table: of all columns, or of those named; of every engine without `engine`.

    NoSuchObject when the table is missing or has none of them.
    """
    table = find_table(call, name)
    wanted = columns_named(columns) or None
    event = DeleteStatistics(client=call.info, table=table, partitions=[], columns=wanted or [])
    with change(call, event) as current:

        def work(session: Session) -> None:
            key = tables.lock(session, *name)
            found = None if key is None else tables.find(session, *name)
            if key is None or found is None:
                raise NoSuchObject(f"{name} table not found")
            gone = statistics.delete_table(session, key, wanted, engine)
            if not gone:
                raise NoSuchObject(f"Column stats doesn't exist for table {name}, columns {wanted or 'all'}")
            unmarked = statistics_validity.without_columns(found.parameters, gone)
            if unmarked != found.parameters:
                tables.set_parameters(session, key, unmarked)

        current.write(work)


def from_partitions(
    call: Call, name: TableName, partitions: Sequence[str], columns: Sequence[str] | None, engine: str | None = None
) -> None:
    """Delete statistics of partitions, as `from_table` does for a table."""
    table = find_table(call, name)
    wanted = columns_named(columns) or None
    names = partitions_named(call, table, partitions)
    event = DeleteStatistics(client=call.info, table=table, partitions=names, columns=wanted or [])
    with change(call, event) as current:

        def work(session: Session) -> None:
            rows = Locking(session, table, names).rows()
            if rows is None or table.id is None:
                raise NoSuchObject(f"{name} table not found")
            locked = statistics.locked(rows)
            if missing := set(names) - {partition.name for partition in locked}:
                raise NoSuchObject(f"Partition {min(missing)} of {name} doesn't exist: no statistics were deleted")
            gone = statistics.delete_partitions(session, [partition.key for partition in locked], wanted, engine)
            if not gone:
                raise NoSuchObject(f"Column stats doesn't exist for partitions {names} of {name}, columns {wanted or 'all'}")
            changed = []
            for each in locked:
                before = each.decoded()
                after = statistics_validity.without_columns(before, gone.get(each.key, ()))
                if after != before:
                    changed.append(each.changed(after, each.write_id))
            if changed:
                statistics.set_parameters(session, table.id, changed)

        current.write(work)


def delete(call: Call, name: TableName, partitions: Sequence[str] | None, columns: Sequence[str] | None, engine: str | None = None) -> None:
    """Delete statistics of partitions if any are named, else of the table."""
    if partitions:
        from_partitions(call, name, partitions, columns, engine)
    else:
        from_table(call, name, columns, engine)
