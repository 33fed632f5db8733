"""Pages of rows to look through: each is a statement with a limit that begins after a key. Never reads a whole table."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import sqlalchemy as sa

from metastore.store.compaction.compactions import QueueEntry
from metastore.store.core.clauses import constant
from metastore.store.core.database import Session
from metastore.store.drivers.contract import Row
from metastore.store.operations.notifications import LogRow
from metastore.store.schema.model import compactions, databases, leases, notifications, partitions, tables, transactions
from metastore.store.transactions.components import COMPONENT

DATABASE, TABLE, PARTITION, TRANSACTION, COMPACTION, NOTIFICATION, LEASE = (
    databases.c,
    tables.c,
    partitions.c,
    transactions.c,
    compactions.c,
    notifications.c,
    leases.c,
)
LAST = "\U0010ffff"
"""Above every text."""


def _number(name: str) -> sa.BindParameter[int]:
    return sa.bindparam(name, type_=sa.BigInteger())


def _text(name: str) -> sa.BindParameter[str]:
    return sa.bindparam(name, type_=sa.String())


def _contains(column: sa.ColumnElement[str], name: str) -> sa.ColumnElement[bool]:
    return column.like(_text(name), escape="!")


def containing(part: str) -> str:
    """Return the pattern of texts that contain a part."""
    for special in "!%_":
        part = part.replace(special, "!" + special)
    return f"%{part}%"


_MOST: sa.BindParameter[int] = sa.bindparam("most")
DATABASES = (
    sa.select(DATABASE.name, DATABASE.owner_name, DATABASE.description, DATABASE.location)
    .where(DATABASE.catalog == _text("catalog_key"), DATABASE.name > _text("after"), _contains(DATABASE.name, "pattern"))
    .order_by(DATABASE.name)
    .limit(_MOST)
)
_SHOWN = (DATABASE.name, TABLE.name, TABLE.type, TABLE.owner, TABLE.comment)
_JOINED = sa.select(*_SHOWN).select_from(tables.join(databases, TABLE.database_id == DATABASE.id))
_ID = sa.select(DATABASE.id).where(DATABASE.catalog == _text("catalog_key"), DATABASE.name == _text("database_key")).scalar_subquery()
IN_DATABASE = (
    _JOINED.where(TABLE.database_id == _ID, TABLE.name > _text("after_name"), _contains(TABLE.name, "pattern"))
    .order_by(TABLE.name)
    .limit(_MOST)
)
IN_CATALOG = (
    _JOINED.where(
        DATABASE.catalog == _text("catalog_key"),
        sa.or_(
            DATABASE.name > _text("after_database"), sa.and_(DATABASE.name == _text("after_database"), TABLE.name > _text("after_name"))
        ),
        _contains(DATABASE.name, "database_pattern"),
        _contains(TABLE.name, "pattern"),
    )
    .order_by(DATABASE.name, TABLE.name)
    .limit(_MOST)
)
_PARTITIONS = sa.select(PARTITION.name, PARTITION.partition_values).where(
    PARTITION.table_id == _number("table_id"), PARTITION.name < _text("high")
)
PARTITIONS_AFTER, PARTITIONS_FROM = (
    _PARTITIONS.where(begins).order_by(PARTITION.name).limit(_MOST)
    for begins in (PARTITION.name > _text("low"), PARTITION.name >= _text("low"))
)
"""Two statements, because in one with two lower bounds a database begins at either of them."""
TRANSACTION_COLUMNS = (
    TRANSACTION.id,
    TRANSACTION.state,
    TRANSACTION.type,
    TRANSACTION.user,
    TRANSACTION.host,
    TRANSACTION.agent,
    TRANSACTION.started_ms,
    TRANSACTION.heartbeat_ms,
    TRANSACTION.ended_ms,
)
ONE_TRANSACTION = sa.select(*TRANSACTION_COLUMNS).where(TRANSACTION.id == _number("key"))
WRITES = (
    sa.select(COMPONENT.catalog, COMPONENT.database, COMPONENT.table, COMPONENT.partition, COMPONENT.operation, COMPONENT.write_id)
    .where(COMPONENT.transaction_id == _number("key"))
    .order_by(COMPONENT.id)
    .limit(_MOST)
)
ONE_COMPACTION = sa.select(compactions).where(COMPACTION.id == _number("key"))
EVENT_COLUMNS = (NOTIFICATION.id, *(NOTIFICATION[name] for name in LogRow._fields))
HOLDS_EVENT = sa.select(*EVENT_COLUMNS).where(NOTIFICATION.id >= _number("key")).order_by(NOTIFICATION.id).limit(constant(1))
LEASES = sa.select(LEASE.name, LEASE.holder, LEASE.expires_ms).order_by(LEASE.name)


class DatabaseRow(NamedTuple):
    """A database in a list."""

    name: str
    owner: str | None
    description: str | None
    location: str | None


class TableRow(NamedTuple):
    """A table in a list."""

    database: str
    name: str
    type: str
    owner: str | None
    comment: str | None


class TransactionRow(NamedTuple):
    """A transaction in a list; times in milliseconds."""

    id: int
    state: str
    type: int
    user: str | None
    host: str | None
    agent: str | None
    started: int
    heartbeat: int
    ended: int | None


class TransactionWrite(NamedTuple):
    """A write that a transaction announced or did."""

    catalog: str
    database: str
    table: str | None
    partition: str | None
    operation: str
    write_id: int | None


class LeaseRow(NamedTuple):
    """The process that runs a periodic job, and the end of its lease, in milliseconds."""

    name: str
    holder: str | None
    expires: int


def databases_after(session: Session, catalog: str, part: str, after: str, most: int) -> list[DatabaseRow]:
    """Return the databases whose names contain a part, ascending by name."""
    rows = session.rows(DATABASES, catalog_key=catalog, pattern=containing(part), after=after, most=most)
    return [DatabaseRow(*row) for row in rows]


def tables_of_database(session: Session, catalog: str, database: str, part: str, after: str, most: int) -> list[TableRow]:
    """Return the tables of a database whose names contain a part, ascending by name."""
    values = {"catalog_key": catalog, "database_key": database, "pattern": containing(part), "after_name": after}
    return [TableRow(*row) for row in session.rows(IN_DATABASE, **values, most=most)]


def tables_of_catalog(
    session: Session, catalog: str, parts: tuple[str, str], after: tuple[str, str], most: int
) -> list[TableRow]:  # fmt: skip
    """Return the tables of all databases, ascending by database and name; the names of both contain the `parts`."""
    values = {
        "catalog_key": catalog,
        "database_pattern": containing(parts[0]),
        "pattern": containing(parts[1]),
        "after_database": after[0],
        "after_name": after[1],
    }
    return [TableRow(*row) for row in session.rows(IN_CATALOG, **values, most=most)]


def partitions_after(session: Session, table_id: int, prefix: str, after: str, most: int) -> list[Row]:
    """Return (name, values as JSON) of the partitions after one whose names begin with a prefix, ascending by name."""
    if after >= prefix:
        return list(session.rows(PARTITIONS_AFTER, table_id=table_id, low=after, high=prefix + LAST, most=most))
    return list(session.rows(PARTITIONS_FROM, table_id=table_id, low=session.lowest(prefix), high=prefix + LAST, most=most))


@cache
def _transactions(*, of_user: bool) -> sa.Select[Any]:
    clause = sa.select(*TRANSACTION_COLUMNS).where(TRANSACTION.state == _text("state_key"), TRANSACTION.id > _number("after"))
    if of_user:
        clause = clause.where(TRANSACTION.user == _text("user_key"))
    return clause.order_by(TRANSACTION.id).limit(_MOST)


def transactions_after(session: Session, state: str, user: str | None, after: int, most: int) -> list[TransactionRow]:
    """Return the transactions in a state, of one user if given, the oldest first."""
    values = {} if user is None else {"user_key": user}
    rows = session.rows(_transactions(of_user=user is not None), state_key=state, after=after, most=most, **values)
    return [TransactionRow(*row) for row in rows]


def transaction(session: Session, key: int) -> TransactionRow | None:
    """Return a transaction."""
    row = session.row(ONE_TRANSACTION, key=key)
    return None if row is None else TransactionRow(*row)


def writes(session: Session, transaction_id: int, most: int) -> list[TransactionWrite]:
    """Return the components of a transaction: intents, or committed ones."""
    return [TransactionWrite(*row) for row in session.rows(WRITES, key=transaction_id, most=most)]


@cache
def _compactions(names: frozenset[str]) -> sa.Select[Any]:
    conditions = (COMPACTION[name] == sa.bindparam(f"{name}_key") for name in sorted(names))
    return sa.select(compactions).where(COMPACTION.id < _number("before"), *conditions).order_by(COMPACTION.id.desc()).limit(_MOST)


def compactions_before(session: Session, filters: dict[str, Any], before: int, most: int) -> list[QueueEntry]:
    """Return the entries whose columns equal `filters`, the last first."""
    values = {f"{name}_key": value for name, value in filters.items()}
    return [QueueEntry(*row) for row in session.rows(_compactions(frozenset(filters)), before=before, most=most, **values)]


def compaction(session: Session, key: int) -> QueueEntry | None:
    """Return an entry of the queue or its history."""
    row = session.row(ONE_COMPACTION, key=key)
    return None if row is None else QueueEntry(*row)


@cache
def _events(names: frozenset[str]) -> sa.Select[Any]:
    conditions = (NOTIFICATION[name] == _text(f"{name}_key") for name in sorted(names))
    return (
        sa.select(*EVENT_COLUMNS)
        .where(NOTIFICATION.id < _number("before"), NOTIFICATION.id > _number("after"), *conditions)
        .order_by(NOTIFICATION.id.desc())
        .limit(_MOST)
    )  # fmt: skip


def events_before(session: Session, filters: dict[str, str], before: int, after: int, most: int) -> list[tuple[int, LogRow]]:
    """Return rows of the log with an id between two, both left out, whose columns equal `filters`, the last first."""
    values = {f"{name}_key": value for name, value in filters.items()}
    rows: Sequence[Row] = session.rows(_events(frozenset(filters)), before=before, after=after, most=most, **values)
    return [(int(last), LogRow(*row)) for last, *row in rows]


def row_of_event(session: Session, key: int) -> tuple[int, LogRow] | None:
    """Return the row of the log that would hold an event, with the id of the row's last event."""
    row = session.row(HOLDS_EVENT, key=key)
    return None if row is None else (int(row[0]), LogRow(*row[1:]))


def all_leases(session: Session) -> list[LeaseRow]:
    """Return the holders of the periodic jobs."""
    return [LeaseRow(*row) for row in session.rows(LEASES)]
