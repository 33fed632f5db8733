"""Rows that say what transactions write: intents of open ones, completed ones, and the set that conflicts are judged by.

One function per statement; what is in conflict is decided in `rules.transactions`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import sqlalchemy as sa

from metastore.store.answer import Answer
from metastore.store.clauses import Among
from metastore.store.database import Session
from metastore.store.drivers import Row
from metastore.store.schema import completed_components, transaction_components, write_set

C, W = transaction_components.c, write_set.c
COLUMNS = ("transaction_id", "catalog", "database", "table", "partition", "operation", "write_id")
COMPLETED_COLUMNS = ("transaction_id", "catalog", "database", "table", "partition", "write_id", "updates", "time_ms")
WRITE_COLUMNS = ("catalog", "database", "table", "partition", "transaction_id", "commit_id", "operation")
INTENTS = sa.select(C.catalog, C.database, C.table, C.partition, C.operation, C.write_id).where(
    C.transaction_id == sa.bindparam("key")
).order_by(C.id)
TAKE = INTENTS.with_for_update()
DELETE = sa.delete(transaction_components).where(C.transaction_id == sa.bindparam("key"))
DATABASES = sa.select(C.transaction_id, C.database).where(Among(C.transaction_id, "keys")).distinct()
DELETE_DYNAMIC = sa.delete(transaction_components).where(
    C.transaction_id == sa.bindparam("key"), C.catalog == sa.bindparam("catalog_key"), C.database == sa.bindparam("database_key"),
    C.table == sa.bindparam("table_key"), C.partition.is_(None),
)
WRITES = sa.select(*(W[name] for name in WRITE_COLUMNS)).where(
    Among(W.database, "databases"), Among(W.table, "tables"), W.commit_id >= sa.bindparam("since")
).order_by(W.id)


Intent = tuple[str, str, str | None, str | None, str, int | None]
"""Catalog, database, table, partition, operation, write id."""

Write = tuple[str, str, str, str | None, int, int, str]
"""Catalog, database, table, partition, transaction, commit id, operation."""


def insert(session: Session, intents: Iterable[tuple[int, Intent]]) -> None:
    """Add what transactions mean to write. Their rows must be held with the bit COMPONENTS (`transactions.hold`)."""
    session.insert_later(transaction_components, COLUMNS, [(transaction, *intent) for transaction, intent in intents])


def of(session: Session, transaction: int) -> Sequence[Row]:
    """Return what a transaction means to write."""
    return session.rows(INTENTS, key=transaction)


def take(session: Session, transaction: int) -> Answer:
    """Ask for it together with the next statement, and keep a rename of what it writes to waiting."""
    return session.later(TAKE, key=transaction)


def delete(session: Session, transaction: int) -> None:
    """Remove what a transaction meant to write."""
    session.later(DELETE, key=transaction)


def delete_whole_table(session: Session, transaction: int, catalog: str, database: str, table: str) -> None:
    """Remove what a transaction meant to write to a table as a whole: the partitions are known now."""
    session.later(DELETE_DYNAMIC, key=transaction, catalog_key=catalog, database_key=database, table_key=table)


def databases(session: Session, transactions: Sequence[int]) -> dict[int, list[str]]:
    """Return the names of the databases that transactions mean to write to, ascending."""
    found: dict[int, list[str]] = {}
    for transaction, database in sorted(session.rows(DATABASES, keys=list(transactions))):
        found.setdefault(transaction, []).append(database)
    return found


def complete(session: Session, transaction: int, intents: Iterable[Intent], changes: Collection[str], now: int) -> None:
    """Note what a committed transaction wrote; `changes` are the operations by which rows were updated or deleted."""
    rows = [(transaction, *where, write_id, int(operation in changes), now) for *where, operation, write_id in intents]
    session.insert_later(completed_components, COMPLETED_COLUMNS, rows)


def writes_since(session: Session, tables: Iterable[tuple[str, str]], since: int) -> Answer:
    """Ask for what was committed at or after a commit id to tables (database, table), and perhaps to others, in order.

    It goes together with the next statement.
    """
    pairs = list(tables)
    return session.later(
        WRITES, databases=sorted({database for database, _ in pairs}), tables=sorted({table for _, table in pairs}), since=since
    )


def insert_writes(session: Session, writes: Iterable[Write]) -> None:
    """Add to the set that conflicts are judged by."""
    session.insert_later(write_set, WRITE_COLUMNS, writes)
