"""Methods that send partitions as PartitionSpec: a list of them, or a shared storage descriptor with relative paths."""

from __future__ import annotations

from copy import copy
from typing import Any

from metastore.errors import MetaError, MissingArgument, NoSuchObject
from metastore.idl import (
    GetPartitionsFilterSpec,
    GetPartitionsResponse,
    Partition,
    PartitionFilterMode,
    PartitionListComposingSpec,
    PartitionSpec,
    Table,
)
from metastore.methods.forms import unpack
from metastore.rules.catalog import projection
from metastore.rules.statistics import statistics_validity as validity_rules
from metastore.service.call.context import Call
from metastore.service.call.long_lists import LongList, made_of
from metastore.service.call.names import TableName
from metastore.service.catalog.partitions import partitions
from metastore.service.catalog.partitions.add_partitions import add_partitions
from metastore.service.catalog.partitions.partition_queries import PartitionQuery
from metastore.service.catalog.statistics import statistics_validity
from metastore.service.catalog.tables import tables

GROUPED = "hive.hcatalog.partition.spec.grouping.enabled"
"""Parameter of a table: with `true`, methods that answer with specs group its partitions by storage descriptor."""


def members(spec: PartitionSpec) -> list[Partition]:
    """Return the partitions of a spec. With a shared descriptor, a partition's location is the descriptor's with the partition's path
    added.
    """
    if spec.partitionList is not None:
        listed = list(spec.partitionList.partitions or [])
        for partition in listed:
            if partition is None or partition.dbName is None or partition.tableName is None:
                raise MissingArgument(f"a partition in the spec of {spec.dbName}.{spec.tableName} names no database and table")
        return listed
    shared = spec.sharedSDPartitionSpec
    if shared is None:
        return []
    if shared.sd is None:
        raise MissingArgument(f"the shared partition spec of {spec.dbName}.{spec.tableName} has no storage descriptor")
    out = []
    for slim in shared.partitions or []:
        if slim is None or slim.values is None:
            raise MissingArgument(f"a partition in the spec of {spec.dbName}.{spec.tableName} has no values")
        sd = copy(shared.sd)
        sd.location = f"{'null' if sd.location is None else sd.location}{'null' if slim.relativePath is None else slim.relativePath}"
        out.append(
            Partition(
                values=slim.values,
                dbName=spec.dbName,
                tableName=spec.tableName,
                catName=spec.catName,
                createTime=slim.createTime,
                lastAccessTime=slim.lastAccessTime,
                sd=sd,
                parameters=slim.parameters,
                privileges=slim.privileges,
            )
        )
    return out


def add(call: Call, args: Any) -> int:
    """Add the partitions of all specs; they belong to one table."""
    specs = args.new_parts
    if not specs or specs[0] is None:
        return 0
    unpack.check_named(call, specs[0].dbName, specs[0].tableName, specs[0].catName)
    name = unpack.table(call, specs[0].dbName, specs[0].tableName, specs[0].catName)
    found = [partition for spec in specs for partition in members(spec)]
    return len(add_partitions(call, name, found)) if found else 0


def in_one(table: Table, found: list[Partition]) -> list[PartitionSpec]:
    """Return partitions of a table in one spec."""
    return [
        PartitionSpec(
            catName=table.catName,
            dbName=table.dbName,
            tableName=table.tableName,
            rootPath=table.sd.location if table.sd is not None else None,
            partitionList=PartitionListComposingSpec(partitions=found),
        )
    ]


def _specs(call: Call, args: Any, query: PartitionQuery) -> list[PartitionSpec] | LongList:
    """Return partitions of a table in one spec, or with shared storage descriptors if the table's parameter `GROUPED` is true."""
    name, query = unpack.table(call, args.db_name, args.tbl_name), query.first(unpack.limit(args.max_parts))
    table = tables.find_table(call, name)
    if (table.parameters or {}).get(GROUPED, "").lower() == "true":
        return projection.as_specs(table, partitions.get_partitions(call, name, query))
    found = partitions.get_partitions_in_pages(call, name, query, form=partitions.TUPLES)
    return made_of(found.items, lambda page: in_one(table, page))


def get(call: Call, args: Any) -> list[PartitionSpec] | LongList:
    """Return the first partitions."""
    return _specs(call, args, partitions.EVERY)


def get_by_filter(call: Call, args: Any) -> list[PartitionSpec] | LongList:
    """Return the partitions that pass a filter."""
    return _specs(call, args, partitions.by_filter(args.filter))


def get_with_specs(call: Call, args: Any) -> GetPartitionsResponse:
    """Return the requested fields of the partitions that pass a filter, grouped by storage descriptor. MetaError."""
    request = args.request
    name = unpack.target(call, request)
    wanted = request.projectionSpec
    try:
        table = tables.find_table(call, name)
        found = _filtered(call, name, request.filterSpec)
    except NoSuchObject as error:
        raise MetaError(error.message) from error
    if (seen := validity_rules.seen_by(request.validWriteIdList)) is not None:
        statistics_validity.show_validity_of_partitions(found, seen)
    if wanted is not None:
        found = projection.project(found, wanted.fieldList, wanted.includeParamKeyPattern, wanted.excludeParamKeyPattern)
    return GetPartitionsResponse(partitionSpec=projection.as_specs(table, found))


def _filtered(call: Call, name: TableName, by: GetPartitionsFilterSpec | None) -> list[Partition]:
    mode = None if by is None else by.filterMode
    if by is None or mode is None:
        return partitions.get_partitions(call, name)
    filters = by.filters or []
    if mode == PartitionFilterMode.BY_NAMES:
        return partitions.get_partitions_by_names(call, name, by.filters)
    if mode == PartitionFilterMode.BY_VALUES:
        return partitions.get_partitions(call, name, partitions.by_values(filters))
    if mode == PartitionFilterMode.BY_EXPR:
        return partitions.get_partitions(
            call, name, partitions.by_filter(" AND ".join(f"({each})" for each in filters if each and each.strip()))
        )
    raise MetaError(f"{mode} is not a PartitionFilterMode: send BY_NAMES, BY_VALUES or BY_EXPR")
