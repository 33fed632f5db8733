"""Read the records of one of our own databases in one snapshot, a page of rows at a time. Never changes a row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import orjson
import sqlalchemy as sa

from metastore.store.core.clauses import Among
from metastore.store.core.counters import TRANSACTION
from metastore.store.core.database import Database, Session
from metastore.store.drivers.contract import Row
from metastore.store.operations.notifications import COUNTER as NOTIFICATION
from metastore.store.schema.model import counters, databases, notifications, partitions, write_id_ranges
from metastore.store.schema.model import tables as table_rows
from metastore.store.schema.registry import registry_columns
from metastore.transfer.contract import Changes
from metastore.transfer.own import tables
from metastore.transfer.own.stored import BY_KIND, Stored
from metastore.transfer.records import KINDS, OF_TABLES, Key, Record
from metastore.transfer.selection import Selection

PAGE = 5000
"""Rows of one query."""
COUNTERS = {"transaction": TRANSACTION, "notification": NOTIFICATION}
"""The rows of counters by the names of positions."""
VALUES = sa.select(counters.c.name, counters.c.value)
PENDING = sa.select(sa.func.coalesce(sa.func.sum(notifications.c.events), 0)).where(notifications.c.id.is_(None))
COUNT_PARTITIONS = sa.select(sa.func.count()).select_from(partitions)
COLUMNS = (
    sa.select(registry_columns.c.version_id, registry_columns.c.name, registry_columns.c.type, registry_columns.c.comment)
    .where(Among(registry_columns.c.version_id, "keys"))
    .order_by(registry_columns.c.version_id, registry_columns.c.position)
)
TABLES = sa.select(databases.c.catalog, databases.c.name, table_rows.c.name).select_from(
    table_rows.join(databases, table_rows.c.database_id == databases.c.id)
)
RANGES = sa.select(*write_id_ranges.c).order_by(*write_id_ranges.primary_key.columns)


class OwnReader:
    """A database of this project as a source of records."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.name = database.url.render_as_string()
        self.skipped: list[str] = []
        self.kinds = frozenset(KINDS)
        self.seen: Callable[[Record], Record] | None = None

    def close(self) -> None:
        """Close the connections."""
        self.database.close()

    def partitions(self) -> int:
        """Count the partitions, to show the progress of a move."""
        return self.database.read(lambda session: session.number(COUNT_PARTITIONS)) or 0

    def tables(self, selection: Selection) -> set[Key]:
        """Return the names of the tables."""
        found = self.database.read(lambda session: session.rows(TABLES))
        return {names for names in map(tuple, found) if selection.wants_key("table", names)}

    def changes(self, after: int) -> Changes | None:  # noqa: ARG002  # others have a log
        """Return None: the log of this database is not read."""
        return None

    def records(self, selection: Selection) -> Iterator[Record]:
        """Yield the records that are wanted, in the order of their kinds. MetaError when the database refuses."""
        with self.database.reading() as session:
            for kind in KINDS:
                if kind == "table":
                    yield from tables.records(session, selection, PAGE)
                elif kind not in OF_TABLES and selection.wants(kind):
                    found = _positions(session) if kind == "position" else _of_kind(session, BY_KIND[kind])
                    yield from (record for record in found if selection.wants_key(kind, record.key))


def positions(session: Session) -> dict[str, int]:
    """Return the last number of each position."""
    values = {name: value for name, value in session.rows(VALUES)}  # noqa: C416  # their types
    pending = {"notification": session.number(PENDING) or 0}
    return {name: values.get(counter, 0) + pending.get(name, 0) for name, counter in COUNTERS.items()}


def _positions(session: Session) -> Iterator[Record]:
    for name, last in positions(session).items():
        yield Record("position", (name,), {"last": last})


def _of_kind(session: Session, stored: Stored) -> Iterator[Record]:
    for rows in pages(session, stored):
        columns = _columns_of_versions(session, rows) if stored.kind == "schema_version" else {}
        for row in rows:
            record = _record(stored, row)
            if columns or stored.kind == "schema_version":
                record.body["columns"] = columns.get(row[-1], [])
            yield record
    if stored.kind == "write_id":
        yield from _ranged(session)


def _record(stored: Stored, row: Row) -> Record:
    parts = len(KINDS[stored.kind])
    body: dict[str, Any] = dict(zip(stored.fields, row[parts:], strict=False))
    for name in stored.json:
        if body[name] is not None:
            body[name] = orjson.loads(body[name])
    if stored.refers:
        names = row[parts + len(stored.fields) :][:3]
        body[stored.refers.removesuffix("_id")] = list(names) if names[2] is not None else None
    return Record(stored.kind, tuple(row[:parts]), body)


@cache
def _statements(stored: Stored) -> tuple[sa.Select[Any], sa.Select[Any]]:
    """Return the query of the first page, and of the pages after the row whose keys are bound as `after0` and so on."""
    query, paging = stored.select()
    first = query.order_by(*paging).limit(PAGE)
    after = [sa.bindparam(f"after{number}", type_=column.type) for number, column in enumerate(paging)]
    conditions = [paging[0] > after[0]] if len(paging) == 1 else [paging[0] >= after[0], sa.tuple_(*paging) > sa.tuple_(*after)]
    return first, first.where(*conditions)


def pages(session: Session, stored: Stored) -> Iterator[Sequence[Row]]:
    """Yield the rows of a kind, a page at a time: the parts of the key, the fields of the body, and last the primary key."""
    first, next_ = _statements(stored)
    width = len(stored.table.primary_key.columns)
    rows = session.rows(first)
    while rows:
        yield rows
        if len(rows) < PAGE:
            return
        rows = session.rows(next_, **{f"after{number}": value for number, value in enumerate(rows[-1][-width:])})


def _columns_of_versions(session: Session, rows: Sequence[Row]) -> dict[int, list[list[Any]]]:
    found: dict[int, list[list[Any]]] = {}
    for version, *column in session.rows(COLUMNS, keys=[row[-1] for row in rows]):
        found.setdefault(version, []).append(column)
    return found


def _ranged(session: Session) -> Iterator[Record]:
    """Yield the write ids that are stored as ranges, each as its own record."""
    for row in session.rows(RANGES):
        named = dict(zip(write_id_ranges.c.keys(), row, strict=True))
        for number, transaction in enumerate(range(named["first_transaction"], named["last_transaction"] + 1)):
            key = (named["catalog"], named["database"], named["table"], named["first_write_id"] + number)
            yield Record("write_id", key, {"transaction_id": transaction})
