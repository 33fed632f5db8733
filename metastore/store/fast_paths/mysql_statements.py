"""The statements of `fast_paths.mysql`, which are sent to MariaDB and MySQL in one packet with guards between them.

A guard is a query, or a value that is written, which fails unless a condition is true. The statements after it are then not run, and the
change is rolled back as a whole. Each statement sees all that is committed when it begins, so one after a lock sees all changes of others
before they released it.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import sqlalchemy as sa

from metastore.idl import TxnType
from metastore.store.core import counters
from metastore.store.core.clauses import Among, bound, constant
from metastore.store.drivers.contract import inserting
from metastore.store.fast_paths.contract import BEFORE_WRITE_ID, FIRST, IN_PLACE_OF_WRITE_ID
from metastore.store.operations.notifications import LogRow
from metastore.store.schema.model import counters as counter_rows
from metastore.store.schema.model import (
    lock_components,
    lock_queues,
    notifications,
    transaction_components,
    transactions,
    write_id_counters,
    write_id_ranges,
)
from metastore.store.schema.model import locks as lock_rows
from metastore.store.schema.model import write_ids as write_id_rows
from metastore.store.transactions import locks, write_ids
from metastore.store.transactions.components import COLUMNS as INTENT_COLUMNS
from metastore.store.transactions.transactions import COLUMNS, IS_OPEN, LOWEST_OPEN, OPEN, RANGES, WRITE_IDS, WROTE, may_be_range
from metastore.store.transactions.write_ids import COLUMNS as WRITE_ID_COLUMNS
from metastore.store.transactions.write_ids import TableKey

TRANSACTION, COMPONENT, COUNTER, WRITE_ID_COUNTER, WRITE_ID_RANGE, QUEUE = (
    transactions.c,
    transaction_components.c,
    counter_rows.c,
    write_id_counters.c,
    write_id_ranges.c,
    lock_queues.c,
)

_OVERFLOW: sa.ColumnElement[Any] = sa.func.exp(constant(1000))
"""An expression whose error the driver reports as `GuardFailed`."""


def _overflow_unless(condition: sa.ColumnElement[bool]) -> sa.ColumnElement[Any]:
    """Return an expression that is 1 if a condition is true, and else overflows."""
    return sa.func.exp(sa.case((condition, constant(0)), else_=constant(1000)))


TAKEN: sa.ColumnElement[int] = sa.func.last_insert_id()
"""The number that the statement before took from a counter."""
_FOUND_ONE = sa.func.row_count() == constant(1)
"""Whether the statement before found one row."""
FOUND_ONE = sa.select(_overflow_unless(_FOUND_ONE))


def _if_found_one(value: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    """Return a value for a new row; it overflows unless the statement before found one row. Not for ids: it may become a float."""
    return sa.case((_FOUND_ONE, value), else_=_OVERFLOW)


_COUNT, _LOWEST, _HIGHEST, _TRANSACTION = (
    sa.bindparam(name, type_=sa.BigInteger()) for name in ("count", "lowest", "highest", "transaction_id")
)
_IS_ONE = TRANSACTION.id == sa.bindparam("key")
_NEXT = COUNTER.value + constant(1)
TAKE_ID = (
    sa.update(counter_rows)
    .where(
        COUNTER.name == constant(counters.TRANSACTION),
        _NEXT - sa.func.coalesce(LOWEST_OPEN.scalar_subquery(), _NEXT) < sa.bindparam("most"),
    )
    .values(value=sa.func.last_insert_id(_NEXT))
)
OPEN_ONE = sa.insert(transactions).values(
    {"id": TAKEN, "state": constant(OPEN), **bound(COLUMNS[2:-1]), "type": _if_found_one(sa.bindparam("type"))}
)
MARK = {
    batch: sa.update(transactions)
    .where(
        _IS_ONE,
        IS_OPEN,
        TRANSACTION.type != constant(TxnType.READ_ONLY),
        TRANSACTION.holds.bitwise_and(constant(WRITE_IDS if batch else WRITE_IDS | RANGES)) == constant(0),
    )
    .values(holds=TRANSACTION.holds.bitwise_or(constant(WRITE_IDS)))
    for batch in (True, False)
}
"""Note that an open transaction has write ids, if it had none before. With True, it may be one of a batch, which may be within a range."""
TAKE_IF_FOUND_ONE = write_ids.NEXT.of("mysql").values(catalog=_if_found_one(sa.bindparam("catalog")))
GIVE = sa.insert(write_id_rows).values(
    {
        **bound(WRITE_ID_COLUMNS[:-1]),
        "write_id": TAKEN - constant(1),
    }
)
IN_RANGE = (
    sa.select(sa.func.exp(WRITE_ID_RANGE.last_transaction + constant(1000)))
    .where(*(WRITE_ID_RANGE[name] == sa.bindparam(name) for name in TableKey._fields), *write_ids.overlaps(_TRANSACTION, _TRANSACTION))
    .limit(constant(1))
)
"""Overflows if a transaction is within a range: no range is added while the counter is held."""
_OF_BATCHES = sa.select(sa.func.count()).where(*may_be_range(_LOWEST, _HIGHEST)).scalar_subquery()
TAKE_ABOVE = (
    sa.update(write_id_counters)
    .where(*write_ids.COUNTER, WRITE_ID_COUNTER.last_transaction < _LOWEST, _OF_BATCHES == _COUNT)
    .values(next=sa.func.last_insert_id(WRITE_ID_COUNTER.next + _COUNT), last_transaction=_HIGHEST)
)
"""An UPDATE does not lock the rows of other tables that it counts."""
GIVE_RANGE = sa.insert(write_id_ranges).values(
    {
        **bound(TableKey._fields),
        "first_transaction": _LOWEST,
        "last_transaction": _HIGHEST,
        "first_write_id": TAKEN - _COUNT,
        "catalog": _if_found_one(sa.bindparam("catalog")),
    }
)
_MATCHES = sa.and_(*(COMPONENT[name].is_not_distinct_from(sa.bindparam(name)) for name in INTENT_COLUMNS[1:]))
_COMPLETE = sa.update(transaction_components).where(
    COMPONENT.transaction_id == sa.bindparam("key"),
    _FOUND_ONE,
    _overflow_unless(sa.or_(COMPONENT.transaction_id != sa.bindparam("key"), _MATCHES)) == constant(1),
)
COMPLETE = {
    False: _COMPLETE.values(committed_ms=sa.bindparam("now")),
    True: _COMPLETE.values(committed_ms=sa.bindparam("now"), commit_id=TAKEN),
}
"""Note that a transaction's intents are committed, if the statement before found one row. It overflows if there is another intent.

With True it also notes the commit id, which the statement before returned. House keeping notes the mark in the transaction's own row.
"""
_COUNTER_IF_FOUND_ONE = sa.update(write_id_counters).where(
    *(WRITE_ID_COUNTER[name] == sa.bindparam(name) for name in TableKey._fields), _FOUND_ONE
)
_TRANSACTIONS = sa.case((WRITE_ID_COUNTER.next > constant(0), constant(counters.TRANSACTION)))
"""The transaction counter's name, written to depend on the table counter's row: this forces MariaDB to lock that row first."""
_COMMIT_ID = sa.func.last_insert_id(
    sa.select(COUNTER.value).where(COUNTER.name == _TRANSACTIONS).correlate(write_id_counters).with_for_update(read=True).scalar_subquery()
)
"""The last id that was issued, as the id of a commit, for the next statement. No id is issued from then on."""
_CHANGE_PARTITION = _COUNTER_IF_FOUND_ONE.values(last_change=WRITE_ID_COUNTER.last_change + constant(0) * _COMMIT_ID)
_LATER_CHANGE = sa.exists(
    sa.select(constant(1))
    .where(
        *(COMPONENT[name].is_not_distinct_from(sa.bindparam(name)) for name in INTENT_COLUMNS[1:5]),
        COMPONENT.commit_id >= _TRANSACTION,
        WRITE_ID_COUNTER.next > constant(0),
    )
    .correlate(write_id_counters)
)
CHANGE_PARTITION = {False: _CHANGE_PARTITION, True: _CHANGE_PARTITION.where(sa.not_(_LATER_CHANGE))}
"""For a change of a partition: hold the counter of its table, if the statement before found one row, and take the commit id.

The update changes no value. With True, it does this only if no other transaction changed the partition and committed since this one began.
An UPDATE reads other tables without locking their rows, unlike INSERT and DELETE. It reads them once it holds the counter, as the query
depends on the counter's row.
"""
_CHANGE_TABLE = _COUNTER_IF_FOUND_ONE.values(last_change=_COMMIT_ID)
CHANGE_TABLE = {False: _CHANGE_TABLE, True: _CHANGE_TABLE.where(WRITE_ID_COUNTER.last_change < _TRANSACTION)}
"""Hold the counter for a change of a whole table. With True, only if no other transaction changed it and committed since this one began."""
DELETE_LOCKS = sa.delete(lock_rows).where(lock_rows.c.transaction_id == sa.bindparam("key"))
_ALL_WAIT = sa.func.count() == sa.bindparam("queues")
TURN = {
    held: sa.select(_overflow_unless(sa.and_(_FOUND_ONE, _ALL_WAIT) if held else _ALL_WAIT), sa.func.max(QUEUE.changes))
    .where(Among(QUEUE.name, "names"))
    .with_for_update()
    for held in (True, False)
}
"""Wait for the turn in queues. It overflows unless all of them exist, and with True unless the statement before found one row.

For one queue it returns the queue's `changes`.
"""
PASS = {
    held: sa.update(lock_queues)
    .where(QUEUE.name == sa.bindparam("queue"), QUEUE.changes == sa.bindparam("seen"), *([_FOUND_ONE] if held else []))
    .values(changes=QUEUE.changes)
    for held in (True, False)
}
"""Wait for the turn in a queue that has not changed; with True, if the statement before found one row. An update returns no rows."""
INSERT_IF_FOUND_ONE = inserting(lock_rows, locks.NewLock._fields).values(writers_wait=_if_found_one(sa.bindparam("writers_wait")))
OVERLAPPING = {
    within: sa.select(sa.func.exp(lock_components.c.number + constant(1000)))
    .where(*locks.in_reach(within_tables=within))
    .limit(constant(1))
    for within in (True, False)
}
"""Overflows for each component that may overlap."""
NOTE = sa.insert(transaction_components).values(
    {
        **bound(INTENT_COLUMNS[:-1]),
        "write_id": write_ids.number_of(_TRANSACTION, bound(TableKey._fields)),
    }
)


@cache
def end(type_: int, holds: int) -> sa.Update:
    """Return the statement that ends an open transaction of a type with no other bits than `holds`."""
    return (
        sa.update(transactions)
        .where(_IS_ONE, IS_OPEN, TRANSACTION.type == constant(type_), TRANSACTION.holds.bitwise_and(constant(~holds)) == constant(0))
        .values(state=sa.bindparam("new_state"), ended_ms=sa.bindparam("now"), holds=TRANSACTION.holds.bitwise_and(constant(WROTE)))
    )


@cache
def logging(*numbers: tuple[str, sa.ColumnElement[Any]]) -> sa.Insert:
    """Return the insert of a row into the notification log. Numbers of the statement before replace texts in its message."""
    message: sa.ColumnElement[str] = sa.bindparam("message")
    for text, number in numbers:
        message = sa.func.replace(message, constant(text), number)
    return sa.insert(notifications).values({**bound(LogRow._fields), "message": message})


LOG_IF_FOUND_ONE = logging().values(type=_if_found_one(sa.bindparam("type")))
OPENED = (str(FIRST), TAKEN)
ALLOCATED = (IN_PLACE_OF_WRITE_ID, sa.func.concat(constant(BEFORE_WRITE_ID), TAKEN - _COUNT))
