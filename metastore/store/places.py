"""Tell which locations rows name, and keep others from naming new ones meanwhile. Never changes a row.

Only the recovery after a killed process asks; the statements read whole columns, since no location is indexed.
"""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from metastore.store import databases, tables
from metastore.store.clauses import Among
from metastore.store.database import Session
from metastore.store.schema import catalogs as catalog_rows
from metastore.store.schema import databases as database_rows
from metastore.store.schema import partitions as partition_rows
from metastore.store.schema import tables as table_rows

LOCK_CATALOG = sa.select(catalog_rows.c.name).where(catalog_rows.c.name == sa.bindparam("key")).with_for_update()
CATALOGS = sa.select(catalog_rows.c.location)
DATABASES = sa.select(database_rows.c.location, database_rows.c.managed_location)
TABLES = sa.select(table_rows.c.id, table_rows.c.location).where(table_rows.c.location.is_not(None))
RELATIVE = sa.select(partition_rows.c.location).where(
    partition_rows.c.table_id == sa.bindparam("table_id"), Among(partition_rows.c.location, "relative")
)
ABSOLUTE = sa.select(partition_rows.c.location).where(partition_rows.c.location.like(sa.bindparam("pattern"), escape="!"))


def claim(session: Session, subject: Sequence[str | list[str]]) -> None:
    """Wait for whoever is making the object and keep others from it until the transaction ends, by locking the row above it.

    `subject` is a journal entry's. Nothing lies above a catalog.
    """
    kind, *name = subject or ("",)
    outer = [each for each in name if isinstance(each, str)]
    if kind == "database":
        session.row(LOCK_CATALOG, key=outer[0])
    elif kind == "table":
        databases.lock(session, *outer[:2])
    elif kind == "partitions":
        tables.lock(session, *outer[:3])


def of_objects(session: Session) -> list[tuple[int | None, str]]:
    """Return the locations of all catalogs, databases and tables; with a table's its key."""
    found: list[tuple[int | None, str]] = [(None, place) for row in session.rows(CATALOGS) for place in row if place]
    found += [(None, place) for row in session.rows(DATABASES) for place in row if place]
    return found + [(key, place) for key, place in session.rows(TABLES)]


def of_partitions_inside(session: Session, table_id: int, relative: Sequence[str]) -> list[str]:
    """Return those of the paths below a table's location, such as `dt=1/hr=2`, at which it has a partition."""
    return [place[2:] for (place,) in session.rows(RELATIVE, table_id=table_id, relative=[f"./{path}" for path in relative])]


def of_partitions_outside(session: Session, part: str) -> list[str]:
    """Return the locations that hold `part`, of partitions that do not lie below their table's."""
    escaped = part.replace("!", "!!").replace("%", "!%").replace("_", "!_")
    return [place for (place,) in session.rows(ABSOLUTE, pattern=f"%{escaped}%")]
