"""Rows of tables. One function per statement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple

import orjson
import sqlalchemy as sa

from metastore.idl import FieldSchema, Table
from metastore.places import indexed
from metastore.store.catalog import descriptors
from metastore.store.catalog.tables import view_sources
from metastore.store.core import authorization_changes
from metastore.store.core.clauses import ascending, bound, constant, looked_up
from metastore.store.core.database import Database, Session
from metastore.store.drivers.answer import Answer
from metastore.store.drivers.contract import Row
from metastore.store.schema.model import constraints, databases, partition_statistics, partitions, privileges, table_statistics, tables
from metastore.store.schema.model import descriptors as descriptors_table

TABLE, DATABASE = tables.c, databases.c
COLUMNS, STORAGE = descriptors_table.alias("columns_body"), descriptors_table.alias("storage_body")
_OF_STRUCT = {
    "id": TABLE.id,
    "catName": DATABASE.catalog,
    "dbName": DATABASE.name,
    "tableName": TABLE.name,
    "tableType": TABLE.type,
    "owner": TABLE.owner,
    "ownerType": TABLE.owner_type,
    "createTime": TABLE.create_time,
    "lastAccessTime": TABLE.last_access_time,
    "retention": TABLE.retention,
    "partitionKeys": TABLE.partition_keys,
    "parameters": TABLE.parameters,
    "viewOriginalText": TABLE.view_original_text,
    "viewExpandedText": TABLE.view_expanded_text,
    "rewriteEnabled": TABLE.rewrite_enabled,
    "writeId": TABLE.write_id,
    "creationMetadata": TABLE.creation_metadata,
}
"""Columns by the field of the struct that they hold."""
STORED = frozenset({*_OF_STRUCT, "sd"})
"""Fields of the struct that are stored."""
FIELDS = (*_OF_STRUCT.values(), TABLE.location, TABLE.columns_hash, COLUMNS.c.body, TABLE.storage_hash, STORAGE.c.body)
JOINED = (
    tables.join(databases, TABLE.database_id == DATABASE.id)
    .outerjoin(COLUMNS, sa.and_(COLUMNS.c.table_id == TABLE.id, COLUMNS.c.hash == TABLE.columns_hash))
    .outerjoin(STORAGE, sa.and_(STORAGE.c.table_id == TABLE.id, STORAGE.c.hash == TABLE.storage_hash))
)
IN_DATABASE = sa.and_(DATABASE.catalog == sa.bindparam("catalog_key"), DATABASE.name == sa.bindparam("database_key"))
ONE = sa.and_(IN_DATABASE, TABLE.name == sa.bindparam("name_key"))
FIND = sa.select(*FIELDS).select_from(JOINED).where(ONE)
FIND_MANY = looked_up(sa.select(*FIELDS).select_from(JOINED).where(IN_DATABASE), TABLE.name, "names")
ALL = sa.select(*FIELDS).select_from(JOINED).where(IN_DATABASE).order_by(TABLE.name)
MATERIALIZED_VIEWS = (
    sa.select(*FIELDS)
    .select_from(JOINED)
    .where(DATABASE.catalog == sa.bindparam("catalog_key"), TABLE.type == constant("MATERIALIZED_VIEW"))
    .order_by(DATABASE.name, TABLE.name)
)
DATABASE_KEY = sa.select(DATABASE.id).where(IN_DATABASE).scalar_subquery()
_IS_NAMED = (TABLE.database_id == DATABASE_KEY, TABLE.name == sa.bindparam("name_key"))
KEY = sa.select(TABLE.id).where(*_IS_NAMED)
LOCK = KEY.with_for_update()
SHARE = KEY.with_for_update(read=True)
LOCK_ALL = sa.select(TABLE.id).where(TABLE.database_id == sa.bindparam("key")).order_by(TABLE.id).with_for_update()
STATE = tuple(field for field in FIELDS if field.table is tables)
"""The columns of a table's own row."""
_state = itemgetter(*map(FIELDS.index, STATE))
_KNOWN = sa.select(*STATE).where(*_IS_NAMED)
SHARE_KNOWN = _KNOWN.with_for_update(read=True)
LOCK_KNOWN = _KNOWN.with_for_update()
NAMES = sa.select(TABLE.name).where(TABLE.database_id == DATABASE_KEY).order_by(TABLE.name)
NAMES_OF_TYPE = NAMES.where(TABLE.type == sa.bindparam("type_key"))
META = (
    sa.select(DATABASE.name, TABLE.name, TABLE.type, TABLE.comment, TABLE.owner, TABLE.owner_type)
    .select_from(tables.join(databases, TABLE.database_id == DATABASE.id))
    .where(DATABASE.catalog == sa.bindparam("catalog_key"))
    .order_by(DATABASE.name, TABLE.name)
)
META_OF_DATABASE = META.where(DATABASE.name == sa.bindparam("database_key"))
FACTS = (
    sa.select(TABLE.name, TABLE.type, TABLE.owner, TABLE.last_access_time, TABLE.parameters)
    .select_from(tables.join(databases, TABLE.database_id == DATABASE.id))
    .where(IN_DATABASE)
    .order_by(TABLE.name)
)
UPDATE = sa.update(tables).where(TABLE.id == sa.bindparam("key")).values(bound(TABLE.keys(), but={"id"}))
LOCK_PARAMETERS = sa.select(TABLE.parameters).where(TABLE.id == sa.bindparam("key")).with_for_update()
SET_PARAMETERS = (
    sa.update(tables).where(TABLE.id == sa.bindparam("key")).values(parameters=sa.bindparam("parameters"), comment=sa.bindparam("comment"))
)
SET_STATE = SET_PARAMETERS.values(write_id=sa.bindparam("write_id"))
_KEY: sa.BindParameter[int] = sa.bindparam("key")
DELETE_PARTITIONS = [sa.delete(table).where(table.c.table_id == _KEY) for table in (partition_statistics, partitions)]
DELETE_PRIVILEGES = sa.delete(privileges).where(privileges.c.table_id == _KEY)
DELETE = [
    sa.delete(table_statistics).where(table_statistics.c.table_id == _KEY),
    sa.delete(constraints).where(sa.or_(constraints.c.table_id == _KEY, constraints.c.parent_table_id == _KEY)),
    DELETE_PRIVILEGES,
    sa.delete(descriptors_table).where(descriptors_table.c.table_id == _KEY),
    sa.delete(tables).where(TABLE.id == _KEY),
]


class FilteredTable(NamedTuple):
    """The fields of a table for filters."""

    name: str
    type: str
    owner: str | None
    last_access_time: int
    parameters: dict[str, str]


class TableMeta(NamedTuple):
    """A row of a listing over databases."""

    database: str
    name: str
    type: str
    comment: str | None
    owner: str | None
    owner_type: int | None


def _struct(database: Database, row: Row) -> Table:
    fields = dict(zip(_OF_STRUCT, row, strict=False))
    location, columns_hash, columns_body, storage_hash, storage_body = row[len(_OF_STRUCT) :]
    fields["sd"] = None
    if storage_hash is not None:
        columns = descriptors.columns(database, columns_hash, columns_body) if columns_hash is not None else []
        fields["sd"] = descriptors.storage(database, storage_hash, storage_body).at(location, columns)
    keys = fields["partitionKeys"]
    fields["partitionKeys"] = [FieldSchema(*key) for key in orjson.loads(keys)] if keys != "[]" else []
    fields["parameters"] = orjson.loads(fields["parameters"])
    fields["rewriteEnabled"] = bool(fields["rewriteEnabled"])
    if fields["creationMetadata"] is not None:
        fields["creationMetadata"] = view_sources.decode(fields["creationMetadata"])
    table = Table.__new__(Table)
    table.__dict__ = fields
    return table


def _values(table: Table) -> tuple[dict[str, Any], list[tuple[int, str]]]:
    """Return the column values of a table and the (hash, body) of its descriptors."""
    bodies: list[tuple[int, str]] = []
    columns_hash = storage_hash = None
    if table.sd is not None:
        texts = (descriptors.encode_columns(table.sd.cols or []), descriptors.encode_storage(table.sd))
        bodies = [(descriptors.hash_of(body), body) for body in texts]
        columns_hash, storage_hash = bodies[0][0], bodies[1][0]
    return {
        "name": table.tableName,
        "type": table.tableType,
        "owner": table.owner,
        "owner_type": table.ownerType,
        "create_time": table.createTime or 0,
        "last_access_time": table.lastAccessTime or 0,
        "retention": table.retention or 0,
        "location": table.sd.location if table.sd is not None else None,
        "columns_hash": columns_hash,
        "storage_hash": storage_hash,
        "partition_keys": descriptors.encode_columns(table.partitionKeys or []),
        "parameters": orjson.dumps(table.parameters or {}).decode(),
        "comment": (table.parameters or {}).get("comment"),
        "view_original_text": table.viewOriginalText,
        "view_expanded_text": table.viewExpandedText,
        "rewrite_enabled": int(bool(table.rewriteEnabled)),
        "write_id": -1 if table.writeId is None else table.writeId,
        "creation_metadata": view_sources.encode(table.creationMetadata),
        "place": indexed(table.sd.location) if table.sd is not None and table.tableType != "VIRTUAL_VIEW" else None,
    }, bodies


def find(session: Session, catalog: str, database_name: str, name: str) -> Table | None:
    """Return a table with its key as `id`, or None."""
    row = session.row(FIND, catalog_key=catalog, database_key=database_name, name_key=name)
    return None if row is None else _struct(session.database, row)


@dataclass(slots=True)
class Known:
    """A table as it was read by this call or an earlier one."""

    table: Table
    state: Row | None
    """The row (`STATE`) as an earlier call read it: when it is locked, it must be unchanged. None if this call read it."""
    is_current: bool = False
    """Whether the row was locked and unchanged: a later failure is then final."""


def cached(database: Database, catalog: str, database_name: str, name: str) -> Known | None:
    """Return a table as `find_and_cache` read it last, None if it is not in this process's cache."""
    row = database.caches.tables.get((catalog, database_name, name))
    return None if row is None else Known(_struct(database, row), _state(row))


def find_and_cache(session: Session, catalog: str, database_name: str, name: str) -> Known | None:
    """Return a table as `find` does, and keep its row."""
    row = session.row(FIND, catalog_key=catalog, database_key=database_name, name_key=name)
    if row is None:
        return None
    session.caches.tables.put((catalog, database_name, name), row)
    return Known(_struct(session.database, row), None)


def find_many(session: Session, catalog: str, database_name: str, names: Sequence[str]) -> list[Table]:
    """Return the named tables that exist, ascending by name."""
    rows = session.rows(FIND_MANY, catalog_key=catalog, database_key=database_name, names=ascending(names))
    return [_struct(session.database, row) for row in rows]


def all_of(session: Session, catalog: str, database_name: str) -> list[Table]:
    """Return all tables of a database, ascending by name."""
    return [_struct(session.database, row) for row in session.rows(ALL, catalog_key=catalog, database_key=database_name)]


def materialized_views(session: Session, catalog: str) -> list[Table]:
    """Return all materialized views of a catalog, ascending by database and name."""
    return [_struct(session.database, row) for row in session.rows(MATERIALIZED_VIEWS, catalog_key=catalog)]


def key(session: Session, catalog: str, database_name: str, name: str) -> int | None:
    """Return a table's key, or None."""
    return session.number(KEY, catalog_key=catalog, database_key=database_name, name_key=name)


def lock(session: Session, catalog: str, database_name: str, name: str) -> int | None:
    """Lock a table's row against every change of it or its partitions; return its key, or None."""
    return session.number(LOCK, catalog_key=catalog, database_key=database_name, name_key=name)


def share(session: Session, catalog: str, database_name: str, name: str) -> int | None:
    """Lock a table's row against its removal and change; return its key, or None."""
    return session.number(SHARE, catalog_key=catalog, database_key=database_name, name_key=name)


def lock_all(session: Session, database_id: int) -> None:
    """Lock the rows of all tables of a database against every change of them or their partitions."""
    session.rows(LOCK_ALL, key=database_id)


def lock_known(session: Session, table: Table, *, exclusively: bool = False) -> Answer:
    """Lock a table that was read before: against its removal and change, or against every change of its partitions too.

    The statement is sent together with the next one; `locked` reads the answer.
    """
    where = {"catalog_key": table.catName, "database_key": table.dbName, "name_key": table.tableName}
    return session.enqueue(LOCK_KNOWN if exclusively else SHARE_KNOWN, **where)


def locked(session: Session, table: Table, answer: Answer, state: Row | None = None) -> Table | None:
    """Return a table that `lock_known` locked, as it is now; None when it was dropped or renamed. `state` is the state of its row."""
    row = answer.rows[0] if answer.rows else None
    if row is None or row[0] != table.id:
        return None
    if row == (state or _state_of(table)):
        return table
    return find(session, table.catName or "", table.dbName, table.tableName)


def is_locked(table: Table, answer: Answer, state: Row | None) -> bool:
    """Return whether `lock_known` found the same table, and if its `state` is known, with an unchanged row."""
    row = answer.rows[0] if answer.rows else (None,)
    return bool(row[0] == table.id if state is None else row == state)


def _state_of(table: Table) -> Row:
    values, _ = _values(table)
    return table.id, *(values[field.name] for field in STATE[1:])


def names(session: Session, catalog: str, database_name: str, table_type: str | None = None) -> list[str]:
    """Return the names of a database's tables, of one type if given, ascending."""
    if table_type is None:
        return session.column(NAMES, catalog_key=catalog, database_key=database_name)
    return session.column(NAMES_OF_TYPE, catalog_key=catalog, database_key=database_name, type_key=table_type)


def meta(session: Session, catalog: str, database_name: str | None) -> list[TableMeta]:
    """Return the fields of a listing for all tables of a database, or of a whole catalog, ascending by database and name."""
    clause = META if database_name is None else META_OF_DATABASE
    return [TableMeta(*row) for row in session.rows(clause, catalog_key=catalog, database_key=database_name)]


def facts(session: Session, catalog: str, database_name: str) -> list[FilteredTable]:
    """Return the fields for table filters, for all tables of a database, ascending by name."""
    rows = session.rows(FACTS, catalog_key=catalog, database_key=database_name)
    return [FilteredTable(row[0], row[1], row[2], row[3], orjson.loads(row[4])) for row in rows]


def insert(session: Session, database_id: int, table: Table) -> int:
    """Add a table; return its key."""
    values, bodies = _values(table)
    key = session.insert_keyed(tables, database_id=database_id, **values).key
    descriptors.insert(session, key, bodies)
    return key


def update(session: Session, key: int, database_id: int, table: Table, old: Table) -> None:
    """Change a table's row; `old` is the stored table, so that unchanged descriptors are not written again."""
    if table.dbName != old.dbName:
        authorization_changes.note(session)  # the databases in which a user has tables have changed
    values, bodies = _values(table)
    known = {hash_ for hash_, _ in _values(old)[1]}
    session.execute(UPDATE, key=key, database_id=database_id, **values)
    descriptors.insert(session, key, [body for body in bodies if body[0] not in known])


def set_parameters(session: Session, key: int, parameters: dict[str, str], write_id: int | None = None) -> None:
    """Change a table's parameters only, and the write id of its statistics if one is given."""
    values = {"parameters": orjson.dumps(parameters).decode(), "comment": parameters.get("comment")}
    if write_id is None:
        session.execute(SET_PARAMETERS, key=key, **values)
    else:
        session.execute(SET_STATE, key=key, write_id=write_id, **values)


def lock_parameters(session: Session, key: int) -> dict[str, str] | None:
    """Lock a table's row by its key; return its parameters, or None."""
    row = session.row(LOCK_PARAMETERS, key=key)
    return None if row is None else dict(orjson.loads(row[0]))


def delete(session: Session, key: int, *, partitioned: bool) -> None:
    """Remove a table with all rows that depend on it."""
    gone = {statement: session.enqueue(statement, key=key) for statement in (*(DELETE_PARTITIONS if partitioned else ()), *DELETE)}
    authorization_changes.note(session, gone[DELETE_PRIVILEGES])
