"""Sources of materialized views, which the rows of their tables keep as JSON. One function per statement.

Hive names the tables of a view `database.name`: they are in the view's own catalog.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import orjson
import sqlalchemy as sa

from metastore.idl import CreationMetadata, SourceTable, Table
from metastore.store.core.clauses import constant
from metastore.store.core.database import Session
from metastore.store.schema.model import databases, tables

TABLE, DATABASE = tables.c, databases.c
_NAMED = sa.select(TABLE.id, DATABASE.catalog, DATABASE.name, TABLE.name, TABLE.creation_metadata).select_from(
    tables.join(databases, TABLE.database_id == DATABASE.id)
)
_IS_ONE = TABLE.id == sa.bindparam("key")
_IS_VIEW = TABLE.type == constant("MATERIALIZED_VIEW")
VIEWS = _NAMED.where(_IS_VIEW)
NAME_OF = _NAMED.with_only_columns(DATABASE.catalog, DATABASE.name, TABLE.name).where(_IS_ONE)
ANY = sa.select(TABLE.id).where(_IS_VIEW).limit(constant(1))
LOCK = sa.select(TABLE.creation_metadata).where(_IS_ONE).with_for_update()
LOCK_ALL = sa.select(TABLE.id, TABLE.creation_metadata).where(_IS_VIEW).order_by(TABLE.id).with_for_update()
WRITE = sa.update(tables).where(_IS_ONE).values(creation_metadata=sa.bindparam("creation_metadata"))


def decode(text: str) -> CreationMetadata:
    """Return the sources of a materialized view."""
    raw = orjson.loads(text)
    sources = raw.pop("sourceTables", None)
    metadata = CreationMetadata(**raw)
    if sources is not None:
        metadata.sourceTables = [
            SourceTable(Table(tableName=name, dbName=database, catName=catalog), *counts) for catalog, database, name, *counts in sources
        ]
    return metadata


def encode(metadata: CreationMetadata | None) -> str | None:
    """Return the sources of a materialized view as text; None for none.

    Each of the two lists of sources has all of them, as in Hive 4. Earlier clients send names alone.
    """
    if metadata is None:
        return None
    raw = {name: value for name, value in metadata.__dict__.items() if value is not None}
    sources: list[list[Any]]
    if metadata.sourceTables:
        sources = [
            [each.table.catName, each.table.dbName, each.table.tableName, each.insertedCount, each.updatedCount, each.deletedCount]
            for each in metadata.sourceTables
        ]
        raw["tablesUsed"] = [".".join(each[1:3] if each[0] in (None, metadata.catName) else each[:3]) for each in sources]
    else:
        sources = [[*_names(metadata.catName, text), 0, 0, 0] for text in metadata.tablesUsed or () if "." in text]
    raw["sourceTables"] = sources
    return orjson.dumps(raw).decode()


def _names(catalog: str, text: str) -> list[str]:
    """Return catalog, database and table of `database.name` or of `catalog.database.name` with a view's own catalog."""
    parts = text.lower().removeprefix(f"{catalog}.").split(".", 1) if text.count(".") > 1 else text.lower().split(".")
    return [catalog, *parts]


def set_sources(session: Session, key: int, metadata: CreationMetadata) -> None:
    """Change the sources of a materialized view."""
    session.execute(WRITE, key=key, creation_metadata=encode(metadata))


Names = tuple[str, str, str]
"""Catalog, database and name of a table."""


class _View(NamedTuple):
    id: int
    names: Names
    made_from: frozenset[Names]

    def __str__(self) -> str:
        return ".".join(self.names[1:])


def _views(session: Session) -> Iterator[_View]:
    for key, catalog, database, name, creation in session.rows(VIEWS):
        used = orjson.loads(creation).get("tablesUsed") or () if creation else ()
        yield _View(key, (catalog, database, name), frozenset(names for each in used for names in readings(catalog, each)))


def readings(catalog: str, text: str) -> set[Names]:
    """Return the possible meanings of `database.name` or `catalog.database.name`: names may hold dots themselves."""
    parts = text.lower().split(".")
    return {
        (".".join(parts[:own]) or catalog, ".".join(parts[own:end]), ".".join(parts[end:]))
        for own in (0, 1)
        for end in range(own + 1, len(parts))
    }


def made_from_table(session: Session, table: Names) -> list[str]:
    """Return `database.name` of the materialized views made from a table."""
    return [str(view) for view in _views(session) if table in view.made_from]


def made_from_database(session: Session, catalog: str, database: str) -> list[str]:
    """Return `database.name` of the materialized views of other databases that are made from tables of a database."""
    where = (catalog, database)
    return [str(view) for view in _views(session) if view.names[:2] != where and any(used[:2] == where for used in view.made_from)]


def rename_table(session: Session, old: Names, new: Names) -> None:
    """Rename a table in the sources of the materialized views that are made from it."""
    for view in [each for each in _views(session) if old in each.made_from]:
        row = session.row(LOCK, key=view.id)
        raw = orjson.loads(row[0]) if row is not None and row[0] else {}
        used = [".".join(new[1:]) if tuple(old) in readings(old[0], each) else each for each in raw.get("tablesUsed") or ()]
        sources = [
            [*(new if tuple(old) in readings(source[0], ".".join(source[1:3])) else source[:3]), *source[3:]]
            for source in raw.get("sourceTables") or ()
        ]
        _write(session, view.id, {**raw, "tablesUsed": used, **({"sourceTables": sources} if sources else {})})


def _write(session: Session, key: int, raw: Mapping[str, Any]) -> None:
    session.execute(WRITE, key=key, creation_metadata=orjson.dumps(raw).decode())


def has_views(session: Session) -> bool:
    """Return whether there are materialized views, in any database."""
    return session.exists(ANY)


def add_changed_rows(session: Session, key: int, counts: Sequence[int]) -> None:
    """Add a table's numbers of inserted, updated and deleted rows to the numbers noted in the materialized views made from it."""
    name = session.row(NAME_OF, key=key)
    if name is None:
        return
    for view, creation in session.rows(LOCK_ALL):
        raw = orjson.loads(creation) if creation else {}
        sources = [
            [*source[:3], *((known or 0) + more for known, more in zip(source[3:], counts, strict=True))]
            if tuple(source[:3]) == tuple(name)
            else source
            for source in raw.get("sourceTables") or ()
        ]
        if sources and sources != raw["sourceTables"]:
            _write(session, view, {**raw, "sourceTables": sources})
