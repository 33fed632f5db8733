"""Remove rows of transactions, a batch at a time. `service.transactions.house_keeping` decides which are not needed any more."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from metastore.store.core.clauses import Among, constant
from metastore.store.core.database import Session
from metastore.store.schema.model import replicated_transactions, transaction_components, transactions, write_id_ranges, write_ids
from metastore.store.transactions.components import has_no_conflicts
from metastore.store.transactions.transactions import ABORTED, COMMITTED, OPEN, WROTE
from metastore.store.transactions.write_ids import LAST_OF_RANGE, NAMES, TableKey, is_table, named

TRANSACTION, COMPONENT = transactions.c, transaction_components.c
WRITE_ID, WRITE_ID_RANGE = write_ids.c, write_id_ranges.c
_STATES = {state: constant(state) for state in (OPEN, ABORTED, COMMITTED)}
_ONE = constant(1)
_WROTE = TRANSACTION.holds.bitwise_and(constant(WROTE)) != constant(0)
_SEEN_BY_ALL = sa.and_(TRANSACTION.commit_id.is_not(None), TRANSACTION.commit_id < sa.bindparam("min_open"))
UNMARKED = (
    sa.select(TRANSACTION.id)
    .where(TRANSACTION.state == _STATES[COMMITTED], TRANSACTION.commit_id.is_(None), _WROTE)
    .order_by(TRANSACTION.id)
    .limit(sa.bindparam("most"))
)
MARK = sa.update(transactions).where(Among(TRANSACTION.id, "keys")).values(commit_id=sa.bindparam("number"))
COMMITTED_BEFORE = (
    sa.select(TRANSACTION.id)
    .where(TRANSACTION.state == _STATES[COMMITTED], TRANSACTION.ended_ms < sa.bindparam("before"), sa.or_(sa.not_(_WROTE), _SEEN_BY_ALL))
    .order_by(TRANSACTION.id)
    .limit(sa.bindparam("most"))
)
EMPTY_ABORTED = (
    sa.select(TRANSACTION.id)
    .where(
        TRANSACTION.state == _STATES[ABORTED],
        TRANSACTION.ended_ms < sa.bindparam("before"),
        ~sa.exists(sa.select(_ONE).where(COMPONENT.transaction_id == TRANSACTION.id)),
    )
    .order_by(TRANSACTION.id)
    .limit(sa.bindparam("most"))
)
DELETE = sa.delete(transactions).where(Among(TRANSACTION.id, "keys"))
DELETE_TARGETS = sa.delete(replicated_transactions).where(Among(replicated_transactions.c.transaction_id, "keys"))
LOWEST_NEEDED = sa.select(sa.func.min(TRANSACTION.id)).where(
    sa.or_(
        TRANSACTION.state.in_([_STATES[OPEN], _STATES[ABORTED]]),
        sa.and_(TRANSACTION.state == _STATES[COMMITTED], _WROTE, sa.not_(_SEEN_BY_ALL)),
    )
)
_LOW, _LAST = (sa.bindparam(name, type_=sa.BigInteger()) for name in ("low", "last"))
_STAYING = (
    sa.union_all(
        sa.select(*(WRITE_ID[name] for name in NAMES), WRITE_ID.write_id.label("number")).where(WRITE_ID.transaction_id >= _LOW),
        sa.select(*(WRITE_ID_RANGE[name] for name in NAMES), WRITE_ID_RANGE.first_write_id).where(WRITE_ID_RANGE.last_transaction >= _LOW),
    )
    .subquery("staying")
    .c
)
_KEPT = (
    sa.select(*(_STAYING[name] for name in NAMES), sa.func.min(_STAYING.number).label("lowest"))
    .group_by(*(_STAYING[name] for name in NAMES))
    .subquery("kept")
)
_GOING = sa.union_all(
    sa.select(*(WRITE_ID[name] for name in NAMES), WRITE_ID.write_id.label("number")).where(WRITE_ID.transaction_id < _LOW),
    sa.select(*(WRITE_ID_RANGE[name] for name in NAMES), LAST_OF_RANGE).where(WRITE_ID_RANGE.last_transaction < _LOW),
).subquery("going")
FREE = (
    sa.select(*_GOING.c)
    .select_from(_GOING.outerjoin(_KEPT, sa.and_(*(_GOING.c[name] == _KEPT.c[name] for name in NAMES))))
    .where(sa.or_(_KEPT.c.lowest.is_(None), _GOING.c.number < _KEPT.c.lowest))
    .order_by(*_GOING.c)
    .limit(sa.bindparam("most"))
)
DELETE_WRITE_IDS = (
    sa.delete(write_ids).where(*is_table(WRITE_ID), WRITE_ID.write_id <= _LAST, WRITE_ID.transaction_id < _LOW),
    sa.delete(write_id_ranges).where(*is_table(WRITE_ID_RANGE), LAST_OF_RANGE <= _LAST, WRITE_ID_RANGE.last_transaction < _LOW),
)

_RANKED = (
    sa.select(
        COMPONENT.id,
        COMPONENT.commit_id,
        sa.func.row_number()
        .over(
            partition_by=[*(COMPONENT[name] for name in NAMES), COMPONENT.partition, COMPONENT.operation, COMPONENT.write_id.is_(None)],
            order_by=[COMPONENT.write_id.desc(), COMPONENT.id.desc()],
        )
        .label("place"),
    )
    .where(COMPONENT.committed_ms.is_not(None))
    .subquery("ranked")
    .c
)
SUPERSEDED = (
    sa.select(_RANKED.id).where(_RANKED.place > _ONE, has_no_conflicts(_RANKED, sa.bindparam("min_open"))).limit(sa.bindparam("most"))
)
DELETE_COMPONENTS = sa.delete(transaction_components).where(Among(COMPONENT.id, "keys"))


def unmarked(session: Session, most: int) -> list[int]:
    """Return committed transactions with writes and without a mark."""
    return session.column(UNMARKED, most=most)


def mark(session: Session, keys: Sequence[int], number: int) -> None:
    """Note a mark that was read after the transactions were seen committed: transactions that open above it see their writes."""
    session.execute(MARK, keys=list(keys), number=number)


def committed_before(session: Session, before: int, min_open: int, most: int) -> list[int]:
    """Return transactions committed before a time in milliseconds whose writes every open one sees."""
    return session.column(COMMITTED_BEFORE, before=before, min_open=min_open, most=most)


def empty_aborted(session: Session, before: int, most: int) -> list[int]:
    """Return transactions aborted before a time in milliseconds that left nothing to clean."""
    return session.column(EMPTY_ABORTED, before=before, most=most)


def delete_transactions(session: Session, keys: Sequence[int]) -> None:
    """Remove ended transactions."""
    session.execute(DELETE_TARGETS, keys=list(keys))
    session.execute(DELETE, keys=list(keys))


def lowest_needed(session: Session, min_open: int) -> int | None:
    """Return the lowest transaction that is open, aborted, or not seen as committed by every open one."""
    return session.number(LOWEST_NEEDED, min_open=min_open)


def free_write_ids(session: Session, low: int, most: int) -> list[tuple[TableKey, int]]:
    """Return write ids of transactions below an id that can be removed, by table and ascending; of a whole range, the last one.

    A table's write ids are removed in their order: missing ones count as seen, so none may be removed before a lower one that is not seen.
    """
    return [(TableKey(*table), int(write_id)) for *table, write_id in session.rows(FREE, low=low, most=most)]


def delete_write_ids(session: Session, low: int, found: Sequence[tuple[TableKey, int]]) -> None:
    """Remove these write ids and all lower ones of transactions below an id.

    A table that was made again since then gives the same numbers to later transactions, which keep them.
    """
    up_to = [{**named(key), "last": last, "low": low} for key, last in dict(found).items()]
    for statement in DELETE_WRITE_IDS:
        session.executemany(statement, up_to)


def superseded(session: Session, min_open: int, most: int) -> list[int]:
    """Return completed components with which no open transaction may conflict, and that have a later one of the same object and operation.

    A later component has the higher write id; components of clients before Hive 3, which have none, are ordered by key.
    """
    return session.column(SUPERSEDED, min_open=min_open, most=most)


def delete_components(session: Session, keys: Sequence[int]) -> None:
    """Remove components."""
    session.execute(DELETE_COMPONENTS, keys=list(keys))
