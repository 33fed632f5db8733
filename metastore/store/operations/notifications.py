"""Rows of the notification log. Writers insert events without an id; `number` gives ids, holding the counter for one short transaction.

An id is given once its event is committed, one above the last, in an order that every reader sees: no event ever appears below an id that
was seen, and a change that was rolled back leaves no gap. This module never looks into an event.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import accumulate
from typing import Any, NamedTuple

import orjson
import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler

from metastore.idl import WriteEventInfo
from metastore.store.core import counters
from metastore.store.core.clauses import Among
from metastore.store.core.database import Session
from metastore.store.schema.model import notifications, write_notifications

NOTIFICATION, WRITE_NOTIFICATION = notifications.c, write_notifications.c
COUNTER = "notification"
BATCH = 500
"""Rows of one statement that numbers or removes events."""
FILE_SEPARATOR = "]"
"""The mark between the files of one write in a message: Hive's replication divides them there."""


class LogRow(NamedTuple):
    """A row without its id; time in seconds."""

    time: int
    type: str
    catalog: str | None
    database: str | None
    table: str | None
    message: str
    format: str
    events: int = 1
    """The number of events of one change in the row. The messages of several events are made from its message."""


class NewWrite(NamedTuple):
    """Files that a transaction wrote into a table or a partition ("" for none); time in seconds, body as `writes` reads it."""

    transaction_id: int
    catalog: str
    database: str
    table: str
    partition: str
    write_id: int
    time: int
    body: str


class Filter(NamedTuple):
    """The wanted events: all with an id above `after` that match every part that is not None."""

    after: int
    upto: int | None = None
    catalog: str | None = None
    database: str | None = None
    tables: Sequence[str] | None = None
    types: Sequence[str] | None = None
    skipped: Sequence[str] | None = None
    with_unnamed: bool = False
    """Whether events without a catalog or database match any filter for it."""


class Matched(sa.ColumnElement[int]):
    """The number in one list at the position of a column's value in another list; both are bound as text, divided by commas."""

    inherit_cache = False
    type = sa.BigInteger()

    def __init__(self, column: sa.ColumnElement[Any], keys: str, values: str) -> None:
        self.parts = (column, *(sa.bindparam(name, type_=sa.String()) for name in (keys, values)))


@compiles(Matched, "sqlite")
def _matched_sqlite(element: Matched, compiler: SQLCompiler, **kw: Any) -> str:
    column, keys, values = (compiler.process(part, **kw) for part in element.parts)
    return (
        f"(SELECT v.value FROM json_each('[' || {keys} || ']') k JOIN json_each('[' || {values} || ']') v ON v.key = k.key"
        f" WHERE k.value = {column})"
    )


@compiles(Matched, "postgresql")
def _matched_postgresql(element: Matched, compiler: SQLCompiler, **kw: Any) -> str:
    column, keys, values = (compiler.process(part, **kw) for part in element.parts)
    place = f"array_position(string_to_array({keys}, ',')::bigint[], {column})"
    return f"(string_to_array({values}, ',')::bigint[])[{place}]"


@compiles(Matched, "mysql")
def _matched_mysql(element: Matched, compiler: SQLCompiler, **kw: Any) -> str:
    column, keys, values = (compiler.process(part, **kw) for part in element.parts)
    return f"SUBSTRING_INDEX(SUBSTRING_INDEX({values}, ',', FIND_IN_SET({column}, {keys})), ',', -1)"


PENDING = (
    sa.select(NOTIFICATION.sequence, NOTIFICATION.events)
    .where(NOTIFICATION.id.is_(None))
    .order_by(NOTIFICATION.id, NOTIFICATION.sequence)
    .limit(BATCH)
)
"""Ordered by `sequence`. By that alone, PostgreSQL would read the whole log if it estimates that many rows have no id."""
HAS_PENDING = sa.select(NOTIFICATION.sequence, NOTIFICATION.events).where(NOTIFICATION.id.is_(None)).limit(1)
LAST = sa.select(counters.VALUE.scalar_subquery(), sa.exists(HAS_PENDING))
NUMBER = sa.update(notifications).where(Among(NOTIFICATION.sequence, "keys")).values(id=Matched(NOTIFICATION.sequence, "order", "ids"))
FIELDS = (NOTIFICATION.id, *(NOTIFICATION[name] for name in LogRow._fields))
OLDEST = sa.select(NOTIFICATION.id, NOTIFICATION.time).where(NOTIFICATION.id.is_not(None)).order_by(NOTIFICATION.id).limit(BATCH)
DELETE = sa.delete(notifications).where(NOTIFICATION.id <= sa.bindparam("upto"))
WRITES = (
    sa.select(
        WRITE_NOTIFICATION.write_id,
        WRITE_NOTIFICATION.database,
        WRITE_NOTIFICATION.table,
        WRITE_NOTIFICATION.partition,
        WRITE_NOTIFICATION.body,
    )
    .where(WRITE_NOTIFICATION.transaction_id == sa.bindparam("transaction"))
    .order_by(WRITE_NOTIFICATION.id)
)
OLDEST_WRITES = sa.select(WRITE_NOTIFICATION.id, WRITE_NOTIFICATION.time).order_by(WRITE_NOTIFICATION.id).limit(BATCH)
DELETE_WRITES = sa.delete(write_notifications).where(WRITE_NOTIFICATION.id <= sa.bindparam("upto"))


def insert(session: Session, rows: Sequence[LogRow]) -> None:
    """Add events without ids."""
    session.enqueue_insert(notifications, LogRow._fields, rows)


def insert_numbered(session: Session, rows: Sequence[LogRow]) -> list[int]:
    """Add events together with their ids, which follow those of all events that are committed; return the ids."""
    last = number(session)
    ids = list(range(last + 1, last + 1 + len(rows)))
    session.insert_many(notifications, ("id", *LogRow._fields), [(key, *row) for key, row in zip(ids, rows, strict=True)])
    counters.set_last(session, COUNTER, ids[-1])
    return ids


def insert_writes(session: Session, rows: Sequence[NewWrite]) -> None:
    """Add the writes of transactions."""
    session.insert_many(write_notifications, NewWrite._fields, rows)


def number(session: Session) -> int:
    """Give ids to the events that are committed and have none, holding the counter; return the last id."""
    first = last = counters.lock(session, COUNTER)
    while rows := session.rows(PENDING):
        keys = [key for key, _ in rows]
        ids = list(accumulate((events for _, events in rows), initial=last))[1:]
        session.execute(NUMBER, keys=keys, order=",".join(map(str, keys)), ids=",".join(map(str, ids)))
        last = ids[-1]
        if len(keys) < BATCH:
            break
    if last > first:
        counters.set_last(session, COUNTER, last)
    return last


def pending(session: Session) -> bool:
    """Return whether there are events without an id."""
    return session.exists(HAS_PENDING)


def last_id(session: Session) -> int | None:
    """Return the id of the last event, 0 before the first; None where there are events without an id."""
    value, has_pending = session.row(LAST, key=COUNTER) or (None, False)
    return None if has_pending else value or 0


@cache
def _selects(parts: frozenset[str], *, with_unnamed: bool) -> tuple[sa.Select[Any], sa.Select[Any]]:
    """Return the query of events and the query of their number, for the set parts of a filter."""
    after, upto = (sa.bindparam(name, type_=sa.BigInteger()) for name in ("after", "upto"))
    conditions: list[sa.ColumnElement[bool]] = [NOTIFICATION.id > after]
    if "upto" in parts:
        conditions.append(NOTIFICATION.id - NOTIFICATION.events < upto)
    for column in (NOTIFICATION.catalog, NOTIFICATION.database):
        if column.name in parts:
            same = column == sa.bindparam(column.name, type_=sa.String())
            conditions.append(sa.or_(same, column.is_(None)) if with_unnamed else same)
    among = {
        "tables": Among(NOTIFICATION.table, "tables"),
        "types": Among(NOTIFICATION.type, "types"),
        "skipped": sa.not_(Among(NOTIFICATION.type, "skipped")),
    }
    conditions += [condition for name, condition in among.items() if name in parts]
    before_first = NOTIFICATION.id - NOTIFICATION.events
    last = sa.case((NOTIFICATION.id > upto, upto), else_=NOTIFICATION.id) if "upto" in parts else NOTIFICATION.id
    number = sa.func.sum(last - sa.case((before_first < after, after), else_=before_first))
    events = sa.select(*FIELDS).where(*conditions).order_by(NOTIFICATION.id).limit(sa.bindparam("most"))
    return events, sa.select(number).where(*conditions)


def _asked(wanted: Filter) -> tuple[tuple[sa.Select[Any], sa.Select[Any]], dict[str, Any]]:
    """Return the queries of a filter, as `_selects` does, and their parameters."""
    values = {name: value for name, value in wanted._asdict().items() if value is not None and name != "with_unnamed"}
    lists = {name: list(value) for name, value in values.items() if isinstance(value, list | tuple)}
    return _selects(frozenset(values), with_unnamed=wanted.with_unnamed), {**values, **lists}


def find(session: Session, wanted: Filter, most: int) -> list[tuple[int, LogRow]]:
    """Return the rows that hold the first `most` events of a filter with the ids of their last events, ascending by these.

    The first and the last row may hold other events besides.
    """
    (events, _), values = _asked(wanted)
    return [(int(last), LogRow(*row)) for last, *row in session.rows(events, **values, most=most)]


def count(session: Session, wanted: Filter) -> int:
    """Return the number of events that match a filter."""
    (_, number), values = _asked(wanted)
    return session.number(number, **values) or 0


def writes(session: Session, transaction: int) -> list[WriteEventInfo]:
    """Return the writes of a transaction, one struct for each write id, table and partition, in the order of their reports."""
    found: dict[tuple[Any, ...], WriteEventInfo] = {}
    for write_id, database, table, partition, body in session.rows(WRITES, transaction=transaction):
        report = orjson.loads(body)
        key = (write_id, database, table, partition)
        before = found.get(key)
        files = dict.fromkeys([*(before.files.split(FILE_SEPARATOR) if before is not None and before.files else ()), *report["files"]])
        found[key] = WriteEventInfo(
            writeId=write_id,
            database=database,
            table=table,
            files=FILE_SEPARATOR.join(files),
            partition=partition,
            tableObj=report["table"],
            partitionObj=report["partition"],
        )
    return list(found.values())


def delete_oldest(session: Session, before: int, keep: int | None) -> int:
    """Remove the first rows as long as their events are older than `before` (seconds), or there are more than `keep` events.

    Return the number of removed rows, at most BATCH.
    """
    limit = 0 if keep is None else counters.value(session, COUNTER) - keep
    gone = []
    for key, time in session.rows(OLDEST):
        if time >= before and key > limit:
            break
        gone.append(key)
    if gone:
        session.execute(DELETE, upto=gone[-1])
    return len(gone)


def delete_oldest_writes(session: Session, before: int) -> int:
    """Remove the writes of transactions before a time (seconds), in their order; return the number of rows, at most BATCH."""
    gone = []
    for key, time in session.rows(OLDEST_WRITES):
        if time >= before:
            break
        gone.append(key)
    if gone:
        session.execute(DELETE_WRITES, upto=gone[-1])
    return len(gone)
