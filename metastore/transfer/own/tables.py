"""Tables of our own databases as records, each with its column lists, storage formats, partitions and statistics. Never changes a row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import orjson
import sqlalchemy as sa

from metastore.store.catalog.partitions.partition_structs import FIELDS
from metastore.store.catalog.partitions.partitions import AFTER, OF_TABLE
from metastore.store.catalog.statistics import READ_KEYED, READ_TABLE_ENGINES
from metastore.store.core.clauses import Among
from metastore.store.core.database import Session
from metastore.store.drivers.contract import Row
from metastore.store.schema.model import databases, descriptors, tables
from metastore.transfer.records import Record, content_hash
from metastore.transfer.selection import Selection

TABLES_OF_PAGE = 500
TABLE = tables.c
DATABASES = sa.select(databases.c.id, databases.c.catalog, databases.c.name).order_by(databases.c.catalog, databases.c.name)
NAMES = ("id", "name", "columns_hash", "storage_hash")
"""Columns of a table that come first; the body has neither of them."""
TEXTS = ("partition_keys", "parameters", "creation_metadata")
"""Columns with JSON."""
PLAIN = tuple(str(name) for name in TABLE.keys() if name not in (*NAMES, *TEXTS, "database_id", "comment", "place"))  # noqa: SIM118  # no dict
FIRST = (
    sa.select(*(TABLE[name] for name in (*NAMES, *TEXTS, *PLAIN)))
    .where(TABLE.database_id == sa.bindparam("key"))
    .order_by(TABLE.name)
    .limit(TABLES_OF_PAGE)
)
NEXT = FIRST.where(TABLE.name > sa.bindparam("after"))
BODIES = sa.select(descriptors.c.hash, descriptors.c.body).where(
    descriptors.c.table_id == sa.bindparam("table_id"), Among(descriptors.c.hash, "hashes")
)
FIRST_PARTITIONS = sa.select(*FIELDS).where(OF_TABLE).order_by(FIELDS[1]).limit(sa.bindparam("limit"))


def canonical(content: Any) -> Any:
    """Return a column list or storage format as records have it."""
    if isinstance(content, dict):
        content["skew"][2].sort(key=orjson.dumps)
    return content


class _Descriptors:
    """The column lists and storage formats of one table, by the hashes of its rows: each is yielded once as a record."""

    def __init__(self, session: Session, table_id: int, names: tuple[str, str, str]) -> None:
        self._session, self._table, self._names = session, table_id, names
        self.contents: dict[int, Any] = {}
        self.hashes: dict[int | None, str | None] = {None: None}
        self._known: set[str] = set()

    def load(self, hashes: set[int | None]) -> None:
        """Read the descriptors of hashes that are not known yet."""
        missing = [each for each in hashes.difference(self.hashes) if each is not None]
        for hash_, body in self._session.rows(BODIES, table_id=self._table, hashes=missing) if missing else ():
            self.contents[hash_] = canonical(orjson.loads(body))
            self.hashes[hash_] = content_hash(self.contents[hash_])

    def records(self, hashes: set[int | None]) -> Iterator[Record]:
        """Yield the records of the descriptors that were not yielded before."""
        self.load(hashes)
        for hash_ in hashes:
            name = self.hashes[hash_]
            if name is not None and hash_ is not None and name not in self._known:
                self._known.add(name)
                yield Record("descriptor", (*self._names, name), {"content": self.contents[hash_]})


def records(session: Session, selection: Selection, page: int) -> Iterator[Record]:
    """Yield the records of all wanted tables, ascending by catalog, database and name, each with its dependent records."""
    for key, catalog, database in session.rows(DATABASES):
        if not selection.wants_database(catalog, database):
            continue
        rows = session.rows(FIRST, key=key)
        while rows:
            for row in rows:
                names = (catalog, database, row[1])
                if selection.wants_table(*names) and names not in selection.done:
                    yield from _table(session, selection, names, row, page)
            rows = session.rows(NEXT, key=key, after=rows[-1][1]) if len(rows) == TABLES_OF_PAGE else ()


def _table(session: Session, selection: Selection, names: tuple[str, str, str], row: Row, page: int) -> Iterator[Record]:
    table_id, _, columns, storage = row[: len(NAMES)]
    described = _Descriptors(session, table_id, names)
    described.load({columns, storage})
    body: dict[str, Any] = dict(zip(PLAIN, row[len(NAMES) + len(TEXTS) :], strict=True))
    for name, text in zip(TEXTS, row[len(NAMES) :], strict=False):
        body[name] = None if text is None else orjson.loads(text)
    body["columns"], body["storage"] = described.contents.get(columns), described.contents.get(storage)
    body["statistics"] = {engine: orjson.loads(text) for _, engine, text in session.rows(READ_TABLE_ENGINES, key=table_id)}
    if selection.wants("table"):
        yield Record("table", names, body)
    if selection.wants("partition") and body["partition_keys"]:
        yield from _partitions(session, table_id, names, body["location"] or "", described, page)


def _partitions(
    session: Session, table_id: int, names: tuple[str, str, str], base: str, described: _Descriptors, page: int
) -> Iterator[Record]:
    rows = session.rows(FIRST_PARTITIONS, table_id=table_id, limit=page)
    while rows:
        yield from described.records({row[4] for row in rows} | {row[5] for row in rows})
        yield from _page(session, names, base, described, rows)
        rows = session.rows(AFTER, table_id=table_id, after=rows[-1][1], limit=page) if len(rows) == page else ()


def _page(session: Session, names: tuple[str, str, str], base: str, described: _Descriptors, rows: Sequence[Row]) -> Iterator[Record]:
    statistics: dict[int, dict[str, Any]] = {}
    for key, engine, text, _ in session.rows(READ_KEYED, keys=[row[0] for row in rows]):
        statistics.setdefault(key, {})[engine] = orjson.loads(text)
    loads, hashes = orjson.loads, described.hashes
    for key, name, values, location, columns, storage, parameters, created, accessed, write_id in rows:
        body = {
            "values": loads(values),
            "location": base + location[1:] if location is not None and location[:2] == "./" else location,
            "columns": hashes[columns],
            "storage": hashes[storage],
            "parameters": loads(parameters),
            "create_time": created,
            "last_access_time": accessed,
            "write_id": write_id,
            "statistics": statistics.get(key, {}),
        }
        yield Record("partition", (*names, name), body)
