"""Count for operators: objects, open transactions, locks, compactions, events, leases. Each is one statement; none locks."""

from __future__ import annotations

from typing import NamedTuple

import sqlalchemy as sa

from metastore.store.core.database import Session
from metastore.store.schema.model import catalogs, compactions, databases, functions, leases, locks, partitions, tables, transactions
from metastore.store.transactions.transactions import OPEN

OBJECTS = {"catalogs": catalogs, "databases": databases, "tables": tables, "partitions": partitions, "functions": functions}
TRANSACTION, LOCK, COMPACTION, LEASE = transactions.c, locks.c, compactions.c, leases.c
OPEN_TRANSACTIONS = sa.select(sa.func.count(), sa.func.min(TRANSACTION.started_ms)).where(
    TRANSACTION.state == sa.literal_column(f"'{OPEN}'")
)
LOCKS = sa.select(LOCK.state, sa.func.count()).group_by(LOCK.state)
COMPACTIONS = sa.select(COMPACTION.state, sa.func.count(), sa.func.min(COMPACTION.enqueued_ms)).group_by(COMPACTION.state)
LEASES = sa.select(LEASE.name, LEASE.expires_ms)
WAITING = (
    sa.select(COMPACTION.worker_version, sa.func.count(), sa.func.min(COMPACTION.enqueued_ms))
    .where(COMPACTION.state == sa.bindparam("state_key"))
    .group_by(COMPACTION.worker_version)
)
TAKEN = (
    sa.select(COMPACTION.worker_version, sa.func.max(COMPACTION.started_ms))
    .where(COMPACTION.started_ms.is_not(None))
    .group_by(COMPACTION.worker_version)
)
COUNTS = {name: sa.select(sa.func.count()).select_from(table) for name, table in OBJECTS.items()}


class Group(NamedTuple):
    """Rows of one state."""

    state: str
    """The letter of the state."""
    number: int
    oldest_ms: int | None
    """The time at which the oldest began or was queued, in milliseconds since 1970."""


def object_counts(session: Session) -> dict[str, int]:
    """Return the number of objects of each kind. It reads an index of each table from end to end."""
    return {name: session.number(count) or 0 for name, count in COUNTS.items()}


def open_transactions(session: Session) -> Group:
    """Return the number of open transactions, and the time at which the oldest began."""
    number, oldest = session.rows(OPEN_TRANSACTIONS)[0]
    return Group(OPEN, number, oldest)


def lock_states(session: Session) -> dict[str, int]:
    """Return the number of locks by the letter of their state."""
    return dict(session.rows(LOCKS))


def compaction_states(session: Session) -> list[Group]:
    """Return the entries of the queue and its history by state."""
    return [Group(*row) for row in session.rows(COMPACTIONS)]


def waiting_compactions(session: Session, state: str) -> list[tuple[str | None, int, int]]:
    """Return the entries in a state by their worker's version: (version, number, time at which the oldest was queued in milliseconds)."""
    return [(version, int(number), int(oldest)) for version, number, oldest in session.rows(WAITING, state_key=state)]


def compactions_taken(session: Session) -> dict[str | None, int]:
    """Return the time at which workers of each version last took an entry, in milliseconds since 1970."""
    return dict(session.rows(TAKEN))


def lease_ends(session: Session) -> dict[str, int]:
    """Return the end of the lease of each periodic job, in milliseconds since 1970."""
    return dict(session.rows(LEASES))
