"""Find the objects in directories, by the indexed texts of their places, and lock out others while an object is made. Never changes a row.

A row has its place as of `places.place_of`, cut to the length of an index: a look-up may return false positives, never false negatives.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from metastore.store.catalog import databases
from metastore.store.catalog.tables import tables
from metastore.store.core.clauses import Among, constant
from metastore.store.core.database import Session
from metastore.store.schema.model import catalogs as catalog_rows
from metastore.store.schema.model import databases as database_rows
from metastore.store.schema.model import partitions as partition_rows
from metastore.store.schema.model import tables as table_rows

LOCK_CATALOG = sa.select(catalog_rows.c.name).where(catalog_rows.c.name == sa.bindparam("key")).with_for_update()
CATALOG, DATABASE, TABLE, PARTITION = catalog_rows.c, database_rows.c, table_rows.c, partition_rows.c
NOTHING, NO_KEY = sa.cast(sa.null(), sa.Text()), sa.cast(sa.null(), sa.BigInteger())
_TABLES = table_rows.join(database_rows, TABLE.database_id == DATABASE.id)


def _within(column: sa.Column[str]) -> sa.ColumnElement[bool]:
    return sa.and_(column >= sa.bindparam("low"), column < sa.bindparam("high"))


def _found(kind: str, source: sa.FromClause, *columns: sa.ColumnElement[Any]) -> sa.Select[Any]:
    return sa.select(constant(kind), *columns).select_from(source)


FOUND = sa.union_all(
    _found("table", _TABLES, DATABASE.catalog, DATABASE.name, TABLE.name, NOTHING, TABLE.location, NOTHING, TABLE.id).where(
        _within(TABLE.place)
    ),
    _found("above", _TABLES, DATABASE.catalog, DATABASE.name, TABLE.name, NOTHING, TABLE.location, NOTHING, TABLE.id).where(
        Among(TABLE.place, "above")
    ),
    _found(
        "partition",
        partition_rows.join(_TABLES, PARTITION.table_id == TABLE.id),
        DATABASE.catalog,
        DATABASE.name,
        TABLE.name,
        PARTITION.name,
        PARTITION.location,
        TABLE.location,
        TABLE.id,
    ).where(_within(PARTITION.place)),
    _found("database", database_rows, DATABASE.catalog, DATABASE.name, NOTHING, NOTHING, DATABASE.location, NOTHING, NO_KEY).where(
        _within(DATABASE.place)
    ),
    _found("database", database_rows, DATABASE.catalog, DATABASE.name, NOTHING, NOTHING, DATABASE.managed_location, NOTHING, NO_KEY).where(
        _within(DATABASE.managed_place)
    ),
    _found("catalog", catalog_rows, CATALOG.name, NOTHING, NOTHING, NOTHING, CATALOG.location, NOTHING, NO_KEY),
)
DEFAULT = sa.select(PARTITION.name).where(
    PARTITION.table_id == sa.bindparam("table_id"),
    PARTITION.place.is_(None),
    PARTITION.name >= sa.bindparam("low"),
    PARTITION.name < sa.bindparam("high"),
)


class PlaceRow(NamedTuple):
    """The object at a location: a catalog, a database, a table, a table `above` the asked location, or a partition."""

    kind: str
    catalog: str
    database: str | None
    table: str | None
    partition: str | None
    location: str | None
    """A location that begins with `./` is below `base`."""
    base: str | None
    table_id: int | None


def claim(session: Session, subject: Sequence[str | list[str]]) -> None:
    """Wait for a transaction that is making the object and keep others from it until this one ends, by locking the row above it.

    `subject` is the subject of a journal entry. A catalog has no row above it.
    """
    kind, *name = subject or ("",)
    outer = [each for each in name if isinstance(each, str)]
    if kind == "database":
        session.row(LOCK_CATALOG, key=outer[0])
    elif kind == "table":
        databases.lock(session, *outer[:2])
    elif kind == "partitions":
        tables.lock(session, *outer[:3])


def found(session: Session, low: str, high: str, above: Sequence[str]) -> list[PlaceRow]:
    """Return the objects with a place from `low` up to below `high`, tables with one of the places `above`, and all catalogs.

    Partitions in the directory of their own name, at their table's place, are left out: see `by_default`.
    """
    return [PlaceRow(*row) for row in session.rows(FOUND, low=session.lowest(low), high=high, above=list(above))]


def by_default(session: Session, table_id: int, low: str, high: str) -> list[str]:
    """Return the names, from `low` up to below `high`, of a table's partitions in the directory of their own name at its place."""
    return session.column(DEFAULT, table_id=table_id, low=session.lowest(low), high=high)
