"""Partitions: read and list. Adding, altering and dropping have modules of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import orjson

from metastore.errors import InvalidObject, MetaError, MissingArgument, NoSuchObject
from metastore.idl import FieldSchema, Partition, Table
from metastore.rules.catalog.table_kinds import is_true
from metastore.rules.filters import Selection, leading_prefixes, parse, select_partitions
from metastore.rules.names import normalize
from metastore.rules.values.partition_names import (
    has_keys,
    make_partition_names,
    partial_values,
    plain_names,
    stored_names,
    values_for_keys,
)
from metastore.service.call.context import Call
from metastore.service.call.long_lists import LongList
from metastore.service.call.names import TableName
from metastore.service.catalog.partitions.partition_queries import (
    MISSING,
    Found,
    Make,
    PartitionQuery,
    QueryPlan,
    check_count,
    find_all,
    find_in_pages,
    with_table,
)
from metastore.service.catalog.privilege_sets import Grantee, show_to
from metastore.store.catalog.partitions import partition_structs, partitions
from metastore.store.catalog.tables import tables as table_rows
from metastore.store.core.database import Session
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


def check_belongs(name: TableName, partition: Partition) -> None:
    """Raise MetaError unless a partition of a request names this table, in any case; a catalog only if it names one."""
    database, table, catalog = partition.dbName, partition.tableName, partition.catName
    if (
        (database != name.database and normalize(database or "") != name.database)
        or (table != name.table and normalize(table or "") != name.table)
        or (catalog is not None and normalize(catalog) != name.catalog)
    ):
        raise MetaError(
            f"Partition does not belong to target table {name}: it names {catalog or name.catalog}.{database}.{table}, "
            f"values [{', '.join(partition.values or [])}]"
        )


def names_as_stored(call: Call, table: Table, names: Iterable[str]) -> list[str]:
    """Return names of partitions of a table as they are stored; a name that does not fit the table is not changed, and is missing."""
    keys = [key.name for key in table.partitionKeys]
    is_plain = plain_names(tuple(keys)).fullmatch

    def stored(name: str) -> str:
        try:
            return stored_names(keys, [name], call.config.default_partition_name)[0]
        except InvalidObject:
            return name

    return list(dict.fromkeys(name if is_plain(name) else stored(name) for name in names))


EVERY = PartitionQuery(lambda _, __: QueryPlan())
"""Asks for all partitions."""
MISSING_IN_FILTER = "Specified catalog.database.table does not exist : {name}"
"""The message for a missing table in calls with a filter, in the words that Hive's clients expect."""
Form = partition_structs.Form
STRUCTS, TUPLES = partition_structs.PartitionStructs.structs, partition_structs.PartitionStructs.tuples
"""Forms of found partitions: structs, or tuples in place of structs, for a reply that needs no changes."""


def _has_privileges(table: Table) -> bool:
    """Return whether Hive grants privileges on the table's partitions one by one."""
    return is_true((table.parameters or {}).get("PARTITION_LEVEL_PRIVILEGE"))


def _made(call: Call, form: Form, principal: Grantee | None = None) -> Make[Partition]:
    """Return the function that makes partitions of rows in a form; structs where a principal's privileges are shown."""

    def make(session: Session, table: Table, rows: Sequence[Row]) -> list[Partition]:
        made = partition_structs.PartitionStructs(session, table)
        if principal is None or not _has_privileges(table):
            return form(made, rows)
        found = made.structs(rows)
        show_to(session, principal, table, found)
        return found

    return make


def get_partition(call: Call, name: TableName, values: Sequence[str] | None, principal: Grantee | None = None) -> Partition:
    """Return the partition with these values. NoSuchObject, MetaError."""

    def work(session: Session, table: Table) -> Partition:
        found = partitions.find(session, table, partition_name(call, table, values))
        if found is None:
            raise NoSuchObject(f"partition values=[{', '.join(values or [])}]")
        if principal is not None and _has_privileges(table):
            show_to(session, principal, table, [found])
        return found

    return with_table(call, name, work)


def get_partition_by_name(call: Call, name: TableName, partition: str | None) -> Partition:
    """Return the partition of this name, with its keys in any order and case. NoSuchObject, MetaError.

    Keys that the table does not have are ignored; for Hive 3's and 4's own clients keys in another case than the stored one name no
    partition. Java does the same, and Hive's clients expect it of methods that read by name.
    """
    if not partition:
        raise MetaError(f"{name}: the partition name is null or empty")

    def work(session: Session, table: Table) -> Partition:
        keys = [key.name for key in table.partitionKeys]
        try:
            values = values_for_keys(keys, partition, may_have_more=True)
        except InvalidObject as error:
            raise NoSuchObject(error.message) from error
        if not _reads_name(call, partition, keys):
            raise NoSuchObject(f"partition {partition} of {name} does not exist: the table's keys are {', '.join(keys)}")
        found = partitions.find(session, table, partition_name(call, table, values))
        if found is None:
            raise NoSuchObject(f"partition values=[{', '.join(values)}]")
        return found

    return with_table(call, name, work)


def _reads_name(call: Call, partition: str, keys: Sequence[str]) -> bool:
    """Return whether a client's name of a partition is accepted where it differs from the stored one."""
    return not call.client.release.knows_keys_by_case or has_keys(partition, keys)


def by_values(values: Sequence[str] | None) -> PartitionQuery:
    """Ask for the partitions whose leading values agree; an empty value matches any. MetaError if there are more values than keys."""

    def plan(call: Call, table: Table) -> QueryPlan:
        prefix, matches = _partial(call, table, values)

        def select(many: Sequence[Sequence[str]]) -> Selection:
            return Selection([position for position, found in enumerate(many) if matches(found)])

        return QueryPlan([prefix] if prefix else None, select if any(values or ()) else None)

    return PartitionQuery(plan, may_ask_for_more=True)


def by_filter(text: str | None) -> PartitionQuery:
    """Ask for the partitions that pass a filter string or can not be evaluated by it, since clients filter again. MetaError."""
    return PartitionQuery(lambda call, table: plan_of_filter(call, table, text), missing=MISSING_IN_FILTER)


def plan_of_filter(call: Call, table: Table, text: str | None, default_name: str | None = None) -> QueryPlan:
    """Return the query plan of a filter string. MetaError for a bad one, also from the plan."""
    keys = [(key.name, key.type) for key in table.partitionKeys]
    node = parse(text, [name for name, _ in keys])
    if node is None:
        return QueryPlan()
    default_name = default_name or call.config.default_partition_name
    return QueryPlan(leading_prefixes(node, keys, default_name), lambda many: select_partitions(node, keys, many, default_name))


def get_partitions(
    call: Call, name: TableName, query: PartitionQuery = EVERY, principal: Grantee | None = None, *, form: Form = STRUCTS
) -> list[Partition]:
    """Return the partitions that a query selects, ascending by name. NoSuchObject, MetaError."""
    return find_all(call, name, query, _made(call, form, principal)).items


def get_partitions_in_pages(
    call: Call, name: TableName, query: PartitionQuery, principal: Grantee | None = None, *, form: Form = STRUCTS
) -> Found[list[Partition] | LongList]:
    """Return the same as `get_partitions`. A long result is read in pages, which raise the same errors."""
    return find_in_pages(call, name, query, _made(call, form, principal))


def get_partition_names(call: Call, name: TableName, limit: int = -1) -> list[str]:
    """Return the first names, ascending; all with a negative limit. NoSuchObject."""

    def work(session: Session) -> list[str]:
        found = [] if limit == 0 else partitions.names(session, *name, limit)
        if not found and table_rows.key(session, *name) is None:
            raise NoSuchObject(f"{name} table not found")
        return found

    return call.database.read(work)


def get_partitions_by_names(call: Call, name: TableName, wanted: Sequence[str] | None, *, form: Form = STRUCTS) -> list[Partition]:
    """Return the named partitions that exist, ascending by name; names as in `get_partition_by_name`. NoSuchObject."""
    if wanted is None:
        raise MetaError(f"{name}: the list of partition names cannot be null")

    def work(session: Session, table: Table) -> list[Partition]:
        check_count(call, table, len(wanted))
        distinct = list(dict.fromkeys(wanted))
        rows = partitions.named_rows(session, table, distinct) if wanted else []
        if len(rows) < len(distinct):
            keys = [key.name for key in table.partitionKeys]
            stored = names_as_stored(call, table, (each for each in distinct if _reads_name(call, each, keys)))
            if not {*stored} <= {*distinct}:
                rows = partitions.named_rows(session, table, stored)
        return _made(call, form)(session, table, rows)

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


def get_num_partitions_by_filter(call: Call, name: TableName, text: str | None) -> int:
    """Return the number of partitions that pass a filter string. NoSuchObject; MetaError for a bad filter."""
    return len(find_all(call, name, _facts_by_filter(text), lambda _, __, rows: [row[0] for row in rows]).items)


def _facts_by_filter(text: str | None) -> PartitionQuery:
    """Ask for the partitions that pass a filter string, without the limit of partitions: only facts of them are returned."""
    return by_filter(text)._replace(missing=MISSING, is_limited=False)


def get_partition_values(
    call: Call, name: TableName, wanted: Sequence[FieldSchema] | None, text: str | None, *, distinct: bool, ascending: bool, limit: int
) -> list[list[str]]:
    """Return the values of some partition keys, sorted as text, null as the default partition. MetaError for a missing table or key."""
    null = call.config.default_partition_name
    if not wanted:
        raise MissingArgument(f"{name}: the list of partition keys is null or empty: name the keys whose values are wanted")

    def chosen(_: Session, table: Table, rows: Sequence[Row]) -> list[tuple[str, ...]]:
        positions = {normalize(key.name): position for position, key in enumerate(table.partitionKeys)}
        for key in wanted:
            if normalize(key.name) not in positions:
                raise MetaError(f"{key.name} is not a partitioning key of {name}")
        places = [positions[normalize(key.name)] for key in wanted]
        found = [tuple(values[place] or null for place in places) for values in (orjson.loads(row[2]) for row in rows)]
        return list(dict.fromkeys(found)) if distinct else found

    try:
        found = find_all(call, name, _facts_by_filter(text), chosen).items
    except NoSuchObject as error:
        raise MetaError(error.message) from error
    values = sorted({*found} if distinct else found, reverse=not ascending)
    return [list(each) for each in (values if limit < 0 else values[:limit])]
