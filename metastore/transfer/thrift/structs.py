"""Turn structs of the Thrift interface into the bodies of records."""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64
from collections.abc import Iterable
from typing import Any

import orjson

from metastore.binary import each_to_bytes, from_bytes
from metastore.idl import (
    ColumnStatisticsData,
    ColumnStatisticsObj,
    Database,
    FieldSchema,
    Function,
    Partition,
    StorageDescriptor,
    Table,
    WMFullResourcePlan,
)
from metastore.store.catalog import descriptors
from metastore.store.catalog.tables import view_sources
from metastore.transfer.records import content_hash


def columns(fields: Iterable[FieldSchema] | None) -> list[list[str | None]]:
    """Return a column list."""
    return [[field.name.lower(), field.type, field.comment] for field in fields or ()]


def storage(sd: StorageDescriptor) -> dict[str, Any]:
    """Return a storage format."""
    found: dict[str, Any] = orjson.loads(descriptors.encode_storage(sd))
    found["serde"][6] = found["serde"][6] or None
    found["skew"][2].sort(key=repr)
    return found


def database(struct: Database) -> dict[str, Any]:
    """Return the body of a database."""
    return {
        "description": struct.description,
        "location": struct.locationUri,
        "managed_location": struct.managedLocationUri,
        "parameters": struct.parameters or {},
        "owner_name": struct.ownerName,
        "owner_type": struct.ownerType,
        "create_time": struct.createTime or 0,
        "type": struct.type or 1,
        "connector_name": struct.connector_name,
        "remote_name": struct.remote_dbname,
    }


def table(struct: Table, statistics: dict[str, Any]) -> dict[str, Any]:
    """Return the body of a table."""
    sd = struct.sd
    creation = view_sources.encode(_with_list(struct.creationMetadata))
    return {
        "type": struct.tableType,
        "owner": struct.owner,
        "owner_type": struct.ownerType if struct.ownerType is not None else None if struct.owner is None else 1,
        "create_time": struct.createTime or 0,
        "last_access_time": struct.lastAccessTime or 0,
        "retention": struct.retention or 0,
        "location": None if sd is None else sd.location,
        "view_original_text": struct.viewOriginalText,
        "view_expanded_text": struct.viewExpandedText,
        "rewrite_enabled": int(bool(struct.rewriteEnabled)),
        "write_id": -1 if struct.writeId is None else struct.writeId,
        "partition_keys": columns(struct.partitionKeys),
        "parameters": struct.parameters or {},
        "creation_metadata": None if creation is None else orjson.loads(creation),
        "columns": None if sd is None else columns(sd.cols),
        "storage": None if sd is None else storage(sd),
        "statistics": statistics,
    }


def _with_list(creation: Any) -> Any:
    if creation is not None and creation.tablesUsed is not None:
        creation.tablesUsed = sorted(creation.tablesUsed)
    if creation is not None and creation.sourceTables is not None:
        creation.sourceTables = sorted(creation.sourceTables, key=lambda each: (each.table.dbName, each.table.tableName))
    return creation


class Contents:
    """The column lists and storage formats of one table's partitions, by their hashes."""

    def __init__(self) -> None:
        self.found: dict[str, Any] = {}
        self._parts: Any = None
        self._hashes: tuple[str | None, str | None] = None, None

    def of(self, sd: StorageDescriptor | None) -> tuple[str | None, str | None]:
        """Return the hashes of a storage descriptor. They are kept for the next partition, which often has the same."""
        if sd is None:
            return None, None
        parts = descriptors.parts(sd)
        if parts != self._parts:
            self._parts = parts
            self._hashes = None if sd.cols is None else self._add(columns(sd.cols)), self._add(storage(sd))
        return self._hashes

    def _add(self, content: Any) -> str:
        hash_ = content_hash(content)
        self.found[hash_] = content
        return hash_


def partition(struct: Partition, contents: Contents, statistics: dict[str, Any]) -> dict[str, Any]:
    """Return the body of a partition."""
    column_list, format_ = contents.of(struct.sd)
    return {
        "values": struct.values,
        "location": None if struct.sd is None else struct.sd.location,
        "columns": column_list,
        "storage": format_,
        "parameters": struct.parameters or {},
        "create_time": struct.createTime or 0,
        "last_access_time": struct.lastAccessTime or 0,
        "write_id": struct.writeId or -1,
        "statistics": statistics,
    }


def statistics_of(objects: Iterable[ColumnStatisticsObj], analysed: int) -> dict[str, list[Any]]:
    """Return statistics of columns; the interface has no time at which each was analysed."""
    given = list(objects)
    data = each_to_bytes([each.statsData for each in given])
    return {each.colName: [each.colType, analysed, b2a_base64(raw, newline=False).decode()] for each, raw in zip(given, data, strict=True)}


def without_sketches(statistics: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Return statistics of columns without bit vectors, histograms and the time when they were made."""
    data = [from_bytes(ColumnStatisticsData, a2b_base64(raw)) for _, _, raw in statistics.values()]
    for each in data:
        for _, name, *_ in each.thrift_spec.values():
            part = getattr(each, name)
            if part is not None:
                part.bitVectors = None
                part.histogram = None
    encoded = [b2a_base64(raw, newline=False).decode() for raw in each_to_bytes(data)]
    return {name: [kind, 0, text] for (name, (kind, *_)), text in zip(statistics.items(), encoded, strict=True)}


def function(struct: Function) -> dict[str, Any]:
    """Return the body of a function."""
    return {
        "class_name": struct.className,
        "owner_name": struct.ownerName,
        "owner_type": struct.ownerType,
        "create_time": struct.createTime or 0,
        "type": struct.functionType,
        "resources": [[each.resourceType, each.uri] for each in struct.resourceUris or ()],
    }


def resource_plan(full: WMFullResourcePlan) -> dict[str, Any]:
    """Return the body of a resource plan."""
    return {
        "status": full.plan.status,
        "body": {
            "query_parallelism": full.plan.queryParallelism,
            "default_pool": full.plan.defaultPoolPath,
            "pools": sorted([each.poolPath, each.allocFraction, each.queryParallelism, each.schedulingPolicy] for each in full.pools or ()),
            "triggers": sorted(
                [each.triggerName, each.triggerExpression, each.actionExpression, bool(each.isInUnmanaged)] for each in full.triggers or ()
            ),
            "mappings": sorted([each.entityType, each.entityName, each.poolPath, each.ordering] for each in full.mappings or ()),
            "pool_triggers": sorted([each.pool, each.trigger] for each in full.poolTriggers or ()),
        },
    }
