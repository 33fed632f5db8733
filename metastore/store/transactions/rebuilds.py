"""Rows of materialized views that are being rebuilt: one for each view, of the transaction that rebuilds it. One function per statement."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import sqlalchemy as sa

from metastore.store.core.clauses import Among
from metastore.store.core.database import Session
from metastore.store.schema.model import compactions, materialization_rebuilds, transaction_components
from metastore.store.transactions.write_ids import TableKey

REBUILD, COMPONENT, COMPACTION = materialization_rebuilds.c, transaction_components.c, compactions.c
VIEW = (REBUILD.database == sa.bindparam("database_key"), REBUILD.table == sa.bindparam("table_key"))
FIND = sa.select(REBUILD.transaction_id).where(*VIEW)
HEARTBEAT = (
    sa.update(materialization_rebuilds).where(*VIEW, REBUILD.transaction_id == sa.bindparam("key")).values(heartbeat_ms=sa.bindparam("now"))
)
EXPIRE = sa.delete(materialization_rebuilds).where(REBUILD.heartbeat_ms < sa.bindparam("since"))
EXPIRE_ONE = EXPIRE.where(*VIEW)
COMMITTED = sa.select(COMPONENT.catalog, COMPONENT.database, COMPONENT.table, COMPONENT.transaction_id, COMPONENT.write_id).where(
    Among(COMPONENT.database, "databases"),
    Among(COMPONENT.table, "tables"),
    COMPONENT.committed_ms.is_not(None),
    Among(COMPONENT.operation, "operations"),
)
COMPACTIONS = sa.select(COMPACTION.catalog, COMPACTION.database, COMPACTION.table, COMPACTION.state, COMPACTION.highest_write_id).where(
    Among(COMPACTION.database, "databases"), Among(COMPACTION.table, "tables")
)


def find(session: Session, database: str, table: str) -> int | None:
    """Return the transaction that rebuilds a view."""
    return session.number(FIND, database_key=database, table_key=table)


def insert(session: Session, database: str, table: str, transaction: int, now: int) -> None:
    """Note that a transaction rebuilds a view, which nobody else may do."""
    session.insert(materialization_rebuilds, database=database, table=table, transaction_id=transaction, heartbeat_ms=now)


def heartbeat(session: Session, database: str, table: str, transaction: int, now: int) -> bool:
    """Note a heartbeat of a rebuild; return whether the transaction does it."""
    return session.execute(HEARTBEAT, database_key=database, table_key=table, key=transaction, now=now) > 0


def expire(session: Session, since: int) -> int:
    """Forget rebuilds whose last heartbeat is before `since`; return their number."""
    return session.execute(EXPIRE, since=since)


def expire_one(session: Session, database: str, table: str, since: int) -> None:
    """Forget the rebuild of a view if its last heartbeat is before `since`."""
    session.execute(EXPIRE_ONE, database_key=database, table_key=table, since=since)


def committed(session: Session, tables: Sequence[TableKey], operations: Collection[str]) -> list[tuple[TableKey, int, int | None]]:
    """Return table, transaction and write id of commits to tables by some operations. Commits to others may be among them."""
    names = {"databases": [key.database for key in tables], "tables": [key.table for key in tables]}
    rows = session.rows(COMMITTED, **names, operations=list(operations))
    return [(TableKey(*row[:3]), row[3], row[4]) for row in rows]


def compacted(session: Session, tables: Sequence[TableKey]) -> list[tuple[TableKey, str, int | None]]:
    """Return table, state and highest write id of the compactions of tables. Compactions of others may be among them."""
    rows = session.rows(COMPACTIONS, databases=[key.database for key in tables], tables=[key.table for key in tables])
    return [(TableKey(*row[:3]), row[3], row[4]) for row in rows]
