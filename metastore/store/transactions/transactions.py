"""Rows of transactions. One function per statement; `service.transactions.commit` decides whether one may commit.

Ids come from a counter whose row is held until the new rows are committed, so a reader that sees an id as the highest sees all lower ones
too. Rows are locked in this order: databases, tables and partitions; transactions, ascending; lock queues; write id counters, ascending;
the counter of transaction ids; components. Nothing else is waited for while one is held.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

import orjson
import sqlalchemy as sa

from metastore.idl import TxnType
from metastore.store.core import counters
from metastore.store.core.clauses import Among, bare, constant, listed, unsynced
from metastore.store.core.database import Session
from metastore.store.drivers.answer import Later
from metastore.store.schema.model import counters as counter_rows
from metastore.store.schema.model import locks, materialization_rebuilds, min_history, replicated_transactions, transactions

OPEN, ABORTED, COMMITTED = "o", "a", "c"
OF_COMPACTIONS = frozenset({TxnType.COMPACTION, TxnType.REBALANCE_COMPACTION, TxnType.SOFT_DELETE})
"""Types of transactions that may have an entry in the compaction queue."""
LOCKS, COMPONENTS, HISTORY, WRITE_IDS, REBUILD, RANGES = 1, 2, 4, 8, 16, 32
"""Bits of the column `holds`: other tables in which there may be rows of the transaction. The end of one without bits is one statement.

RANGES is set where several transactions are opened at once, and never later: each of them may be within a range of `write_id_ranges`.
"""

WROTE = COMPONENTS | WRITE_IDS | RANGES

TRANSACTION, COUNTER, REPLICATED = transactions.c, counter_rows.c, replicated_transactions.c


def _is(state: str) -> sa.ColumnElement[bool]:
    return TRANSACTION.state == constant(state)


def is_open(of: Any) -> sa.ColumnElement[bool]:
    """Return the condition of open transactions for a query that finds them by their ids, and not among all open ones."""
    return bare(of.state) == constant(OPEN)


def may_be_range(lowest: sa.ColumnElement[int], highest: sa.ColumnElement[int]) -> tuple[sa.ColumnElement[bool], ...]:
    """Return the conditions of the transactions from one id to another that may be given write ids as a range."""
    return (
        TRANSACTION.id >= lowest,
        TRANSACTION.id <= highest,
        IS_OPEN,
        TRANSACTION.type != constant(TxnType.READ_ONLY),
        TRANSACTION.holds.bitwise_and(constant(RANGES)) != constant(0),
    )


IS_OPEN = is_open(TRANSACTION)
COLUMNS = ("id", "state", "type", "user", "host", "agent", "started_ms", "heartbeat_ms", "holds")
FIELDS = (TRANSACTION.id, TRANSACTION.state, TRANSACTION.type, TRANSACTION.holds, TRANSACTION.heartbeat_ms)
FIND = sa.select(*FIELDS).where(TRANSACTION.id == sa.bindparam("key"))
LOCK = FIND.with_for_update()
LOCK_MANY = sa.select(*FIELDS).where(Among(TRANSACTION.id, "keys")).order_by(TRANSACTION.id).with_for_update()
RANGE = sa.select(TRANSACTION.id, TRANSACTION.state).where(TRANSACTION.id >= sa.bindparam("low"), TRANSACTION.id <= sa.bindparam("high"))
OPEN_COUNT = sa.select(sa.func.count()).select_from(transactions).where(_is(OPEN))
LOWEST_OPEN = sa.select(sa.func.min(TRANSACTION.id)).where(_is(OPEN))
MIN_OPEN = sa.select(sa.func.coalesce(LOWEST_OPEN.scalar_subquery(), COUNTER.value + constant(1))).where(
    COUNTER.name == constant(counters.TRANSACTION)
)
END = (
    sa.update(transactions)
    .where(Among(TRANSACTION.id, "keys"))
    .values(
        state=sa.bindparam("new_state"),
        ended_ms=sa.bindparam("now"),
        commit_id=sa.bindparam("number"),
        holds=TRANSACTION.holds.bitwise_and(constant(WROTE)),
    )
)
HEARTBEAT = unsynced(sa.update(transactions).where(TRANSACTION.id == sa.bindparam("key"), IS_OPEN).values(heartbeat_ms=sa.bindparam("now")))
HEARTBEAT_RANGE = (
    sa.update(transactions)
    .where(TRANSACTION.id >= sa.bindparam("low"), TRANSACTION.id <= sa.bindparam("high"), _is(OPEN))
    .values(heartbeat_ms=sa.bindparam("now"))
)
_MORE_HOLDS = TRANSACTION.holds.bitwise_or(sa.bindparam("bits", type_=sa.Integer()))
ADD_HOLDS = (
    sa.update(transactions)
    .where(TRANSACTION.id == sa.bindparam("key"), IS_OPEN)
    .values(heartbeat_ms=sa.bindparam("now"), holds=_MORE_HOLDS)
)
ADD_HOLDS_OF_MANY = sa.update(transactions).where(Among(TRANSACTION.id, "keys")).values(holds=_MORE_HOLDS)
DELETE_HELD = {
    LOCKS: sa.delete(locks).where(Among(locks.c.transaction_id, "keys")),
    HISTORY: sa.delete(min_history).where(Among(min_history.c.transaction_id, "keys")),
    REBUILD: sa.delete(materialization_rebuilds).where(Among(materialization_rebuilds.c.transaction_id, "keys")),
}
TIMED_OUT = (
    sa.select(TRANSACTION.id)
    .where(
        _is(OPEN),
        sa.or_(
            sa.and_(TRANSACTION.type != TxnType.REPL_CREATED, TRANSACTION.heartbeat_ms < sa.bindparam("since")),
            sa.and_(TRANSACTION.type == TxnType.REPL_CREATED, TRANSACTION.heartbeat_ms < sa.bindparam("since_replicated")),
        ),
    )
    .order_by(TRANSACTION.id)
    .limit(sa.bindparam("most"))
)
SHOWN = (
    TRANSACTION.id,
    TRANSACTION.state,
    TRANSACTION.user,
    TRANSACTION.host,
    TRANSACTION.agent,
    TRANSACTION.started_ms,
    TRANSACTION.heartbeat_ms,
)
TARGETS = sa.select(REPLICATED.source_id, REPLICATED.transaction_id).where(REPLICATED.policy == sa.bindparam("policy_key"))
TARGETS_OF = TARGETS.where(Among(REPLICATED.source_id, "sources"))
DELETE_TARGET = sa.delete(replicated_transactions).where(
    REPLICATED.policy == sa.bindparam("policy_key"), REPLICATED.source_id == sa.bindparam("source")
)


_MARK = "m"
"""The text in the row of the mark that is in place of a state."""


def _snapshot(*where: sa.ColumnElement[bool]) -> sa.CompoundSelect[Any]:
    """Return the query of a row with the mark and the lowest open id, and of one for each state: the number of ids, and all as one text.

    A row for each id would take ten times as long if there are a hundred thousand.
    """
    ids = listed(sa.cast(TRANSACTION.id, sa.String()))
    return sa.union_all(
        sa.select(constant(_MARK), COUNTER.value, sa.cast(LOWEST_OPEN.scalar_subquery(), sa.String())).where(
            COUNTER.name == sa.bindparam("counter")
        ),
        *(
            sa.select(constant(state), sa.func.count(), ids).select_from(transactions).where(_is(state), *where)
            for state in (OPEN, ABORTED)
        ),
    )


SNAPSHOT = _snapshot()
SNAPSHOT_WITHOUT = _snapshot(sa.not_(Among(TRANSACTION.type, "types")))
INFO = (
    sa.select(COUNTER.value, *SHOWN)
    .select_from(counter_rows.outerjoin(transactions, TRANSACTION.state.in_([constant(OPEN), constant(ABORTED)])))
    .where(COUNTER.name == sa.bindparam("counter"))
    .order_by(TRANSACTION.id)
)


class StoredTransaction(NamedTuple):
    """The facts that decide over a transaction; times in milliseconds, `holds` are the bits above."""

    id: int
    state: str
    type: int
    holds: int
    heartbeat: int


class Exceptions(NamedTuple):
    """The parts of a snapshot. The ids are in no order. `min_open` counts also the types that are left out of them."""

    mark: int
    min_open: int | None
    open: list[int]
    aborted: list[int]


class Shown(NamedTuple):
    """The shown fields of a transaction; times in milliseconds."""

    id: int
    state: str
    user: str | None
    host: str | None
    agent: str | None
    started: int
    heartbeat: int


Who = tuple[str | None, str | None, str | None]
"""User, host and agent of a request."""


def take_ids(session: Session, count: int) -> Later[range]:
    """Take ids, together with the next statement. Other calls wait for theirs until the transaction ends."""
    answer = counters.take(session, counters.NUMBERS, count, name=counters.TRANSACTION)
    return lambda: range(counters.taken(answer) - count + 1, counters.taken(answer) + 1)


def lowest_open(session: Session) -> int | None:
    """Return the lowest open id."""
    return session.number(LOWEST_OPEN)


def min_open(session: Session) -> int:
    """Return the lowest id that is open or yet to be issued."""
    return session.number(MIN_OPEN) or 1


def open_count(session: Session) -> int:
    """Return the number of open transactions."""
    return session.number(OPEN_COUNT) or 0


def insert(session: Session, ids: Collection[int], state: str, kind: int, who: Who, now: int) -> None:
    """Add transactions."""
    holds = RANGES if len(ids) > 1 else 0
    session.enqueue_insert(transactions, COLUMNS, [(id_, state, kind, *who, now, now, holds) for id_ in ids])


def find(session: Session, key: int) -> StoredTransaction | None:
    """Return a transaction."""
    row = session.row(FIND, key=key)
    return None if row is None else StoredTransaction(*row)


def lock(session: Session, key: int) -> Later[StoredTransaction | None]:
    """Return a transaction and keep it from being changed, together with the next statement."""
    answer = session.enqueue(LOCK, key=key)
    return lambda: StoredTransaction(*answer.rows[0]) if answer.rows else None


def lock_many(session: Session, keys: Collection[int]) -> Later[list[StoredTransaction]]:
    """Return the existing ones of some transactions, ascending, and keep them from being changed, together with the next statement."""
    answer = session.enqueue(LOCK_MANY, keys=sorted(set(keys)))
    return lambda: [StoredTransaction(*row) for row in answer.rows]


def end(session: Session, ended: Sequence[StoredTransaction], state: str, now: int, commit_id: int | None = None) -> None:
    """End locked transactions, with their locks and other rows; their components are left to others."""
    keys = [each.id for each in ended]
    holds = 0
    for each in ended:
        holds |= each.holds
    for bit, statement in DELETE_HELD.items():
        if holds & bit:
            session.enqueue(statement, keys=keys)
    session.enqueue(END, keys=keys, new_state=state, now=now, number=commit_id)


def heartbeat(session: Session, key: int, now: int) -> bool:
    """Note a heartbeat of a transaction, in a database transaction of its own; return whether it is open."""
    return session.execute(HEARTBEAT, key=key, now=now) > 0


def heartbeat_range(session: Session, low: int, high: int, now: int) -> int:
    """Note a heartbeat of the open transactions from `low` to `high`, both included; return their number."""
    return session.execute(HEARTBEAT_RANGE, low=low, high=high, now=now)


def states(session: Session, low: int, high: int) -> dict[int, str]:
    """Return the states of the transactions of a range, both ends included, that exist."""
    return dict(session.rows(RANGE, low=low, high=high))


def add_holds(session: Session, key: int, bits: int, now: int) -> Later[bool]:
    """Note that an open transaction has rows elsewhere, and its heartbeat, together with the next statement.

    The transaction is locked; the answer is whether it is open.
    """
    answer = session.enqueue(ADD_HOLDS, key=key, bits=bits, now=now)
    return lambda: answer.count > 0


def add_holds_of_many(session: Session, keys: Sequence[int], bits: int) -> None:
    """Note that there are rows elsewhere of transactions that are locked."""
    session.enqueue(ADD_HOLDS_OF_MANY, keys=list(keys), bits=bits)


def timed_out(session: Session, since: int, since_replicated: int, most: int) -> list[int]:
    """Return open transactions whose last heartbeat is before `since` (`since_replicated` for replicated ones), the lowest first."""
    return session.column(TIMED_OUT, since=since, since_replicated=since_replicated, most=most)


def exceptions(session: Session, without: Collection[int] = ()) -> Exceptions:
    """Return the highest id and all open or aborted transactions, except the types `without`, at one moment."""
    if without:
        rows = session.rows(SNAPSHOT_WITHOUT, counter=counters.TRANSACTION, types=list(without))
    else:
        rows = session.rows(SNAPSHOT, counter=counters.TRANSACTION)
    found = {state: (number, text) for state, number, text in rows}
    mark, lowest = found.get(_MARK, (0, None))
    return Exceptions(int(mark), None if lowest is None else int(lowest), _numbers(*found[OPEN]), _numbers(*found[ABORTED]))


def _numbers(count: int, text: str | None) -> list[int]:
    if (text.count(",") + 1 if text else 0) != count:
        raise OverflowError(f"the database cut a list of {count} transactions: raise its max_allowed_packet")
    found: list[int] = orjson.loads(f"[{text or ''}]")
    return found


def shown(session: Session) -> tuple[int, list[Shown]]:
    """Return the highest id and all open or aborted transactions, ascending."""
    rows = session.rows(INFO, counter=counters.TRANSACTION)
    return (int(rows[0][0]) if rows else 0), [Shown(*row[1:]) for row in rows if row[1] is not None]


def targets(session: Session, policy: str, sources: Sequence[int] | None = None) -> dict[int, int]:
    """Return the transactions of a policy that replicate others, by the ids at their source: all, or the ones of some ids."""
    if sources is None:
        return dict(session.rows(TARGETS, policy_key=policy))
    return dict(session.rows(TARGETS_OF, policy_key=policy, sources=list(sources)))


def insert_targets(session: Session, policy: str, pairs: Iterable[tuple[int, int]]) -> None:
    """Note the transactions that replicate others: pairs of the id at the source and the id here."""
    session.insert_many(replicated_transactions, ("policy", "source_id", "transaction_id"), [(policy, *pair) for pair in pairs])


def delete_target(session: Session, policy: str, source: int) -> None:
    """Forget a replicated transaction that has ended."""
    session.enqueue(DELETE_TARGET, policy_key=policy, source=source)
