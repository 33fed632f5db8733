"""Rows of indexes. Tables are referred to by key, so a rename shows at once, and an index is removed with either of its tables.

One function per statement.
"""

from __future__ import annotations

from typing import Any

import orjson
import sqlalchemy as sa

from metastore.idl import Index
from metastore.store.catalog import descriptors
from metastore.store.core.database import Database, Session
from metastore.store.drivers.answer import Later
from metastore.store.drivers.contract import Row
from metastore.store.schema.indexes import indexes
from metastore.store.schema.model import databases, tables

INDEX, TABLE, DATABASE = indexes.c, tables.c, databases.c
INDEX_TABLE, INDEX_DATABASE = tables.alias("index_table"), databases.alias("index_database")
_INDEX_TABLE_NAME = (INDEX_DATABASE.c.catalog, INDEX_DATABASE.c.name, INDEX_TABLE.c.name)


def _with_index_table(rows: sa.FromClause) -> sa.FromClause:
    """Return rows of indexes, joined with their index tables and these tables' databases."""
    return rows.join(INDEX_TABLE, INDEX.index_table_id == INDEX_TABLE.c.id).join(
        INDEX_DATABASE, INDEX_TABLE.c.database_id == INDEX_DATABASE.c.id
    )


_WITH_TABLE = indexes.join(tables, INDEX.table_id == TABLE.id).join(databases, TABLE.database_id == DATABASE.id)
IN_TABLE = sa.and_(
    DATABASE.catalog == sa.bindparam("catalog_key"), DATABASE.name == sa.bindparam("database_key"), TABLE.name == sa.bindparam("table_key")
)
ALL_OF = (
    sa.select(DATABASE.name, TABLE.name, INDEX.name, INDEX.body, *_INDEX_TABLE_NAME)
    .select_from(_with_index_table(_WITH_TABLE))
    .where(IN_TABLE)
    .order_by(INDEX.name)
)
FIND = ALL_OF.where(INDEX.name == sa.bindparam("name_key"))
TABLE_KEY = sa.select(TABLE.id).select_from(tables.join(databases, TABLE.database_id == DATABASE.id)).where(IN_TABLE).scalar_subquery()
ONE = (INDEX.table_id == TABLE_KEY, INDEX.name == sa.bindparam("name_key"))
LOCK = sa.select(INDEX.body).where(*ONE).with_for_update()
UPDATE = sa.update(indexes).where(*ONE).values(body=sa.bindparam("body"))
DELETE = sa.delete(indexes).where(*ONE)
INDEX_TABLES = sa.select(INDEX.index_table_id).where(INDEX.table_id == sa.bindparam("key"))
NAMES_OF_INDEX_TABLES = sa.select(*_INDEX_TABLE_NAME).select_from(_with_index_table(indexes)).where(INDEX.table_id == sa.bindparam("key"))
OWNER = sa.select(DATABASE.name, TABLE.name, INDEX.name).select_from(_WITH_TABLE).where(INDEX.index_table_id == sa.bindparam("key"))


def _body(index: Index) -> str:
    return orjson.dumps(
        {
            "class": index.indexHandlerClass,
            "create_time": index.createTime or 0,
            "last_access_time": index.lastAccessTime or 0,
            "parameters": index.parameters or {},
            "deferred_rebuild": bool(index.deferredRebuild),
            "columns": descriptors.encode_columns(index.sd.cols or []),
            "storage": descriptors.encode_storage(index.sd),
            "location": index.sd.location,
        }
    ).decode()


def _struct(database: Database, row: Row) -> Index:
    database_name, table, name, text, _, index_database, index_table = row
    body: dict[str, Any] = orjson.loads(text)
    columns, storage = body["columns"], body["storage"]
    sd = descriptors.storage(database, descriptors.hash_of(storage), storage).at(
        body["location"], descriptors.columns(database, descriptors.hash_of(columns), columns)
    )
    return Index(
        indexName=name,
        indexHandlerClass=body["class"],
        dbName=database_name,
        origTableName=table,
        createTime=body["create_time"],
        lastAccessTime=body["last_access_time"],
        indexTableName=index_table if index_database == database_name else f"{index_database}.{index_table}",
        sd=sd,
        parameters=body["parameters"],
        deferredRebuild=body["deferred_rebuild"],
    )


def find(session: Session, catalog: str, database_name: str, table: str, name: str) -> Index | None:
    """Return an index of a table, or None."""
    row = session.row(FIND, catalog_key=catalog, database_key=database_name, table_key=table, name_key=name)
    return None if row is None else _struct(session.database, row)


def all_of(session: Session, catalog: str, database_name: str, table: str) -> list[Index]:
    """Return a table's indexes, ascending by name."""
    rows = session.rows(ALL_OF, catalog_key=catalog, database_key=database_name, table_key=table)
    return [_struct(session.database, row) for row in rows]


def index_tables(session: Session, table_id: int) -> Later[list[tuple[str, str, str]]]:
    """Return catalog, database and name of the index tables of a table, with the next statement; hardly any table has one."""
    answer = session.enqueue(INDEX_TABLES, key=table_id)
    return lambda: [(row[0], row[1], row[2]) for row in session.rows(NAMES_OF_INDEX_TABLES, key=table_id)] if answer.rows else []


def owner(session: Session, index_table_id: int) -> str | None:
    """Return `database.table.name` of the index that an index table belongs to, or None."""
    row = session.row(OWNER, key=index_table_id)
    return None if row is None else ".".join(row)


def insert(session: Session, table_id: int, index_table_id: int, index: Index) -> None:
    """Add an index."""
    session.insert(indexes, table_id=table_id, name=index.indexName, index_table_id=index_table_id, body=_body(index))


def set_parameters(session: Session, catalog: str, database: str, table: str, name: str, parameters: dict[str, str]) -> bool:
    """Give an index other parameters; return whether it exists."""
    where = {"catalog_key": catalog, "database_key": database, "table_key": table, "name_key": name}
    row = session.row(LOCK, **where)
    if row is None:
        return False
    session.execute(UPDATE, body=orjson.dumps({**orjson.loads(row[0]), "parameters": parameters}).decode(), **where)
    return True


def delete(session: Session, catalog: str, database: str, table: str, name: str) -> bool:
    """Remove an index, whose table stays; return whether it existed."""
    return session.execute(DELETE, catalog_key=catalog, database_key=database, table_key=table, name_key=name) > 0
