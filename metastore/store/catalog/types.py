"""Rows of types, which no table refers to. One function per statement."""

from __future__ import annotations

import orjson
import sqlalchemy as sa

from metastore.idl import FieldSchema, Type
from metastore.store.core.database import Session
from metastore.store.schema.model import types

FIND = sa.select(types.c.body).where(types.c.name == sa.bindparam("name_key"))
DELETE = sa.delete(types).where(types.c.name == sa.bindparam("name_key"))


def find(session: Session, name: str) -> Type | None:
    """Return a type, or None."""
    row = session.row(FIND, name_key=name)
    if row is None:
        return None
    first, second, fields = orjson.loads(row[0])
    return Type(name=name, type1=first, type2=second, fields=[FieldSchema(*field) for field in fields])


def insert(session: Session, type_: Type) -> None:
    """Add a type."""
    fields = [[field.name, field.type, field.comment] for field in type_.fields or ()]
    session.insert(types, name=type_.name, body=orjson.dumps([type_.type1, type_.type2, fields]).decode())


def delete(session: Session, name: str) -> None:
    """Remove a type if it exists."""
    session.execute(DELETE, name_key=name)
