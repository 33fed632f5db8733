"""Rows of column statistics: one for each table or partition and engine, with all its columns as JSON. Never joins or evaluates them.

JSON: column name -> [type, when analysed in seconds, its ColumnStatisticsData in Thrift's binary protocol as base64].
"""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import orjson
import sqlalchemy as sa

from metastore.binary import beginnings, each_to_bytes, from_bytes, list_from_bytes
from metastore.idl import ColumnStatisticsData, ColumnStatisticsObj
from metastore.store.catalog.descriptors import hash_of
from metastore.store.catalog.partitions.partition_structs import FIELDS
from metastore.store.core.clauses import Among, ascending, looked_up
from metastore.store.core.database import Session
from metastore.store.drivers.answer import Later
from metastore.store.drivers.contract import Row
from metastore.store.schema.model import partition_statistics, partitions, table_statistics

TABLE_STATISTIC, PARTITION_STATISTIC = table_statistics.c, partition_statistics.c
OF_TABLE = TABLE_STATISTIC.table_id == sa.bindparam("key")
READ_TABLE = sa.select(TABLE_STATISTIC.columns).where(OF_TABLE, TABLE_STATISTIC.engine == sa.bindparam("engine_key"))
READ_TABLE_ENGINES = sa.select(TABLE_STATISTIC.table_id, TABLE_STATISTIC.engine, TABLE_STATISTIC.columns).where(OF_TABLE)
DELETE_TABLE = sa.delete(table_statistics).where(OF_TABLE)
_OF_PARTITION = sa.select(PARTITION_STATISTIC.columns).where(
    PARTITION_STATISTIC.partition_id == partitions.c.id, PARTITION_STATISTIC.engine == sa.bindparam("engine_key")
)
"""Not a join: PostgreSQL would then read the statistics of all tables, unless they are many times more than the wanted ones."""
_OTHERS = _OF_PARTITION.where(PARTITION_STATISTIC.named.is_distinct_from(sa.bindparam("named", type_=sa.BigInteger())))
_OF_PARTITIONS, _OTHERS_OF_PARTITIONS = (
    sa.select(partitions.c.name, columns.label("columns")).where(partitions.c.table_id == sa.bindparam("key"))
    for columns in (_OF_PARTITION, _OTHERS)
)
READ_PARTITIONS = looked_up(_OF_PARTITIONS, partitions.c.name, "names")
READ_OTHERS = looked_up(_OTHERS_OF_PARTITIONS, partitions.c.name, "names")
READ_STATES = looked_up(_OF_PARTITIONS.add_columns(partitions.c.parameters, partitions.c.write_id), partitions.c.name, "names")
READ_KEYED = sa.select(
    PARTITION_STATISTIC.partition_id, PARTITION_STATISTIC.engine, PARTITION_STATISTIC.columns, PARTITION_STATISTIC.table_id
).where(Among(PARTITION_STATISTIC.partition_id, "keys"))
READ_OF_TABLE = sa.select(
    PARTITION_STATISTIC.partition_id, PARTITION_STATISTIC.engine, PARTITION_STATISTIC.columns, PARTITION_STATISTIC.table_id
).where(PARTITION_STATISTIC.table_id == sa.bindparam("key"))
DELETE_KEYED = sa.delete(partition_statistics).where(Among(PARTITION_STATISTIC.partition_id, "keys"))
TABLE_COLUMNS = ("table_id", "engine", "columns")
PARTITION_COLUMNS = ("partition_id", "engine", "columns", "table_id", "named")

EMPTY = "AA=="
"""A ColumnStatisticsData without a member, as in the JSON."""

_KINDS = {b2a_base64(head, newline=False).decode(): field for head, field in beginnings(ColumnStatisticsData).items()}
"""The fields of ColumnStatisticsData, by the first characters in the JSON of one in which the field is set."""
_HEAD = 4
"""The number of first characters by which `_KINDS` recognises a field."""

Encoded = dict[str, list[Any]]
"""Statistics by column, as in the JSON."""

Stored = tuple[str, int]
"""Statistics as they are stored for a partition, and a hash of the names of their columns."""

ColumnsOf = Callable[[int], Sequence[str] | None]
"""A function from a row's key to the columns to remove, None for all."""


class Partition(NamedTuple):
    """A partition's locked row."""

    key: int
    name: str
    parameters: str
    """The partition's parameters as JSON."""
    write_id: int
    row: Row

    def decoded(self) -> dict[str, str]:
        """Return the parameters."""
        return dict(orjson.loads(self.parameters))

    def changed(self, parameters: Mapping[str, str], write_id: int) -> Partition:
        """Return the partition with other parameters and another write id."""
        return self._replace(parameters=orjson.dumps(parameters).decode(), write_id=write_id)


def encode(columns: Sequence[ColumnStatisticsObj]) -> list[str]:
    """Return the ColumnStatisticsData of each column as in the JSON. Partitions of one request may share them."""
    distinct = {id(column.statsData): column.statsData for column in columns}
    texts = dict(zip(distinct, [b2a_base64(raw, newline=False).decode() for raw in each_to_bytes(distinct.values())], strict=True))
    return [texts[id(column.statsData)] for column in columns]


def data_of(raw: Sequence[Any]) -> bytes:
    """Return a column's ColumnStatisticsData in Thrift's binary protocol."""
    return a2b_base64(raw[2])


def kind_of(raw: Sequence[Any]) -> str | None:
    """Return the field of a column's ColumnStatisticsData that is set."""
    return _KINDS.get(raw[2][:_HEAD])


def are_of_one_kind(found: Iterable[Sequence[Any]]) -> bool:
    """Return whether the same field of ColumnStatisticsData is set in all."""
    return len({raw[2][:_HEAD] for raw in found}) < 2


def decode(name: str, raw: Sequence[Any]) -> ColumnStatisticsObj:
    """Return a column's statistics."""
    return ColumnStatisticsObj(colName=name, colType=raw[0], statsData=from_bytes(ColumnStatisticsData, data_of(raw)))


def decode_all(name: str, found: Sequence[Sequence[Any]]) -> list[ColumnStatisticsObj]:
    """Return the statistics of one column from many places, in the order given."""
    data = list_from_bytes(ColumnStatisticsData, [data_of(raw) for raw in found])
    return [ColumnStatisticsObj(colName=name, colType=raw[0], statsData=each) for raw, each in zip(found, data, strict=True)]


def _dump(columns: Encoded) -> str:
    return orjson.dumps(columns).decode()


@lru_cache(maxsize=16)
def _named(names: tuple[str, ...]) -> int:
    """Return a hash of the names of columns. It is cached: hundreds of partitions of one request have the same names."""
    return hash_of(orjson.dumps(sorted(names)).decode())


def stored(columns: Encoded) -> Stored:
    """Return the stored statistics of the columns of a partition."""
    return _dump(columns), _named(tuple(columns))


def of_table(session: Session, table_id: int, engine: str) -> Encoded:
    """Return a table's statistics."""
    row = session.row(READ_TABLE, key=table_id, engine_key=engine)
    return {} if row is None else orjson.loads(row[0])


def of_partitions(session: Session, table_id: int, names: Sequence[str], engine: str) -> dict[str, Encoded]:
    """Return the statistics of the named partitions that have any, by name and ascending."""
    return _by_name(session.rows(READ_PARTITIONS, key=table_id, names=ascending(names), engine_key=engine))


def of_other_columns(
    session: Session, table_id: int | None, names: Sequence[str], engine: str, columns: Collection[str]
) -> Later[dict[str, Encoded]]:
    """Like `of_partitions`, together with the next statement, but without partitions whose statistics are of exactly these columns."""
    named = _named(tuple(columns))
    answer = session.enqueue(READ_OTHERS, key=table_id, names=ascending(names), engine_key=engine, named=named)
    return lambda: _by_name(answer.rows)


def _by_name(rows: Iterable[Row]) -> dict[str, Encoded]:
    """Return the statistics of those partitions that have any, by name."""
    return {name: orjson.loads(columns) for name, columns in rows if columns is not None}


def states_of_partitions(
    session: Session, table_id: int, names: Sequence[str], engine: str
) -> dict[str, tuple[Encoded, dict[str, str], int]]:
    """Return statistics by name as `of_partitions` does, each with the partition's parameters and write id."""
    rows = session.rows(READ_STATES, key=table_id, names=ascending(names), engine_key=engine)
    return {
        name: (orjson.loads(columns), orjson.loads(parameters), write_id)
        for name, columns, parameters, write_id in rows
        if columns is not None
    }


def write_table(session: Session, table_id: int, engine: str, columns: Encoded) -> None:
    """Replace a table's statistics."""
    session.enqueue_upsert(table_statistics, TABLE_COLUMNS, [(table_id, engine, _dump(columns))])


def write_partitions(session: Session, table_id: int, engine: str, statistics: Mapping[int, Stored]) -> None:
    """Replace the statistics of partitions, given by key, whose rows are locked."""
    rows = [(key, engine, columns, table_id, named) for key, (columns, named) in statistics.items()]
    session.enqueue_upsert(partition_statistics, PARTITION_COLUMNS, rows)


def locked(rows: Iterable[Row]) -> list[Partition]:
    """Return the partitions of rows that were locked (`partition_structs.FIELDS`)."""
    return [Partition(row[0], row[1], row[6], row[9], row) for row in rows]


def set_parameters(session: Session, table_id: int, changed: Sequence[Partition]) -> None:
    """Change the parameters and write ids of locked partitions."""
    columns = ("table_id", *(field.name for field in FIELDS))
    rows = [(table_id, *each.row[:6], each.parameters, *each.row[7:9], each.write_id, *each.row[10:]) for each in changed]
    session.enqueue_upsert(partitions, columns, rows)


def delete_table(session: Session, table_id: int, columns: Sequence[str] | None = None, engine: str | None = None) -> set[str]:
    """Remove statistics of a table: of all columns or those named, of all engines or one; return the columns that had any."""
    gone, kept = _without(session.rows(READ_TABLE_ENGINES, key=table_id), lambda _: columns, engine)
    if gone:
        session.execute(DELETE_TABLE, key=table_id)
        session.insert_many(table_statistics, TABLE_COLUMNS, [(key, of, _dump(stays)) for key, of, stays in kept])
    return gone.get(table_id, set())


def delete_partitions(
    session: Session, keys: Sequence[int], columns: Sequence[str] | None = None, engine: str | None = None
) -> dict[int, set[str]]:
    """Remove statistics of partitions, as `delete_table` does; return the columns that had any, by key."""
    return _rewrite(session, session.rows(READ_KEYED, keys=list(keys)), lambda _: columns, engine)


def delete_partition_columns(session: Session, columns: Mapping[int, Sequence[str]]) -> None:
    """Remove statistics of columns of partitions, given by key."""
    _rewrite(session, session.rows(READ_KEYED, keys=list(columns)), columns.__getitem__, None)


def delete_columns_of_partitions(session: Session, table_id: int, columns: Sequence[str]) -> None:
    """Remove statistics of columns of all partitions of a table, of all engines."""
    _rewrite(session, session.rows(READ_OF_TABLE, key=table_id), lambda _: columns, None)


def _rewrite(session: Session, rows: Iterable[Row], columns_of: ColumnsOf, engine: str | None) -> dict[int, set[str]]:
    gone, kept = _without(rows, columns_of, engine)
    if gone:
        session.execute(DELETE_KEYED, keys=list(gone))
        rows = [(key, of, text, table_id, named) for key, of, columns, table_id in kept if key in gone for text, named in [stored(columns)]]
        session.insert_many(partition_statistics, PARTITION_COLUMNS, rows)
    return gone


def _without(rows: Iterable[Row], columns_of: ColumnsOf, engine: str | None) -> tuple[dict[int, set[str]], list[Any]]:
    """Return the columns to remove by key, and (key, engine, columns, ...) of the rows with the columns that stay."""
    gone: dict[int, set[str]] = {}
    kept = []
    for key, row_engine, text, *rest in rows:
        raw: Encoded = orjson.loads(text)
        columns = columns_of(key)
        lost = set() if engine not in (None, row_engine) else set(raw) if columns is None else set(columns) & set(raw)
        if lost:
            gone.setdefault(key, set()).update(lost)
        if len(lost) < len(raw):
            kept.append((key, row_engine, {name: value for name, value in raw.items() if name not in lost}, *rest))
    return gone, kept
