"""Rows of column statistics: one for each table or partition and engine, with all its columns as JSON. Never joins or judges them.

JSON: column name -> [type, when analysed in seconds, kind, {field: value}]; bytes are base64, numbers that JSON lacks are text.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isfinite
from typing import Any, NamedTuple

import orjson
import sqlalchemy as sa

from metastore import idl
from metastore.idl import ColumnStatisticsData, ColumnStatisticsObj, Table
from metastore.store import partitions as partition_rows
from metastore.store.database import Among, Session
from metastore.store.drivers import Row
from metastore.store.schema import partition_statistics, partitions, table_statistics

T, S = table_statistics.c, partition_statistics.c
OF_TABLE = T.table_id == sa.bindparam("key")
READ_TABLE = sa.select(T.columns).where(OF_TABLE, T.engine == sa.bindparam("engine_key"))
READ_TABLE_ENGINES = sa.select(T.table_id, T.engine, T.columns).where(OF_TABLE)
DELETE_TABLE = sa.delete(table_statistics).where(OF_TABLE)
DELETE_TABLE_ENGINE = sa.delete(table_statistics).where(OF_TABLE, T.engine == sa.bindparam("engine_key"))
READ_PARTITIONS = (
    sa.select(partitions.c.name, S.columns)
    .select_from(partition_statistics.join(partitions, S.partition_id == partitions.c.id))
    .where(partitions.c.table_id == sa.bindparam("key"), Among(partitions.c.name, "names"), S.engine == sa.bindparam("engine_key"))
    .order_by(partitions.c.name)
)
READ_KEYED = sa.select(S.partition_id, S.engine, S.columns, S.table_id).where(Among(S.partition_id, "keys"))
READ_OF_TABLE = sa.select(S.partition_id, S.engine, S.columns, S.table_id).where(S.table_id == sa.bindparam("key"))
DELETE_KEYED = sa.delete(partition_statistics).where(Among(S.partition_id, "keys"))
DELETE_KEYED_ENGINE = sa.delete(partition_statistics).where(Among(S.partition_id, "keys"), S.engine == sa.bindparam("engine_key"))
TABLE_COLUMNS = ("table_id", "engine", "columns")
PARTITION_COLUMNS = ("partition_id", "engine", "columns", "table_id")

Encoded = dict[str, list[Any]]
"""Statistics by column, as in the JSON."""

ColumnsOf = Callable[[int], Sequence[str] | None]
"""From a row's key to the columns that go, None for all."""


class Partition(NamedTuple):
    """A partition's locked row."""

    key: int
    name: str
    parameters: dict[str, str]
    row: Row


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, float):
        return value if isfinite(value) else str(value)
    if hasattr(value, "thrift_spec"):
        return {name: _plain(field) for name, field in value.__dict__.items() if field is not None}
    return value


def encode(column: ColumnStatisticsObj, analyzed: int) -> list[Any]:
    """Return a column's statistics as they stand in the JSON; `analyzed` in seconds."""
    for kind, data in column.statsData.__dict__.items():
        if data is not None:
            return [column.colType, analyzed, kind, _flat(data.__dict__) if kind in _FLAT else _plain(data)]
    return [column.colType, analyzed, None, None]


def _flat(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value if type(value) is int else _plain(value)
        for name, value in fields.items() if value is not None
    }


def _fields(struct: type[Any]) -> dict[str, Any]:
    return {spec[1]: spec[2] if isinstance(spec[2], type) else spec[0] for spec in struct.thrift_spec.values()}


def _struct(cls: type[Any], raw: Mapping[str, Any]) -> Any:
    out = cls()
    for name, value in raw.items():
        setattr(out, name, _field(_FIELDS[cls][name], value))
    return out


def _field(kind: Any, value: Any) -> Any:
    if isinstance(kind, type):
        return _struct(kind, value)
    if kind == _BINARY:
        return b64decode(value)
    return float(value) if isinstance(value, str) else value


_BINARY = next(spec[0] for spec in idl.Decimal.thrift_spec.values() if spec[1] == "unscaled")
_DATA = _fields(ColumnStatisticsData)
_FLAT = frozenset(("booleanStats", "longStats", "stringStats", "binaryStats"))
"""Kinds whose fields stand in the JSON as they are, but for bit vectors."""
_FIELDS = {cls: _fields(cls) for cls in (*_DATA.values(), idl.Decimal, idl.Date, idl.Timestamp)}


def decode(name: str, raw: Sequence[Any]) -> ColumnStatisticsObj:
    """Return a column's statistics."""
    kind_of_column, _, kind, fields = raw
    data = ColumnStatisticsData()
    if kind in _FLAT and "bitVectors" not in fields:
        flat = _DATA[kind]()
        flat.__dict__.update(fields)
        setattr(data, kind, flat)
    elif kind is not None:
        setattr(data, kind, _struct(_DATA[kind], fields))
    column = ColumnStatisticsObj.__new__(ColumnStatisticsObj)
    column.__dict__ = {"colName": name, "colType": kind_of_column, "statsData": data}
    return column


def _dump(columns: Encoded) -> str:
    return orjson.dumps(columns).decode()


def of_table(session: Session, table_id: int, engine: str) -> Encoded:
    """Return a table's statistics."""
    row = session.row(READ_TABLE, key=table_id, engine_key=engine)
    return {} if row is None else orjson.loads(row[0])


def of_partitions(session: Session, table_id: int, names: Sequence[str], engine: str) -> dict[str, Encoded]:
    """Return the statistics of the named partitions that have any, by name and ascending."""
    rows = session.rows(READ_PARTITIONS, key=table_id, names=list(names), engine_key=engine)
    return {name: orjson.loads(columns) for name, columns in rows}


def of_keys(session: Session, keys: Sequence[int], engine: str) -> dict[int, Encoded]:
    """Return the statistics of partitions by key."""
    rows = session.rows(READ_KEYED, keys=list(keys))
    return {key: orjson.loads(columns) for key, row_engine, columns, _ in rows if row_engine == engine}


def write_table(session: Session, table_id: int, engine: str, columns: Encoded) -> None:
    """Replace a table's statistics."""
    session.execute(DELETE_TABLE_ENGINE, key=table_id, engine_key=engine)
    session.insert_many(table_statistics, TABLE_COLUMNS, [(table_id, engine, _dump(columns))])


def write_partitions(session: Session, table_id: int, engine: str, statistics: Mapping[int, Encoded]) -> None:
    """Replace the statistics of partitions, given by key: two statements."""
    session.execute(DELETE_KEYED_ENGINE, keys=list(statistics), engine_key=engine)
    rows = [(key, engine, _dump(columns), table_id) for key, columns in statistics.items()]
    session.insert_many(partition_statistics, PARTITION_COLUMNS, rows)


def lock_partitions(session: Session, table: Table, names: Sequence[str]) -> list[Partition]:
    """Lock the rows of the named partitions that are there, ascending by name."""
    return [Partition(row[0], row[1], orjson.loads(row[6]), row) for row in partition_rows.lock_rows(session, table, names)]


def set_parameters(session: Session, table_id: int, changed: Sequence[Partition]) -> None:
    """Change the parameters of locked partitions: two statements, since not every database updates many rows in one."""
    session.execute(partition_rows.DELETE, keys=[partition.key for partition in changed])
    session.insert_many(partitions, ("table_id", "id", *(field.name for field in partition_rows.FIELDS[1:])), [
        (table_id, *partition.row[:6], orjson.dumps(partition.parameters).decode(), *partition.row[7:]) for partition in changed
    ])


def delete_table(session: Session, table_id: int, columns: Sequence[str] | None = None, engine: str | None = None) -> set[str]:
    """Remove statistics of a table: of all columns or those named, of all engines or one; return the columns that had any."""
    gone, kept = _without(session.rows(READ_TABLE_ENGINES, key=table_id), lambda _: columns, engine)
    if gone:
        session.execute(DELETE_TABLE, key=table_id)
        if kept:
            session.insert_many(table_statistics, TABLE_COLUMNS, kept)
    return gone.get(table_id, set())


def delete_partitions(
    session: Session, keys: Sequence[int], columns: Sequence[str] | None = None, engine: str | None = None
) -> dict[int, set[str]]:
    """Remove statistics of partitions, as `delete_table` does; return the columns that had any, by key."""
    return _rewrite(session, session.rows(READ_KEYED, keys=list(keys)), lambda _: columns, engine)


def delete_partition_columns(session: Session, columns: Mapping[int, Sequence[str]]) -> None:
    """Forget columns of partitions, given by key."""
    _rewrite(session, session.rows(READ_KEYED, keys=list(columns)), columns.__getitem__, None)


def delete_columns(session: Session, table_id: int, columns: Sequence[str], *, partitions_too: bool) -> None:
    """Forget columns of a table, of all engines; with `partitions_too` of its partitions also."""
    delete_table(session, table_id, columns)
    if partitions_too:
        _rewrite(session, session.rows(READ_OF_TABLE, key=table_id), lambda _: columns, None)


def _rewrite(session: Session, rows: Iterable[Row], columns_of: ColumnsOf, engine: str | None) -> dict[int, set[str]]:
    gone, kept = _without(rows, columns_of, engine)
    if gone:
        session.execute(DELETE_KEYED, keys=list(gone))
        rewritten = [row for row in kept if row[0] in gone]
        if rewritten:
            session.insert_many(partition_statistics, PARTITION_COLUMNS, rewritten)
    return gone


def _without(rows: Iterable[Row], columns_of: ColumnsOf, engine: str | None) -> tuple[dict[int, set[str]], list[Row]]:
    """Return which columns go by key, and the rows (key, engine, columns, ...) with what stays."""
    gone: dict[int, set[str]] = {}
    kept = []
    for key, row_engine, text, *rest in rows:
        raw: Encoded = orjson.loads(text)
        columns = columns_of(key)
        lost = set() if engine not in (None, row_engine) else set(raw) if columns is None else set(columns) & set(raw)
        if lost:
            gone.setdefault(key, set()).update(lost)
        if len(lost) < len(raw):
            stays = _dump({name: value for name, value in raw.items() if name not in lost}) if lost else text
            kept.append((key, row_engine, stays, *rest))
    return gone, kept
