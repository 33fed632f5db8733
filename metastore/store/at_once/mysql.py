"""Changes of transactions as MariaDB and MySQL are sent them: all statements up to the commit in one packet, with guards between them.

A guard is a query, or a value that is written, which fails unless something holds; what stands behind it is then not run, and the change is
rolled back as a whole.
Each statement sees what is committed when it begins, so one behind a lock sees all that others did before they let go of it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

import sqlalchemy as sa

from metastore.idl import TxnType
from metastore.store import counters, locks, write_ids
from metastore.store.answer import Answer
from metastore.store.at_once.contract import BEFORE_WRITE_ID, FIRST, IN_PLACE_OF_WRITE_ID, PLAIN, AtOnce, Guess
from metastore.store.clauses import Among, constant
from metastore.store.components import COLUMNS as INTENT_COLUMNS
from metastore.store.components import Intent
from metastore.store.database import Database, SeenQueue, Session
from metastore.store.drivers import FEW, BrokenAtCommit, Refused
from metastore.store.locks import Component, Given, NewLock
from metastore.store.notifications import LogRow
from metastore.store.schema import counters as counter_rows
from metastore.store.schema import (
    lock_components,
    lock_queues,
    notifications,
    transaction_components,
    transactions,
    write_id_counters,
    write_id_ranges,
)
from metastore.store.schema import locks as lock_rows
from metastore.store.schema import write_ids as write_id_rows
from metastore.store.transactions import (
    ABORTED,
    COLUMNS,
    COMMITTED,
    COMPONENTS,
    HOLD,
    IS_OPEN,
    LOCKS,
    LOWEST_OPEN,
    OPEN,
    RANGES,
    WRITE_IDS,
    WROTE,
    Who,
    hold_later,
    may_be_range,
)
from metastore.store.write_ids import COLUMNS as WRITE_ID_COLUMNS
from metastore.store.write_ids import Key

Done = TypeVar("Done")
MOST_NOTED = 4
"""Of a lock that means to write more, the write ids are read first: they are looked up for each."""

T, C, N, W, R, Q = transactions.c, transaction_components.c, counter_rows.c, write_id_counters.c, write_id_ranges.c, lock_queues.c

_OVERFLOW: sa.ColumnElement[Any] = sa.func.exp(constant(1000))
"""What the driver calls `Refused`."""


def _overflow_unless(condition: sa.ColumnElement[bool]) -> sa.ColumnElement[Any]:
    """Return what is 1 if a condition holds, and else overflows."""
    return sa.func.exp(sa.case((condition, constant(0)), else_=constant(1000)))


GIVEN: sa.ColumnElement[int] = sa.func.last_insert_id()
"""The number that a counter gave to the statement before."""
_FOUND_ONE = sa.func.row_count() == constant(1)
"""Whether the statement before found one row."""
FOUND_ONE = sa.select(_overflow_unless(_FOUND_ONE))


def _if_found_one(value: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    """Return a value to be added, no id as it may become a float; it overflows unless the statement before found one row."""
    return sa.case((_FOUND_ONE, value), else_=_OVERFLOW)


_COUNT, _LOWEST, _HIGHEST, _TRANSACTION = (
    sa.bindparam(name, type_=sa.BigInteger()) for name in ("count", "lowest", "highest", "transaction_id")
)
_IS_ONE = T.id == sa.bindparam("key")
_NEXT = N.value + constant(1)
TAKE_ID = (
    sa.update(counter_rows)
    .where(
        N.name == constant(counters.TRANSACTION),
        _NEXT - sa.func.coalesce(LOWEST_OPEN.scalar_subquery(), _NEXT) < sa.bindparam("most"),
    )
    .values(value=sa.func.last_insert_id(_NEXT))
)
OPEN_ONE = sa.insert(transactions).values(
    {
        "id": GIVEN,
        "state": constant(OPEN),
        **{name: sa.bindparam(f"new_{name}") for name in COLUMNS[2:-1]},
        "type": _if_found_one(sa.bindparam("new_type")),
    }
)
MARK = {
    batch: sa.update(transactions)
    .where(
        _IS_ONE,
        IS_OPEN,
        T.type != constant(TxnType.READ_ONLY),
        T.holds.bitwise_and(constant(WRITE_IDS if batch else WRITE_IDS | RANGES)) == constant(0),
    )
    .values(holds=T.holds.bitwise_or(constant(WRITE_IDS)))
    for batch in (True, False)
}
"""With True also one of a batch, which may be within a range."""
TAKE_IF_FOUND_ONE = write_ids.NEXT["mysql"].values(catalog=_if_found_one(sa.bindparam("catalog")))
GIVE = sa.insert(write_id_rows).values(
    {
        **{name: sa.bindparam(name) for name in WRITE_ID_COLUMNS[:-1]},
        "write_id": GIVEN - constant(1),
    }
)
IN_RANGE = (
    sa.select(sa.func.exp(R.last_transaction + constant(1000)))
    .where(*(R[name] == sa.bindparam(name) for name in Key._fields), *write_ids.overlaps(_TRANSACTION, _TRANSACTION))
    .limit(constant(1))
)
"""Overflows where a transaction is within a range: nobody adds one while the counter is held."""
_OF_BATCHES = sa.select(sa.func.count()).where(*may_be_range(_LOWEST, _HIGHEST)).scalar_subquery()
TAKE_ABOVE = (
    sa.update(write_id_counters)
    .where(*write_ids.COUNTER, W.last_transaction < _LOWEST, _OF_BATCHES == _COUNT)
    .values(next=sa.func.last_insert_id(W.next + _COUNT), last_transaction=_HIGHEST)
)
"""An UPDATE does not lock the rows of other tables that it counts."""
GIVE_RANGE = sa.insert(write_id_ranges).values(
    {
        **{name: sa.bindparam(name) for name in Key._fields},
        "first_transaction": _LOWEST,
        "last_transaction": _HIGHEST,
        "first_write_id": GIVEN - _COUNT,
        "catalog": _if_found_one(sa.bindparam("catalog")),
    }
)
_MATCHES = sa.and_(*(C[name].is_not_distinct_from(sa.bindparam(name)) for name in INTENT_COLUMNS[1:]))
_COMPLETE = sa.update(transaction_components).where(
    C.transaction_id == sa.bindparam("key"),
    _FOUND_ONE,
    _overflow_unless(sa.or_(C.transaction_id != sa.bindparam("key"), _MATCHES)) == constant(1),
)
COMPLETE = {
    False: _COMPLETE.values(committed_ms=sa.bindparam("now")),
    True: _COMPLETE.values(committed_ms=sa.bindparam("now"), commit_id=GIVEN),
}
"""Note that what a transaction meant to write is committed, if the statement before found one row; it overflows if something else is noted.

With True also the commit id, which the statement before told. The transaction's own row gets a mark from the housekeeper.
"""
_COUNTER_IF_FOUND_ONE = sa.update(write_id_counters).where(*(W[name] == sa.bindparam(name) for name in Key._fields), _FOUND_ONE)
_TRANSACTIONS = sa.case((W.next > constant(0), constant(counters.TRANSACTION)))
"""The name of the counter of transactions as the row of a table's counter tells it, so that the one is held after the other."""
_COMMIT_ID = sa.func.last_insert_id(
    sa.select(N.value).where(N.name == _TRANSACTIONS).correlate(write_id_counters).with_for_update(read=True).scalar_subquery()
)
"""The last id that was given out, as the id of a commit, which the next statement is given; from then on none is given out."""
_CHANGE_PARTITION = _COUNTER_IF_FOUND_ONE.values(last_change=W.last_change + constant(0) * _COMMIT_ID)
_LATER_CHANGE = sa.exists(
    sa.select(constant(1))
    .where(
        *(C[name].is_not_distinct_from(sa.bindparam(name)) for name in INTENT_COLUMNS[1:5]),
        C.commit_id >= _TRANSACTION,
        W.next > constant(0),
    )
    .correlate(write_id_counters)
)
CHANGE_PARTITION = {False: _CHANGE_PARTITION, True: _CHANGE_PARTITION.where(sa.not_(_LATER_CHANGE))}
"""Hold the counter of a table if the statement before found one row, and take the commit id, for a change of a partition: nothing is
changed, the commit id is taken on the way.

With True, only if no other transaction changed the partition and committed since this one began: an UPDATE looks into other tables
without locking their rows, as INSERT and DELETE would. It looks once it holds the counter, as the query goes by the row.
"""
_CHANGE_TABLE = _COUNTER_IF_FOUND_ONE.values(last_change=_COMMIT_ID)
CHANGE_TABLE = {False: _CHANGE_TABLE, True: _CHANGE_TABLE.where(W.last_change < _TRANSACTION)}
"""Do so for a change of the table as a whole, with True only if no other transaction changed that and committed since this one began."""
DELETE_LOCKS = sa.delete(lock_rows).where(lock_rows.c.transaction_id == sa.bindparam("key"))
_ALL_WAIT = sa.func.count() == sa.bindparam("queues")
TURN = {
    held: sa.select(_overflow_unless(sa.and_(_FOUND_ONE, _ALL_WAIT) if held else _ALL_WAIT), sa.func.max(Q.changes))
    .where(Among(Q.name, "names"))
    .with_for_update()
    for held in (True, False)
}
"""Wait for the turn in queues that are all there; with True, if the statement before found one row. Of one, it returns the changes."""
PASS = {
    held: sa.update(lock_queues)
    .where(Q.name == sa.bindparam("queue"), Q.changes == sa.bindparam("seen"), *([_FOUND_ONE] if held else []))
    .values(changes=Q.changes)
    for held in (True, False)
}
"""Wait for the turn in a queue that has not changed; with True, if the statement before found one row. It answers less than a query."""
INSERT_IF_FOUND_ONE = locks.INSERT.values(writers_wait=_if_found_one(sa.bindparam("writers_wait")))
MET = {
    within: sa.select(sa.func.exp(lock_components.c.number + constant(1000))).where(*locks.met(within_tables=within)).limit(constant(1))
    for within in (True, False)
}
"""Overflows for each component that may be met."""
NOTE = sa.insert(transaction_components).values(
    {
        **{name: sa.bindparam(name) for name in INTENT_COLUMNS[:-1]},
        "write_id": write_ids.number_of(_TRANSACTION, {name: sa.bindparam(name) for name in Key._fields}),
    }
)


@cache
def _end(type_: int, holds: int) -> sa.Update:
    """End an open transaction of a type that holds no more."""
    return (
        sa.update(transactions)
        .where(_IS_ONE, IS_OPEN, T.type == constant(type_), T.holds.bitwise_and(constant(~holds)) == constant(0))
        .values(state=sa.bindparam("new_state"), ended_ms=sa.bindparam("now"), holds=T.holds.bitwise_and(constant(WROTE)))
    )


@cache
def _telling(*numbers: tuple[str, sa.ColumnElement[Any]]) -> sa.Insert:
    """Add a row to the log, in whose message stand numbers that the statement before gave, in place of some texts."""
    message: sa.ColumnElement[str] = sa.bindparam("message")
    for text, number in numbers:
        message = sa.func.replace(message, constant(text), number)
    return sa.insert(notifications).values({**{name: sa.bindparam(name) for name in LogRow._fields}, "message": message})


_TELL_IF_FOUND_ONE = _telling().values(type=_if_found_one(sa.bindparam("type")))
OPENED = (str(FIRST), GIVEN)
ALLOCATED = (IN_PLACE_OF_WRITE_ID, sa.func.concat(constant(BEFORE_WRITE_ID), GIVEN - _COUNT))


def _tell(session: Session, told: LogRow | None, *numbers: tuple[str, sa.ColumnElement[Any]], **values: int) -> None:
    if told is not None:
        session.later(_telling(*numbers), **told._asdict(), **values)


def _ended(session: Session, key: int, guess: Guess, told: LogRow | None) -> None:
    """Tell that a transaction ended, if the statement before found one row, and remove its locks."""
    if told is None or guess.type == TxnType.READ_ONLY:
        session.later(FOUND_ONE)
    else:
        session.later(_TELL_IF_FOUND_ONE, **told._asdict())
    if guess.holds & LOCKS:
        session.later(DELETE_LOCKS, key=key)


def _is_plain(guess: Guess) -> bool:
    return not guess.holds & ~PLAIN and guess.type != TxnType.COMPACTION


def _try(database: Database, work: Callable[[Session], Done]) -> Done | None:
    """Run what goes in one packet; None if a guard refused it, or if nobody knows what became of it: it may be done twice."""
    try:
        return database.write(work)
    except (Refused, BrokenAtCommit):
        return None


class MySQL(AtOnce):
    """Several statements in one packet: for one transaction, or for the write ids of several that are to be a range."""

    most_opened = most_ended = 1
    most_allocated = 1000
    adds_locks = judges = True

    def open(
        self,
        database: Database,
        count: int,  # noqa: ARG002
        kind: int,
        who: Who,
        now: int,
        most: int,
        told: LogRow | None,  # it is one
    ) -> list[int]:
        user, host, agent = who

        def work(session: Session) -> Answer:
            taken, _ = session.all_later(
                TAKE_ID,
                OPEN_ONE,
                most=most,
                new_type=kind,
                new_user=user,
                new_host=host,
                new_agent=agent,
                new_started_ms=now,
                new_heartbeat_ms=now,
            )
            _tell(session, told, OPENED)
            return taken

        taken = _try(database, work)
        return [] if taken is None else [taken.key]

    def commit(
        self, database: Database, key: int, guess: Guess, inserting: str, inserted: Intent | None, now: int, told: LogRow | None
    ) -> tuple[int, int] | None:
        if inserted is not None and inserted[4] != inserting:
            return None
        return self._commit(database, key, guess, () if inserted is None else (COMPLETE[False],), inserted, now, told)

    def commit_if_first(
        self, database: Database, key: int, guess: Guess, changed: Intent, now: int, told: LogRow | None, *, judges: bool
    ) -> tuple[int, int] | None:
        change = (CHANGE_TABLE if changed[3] is None else CHANGE_PARTITION)[judges]
        return self._commit(database, key, guess, (change, COMPLETE[True]), changed, now, told)

    def _commit(
        self,
        database: Database,
        key: int,
        guess: Guess,
        done: Sequence[sa.ClauseElement],
        intent: Intent | None,
        now: int,
        told: LogRow | None,
    ) -> tuple[int, int] | None:
        names = {} if intent is None else dict(zip(INTENT_COLUMNS[1:], intent, strict=True))
        holds = guess.holds if intent is not None else guess.holds & ~COMPONENTS

        def work(session: Session) -> tuple[int, int]:
            session.all_later(_end(guess.type, holds), *done, key=key, transaction_id=key, new_state=COMMITTED, now=now, **names)
            _ended(session, key, guess, told)
            return key, guess.type

        return _try(database, work) if _is_plain(guess) and guess.intents == (intent is not None) else None

    def abort(self, database: Database, key: int, guess: Guess, now: int, told: LogRow | None) -> bool:
        def work(session: Session) -> bool:
            session.later(_end(guess.type, guess.holds & ~COMPONENTS), key=key, new_state=ABORTED, now=now)
            _ended(session, key, guess, told)
            return True

        return not guess.intents and _is_plain(guess) and bool(_try(database, work))

    def allocate(self, database: Database, transactions: Sequence[int], key: Key, *, batch: bool, told: LogRow | None) -> int | None:
        count, names = len(transactions), key._asdict()

        def one(session: Session) -> Answer:
            key = transactions[0]
            _, taken, *_ = session.all_later(
                MARK[batch],
                TAKE_IF_FOUND_ONE,
                *((IN_RANGE,) if batch else ()),
                GIVE,
                key=key,
                transaction_id=key,
                last_transaction=key,
                count=1,
                **names,
            )
            _tell(session, told, ALLOCATED, count=1)
            return taken

        def several(session: Session) -> Answer:
            ends: dict[str, int] = {"count": count, "lowest": transactions[0], "highest": transactions[-1]}
            taken = session.later(TAKE_ABOVE, **ends, **write_ids.named(key))
            session.later(GIVE_RANGE, **ends, **names)
            _tell(session, told, ALLOCATED, count=count)
            return taken

        if count > 1 and not write_ids.is_range(transactions):
            return None
        taken = _try(database, several if count > 1 else one)
        return None if taken is None else write_ids.taken(taken, count)[0]

    def lock(
        self,
        database: Database,
        lock: NewLock,
        parts: Sequence[Component],
        intents: Sequence[Intent],
        types: Collection[int],
        given: Mapping[Key, Given],
    ) -> int | None:
        if len(parts) > FEW or len(intents) > MOST_NOTED:
            return None
        wanted, transaction, bits = locks.reach(parts, types), lock.transaction_id, LOCKS | (COMPONENTS if intents else 0)
        quiet, known = locks.quiet(database, wanted), [given.get(Key.of(each)) for each in intents]

        def unlooked(session: Session, seen: SeenQueue) -> Answer:
            *_, added = session.all_later(
                *((HOLD,) if transaction else ()),
                PASS[bool(transaction)],
                INSERT_IF_FOUND_ONE,
                key=transaction,
                bits=bits,
                now=lock.heartbeat_ms,
                queue=wanted.queues[0],
                seen=seen.changes,
                **lock._asdict(),
            )
            numbers = [number.write_id if number is not None and number.seen is seen else None for number in known]
            locks.insert_below(
                session,
                added,
                lock,
                parts,
                [(*intent[:-1], number) for intent, number in zip(intents, numbers, strict=True) if number is not None],
            )
            _note(session, transaction, [intent for intent, number in zip(intents, numbers, strict=True) if number is None])
            return added

        def looking(session: Session) -> tuple[Answer, Answer]:
            if transaction:
                hold_later(session, transaction, bits, lock.heartbeat_ms)
            turn = session.later(TURN[bool(transaction)], names=wanted.queues, queues=len(wanted.queues))
            session.later(MET[wanted.within_tables], **wanted.values)
            added = locks.insert(session, lock, parts, ())
            _note(session, transaction, intents)
            return turn, added

        if quiet is not None:
            added = _try(database, lambda session: unlooked(session, quiet))
            if added is not None:
                return added.key
            locks.forget_quiet(database, wanted)
        done = _try(database, looking)
        if done is None:
            return None
        turn, added = done
        if len(wanted.queues) == 1:
            locks.saw_quiet(database, wanted, int(turn.rows[0][1]))
        return added.key


def _note(session: Session, transaction: int, intents: Sequence[Intent]) -> None:
    """Add what a transaction means to write, with the write ids that it has."""
    for intent in intents:
        session.later(NOTE, transaction_id=transaction, **dict(zip(INTENT_COLUMNS[1:-1], intent[:-1], strict=True)))
