"""Write ids of tables as a process remembers them: of a table that it knows it reads only those that were given since.

What is remembered holds while `changes` of the queue of the table's database stay: whoever lets write ids of a table go to another name or
away, or gives a transaction another one, raises them. House keeping removes only what all transactions see, and lower ones before it; what
is remembered of it changes no answer. Where it removed some that are new, which shows by their number, all is read again.
Large tables are not remembered: they are for `write_ids.snapshot`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection, Iterable, Sequence
from operator import itemgetter
from threading import Lock
from typing import NamedTuple

import sqlalchemy as sa

from metastore.store import locks
from metastore.store.answer import Answer
from metastore.store.clauses import bare, constant
from metastore.store.database import Session
from metastore.store.drivers import Row
from metastore.store.schema import lock_queues, write_id_counters
from metastore.store.write_ids import COUNTER, RANGED, I, Key, Mark, N, R, Snapshot, named

MOST_TABLES = 1000
MOST = 1000
"""Write ids, and ranges of them, that are remembered of a table, or read of what is new."""
NO_END = 2**63 - 1

_UPTO, _MOST = (sa.bindparam(name, type_=sa.BigInteger()) for name in ("upto", "most"))
_CHANGES = sa.func.coalesce(lock_queues.c.changes, constant(0))
_COUNTED = (
    sa.select(constant(0), N.next - constant(1), N.last_transaction, _CHANGES)
    .select_from(write_id_counters.outerjoin(lock_queues, lock_queues.c.name == sa.bindparam("queue")))
    .where(*COUNTER)
)
_OF_TABLE = (
    bare(I.catalog) == sa.bindparam("catalog_key"),
    I.database == sa.bindparam("database_key"),
    I.table == sa.bindparam("table_key"),
)
_RANGES = sa.select(constant(2), R.first_write_id, R.first_transaction, R.last_transaction).where(*RANGED)
_NOTHING = constant(0)
NEW = sa.union_all(
    _COUNTED,
    sa.select(constant(1), I.write_id, I.transaction_id, _NOTHING).where(*_OF_TABLE, I.write_id > _UPTO, I.write_id <= _MOST),
    _RANGES.where(R.first_write_id > _UPTO, R.first_write_id <= _MOST),
)
"""The counter of a table with `changes` of its database's queue; write ids with their transactions; ranges: all up to one after another."""
_KEPT = sa.select(I.write_id, I.transaction_id).where(*_OF_TABLE).limit(sa.bindparam("limit")).subquery()
ALL = sa.union_all(_COUNTED, sa.select(constant(1), _KEPT.c.write_id, _KEPT.c.transaction_id, _NOTHING), _RANGES)
"""The same of all, but not more than `limit` write ids that are rows."""


class View(NamedTuple):
    """A snapshot of transactions: its mark, its exceptions, which ascend, and the last transaction up to which it sees all."""

    mark: int
    exceptions: Sequence[int]
    settled: int


class KnownTable:
    """The write ids of a table up to its last one. Safe for threads."""

    def __init__(self, changes: int) -> None:
        self.changes = changes
        self.last = 0
        self.is_written = True
        """Whether the last snapshot did not see all of them: most likely the next one does not either."""
        self._transaction = 0
        self._numbers: dict[int, int] = {}
        """By transactions."""
        self._transactions: list[int] = []
        self._pairs: list[tuple[int, int]] = []
        """Write ids with their transactions, in the order of the write ids."""
        self._ranges: list[tuple[int, int, int]] = []
        """As (first transaction, last one, first write id), in the order of the transactions."""
        self._given: list[tuple[int, int, int]] = []
        """The same in the order of the write ids."""
        self._lock = Lock()

    def add(self, last: int, transaction: int, rows: Iterable[Row]) -> bool:
        """Add what was read of the table up to a last write id, which nobody above a transaction has; tell whether it is not too much."""
        with self._lock:
            if last > self.last:
                for kind, number, *of in sorted(rows, key=itemgetter(1)):
                    if kind and number > self.last:
                        self._add(number, *of) if kind == 1 else self._add_range(number, *of)
                self.last, self._transaction = last, transaction
            return max(len(self._pairs), len(self._ranges)) <= MOST

    def _add(self, number: int, transaction: int, _: int) -> None:
        self._numbers[transaction] = number
        self._pairs.append((number, transaction))
        insort(self._transactions, transaction)

    def _add_range(self, number: int, first: int, last: int) -> None:
        self._given.append((first, last, number))
        insort(self._ranges, (first, last, number))

    def make(self, made: Snapshot, key: Key, view: View) -> None:
        """Add what a snapshot makes of the table, as `write_ids.snapshot` does."""
        mark, exceptions, settled = view
        with self._lock:
            self.is_written = self._transaction > settled
            of, end = self._numbers, bisect_right(self._transactions, mark)
            if end < len(exceptions):
                unseen = [each for each in self._transactions[:end] if _is_among(exceptions, each)]
            else:
                unseen = [each for each in exceptions if each <= mark and each in of]
            unseen += self._transactions[end:]
            below = next((number for number, transaction in reversed(self._pairs) if transaction <= mark), None)
            whole = next((number + last - first for first, last, number in reversed(self._given) if last <= settled), None)
            found = Mark(self.last, below, len(self._pairs) > len(unseen), self._transaction)
            made.marks[key] = found.raised(whole, seen=whole is not None)
            made.unseen[key] = sorted((of[transaction], transaction) for transaction in unseen)
            made.ranges[key] = self._ranges[bisect_left(self._ranges, settled + 1, key=itemgetter(1)) :]


def _is_among(ids: Sequence[int], id_: int) -> bool:
    """Tell whether an id is among some that ascend."""
    place = bisect_left(ids, id_)
    return place < len(ids) and ids[place] == id_


Known = dict[Key, KnownTable]


def snapshot(session: Session, tables: Known, made: Snapshot, keys: Collection[Key], view: View) -> set[Key]:
    """Add what a snapshot makes of those of some tables that are remembered and being written to, and return the others."""
    known = {key: found for key in keys if (found := tables.get(key)) is not None and found.is_written}
    answers = {key: _ask_new(session, key, found) for key, found in known.items()}
    return set(keys) - {key for key, answer in answers.items() if _is_made(tables, made, key, known[key], answer, view)}


def remember(session: Session, tables: Known, made: Snapshot, keys: Iterable[Key], view: View) -> set[Key]:
    """Remember tables and add what a snapshot makes of them; return those that are too large."""
    left = set()
    for key in keys:
        known = tables.get(key)
        if known is not None and _is_made(tables, made, key, known, _ask_new(session, key, known), view):
            continue
        rows = session.rows(ALL, queue=locks.queue(*key[:2]), limit=MOST + 1, **named(key))
        known = KnownTable(next((row[3] for row in rows if row[0] == 0), 0))
        if _is_added(known, rows, NO_END):
            if len(tables) >= MOST_TABLES:
                tables.clear()
            tables[key] = known
            known.make(made, key, view)
        else:
            left.add(key)
    return left


class _New(NamedTuple):
    """What was asked of a table, and up to which write id it is told."""

    most: int
    answer: Answer


def _ask_new(session: Session, key: Key, known: KnownTable) -> _New:
    """Ask for the write ids of a table that are new, together with the next statement."""
    upto = known.last
    return _New(upto + MOST, session.later(NEW, queue=locks.queue(*key[:2]), upto=upto, most=upto + MOST, **named(key)))


def _is_made(tables: Known, made: Snapshot, key: Key, known: KnownTable, new: _New, view: View) -> bool:
    """Add what a snapshot makes of a remembered table with what is new of it, or forget it; tell which."""
    rows = new.answer.rows
    told = sum(1 if kind == 1 else more[1] - more[0] + 1 for kind, _, *more in rows if kind)
    whole = any(kind == 0 and last - (new.most - MOST) <= told for kind, last, *_ in rows)  # house keeping took none of them away
    is_same = whole and _is_added(known, rows, new.most)
    if is_same:
        known.make(made, key, view)
    else:
        tables.pop(key, None)
    return is_same


def _is_added(known: KnownTable, rows: Sequence[Row], most: int) -> bool:
    """Add to a table what was read of it, if it is still the same and not too large, and what was read of it goes up to its end."""
    for kind, last, transaction, changes in rows:
        if kind == 0:
            return bool(changes == known.changes) and last <= most and known.add(last, transaction, rows)
    return False
