"""Partitions: read and list. Adding, altering and dropping have modules of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

import orjson

from metastore.errors import InvalidObject, MetaError, MissingArgument, NoSuchObject, RequestTooLarge
from metastore.idl import FieldSchema, Partition, PrincipalPrivilegeSet, Table
from metastore.listeners.events import ReadTable
from metastore.rules.filters import leading_prefixes, parse, select_partitions
from metastore.rules.names import normalize
from metastore.rules.partition_names import (
    has_keys,
    make_partition_names,
    partial_values,
    plain_names,
    stored_names,
    values_for_keys,
)
from metastore.rules.table_kinds import is_true
from metastore.service.context import Call
from metastore.service.long_lists import PAGE, LongList, Taker
from metastore.service.names import TableName
from metastore.store import partition_structs, partitions
from metastore.store import tables as table_rows
from metastore.store.database import Session
from metastore.store.drivers.contract import Row

T = TypeVar("T")


def partition_name(call: Call, table: Table, values: Sequence[str] | None) -> str:
    """Return the name that values make for a table. MetaError when their number is wrong."""
    return partition_names(call, table, [values])[0]


def partition_names(call: Call, table: Table, many: Iterable[Sequence[str] | None]) -> list[str]:
    """Return the names that lists of values make for a table. MetaError when their number is wrong."""
    return make_partition_names(
        [key.name for key in table.partitionKeys], [values or () for values in many], call.config.default_partition_name
    )


def names_as_stored(call: Call, table: Table, names: Iterable[str]) -> list[str]:
    """Return names of partitions of a table as they are stored; one that can be none of it stays as it is, and is not there."""
    keys = [key.name for key in table.partitionKeys]
    is_plain = plain_names(tuple(keys)).fullmatch

    def stored(name: str) -> str:
        try:
            return stored_names(keys, [name], call.config.default_partition_name)[0]
        except InvalidObject:
            return name

    return list(dict.fromkeys(name if is_plain(name) else stored(name) for name in names))


def with_table(call: Call, name: TableName, work: Callable[[Session, Table], T]) -> T:
    """Run queries on a table's partitions; the table is read in the same session. NoSuchObject."""
    database = call.database

    def both(session: Session) -> T:
        table = table_rows.find(database, session, *name)
        if table is None:
            raise NoSuchObject(f"{name} table not found")
        if call.listeners.pre:
            call.listeners.before(ReadTable(client=call.info, table=table))
        return work(session, table)

    return database.read(both)


class Principal(NamedTuple):
    """For whom a listing shows privileges."""

    user: str | None
    groups: Sequence[str]


Form = partition_structs.Form
STRUCTS, TUPLES = partition_structs.Rows.structs, partition_structs.Rows.tuples
"""What a function makes of the partitions that it found: structs, or the tuples that stand for them in a reply that changes nothing."""


def _shows_privileges(principal: Principal | None, table: Table) -> bool:
    return principal is not None and is_true((table.parameters or {}).get("PARTITION_LEVEL_PRIVILEGE"))


def _shown_to(principal: Principal | None, table: Table, found: list[Partition]) -> list[Partition]:
    """Give partitions of a table with partition privileges what a principal may do; so far nothing is granted on partitions."""
    if principal is not None and _shows_privileges(principal, table):
        for partition in found:
            partition.privileges = PrincipalPrivilegeSet(
                userPrivileges={principal.user: []} if principal.user is not None else {},
                groupPrivileges={group: [] for group in principal.groups},
                rolePrivileges={"public": []},
            )
    return found


def _listed(
    call: Call, session: Session, table: Table, rows: Sequence[Row], form: Form, principal: Principal | None = None
) -> list[Partition]:
    """Return the partitions of rows in a form; in structs where a principal is shown its privileges."""
    made = partition_structs.Rows(call.database, session, table)
    return _shown_to(principal, table, made.structs(rows)) if _shows_privileges(principal, table) else form(made, rows)


def get_partition(call: Call, name: TableName, values: Sequence[str] | None, principal: Principal | None = None) -> Partition:
    """Return the partition with these values. NoSuchObject, MetaError."""

    def work(session: Session, table: Table) -> Partition:
        found = partitions.find(call.database, session, table, partition_name(call, table, values))
        if found is None:
            raise NoSuchObject(f"partition values=[{', '.join(values or [])}]")
        return _shown_to(principal, table, [found])[0]

    return with_table(call, name, work)


def get_partition_by_name(call: Call, name: TableName, partition: str | None) -> Partition:
    """Return the partition of this name, whatever order its keys have. NoSuchObject, MetaError.

    Keys in another case than they are stored name none: that is Java's way, and Hive's clients expect it of what reads by name.
    """
    if not partition:
        raise MetaError(f"{name}: the partition name is null or empty")

    def work(session: Session, table: Table) -> Partition:
        keys = [key.name for key in table.partitionKeys]
        try:
            values = values_for_keys(keys, partition)
        except InvalidObject as error:
            raise NoSuchObject(error.message) from error
        if not has_keys(partition, keys):
            raise NoSuchObject(f"partition {partition} of {name}: its keys are {', '.join(keys)}")
        found = partitions.find(call.database, session, table, partition_name(call, table, values))
        if found is None:
            raise NoSuchObject(f"partition values=[{', '.join(values)}]")
        return found

    return with_table(call, name, work)


def get_partitions(
    call: Call, name: TableName, limit: int = -1, principal: Principal | None = None, *, form: Form = STRUCTS
) -> list[Partition]:
    """Return the first partitions, ascending by name; all with a negative limit. NoSuchObject."""

    def work(session: Session, table: Table) -> list[Partition]:
        _check_limit(call, session, table, limit)
        return [] if limit == 0 else _listed(call, session, table, partitions.listing(session, table, limit), form, principal)

    return with_table(call, name, work)


def get_partitions_in_pages(call: Call, name: TableName, *, form: Form = STRUCTS) -> list[Partition] | LongList:
    """Return all partitions, ascending by name: pages of them if one page does not hold them. NoSuchObject, also of the pages."""

    def first(session: Session, table: Table) -> list[Partition] | None:
        _check_limit(call, session, table, -1)
        rows = partitions.listing(session, table, PAGE + 1)
        return _listed(call, session, table, rows, form) if len(rows) <= PAGE else None

    found = with_table(call, name, first)
    return LongList(lambda taker: _read_pages(call, name, form, taker)) if found is None else found


def _read_pages(call: Call, name: TableName, form: Form, taker: Taker) -> None:
    def work(session: Session) -> None:
        table = table_rows.find(call.database, session, *name)
        if table is None:
            raise NoSuchObject(f"{name} table not found")
        taker.begin()
        rows = partitions.page(session, table, "", PAGE)
        while rows:
            taker.take(_listed(call, session, table, rows, form))
            rows = partitions.page(session, table, rows[-1][1], PAGE)

    call.database.snapshot(work)


def get_partition_names(call: Call, name: TableName, limit: int = -1) -> list[str]:
    """Return the first names, ascending; all with a negative limit. NoSuchObject."""

    def work(session: Session) -> list[str]:
        found = [] if limit == 0 else partitions.names(session, *name, limit)
        if not found and table_rows.key(session, *name) is None:
            raise NoSuchObject(f"{name} table not found")
        return found

    return call.database.read(work)


def get_partitions_by_names(call: Call, name: TableName, wanted: Sequence[str] | None, *, form: Form = STRUCTS) -> list[Partition]:
    """Return those of the named partitions that are there, ascending by name; names as in `get_partition_by_name`. NoSuchObject."""
    if wanted is None:
        raise MetaError(f"{name}: the list of partition names cannot be null")

    def work(session: Session, table: Table) -> list[Partition]:
        if 0 <= call.config.limit_partition_request < len(wanted):
            _too_many(call, table, len(wanted))
        distinct = list(dict.fromkeys(wanted))
        rows = partitions.named_rows(session, table, distinct) if wanted else []
        if len(rows) < len(distinct):
            keys = [key.name for key in table.partitionKeys]
            stored = names_as_stored(call, table, (each for each in distinct if has_keys(each, keys)))
            if not {*stored} <= {*distinct}:
                rows = partitions.named_rows(session, table, stored)
        return _listed(call, session, table, rows, form)

    return with_table(call, name, work)


def get_partitions_by_values(
    call: Call,
    name: TableName,
    values: Sequence[str] | None,
    limit: int = -1,
    principal: Principal | None = None,
    *,
    form: Form = STRUCTS,
) -> list[Partition]:
    """Return the partitions whose leading values agree; an empty value matches any. NoSuchObject, MetaError."""

    def work(session: Session, table: Table) -> list[Partition]:
        rows = _rows_by_values(call, session, table, values)
        rows = rows if limit < 0 else rows[:limit]
        check_count(call, table, len(rows), -1)
        return _listed(call, session, table, rows, form, principal)

    return with_table(call, name, work)


def get_partition_names_by_values(call: Call, name: TableName, values: Sequence[str] | None, limit: int = -1) -> list[str]:
    """Return the names of the partitions whose leading values agree. NoSuchObject, MetaError."""

    def work(session: Session, table: Table) -> list[str]:
        prefix, matches = _partial(call, table, values)
        assert table.id is not None
        rows = partitions.names_with_prefix(session, table.id, prefix)
        names = [found for found, found_values in rows if matches(orjson.loads(found_values))]
        return names if limit < 0 else names[:limit]

    return with_table(call, name, work)


def _partial(call: Call, table: Table, values: Sequence[str] | None) -> tuple[str, Callable[[Sequence[str]], bool]]:
    keys = [key.name for key in table.partitionKeys]
    return partial_values(keys, values or [], call.config.default_partition_name)


def _rows_by_values(call: Call, session: Session, table: Table, values: Sequence[str] | None) -> list[Row]:
    prefix, matches = _partial(call, table, values)
    assert table.id is not None
    rows = partitions.keyed_rows(session, table.id, [prefix] if prefix else None)
    return [row for row in rows if matches(orjson.loads(row[2]))]


def get_partitions_by_filter(call: Call, name: TableName, text: str | None, limit: int = -1, *, form: Form = STRUCTS) -> list[Partition]:
    """Return the partitions that pass a filter string, ascending by name. NoSuchObject; MetaError for a bad filter."""

    def work(session: Session, table: Table) -> list[Partition]:
        rows = rows_by_filter(call, session, table, text).rows
        check_count(call, table, len(rows), limit)
        return _listed(call, session, table, rows if limit < 0 else rows[:limit], form)

    try:
        return with_table(call, name, work)
    except NoSuchObject as error:  # Hive's clients know the words
        raise NoSuchObject(f"Specified catalog.database.table does not exist : {name}") from error


def get_num_partitions_by_filter(call: Call, name: TableName, text: str | None) -> int:
    """Return how many partitions pass a filter string. NoSuchObject; MetaError for a bad filter."""
    return with_table(call, name, lambda session, table: len(rows_by_filter(call, session, table, text).rows))


def get_partition_values(
    call: Call, name: TableName, wanted: Sequence[FieldSchema] | None, text: str | None, *, distinct: bool, ascending: bool, limit: int
) -> list[list[str]]:
    """Return the values of some of the partition keys, sorted as text. MetaError for a missing table or key."""
    if not wanted:
        raise MissingArgument(f"{name}: the list of partition keys is null or empty: name the keys whose values are wanted")

    def work(session: Session, table: Table) -> list[list[str]]:
        positions = {normalize(key.name): position for position, key in enumerate(table.partitionKeys)}
        for key in wanted:
            if normalize(key.name) not in positions:
                raise MetaError(f"{key.name} is not a partitioning key of {name}")
        chosen = [positions[normalize(key.name)] for key in wanted]
        rows = [
            [values[position] for position in chosen]
            for values in map(orjson.loads, (row[2] for row in rows_by_filter(call, session, table, text).rows))
        ]
        if distinct:
            rows = [list(values) for values in dict.fromkeys(map(tuple, rows))]
        rows.sort(reverse=not ascending)
        return rows if limit < 0 else rows[:limit]

    try:
        return with_table(call, name, work)
    except NoSuchObject as error:
        raise MetaError(error.message) from error


class Selected(NamedTuple):
    """Rows (`partition_structs.FIELDS`), ascending by name, and whether one of them may not match."""

    rows: list[Row]
    unknown: bool


def rows_by_filter(call: Call, session: Session, table: Table, text: str | None, default_name: str | None = None) -> Selected:
    """Return what a filter string selects; what it can not evaluate is there too, since clients filter again. MetaError."""
    keys = [(key.name, key.type) for key in table.partitionKeys]
    node = parse(text, [name for name, _ in keys])
    default_name = default_name or call.config.default_partition_name
    assert table.id is not None
    rows = partitions.keyed_rows(session, table.id, leading_prefixes(node, keys, default_name))
    if node is None:
        return Selected(rows, unknown=False)
    found = select_partitions(node, keys, [orjson.loads(row[2]) for row in rows], default_name)
    return Selected([rows[position] for position in found.positions], not found.is_certain)


def _check_limit(call: Call, session: Session, table: Table, wanted: int) -> None:
    """Refuse a request for more partitions than the settings allow, before any is read."""
    limit = call.config.limit_partition_request
    if limit < 0:
        return
    assert table.id is not None
    count = partitions.count(session, table.id) if wanted < 0 else wanted
    if count > limit:
        _too_many(call, table, count)


def check_count(call: Call, table: Table, found: int, wanted: int) -> None:
    """Refuse a request that found, or asked for, more partitions than the settings allow. RequestTooLarge."""
    count = found if wanted < 0 else wanted
    if 0 <= call.config.limit_partition_request < count:
        _too_many(call, table, count)


def _too_many(call: Call, table: Table, count: int) -> None:
    raise RequestTooLarge(
        f"Number of partitions scanned (={count}) on table '{table.tableName}' exceeds limit (={call.config.limit_partition_request}). "
        "This is controlled on the metastore server by metastore.limit.partition.request"
    )
