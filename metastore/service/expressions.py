"""Partitions that an expression of Hive's selects: read, list, drop. Source: Hive's ObjectStore.getPartitionsByExprInternal.

What can not be evaluated is kept and reported as unknown: the client then filters the rows again. A drop refuses it. Bytes that are no
serialised expression are read as a filter string, which Hive's MSCK REPAIR sends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import orjson

from metastore.errors import MetaError, NoSuchObject
from metastore.idl import Partition, Table
from metastore.rules.filters import (
    NotUnderstood,
    compile_expression,
    is_expression,
    leading_prefixes,
    read_expression,
    weakened,
)
from metastore.rules.filters.values import key_type
from metastore.service.context import Call
from metastore.service.drop_partitions import drop_named
from metastore.service.names import TableName
from metastore.service.partitions import Selected, check_count, rows_by_filter, with_table
from metastore.service.tables import find_table
from metastore.store import partitions
from metastore.store.database import Session
from metastore.store.drivers.contract import Row
from metastore.store.partition_structs import Rows

Judge = Callable[[Sequence[str]], bool | None]

EMPTY = (b"", b"\xff")
"""What clients send for "all partitions"."""
REFUSING = "DefaultPartitionExpressionProxy"


class Dropped(NamedTuple):
    """An expression of which partitions to drop, and below which level an archived one may not be dropped."""

    expression: bytes
    archive_level: int | None = None


def get_partitions_by_expression(
    call: Call, name: TableName, expression: bytes, limit: int = -1, default_name: str | None = None
) -> tuple[list[Partition], bool]:
    """Return the first partitions that an expression selects, ascending by name, and whether one may not match. NoSuchObject, MetaError."""

    def work(session: Session, table: Table) -> tuple[list[Partition], bool]:
        rows, unknown = _cut(_select(call, session, table, expression, default_name), limit)
        check_count(call, table, len(rows), limit)
        return Rows(call.database, session, table).structs(rows), unknown

    return with_table(call, name, work)


def get_partition_names_by_expression(
    call: Call, name: TableName, expression: bytes, limit: int = -1, default_name: str | None = None, order: str | None = None
) -> list[str]:
    """Return the first names of the partitions that an expression selects, or may select.

    `order` names positions of keys and directions, such as "1,0:+-"; without it names ascend. NoSuchObject, MetaError.
    """

    def work(session: Session, table: Table) -> list[str]:
        rows = _select(call, session, table, expression, default_name).rows
        for position, descending in reversed(_order(order, len(table.partitionKeys))):
            read = key_type(table.partitionKeys[position].type).read_value
            values = {row[0]: read(orjson.loads(row[2])[position]) for row in rows}
            present = sorted((row for row in rows if values[row[0]] is not None), key=lambda row: values[row[0]], reverse=descending)
            absent = [row for row in rows if values[row[0]] is None]
            rows = present + absent if descending else absent + present
        return [row[1] for row in (rows if limit < 0 else rows[:limit])]

    return with_table(call, name, work)


def drop_partitions_by_expressions(
    call: Call,
    name: TableName,
    dropped: Sequence[Dropped],
    *,
    delete_data: bool,
    if_exists: bool,
    environment: Mapping[str, str] | None = None,
) -> list[Partition]:
    """Drop what expressions select, all or nothing; return the dropped. With `if_exists` an expression may select nothing.

    NoSuchObject; MetaError for an expression of which it is not certain what it selects, and for a part of an archive.
    """

    def work(session: Session, table: Table) -> list[str]:
        names: dict[str, None] = {}
        for expression, level in dropped:
            rows, unknown = _select(call, session, table, expression, None, exactly=True)
            if unknown:
                raise MetaError(
                    f"Unexpected unknown partitions to drop: the expression does not tell of all partitions of {name} whether it selects "
                    "them; compare keys with constants"
                )
            if not rows and not if_exists:
                raise NoSuchObject(f"Some partitions to drop are missing: an expression selects none of {name}")
            if level is not None:
                _check_archives(table, rows, level)
            names.update(dict.fromkeys(row[1] for row in rows))
        return list(names)

    names = with_table(call, name, work)
    table = find_table(call, name)
    return drop_named(call, name, table, names, delete_data=delete_data, if_exists=True, environment=environment)


def _select(call: Call, session: Session, table: Table, expression: bytes, default_name: str | None, *, exactly: bool = False) -> Selected:
    """Return what an expression selects or may select; with `exactly` one that is not understood is an error."""
    assert table.id is not None
    if expression in EMPTY:
        return Selected(partitions.keyed_rows(session, table.id, None), unknown=False)
    if call.config.expression_proxy.rpartition(".")[2] == REFUSING:
        raise MetaError(
            f"java.lang.UnsupportedOperationException: the setting expression_proxy is {REFUSING}, which reads no partition expressions"
        )
    if not is_expression(expression):
        return rows_by_filter(call, session, table, _text(expression), default_name)
    default_name = default_name or call.config.default_partition_name
    keys = [(key.name, key.type) for key in table.partitionKeys]
    prefixes, judge = _judge(expression, keys, default_name, exactly=exactly)
    if judge is None:
        return Selected(partitions.keyed_rows(session, table.id, None), unknown=True)
    judged = [(row, judge(orjson.loads(row[2]))) for row in partitions.keyed_rows(session, table.id, prefixes)]
    return Selected([row for row, verdict in judged if verdict is not False], any(verdict is None for _, verdict in judged))


def _judge(
    expression: bytes, keys: Sequence[tuple[str, str]], default_name: str, *, exactly: bool
) -> tuple[list[str] | None, Judge | None]:
    """Return prefixes of the names that may match, None for any, and what evaluates values: None if nothing can."""
    try:
        tree = read_expression(expression)
    except NotUnderstood:
        if exactly:
            raise
        return None, None
    return leading_prefixes(weakened(tree, default_name), keys, default_name), compile_expression(tree, keys, default_name)


def _text(expression: bytes) -> str:
    try:
        return expression.decode()
    except UnicodeDecodeError as error:
        raise MetaError(
            f"The partition expression, {len(expression)} bytes, is neither what Hive's client serialises nor a filter string"
        ) from error


def _cut(selected: Selected, limit: int) -> Selected:
    return selected if limit < 0 else Selected(selected.rows[:limit], selected.unknown)


def _order(text: str | None, keys: int) -> list[tuple[int, bool]]:
    """Return (position of a key, whether it descends). MetaError for a position that is none; one of another form orders nothing."""
    positions, _, signs = (text or "").partition(":")
    wanted = positions.split(",")
    if not signs or len(wanted) != len(signs):
        return []
    if not all(each.isascii() and each.isdigit() and int(each) < keys for each in wanted):
        raise MetaError(f"The order {text} names a partition key that is not there: give positions from 0 to {keys - 1}")
    return [(int(each), sign == "-") for each, sign in zip(wanted, signs, strict=True)]


def _check_archives(table: Table, rows: Sequence[Row], level: int) -> None:
    for row in rows:
        parameters = orjson.loads(row[6])
        own_level = int(parameters.get("archiving_level") or len(table.partitionKeys))
        if parameters.get("is_archived", "").lower() == "true" and own_level < level:
            raise MetaError(f"Cannot drop a subset of partitions in an archive, partition {row[1]} of {table.dbName}.{table.tableName}")
