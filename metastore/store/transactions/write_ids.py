"""Rows of write ids: the counter of each table, the ids of transactions, and the lowest that an open reader needs.

One function per statement. An allocation or a commit of changes holds the table's counter until the transaction ends. A write id is a row
of its own, or it is within a range: one row for consecutive transactions that were opened in batches, with consecutive write ids. In one
table no transaction is in two ranges, or in a range and a row, so that ranges are in the order of their transactions.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from metastore.store.core import counters
from metastore.store.core.clauses import Among, AmongKeys, bare, constant
from metastore.store.core.database import Session
from metastore.store.drivers.answer import Answer, Later
from metastore.store.schema.model import min_history, write_id_counters, write_id_ranges, write_ids
from metastore.store.transactions.components import Intent

WRITE_ID_COUNTER, WRITE_ID, WRITE_ID_RANGE = write_id_counters.c, write_ids.c, write_id_ranges.c
NAMES = ("catalog", "database", "table")
COLUMNS = ("transaction_id", *NAMES, "write_id")
LAST_OF_RANGE = WRITE_ID_RANGE.first_write_id + (WRITE_ID_RANGE.last_transaction - WRITE_ID_RANGE.first_transaction)
RANGE_COLUMNS = (*NAMES, "first_transaction", "last_transaction", "first_write_id")
NEXT = counters.taking(write_id_counters, "next", 1, "last_transaction")


def is_table(of: Any) -> tuple[sa.ColumnElement[bool], ...]:
    """Return the conditions of rows of a table that `named` names."""
    return tuple(of[name] == sa.bindparam(f"{name}_key") for name in NAMES)


def same(one: Any, other: Any) -> tuple[sa.ColumnElement[bool], ...]:
    """Return the conditions by which rows of two tables are of one table."""
    return tuple(one[name] == other[name] for name in NAMES)


def number_of(transaction: sa.ColumnElement[int], table: Any) -> sa.ColumnElement[int]:
    """Return the expression of a transaction's write id in a table, NULL for none; `table` has the columns with the table's names."""
    single = (
        sa.select(sa.func.max(WRITE_ID.write_id))
        .where(
            WRITE_ID.transaction_id == transaction,
            WRITE_ID.catalog == table["catalog"],
            *(bare(WRITE_ID[name]) == table[name] for name in NAMES[1:]),
        )
        .scalar_subquery()
    )
    number = sa.case(
        (WRITE_ID_RANGE.first_transaction <= transaction, WRITE_ID_RANGE.first_write_id + transaction - WRITE_ID_RANGE.first_transaction)
    )
    within = (
        sa.select(number)
        .where(*same(WRITE_ID_RANGE, table), WRITE_ID_RANGE.last_transaction >= transaction)
        .order_by(WRITE_ID_RANGE.last_transaction)
    )
    return sa.func.coalesce(single, within.limit(constant(1)).scalar_subquery())


def overlaps(lowest: sa.ColumnElement[int], highest: sa.ColumnElement[int]) -> tuple[sa.ColumnElement[bool], ...]:
    """Return the conditions of ranges that have one of the transactions from `lowest` to `highest`."""
    return WRITE_ID_RANGE.last_transaction >= lowest, WRITE_ID_RANGE.first_transaction <= highest


TABLE, RANGED, COUNTER = is_table(WRITE_ID), is_table(WRITE_ID_RANGE), is_table(WRITE_ID_COUNTER)
THEIRS = (
    Among(WRITE_ID.transaction_id, "keys"),
    WRITE_ID.catalog == sa.bindparam("catalog_key"),
    bare(WRITE_ID.database) == sa.bindparam("database_key"),
    bare(WRITE_ID.table) == sa.bindparam("table_key"),
)
OVERLAPPING = sa.select(WRITE_ID_RANGE.first_transaction, WRITE_ID_RANGE.last_transaction, WRITE_ID_RANGE.first_write_id).where(
    *RANGED, *overlaps(sa.bindparam("lowest"), sa.bindparam("highest"))
)
OF_TRANSACTIONS = sa.union_all(
    sa.select(WRITE_ID.transaction_id, WRITE_ID.transaction_id.label("last"), WRITE_ID.write_id).where(*THEIRS), OVERLAPPING
)
_KEY = sa.bindparam("key", type_=sa.BigInteger())
OWNER = sa.select(
    sa.func.coalesce(
        sa.select(sa.func.max(WRITE_ID.transaction_id)).where(*TABLE, WRITE_ID.write_id == _KEY).scalar_subquery(),
        sa.select(sa.func.max(WRITE_ID_RANGE.first_transaction + (_KEY - WRITE_ID_RANGE.first_write_id)))
        .where(*RANGED, WRITE_ID_RANGE.first_write_id <= _KEY, LAST_OF_RANGE >= _KEY)
        .scalar_subquery(),
    )
)
COVERED = sa.select(WRITE_ID_RANGE.first_transaction).where(*overlaps(_KEY, _KEY)).limit(constant(1))
LAST_WRITE_ID = WRITE_ID_COUNTER.next - constant(1)
LAST = sa.select(LAST_WRITE_ID).where(*COUNTER)
SET_NEXT = sa.update(write_id_counters).where(*COUNTER).values(next=sa.bindparam("number"))
SET_LAST = sa.update(write_id_counters).where(*COUNTER).values(last_transaction=sa.bindparam("number"))
_CHANGED = sa.update(write_id_counters).values(last_change=sa.bindparam("commit_id"))
FORGET = [sa.delete(table).where(*is_table(table.c)) for table in (write_ids, write_id_ranges)]
DELETE_TRANSACTIONS = sa.delete(write_ids).where(*THEIRS)
DELETE_RANGES = sa.delete(write_id_ranges).where(*RANGED, Among(WRITE_ID_RANGE.last_transaction, "keys"))
AMONG = AmongKeys(catalogs=WRITE_ID_COUNTER.catalog, databases=WRITE_ID_COUNTER.database, tables=WRITE_ID_COUNTER.table)
LOCK_COUNTERS = (
    sa.select(WRITE_ID_COUNTER.catalog, WRITE_ID_COUNTER.database, WRITE_ID_COUNTER.table)
    .where(AMONG)
    .order_by(WRITE_ID_COUNTER.catalog, WRITE_ID_COUNTER.database, WRITE_ID_COUNTER.table)
    .with_for_update()
)
LOCK_COUNTER = sa.select(WRITE_ID_COUNTER.catalog, WRITE_ID_COUNTER.database, WRITE_ID_COUNTER.table).where(*COUNTER).with_for_update()
_OF_TRANSACTION = sa.select(
    WRITE_ID_COUNTER.catalog, WRITE_ID_COUNTER.database, WRITE_ID_COUNTER.table, number_of(_KEY, WRITE_ID_COUNTER).label("write_id")
)
OF_TRANSACTION = {True: _OF_TRANSACTION.where(*COUNTER), False: _OF_TRANSACTION.where(AMONG)}
"""The query for one table, or for many; tables without a counter have no write ids."""

CHANGED = {True: _CHANGED.where(*COUNTER), False: _CHANGED.where(AMONG)}
"""The update for one table, or for many."""


class TableKey(NamedTuple):
    """A table by its normalised names."""

    catalog: str
    database: str
    table: str

    @classmethod
    def of(cls, intent: Intent) -> TableKey:
        """Return the table that a transaction means to write to."""
        return cls(intent[0], intent[1], intent[2] or "")


class Range(NamedTuple):
    """Consecutive transactions, both ends included, and the write id of the first; each following one's is one higher."""

    first: int
    last: int
    write_id: int

    def of(self, transaction: int) -> int:
        """Return the write id of one of the transactions."""
        return self.write_id + transaction - self.first

    def among(self, transactions: Sequence[int]) -> Sequence[int]:
        """Return the transactions, which ascend, that are in the range."""
        return transactions[bisect_left(transactions, self.first) : bisect_right(transactions, self.last)]

    def without(self, transactions: Sequence[int]) -> Iterator[Range]:
        """Return the ranges that are left without some transactions, which ascend."""
        first = self.first
        for gone in self.among(transactions):
            if first < gone:
                yield Range(first, gone - 1, self.of(first))
            first = gone + 1
        if first <= self.last:
            yield Range(first, self.last, self.of(first))


def is_range(transactions: Sequence[int]) -> bool:
    """Return whether some transactions, which ascend, are several and consecutive."""
    return len(transactions) > 1 and transactions[-1] - transactions[0] == len(transactions) - 1


def named(key: TableKey) -> dict[str, str]:
    """Return the parameters of a statement that name a table."""
    return {"catalog_key": key.catalog, "database_key": key.database, "table_key": key.table}


def naming(keys: Collection[TableKey]) -> dict[str, Any]:
    """Return the parameters that name tables, for the statement for one or for the statement for many."""
    return named(next(iter(keys))) if len(keys) == 1 else _among(keys)


def _among(keys: Iterable[TableKey]) -> dict[str, list[str]]:
    catalogs, databases, tables = zip(*sorted(keys), strict=True)
    return {"catalogs": list(catalogs), "databases": list(databases), "tables": list(tables)}


def take(session: Session, key: TableKey, transactions: Sequence[int]) -> Later[range]:
    """Take write ids of a table for transactions, which ascend, together with the next statement."""
    answer = counters.take(session, NEXT, len(transactions), **key._asdict(), last_transaction=transactions[-1])
    return lambda: range(counters.taken(answer) - len(transactions), counters.taken(answer))


def of_transactions(session: Session, key: TableKey, transactions: Sequence[int]) -> Later[dict[int, int]]:
    """Return the write ids of the transactions, which ascend, that have one in a table, together with the next statement."""
    keys = list(transactions)
    answer = session.enqueue(OF_TRANSACTIONS, keys=keys, lowest=keys[0], highest=keys[-1], **named(key))
    return lambda: {each: found.of(each) for found in map(Range._make, answer.rows) for each in found.among(keys)}


def of_transaction(session: Session, transaction: int, tables: Collection[TableKey]) -> Later[dict[TableKey, int]]:
    """Return the write id of a transaction in each of the tables in which it has one, together with the next statement."""
    answer = session.enqueue(OF_TRANSACTION[len(tables) == 1], key=transaction, **naming(tables))
    return lambda: {TableKey(*names): int(number) for *names, number in answer.rows if number is not None}


def owner(session: Session, key: TableKey, write_id: int) -> int | None:
    """Return the transaction that has a write id of a table."""
    return session.number(OWNER, key=write_id, **named(key))


def is_in_range(session: Session, transaction: int) -> bool:
    """Return whether a transaction has a write id, of any table, within a range. The query reads all ranges: for errors only."""
    return session.exists(COVERED, key=transaction)


def insert(session: Session, key: TableKey, pairs: Iterable[tuple[int, int]]) -> None:
    """Add pairs of a transaction and its write id in a table."""
    session.enqueue_insert(write_ids, COLUMNS, [(transaction, *key, write_id) for transaction, write_id in pairs])


def insert_ranges(session: Session, key: TableKey, ranges: Iterable[Range]) -> None:
    """Add ranges of transactions with their write ids in a table, none of which has one yet; the caller holds the table's counter."""
    session.enqueue_insert(write_id_ranges, RANGE_COLUMNS, [(*key, *each) for each in ranges])


def delete(session: Session, key: TableKey, transactions: Sequence[int] | None = None) -> None:
    """Remove the write ids of a table, or of some transactions, which ascend, in it: ranges keep the other transactions."""
    if transactions is None:
        for statement in FORGET:
            session.enqueue(statement, **named(key))
        return
    session.execute(DELETE_TRANSACTIONS, keys=list(transactions), **named(key))
    rows = session.rows(OVERLAPPING, lowest=transactions[0], highest=transactions[-1], **named(key))
    if rows:
        ranges = [Range(*row) for row in rows]
        session.execute(DELETE_RANGES, keys=[each.last for each in ranges], **named(key))
        insert_ranges(session, key, (left for each in ranges for left in each.without(transactions)))


def last(session: Session, key: TableKey) -> int | None:
    """Return the last write id of a table; None when it never had a counter."""
    return session.number(LAST, **named(key))


def set_next(session: Session, key: TableKey, number: int) -> None:
    """Set the next write id of a table. Its counter must exist."""
    session.execute(SET_NEXT, number=number, **named(key))


def set_last(session: Session, key: TableKey, transaction: int) -> None:
    """Note that no transaction above one has a write id of a table. Its counter must be there."""
    session.execute(SET_LAST, number=transaction, **named(key))


def seed(session: Session, key: TableKey, following: int) -> None:
    """Make the counter of a table, which must have none."""
    session.insert(write_id_counters, **key._asdict(), next=following)


def lock_counters(session: Session, keys: Collection[TableKey]) -> Answer:
    """Keep all others that allocate write ids in tables, or commit changes of them, waiting until the transaction ends.

    The statement is sent together with the next one; `make_missing` reads the answer.
    """
    return session.enqueue(LOCK_COUNTER if len(keys) == 1 else LOCK_COUNTERS, **naming(keys))


def make_missing(session: Session, keys: Collection[TableKey], held: Answer) -> bool:
    """Make the missing counters of tables; return whether there were any, which are then to be held."""
    missing = set(keys) - {TableKey(*row) for row in held.rows}
    if missing:
        first = {"next": 1, "last_transaction": 0, "last_change": 0}
        session.insert_missing(write_id_counters, [{**key._asdict(), **first} for key in sorted(missing)])
    return bool(missing)


def note_changes(session: Session, keys: Collection[TableKey], commit_id: int) -> None:
    """Note the commit of changes of whole tables, whose counters are held, if fast paths use it; together with the next statement."""
    if session.notes_changes and keys:
        session.enqueue(CHANGED[len(keys) == 1], commit_id=commit_id, **naming(keys))


def insert_history(session: Session, transaction: int, lowest: Iterable[tuple[TableKey, int]]) -> None:
    """Note the lowest write ids that an open transaction's snapshot may need; existing notes stay."""
    session.insert_missing(
        min_history, [{"transaction_id": transaction, **key._asdict(), "write_id": write_id} for key, write_id in lowest]
    )
