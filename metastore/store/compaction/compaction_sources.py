"""Grounds of compactions and of their cleaning: completed writes, aborted transactions' writes, write ids; and the metrics of workers.

One function per statement. This module reads the rows of transactions and removes those that a finished cleaning makes useless.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import sqlalchemy as sa

from metastore.store.compaction.compactions import COMPACTION, OWNED, TRANSACTION, CompactedObject, is_object, named_object
from metastore.store.core.clauses import Among, constant
from metastore.store.core.database import Session
from metastore.store.drivers.contract import Row
from metastore.store.schema.model import compaction_metrics, compactions, transaction_components, transactions
from metastore.store.transactions.components import OF_TABLE, has_no_conflicts
from metastore.store.transactions.transactions import OPEN, min_open
from metastore.store.transactions.write_ids import is_table

COMPONENT, COMPACTION_METRIC = transaction_components.c, compaction_metrics.c
WRITTEN_SINCE = (
    sa.select(COMPONENT.catalog, COMPONENT.database, COMPONENT.table, COMPONENT.partition)
    .where(COMPONENT.committed_ms >= sa.bindparam("since"), COMPONENT.table.is_not(None))
    .distinct()
)
ENDED_SINCE = (
    sa.select(COMPACTION.catalog, COMPACTION.database, COMPACTION.table, COMPACTION.partition)
    .where(Among(COMPACTION.state, "states"), sa.func.coalesce(COMPACTION.ended_ms, COMPACTION.committed_ms) >= sa.bindparam("since"))
    .distinct()
)
LAST = (
    sa.select(sa.func.max(COMPACTION.id).label("id"))
    .where(Among(COMPACTION.state, "ended"))
    .group_by(COMPACTION.catalog, COMPACTION.database, COMPACTION.table, COMPACTION.partition)
    .subquery("last_entry")
)
TRIED = (
    sa.select(COMPACTION.catalog, COMPACTION.database, COMPACTION.table, COMPACTION.partition)
    .select_from(compactions.join(LAST, LAST.c.id == COMPACTION.id))
    .where(Among(COMPACTION.state, "tried"))
)
ABORTED = (
    sa.select(
        COMPONENT.catalog,
        COMPONENT.database,
        COMPONENT.table,
        COMPONENT.partition,
        sa.func.min(TRANSACTION.started_ms),
        sa.func.count(sa.distinct(COMPONENT.transaction_id)),
    )
    .select_from(transactions.join(transaction_components, COMPONENT.transaction_id == TRANSACTION.id))
    .where(TRANSACTION.state == constant("a"), COMPONENT.table.is_not(None))
    .group_by(COMPONENT.catalog, COMPONENT.database, COMPONENT.table, COMPONENT.partition)
)
UNSETTLED = sa.union_all(
    *(
        sa.select(number, TRANSACTION.state)
        .select_from(joined)
        .where(*is_table(table.c), number <= sa.bindparam("high"), Among(TRANSACTION.state, "states"), TRANSACTION.state != constant("c"))
        for table, joined, number in OWNED
    )
)
STATES = sa.select(TRANSACTION.id, TRANSACTION.state, TRANSACTION.commit_id).where(Among(TRANSACTION.id, "keys"))
ABORTED_AT = (
    sa.select(COMPONENT.transaction_id, COMPONENT.operation, COMPONENT.write_id)
    .select_from(transaction_components.join(transactions, TRANSACTION.id == COMPONENT.transaction_id))
    .where(*is_object(COMPONENT), TRANSACTION.state == constant("a"))
)
_COMPLETED = (*is_object(COMPONENT), COMPONENT.committed_ms.is_not(None), has_no_conflicts(COMPONENT, sa.bindparam("min_open")))
DELETE_COMPLETED = sa.delete(transaction_components).where(*_COMPLETED, COMPONENT.write_id <= sa.bindparam("high"))
DELETE_TRANSACTIONS = sa.delete(transaction_components).where(
    Among(COMPONENT.transaction_id, "keys"),
    *OF_TABLE,
    COMPONENT.partition.is_not_distinct_from(sa.bindparam("partition_key")),
    sa.or_(COMPONENT.write_id.is_(None), ~Among(COMPONENT.write_id, "kept")),
)
DELETE_ALL_COMPLETED = sa.delete(transaction_components).where(*_COMPLETED)
METRIC = (
    COMPACTION_METRIC.database == sa.bindparam("database_key"),
    COMPACTION_METRIC.table == sa.bindparam("table_key"),
    COMPACTION_METRIC.partition == sa.bindparam("partition_key"),
    COMPACTION_METRIC.type == sa.bindparam("type_key"),
)
READ_METRIC = sa.select(COMPACTION_METRIC.version).where(*METRIC)
UPDATE_METRIC = (
    sa.update(compaction_metrics)
    .where(*METRIC, COMPACTION_METRIC.version == sa.bindparam("old_version"))
    .values(value=sa.bindparam("new_value"), threshold=sa.bindparam("new_threshold"), version=COMPACTION_METRIC.version + 1)
)
DELETE_METRIC = sa.delete(compaction_metrics).where(*METRIC)


class Aborted(NamedTuple):
    """The aborted transactions that wrote to one object: the time of the first one's beginning, in milliseconds, and their number."""

    object: CompactedObject
    first_started: int
    transactions: int


def written_since(session: Session, since: int) -> set[CompactedObject]:
    """Return the objects to which transactions wrote that were committed since a time in milliseconds."""
    return {CompactedObject(*row) for row in session.rows(WRITTEN_SINCE, since=since)}


def compacted_since(session: Session, since: int, states: Sequence[str]) -> set[CompactedObject]:
    """Return the objects with an entry that entered one of the states since a time in milliseconds."""
    return {CompactedObject(*row) for row in session.rows(ENDED_SINCE, since=since, states=list(states))}


def last_tried(session: Session, ended: Sequence[str], tried: Sequence[str]) -> set[CompactedObject]:
    """Return the objects whose last entry in the states `ended` is in one of the states `tried`."""
    return {CompactedObject(*row) for row in session.rows(TRIED, ended=list(ended), tried=list(tried))}


def aborted(session: Session) -> list[Aborted]:
    """Return the objects to which aborted transactions wrote."""
    return [Aborted(CompactedObject(*row[:4]), row[4], row[5]) for row in session.rows(ABORTED)]


def aborted_at(session: Session, where: CompactedObject) -> list[Row]:
    """Return (transaction, operation, write id) of the aborted writes to exactly one object."""
    return list(session.rows(ABORTED_AT, **named_object(where)))


def aborted_up_to(session: Session, where: CompactedObject, high: int) -> list[int]:
    """Return the aborted transactions, ascending, that wrote to exactly one object with a write id up to `high`."""
    return sorted({transaction for transaction, _, write_id in aborted_at(session, where) if write_id is not None and write_id <= high})


def unsettled(session: Session, where: CompactedObject, high: int, states: Sequence[str]) -> list[tuple[int, str]]:
    """Return (write id, state) of a table's write ids up to `high` whose transactions are in one of the states, but not committed."""
    rows = session.rows(UNSETTLED, **named_object(where), high=high, states=list(states))
    return [(write_id, state) for write_id, state in rows]


def transaction_states(session: Session, keys: Sequence[int]) -> dict[int, tuple[str, int | None]]:
    """Return (state, commit id where it is known) of the transactions that exist."""
    return {int(key): (str(state), commit) for key, state, commit in session.rows(STATES, keys=list(keys))} if keys else {}


def ended(session: Session, keys: Collection[int]) -> set[int]:
    """Return the ended ones of some transactions. One without a row has ended if it is below all open ones."""
    found, lowest = transaction_states(session, sorted(keys)), min_open(session)
    return {key for key in keys if (found[key][0] != OPEN if key in found else key < lowest)}


def delete_completed(session: Session, where: CompactedObject, high: int | None = None) -> None:
    """Remove an object's completed writes, up to a write id if one is given. Changes that an open transaction may conflict with stay."""
    if high is None:
        session.execute(DELETE_ALL_COMPLETED, **named_object(where), min_open=min_open(session))
    else:
        session.execute(DELETE_COMPLETED, **named_object(where), high=high, min_open=min_open(session))


def delete_transactions(session: Session, where: CompactedObject, keys: Sequence[int], kept: Sequence[int]) -> None:
    """Remove the components of transactions on exactly one object, except those with the write ids `kept`."""
    session.execute(DELETE_TRANSACTIONS, **named_object(where), keys=list(keys), kept=[-1, *kept])


def metric_version(session: Session, key: tuple[str, str, str, str]) -> int | None:
    """Return the version of a metric (database, table, partition or "", type), None when it is not there."""
    return session.number(READ_METRIC, **_metric(key))


def update_metric(session: Session, key: tuple[str, str, str, str], version: int, value: int, threshold: int | None) -> bool:
    """Change a metric if it still has the version; return whether it was changed."""
    return session.execute(UPDATE_METRIC, **_metric(key), old_version=version, new_value=value, new_threshold=threshold) > 0


def insert_metric(session: Session, key: tuple[str, str, str, str], value: int, threshold: int | None) -> None:
    """Add a metric with version 1."""
    database, table, partition, kind = key
    session.insert(
        compaction_metrics, database=database, table=table, partition=partition, type=kind, value=value, version=1, threshold=threshold
    )


def delete_metric(session: Session, key: tuple[str, str, str, str]) -> bool:
    """Remove a metric; return whether it existed."""
    return session.execute(DELETE_METRIC, **_metric(key)) > 0


def _metric(key: tuple[str, str, str, str]) -> dict[str, str]:
    return dict(zip(("database_key", "table_key", "partition_key", "type_key"), key, strict=True))
