"""Partitions that an expression of Hive's selects: read, list, drop. Source: Hive's ObjectStore.getPartitionsByExprInternal.

A partition for which the expression can not be evaluated is kept and reported as unknown: the client then filters the rows again. A drop
refuses it. Bytes that are not a serialised expression are read as a filter string, which Hive's MSCK REPAIR sends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from metastore.errors import MetaError, NoSuchObject
from metastore.idl import Partition, Table
from metastore.rules.filters import (
    NotUnderstood,
    Selection,
    compile_expression,
    is_expression,
    leading_prefixes,
    read_expression,
    united_prefixes,
    weakened,
)
from metastore.rules.values.comparable import key_type
from metastore.service.call.context import Call
from metastore.service.call.long_lists import LongList
from metastore.service.call.names import TableName
from metastore.service.catalog.partitions.drop_partitions import drop_named
from metastore.service.catalog.partitions.partition_queries import Found, PartitionQuery, QueryPlan, find_all, selected_by
from metastore.service.catalog.partitions.partitions import STRUCTS, get_partitions_in_pages, plan_of_filter
from metastore.service.catalog.tables.tables import find_table
from metastore.store.core.database import Session
from metastore.store.drivers.contract import Row

EMPTY = (b"", b"\xff")
"""Expressions that clients send for all partitions."""
MAX_NAMED = 10
"""Partitions that one error names."""
REFUSING = "DefaultPartitionExpressionProxy"


class Dropped(NamedTuple):
    """An expression that selects partitions to drop, and the level below which an archived one may not be dropped."""

    expression: bytes
    archive_level: int | None = None


def get_partitions_by_expression(
    call: Call, name: TableName, expression: bytes, limit: int = -1, default_name: str | None = None
) -> Found[list[Partition] | LongList]:
    """Find the first partitions that an expression selects, or may select, ascending by name. NoSuchObject, MetaError."""
    return get_partitions_in_pages(call, name, _by_expression(expression, default_name).first(limit), form=STRUCTS)


def get_partition_names_by_expression(
    call: Call, name: TableName, expression: bytes, limit: int = -1, default_name: str | None = None, order: str | None = None
) -> list[str]:
    """Return the first names of the partitions that an expression selects, or may select.

    `order` names positions of keys and directions, such as "1,0:+-"; without it names ascend. NoSuchObject, MetaError.
    """
    ordered = _order(order)

    def named(_: Session, table: Table, rows: Sequence[Row]) -> list[tuple[str, list[Any]]]:
        keys = table.partitionKeys
        if any(position >= len(keys) for position, _ in ordered):
            raise MetaError(f"The order {order} names a missing partition key: give positions from 0 to {len(keys) - 1}")
        read = [(position, key_type(keys[position].type).read_value) for position, _ in ordered]
        values = (orjson.loads(row[2]) for row in rows)
        return [(row[1], [of(each[position]) for position, of in read]) for row, each in zip(rows, values, strict=True)]

    query = _by_expression(expression, default_name)._replace(is_limited=False)
    found = find_all(call, name, query, named).items
    for at, (_, descending) in reversed([*enumerate(ordered)]):
        present = sorted((each for each in found if each[1][at] is not None), key=lambda each: each[1][at], reverse=descending)
        absent = [each for each in found if each[1][at] is None]
        found = present + absent if descending else absent + present
    return [each[0] for each in (found if limit < 0 else found[:limit])]


def drop_partitions_by_expressions(
    call: Call,
    name: TableName,
    dropped: Sequence[Dropped],
    *,
    delete_data: bool,
    if_exists: bool,
    environment: Mapping[str, str] | None = None,
) -> list[Partition]:
    """Drop the partitions that expressions select, all or nothing; return the dropped. With `if_exists` an expression may select nothing.

    NoSuchObject; MetaError for an expression that can not be evaluated for some partition, and for a part of an archive.
    """
    table = find_table(call, name)
    names: dict[str, None] = {}
    for (_, level), chosen in zip(dropped, _chosen(call, name, [each.expression for each in dropped]), strict=True):
        if chosen.unjudged:
            raise MetaError(
                f"Unexpected unknown partitions to drop: the expression can not be evaluated for some partitions of {name}: "
                f"{_some(chosen.unjudged)}; compare keys with constants, and drop by name those with a value that their key's type lacks"
            )
        if not chosen.found and not if_exists:
            raise NoSuchObject(f"Some partitions to drop are missing: an expression selects none of {name}")
        if level is not None:
            _check_archives(table, chosen.found, level)
        names.update(dict.fromkeys(each for each, _ in chosen.found))
    return drop_named(call, name, table, list(names), delete_data=delete_data, if_exists=True, environment=environment)


class _Chosen(NamedTuple):
    """The partitions that one expression selects."""

    found: list[tuple[str, str]]
    """Name, and parameters as JSON."""
    unjudged: list[str]
    """Names of the partitions for which the expression's result is unknown."""


def _some(names: Sequence[str]) -> str:
    return ", ".join([*names[:MAX_NAMED], *([f"and {len(names) - MAX_NAMED} more"] if len(names) > MAX_NAMED else ())])


class _Choice:
    """One query for the partitions of several expressions."""

    def __init__(self, expressions: Sequence[bytes]) -> None:
        self._expressions = expressions
        self._plans: Sequence[QueryPlan] = ()

    def plan(self, call: Call, table: Table) -> QueryPlan:
        """Plan the expressions for the table of the pages that follow."""
        self._plans = [_plan(call, table, each, exactly=True) for each in self._expressions]
        return QueryPlan(united_prefixes(each.prefixes for each in self._plans))

    def select(self, _: Session, __: Table, rows: Sequence[Row]) -> list[list[_Chosen]]:
        """Return the partitions of a page that each expression selects."""
        selected = (selected_by(each, _beginning_so(each, rows)) for each in self._plans)
        return [[_Chosen([(row[1], row[6]) for row in found], [row[1] for row in unjudged]) for found, unjudged in selected]]


def _chosen(call: Call, name: TableName, expressions: Sequence[bytes]) -> list[_Chosen]:
    """Return the partitions that each expression selects; the table is read once for all of them."""
    choice = _Choice(expressions)
    out = [_Chosen([], []) for _ in expressions]
    for page in find_all(call, name, PartitionQuery(choice.plan, is_limited=False), choice.select).items:
        for whole, part in zip(out, page, strict=True):
            whole.found.extend(part.found)
            whole.unjudged.extend(part.unjudged)
    return out


def _beginning_so(plan: QueryPlan, rows: Sequence[Row]) -> Sequence[Row]:
    """Return the rows whose names begin with a prefix of the plan."""
    return rows if plan.prefixes is None else [row for row in rows if row[1].startswith(tuple(plan.prefixes))]


def _by_expression(expression: bytes, default_name: str | None = None) -> PartitionQuery:
    """Ask for the partitions that an expression selects or may select."""
    return PartitionQuery(lambda call, table: _plan(call, table, expression, default_name))


def _plan(call: Call, table: Table, expression: bytes, default_name: str | None = None, *, exactly: bool = False) -> QueryPlan:
    """Return the query plan of an expression. With `exactly` an expression that is not understood is an error."""
    if expression in EMPTY:
        return QueryPlan()
    if call.config.expression_proxy.rpartition(".")[2] == REFUSING:
        raise MetaError(
            f"java.lang.UnsupportedOperationException: the setting expression_proxy is {REFUSING}, which reads no partition expressions"
        )
    if not is_expression(expression):
        return plan_of_filter(call, table, _text(expression), default_name)
    default_name = default_name or call.config.default_partition_name
    keys = [(key.name, key.type) for key in table.partitionKeys]
    try:
        tree = read_expression(expression)
    except NotUnderstood:
        if exactly:
            raise
        tree = None
    judge = None if tree is None else compile_expression(tree, keys, default_name)
    if tree is None or judge is None:
        return QueryPlan(None, lambda many: Selection([*range(len(many))], range(len(many))))

    def select(many: Sequence[Sequence[str]]) -> Selection:
        verdicts = [judge(values) for values in many]
        possible = [at for at, verdict in enumerate(verdicts) if verdict is not False]
        return Selection(possible, [at for at in possible if verdicts[at] is None])

    return QueryPlan(leading_prefixes(weakened(tree, default_name), keys, default_name), select)


def _text(expression: bytes) -> str:
    try:
        return expression.decode()
    except UnicodeDecodeError as error:
        raise MetaError(
            f"The partition expression, {len(expression)} bytes, is neither a serialised expression of Hive's client nor a filter string"
        ) from error


def _order(text: str | None) -> list[tuple[int, bool]]:
    """Return pairs (position of a key, whether it descends), none for a text of another form. MetaError for a position that is not a
    number.
    """
    positions, _, signs = (text or "").partition(":")
    wanted = positions.split(",")
    if not signs or len(wanted) != len(signs):
        return []
    if not all(each.isascii() and each.isdigit() for each in wanted):
        raise MetaError(f"The order {text} has a position that is not a number: give positions of partition keys from 0 on")
    return [(int(each), sign == "-") for each, sign in zip(wanted, signs, strict=True)]


def _check_archives(table: Table, found: Sequence[tuple[str, str]], level: int) -> None:
    """Refuse to drop partitions (name, parameters as JSON) that are part of an archive. MetaError."""
    for name, text in found:
        parameters = orjson.loads(text)
        own_level = int(parameters.get("archiving_level") or len(table.partitionKeys))
        if parameters.get("is_archived", "").lower() == "true" and own_level < level:
            raise MetaError(f"Cannot drop a subset of partitions in an archive, partition {name} of {table.dbName}.{table.tableName}")
