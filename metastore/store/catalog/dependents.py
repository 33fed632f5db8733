"""Rename or remove the dependents of a table or partition with it: the rows of transactions, locks and compactions that name it.

One function per change, with a fixed number of statements. Counters are first and components second, the order in which commits lock them.
Rows with copies from counters follow, so that no row of a call under way keeps an old name. Source: Hive's OnRenameFunction and
CleanupRecordsFunction.
"""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from metastore.store.core.clauses import Among, constant
from metastore.store.core.database import Session
from metastore.store.schema.model import (
    compaction_metrics,
    compactions,
    lock_components,
    materialization_rebuilds,
    min_history,
    transaction_components,
    transactions,
    write_id_counters,
    write_id_ranges,
    write_ids,
    write_notifications,
)
from metastore.store.transactions import locks
from metastore.store.transactions import write_ids as write_ids_rows
from metastore.store.transactions.transactions import ABORTED
from metastore.store.transactions.write_ids import TableKey, named

ORDER = (
    write_id_counters,
    transaction_components,
    write_ids,
    write_id_ranges,
    min_history,
    write_notifications,
    compactions,
    compaction_metrics,
    materialization_rebuilds,
)
PARTITIONED = tuple(table for table in ORDER if "partition" in table.c)
KEYED = (write_id_counters, write_ids, write_id_ranges, min_history, compaction_metrics, materialization_rebuilds)
"""Tables whose keys contain a table's name. Before a rename, the rows of an earlier table under the new name are removed from them."""


def _of_database(table: sa.Table, name: str = "database_key") -> list[sa.ColumnElement[bool]]:
    database = table.c.database == sa.bindparam(name)
    return [table.c.catalog == sa.bindparam("catalog_key"), database] if "catalog" in table.c else [database]


def _of_table(table: sa.Table) -> list[sa.ColumnElement[bool]]:
    return [*_of_database(table), table.c.table == sa.bindparam("table_key")]


_NAMES: dict[str, sa.BindParameter[str]] = {"database": sa.bindparam("new_database"), "table": sa.bindparam("new_table")}
MAKE_ROOM = [sa.delete(table).where(*_of_database(table, "new_database"), table.c.table == _NAMES["table"]) for table in KEYED]
RENAME_TABLE = [sa.update(table).where(*_of_table(table)).values(_NAMES) for table in (*ORDER, lock_components)]
RENAME_PARTITION = [
    sa.update(table)
    .where(*_of_table(table), table.c.partition == sa.bindparam("partition_key"))
    .values(partition=sa.bindparam("new_partition"))
    for table in (*PARTITIONED, lock_components)
]
_HAS_FILES = compactions.c.properties.like(constant("%8:location%"))
"""The condition of a queue entry by which files of a dropped object are deleted: it outlives the object."""


def _deletable(table: sa.Table) -> list[sa.ColumnElement[bool]]:
    return [sa.or_(compactions.c.properties.is_(None), sa.not_(_HAS_FILES))] if table is compactions else []


DELETE_TABLE = [sa.delete(table).where(*_of_table(table), *_deletable(table)) for table in ORDER]
DELETE_DATABASE = [sa.delete(table).where(*_of_database(table), *_deletable(table)) for table in ORDER]
_NOT_ABORTED = ~sa.exists().where(transactions.c.id == transaction_components.c.transaction_id, transactions.c.state == constant(ABORTED))
"""An aborted transaction may have left files in the table's own directory: the abort cleaner deletes the files, and then its rows."""
DELETE_PARTITIONS = [
    sa.delete(table).where(
        *_of_table(table),
        Among(table.c.partition, "names"),
        *_deletable(table),
        *([_NOT_ABORTED] if table is transaction_components else ()),
    )
    for table in PARTITIONED
]


def invalidate(session: Session, catalog: str, database: str, table: str | None = None) -> None:
    """Invalidate the cached rows of a table or database, here and in other processes.

    Every function that renames or drops a table, or gives transactions other write ids in it, calls this one. It changes the queue of the
    database's locks right before the commit: from then on, requests for locks in the database wait.
    """
    if table is not None:
        session.caches.tables.discard((catalog, database, table))
    session.before_commit(locks.raise_changes, locks.queue(catalog, database))


def rename_table(session: Session, old: TableKey, new: TableKey) -> None:
    """Let the rows of a table follow it to another name or database."""
    names = {"new_database": new.database, "new_table": new.table}
    for room in MAKE_ROOM:
        session.enqueue(room, catalog_key=old.catalog, **names)
    for rename in RENAME_TABLE:
        session.enqueue(rename, **named(old), **names)
    for key in (old, new):
        invalidate(session, *key)


def delete_write_ids(session: Session, table: TableKey, transactions: Sequence[int] | None = None) -> None:
    """Remove the write ids of a table, or only those of some transactions (ascending), which then get other write ids."""
    write_ids_rows.delete(session, table, transactions)
    invalidate(session, *table)


def rename_partition(session: Session, table: TableKey, old: str, new: str) -> None:
    """Let the rows of a partition follow it to another name."""
    for statement in RENAME_PARTITION:
        session.enqueue(statement, **named(table), partition_key=old, new_partition=new)


def delete_table(session: Session, table: TableKey) -> None:
    """Remove the rows of a table that is dropped; a later one of that name begins with write id 1. Its locks stay until released."""
    for statement in DELETE_TABLE:
        session.enqueue(statement, **named(table))
    invalidate(session, *table)


def delete_database(session: Session, catalog: str, database: str) -> None:
    """Remove the rows of all tables of a database that is dropped."""
    for statement in DELETE_DATABASE:
        session.enqueue(statement, catalog_key=catalog, database_key=database)
    invalidate(session, catalog, database)


def delete_partitions(session: Session, table: TableKey, names: Sequence[str]) -> None:
    """Remove the rows of partitions that are dropped; the table's write ids stay."""
    for statement in DELETE_PARTITIONS:
        session.enqueue(statement, names=list(names), **named(table))
