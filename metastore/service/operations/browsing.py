"""Lists to look through page by page: databases, tables, partitions, transactions, compactions, events, jobs. It changes nothing.

No method of the interface has pages. Each function here returns one, and the key at which the next one begins; the entries in
`methods/operations/queries.py` filter it for the caller.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import orjson

from metastore.errors import NoSuchObject, NoSuchTransaction
from metastore.idl import NotificationEvent, Partition, Table
from metastore.listeners.notifications import events_of
from metastore.rules.filters import leading_prefixes, parse, select_partitions
from metastore.service.call.context import Call
from metastore.service.call.names import TableName
from metastore.service.catalog.partitions.partition_queries import with_table
from metastore.service.operations.notifications import last_id
from metastore.store.catalog.partitions import partition_structs, partitions
from metastore.store.compaction.compactions import QueueEntry
from metastore.store.core.database import Session
from metastore.store.operations import listings
from metastore.store.operations.listings import DatabaseRow, LeaseRow, TableRow, TransactionRow, TransactionWrite

CHUNK = 5_000
"""Partitions that are read at a time where a filter decides over them."""
LOOKED_AT = 50_000
"""The most partitions that are read for one page. Where the filter selects fewer than a page of them, the next page continues."""
EVENTS_LOOKED_AT = 100_000
"""The most events that are read for one page; the next page continues."""
MOST_WRITES = 200
"""The most objects that are shown of a transaction's writes."""


class Page(NamedTuple):
    """Some rows, and the key after which the next page begins; None at the end. A page may have fewer rows than were asked for."""

    rows: list[Any]
    next: Any | None


def _page(rows: list[Any], most: int, key: Any) -> Page:
    return Page(rows[:most], key(rows[most - 1]) if len(rows) > most else None)


def databases(call: Call, catalog: str, part: str, after: str, most: int) -> Page:
    """Return a page of the databases (`DatabaseRow`) whose names contain a part, ascending by name."""
    rows = call.database.read(lambda session: listings.databases_after(session, catalog, part, after, most + 1))
    return _page(rows, most, lambda row: row.name)


def tables(call: Call, catalog: str, database: str | None, parts: tuple[str, str], after: tuple[str, str], most: int) -> Page:
    """Return a page of the tables (`TableRow`) of a database, or of all, ascending by database and name.

    The names of database and table contain the `parts`; the key is a pair of such names.
    """

    def work(session: Session) -> list[TableRow]:
        if database is None:
            return listings.tables_of_catalog(session, catalog, parts, after, most + 1)
        return listings.tables_of_database(session, catalog, database, parts[1], after[1], most + 1)

    return _page(call.database.read(work), most, lambda row: (row.database, row.name))


class PartitionPage(NamedTuple):
    """A page of partitions with their table."""

    table: Table
    rows: list[tuple[str, Partition]]
    """Names and partitions, ascending by name."""
    next: str | None
    """The name after which the next page begins; None at the end."""


def table_partitions(call: Call, name: TableName, text: str | None, part: str, after: str, most: int) -> PartitionPage:
    """Return a page of a table's partitions that pass a filter string and whose names contain a part. NoSuchObject, MetaError.

    The key is a partition's name.
    """

    def work(session: Session, table: Table) -> PartitionPage:
        names, following = _partition_names(call, session, table, text or None, part, after, most)
        rows = partitions.named_rows(session, table, names) if names else []
        structs = partition_structs.PartitionStructs(session, table).structs(rows)
        return PartitionPage(table, [(row[1], struct) for row, struct in zip(rows, structs, strict=True)], following)

    return with_table(call, name, work)


def _partition_names(
    call: Call, session: Session, table: Table, text: str | None, part: str, after: str, most: int
) -> tuple[list[str], str | None]:
    """Return the names of a page, and the key of the next."""
    keys = [(key.name, key.type) for key in table.partitionKeys]
    default_name = call.config.default_partition_name
    node = parse(text, [key for key, _ in keys]) if text else None
    chunk = CHUNK if node is not None or part else most + 1
    looked_at, found = 0, list[str]()
    assert table.id is not None
    for prefix in _prefixes(leading_prefixes(node, keys, default_name), after):
        while True:
            rows = listings.partitions_after(session, table.id, prefix, after, chunk)
            chosen = select_partitions(node, keys, [orjson.loads(row[1]) for row in rows], default_name).positions
            found += [rows[place][0] for place in chosen if part in rows[place][0]]
            if len(found) > most:
                return found[:most], found[most - 1]
            looked_at += len(rows)
            after = rows[-1][0] if rows else after
            if len(rows) < chunk:
                break
            if looked_at >= LOOKED_AT:
                return found, after
    return found, None


def _prefixes(found: list[str] | None, after: str) -> Iterable[str]:
    """Return the prefixes with which names after a key may begin; "" stands for any."""
    return [""] if found is None else [each for each in found if each + listings.LAST > after]


def open_or_aborted(call: Call, state: str, user: str | None, after: int, most: int) -> Page:
    """Return a page of the transactions (`TransactionRow`) in a state, of one user if given, the oldest first."""
    rows = call.database.read(lambda session: listings.transactions_after(session, state, user, after, most + 1))
    return _page(rows, most, lambda row: row.id)


class TransactionView(NamedTuple):
    """A transaction, and the objects that it means to write, or wrote."""

    row: TransactionRow
    writes: list[TransactionWrite]


def transaction(call: Call, key: int) -> TransactionView:
    """Return a transaction and its writes, at most `MOST_WRITES` objects. NoSuchTransaction."""

    def work(session: Session) -> TransactionView:
        row = listings.transaction(session, key)
        if row is None:
            raise NoSuchTransaction(f"There is no transaction {key}: it was never opened, or was removed after it had ended")
        return TransactionView(row, listings.writes(session, key, MOST_WRITES))

    return call.database.read(work)


def compactions(call: Call, filters: dict[str, Any], before: int, most: int) -> Page:
    """Return a page of the compactions (`QueueEntry`) whose columns equal `filters`, the last first."""
    rows = call.database.read(lambda session: listings.compactions_before(session, filters, before, most + 1))
    return _page(rows, most, lambda row: row.id)


def compaction(call: Call, key: int) -> QueueEntry:
    """Return an entry of the compaction queue or its history. NoSuchObject."""
    found = call.database.read(lambda session: listings.compaction(session, key))
    if found is None:
        raise no_compaction(key)
    return found


def no_compaction(key: int) -> NoSuchObject:
    """Return the error for a compaction that is missing or hidden."""
    return NoSuchObject(f"There is no compaction {key}: it was never queued, or its history was deleted")


class LoggedEvents(NamedTuple):
    """Events of one change that follow each other, as one row of the log; time in seconds."""

    first: int
    last: int
    time: int
    type: str
    catalog: str | None
    database: str | None
    table: str | None


def events(call: Call, filters: dict[str, str], before: int | None, most: int) -> Page:
    """Return a page of the log (`LoggedEvents`) whose columns equal `filters`, the last first; `before` is an event's id."""
    newest = last_id(call.metastore)
    before = newest + 1 if before is None else min(before, newest + 1)
    lowest = before - EVENTS_LOOKED_AT if filters else 0
    rows = call.database.read(lambda session: listings.events_before(session, filters, before, lowest, most + 1))
    logged = [LoggedEvents(last - row.events + 1, last, row.time, row.type, row.catalog, row.database, row.table) for last, row in rows]
    page = _page(logged, most, lambda row: row.last)
    return page if page.next is not None or lowest <= 1 else Page(page.rows, lowest + 1)


def event(call: Call, key: int) -> NotificationEvent:
    """Return one event with its message. NoSuchObject."""
    last_id(call.metastore)
    found = call.database.read(lambda session: listings.row_of_event(session, key))
    for each in events_of(*found) if found is not None else ():
        if each.eventId == key:
            return each
    raise no_event(key)


def no_event(key: int) -> NoSuchObject:
    """Return the error for an event that is missing or hidden."""
    return NoSuchObject(f"There is no event {key}: it was deleted as too old, or has not happened yet")


def leases(call: Call) -> list[LeaseRow]:
    """Return the holders of the periodic jobs."""
    return call.database.read(listings.all_leases)


__all__ = [
    "DatabaseRow",
    "LeaseRow",
    "LoggedEvents",
    "Page",
    "PartitionPage",
    "QueueEntry",
    "TableRow",
    "TransactionRow",
    "TransactionView",
    "TransactionWrite",
]
