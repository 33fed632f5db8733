"""Rows of data connectors, and the databases that name one. One function per statement."""

from __future__ import annotations

from typing import Any

import orjson
import sqlalchemy as sa

from metastore.idl import DataConnector
from metastore.store.core.clauses import bound
from metastore.store.core.database import Session
from metastore.store.schema.engines import data_connectors
from metastore.store.schema.model import databases

CONNECTOR = data_connectors.c
HERE = CONNECTOR.name == sa.bindparam("key")
FIND = sa.select(data_connectors).where(HERE)
FIND_LOCKED = FIND.with_for_update()
NAMES = sa.select(CONNECTOR.name).order_by(CONNECTOR.name)
UPDATE = sa.update(data_connectors).where(HERE).values(bound(CONNECTOR.keys(), but={"name", "type", "create_time"}))
DELETE = sa.delete(data_connectors).where(HERE)
USERS = (
    sa.select(databases.c.name)
    .where(sa.func.lower(databases.c.connector_name) == sa.bindparam("key"))
    .order_by(databases.c.name)
    .limit(sa.bindparam("most"))
)


def find(session: Session, name: str, *, locked: bool = False) -> DataConnector | None:
    """Return a connector, or None; on demand its row stays locked until the transaction ends."""
    row = session.row(FIND_LOCKED if locked else FIND, key=name)
    if row is None:
        return None
    name, kind, url, description, parameters, owner, owner_type, created = row
    return DataConnector(
        name=name, type=kind, url=url, description=description, parameters=orjson.loads(parameters), ownerName=owner,
        ownerType=owner_type, createTime=created,
    )  # fmt: skip


def names(session: Session) -> list[str]:
    """Return the names of all connectors, ascending."""
    return session.column(NAMES)


def _values(connector: DataConnector) -> dict[str, Any]:
    return {
        "url": connector.url,
        "description": connector.description,
        "parameters": orjson.dumps(connector.parameters or {}).decode(),
        "owner_name": connector.ownerName,
        "owner_type": connector.ownerType,
    }


def insert(session: Session, connector: DataConnector) -> None:
    """Add a connector."""
    fixed = {"name": connector.name, "type": connector.type, "create_time": connector.createTime}
    session.insert(data_connectors, **fixed, **_values(connector))


def update(session: Session, connector: DataConnector) -> None:
    """Change everything but name, type and time."""
    session.execute(UPDATE, key=connector.name, **_values(connector))


def delete(session: Session, name: str) -> None:
    """Remove a connector."""
    session.execute(DELETE, key=name)


def databases_with(session: Session, name: str, most: int) -> list[str]:
    """Return the names of some databases, of all catalogs, that name a connector."""
    return session.column(USERS, key=name, most=most)
