"""Rows of databases. One function per statement."""

from __future__ import annotations

from typing import Any

import orjson
import sqlalchemy as sa

from metastore.idl import Database as DatabaseStruct
from metastore.places import indexed
from metastore.store import authorization_changes
from metastore.store.database import Session
from metastore.store.schema import databases, functions, privileges, tables

C = databases.c
FIELDS = (
    C.id,
    C.catalog,
    C.name,
    C.description,
    C.location,
    C.managed_location,
    C.parameters,
    C.owner_name,
    C.owner_type,
    C.create_time,
    C.type,
    C.connector_name,
    C.remote_name,
)
HERE = sa.and_(C.catalog == sa.bindparam("catalog_key"), C.name == sa.bindparam("name_key"))
FIND = sa.select(*FIELDS).where(HERE)
LOCK = sa.select(C.id).where(HERE).with_for_update()
SHARE = sa.select(C.id).where(HERE).with_for_update(read=True)
NAMES = sa.select(C.name).where(C.catalog == sa.bindparam("catalog_key")).order_by(C.name)
ALL = sa.select(*FIELDS).where(C.catalog == sa.bindparam("catalog_key")).order_by(C.name)
INSERT = sa.insert(databases).values(
    {
        name: sa.bindparam(name)
        for name in (
            "catalog",
            "name",
            "description",
            "location",
            "managed_location",
            "parameters",
            "owner_name",
            "owner_type",
            "create_time",
            "type",
            "connector_name",
            "remote_name",
            "place",
            "managed_place",
        )
    }
)
UPDATE = (
    sa.update(databases)
    .where(HERE)
    .values(
        {
            name: sa.bindparam(name)
            for name in (
                "description",
                "location",
                "managed_location",
                "parameters",
                "owner_name",
                "owner_type",
                "type",
                "connector_name",
                "remote_name",
                "place",
                "managed_place",
            )
        }
    )
)
DELETE = sa.delete(databases).where(C.id == sa.bindparam("key"))
DELETE_PRIVILEGES = sa.delete(privileges).where(privileges.c.database_id == sa.bindparam("key"))
IN_USE = sa.select(
    sa.exists(sa.select(tables.c.id).where(tables.c.database_id == sa.bindparam("key"))),
    sa.exists(sa.select(functions.c.id).where(functions.c.database_id == sa.bindparam("key"))),
)


def _struct(row: tuple[Any, ...]) -> DatabaseStruct:
    return DatabaseStruct(
        catalogName=row[1],
        name=row[2],
        description=row[3],
        locationUri=row[4],
        managedLocationUri=row[5],
        parameters=orjson.loads(row[6]),
        ownerName=row[7],
        ownerType=row[8],
        createTime=row[9],
        type=row[10],
        connector_name=row[11],
        remote_dbname=row[12],
    )


def _values(database: DatabaseStruct) -> dict[str, Any]:
    return {
        "description": database.description,
        "location": database.locationUri,
        "managed_location": database.managedLocationUri,
        "parameters": orjson.dumps(database.parameters or {}).decode(),
        "owner_name": database.ownerName,
        "owner_type": database.ownerType,
        "type": database.type or 1,
        "connector_name": database.connector_name,
        "remote_name": database.remote_dbname,
        "place": indexed(database.locationUri),
        "managed_place": indexed(database.managedLocationUri),
    }


def find(session: Session, catalog: str, name: str) -> DatabaseStruct | None:
    """Return a database, or None."""
    row = session.row(FIND, catalog_key=catalog, name_key=name)
    return None if row is None else _struct(row)


def lock(session: Session, catalog: str, name: str) -> int | None:
    """Lock a database's row against every change of it or in it; return its key, or None."""
    row = session.row(LOCK, catalog_key=catalog, name_key=name)
    return None if row is None else int(row[0])


def share(session: Session, catalog: str, name: str) -> int | None:
    """Lock a database's row against its removal; return its key, or None."""
    row = session.row(SHARE, catalog_key=catalog, name_key=name)
    return None if row is None else int(row[0])


def names(session: Session, catalog: str) -> list[str]:
    """Return the names of a catalog's databases, ascending."""
    return [name for (name,) in session.rows(NAMES, catalog_key=catalog)]


def all_of(session: Session, catalog: str) -> list[DatabaseStruct]:
    """Return a catalog's databases, ascending by name."""
    return [_struct(row) for row in session.rows(ALL, catalog_key=catalog)]


def insert(session: Session, database: DatabaseStruct) -> int:
    """Add a database; return its key."""
    authorization_changes.note(session)
    return session.insert(
        INSERT, catalog=database.catalogName, name=database.name, create_time=database.createTime or 0, **_values(database)
    )


def update(session: Session, catalog: str, name: str, database: DatabaseStruct) -> None:
    """Change everything but the name."""
    authorization_changes.note(session)
    session.execute(UPDATE, catalog_key=catalog, name_key=name, **_values(database))


def has_tables_or_functions(session: Session, key: int) -> tuple[bool, bool]:
    """Tell whether tables, and whether functions, are in a database."""
    row = session.row(IN_USE, key=key)
    assert row is not None
    return bool(row[0]), bool(row[1])


def delete(session: Session, key: int) -> None:
    """Remove an empty database with the privileges on it: a later one may get its key."""
    authorization_changes.note(session)
    session.execute(DELETE_PRIVILEGES, key=key)
    session.execute(DELETE, key=key)
