"""Rows of components, the writes of transactions: a row for each object, from a transaction's intent until the write is compacted.

A commit notes its time in them, and in those of updates and deletes its id, by which the conflicts of others are detected.
One function per statement; `rules.transactions` decides about conflicts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import sqlalchemy as sa

from metastore.store.core.clauses import Among, bare
from metastore.store.core.database import Session
from metastore.store.drivers.answer import Answer
from metastore.store.drivers.contract import Row
from metastore.store.schema.model import transaction_components

COMPONENT = transaction_components.c
INSERT = "i"
"""The operation of rows that are added; the letters are from `rules.transactions`."""
COLUMNS = ("transaction_id", "catalog", "database", "table", "partition", "operation", "write_id")
WRITE_COLUMNS = ("catalog", "database", "table", "partition", "transaction_id", "commit_id", "operation")
INTENTS = (
    sa.select(COMPONENT.catalog, COMPONENT.database, COMPONENT.table, COMPONENT.partition, COMPONENT.operation, COMPONENT.write_id)
    .where(COMPONENT.transaction_id == sa.bindparam("key"))
    .order_by(COMPONENT.id)
)
TAKE = INTENTS.with_for_update()
COMPLETE = (
    sa.update(transaction_components)
    .where(COMPONENT.transaction_id == sa.bindparam("key"))
    .values(
        committed_ms=sa.bindparam("now"),
        commit_id=sa.case(
            (Among(COMPONENT.operation, "row_changes"), sa.bindparam("number", type_=sa.BigInteger())), else_=COMPONENT.commit_id
        ),
    )
)
"""Inserts keep having no commit id. PostgreSQL takes the type of a missing `number` from their column."""
DELETE_OPERATION = sa.delete(transaction_components).where(
    COMPONENT.transaction_id == sa.bindparam("key"), COMPONENT.operation == sa.bindparam("operation_key")
)
DATABASES = sa.select(COMPONENT.transaction_id, COMPONENT.database).where(Among(COMPONENT.transaction_id, "keys")).distinct()
OF_TABLE = (
    COMPONENT.catalog == sa.bindparam("catalog_key"),
    bare(COMPONENT.database) == sa.bindparam("database_key"),
    bare(COMPONENT.table) == sa.bindparam("table_key"),
)
"""The condition that rows of given transactions are of a table. It is not to find rows by: a table may have very many."""
DELETE_DYNAMIC = sa.delete(transaction_components).where(
    COMPONENT.transaction_id == sa.bindparam("key"), *OF_TABLE, COMPONENT.partition.is_(None)
)
WRITES = (
    sa.select(*(COMPONENT[name] for name in WRITE_COLUMNS))
    .where(Among(COMPONENT.database, "databases"), Among(COMPONENT.table, "tables"), COMPONENT.commit_id >= sa.bindparam("since"))
    .order_by(COMPONENT.id)
)


def has_no_conflicts(of: Any, min_open: sa.ColumnElement[int]) -> sa.ColumnElement[bool]:
    """Return the condition of committed rows with which no transaction from the lowest open one on may conflict."""
    return sa.or_(of.commit_id.is_(None), of.commit_id < min_open)


Intent = tuple[str, str, str | None, str | None, str, int | None]
"""Catalog, database, table, partition, operation, write id."""

Write = tuple[str, str, str, str | None, int, int, str]
"""Catalog, database, table, partition, transaction, commit id, operation."""


def insert(session: Session, intents: Iterable[tuple[int, Intent]]) -> None:
    """Add intents of transactions. Their rows must be held with the bit COMPONENTS (`transactions.add_holds`)."""
    session.enqueue_insert(transaction_components, COLUMNS, [(transaction, *intent) for transaction, intent in intents])


def of(session: Session, transaction: int) -> Sequence[Row]:
    """Return the intents of an open transaction."""
    return session.rows(INTENTS, key=transaction)


def take(session: Session, transaction: int) -> Answer:
    """Read the intents of a transaction, with the next statement. This locks the rows, so renames wait."""
    return session.enqueue(TAKE, key=transaction)


def delete(session: Session, transaction: int, operation: str) -> None:
    """Remove the intents of a transaction with an operation."""
    session.enqueue(DELETE_OPERATION, key=transaction, operation_key=operation)


def delete_whole_table(session: Session, transaction: int, catalog: str, database: str, table: str) -> None:
    """Remove the intent of a transaction on a table as a whole: the partitions are known now."""
    session.enqueue(DELETE_DYNAMIC, key=transaction, catalog_key=catalog, database_key=database, table_key=table)


def databases(session: Session, transactions: Sequence[int]) -> dict[int, list[str]]:
    """Return the names of the databases that transactions mean to write to, ascending."""
    found: dict[int, list[str]] = {}
    for transaction, database in sorted(session.rows(DATABASES, keys=list(transactions))):
        found.setdefault(transaction, []).append(database)
    return found


def complete(session: Session, transaction: int, row_changes: Collection[str], commit_id: int | None, now: int) -> None:
    """Note that a transaction commits its intents; with those of the operations `row_changes` others may conflict."""
    session.enqueue(COMPLETE, key=transaction, row_changes=list(row_changes), number=commit_id, now=now)


def insert_completed(session: Session, transaction: int, intents: Iterable[Intent], now: int) -> None:
    """Add committed components of a transaction with which nobody conflicts."""
    rows = [(transaction, *intent, now) for intent in intents]
    session.enqueue_insert(transaction_components, (*COLUMNS, "committed_ms"), rows)


def writes_since(session: Session, tables: Iterable[tuple[str, str]], since: int) -> Answer:
    """Query the commits at or after a commit id to tables (database, table), in order. Commits to others may be among them.

    The query is sent together with the next statement.
    """
    pairs = list(tables)
    return session.enqueue(
        WRITES, databases=sorted({database for database, _ in pairs}), tables=sorted({table for _, table in pairs}), since=since
    )
