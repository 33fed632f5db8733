"""Write records into a database of this server whose catalog is empty, or continue an interrupted move.

Rows that others refer to are changed in place; the rest of the wanted rows of a kind is removed before its first record is written, so that
a second run changes nothing. No server may run on the database meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby, islice
from operator import itemgetter
from typing import Any

import orjson
import sqlalchemy as sa

from metastore.errors import InvalidOperation
from metastore.idl import HiveObjectType
from metastore.places import indexed
from metastore.store.accounts import roles
from metastore.store.catalog import catalogs
from metastore.store.catalog import databases as database_rows
from metastore.store.catalog.tables import tables as table_rows
from metastore.store.core import authorization_changes, counters, leases, migrate
from metastore.store.core.database import Database, Session
from metastore.store.drivers.contract import Row
from metastore.store.engines import data_connectors
from metastore.store.operations import notifications
from metastore.store.schema.indexes import indexes
from metastore.store.schema.model import compactions, databases, partitions, tables
from metastore.store.schema.registry import registry_columns, registry_schemas, registry_versions
from metastore.store.transactions.transactions import COMPONENTS, HISTORY, OPEN, WRITE_IDS
from metastore.transfer.own.emptying import empty
from metastore.transfer.own.reader import COUNTERS, positions
from metastore.transfer.own.stored import BY_KIND, STORED, Stored
from metastore.transfer.own.table_writer import KEYS, TableWriter, set_sequence
from metastore.transfer.records import OF_TABLES, Key, Record, key_text
from metastore.transfer.selection import EVERYTHING, Selection

BATCH = 5000
HAS_TABLES = sa.select(tables.c.id).limit(1)
HAS_CATALOGS = sa.select(BY_KIND["catalog"].table.c.name).limit(1)
TABLES = sa.select(databases.c.catalog, databases.c.name, tables.c.name).select_from(
    tables.join(databases, tables.c.database_id == databases.c.id)
)
TABLES_OF = sa.select(tables.c.name).where(tables.c.database_id == sa.bindparam("key"))
DELETE_INDEXES = sa.delete(indexes).where(
    sa.or_(indexes.c.table_id == sa.bindparam("key"), indexes.c.index_table_id == sa.bindparam("key"))
)
LAST_DATABASE = sa.select(sa.func.coalesce(sa.func.max(databases.c.id), 0))
PARTITION = sa.select(partitions.c.id).where(partitions.c.table_id == sa.bindparam("key"), partitions.c.name == sa.bindparam("name_key"))
SCHEMAS = sa.select(databases.c.catalog, databases.c.name, registry_schemas.c.name, registry_schemas.c.id).select_from(
    registry_schemas.join(databases, registry_schemas.c.database_id == databases.c.id)
)
LAST_VERSION = sa.select(sa.func.coalesce(sa.func.max(registry_versions.c.id), 0))
_SEQUENCES = {
    table: sa.text(f"SELECT setval(pg_get_serial_sequence('{table.name}', 'id'), :last)")
    for table in (databases, compactions, registry_versions)
}
MOVED = "moved_{}"
"""The name of a counter with a position as the last move left it, or found it in a database without tables."""
MAY_HOLD = COMPONENTS | HISTORY | WRITE_IDS


class OwnWriter:
    """A database of this project as a target of records."""

    def __init__(self, database: Database, wrote: Callable[[int], None] = lambda _: None) -> None:
        """`wrote` is called after each batch with its number of records."""
        self.database = database
        self.name = database.url.render_as_string()
        self.skipped: list[str] = []
        """Records that were not written, each with the reason."""
        self.wrote = wrote
        self._selection = EVERYTHING
        self._tables: dict[Key, int | None] = {}
        self._databases: dict[tuple[str, str], int] = {}
        self._schemas: dict[Key, int] = {}

    def close(self) -> None:
        """Close the connections."""
        self.database.close()

    def begin(self, selection: Selection = EVERYTHING, *, resume: bool = False) -> frozenset[Key]:
        """Make the schema; return the existing tables.

        InvalidOperation if there are any, unless the move is resumed, and where a server runs on the database, or has run on it and has
        given out ids that the source does not have.
        """
        self._check_unused()
        migrate.upgrade(self.database)
        self.skipped, self._selection = [], selection
        self._forget()
        if self.database.read(lambda session: session.exists(HAS_TABLES)):
            if not resume:
                raise InvalidOperation(
                    f"database {self.name} has tables: name an empty one, or go on with --resume, which leaves existing tables alone"
                )
            self._check_unchanged()
        else:
            self.database.write(_note_positions)
        return frozenset(self.database.read(lambda session: session.rows(TABLES)))

    def _check_unused(self) -> None:
        """Raise InvalidOperation where a server holds a lease: the server caches rows that the move would change."""
        if migrate.current(self.database) is None:
            return
        now = int(time.time() * 1000)
        found = self.database.read(lambda session: leases.held(session, now))
        if found is not None:
            holder, job, until = found
            raise InvalidOperation(
                f"database {self.name} is in use: a server ({holder}) runs its job {job}; stop the server, or, if it was killed, "
                f"wait {max(1, round((until - now) / 1000))} s until its lease ends"
            )

    def _check_unchanged(self) -> None:
        """Raise InvalidOperation where transactions or events have ids that no move has brought: they would be mixed with the source's."""
        now = self.database.read(positions)
        moved = self.database.read(lambda session: {name: counters.value(session, MOVED.format(name)) for name in now})
        if now != moved:
            ids = ", ".join(f"{name} ids up to {now[name]} instead of {moved[name]}" for name in now if now[name] != moved[name])
            raise InvalidOperation(
                f"database {self.name} was in use by a server after it was filled ({ids}), and the source may have given out the same ids: "
                "import into an empty database, or start the server and use `metastore export` with its address"
            )

    def _forget(self) -> None:
        """Forget the numbers of rows: rewritten rows get other numbers."""
        for each in (self._tables, self._databases, self._schemas):
            each.clear()

    def is_filled(self) -> bool:
        """Return whether a metastore was moved here: even an empty one has a catalog."""
        return self.database.read(lambda session: session.exists(HAS_CATALOGS))

    def last_event(self) -> int:
        """Return the id of the last event by the counter of the notification log."""
        return self.database.read(lambda session: counters.value(session, COUNTERS["notification"]))

    def remove(self, names: Collection[Key]) -> None:
        """Remove tables with all that belongs to them, each in a transaction of its own."""
        for key in names:
            self.database.write(partial(self._remove, key=key))
        self._forget()

    def _remove(self, session: Session, key: Key) -> None:
        number = table_rows.key(session, *key)
        if number is not None:
            session.execute(DELETE_INDEXES, key=number)
            table_rows.delete(session, number, partitioned=True)

    def remove_others(self, kinds: Collection[str], seen: Mapping[str, Collection[Key]]) -> None:
        """Remove the objects outside of tables that a source does not have any more, after its others were written.

        `kinds` are the kinds that the source has completely. `seen` has the kinds of its records, with the keys of its catalogs, databases
        and roles.
        """
        self.database.write(partial(self._remove_others, kinds=kinds, seen=seen))
        self._forget()

    def _remove_others(self, session: Session, kinds: Collection[str], seen: Mapping[str, Collection[Key]]) -> None:
        for stored in reversed(STORED):
            if stored.kind not in kinds or not self._selection.wants(stored.kind):
                continue
            if stored.is_kept:
                for key, number in self._kept_rows(session, stored.kind):
                    if key not in seen.get(stored.kind, ()) and self._selection.wants_key(stored.kind, key):
                        self._remove_kept(session, stored.kind, key, number)
            elif stored.kind not in seen:
                empty(session, stored, self._selection)

    @staticmethod
    def _kept_rows(session: Session, kind: str) -> list[tuple[Key, int]]:
        """Return the keys of all catalogs, databases or roles, each with the number of its row, 0 where it has none."""
        if kind == "database":
            return [((catalog, name), number) for catalog, name, number in session.rows(KEYS)]
        return [((name,), 0) for (name,) in session.rows(sa.select(BY_KIND[kind].table.c.name))]

    def _remove_kept(self, session: Session, kind: str, key: Key, number: int) -> None:
        """Remove a catalog, database or role.

        A database is removed with its wanted tables: the source may drop them after it has listed its tables.

        A database with other contents stays, and so does its catalog.
        """
        if kind == "role":
            roles.delete(session, key[0])
        elif kind == "catalog":
            if not database_rows.names(session, key[0]):
                catalogs.delete(session, key[0])
        else:
            for table in [(*key, name) for name in session.column(TABLES_OF, key=number)]:
                if self._selection.wants_table(*table):
                    self._remove(session, table)
            if not database_rows.contents(session, number):
                database_rows.delete(session, number)

    def write(self, records: Iterable[Record]) -> None:
        """Write records that come in the order of their kinds."""
        for of_tables, group in groupby(records, lambda record: record.kind in OF_TABLES):
            if of_tables:
                writer = TableWriter(self.database, self.wrote)
                writer.begin()
                for record in group:
                    writer.add(record)
                writer.end()
            else:
                for kind, found in groupby(group, itemgetter(0)):
                    self._write_kind(kind, found)
        self.database.write(authorization_changes.note)

    def _write_kind(self, kind: str, records: Iterator[Record]) -> None:
        """Write records of a kind in batches. The three methods for a batch return a line for each skipped record."""
        write = self._positions if kind == "position" else self._kept if kind in ("role", "catalog", "database") else self._plain
        is_first = True
        batch = _take(records)
        while batch:
            self.skipped += self.database.write(lambda session, given=batch, first=is_first: write(session, given, first))  # type: ignore[misc]
            self.wrote(len(batch))
            batch, is_first = _take(records), False

    def _positions(self, session: Session, records: Sequence[Record], _: bool) -> list[str]:
        for record in records:
            counters.raise_to(session, COUNTERS[record.key[0]], record.body["last"])
        _note_positions(session)
        return []

    def _kept(self, session: Session, records: Sequence[Record], _: bool) -> list[str]:
        stored = BY_KIND[records[0].kind]
        rows = [_values(stored, record) for record in records]
        columns: tuple[str, ...] = (*stored.key, *stored.fields)
        if stored.kind == "database":
            known = {(catalog, name): key for catalog, name, key in session.rows(KEYS)}
            last = session.number(LAST_DATABASE) or 0
            new = [record.key for record in records if record.key not in known]
            known |= {(key[0], key[1]): last + number for number, key in enumerate(new, 1)}
            columns = ("id", *columns, "place", "managed_place")
            rows = [
                (known[record.key[0], record.key[1]], *row, indexed(record.body["location"]), indexed(record.body["managed_location"]))
                for record, row in zip(records, rows, strict=True)
            ]
            set_sequence(session, databases, last + len(new), _SEQUENCES[databases])
        session.enqueue_upsert(stored.table, columns, rows)
        return []

    def _plain(self, session: Session, records: Sequence[Record], is_first: bool) -> list[str]:
        stored = BY_KIND[records[0].kind]
        if is_first:
            empty(session, stored, self._selection)
        numbered = [(record, self._numbers(session, stored, record)) for record in records]
        taken = [record for record, numbers in numbered if numbers is not None]
        rows = [(*numbers, *_values(stored, record)) for record, numbers in numbered if numbers is not None]
        columns = (*_numbered(stored), *stored.key, *stored.fields)
        if stored.kind == "transaction":
            now = int(time.time() * 1000)
            columns = (*columns, "heartbeat_ms", "holds")
            beats = [now if record.body["state"] == OPEN else record.body["started_ms"] for record in taken]
            rows = [(*row, beat, MAY_HOLD) for row, beat in zip(rows, beats, strict=True)]
        if stored.kind == "schema_version":
            columns, rows = ("id", *columns), self._versions(session, taken, rows)
        if stored.kind == "transaction":
            session.enqueue_upsert(stored.table, columns, rows)
        else:
            session.insert_many(stored.table, columns, rows)
        if stored.kind == "compaction":
            set_sequence(session, compactions, max(record.key[0] for record in records), _SEQUENCES[compactions])
        return [
            f"{key_text(record)}: an object that it belongs to or refers to is missing" for record, numbers in numbered if numbers is None
        ]

    def _versions(self, session: Session, records: Sequence[Record], rows: Sequence[Row]) -> list[Row]:
        """Number the rows of schemas' versions, and write the versions' columns."""
        last = session.number(LAST_VERSION) or 0
        numbered = list(enumerate(records, last + 1))
        columns = [(key, place, *column) for key, record in numbered for place, column in enumerate(record.body["columns"])]
        session.insert_many(registry_columns, ("version_id", "position", "name", "type", "comment"), columns)
        set_sequence(session, registry_versions, last + len(records), _SEQUENCES[registry_versions])
        return [(key, *row) for (key, _), row in zip(numbered, rows, strict=True)]

    def _numbers(self, session: Session, stored: Stored, record: Record) -> tuple[Any, ...] | None:
        """Return the numbers that replace the names of a row's owner and of its table; None if one of them is missing."""
        key, found = record.key, []
        if stored.owner == "database":
            found.append(self._database(session, key))
        elif stored.owner == "schema":
            if not self._schemas:
                self._schemas = {tuple(row[:3]): row[3] for row in session.rows(SCHEMAS)}
            found.append(self._schemas.get(key[:3]))
        elif stored.owner == "table":
            found.append(self._table(session, key[:3]))
        elif stored.owner == "any":
            return self._granted(session, record)
        if stored.refers:
            other = record.body[stored.refers.removesuffix("_id")]
            number = None if other is None else self._table(session, tuple(other))
            if None in found or (number is None and other is not None):
                return None
            found.append(number)
            return tuple(found)
        return None if None in found else tuple(found)

    def _granted(self, session: Session, record: Record) -> tuple[Any, ...] | None:
        kind, catalog, database, table, partition = record.key[:5]
        numbers: list[Any] = [None, None, None, None]
        if kind == HiveObjectType.DATACONNECTOR:
            numbers[3] = table
            if data_connectors.find(session, table) is None:
                return None
        elif table is not None:
            numbers[1] = self._table(session, (catalog, database, table))
            if numbers[1] is None:
                return None
            if partition is not None:
                numbers[2] = session.number(PARTITION, key=numbers[1], name_key=partition)
                if numbers[2] is None:
                    return None
        elif database is not None:
            numbers[0] = self._database(session, (catalog, database))
            if numbers[0] is None:
                return None
        return (kind, *numbers)

    def _database(self, session: Session, key: Key) -> int | None:
        if not self._databases:
            self._databases = {(catalog, name): number for catalog, name, number in session.rows(KEYS)}
        return self._databases.get((key[0], key[1]))

    def _table(self, session: Session, names: Key) -> int | None:
        if names not in self._tables:
            if len(self._tables) > 100_000:
                self._tables.clear()
            self._tables[names] = table_rows.key(session, *names)
        return self._tables[names]


def _note_positions(session: Session) -> None:
    """Note the present positions as those of the move, so that a resumed one finds out whether a server has given out ids since.

    Events of a server that ended before it gave them ids get theirs first: the source's events have higher ones.
    """
    notifications.number(session)
    for name, last in positions(session).items():
        counters.raise_to(session, MOVED.format(name), last)


def _take(records: Iterator[Record]) -> list[Record]:
    return list(islice(records, BATCH))


def _numbered(stored: Stored) -> tuple[str, ...]:
    own = ("object_type", *stored.owner_columns) if stored.owner == "any" else stored.owner_columns
    return (*own, *((stored.refers,) if stored.refers else ()))


def _values(stored: Stored, record: Record) -> tuple[Any, ...]:
    """Return the values of the columns of the key and the body."""
    body = record.body
    fields = [orjson.dumps(body[name]).decode() if name in stored.json and body[name] is not None else body[name] for name in stored.fields]
    return (*(record.key[len(record.key) - len(stored.key) :]), *fields)
