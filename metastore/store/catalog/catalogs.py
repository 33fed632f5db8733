"""Rows of catalogs, and the server's own facts. One function per statement."""

from __future__ import annotations

import uuid

import sqlalchemy as sa

from metastore.idl import Catalog
from metastore.store.core.database import Session
from metastore.store.schema.model import catalogs, server_info

FIND = sa.select(catalogs.c.name, catalogs.c.description, catalogs.c.location, catalogs.c.create_time).where(
    catalogs.c.name == sa.bindparam("key")
)
NAMES = sa.select(catalogs.c.name).order_by(catalogs.c.name)
UPDATE = (
    sa.update(catalogs)
    .where(catalogs.c.name == sa.bindparam("key"))
    .values(description=sa.bindparam("description"), location=sa.bindparam("location"))
)
DELETE = sa.delete(catalogs).where(catalogs.c.name == sa.bindparam("key"))
INFO = sa.select(server_info.c.value).where(server_info.c.name == sa.bindparam("key"))


def find(session: Session, name: str) -> Catalog | None:
    """Return a catalog, or None."""
    row = session.row(FIND, key=name)
    return None if row is None else Catalog(name=row[0], description=row[1], locationUri=row[2], createTime=row[3])


def names(session: Session) -> list[str]:
    """Return the names of all catalogs, ascending."""
    return session.column(NAMES)


def insert(session: Session, catalog: Catalog) -> None:
    """Add a catalog."""
    session.insert(
        catalogs, name=catalog.name, description=catalog.description, location=catalog.locationUri, create_time=catalog.createTime or 0
    )


def update(session: Session, name: str, catalog: Catalog) -> None:
    """Change description and location."""
    session.execute(UPDATE, key=name, description=catalog.description, location=catalog.locationUri)


def delete(session: Session, name: str) -> None:
    """Remove a catalog."""
    session.execute(DELETE, key=name)


def server_uuid(session: Session) -> str:
    """Return the database's own UUID; made on the first call."""
    row = session.row(INFO, key="uuid")
    if row is None:
        session.insert_missing(server_info, [{"name": "uuid", "value": str(uuid.uuid4())}])
        row = session.row(INFO, key="uuid")
        assert row is not None
    return str(row[0])
