"""Rows of databases. One function per statement."""

from __future__ import annotations

from typing import Any

import orjson
import sqlalchemy as sa

from metastore.idl import Database as DatabaseStruct
from metastore.places import indexed
from metastore.store.core import authorization_changes
from metastore.store.core.clauses import bound
from metastore.store.core.database import Session
from metastore.store.drivers.contract import Row
from metastore.store.schema.engines import packages, procedures
from metastore.store.schema.model import databases, functions, privileges, tables
from metastore.store.schema.registry import registry_schemas

DATABASE = databases.c
FIELDS = {
    "catalogName": DATABASE.catalog,
    "name": DATABASE.name,
    "description": DATABASE.description,
    "locationUri": DATABASE.location,
    "managedLocationUri": DATABASE.managed_location,
    "parameters": DATABASE.parameters,
    "ownerName": DATABASE.owner_name,
    "ownerType": DATABASE.owner_type,
    "createTime": DATABASE.create_time,
    "type": DATABASE.type,
    "connector_name": DATABASE.connector_name,
    "remote_dbname": DATABASE.remote_name,
}
"""Columns by the field of the struct that they hold."""
HERE = sa.and_(DATABASE.catalog == sa.bindparam("catalog_key"), DATABASE.name == sa.bindparam("name_key"))
FIND = sa.select(*FIELDS.values()).where(HERE)
LOCK = sa.select(DATABASE.id).where(HERE).with_for_update()
SHARE = sa.select(DATABASE.id).where(HERE).with_for_update(read=True)
NAMES = sa.select(DATABASE.name).where(DATABASE.catalog == sa.bindparam("catalog_key")).order_by(DATABASE.name)
ALL = sa.select(*FIELDS.values()).where(DATABASE.catalog == sa.bindparam("catalog_key")).order_by(DATABASE.name)
UPDATE = sa.update(databases).where(HERE).values(bound(DATABASE.keys(), but={"id", "catalog", "name", "create_time"}))
DELETE = sa.delete(databases).where(DATABASE.id == sa.bindparam("key"))
DELETE_PRIVILEGES = sa.delete(privileges).where(privileges.c.database_id == sa.bindparam("key"))
CONTENTS = {"tables": tables, "functions": functions, "schemas": registry_schemas, "stored procedures": procedures, "packages": packages}
"""The tables of things that a database may hold."""
IN_USE = sa.select(*(sa.exists(sa.select(each.c.id).where(each.c.database_id == sa.bindparam("key"))) for each in CONTENTS.values()))


def _struct(row: Row) -> DatabaseStruct:
    fields = dict(zip(FIELDS, row, strict=True))
    return DatabaseStruct(**{**fields, "parameters": orjson.loads(fields["parameters"])})


def _values(database: DatabaseStruct) -> dict[str, Any]:
    return {
        **{column.name: getattr(database, field) for field, column in FIELDS.items()},
        "parameters": orjson.dumps(database.parameters or {}).decode(),
        "create_time": database.createTime or 0,
        "type": database.type or 1,
        "place": indexed(database.locationUri),
        "managed_place": indexed(database.managedLocationUri),
    }


def find(session: Session, catalog: str, name: str) -> DatabaseStruct | None:
    """Return a database, or None."""
    row = session.row(FIND, catalog_key=catalog, name_key=name)
    return None if row is None else _struct(row)


def lock(session: Session, catalog: str, name: str) -> int | None:
    """Lock a database's row against every change of it or in it; return its key, or None."""
    return session.number(LOCK, catalog_key=catalog, name_key=name)


def share(session: Session, catalog: str, name: str) -> int | None:
    """Lock a database's row against its removal; return its key, or None."""
    return session.number(SHARE, catalog_key=catalog, name_key=name)


def names(session: Session, catalog: str) -> list[str]:
    """Return the names of a catalog's databases, ascending."""
    return session.column(NAMES, catalog_key=catalog)


def all_of(session: Session, catalog: str) -> list[DatabaseStruct]:
    """Return a catalog's databases, ascending by name."""
    return [_struct(row) for row in session.rows(ALL, catalog_key=catalog)]


def insert(session: Session, database: DatabaseStruct) -> int:
    """Add a database; return its key."""
    authorization_changes.note(session)
    return session.insert_keyed(databases, **_values(database)).key


def update(session: Session, catalog: str, name: str, database: DatabaseStruct) -> None:
    """Change everything but the name."""
    authorization_changes.note(session)
    session.execute(UPDATE, catalog_key=catalog, name_key=name, **_values(database))


def contents(session: Session, key: int) -> list[str]:
    """Return the kinds of `CONTENTS` of which a database has objects, in the order of `CONTENTS`."""
    row = session.row(IN_USE, key=key)
    assert row is not None
    return [kind for kind, is_there in zip(CONTENTS, row, strict=True) if is_there]


def delete(session: Session, key: int) -> None:
    """Remove an empty database with the privileges on it: a later one may get its key."""
    authorization_changes.note(session)
    session.execute(DELETE_PRIVILEGES, key=key)
    session.execute(DELETE, key=key)
