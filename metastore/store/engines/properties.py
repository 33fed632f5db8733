"""Rows of properties: maps of names to values. One function per statement."""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa

from metastore.store.core.clauses import constant
from metastore.store.core.database import Session
from metastore.store.schema.engines import properties

PROPERTY = properties.c
WITH_PREFIX = (
    sa.select(PROPERTY.map, PROPERTY.name, PROPERTY.value)
    .where(
        PROPERTY.map >= sa.bindparam("prefix"),
        sa.func.substr(PROPERTY.map, constant(1), sa.cast(sa.bindparam("length"), sa.Integer)) == sa.bindparam("prefix"),
    )
    .order_by(PROPERTY.map, PROPERTY.name)
)


def with_prefix(session: Session, prefix: str) -> dict[str, dict[str, str]]:
    """Return the maps whose keys begin with a text, ascending, with their names in order."""
    found: dict[str, dict[str, str]] = {}
    for key, name, value in session.rows(WITH_PREFIX, prefix=prefix, length=len(prefix)):
        found.setdefault(key, {})[name] = value
    return found


def put(session: Session, maps: Mapping[tuple[str, str], str]) -> None:
    """Set values by map and name."""
    session.enqueue_upsert(properties, ("map", "name", "value"), [(*key, value) for key, value in sorted(maps.items())])
