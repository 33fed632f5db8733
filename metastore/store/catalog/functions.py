"""Rows of functions. One function per statement."""

from __future__ import annotations

from typing import Any

import orjson
import sqlalchemy as sa

from metastore.idl import Function, ResourceUri
from metastore.store.core.clauses import bound
from metastore.store.core.database import Session
from metastore.store.drivers.contract import Row
from metastore.store.schema.model import databases, functions

FUNCTION, DATABASE = functions.c, databases.c
FIELDS = (
    DATABASE.catalog,
    DATABASE.name,
    FUNCTION.name,
    FUNCTION.class_name,
    FUNCTION.owner_name,
    FUNCTION.owner_type,
    FUNCTION.create_time,
    FUNCTION.type,
    FUNCTION.resources,
)
JOINED = functions.join(databases, FUNCTION.database_id == DATABASE.id)
IN_CATALOG = DATABASE.catalog == sa.bindparam("catalog_key")
IN_DATABASE = sa.and_(IN_CATALOG, DATABASE.name == sa.bindparam("database_key"))
FIND = sa.select(*FIELDS).select_from(JOINED).where(IN_DATABASE, FUNCTION.name == sa.bindparam("name_key"))
ALL_OF = sa.select(*FIELDS).select_from(JOINED).where(IN_DATABASE).order_by(FUNCTION.name)
ALL = sa.select(*FIELDS).select_from(JOINED).where(IN_CATALOG).order_by(DATABASE.name, FUNCTION.name)
DATABASE_KEY = sa.select(DATABASE.id).where(IN_DATABASE).scalar_subquery()
LOCK = sa.select(FUNCTION.id).where(FUNCTION.database_id == DATABASE_KEY, FUNCTION.name == sa.bindparam("name_key")).with_for_update()
UPDATE = sa.update(functions).where(FUNCTION.id == sa.bindparam("key")).values(bound(FUNCTION.keys(), but={"id"}))
DELETE = sa.delete(functions).where(FUNCTION.id == sa.bindparam("key"))


def _struct(row: Row) -> Function:
    catalog, database, name, class_name, owner, owner_type, created, kind, resources = row
    return Function(
        functionName=name,
        dbName=database,
        className=class_name,
        ownerName=owner,
        ownerType=owner_type,
        createTime=created,
        functionType=kind,
        resourceUris=[ResourceUri(*resource) for resource in orjson.loads(resources)],
        catName=catalog,
    )


def _values(function: Function) -> dict[str, Any]:
    return {
        "name": function.functionName,
        "class_name": function.className,
        "owner_name": function.ownerName,
        "owner_type": function.ownerType,
        "create_time": function.createTime,
        "type": function.functionType,
        "resources": orjson.dumps([[uri.resourceType, uri.uri] for uri in function.resourceUris or ()]).decode(),
    }


def find(session: Session, catalog: str, database: str, name: str) -> Function | None:
    """Return a function, or None."""
    row = session.row(FIND, catalog_key=catalog, database_key=database, name_key=name)
    return None if row is None else _struct(row)


def lock(session: Session, catalog: str, database: str, name: str) -> int | None:
    """Lock a function's row until the transaction ends; return its key, or None."""
    return session.number(LOCK, catalog_key=catalog, database_key=database, name_key=name)


def all_of(session: Session, catalog: str, database: str) -> list[Function]:
    """Return a database's functions, ascending by name."""
    return [_struct(row) for row in session.rows(ALL_OF, catalog_key=catalog, database_key=database)]


def in_catalog(session: Session, catalog: str) -> list[Function]:
    """Return a catalog's functions, ascending by database and name."""
    return [_struct(row) for row in session.rows(ALL, catalog_key=catalog)]


def insert(session: Session, database_id: int, function: Function) -> int:
    """Add a function; return its key."""
    return session.insert_keyed(functions, database_id=database_id, **_values(function)).key


def update(session: Session, key: int, database_id: int, function: Function) -> None:
    """Change a function, also its name and database."""
    session.execute(UPDATE, key=key, database_id=database_id, **_values(function))


def delete(session: Session, key: int) -> None:
    """Remove a function."""
    session.execute(DELETE, key=key)
