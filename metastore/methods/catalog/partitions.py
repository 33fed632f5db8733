"""Methods that read partitions and their names."""

from __future__ import annotations

from copy import copy
from typing import Any

from metastore.errors import InvalidObject, MetaError, NoSuchObject
from metastore.idl import (
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
)
from metastore.methods.catalog import partition_rules as rules
from metastore.methods.catalog import partition_specs
from metastore.methods.forms import unpack
from metastore.methods.forms.entry import reads
from metastore.methods.forms.rules import OPEN, SEE, found_by, needs, on_table
from metastore.rules.catalog import projection
from metastore.rules.catalog.capabilities import misreads_buckets
from metastore.rules.names import split_database
from metastore.rules.statistics import statistics_validity as validity_rules
from metastore.rules.values.partition_names import partition_spec, partition_values, validate_values
from metastore.service.call.context import Call
from metastore.service.call.long_lists import LongList, made_of
from metastore.service.call.names import TableName
from metastore.service.call.releases import Sign
from metastore.service.catalog import translation
from metastore.service.catalog.databases import find_database
from metastore.service.catalog.partitions import partitions
from metastore.service.catalog.partitions.expressions import (
    EMPTY,
    get_partition_names_by_expression,
    get_partitions_by_expression,
)
from metastore.service.catalog.partitions.partition_queries import PartitionQuery
from metastore.service.catalog.privilege_sets import Grantee
from metastore.service.catalog.statistics import statistics_validity
from metastore.service.catalog.tables import tables


def table_of(call: Call, args: Any) -> TableName:
    return unpack.table(call, args.db_name, args.tbl_name)


def project(found: list[Partition], request: Any) -> list[Partition]:
    """Judge statistics by the query's snapshot, if it is sent; leave out columns and parameters that a 4.x client does not request."""
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
    """Return the patterns of the parameters' keys that a request includes and excludes."""
    return getattr(request, "includeParamKeyPattern", None), getattr(request, "excludeParamKeyPattern", None)


def _form(request: Any) -> partitions.Form:
    """Return the form of partitions in a reply: structs where `project` or something else changes them."""
    changed = request.skipColumnSchemaForPartition or validity_rules.seen_by(getattr(request, "validWriteIdList", None)) is not None
    added = getattr(request, "get_col_stats", False) or misreads_buckets(getattr(request, "processorCapabilities", None))
    return partitions.STRUCTS if changed or added or any(_patterns(request)) else partitions.TUPLES


def _get_partitions_by_expr(call: Call, args: Any) -> PartitionsByExprResult | LongList:
    request = args.req
    found = get_partitions_by_expression(
        call, unpack.target(call, request), request.expr or b"", unpack.limit(request.maxParts), request.defaultPartitionName
    )
    return made_of(
        found.items,
        lambda page: PartitionsByExprResult(partitions=project(page, request), hasUnknownPartitions=not found.is_certain),
    )


def _get_partitions_spec_by_expr(call: Call, args: Any) -> PartitionsSpecByExprResult | LongList:
    request = args.req
    name = unpack.target(call, request)
    table = tables.find_table(call, name)
    found = get_partitions_by_expression(call, name, request.expr or b"", unpack.limit(request.maxParts), request.defaultPartitionName)
    return made_of(
        found.items,
        lambda page: PartitionsSpecByExprResult(
            partitionsSpec=partition_specs.in_one(table, project(page, request)), hasUnknownPartitions=not found.is_certain
        ),
    )


def _get_partitions_by_names(call: Call, args: Any) -> list[Partition]:
    return partitions.get_partitions_by_names(call, table_of(call, args), args.names, form=partitions.TUPLES)


def _get_partitions_by_names_req(call: Call, args: Any) -> GetPartitionsByNamesResult:
    request = args.req
    name = unpack.table(call, request.db_name, request.tbl_name)
    try:
        found = project(partitions.get_partitions_by_names(call, name, request.names, form=_form(request)), request)
    except NoSuchObject as error:  # only Hive 4's client calls this method, and it distinguishes a missing table from a missing database
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
    return made_of(found, lambda page: PartitionsResponse(partitions=project(page, request)))


def _get_partitions_by_filter_req(call: Call, args: Any) -> list[Partition] | LongList:
    request = args.req
    found = _first(call, unpack.target(call, request), partitions.by_filter(request.filter), request.maxParts, form=_form(request))
    return made_of(found, lambda page: project(page, request))


def _user_with_groups(user: str | None, groups: list[str] | None) -> Grantee | None:
    """Return the grantee whose privileges a listing by leading values shows; None unless user and groups are sent, as in Hive."""
    return None if user is None or groups is None else Grantee(user, groups)


def _get_partitions_ps_with_auth_req(call: Call, args: Any) -> GetPartitionsPsWithAuthResponse | LongList:
    request = args.req
    name = unpack.target(call, request)
    asked = _user_with_groups(request.userName, request.groupNames)
    found: list[Partition] | LongList
    if request.partNames is not None:
        found = partitions.get_partitions_by_names(call, name, request.partNames, form=_form(request))
    elif request.partVals is None:
        found = _first(call, name, partitions.EVERY, request.maxParts, asked, form=_form(request))
    else:
        found = _with_values(call, name, request.partVals, request.maxParts, asked, form=_form(request))
    return made_of(found, lambda page: GetPartitionsPsWithAuthResponse(partitions=project(page, request)))


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
    return partitions.get_partition(call, table_of(call, args), args.part_vals)


def _first(
    call: Call, name: TableName, query: PartitionQuery, limit: int | None, principal: Grantee | None = None,
    *, form: partitions.Form = partitions.TUPLES,
) -> list[Partition] | LongList:  # fmt: skip
    """Return the first partitions that a query selects; pages of them if they are many."""
    return partitions.get_partitions_in_pages(call, name, query.first(unpack.limit(limit)), principal, form=form).items


def _get_partitions(call: Call, args: Any) -> list[Partition] | LongList:
    return _first(call, table_of(call, args), partitions.EVERY, args.max_parts)


EMPTY_VALUES = 'the list of partition values is null or empty: give a value for each leading key, "" for any'


def _leading(values: list[str] | None) -> list[str]:
    if not values:
        raise MetaError(EMPTY_VALUES)
    return values


def _with_values(
    call: Call, name: TableName, values: list[str] | None, limit: int | None, principal: Grantee | None = None,
    *, form: partitions.Form = partitions.TUPLES,
) -> list[Partition] | LongList:  # fmt: skip
    """Return the first partitions with these leading values; without values the first of all, or MetaError where these may be too many."""
    if values:
        return _first(call, name, partitions.by_values(values), limit, principal, form=form)
    most = call.config.limit_partition_request
    if most >= 0 and not 0 <= unpack.limit(limit) <= most:
        raise MetaError(f"{EMPTY_VALUES}, or ask for {most} partitions at the most (limit_partition_request)")
    return _first(call, name, partitions.EVERY, limit, principal, form=form)


def _get_partitions_ps(call: Call, args: Any) -> list[Partition] | LongList:
    return _with_values(call, table_of(call, args), args.part_vals, args.max_parts)


def _get_partitions_by_filter(call: Call, args: Any) -> list[Partition] | LongList:
    try:
        return _first(call, table_of(call, args), partitions.by_filter(args.filter), args.max_parts)
    except NoSuchObject as error:  # Hive 3's client searches the text for the names in its own spelling
        _, database = split_database(args.db_name)
        raise NoSuchObject(f"{error.message}: {database}.{args.tbl_name} table not found") from error


def _get_partition_names(call: Call, args: Any) -> list[str]:
    return partitions.get_partition_names(call, table_of(call, args), unpack.limit(args.max_parts))


def _get_partition_names_ps(call: Call, args: Any) -> list[str]:
    return partitions.get_partition_names_by_values(call, table_of(call, args), _leading(args.part_vals), unpack.limit(args.max_parts))


def _principal(args: Any) -> Grantee:
    return Grantee(args.user_name, args.group_names or [])


def _get_partition_with_auth(call: Call, args: Any) -> Partition:
    return partitions.get_partition(call, table_of(call, args), args.part_vals, _principal(args))


def _get_partitions_with_auth(call: Call, args: Any) -> list[Partition] | LongList:
    return _first(call, table_of(call, args), partitions.EVERY, args.max_parts, _principal(args))


def _get_partitions_ps_with_auth(call: Call, args: Any) -> list[Partition] | LongList:
    asked = _user_with_groups(args.user_name, args.group_names)
    return _with_values(call, table_of(call, args), args.part_vals, args.max_parts, asked)


def _get_partition_values(call: Call, args: Any) -> PartitionValuesResponse:
    request = args.request
    rows = partitions.get_partition_values(
        call,
        unpack.target(call, request),
        request.partitionKeys,
        request.filter,
        distinct=request.applyDistinct is not False,
        ascending=request.ascending is not False,
        limit=unpack.limit(request.maxParts) or -1,  # for Hive's server 0 means all here
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


METHODS = (
    reads("get_partition", _get_partition, rules.READS, replica=True, sign=Sign.MARKS_CATALOG),
    reads("get_partition_with_auth", unpack.ends_without_names(_get_partition_with_auth), rules.READS_WITH_PRIVILEGES, replica=True),
    reads(
        "get_partition_by_name",
        lambda call, args: partitions.get_partition_by_name(call, table_of(call, args), args.part_name),
        rules.READS,
        replica=True,
    ),
    reads(
        "get_partition_req",
        lambda call, args: GetPartitionResponse(partition=partitions.get_partition(call, unpack.target(call, args.req), args.req.partVals)),
        rules.READS_OF_REQUEST,
        replica=True,
        sign=Sign.SINCE_4,
    ),
    reads("get_partitions", unpack.ends_without_names(_get_partitions), rules.READS, replica=True, sign=Sign.MARKS_CATALOG),
    reads("get_partitions_with_auth", _get_partitions_with_auth, rules.READS_WITH_PRIVILEGES, replica=True),
    reads("get_partitions_req", _get_partitions_req, rules.READS_OF_REQUEST, replica=True, sign=Sign.SINCE_4),
    reads("get_partitions_pspec", unpack.ends_without_names(partition_specs.get), rules.READS, replica=True, ends_for_4=True),
    reads("get_part_specs_by_filter", partition_specs.get_by_filter, rules.READS, replica=True),
    reads(
        "get_partitions_with_specs",
        partition_specs.get_with_specs,
        needs(on_table(SEE, *rules.named_in("request")), operation="SHOWPARTITIONS"),
        replica=True,
    ),
    reads("get_partitions_ps", _get_partitions_ps, rules.READS, replica=True),
    reads(
        "get_partitions_ps_with_auth", unpack.ends_without_names(_get_partitions_ps_with_auth), rules.READS_WITH_PRIVILEGES, replica=True
    ),
    reads(
        "get_partition_values",
        _get_partition_values,
        needs(on_table(SEE, *rules.named_in("request")), operation="SHOWPARTITIONS"),
        replica=True,
    ),
    reads("get_partitions_ps_with_auth_req", _get_partitions_ps_with_auth_req, rules.READS_OF_REQUEST, replica=True, sign=Sign.SINCE_4),
    reads("get_partitions_by_names", unpack.ends_without_names(_get_partitions_by_names), rules.READS, replica=True),
    reads(
        "get_partitions_by_names_req",
        _get_partitions_by_names_req,
        needs(found_by(rules.STATISTICS_TOO, rules.asked_by_names), operation="SHOWPARTITIONS"),
        replica=True,
        sign=Sign.SINCE_4,
    ),
    reads("get_partitions_by_filter", unpack.ends_without_names(_get_partitions_by_filter), rules.READS, replica=True),
    reads("get_partitions_by_filter_req", _get_partitions_by_filter_req, rules.READS_OF_REQUEST, replica=True, sign=Sign.SINCE_4),
    reads(
        "get_num_partitions_by_filter",
        lambda call, args: partitions.get_num_partitions_by_filter(call, table_of(call, args), args.filter),
        rules.READS,
        replica=True,
    ),
    reads("get_partitions_by_expr", _get_partitions_by_expr, rules.READS_OF_REQUEST, replica=True),
    reads("get_partitions_spec_by_expr", _get_partitions_spec_by_expr, rules.READS_OF_REQUEST, replica=True),
    reads(
        "get_partition_names",
        unpack.ends_without_names(_get_partition_names),
        rules.READS,
        replica=True,
        sign=Sign.MARKS_CATALOG,
        old_meta_field="o1",
    ),
    reads("get_partition_names_ps", unpack.ends_without_names(_get_partition_names_ps), rules.READS, replica=True),
    reads("get_partition_names_ps_req", _get_partition_names_ps_req, rules.READS_OF_REQUEST, replica=True, sign=Sign.SINCE_4),
    reads("get_partition_names_req", _get_partition_names_req, rules.READS_OF_REQUEST, replica=True, sign=Sign.SINCE_4),
    reads(
        "fetch_partition_names_req",
        _fetch_partition_names_req,
        needs(on_table(SEE, *rules.named_in("partitionReq")), operation="SHOWPARTITIONS"),
        replica=True,
        sign=Sign.SINCE_4,
    ),
    reads("partition_name_to_vals", lambda call, args: partition_values(args.part_name) if args.part_name else [], OPEN, ordered=True),
    reads("partition_name_to_spec", lambda call, args: partition_spec(args.part_name) if args.part_name else {}, OPEN),
    reads("partition_name_has_valid_characters", _has_valid_characters, OPEN),
)
