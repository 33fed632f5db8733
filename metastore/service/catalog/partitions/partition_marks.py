"""Marks by which loaders declare that a partition is complete. Source: Hive's ObjectStore (markPartitionForEvent, cleanupEvents).

A mark belongs to values, so a missing partition can have one. Listeners are not notified of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from metastore.errors import InvalidPartition, MetaError, NoSuchObject, UnknownTable
from metastore.idl import PartitionEventType
from metastore.rules.values.partition_names import make_partition_name
from metastore.service.call.clock import now_ms
from metastore.service.call.context import Call
from metastore.service.call.names import TableName
from metastore.service.catalog.tables.tables import find_table
from metastore.store.catalog.partitions import partition_marks

if TYPE_CHECKING:
    from metastore.service.call.context import Metastore


def mark(call: Call, name: TableName, values: Mapping[str, str] | None, kind: int | None) -> None:
    """Mark the partition with these values (key -> value). UnknownTable, InvalidPartition, MetaError."""
    table_id, partition = _marked(call, name, values, kind)
    call.database.write(lambda session: partition_marks.mark(session, table_id, partition, now_ms()))


def is_marked(call: Call, name: TableName, values: Mapping[str, str] | None, kind: int | None) -> bool:
    """Return whether the partition is marked. UnknownTable, InvalidPartition, MetaError."""
    table_id, partition = _marked(call, name, values, kind)
    return call.database.read(lambda session: partition_marks.is_marked(session, table_id, partition))


def _marked(call: Call, name: TableName, values: Mapping[str, str] | None, kind: int | None) -> tuple[int, str]:
    """Return the table's key and the partition's name."""
    if kind not in PartitionEventType._VALUES_TO_NAMES:  # noqa: SLF001  # thriftpy2's list of an enum
        raise MetaError(f"{name}: there is no mark of type {kind}; the only one is LOAD_DONE, {PartitionEventType.LOAD_DONE}")
    try:
        table = find_table(call, name)
    except NoSuchObject as error:
        raise UnknownTable(f"Table: {name} is not found.") from error
    values, keys = {key.lower(): value for key, value in (values or {}).items()}, [key.name for key in table.partitionKeys]
    if len(values) != len(keys):
        raise InvalidPartition(
            f"Number of partition columns in table: {len(keys)} doesn't match with number of supplied partition values: {len(values)}"
        )
    if missing := [key for key in keys if key not in values]:
        raise InvalidPartition(f"No value found for partition column: {missing[0]} of {name}")
    assert table.id is not None
    return table.id, make_partition_name(keys, [values[key] for key in keys], call.config.default_partition_name) if keys else ""


def delete_old(metastore: Metastore, _: int | None = None) -> None:
    """Remove the marks that are older than `event_expiry`."""
    before = now_ms() - int(metastore.config.event_expiry * 1000)
    metastore.database.write(lambda session: partition_marks.delete_before(session, before))
