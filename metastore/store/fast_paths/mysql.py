"""The fast paths of MariaDB and MySQL: all statements up to the commit are in one packet, so that a call is one round trip.

Guards among them fail where the call needs more than its path does; the rest is then not run, and nothing is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import sqlalchemy as sa

from metastore.store.core import counters
from metastore.store.core.database import Database, Session
from metastore.store.drivers.answer import Answer
from metastore.store.drivers.contract import FEW, BrokenAtCommit, GuardFailed
from metastore.store.fast_paths import mysql_statements as sql
from metastore.store.fast_paths.contract import PLAIN, Ended, FastPaths, Hint, LockAttempt
from metastore.store.operations.notifications import LogRow
from metastore.store.transactions import locks, write_ids
from metastore.store.transactions.components import COLUMNS as INTENT_COLUMNS
from metastore.store.transactions.components import INSERT, Intent
from metastore.store.transactions.transactions import ABORTED, COMMITTED, COMPONENTS, LOCKS, OF_COMPACTIONS, Who, add_holds
from metastore.store.transactions.write_ids import TableKey

Done = TypeVar("Done")
MAX_INTENTS = 4
"""The largest number of objects to which the transaction of a lock may write: the write id of each is looked up by itself."""


def _log(session: Session, event: LogRow | None, *numbers: tuple[str, sa.ColumnElement[Any]], **values: int) -> None:
    if event is not None:
        session.enqueue(sql.logging(*numbers), **event._asdict(), **values)


def _log_end(session: Session, key: int, hint: Hint, event: LogRow | None) -> None:
    """Write the event of a transaction's end, if the statement before found one row, and remove its locks."""
    if event is None:
        session.enqueue(sql.FOUND_ONE)
    else:
        session.enqueue(sql.LOG_IF_FOUND_ONE, **event._asdict())
    if hint.holds & LOCKS:
        session.enqueue(sql.DELETE_LOCKS, key=key)


def _is_plain(hint: Hint) -> bool:
    return not hint.holds & ~PLAIN and hint.type not in OF_COMPACTIONS


def _try(database: Database, work: Callable[[Session], Done]) -> Done | None:
    """Run the statements of one packet; None if a guard refused it, or if its outcome is unknown: it may be done twice."""
    try:
        return database.write(work)
    except (GuardFailed, BrokenAtCommit):
        return None


class MySQL(FastPaths):
    """Several statements in one packet: for one transaction, or for the write ids of several that are to be a range."""

    def try_open(self, database: Database, count: int, kind: int, who: Who, now: int, most: int, event: LogRow | None) -> list[int] | None:
        if count > 1:
            return None
        user, host, agent = who

        def work(session: Session) -> Answer:
            taken = session.enqueue(sql.TAKE_ID, most=most)
            session.enqueue(sql.OPEN_ONE, type=kind, user=user, host=host, agent=agent, started_ms=now, heartbeat_ms=now)
            _log(session, event, sql.OPENED)
            return taken

        taken = _try(database, work)
        return None if taken is None else [taken.key]

    def try_commit(
        self, database: Database, key: int, hint: Hint, now: int, event: LogRow | None, *, checks_conflicts: bool
    ) -> Ended | None:
        intent = hint.intent
        if not _is_plain(hint) or hint.intents != (intent is not None):
            return None
        holds, completing, names = hint.holds, _completing(intent, checks_conflicts=checks_conflicts), {}
        if intent is None:
            holds &= ~COMPONENTS
        else:
            names = dict(zip(INTENT_COLUMNS[1:], intent, strict=True))

        def work(session: Session) -> Ended:
            session.enqueue(sql.end(hint.type, holds), key=key, new_state=COMMITTED, now=now)
            for statement in completing:
                session.enqueue(statement, key=key, transaction_id=key, now=now, **names)
            _log_end(session, key, hint, event)
            return Ended(key, hint.type)

        return _try(database, work)

    def try_abort(self, database: Database, keys: Sequence[int], hint: Hint, now: int, event: LogRow | None) -> list[int] | None:
        if len(keys) > 1 or hint.intents or not _is_plain(hint):
            return None
        (key,) = keys

        def work(session: Session) -> list[int]:
            session.enqueue(sql.end(hint.type, hint.holds & ~COMPONENTS), key=key, new_state=ABORTED, now=now)
            _log_end(session, key, hint, event)
            return [key]

        return _try(database, work)

    def try_allocate(
        self, database: Database, key: TableKey, transactions: Sequence[int], event: LogRow | None, *, in_batch: bool
    ) -> int | None:
        count = len(transactions)

        def one(session: Session) -> Answer:
            transaction, names = transactions[0], key._asdict()
            session.enqueue(sql.MARK[in_batch], key=transaction)
            taken = session.enqueue(sql.TAKE_IF_FOUND_ONE, count=1, last_transaction=transaction, **names)
            if in_batch:
                session.enqueue(sql.IN_RANGE, transaction_id=transaction, **names)
            session.enqueue(sql.GIVE, transaction_id=transaction, **names)
            _log(session, event, sql.ALLOCATED, count=1)
            return taken

        def several(session: Session) -> Answer:
            ends: dict[str, int] = {"count": count, "lowest": transactions[0], "highest": transactions[-1]}
            taken = session.enqueue(sql.TAKE_ABOVE, **ends, **write_ids.named(key))
            session.enqueue(sql.GIVE_RANGE, **ends, **key._asdict())
            _log(session, event, sql.ALLOCATED, count=count)
            return taken

        taken = _try(database, several if count > 1 else one)
        return None if taken is None else counters.taken(taken) - count

    def try_lock(self, database: Database, new: LockAttempt) -> int | None:
        if len(new.parts) > FEW or len(new.intents) > MAX_INTENTS:
            return None
        return _lock_unlooked(database, new) or _lock_looking(database, new)


def _completing(intent: Intent | None, *, checks_conflicts: bool) -> tuple[sa.ClauseElement, ...]:
    """Return the statements that commit a transaction's writes: none, an insert, or a change that is checked for conflicts first."""
    if intent is None:
        return ()
    if intent[4] == INSERT:
        return (sql.COMPLETE[False],)
    change = sql.CHANGE_TABLE if intent[3] is None else sql.CHANGE_PARTITION
    return change[checks_conflicts], sql.COMPLETE[True]


def _lock_unlooked(database: Database, new: LockAttempt) -> int | None:
    """Add a lock without a check of other locks, if this process saw none to wait for and the queue has not changed since."""
    wanted, transaction = new.wanted, new.lock.transaction_id
    quiet = locks.quiet(database, wanted)
    if quiet is None:
        return None
    numbered, unnumbered = [], []
    for intent in new.intents:
        number = new.known.get(TableKey.of(intent))
        if number is not None and number.seen is quiet:
            numbered.append((*intent[:-1], number.write_id))
        else:
            unnumbered.append(intent)

    def work(session: Session) -> Answer:
        _add_holds(session, new)
        session.enqueue(sql.PASS[bool(transaction)], queue=wanted.queues[0], seen=quiet.changes)
        added = session.enqueue(sql.INSERT_IF_FOUND_ONE, **new.lock._asdict())
        locks.insert_below(session, added, new.lock, new.parts, numbered)
        _note(session, transaction, unnumbered)
        return added

    added = _try(database, work)
    if added is None:
        locks.forget_quiet(database, wanted)
    return None if added is None else added.key


def _lock_looking(database: Database, new: LockAttempt) -> int | None:
    """Wait for the turn in the queues, and add a lock if it has to wait for no other lock."""
    wanted, transaction = new.wanted, new.lock.transaction_id

    def work(session: Session) -> tuple[Answer, Answer]:
        _add_holds(session, new)
        turn = session.enqueue(sql.TURN[bool(transaction)], names=wanted.queues, queues=len(wanted.queues))
        session.enqueue(sql.OVERLAPPING[wanted.within_tables], **wanted.values)
        added = locks.insert(session, new.lock, new.parts, ())
        _note(session, transaction, new.intents)
        return turn, added

    done = _try(database, work)
    if done is None:
        return None
    turn, added = done
    if len(wanted.queues) == 1:
        locks.saw_quiet(database, wanted, int(turn.rows[0][1]))
    return added.key


def _add_holds(session: Session, new: LockAttempt) -> None:
    if new.lock.transaction_id:
        add_holds(session, new.lock.transaction_id, new.bits, new.lock.heartbeat_ms)


def _note(session: Session, transaction: int, intents: Sequence[Intent]) -> None:
    """Add the components of a transaction, with its write ids."""
    for intent in intents:
        session.enqueue(sql.NOTE, transaction_id=transaction, **dict(zip(INTENT_COLUMNS[1:-1], intent[:-1], strict=True)))
