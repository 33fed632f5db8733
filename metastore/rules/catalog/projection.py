"""Partitions and tables with only the fields that a request names; partitions as specs, grouped by storage descriptor.

Pure. Source: Hive's PartitionProjectionEvaluator, TableFields and MetaStoreServerUtils.getPartitionspecsGroupedByStorageDescriptor. Unlike
there, an empty field list does not switch the request's filter off.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from typing import Any

from metastore.errors import MetaError
from metastore.idl import (
    GetProjectionsSpec,
    Partition,
    PartitionListComposingSpec,
    PartitionSpec,
    PartitionSpecWithSharedSD,
    PartitionWithoutSD,
    StorageDescriptor,
    Table,
)
from metastore.rules.like import sql_matcher

_NAMES = ("catName", "dbName", "tableName")
"""Fields of a partition that are always returned."""
FIELDS = (
    *_NAMES, "createTime", "lastAccessTime", "values", "parameters", "writeId",
    *(f"sd.{name}" for name in ("location", "inputFormat", "outputFormat", "compressed", "numBuckets", "bucketCols", "parameters")),
    *(f"sd.cols.{name}" for name in ("name", "type", "comment")), "sd.sortCols.col", "sd.sortCols.order",
    *(f"sd.serdeInfo.{name}" for name in (
        "name", "serializationLib", "description", "serializerClass", "deserializerClass", "serdeType", "parameters",
    )),
    *(f"sd.skewedInfo.{name}" for name in ("skewedColNames", "skewedColValues", "skewedColValueLocationMaps")),
    *(f"privileges.{name}" for name in ("userPrivileges", "groupPrivileges", "rolePrivileges")),
)  # fmt: skip
"""Fields that a client may ask for; the beginning of several names stands for all of them."""
_SERDE = ("name", "serializationLib", "description", "serializerClass", "deserializerClass", "serdeType")
_TABLE_FIELDS = frozenset(
    {
        "id", "catName", "dbName", "tableName", "owner", "ownerType", "createTime", "lastAccessTime", "retention", "viewOriginalText",
        "viewExpandedText", "rewriteEnabled", "tableType", "writeId", *(f"sd.serdeInfo.{name}" for name in _SERDE),
        *(f"sd.{name}" for name in ("location", "inputFormat", "outputFormat", "compressed", "numBuckets", "storedAsSubDirectories")),
    }
)  # fmt: skip
"""Fields of a table that are one value."""
_TABLE_COLLECTIONS = frozenset(
    {
        "sd.serdeInfo.parameters", "sd.bucketCols", "sd.parameters", "parameters", "sd.sortCols.col", "sd.sortCols.order",
        *(f"{place}.{name}" for place in ("sd.cols", "partitionKeys") for name in ("name", "type", "comment")),
        *(f"sd.skewedInfo.{name}" for name in ("skewedColNames", "skewedColValues", "skewedColValueLocationMaps")),
    }
)  # fmt: skip
"""Fields of a table with more than one value: the whole table is returned where one of them is requested."""
_ALWAYS = ("createTime", "lastAccessTime", "retention")
"""Numbers of a table that are in every struct of Java's."""
Tree = dict[str, "Tree"]


def project(
    found: Sequence[Partition], fields: Sequence[str] | None, include: str | None = None, exclude: str | None = None
) -> list[Partition]:
    """Return partitions with the given fields, or all, and with the parameters whose keys are LIKE `include` and not LIKE `exclude`.

    MetaError for a field that partitions do not have.
    """
    out = list(found)
    if fields:
        tree = _tree(fields)
        remembered: dict[tuple[int, int], Any] = {}
        out = [_picked(partition, tree, remembered) for partition in out]
    if include or exclude:
        wanted, unwanted = sql_matcher(include or "%"), sql_matcher(exclude) if exclude else None
        out = list(map(copy, out))
        for partition in out:
            parameters = partition.parameters
            if parameters is not None:
                partition.parameters = {key: value for key, value in parameters.items() if wanted(key) and not (unwanted and unwanted(key))}
    return out


def project_tables(found: Sequence[Table], spec: GetProjectionsSpec | None) -> list[Table]:
    """Return tables with some fields; whole ones without a list. MetaError for a field that tables do not have, and for patterns."""
    if spec is None or not (spec.fieldList or spec.includeParamKeyPattern or spec.excludeParamKeyPattern):
        return list(found)
    if spec.includeParamKeyPattern or spec.excludeParamKeyPattern:
        raise MetaError("The parameters of tables can not be chosen by patterns: send a projectionSpec with a fieldList alone")
    fields = set(spec.fieldList)
    unknown = sorted(fields - _TABLE_FIELDS - _TABLE_COLLECTIONS)
    if unknown:
        raise MetaError(f"Invalid field names {', '.join(unknown)}: tables have {', '.join(sorted(_TABLE_FIELDS | _TABLE_COLLECTIONS))}")
    if fields & _TABLE_COLLECTIONS:
        return list(found)
    tree = _nested((*_ALWAYS, *fields))
    return [_picked(table, tree, {}) for table in found]


def _tree(fields: Iterable[str]) -> Tree:
    """Return the fields of partitions as names within names. MetaError."""
    named: list[str] = [*_NAMES]
    for field in fields:
        found = [each for each in FIELDS if each == field] or [each for each in FIELDS if field and each.startswith(field)]
        if not found:
            raise MetaError(f"Invalid field name '{field}': partitions have {', '.join(FIELDS)}")
        named += found
    return _nested(named)


def _nested(fields: Iterable[str]) -> Tree:
    """Return fields as names within names; a leaf has none."""
    tree: Tree = {}
    for field in fields:
        place = tree
        for name in field.split("."):
            place = place.setdefault(name, {})
    return tree


def _picked(value: Any, tree: Tree, remembered: dict[tuple[int, int], Any]) -> Any:
    """Return the fields of a struct, or of each in a list, that a tree names; parts that partitions share are made once."""
    if not tree or value is None:
        return value
    key = id(value), id(tree)
    if key not in remembered:
        if isinstance(value, list):
            remembered[key] = [_picked(each, tree, remembered) for each in value]
        else:
            remembered[key] = type(value)(**{name: _picked(getattr(value, name), inner, remembered) for name, inner in tree.items()})
    return remembered[key]


def as_specs(table: Table, found: Iterable[Partition]) -> list[PartitionSpec]:
    """Return partitions of a table as specs: those below its directory, or without a place, by storage descriptor; then all others."""
    base = table.sd.location if table.sd is not None else None
    groups: dict[tuple[Any, ...], tuple[StorageDescriptor, list[PartitionWithoutSD]]] = {}
    elsewhere = []
    for partition in found:
        sd = partition.sd
        place = sd.location if sd is not None else None
        if place is not None and not (base and place.startswith(base)):
            elsewhere.append(partition)
            continue
        key = () if sd is None else (place is None, *_key(sd))
        if key not in groups:
            shared = StorageDescriptor() if sd is None else copy(sd)
            if place is not None and base:
                shared.location = base
            groups[key] = shared, []
        groups[key][1].append(
            PartitionWithoutSD(
                values=partition.values,
                createTime=partition.createTime,
                lastAccessTime=partition.lastAccessTime,
                relativePath=place[len(base) :] if place is not None and base else None,
                parameters=partition.parameters,
                privileges=partition.privileges,
            )
        )
    names: dict[str, Any] = {"catName": table.catName, "dbName": table.dbName, "tableName": table.tableName}
    specs = [
        PartitionSpec(**names, rootPath=shared.location, sharedSDPartitionSpec=PartitionSpecWithSharedSD(partitions=slim, sd=shared))
        for shared, slim in groups.values()
    ]
    if elsewhere:
        specs.append(PartitionSpec(**names, partitionList=PartitionListComposingSpec(partitions=elsewhere)))
    return specs


def _key(sd: StorageDescriptor) -> tuple[Any, ...]:
    """Return a key that is equal for descriptors that differ in their location alone: equal parts are one object."""
    values = (value for name, value in sd.__dict__.items() if name != "location")
    return tuple(value if value is None or isinstance(value, (str, int)) else id(value) for value in values)
