"""Methods of partitions."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

from metastore.errors import InvalidObject, MetaError, MissingArgument, NoSuchObject
from metastore.idl import (
    AddPartitionsResult,
    AlterPartitionsResponse,
    DropPartitionsResult,
    GetPartitionNamesPsResponse,
    GetPartitionResponse,
    GetPartitionsByNamesResult,
    GetPartitionsPsWithAuthResponse,
    Partition,
    PartitionsByExprResult,
    PartitionsResponse,
    PartitionsSpecByExprResult,
    PartitionValuesResponse,
    PartitionValuesRow,
    RenamePartitionResponse,
)
from metastore.methods.catalog import partition_specs
from metastore.methods.forms import unpack
from metastore.methods.forms.entry import Handler
from metastore.rules.catalog import projection
from metastore.rules.catalog.capabilities import misreads_buckets
from metastore.rules.names import normalize, split_database
from metastore.rules.statistics import statistics_validity as validity_rules
from metastore.rules.values.partition_names import partition_spec, partition_values, validate_values
from metastore.service.call.context import Call
from metastore.service.call.long_lists import LongList, made_of
from metastore.service.call.names import TableName
from metastore.service.catalog import translation
from metastore.service.catalog.databases import find_database
from metastore.service.catalog.partitions import partitions
from metastore.service.catalog.partitions.add_partitions import add_partitions, append_partition, append_partition_by_name
from metastore.service.catalog.partitions.alter_partitions import alter_partitions, rename_partition
from metastore.service.catalog.partitions.drop_partitions import drop_partition, drop_partition_by_name, drop_partitions
from metastore.service.catalog.partitions.expressions import (
    EMPTY,
    Dropped,
    drop_partitions_by_expressions,
    get_partition_names_by_expression,
    get_partitions_by_expression,
)
from metastore.service.catalog.partitions.partition_queries import PartitionQuery
from metastore.service.catalog.statistics import statistics_validity
from metastore.service.catalog.tables import tables


def _name(call: Call, args: Any) -> TableName:
    return unpack.partitioned(call, args.db_name, args.tbl_name)


def _project(found: list[Partition], request: Any) -> list[Partition]:
    """Judge statistics by the query's snapshot, if it is sent; leave out columns and parameters that a 4.x client does not want."""
    if (seen := validity_rules.seen_by(getattr(request, "validWriteIdList", None))) is not None:
        statistics_validity.show_validity_of_partitions(found, seen)
    if any(patterns := _patterns(request)):
        found = projection.project(found, None, *patterns)
    if not request.skipColumnSchemaForPartition:
        return found
    slim = [copy(partition) for partition in found]
    for partition in slim:
        if partition.sd is not None:
            partition.sd = copy(partition.sd)
            partition.sd.cols = []
    return slim


def _patterns(request: Any) -> tuple[str | None, str | None]:
    """Return which keys of parameters a request wants, and which not."""
    return getattr(request, "includeParamKeyPattern", None), getattr(request, "excludeParamKeyPattern", None)


def _form(request: Any) -> partitions.Form:
    """Return what a reply is made of: structs where `_project` or something else changes them."""
    changed = request.skipColumnSchemaForPartition or validity_rules.seen_by(getattr(request, "validWriteIdList", None)) is not None
    added = getattr(request, "get_col_stats", False) or misreads_buckets(getattr(request, "processorCapabilities", None))
    return partitions.STRUCTS if changed or added or any(_patterns(request)) else partitions.TUPLES


def _with_columns(call: Call, name: TableName, sent: list[Partition], request: Any) -> list[Partition]:
    """Give partitions the columns that a client leaves out of them: those that it sends once for all (4.1), else the table's (4.0)."""
    bare = [each.sd for each in sent if each is not None and each.sd is not None and not each.sd.cols]
    if request.skipColumnSchemaForPartition and bare:
        columns = request.partitionColSchema or tables.find_table(call, name).sd.cols
        for descriptor in bare:
            descriptor.cols = columns
    return sent


def _add_partition(call: Call, args: Any) -> Partition:
    part = args.new_part
    if part is None:
        raise MetaError("Partition cannot be null")
    context = getattr(args, "environment_context", None)
    name = unpack.table(call, part.dbName, part.tableName, part.catName)
    return add_partitions(call, name, [part], environment=unpack.environment(context))[0]


def _add_partitions(call: Call, args: Any) -> int:
    parts = args.new_parts
    if parts is None:
        raise MissingArgument("add_partitions needs a list of partitions")
    if not parts:
        return 0
    first = parts[0]
    if first is None:
        raise MetaError("Partition cannot be null")
    _check_spelling(call, parts)
    return len(add_partitions(call, unpack.table(call, first.dbName, first.tableName, first.catName), parts))


def _check_spelling(call: Call, parts: Sequence[Partition | None]) -> None:
    """Refuse Hive 4's client partitions that spell their table in more than one way, as its server does."""
    if not call.client.release.is_4:
        return
    spelled: dict[str, str] = {}
    for part in parts:
        if part is not None:
            name = f"{part.dbName}.{part.tableName}"
            first = spelled.setdefault(normalize(name), name)
            if name != first:
                raise MetaError(f"Partition does not belong to target table {first}: it names {name}")


def _add_partitions_req(call: Call, args: Any) -> AddPartitionsResult:
    request = args.request
    name = unpack.target(call, request)
    _check_spelling(call, request.parts or [])
    added = add_partitions(
        call,
        name,
        _with_columns(call, name, request.parts or [], request),
        if_not_exists=bool(request.ifNotExists),
        environment=unpack.environment(request.environmentContext),
    )
    if request.needResult is False:
        return AddPartitionsResult()
    columns = added[0].sd.cols if request.skipColumnSchemaForPartition and added and added[0].sd is not None else None
    return AddPartitionsResult(partitions=added, partitionColSchema=columns)


def _append(call: Call, args: Any) -> Partition:
    context = getattr(args, "environment_context", None)
    return append_partition(call, _name(call, args), args.part_vals, environment=unpack.environment(context))


def _append_by_name(call: Call, args: Any) -> Partition:
    context = getattr(args, "environment_context", None)
    return append_partition_by_name(call, _name(call, args), args.part_name, environment=unpack.environment(context))


def _append_req(call: Call, args: Any) -> Partition:
    request = args.appendPartitionsReq
    name = unpack.table(call, request.dbName, request.tableName, request.catalogName)
    environment = unpack.environment(request.environmentContext)
    if request.name is not None:
        return append_partition_by_name(call, name, request.name, environment=environment)
    return append_partition(call, name, request.partVals, environment=environment)


def _alter_partition(call: Call, args: Any) -> None:
    if args.new_part is None:
        raise MissingArgument(f"{call.method} needs the new partition")
    context = getattr(args, "environment_context", None)
    rename_partition(call, _name(call, args), None, args.new_part, environment=unpack.environment(context))


def _alter_partitions(call: Call, args: Any) -> None:
    if args.new_parts is None:
        raise MissingArgument(f"{call.method} needs the new partitions")
    context = getattr(args, "environment_context", None)
    alter_partitions(call, _name(call, args), args.new_parts or [], environment=unpack.environment(context))


def _alter_partitions_req(call: Call, args: Any) -> AlterPartitionsResponse:
    request = args.req
    name = unpack.target(call, request)
    sent = _with_columns(call, name, request.partitions or [], request)
    by = validity_rules.writer(request.writeId, request.validWriteIdList)
    alter_partitions(call, name, sent, environment=unpack.environment(request.environmentContext), by=by)
    return AlterPartitionsResponse()


def _rename_partition(call: Call, args: Any) -> None:
    if args.new_part is None:
        raise MissingArgument(f"{call.method} needs the new partition")
    rename_partition(call, _name(call, args), args.part_vals, args.new_part)


def _rename_partition_req(call: Call, args: Any) -> RenamePartitionResponse:
    rename_partition(call, unpack.target(call, args.req), args.req.partVals, args.req.newPart)
    return RenamePartitionResponse()


def _drop_partition(call: Call, args: Any) -> bool:
    environment = unpack.environment(getattr(args, "environment_context", None))
    drop_partition(call, _name(call, args), args.part_vals, delete_data=bool(args.deleteData), environment=environment)
    return True


def _drop_partition_by_name(call: Call, args: Any) -> bool:
    environment = unpack.environment(getattr(args, "environment_context", None))
    drop_partition_by_name(call, _name(call, args), args.part_name, delete_data=bool(args.deleteData), environment=environment)
    return True


def _drop_partition_req(call: Call, args: Any) -> bool:
    request = args.dropPartitionReq
    name, environment = unpack.target(call, request), unpack.environment(request.environmentContext)
    if request.partName is not None:
        drop_partition_by_name(call, name, request.partName, delete_data=bool(request.deleteData), environment=environment)
    else:
        drop_partition(call, name, request.partVals, delete_data=bool(request.deleteData), environment=environment)
    return True


def _drop_partitions_req(call: Call, args: Any) -> DropPartitionsResult:
    request = args.req
    name, environment = unpack.target(call, request), unpack.environment(request.environmentContext)
    delete_data, if_exists = bool(request.deleteData), request.ifExists is not False
    if request.parts is not None and request.parts.exprs is not None:
        wanted = [Dropped(each.expr or b"", None if request.ignoreProtection else each.partArchiveLevel) for each in request.parts.exprs]
        dropped = drop_partitions_by_expressions(call, name, wanted, delete_data=delete_data, if_exists=if_exists, environment=environment)
    elif request.parts is not None and request.parts.names is not None:
        dropped = drop_partitions(call, name, request.parts.names, delete_data=delete_data, if_exists=if_exists, environment=environment)
    else:
        raise MetaError("Partition spec is not set: send names or expressions in parts")
    return DropPartitionsResult(partitions=_project(dropped, request) if request.needResult is not False else None)


def _get_partitions_by_expr(call: Call, args: Any) -> PartitionsByExprResult | LongList:
    request = args.req
    found = get_partitions_by_expression(
        call, unpack.target(call, request), request.expr or b"", unpack.limit(request.maxParts), request.defaultPartitionName
    )
    return made_of(
        found.items,
        lambda page: PartitionsByExprResult(partitions=_project(page, request), hasUnknownPartitions=not found.is_certain),
    )


def _get_partitions_spec_by_expr(call: Call, args: Any) -> PartitionsSpecByExprResult | LongList:
    request = args.req
    name = unpack.target(call, request)
    table = tables.find_table(call, name)
    found = get_partitions_by_expression(call, name, request.expr or b"", unpack.limit(request.maxParts), request.defaultPartitionName)
    return made_of(
        found.items,
        lambda page: PartitionsSpecByExprResult(
            partitionsSpec=partition_specs.in_one(table, _project(page, request)), hasUnknownPartitions=not found.is_certain
        ),
    )


def _get_partitions_by_names(call: Call, args: Any) -> list[Partition]:
    return partitions.get_partitions_by_names(call, _name(call, args), args.names, form=partitions.TUPLES)


def _get_partitions_by_names_req(call: Call, args: Any) -> GetPartitionsByNamesResult:
    request = args.req
    name = unpack.table(call, request.db_name, request.tbl_name)
    try:
        found = _project(partitions.get_partitions_by_names(call, name, request.names, form=_form(request)), request)
    except NoSuchObject as error:  # Hive 4's client, which alone asks so, tells a missing table from a missing database
        find_database(call, name.catalog, name.database)
        raise InvalidObject(error.message) from error
    if request.get_col_stats:
        statistics_validity.add_to_partitions(call, name, found, request.engine, validity_rules.seen_by(request.validWriteIdList))
    if misreads_buckets(request.processorCapabilities):
        found = translation.on_get_partitions(tables.find_table(call, name), found)
    return GetPartitionsByNamesResult(partitions=found)


def _get_partitions_req(call: Call, args: Any) -> PartitionsResponse | LongList:
    request = args.req
    found = _first(call, unpack.target(call, request), partitions.EVERY, request.maxParts, form=_form(request))
    return made_of(found, lambda page: PartitionsResponse(partitions=_project(page, request)))


def _get_partitions_by_filter_req(call: Call, args: Any) -> list[Partition] | LongList:
    request = args.req
    found = _first(call, unpack.target(call, request), partitions.by_filter(request.filter), request.maxParts, form=_form(request))
    return made_of(found, lambda page: _project(page, request))


def _get_partitions_ps_with_auth_req(call: Call, args: Any) -> GetPartitionsPsWithAuthResponse | LongList:
    request = args.req
    name = unpack.target(call, request)
    asked = (
        None if request.userName is None and request.groupNames is None else partitions.Grantee(request.userName, request.groupNames or [])
    )
    found: list[Partition] | LongList
    if request.partNames is not None:
        found = partitions.get_partitions_by_names(call, name, request.partNames, form=_form(request))
    elif request.partVals is None:
        found = _first(call, name, partitions.EVERY, request.maxParts, asked, form=_form(request))
    else:
        found = _with_values(call, name, request.partVals, request.maxParts, asked, form=_form(request))
    return made_of(found, lambda page: GetPartitionsPsWithAuthResponse(partitions=_project(page, request)))


def _get_partition_names_ps_req(call: Call, args: Any) -> GetPartitionNamesPsResponse:
    request = args.req
    name, limit = unpack.target(call, request), unpack.limit(request.maxParts)
    return GetPartitionNamesPsResponse(names=partitions.get_partition_names_by_values(call, name, _leading(request.partValues), limit))


def _fetch_partition_names_req(call: Call, args: Any) -> list[str]:
    """Return the names of a table's partitions; none for a missing table, which Hive 4's client expects."""
    request = args.partitionReq
    name, limit = unpack.target(call, request), unpack.limit(request.maxParts)
    if not all(name):
        raise MetaError(f"{call.method} needs the names of database and table; got '{name.database}' and '{name.table}'")
    try:
        return partitions.get_partition_names(call, name, limit)
    except NoSuchObject:
        return []


def _get_partition_names_req(call: Call, args: Any) -> list[str]:
    request = args.req
    name, limit = unpack.target(call, request), unpack.limit(request.maxParts)
    if (request.expr or b"") in EMPTY and not request.order:
        return partitions.get_partition_names(call, name, limit)
    return get_partition_names_by_expression(call, name, request.expr or b"", limit, request.defaultPartitionName, request.order)


def _get_partition(call: Call, args: Any) -> Partition:
    return partitions.get_partition(call, _name(call, args), args.part_vals)


def _first(
    call: Call, name: TableName, query: PartitionQuery, limit: int | None, principal: partitions.Grantee | None = None,
    *, form: partitions.Form = partitions.TUPLES,
) -> list[Partition] | LongList:  # fmt: skip
    """Return the first partitions that a query selects; pages of them if they are many."""
    return partitions.get_partitions_in_pages(call, name, query.first(unpack.limit(limit)), principal, form=form).items


def _get_partitions(call: Call, args: Any) -> list[Partition] | LongList:
    return _first(call, _name(call, args), partitions.EVERY, args.max_parts)


EMPTY_VALUES = 'the list of partition values is null or empty: give a value for each leading key, "" for any'


def _leading(values: list[str] | None) -> list[str]:
    if not values:
        raise MetaError(EMPTY_VALUES)
    return values


def _with_values(
    call: Call, name: TableName, values: list[str] | None, limit: int | None, principal: partitions.Grantee | None = None,
    *, form: partitions.Form = partitions.TUPLES,
) -> list[Partition] | LongList:  # fmt: skip
    """Return the first partitions whose leading values agree, of all without values. MetaError without, where not all may be asked for."""
    if values:
        return _first(call, name, partitions.by_values(values), limit, principal, form=form)
    most = call.config.limit_partition_request
    if most >= 0 and not 0 <= unpack.limit(limit) <= most:
        raise MetaError(f"{EMPTY_VALUES}, or ask for {most} partitions at the most (limit_partition_request)")
    return _first(call, name, partitions.EVERY, limit, principal, form=form)


def _get_partitions_ps(call: Call, args: Any) -> list[Partition] | LongList:
    return _with_values(call, _name(call, args), args.part_vals, args.max_parts)


def _get_partitions_by_filter(call: Call, args: Any) -> list[Partition] | LongList:
    try:
        return _first(call, _name(call, args), partitions.by_filter(args.filter), args.max_parts)
    except NoSuchObject as error:  # 3's client looks for the names as it spelled them
        _, database = split_database(args.db_name)
        raise NoSuchObject(f"{error.message}: {database}.{args.tbl_name} table not found") from error


def _get_partition_names(call: Call, args: Any) -> list[str]:
    return partitions.get_partition_names(call, _name(call, args), unpack.limit(args.max_parts))


def _get_partition_names_ps(call: Call, args: Any) -> list[str]:
    return partitions.get_partition_names_by_values(call, _name(call, args), _leading(args.part_vals), unpack.limit(args.max_parts))


def _principal(args: Any) -> partitions.Grantee:
    return partitions.Grantee(args.user_name, args.group_names or [])


def _get_partition_with_auth(call: Call, args: Any) -> Partition:
    return partitions.get_partition(call, _name(call, args), args.part_vals, _principal(args))


def _get_partitions_with_auth(call: Call, args: Any) -> list[Partition] | LongList:
    return _first(call, _name(call, args), partitions.EVERY, args.max_parts, _principal(args))


def _get_partitions_ps_with_auth(call: Call, args: Any) -> list[Partition] | LongList:
    return _with_values(call, _name(call, args), args.part_vals, args.max_parts, _principal(args))


def _get_partition_values(call: Call, args: Any) -> PartitionValuesResponse:
    request = args.request
    rows = partitions.get_partition_values(
        call,
        unpack.target(call, request),
        request.partitionKeys,
        request.filter,
        distinct=request.applyDistinct is not False,
        ascending=request.ascending is not False,
        limit=unpack.limit(request.maxParts) or -1,  # Hive's server takes none for all here
    )
    return PartitionValuesResponse(partitionValues=[PartitionValuesRow(row=row) for row in rows])


def _has_valid_characters(call: Call, args: Any) -> bool:
    try:
        validate_values(args.part_vals or [], call.config.partition_name_whitelist)
    except MetaError:
        if args.throw_exception:
            raise
        return False
    return True


METHODS: dict[str, Handler] = {
    "add_partition": _add_partition,
    "add_partition_with_environment_context": _add_partition,
    "add_partitions": _add_partitions,
    "add_partitions_req": _add_partitions_req,
    "add_partitions_pspec": partition_specs.add,
    "append_partition": _append,
    "append_partition_with_environment_context": _append,
    "append_partition_by_name": _append_by_name,
    "append_partition_by_name_with_environment_context": _append_by_name,
    "append_partition_req": _append_req,
    "alter_partition": _alter_partition,
    "alter_partition_with_environment_context": _alter_partition,
    "alter_partitions": _alter_partitions,
    "alter_partitions_with_environment_context": _alter_partitions,
    "alter_partitions_req": _alter_partitions_req,
    "rename_partition": _rename_partition,
    "rename_partition_req": _rename_partition_req,
    "drop_partition": _drop_partition,
    "drop_partition_with_environment_context": _drop_partition,
    "drop_partition_by_name": _drop_partition_by_name,
    "drop_partition_by_name_with_environment_context": _drop_partition_by_name,
    "drop_partition_req": _drop_partition_req,
    "drop_partitions_req": _drop_partitions_req,
    "get_partition": _get_partition,
    "get_partition_with_auth": _get_partition_with_auth,
    "get_partition_by_name": lambda call, args: partitions.get_partition_by_name(call, _name(call, args), args.part_name),
    "get_partition_req": lambda call, args: GetPartitionResponse(
        partition=partitions.get_partition(call, unpack.target(call, args.req), args.req.partVals)
    ),
    "get_partitions": _get_partitions,
    "get_partitions_with_auth": _get_partitions_with_auth,
    "get_partitions_req": _get_partitions_req,
    "get_partitions_pspec": partition_specs.get,
    "get_part_specs_by_filter": partition_specs.get_by_filter,
    "get_partitions_with_specs": partition_specs.get_with_specs,
    "get_partitions_ps": _get_partitions_ps,
    "get_partitions_ps_with_auth": _get_partitions_ps_with_auth,
    "get_partition_values": _get_partition_values,
    "get_partitions_ps_with_auth_req": _get_partitions_ps_with_auth_req,
    "get_partitions_by_names": _get_partitions_by_names,
    "get_partitions_by_names_req": _get_partitions_by_names_req,
    "get_partitions_by_filter": _get_partitions_by_filter,
    "get_partitions_by_filter_req": _get_partitions_by_filter_req,
    "get_num_partitions_by_filter": lambda call, args: partitions.get_num_partitions_by_filter(call, _name(call, args), args.filter),
    "get_partitions_by_expr": _get_partitions_by_expr,
    "get_partitions_spec_by_expr": _get_partitions_spec_by_expr,
    "get_partition_names": _get_partition_names,
    "get_partition_names_ps": _get_partition_names_ps,
    "get_partition_names_ps_req": _get_partition_names_ps_req,
    "get_partition_names_req": _get_partition_names_req,
    "fetch_partition_names_req": _fetch_partition_names_req,
    "partition_name_to_vals": lambda call, args: partition_values(args.part_name) if args.part_name else [],
    "partition_name_to_spec": lambda call, args: partition_spec(args.part_name) if args.part_name else {},
    "partition_name_has_valid_characters": _has_valid_characters,
}
