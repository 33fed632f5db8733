"""Entries of the methods of partitions and of statistics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from metastore.errors import MissingArgument
from metastore.methods.catalog.partition_specs import members
from metastore.methods.forms.rules import (
    ADDS,
    READ,
    REMOVES,
    SEE,
    TABLE,
    WRITES,
    Ask,
    Decision,
    Want,
    found_by,
    get,
    hiding,
    named,
    needs,
    on_table,
)
from metastore.service.authorization import default_places
from metastore.service.authorization.decision import Hide, Sent
from metastore.service.call.context import Call
from metastore.service.call.names import TableName

_see = (SEE,)
Members = Callable[[Any], Iterable[Any]]
"""A function from the arguments to the partitions in them."""


def _locations(parts: Iterable[Any]) -> tuple[str, ...]:
    return tuple(each.sd.location for each in parts if each is not None and each.sd is not None and each.sd.location)


def _without_location(call: Call, name: TableName, parts: Iterable[Any]) -> Callable[[], Sequence[str]]:
    """Return a function that returns the default places of the new partitions without a location."""
    values = [each.values for each in parts if each is not None and each.sd is not None and not each.sd.location]
    return partial(default_places.of_partitions, call, name, values) if values else tuple


def renamed(call: Call, name: TableName, parts: Iterable[Any]) -> Callable[[], Sequence[str]]:
    """Return a function that returns the default place of a partition under its new values."""
    part = next(iter(parts), None)
    return tuple if part is None else partial(default_places.of_new_values, call, name, part.values)


Placed = Callable[[Call, TableName, Iterable[Any]], Callable[[], Sequence[str]]]
"""A function from a table's partitions in a call to a function that returns the default places of new or renamed ones."""


def stays(_call: Call, _name: TableName, _parts: Iterable[Any]) -> Callable[[], Sequence[str]]:
    return tuple


def changes_partitions(
    database: str, name: str, catalog: str | None, members: Members, privileges: tuple[str, ...] = ADDS, placed: Placed = _without_location
) -> Ask:
    """Require the right to add or change partitions of the table that fields name."""

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


def adds_partitions(members: Members, inner: Members | None = None) -> Ask:
    """Require the right to add partitions, or specs of partitions, that name their tables themselves."""

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


def appends_partition(name: str, values: str | None, database: str = "db_name", catalog: str | None = None, text: str | None = None) -> Ask:
    """Require the right to add a partition at the default place of its values, or of the partition name at the path `text`."""
    adds = on_table(ADDS, database, name, catalog)

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


def spec_members(spec: Any) -> list[Any]:
    """Return the partitions that the method makes of a spec; none for a spec that it refuses."""
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


def writes_statistics(members: Members) -> Ask:
    """Require the right to write statistics of the tables that the members describe."""

    def find(call: Call, args: Any) -> Iterator[Want]:
        for each in members(args):
            described = getattr(each, "statsDesc", None)
            found = None if described is None else named(call, described.dbName, described.tableName, described.catName)
            if found is not None:
                yield Want(WRITES, TABLE, *found, hide=hiding(described, "dbName", "tableName"))

    return Ask(f"{_text(WRITES)} on the table", find)


STATISTICS_TOO = "any privilege on the table, SELECT for statistics"


def asked_by_names(call: Call, args: Any) -> Iterator[Want]:
    found = named(call, args.req.db_name, args.req.tbl_name)
    if found is not None:
        wanted = READ if args.req.get_col_stats else _see
        yield Want(wanted, TABLE, *found, hide=hiding(args, "req.db_name", "req.tbl_name"))


def _as_caller(decision: Decision, args: Any) -> None:
    """Set the user and groups whose privileges are shown to the caller and the caller's groups."""
    args.user_name, args.group_names = decision.who.user, list(decision.who.groups)


def named_flat(name: str = "tbl_name") -> tuple[str, str]:
    return "db_name", name


def named_in(request: str, name: str = "tblName", catalog: str | None = "catName") -> tuple[str, str, str | None]:
    return f"{request}.dbName", f"{request}.{name}", f"{request}.{catalog}" if catalog else None


new_part: Members = lambda args: [args.new_part]  # noqa: E731  # one of several in the entries below
new_parts: Members = lambda args: args.new_parts or ()  # noqa: E731

EXCHANGE = needs(
    found_by("DELETE or ALTER on the table that they leave, INSERT or ALTER on the other", _exchanged),
    operation="ALTERTABLE_EXCHANGEPARTITION",
)
READS = needs(on_table(_see, *named_flat()), operation="SHOWPARTITIONS")
READ_STATISTICS = needs(on_table(READ, *named_flat()), operation="SHOW_TABLESTATUS")
APPENDS = needs(appends_partition("tbl_name", "part_vals"), operation="ALTERTABLE_ADDPARTS")
APPENDS_BY_NAME = needs(appends_partition("tbl_name", None, text="part_name"), operation="ALTERTABLE_ADDPARTS")
REQUEST = "appendPartitionsReq"
DROPS = needs(on_table(REMOVES, *named_flat()), operation="ALTERTABLE_DROPPARTS")

READS_OF_REQUEST = needs(on_table(_see, *named_in("req")), operation="SHOWPARTITIONS")

READS_WITH_PRIVILEGES = needs(on_table(_see, *named_flat()), operation="SHOWPARTITIONS", fill=_as_caller)

READS_STATISTICS_OF_REQUEST = needs(on_table(READ, *named_in("request")), operation="SHOW_TABLESTATUS")
