"""Entries of the methods of partitions and of statistics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from metastore.errors import MissingArgument
from metastore.methods.catalog.partition_specs import members
from metastore.methods.forms.rules import (
    ADDS,
    ALTER,
    OPEN,
    READ,
    REMOVES,
    SEE,
    TABLE,
    WRITES,
    Ask,
    Decision,
    MethodRule,
    Want,
    found_by,
    get,
    hiding,
    named,
    needs,
    table,
)
from metastore.service.authorization import default_places
from metastore.service.authorization.decision import Hide, Sent
from metastore.service.call.context import Call
from metastore.service.call.names import TableName

_see = (SEE,)
Members = Callable[[Any], Iterable[Any]]
"""From the arguments, the partitions in them."""


def _locations(parts: Iterable[Any]) -> tuple[str, ...]:
    return tuple(each.sd.location for each in parts if each is not None and each.sd is not None and each.sd.location)


def _without_location(call: Call, name: TableName, parts: Iterable[Any]) -> Callable[[], Sequence[str]]:
    """Return what tells where those of new partitions lie that come without a location."""
    values = [each.values for each in parts if each is not None and each.sd is not None and not each.sd.location]
    return partial(default_places.of_partitions, call, name, values) if values else tuple


def _renamed(call: Call, name: TableName, parts: Iterable[Any]) -> Callable[[], Sequence[str]]:
    """Return what tells where a partition lies under its new values."""
    part = next(iter(parts), None)
    return tuple if part is None else partial(default_places.of_new_values, call, name, part.values)


Placed = Callable[[Call, TableName, Iterable[Any]], Callable[[], Sequence[str]]]
"""From the partitions of a table that a call names, what tells where the call puts those without a location."""


def _stays(_call: Call, _name: TableName, _parts: Iterable[Any]) -> Callable[[], Sequence[str]]:
    return tuple


def _into(
    database: str, name: str, catalog: str | None, members: Members, privileges: tuple[str, ...] = ADDS, placed: Placed = _without_location
) -> Ask:
    """Want to add or change partitions of the table that fields name."""

    def find(call: Call, args: Any) -> Iterator[Want]:
        found = named(call, get(args, database), get(args, name), get(args, catalog) if catalog else None)
        if found is not None:
            parts = [each for each in members(args) if each is not None]
            hide, by_default = _hiding_all(args, database, name, parts), placed(call, found, parts)
            yield Want(privileges, TABLE, *found, hide=hide, locations=_locations(parts), by_default=by_default)

    return Ask(f"{_text(privileges)} on the table, and the right to locations outside of it", find)


def _text(privileges: tuple[str, ...]) -> str:
    return f"{', '.join(privileges[:-1])} or {privileges[-1]}"


def _hiding_all(args: Any, database: str | None, name: str | None, parts: Iterable[Any]) -> Hide:
    hide_table, hide_parts = hiding(args, database, name), [hiding(each, "dbName", "tableName") for each in parts if each.dbName]

    def hide(other: str | None, inner: str | None) -> Sent:
        sent = hide_table(other, inner)
        for each in hide_parts:
            each(other, inner)
        return sent

    return hide


def _of(members: Members, inner: Members | None = None) -> Ask:
    """Want to add partitions, or specs of such, that name their tables themselves."""

    def find(call: Call, args: Any) -> Iterator[Want]:
        by_name: dict[TableName, list[Any]] = {}
        for each in members(args):
            found = None if each is None else named(call, each.dbName, each.tableName, each.catName)
            if found is not None:
                by_name.setdefault(found, []).append(each)
        for name, holders in by_name.items():
            parts = [part for holder in holders for part in (inner(holder) if inner is not None else [holder])]
            hide = _hiding_all(None, None, None, [*holders, *_named(parts)])
            by_default = _without_location(call, name, parts)
            yield Want(ADDS, TABLE, *name, hide=hide, locations=_locations(parts), by_default=by_default)

    return Ask("INSERT or ALTER on the table, and the right to locations outside of it", find)


def _appends(name: str, values: str | None, database: str = "db_name", catalog: str | None = None, text: str | None = None) -> Ask:
    """Want to add a partition that lies where its values, or the name at `text`, put it."""
    adds = table(ADDS, database, name, catalog)

    def find(call: Call, args: Any) -> Iterator[Want]:
        part = get(args, text) if text is not None else None
        many = [get(args, values) if values is not None else None]
        for want in adds.find(call, args):
            of = TableName(want.catalog or "", want.database or "", want.name or "")
            by_values = partial(default_places.of_partitions, call, of, many)
            yield want._replace(by_default=by_values if part is None else partial(default_places.of_partition_name, call, of, part))

    return Ask(adds.text, find)


def _named(parts: Iterable[Any]) -> Iterator[Any]:
    return (each for each in parts if each is not None and getattr(each, "dbName", None) is not None)


def _spec_members(spec: Any) -> list[Any]:
    """Return the partitions of a spec as the method makes them; none where it refuses it."""
    try:
        return members(spec)
    except MissingArgument:
        return []


def _exchanged(call: Call, args: Any) -> Iterator[Want]:
    of_source, of_target = ("source_db", "source_table_name"), ("dest_db", "dest_table_name")
    source, target = (named(call, get(args, paths[0]), get(args, paths[1])) for paths in (of_source, of_target))
    if source is not None:
        yield Want(REMOVES, TABLE, *source, hide=hiding(args, *of_source))
    if target is not None:
        goes = tuple if source is None else partial(default_places.of_exchanged, call, args.partitionSpecs or {}, source, target)
        yield Want(ADDS, TABLE, *target, hide=hiding(args, *of_target), by_default=goes)


def _described(members: Members) -> Ask:
    """Want to write statistics of the tables that they describe."""

    def find(call: Call, args: Any) -> Iterator[Want]:
        for each in members(args):
            told = getattr(each, "statsDesc", None)
            found = None if told is None else named(call, told.dbName, told.tableName, told.catName)
            if found is not None:
                yield Want(WRITES, TABLE, *found, hide=hiding(told, "dbName", "tableName"))

    return Ask(f"{_text(WRITES)} on the table", find)


STATISTICS_TOO = "any privilege on the table, SELECT for statistics"


def _by_names(call: Call, args: Any) -> Iterator[Want]:
    found = named(call, args.req.db_name, args.req.tbl_name)
    if found is not None:
        wanted = READ if args.req.get_col_stats else _see
        yield Want(wanted, TABLE, *found, hide=hiding(args, "req.db_name", "req.tbl_name"))


def _as_caller(decision: Decision, args: Any) -> None:
    """Tell of nobody's privileges but the caller's."""
    args.user_name, args.group_names = decision.who.user, list(decision.who.groups)


def _flat(name: str = "tbl_name") -> tuple[str, str]:
    return "db_name", name


def _in(request: str, name: str = "tblName", catalog: str | None = "catName") -> tuple[str, str, str | None]:
    return f"{request}.dbName", f"{request}.{name}", f"{request}.{catalog}" if catalog else None


_new_part: Members = lambda args: [args.new_part]  # noqa: E731  # one of several in the entries below
_new_parts: Members = lambda args: args.new_parts or ()  # noqa: E731

_EXCHANGE = needs(
    found_by("DELETE or ALTER on the table that they leave, INSERT or ALTER on the other", _exchanged),
    operation="ALTERTABLE_EXCHANGEPARTITION",
)
_READS = needs(table(_see, *_flat()), operation="SHOWPARTITIONS")
_READ_STATISTICS = needs(table(READ, *_flat()), operation="SHOW_TABLESTATUS")
_APPENDS = needs(_appends("tbl_name", "part_vals"), operation="ALTERTABLE_ADDPARTS")
_APPENDS_BY_NAME = needs(_appends("tbl_name", None, text="part_name"), operation="ALTERTABLE_ADDPARTS")
_REQUEST = "appendPartitionsReq"
_DROPS = needs(table(REMOVES, *_flat()), operation="ALTERTABLE_DROPPARTS")

ENTRIES: dict[str, MethodRule] = {
    "add_partition": needs(_of(_new_part), operation="ALTERTABLE_ADDPARTS"),
    "add_partition_with_environment_context": needs(_of(_new_part), operation="ALTERTABLE_ADDPARTS"),
    "add_partitions": needs(_of(_new_parts), operation="ALTERTABLE_ADDPARTS"),
    "add_partitions_pspec": needs(_of(_new_parts, _spec_members), operation="ALTERTABLE_ADDPARTS"),
    "add_partitions_req": needs(_into(*_in("request"), lambda args: args.request.parts or ()), operation="ALTERTABLE_ADDPARTS"),
    "append_partition": _APPENDS,
    "append_partition_with_environment_context": _APPENDS,
    "append_partition_by_name": _APPENDS_BY_NAME,
    "append_partition_by_name_with_environment_context": _APPENDS_BY_NAME,
    "append_partition_req": needs(
        _appends(f"{_REQUEST}.tableName", f"{_REQUEST}.partVals", f"{_REQUEST}.dbName", f"{_REQUEST}.catalogName", text=f"{_REQUEST}.name"),
        operation="ALTERTABLE_ADDPARTS",
    ),
    "alter_partition": needs(_into(*_flat(), None, _new_part, WRITES, _stays), operation="ALTERPARTITION_PROPERTIES"),
    "alter_partition_with_environment_context": needs(
        _into(*_flat(), None, _new_part, WRITES, _stays), operation="ALTERPARTITION_PROPERTIES"
    ),
    "alter_partitions": needs(_into(*_flat(), None, _new_parts, WRITES, _stays), operation="ALTERPARTITION_PROPERTIES"),
    "alter_partitions_with_environment_context": needs(
        _into(*_flat(), None, _new_parts, WRITES, _stays), operation="ALTERPARTITION_PROPERTIES"
    ),
    "alter_partitions_req": needs(
        _into(*_in("req", "tableName"), lambda args: args.req.partitions or (), WRITES, _stays), operation="ALTERPARTITION_PROPERTIES"
    ),
    "rename_partition": needs(table(ALTER, *_flat()), _into(*_flat(), None, _new_part, placed=_renamed), operation="ALTERTABLE_RENAMEPART"),
    "rename_partition_req": needs(
        table(ALTER, *_in("req", "tableName")),
        _into(*_in("req", "tableName"), lambda args: [args.req.newPart], placed=_renamed),
        operation="ALTERTABLE_RENAMEPART",
    ),
    "drop_partition": _DROPS,
    "drop_partition_with_environment_context": _DROPS,
    "drop_partition_by_name": _DROPS,
    "drop_partition_by_name_with_environment_context": _DROPS,
    "drop_partition_req": needs(table(REMOVES, *_in("dropPartitionReq")), operation="ALTERTABLE_DROPPARTS"),
    "drop_partitions_req": needs(table(REMOVES, *_in("req")), operation="ALTERTABLE_DROPPARTS"),
    "exchange_partition": _EXCHANGE,
    "exchange_partitions": _EXCHANGE,
    **dict.fromkeys(
        (
            "get_partition",
            "get_partition_by_name",
            "get_partitions",
            "get_partitions_pspec",
            "get_part_specs_by_filter",
            "get_partitions_ps",
            "get_partitions_by_names",
            "get_partitions_by_filter",
            "get_num_partitions_by_filter",
            "get_partition_names",
            "get_partition_names_ps",
        ),
        _READS,
    ),
    **dict.fromkeys(
        (
            "get_partition_req",
            "get_partitions_req",
            "get_partitions_ps_with_auth_req",
            "get_partitions_by_filter_req",
            "get_partitions_by_expr",
            "get_partitions_spec_by_expr",
            "get_partition_names_ps_req",
            "get_partition_names_req",
        ),
        needs(table(_see, *_in("req")), operation="SHOWPARTITIONS"),
    ),
    **dict.fromkeys(
        ("get_partition_with_auth", "get_partitions_with_auth", "get_partitions_ps_with_auth"),
        needs(table(_see, *_flat()), operation="SHOWPARTITIONS", fill=_as_caller),
    ),
    "get_partitions_by_names_req": needs(found_by(STATISTICS_TOO, _by_names), operation="SHOWPARTITIONS"),
    "get_partitions_with_specs": needs(table(_see, *_in("request")), operation="SHOWPARTITIONS"),
    "get_partition_values": needs(table(_see, *_in("request")), operation="SHOWPARTITIONS"),
    "fetch_partition_names_req": needs(table(_see, *_in("partitionReq")), operation="SHOWPARTITIONS"),
    "partition_name_to_vals": OPEN,
    "partition_name_to_spec": OPEN,
    "partition_name_has_valid_characters": OPEN,
    "update_table_column_statistics": needs(_described(lambda args: [args.stats_obj]), operation="ANALYZE_TABLE"),
    "update_partition_column_statistics": needs(_described(lambda args: [args.stats_obj]), operation="ANALYZE_TABLE"),
    "update_table_column_statistics_req": needs(_described(lambda args: args.req.colStats or ()), operation="ANALYZE_TABLE"),
    "update_partition_column_statistics_req": needs(_described(lambda args: args.req.colStats or ()), operation="ANALYZE_TABLE"),
    "set_aggr_stats_for": needs(_described(lambda args: args.request.colStats or ()), operation="ANALYZE_TABLE"),
    "get_table_column_statistics": _READ_STATISTICS,
    "get_partition_column_statistics": _READ_STATISTICS,
    **dict.fromkeys(
        ("get_table_statistics_req", "get_partitions_statistics_req", "get_aggr_stats_for"),
        needs(table(READ, *_in("request")), operation="SHOW_TABLESTATUS"),
    ),
    "delete_table_column_statistics": needs(table(WRITES, *_flat()), operation="ANALYZE_TABLE"),
    "delete_partition_column_statistics": needs(table(WRITES, *_flat()), operation="ANALYZE_TABLE"),
    "delete_column_statistics_req": needs(table(WRITES, "req.db_name", "req.tbl_name", "req.cat_name"), operation="ANALYZE_TABLE"),
}
