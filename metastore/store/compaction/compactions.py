"""Rows of the compaction queue and its history, which are one table. One function per statement; the meaning of states is in
`rules.transactions.compactions`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import sqlalchemy as sa

from metastore.store.core import counters
from metastore.store.core.clauses import Among, constant
from metastore.store.core.database import Session
from metastore.store.drivers.contract import Row
from metastore.store.schema.model import compactions, transactions, write_id_counters, write_id_ranges, write_ids
from metastore.store.schema.model import counters as counter_rows
from metastore.store.transactions.write_ids import TableKey, is_table, named

COMPACTION, COUNTER, TRANSACTION = compactions.c, counter_rows.c, transactions.c
MUTEX = "compactions"
"""The counter that a transaction holds while it adds an entry, so that no object is queued twice."""

LAST_TRANSACTION = sa.select(COUNTER.value).where(COUNTER.name == constant("transaction")).scalar_subquery()
WITH_TRANSACTION = compactions.outerjoin(transactions, TRANSACTION.id == COMPACTION.transaction_id)


def is_object(of: Any) -> tuple[sa.ColumnElement[bool], ...]:
    """Return the conditions of rows of an object that `named_object` names."""
    return (*is_table(of), of.partition.is_not_distinct_from(sa.bindparam("partition_key")))


OF_OBJECT = (
    sa.select(COMPACTION.id, COMPACTION.state, COMPACTION.highest_write_id, sa.case((TRANSACTION.state == constant("o"), 1), else_=0))
    .select_from(WITH_TRANSACTION)
    .where(*is_object(COMPACTION), Among(COMPACTION.state, "states"))
    .order_by(COMPACTION.id)
)
NEXT = (
    sa.select(compactions)
    .where(
        COMPACTION.state == sa.bindparam("state_key"),
        sa.or_(COMPACTION.worker_version.is_(None), COMPACTION.worker_version != sa.bindparam("version_key")),
    )
    .order_by(COMPACTION.id)
    .limit(1)
)
FOR_POOL = COMPACTION.pool == sa.bindparam("pool_key")
FOR_NONE = sa.or_(COMPACTION.pool.is_(None), COMPACTION.enqueued_ms < sa.bindparam("before"))
PEEKS = {True: NEXT.where(FOR_POOL), False: NEXT.where(FOR_NONE)}
CLAIMS = {named: peek.with_for_update(skip_locked=True) for named, peek in PEEKS.items()}
OF_TRANSACTION = sa.select(compactions).where(COMPACTION.transaction_id == sa.bindparam("key")).limit(1)
NOTE_COMMIT = (
    sa.update(compactions)
    .where(COMPACTION.transaction_id == sa.bindparam("key"))
    .values(next_transaction_id=sa.bindparam("following"), committed_ms=sa.bindparam("now"))
)
LOCK = sa.select(compactions).where(COMPACTION.id == sa.bindparam("key")).with_for_update()
NAMED = sa.select(compactions).where(Among(COMPACTION.id, "keys"))
LOCK_NAMED = sa.select(compactions).where(Among(COMPACTION.id, "keys")).order_by(COMPACTION.id).with_for_update()
CLOCK = sa.select(LAST_TRANSACTION, TRANSACTION.state, TRANSACTION.commit_id).select_from(
    sa.select(constant(1).label("one")).subquery("single").outerjoin(transactions, TRANSACTION.id == sa.bindparam("key"))
)
READY = (
    sa.select(
        compactions,
        TRANSACTION.state,
        TRANSACTION.commit_id,
        LAST_TRANSACTION,
        sa.select(sa.func.min(TRANSACTION.id)).where(TRANSACTION.state == constant("o")).correlate(None).scalar_subquery(),
    )
    .select_from(WITH_TRANSACTION)
    .where(
        COMPACTION.state == sa.bindparam("state_key"),
        COMPACTION.id > sa.bindparam("after"),
        sa.or_(COMPACTION.retry_after_ms.is_(None), COMPACTION.retry_after_ms <= sa.bindparam("now")),
    )
    .order_by(COMPACTION.id)
    .limit(200)
)
SILENT = (
    COMPACTION.state == sa.bindparam("state_key"),
    COMPACTION.started_ms < sa.bindparam("since"),
    sa.or_(COMPACTION.heartbeat_ms.is_(None), COMPACTION.heartbeat_ms < sa.bindparam("since")),
    ~sa.exists(
        sa.select(constant(1))
        .select_from(transactions)
        .where(
            TRANSACTION.id == COMPACTION.transaction_id,
            TRANSACTION.state == constant("o"),
            TRANSACTION.heartbeat_ms >= sa.bindparam("since"),
        )
    ),
)
IS_SILENT = sa.select(COMPACTION.id).where(*SILENT).limit(1)
REVOKE = (
    sa.update(compactions)
    .where(*SILENT)
    .values(
        state=sa.bindparam("new_state"),
        worker=sa.null(),
        worker_version=sa.null(),
        started_ms=sa.null(),
        heartbeat_ms=sa.null(),
        transaction_id=sa.null(),
        highest_write_id=sa.null(),
        hadoop_job=sa.null(),
        next_transaction_id=sa.null(),
        committed_ms=sa.null(),
    )
)
WRITE_ID, WRITE_ID_RANGE = write_ids.c, write_id_ranges.c
OWNED: tuple[tuple[sa.Table, sa.Join, sa.ColumnElement[int]], ...] = (
    (write_ids, write_ids.join(transactions, TRANSACTION.id == WRITE_ID.transaction_id), WRITE_ID.write_id),
    (
        write_id_ranges,
        write_id_ranges.join(
            transactions, sa.and_(TRANSACTION.id >= WRITE_ID_RANGE.first_transaction, TRANSACTION.id <= WRITE_ID_RANGE.last_transaction)
        ),
        WRITE_ID_RANGE.first_write_id + (TRANSACTION.id - WRITE_ID_RANGE.first_transaction),
    ),
)
"""The tables of write ids, single or in ranges: each with its join to transactions, and the write id of a row of the join."""

_LOWEST_OPEN = sa.union_all(
    *(
        sa.select(sa.func.min(number).label("number"))
        .select_from(joined)
        .where(
            *is_table(table.c),
            TRANSACTION.state == constant("o"),
        )
        for table, joined, number in OWNED
    )
).subquery("lowest_open")
WATERMARK = sa.select(
    sa.select(sa.func.min(_LOWEST_OPEN.c.number)).scalar_subquery(),
    sa.select(write_id_counters.c.next).where(*is_table(write_id_counters.c)).scalar_subquery(),
)
LATEST = (
    sa.select(COMPACTION.id, COMPACTION.partition, COMPACTION.type)
    .where(*is_table(COMPACTION), Among(COMPACTION.state, "states"), COMPACTION.id > sa.bindparam("after"))
    .order_by(COMPACTION.id.desc())
)
DELETE = sa.delete(compactions).where(Among(COMPACTION.id, "keys"))
DELETE_OF_OBJECT = sa.delete(compactions).where(
    *is_object(COMPACTION), COMPACTION.type == sa.bindparam("type_key"), Among(COMPACTION.state, "states")
)
_CHANGED = compactions.alias("changed")
HISTORY = (
    sa.select(
        COMPACTION.id,
        COMPACTION.catalog,
        COMPACTION.database,
        COMPACTION.table,
        COMPACTION.partition,
        COMPACTION.state,
        COMPACTION.type,
        sa.func.coalesce(COMPACTION.started_ms, COMPACTION.enqueued_ms),
    )
    .where(
        Among(COMPACTION.state, "states"),
        sa.tuple_(COMPACTION.database, COMPACTION.table).in_(
            sa.select(_CHANGED.c.database, _CHANGED.c.table).where(_CHANGED.c.ended_ms >= sa.bindparam("since"))
        ),
    )
    .order_by(COMPACTION.catalog, COMPACTION.database, COMPACTION.table, COMPACTION.partition, COMPACTION.id.desc())
)
OF_TABLE = sa.select(compactions).where(*is_table(COMPACTION)).order_by(COMPACTION.id.desc())
_ENDED, _STARTED, _COMMITTED = (
    sa.func.coalesce(column, -1) for column in (COMPACTION.ended_ms, COMPACTION.started_ms, COMPACTION.committed_ms)
)
BY_TIME = (
    sa.case((sa.and_(_ENDED > _STARTED, _ENDED > _COMMITTED), _ENDED), (_STARTED > _COMMITTED, _STARTED), else_=_COMMITTED).desc(),
    COMPACTION.enqueued_ms,
)
"""Hive's own order: by the time of the last change, descending. Waiting entries are last, the oldest of them first."""


class CompactedObject(NamedTuple):
    """The compacted object: a table, or one of its partitions if that is set."""

    catalog: str
    database: str
    table: str
    partition: str | None

    def __str__(self) -> str:
        return ".".join(self[:3]) + (f" partition {self.partition}" if self.partition is not None else "")


class QueueEntry(NamedTuple):
    """A row of the queue or its history; times in milliseconds."""

    id: int
    catalog: str
    database: str
    table: str
    partition: str | None
    type: str
    state: str
    pool: str | None
    properties: str | None
    buckets: int | None
    order_by: str | None
    enqueued: int
    started: int | None
    heartbeat: int | None
    ended: int | None
    cleaner_started: int | None
    committed: int | None
    retry_after: int | None
    retries: int
    initiator: str | None
    initiator_version: str | None
    worker: str | None
    worker_version: str | None
    run_as: str | None
    hadoop_job: str | None
    transaction: int | None
    highest_write_id: int | None
    next_transaction: int | None
    error: str | None

    @property
    def object(self) -> CompactedObject:
        return CompactedObject(self.catalog, self.database, self.table, self.partition)


class Clock(NamedTuple):
    """The last transaction id issued, and the state and commit id of one transaction (None where it is not there), at one moment."""

    last: int
    state: str | None
    commit_id: int | None


class Ready(NamedTuple):
    """An entry that waits for the cleaner, with its worker's transaction and the lowest id of all open and later transactions."""

    entry: QueueEntry
    clock: Clock
    lowest_open: int


def named_object(where: CompactedObject) -> dict[str, Any]:
    """Return the parameters of a statement that name an object."""
    return {**named(TableKey(*where[:3])), "partition_key": where.partition}


def take_turn(session: Session) -> None:
    """Wait until no other transaction adds an entry."""
    counters.lock(session, MUTEX)


def of_object(session: Session, where: CompactedObject, states: Sequence[str]) -> list[Row]:
    """Return (id, state, highest write id, whether the worker's transaction is open) of an object's entries in these states, by id."""
    return list(session.rows(OF_OBJECT, **named_object(where), states=list(states)))


def watermark(session: Session, where: CompactedObject) -> int:
    """Return the write id of a table up to which all are committed or aborted: a compaction that begins now reaches it."""
    lowest_open, following = session.rows(WATERMARK, **named_object(where._replace(partition=None)))[0]
    return int(lowest_open) - 1 if lowest_open is not None else (following or 1) - 1


def insert(session: Session, where: CompactedObject, kind: str, state: str, values: Mapping[str, Any]) -> int:
    """Add an entry; `values` by column. Return its id."""
    return session.insert_keyed(compactions, **where._asdict(), type=kind, state=state, **values).key


def insert_many(session: Session, rows: Sequence[Mapping[str, Any]]) -> None:
    """Add entries with one statement; each has the same columns."""
    if rows:
        names = tuple(rows[0])
        session.insert_many(compactions, names, [tuple(row[name] for name in names) for row in rows])


def peek(session: Session, state: str, pool: str | None, before: int, version: str | None) -> bool:
    """Return whether an entry in a state waits for a worker of a pool.

    Without a pool it is an entry that names none, or one that was queued before the time `before`, in milliseconds. Entries that a worker
    of the same `version` has put back do not count.
    """
    return session.exists(PEEKS[pool is not None], **_wanted(state, pool, before, version))


def lock_next(session: Session, state: str, pool: str | None, before: int, version: str | None) -> QueueEntry | None:
    """Lock the first entry that `peek` would find and nobody else holds."""
    row = session.row(CLAIMS[pool is not None], **_wanted(state, pool, before, version))
    return None if row is None else QueueEntry(*row)


def _wanted(state: str, pool: str | None, before: int, version: str | None) -> dict[str, Any]:
    return {"state_key": state, "version_key": version or "", **({"before": before} if pool is None else {"pool_key": pool})}


def lock(session: Session, key: int) -> QueueEntry | None:
    """Lock an entry and return it, None when it is not there."""
    row = session.row(LOCK, key=key)
    return None if row is None else QueueEntry(*row)


def find(session: Session, keys: Sequence[int]) -> list[QueueEntry]:
    """Return the entries that exist."""
    return [QueueEntry(*row) for row in session.rows(NAMED, keys=list(keys))]


def lock_all(session: Session, keys: Sequence[int]) -> list[QueueEntry]:
    """Lock entries and return the existing ones."""
    return [QueueEntry(*row) for row in session.rows(LOCK_NAMED, keys=list(keys))]


@cache
def _update(names: frozenset[str]) -> Any:
    values: dict[str, Any] = {name: sa.bindparam(f"new_{name}") for name in sorted(names)}
    return sa.update(compactions).where(Among(COMPACTION.id, "keys"), Among(COMPACTION.state, "states")).values(values)


def update(session: Session, keys: Sequence[int], states: Sequence[str], **values: Any) -> int:
    """Change the entries that are still in one of the states; return the number of changed ones."""
    return session.execute(
        _update(frozenset(values)), keys=list(keys), states=list(states), **{f"new_{name}": value for name, value in values.items()}
    )


def of_transaction(session: Session, transaction: int) -> QueueEntry | None:
    """Return the entry on which a worker works, or worked, in a transaction."""
    row = session.row(OF_TRANSACTION, key=transaction)
    return None if row is None else QueueEntry(*row)


def note_commit(session: Session, transaction: int, following: int, now: int) -> None:
    """Note the commit of a transaction at the time `now`, and the first transaction that sees it, on its entry if it has one."""
    session.execute(NOTE_COMMIT, key=transaction, following=following, now=now)


def clock(session: Session, transaction: int | None) -> Clock:
    """Return the last transaction id and the state of a transaction, both at the same moment."""
    last, state, commit_id = session.rows(CLOCK, key=transaction or 0)[0]
    return Clock(last or 0, state, commit_id)


def ready(session: Session, state: str, now: int, after: int) -> list[Ready]:
    """Return up to 200 entries in a state with a larger id than `after` whose pause is over, ascending by id."""
    out = []
    for *values, transaction_state, commit_id, last, lowest_open in session.rows(READY, state_key=state, now=now, after=after):
        at = Clock(last or 0, transaction_state, commit_id)
        out.append(Ready(QueueEntry(*values), at, at.last + 1 if lowest_open is None else lowest_open))
    return out


def is_silent(session: Session, state: str, since: int) -> bool:
    """Return whether `revoke` would find an entry."""
    return session.exists(IS_SILENT, state_key=state, since=since)


def revoke(session: Session, state: str, new_state: str, since: int) -> int:
    """Give back entries whose worker has sent no heartbeat since a time, for itself or for its transaction; return their number."""
    return session.execute(REVOKE, state_key=state, new_state=new_state, since=since)


@cache
def _show(filters: frozenset[str], order: tuple[tuple[str, bool], ...], limited: bool) -> Any:
    clause = sa.select(compactions).where(*(COMPACTION[name] == sa.bindparam(f"{name}_key") for name in sorted(filters)))
    by = [COMPACTION[name].desc() if descending else COMPACTION[name].asc() for name, descending in order]
    ordered = clause.order_by(*(by or BY_TIME), COMPACTION.id)
    return ordered.limit(sa.bindparam("most")) if limited else ordered


def show(
    session: Session, filters: Mapping[str, Any], order: Sequence[tuple[str, bool]] = (), limit: int | None = None
) -> list[QueueEntry]:
    """Return the entries whose columns equal `filters`, ordered by columns (True is descending) or else by Hive's order."""
    clause = _show(frozenset(filters), tuple(order), limit is not None)
    values = {f"{name}_key": value for name, value in filters.items()} | ({} if limit is None else {"most": limit})
    return [QueueEntry(*row) for row in session.rows(clause, **values)]


def latest(session: Session, where: CompactedObject, states: Sequence[str], after: int) -> list[Row]:
    """Return (id, partition, type) of a table's entries in these states with a larger id than `after`, the last first."""
    return list(session.rows(LATEST, **named_object(where), states=list(states), after=after))


def delete(session: Session, keys: Sequence[int]) -> None:
    """Remove entries."""
    session.execute(DELETE, keys=list(keys))


def delete_of_object(session: Session, where: CompactedObject, kind: str, states: Sequence[str]) -> None:
    """Remove an object's entries of a type in these states."""
    session.execute(DELETE_OF_OBJECT, **named_object(where), type_key=kind, states=list(states))


def history(session: Session, states: Sequence[str], since: int) -> Sequence[Row]:
    """Return (id, catalog, database, table, partition, state, type, start) of entries in these states, by object and the last first.

    Only tables with an entry that ended at or after `since` count. The start of an entry that was never started is the time when it was
    queued.
    """
    return session.rows(HISTORY, states=list(states), since=since)


def of_table(session: Session, catalog: str, database: str, table: str) -> list[QueueEntry]:
    """Return all entries of a table and its partitions, the last first."""
    return [QueueEntry(*row) for row in session.rows(OF_TABLE, **named(TableKey(catalog, database, table)))]
