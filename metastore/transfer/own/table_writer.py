"""Write tables, their descriptors and partitions into a database of this server, in batches.

A table's row is written after all that is in it: an existing table is complete, and parts of an unfinished one are removed when the move is
resumed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import sqlalchemy as sa

from metastore.errors import InvalidObject
from metastore.idl import FieldSchema
from metastore.places import indexed
from metastore.store.catalog import descriptors as descriptor_rows
from metastore.store.catalog.partitions.partition_structs import stored_location
from metastore.store.catalog.statistics import PARTITION_COLUMNS, TABLE_COLUMNS, stored
from metastore.store.catalog.tables import view_sources
from metastore.store.core.database import Database, Session
from metastore.store.drivers.contract import Row
from metastore.store.schema.model import (
    databases,
    descriptors,
    partition_statistics,
    partitions,
    table_statistics,
    tables,
)
from metastore.transfer.own.tables import PLAIN
from metastore.transfer.records import Key, Record, content_hash

PARTITIONS_OF_BATCH, TABLES_OF_BATCH = 5000, 500
COLUMNS = {
    tables: (
        "id", "database_id", "name", *PLAIN, "partition_keys", "parameters", "creation_metadata", "columns_hash", "storage_hash", "comment",
        "place",
    ),
    descriptors: ("table_id", "hash", "body"),
    partitions: (
        "id", "table_id", "name", "partition_values", "location", "place", "columns_hash", "storage_hash", "parameters", "create_time",
        "last_access_time", "write_id",
    ),
    table_statistics: TABLE_COLUMNS,
    partition_statistics: PARTITION_COLUMNS,
}  # fmt: skip
"""The columns that are inserted. The rows are written in this order, except the rows of `tables`, which are written last."""
IDS = (tables, partitions)
LAST = {table: sa.select(sa.func.coalesce(sa.func.max(table.c.id), 0)) for table in IDS}
KEYS = sa.select(databases.c.catalog, databases.c.name, databases.c.id)
DELETE_UNFINISHED = [sa.delete(table).where(table.c.table_id > sa.bindparam("last")) for table in COLUMNS if table is not tables]
_SEQUENCE = {table: sa.text(f"SELECT setval(pg_get_serial_sequence('{table.name}', 'id'), :last)") for table in IDS}


def set_sequence(session: Session, table: sa.Table, last: int, statement: sa.TextClause | None = None) -> None:
    """Let PostgreSQL number rows above those that were written with numbers; the other databases do that by themselves."""
    if session.database.driver.name == "postgresql" and last:
        session.rows(_SEQUENCE[table] if statement is None else statement, last=last)


class TableWriter:
    """Takes the records of tables in their order and writes them."""

    def __init__(self, database: Database, wrote: Callable[[int], None]) -> None:
        """`wrote` is called after each batch with its number of records."""
        self._database, self._wrote = database, wrote
        self._keys: dict[tuple[str, str], int] = {}
        self._last: dict[sa.Table, int] = {}
        self._rows: dict[sa.Table, list[Row]] = {table: [] for table in COLUMNS}
        self._records = 0
        self._table: Record | None = None
        self._base = ""
        self._hashes: dict[str | None, int | None] = {}
        self._bodies: set[int] = set()
        self._encoded: dict[str, tuple[int, str]] = {}

    def begin(self) -> None:
        """Remove the parts of an unfinished table, and read the numbers that were given out."""

        def work(session: Session) -> None:
            self._keys = {(catalog, name): key for catalog, name, key in session.rows(KEYS)}
            last = session.number(LAST[tables]) or 0
            for statement in DELETE_UNFINISHED:
                session.execute(statement, last=last)
            self._last = {table: session.number(LAST[table]) or 0 for table in IDS}

        self._database.write(work)

    def add(self, record: Record) -> None:
        """Take a record. InvalidObject for one of a database or a table that is not there."""
        if record.kind == "table":
            self._end_table()
            self._begin_table(record)
        elif self._table is None or record.key[:3] != self._table.key:
            raise InvalidObject(f"{record.kind} {'.'.join(record.key)}: the record of its table is not before it")
        elif record.kind == "descriptor":
            self._hashes[record.key[3]] = self._describe(record.body["content"], record.key[3])
        else:
            self._add_partition(record)
        self._records += 1
        if len(self._rows[partitions]) >= PARTITIONS_OF_BATCH or len(self._rows[tables]) >= TABLES_OF_BATCH:
            self._flush()

    def end(self) -> None:
        """Write the collected rows."""
        self._end_table()
        self._flush()

    def _number(self, table: sa.Table) -> int:
        self._last[table] += 1
        return self._last[table]

    def _begin_table(self, record: Record) -> None:
        self._table = record
        self._base = (record.body["location"] or "").rstrip("/")
        self._hashes, self._bodies = {None: None}, set()
        self._number(tables)

    def _describe(self, content: Any, name: str) -> int:
        """Note a column list or storage format of the table; return the hash of its row."""
        found = self._encoded.get(name)
        if found is None:
            body = _encoded(content)
            found = self._encoded[name] = descriptor_rows.hash_of(body), body
            if len(self._encoded) > 10_000:
                self._encoded.clear()
        if found[0] not in self._bodies:
            self._bodies.add(found[0])
            self._rows[descriptors].append((self._last[tables], *found))
        return found[0]

    def _add_partition(self, record: Record) -> None:
        body, name = record.body, record.key[3]
        key, table = self._number(partitions), self._last[tables]
        location, place = stored_location(self._base, name, body["location"])
        self._rows[partitions].append(
            (
                key, table, name, orjson.dumps(body["values"]).decode(), location, place, self._hashes[body["columns"]],
                self._hashes[body["storage"]], orjson.dumps(body["parameters"]).decode(), body["create_time"], body["last_access_time"],
                body["write_id"],
            )
        )  # fmt: skip
        for engine, columns in body["statistics"].items():
            text, named = stored(columns)
            self._rows[partition_statistics].append((key, engine, text, table, named))

    def _end_table(self) -> None:
        record, self._table = self._table, None
        if record is None:
            return
        body, table = record.body, self._last[tables]
        catalog, database, name = record.key
        columns, storage = (None if body[part] is None else self._describe(body[part], content_hash(body[part])) for part in PARTS)
        creation = body["creation_metadata"]
        self._rows[tables].append(
            (
                table, self._database_of(catalog, database, record.key), name, *(body[field] for field in PLAIN),
                orjson.dumps(body["partition_keys"]).decode(), orjson.dumps(body["parameters"]).decode(),
                creation and view_sources.encode(view_sources.decode(orjson.dumps(creation).decode())), columns, storage,
                body["parameters"].get("comment"), None if body["type"] == "VIRTUAL_VIEW" else indexed(body["location"]),
            )
        )  # fmt: skip
        for engine, statistics in body["statistics"].items():
            self._rows[table_statistics].append((table, engine, orjson.dumps(statistics).decode()))

    def _database_of(self, catalog: str, database: str, key: Key) -> int:
        if (catalog, database) not in self._keys:
            raise InvalidObject(f"table {'.'.join(key)}: its database does not exist; move databases too, or create it")
        return self._keys[catalog, database]

    def _flush(self) -> None:
        given = {table: rows for table, rows in self._rows.items() if rows}

        def work(session: Session) -> None:
            for table in sorted(given, key=lambda table: table is tables):
                session.insert_many(table, COLUMNS[table], given[table])
            for table in IDS:
                if table in given:
                    set_sequence(session, table, self._last[table])

        if given:
            self._database.write(work)
        self._rows = {table: [] for table in COLUMNS}
        self._wrote(self._records)
        self._records = 0


PARTS = ("columns", "storage")


def _encoded(content: Any) -> str:
    """Return the body of a descriptor's row exactly as the store writes it: a later change of the table finds it by its hash."""
    if isinstance(content, list):
        return descriptor_rows.encode_columns(FieldSchema(*column) for column in content)
    return descriptor_rows.encode_storage(descriptor_rows.StorageFormat(orjson.dumps(content).decode()).at(None, None))
