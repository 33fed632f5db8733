"""PostgreSQL's statements that make a whole change of transactions, together with its row in the notification log.

A writer of rows of an open transaction holds the transaction's row, so a statement that finds this row unchanged since it began has seen
all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from metastore.idl import TxnType
from metastore.store.core import counters
from metastore.store.core.clauses import Among, bare, constant
from metastore.store.core.database import Database, Session
from metastore.store.drivers.answer import Answer
from metastore.store.fast_paths.contract import (
    BEFORE_WRITE_ID,
    FIRST,
    IN_PLACE_OF_WRITE_ID,
    LAST,
    PLAIN,
    Ended,
    FastPaths,
    Hint,
    LockAttempt,
)
from metastore.store.operations.notifications import LogRow
from metastore.store.schema.model import counters as counter_rows
from metastore.store.schema.model import (
    lock_components,
    locks,
    notifications,
    transaction_components,
    transactions,
    write_id_counters,
    write_id_ranges,
    write_ids,
)
from metastore.store.transactions.components import COLUMNS as INTENT_COLUMNS
from metastore.store.transactions.components import INSERT
from metastore.store.transactions.locks import COMPONENT_COLUMNS as PART_COLUMNS
from metastore.store.transactions.locks import QUEUES, NewLock, in_reach
from metastore.store.transactions.transactions import (
    ABORTED,
    COLUMNS,
    COMMITTED,
    COMPONENTS,
    LOWEST_OPEN,
    OF_COMPACTIONS,
    OPEN,
    RANGES,
    WRITE_IDS,
    WROTE,
    Who,
    add_holds,
    is_open,
    may_be_range,
)
from metastore.store.transactions.write_ids import COLUMNS as WRITE_ID_COLUMNS
from metastore.store.transactions.write_ids import RANGE_COLUMNS, TableKey, is_range, number_of, overlaps

TRANSACTION, COMPONENT, COUNTER, WRITE_ID_COUNTER = transactions.c, transaction_components.c, counter_rows.c, write_id_counters.c
WRITE_ID, WRITE_ID_RANGE = write_ids.c, write_id_ranges.c
_KEY = sa.bindparam("key", type_=sa.BigInteger())
_NOW = sa.bindparam("now", type_=sa.BigInteger())
_COUNT, _LOWEST, _HIGHEST = (sa.bindparam(name, type_=sa.BigInteger()) for name in ("count", "lowest", "highest"))
_NAMES = {name: sa.bindparam(name, type_=sa.String()) for name in TableKey._fields}
_MESSAGE = sa.cast(sa.bindparam("event_message"), sa.Text())
_ENDED = {"state": sa.bindparam("new_state"), "ended_ms": _NOW, "holds": TRANSACTION.holds.bitwise_and(constant(WROTE))}


def _replaced(text: sa.ColumnElement[Any], old: str, new: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    return sa.func.replace(text, constant(old), sa.cast(new, sa.Text()))


def _logged(source: sa.FromClause, message: sa.ColumnElement[Any], *where: sa.ColumnElement[bool]) -> sa.CTE:
    """Return the insert of one row into the notification log if `source` has rows."""
    values = {name: sa.cast(sa.bindparam(f"event_{name}"), notifications.c[name].type) for name in LogRow._fields} | {"message": message}
    row = sa.select(*values.values()).select_from(source).where(*where)
    return sa.insert(notifications).from_select(list(values), row, include_defaults=False).cte("logged")


def _event(row: LogRow | None) -> dict[str, Any]:
    """Return the parameters of `_logged`."""
    return {} if row is None else {f"event_{name}": value for name, value in row._asdict().items()}


@cache
def _opening(logs: bool) -> sa.Select[Any]:
    """Return the statement that opens transactions.

    It does nothing when there are more than `most` ids from the lowest open one on: then the open ones have to be counted.
    """
    new_value = COUNTER.value + _COUNT
    taken = (
        postgresql.insert(counter_rows)
        .values(name=sa.bindparam("counter"), value=_COUNT)
        .on_conflict_do_update(
            index_elements=["name"],
            set_={"value": new_value},
            where=new_value - sa.func.coalesce(LOWEST_OPEN.scalar_subquery(), new_value) < sa.bindparam("most", type_=sa.BigInteger()),
        )
        .returning(COUNTER.value)
        .cte("taken")
    )
    numbers = sa.func.generate_series(1, _COUNT).table_valued("number").render_derived(name="numbers")
    values = sa.select(
        taken.c.value - _COUNT + numbers.c.number,
        constant(OPEN),
        *(sa.cast(sa.bindparam(f"{name}_value"), TRANSACTION[name].type) for name in COLUMNS[2:6]),
        _NOW,
        _NOW,
        sa.case((constant(1) < _COUNT, constant(RANGES)), else_=constant(0)),
    ).select_from(taken, numbers)
    opened = sa.insert(transactions).from_select([*COLUMNS], values, include_defaults=False).returning(TRANSACTION.id).cte("opened")
    query = sa.select(opened.c.id)
    if not logs:
        return query
    message = _replaced(_MESSAGE, str(FIRST), taken.c.value - _COUNT + constant(1))
    return query.add_cte(_logged(taken, _replaced(message, str(LAST), taken.c.value)))


def _unchanged(plain: int) -> tuple[sa.ColumnElement[bool], ...]:
    """Return the conditions of an open transaction that holds no more than `plain`, and is as it was when the statement began."""
    own = transactions.alias("own")
    version = sa.select(sa.literal_column("own.xmin")).where(own.c.id == TRANSACTION.id).scalar_subquery()
    return (
        is_open(TRANSACTION),
        TRANSACTION.holds.bitwise_and(constant(~plain)) == constant(0),
        sa.literal_column("transactions.xmin") == version,
    )


@cache
def _ending(commits: bool, logs: bool) -> sa.Select[Any]:
    """End a transaction that holds no more than PLAIN.

    A commit includes its writes, and does nothing if one has another operation than `inserting`. An abort does nothing if there are writes.
    """
    conditions = [
        TRANSACTION.id == _KEY,
        *(TRANSACTION.type != constant(each) for each in sorted(OF_COMPACTIONS)),
        *_unchanged(PLAIN if commits else PLAIN & ~COMPONENTS),
    ]
    if commits:
        conditions.append(
            ~sa.exists(sa.select(constant(1)).where(COMPONENT.transaction_id == _KEY, COMPONENT.operation != sa.bindparam("inserting")))
        )
    ended = sa.update(transactions).where(*conditions).values(_ENDED).returning(TRANSACTION.id, TRANSACTION.type).cte("ended")
    is_ended = sa.exists(sa.select(constant(1)).select_from(ended))
    query = sa.select(ended.c.id, ended.c.type).add_cte(sa.delete(locks).where(locks.c.transaction_id == _KEY, is_ended).cte("freed"))
    if commits:
        completed = sa.update(transaction_components).where(COMPONENT.transaction_id == _KEY, is_ended).values(committed_ms=_NOW)
        query = query.add_cte(completed.cte("completed"))
    return query.add_cte(_logged(ended, _MESSAGE, ended.c.type != constant(TxnType.READ_ONLY))) if logs else query


@cache
def _aborting(logs: bool, consecutive: bool) -> sa.Select[Any]:
    """Abort `count` transactions that hold nothing but locks and write ids; none if one has ended, holds more, compacts or is read-only.

    Those from `lowest` to `highest` are found by one walk of the index, others one by one.
    """
    found = (
        sa.select(TRANSACTION.id)
        .where(
            TRANSACTION.id.between(_LOWEST, _HIGHEST) if consecutive else Among(TRANSACTION.id, "keys"),
            *(TRANSACTION.type != constant(each) for each in (TxnType.COMPACTION, TxnType.READ_ONLY)),
            *_unchanged(PLAIN & ~COMPONENTS),
        )
        .order_by(TRANSACTION.id)
        .with_for_update()
        .cte("found")
    )
    are_all = sa.select(sa.func.count()).select_from(found).scalar_subquery() == _COUNT
    they = TRANSACTION.id.between(_LOWEST, _HIGHEST) if consecutive else TRANSACTION.id.in_(sa.select(found.c.id))
    ended = sa.update(transactions).where(they, are_all).values(_ENDED).returning(TRANSACTION.id).cte("ended")
    freed = sa.delete(locks).where(locks.c.transaction_id.in_(sa.select(ended.c.id))).cte("freed")
    number = sa.select(sa.func.count().label("number")).select_from(ended).subquery("number")
    query = sa.select(number.c.number).add_cte(freed)
    return query.add_cte(_logged(number, _MESSAGE, number.c.number > constant(0))) if logs else query


@cache
def _allocating(logs: bool) -> sa.Select[Any]:
    """Allocate the first write id of a transaction, `lowest`, unless it has some or may have none."""
    held = (
        sa.update(transactions)
        .where(
            TRANSACTION.id == _LOWEST,
            is_open(TRANSACTION),
            TRANSACTION.type != constant(TxnType.READ_ONLY),
            TRANSACTION.holds.bitwise_and(constant(WRITE_IDS)) == constant(0),
        )
        .values(holds=TRANSACTION.holds.bitwise_or(constant(WRITE_IDS)))
        .returning(TRANSACTION.id, TRANSACTION.holds)
        .cte("held")
    )
    is_held = sa.exists(sa.select(constant(1)).select_from(held))
    in_range = sa.exists(sa.select(constant(1)).select_from(held).where(held.c.holds.bitwise_and(constant(RANGES)) != constant(0)))
    taken = _taking(is_held, sa.not_(in_range))
    first = taken.c.next - _COUNT
    row = sa.select(held.c.id, *_NAMES.values(), first).select_from(held.join(taken, sa.true()))
    given = sa.insert(write_ids).from_select([*WRITE_ID_COLUMNS], row, include_defaults=False).cte("given")
    query = sa.select(first).add_cte(given)
    return query.add_cte(_logged_allocation(taken, first)) if logs else query


def _logged_allocation(taken: sa.CTE, first: sa.ColumnElement[int]) -> sa.CTE:
    """Return the insert of the event of write ids that were taken."""
    return _logged(taken, _replaced(_MESSAGE, IN_PLACE_OF_WRITE_ID, constant(BEFORE_WRITE_ID).concat(sa.cast(first, sa.Text()))))


def _listed(name: str, table: sa.Table, columns: Sequence[str]) -> sa.TableValuedAlias:
    """Return rows whose values are given as one list for each column, bound as `name_column`."""
    lists = (
        sa.cast(
            sa.bindparam(f"{name}_{column}"),
            postgresql.ARRAY(sa.BigInteger() if isinstance(table.c[column].type, sa.Integer) else sa.Text()),
        )
        for column in columns
    )
    return sa.func.unnest(*lists).table_valued(*columns).render_derived(name=name)


def _lists(name: str, columns: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> dict[str, list[Any]]:
    return {f"{name}_{column}": list(values) for column, values in zip(columns, zip(*rows, strict=True), strict=True)}


_TURN = constant("metastore.turn")
"""The name of a setting of the transaction: the number of queues in which it has its turn."""
_HELD = QUEUES.subquery("held")
_WAITING = sa.select(sa.func.set_config(_TURN, sa.cast(sa.func.count(_HELD.c.name), sa.Text()), sa.true())).select_from(_HELD)
"""Wait for the turn in queues. A queue that is made while another is waited for is not among them, though later statements find it."""


@cache
def _locking(noting: bool, in_transaction: bool, within_tables: bool) -> sa.Select[Any]:
    """Add a lock with its components, and its transaction's intents with its write ids, unless it may overlap with another."""
    conditions = [
        sa.cast(sa.func.current_setting(_TURN), sa.BigInteger()) == sa.bindparam("queues", type_=sa.BigInteger()),
        ~sa.exists(sa.select(constant(1)).select_from(lock_components).where(*in_reach(within_tables=within_tables))),
    ]
    transaction = sa.bindparam("transaction_id", type_=sa.BigInteger())
    if in_transaction:
        conditions.append(sa.exists(sa.select(constant(1)).where(TRANSACTION.id == transaction, is_open(TRANSACTION))))
    values = [sa.cast(sa.bindparam(name), locks.c[name].type) for name in NewLock._fields]
    locked = (
        sa.insert(locks)
        .from_select([*NewLock._fields], sa.select(*values).where(*conditions), include_defaults=False)
        .returning(locks.c.id)
        .cte("locked")
    )
    parts = _listed("part", lock_components, PART_COLUMNS[1:])
    rows = sa.select(locked.c.id, *parts.c).select_from(locked.join(parts, sa.true()))
    query = sa.select(locked.c.id).add_cte(
        sa.insert(lock_components).from_select([*PART_COLUMNS], rows, include_defaults=False).cte("added")
    )
    if not noting:
        return query
    intents = _listed("intent", transaction_components, INTENT_COLUMNS[1:-1])
    noted = sa.select(transaction, *intents.c, number_of(transaction, intents.c)).select_from(locked.join(intents, sa.true()))
    return query.add_cte(sa.insert(transaction_components).from_select([*INTENT_COLUMNS], noted, include_defaults=False).cte("noted"))


def _taking(where: sa.ColumnElement[bool], free: sa.ColumnElement[bool]) -> sa.CTE:
    """Take `count` write ids for transactions from `lowest` to `highest`, if no range may give them some at the same time.

    The condition `where` has to hold. Where the table has a counter, one of these has to hold too:

    1. No transaction from the lowest on has a write id. The counter shows this once its row is held: other allocations are waited for.
    2. The condition `free` holds.
    3. The transactions had no write id when the statement began, and the counter has the same version as then: each range changes it.
    """
    before = write_id_counters.alias("before")
    xmin: sa.ColumnElement[Any] = sa.literal_column("before.xmin")
    version = sa.select(xmin).where(*(before.c[name] == value for name, value in _NAMES.items()))
    had = [
        sa.exists(
            sa.select(constant(1)).where(*(WRITE_ID_RANGE[name] == value for name, value in _NAMES.items()), *overlaps(_LOWEST, _HIGHEST))
        ),
        sa.exists(
            sa.select(constant(1)).where(
                WRITE_ID.transaction_id.between(_LOWEST, _HIGHEST),
                WRITE_ID.catalog == _NAMES["catalog"],
                *(bare(WRITE_ID[name]) == _NAMES[name] for name in ("database", "table")),
            )
        ),
    ]
    unchanged = sa.and_(sa.literal_column("write_id_counters.xmin") == version.scalar_subquery(), *map(sa.not_, had))
    insert = postgresql.insert(write_id_counters).from_select(
        [*_NAMES, "next", "last_transaction"],
        sa.select(*_NAMES.values(), _COUNT + constant(1), _HIGHEST).where(where),
        include_defaults=False,
    )
    return (
        insert.on_conflict_do_update(
            index_elements=[*_NAMES],
            where=sa.or_(WRITE_ID_COUNTER.last_transaction < _LOWEST, free, unchanged),
            set_={
                "next": WRITE_ID_COUNTER.next + _COUNT,
                "last_transaction": sa.func.greatest(WRITE_ID_COUNTER.last_transaction, insert.excluded.last_transaction),
            },
        )
        .returning(WRITE_ID_COUNTER.next)
        .cte("taken")
    )


@cache
def _allocating_range(logs: bool) -> sa.Select[Any]:
    """Allocate the first write ids of `count` transactions from `lowest` to `highest` as one range.

    Their rows are neither changed nor held: if one ends meanwhile, the result is the same as if it ended afterwards.
    """
    may = sa.select(sa.func.count()).where(*may_be_range(_LOWEST, _HIGHEST))
    taken = _taking(may.scalar_subquery() == _COUNT, sa.false())
    first = taken.c.next - _COUNT
    row = sa.select(*_NAMES.values(), _LOWEST, _HIGHEST, first).select_from(taken)
    query = sa.select(first).add_cte(sa.insert(write_id_ranges).from_select([*RANGE_COLUMNS], row, include_defaults=False).cte("given"))
    return query.add_cte(_logged_allocation(taken, first)) if logs else query


class PostgreSQL(FastPaths):
    """One statement that commits by itself. A lock takes three in a transaction, since it waits for its turn before it looks."""

    def try_open(self, database: Database, count: int, kind: int, who: Who, now: int, most: int, event: LogRow | None) -> list[int] | None:
        user, host, agent = who
        rows = database.autocommit(
            lambda session: session.rows(
                _opening(event is not None),
                counter=counters.TRANSACTION,
                count=count,
                type_value=kind,
                user_value=user,
                host_value=host,
                agent_value=agent,
                now=now,
                most=most,
                **_event(event),
            )
        )
        return sorted(id_ for (id_,) in rows) or None

    def try_commit(
        self, database: Database, key: int, hint: Hint, now: int, event: LogRow | None, *, checks_conflicts: bool
    ) -> Ended | None:
        if hint.row_changes:  # the portable way takes as long
            return None
        parameters = {"key": key, "now": now, "new_state": COMMITTED, "inserting": INSERT, **_event(event)}
        row = database.autocommit(lambda session: session.row(_ending(True, event is not None), **parameters))
        return None if row is None else Ended(*row)

    def try_abort(self, database: Database, keys: Sequence[int], hint: Hint, now: int, event: LogRow | None) -> list[int] | None:
        logs, which = event is not None, {"key": keys[0], "lowest": keys[0], "highest": keys[-1], "keys": list(keys)}
        statement = _ending(False, logs) if len(keys) == 1 else _aborting(logs, is_range(keys))
        parameters = {**which, "count": len(keys), "now": now, "new_state": ABORTED, **_event(event)}
        row = database.autocommit(lambda session: session.row(statement, **parameters))
        return list(keys) if row is not None and row[0] else None

    def try_allocate(
        self, database: Database, key: TableKey, transactions: Sequence[int], event: LogRow | None, *, in_batch: bool
    ) -> int | None:
        ends = {"count": len(transactions), "lowest": transactions[0], "highest": transactions[-1]}
        statement = (_allocating if len(transactions) == 1 else _allocating_range)(event is not None)
        row = database.autocommit(lambda session: session.row(statement, **ends, **key._asdict(), **_event(event)))
        return None if row is None else int(row[0])

    def try_lock(self, database: Database, new: LockAttempt) -> int | None:
        queues, within_tables, reached = new.wanted
        listed = _lists("part", PART_COLUMNS[1:], ((number, *part) for number, part in enumerate(new.parts, 1)))
        if new.intents:
            listed |= _lists("intent", INTENT_COLUMNS[1:-1], (intent[:-1] for intent in new.intents))
        transaction = new.lock.transaction_id

        def work(session: Session) -> Answer:
            if transaction:
                add_holds(session, transaction, new.bits, new.lock.heartbeat_ms)
            session.enqueue(_WAITING, names=queues)
            return session.enqueue(
                _locking(bool(new.intents), bool(transaction), within_tables),
                **new.lock._asdict(),
                **listed,
                **reached,
                queues=len(queues),
            )

        added = database.write(work)
        return added.key if added.rows else None
