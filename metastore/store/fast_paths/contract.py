"""A fast path: one whole call on transactions in one round trip, with the call's row in the notification log.

Each method returns None, with nothing changed, where the database has no such path or where the call needs more than the path does. The
caller then takes the portable way, which does the same for every case. `event` is the row of the log, None where the log has none. FIRST,
LAST and WRITE_ID are placeholders in its message for numbers that only the database knows: the statement replaces them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from metastore.store.core.database import Database
from metastore.store.operations.notifications import LogRow
from metastore.store.transactions.components import Intent
from metastore.store.transactions.locks import Component, KnownWriteId, NewLock, OverlapScope
from metastore.store.transactions.transactions import COMPONENTS, LOCKS, RANGES, WRITE_IDS, Who
from metastore.store.transactions.write_ids import TableKey

FIRST, LAST, WRITE_ID = -2, -1, -1
"""Placeholders in a message for the first and the last opened transaction, and for the first write id."""
BEFORE_WRITE_ID = '"writeIdList":['
"""The text before a write id in a message. No name looks like it, since JSON escapes quotes."""
IN_PLACE_OF_WRITE_ID = f"{BEFORE_WRITE_ID}{WRITE_ID}"

PLAIN = LOCKS | WRITE_IDS | COMPONENTS | RANGES
"""The bits of `holds` that a transaction may have if a fast path ends it."""


class Ended(NamedTuple):
    """A transaction that a call has ended: its id and its type."""

    id: int
    type: int


class Hint(NamedTuple):
    """The caller's assumptions about a transaction. Hints choose the statements, which check the assumptions themselves."""

    type: int
    holds: int
    """Bits of `store.transactions`."""
    intents: int
    """The number of objects to which the transaction writes."""
    intent: Intent | None
    """The object, with its write id, if it is the only one."""
    row_changes: bool
    """Whether the transaction updates or deletes rows: the commit then has to look for conflicts."""


class LockAttempt(NamedTuple):
    """A lock that is to be added if it has to wait for no other lock."""

    lock: NewLock
    parts: Sequence[Component]
    intents: Sequence[Intent]
    """The intents of the lock's open transaction."""
    wanted: OverlapScope
    """The scope of the locks for which it might wait."""
    known: Mapping[TableKey, KnownWriteId]
    """The known write ids of the transaction; other ones are looked up."""

    @property
    def bits(self) -> int:
        """The bits of `store.transactions` for the tables in which the transaction then has rows."""
        return LOCKS | (COMPONENTS if self.intents else 0)


class FastPaths:
    """The fast paths of a kind of database. This base has none."""

    def try_open(self, database: Database, count: int, kind: int, who: Who, now: int, most: int, event: LogRow | None) -> list[int] | None:
        """Open transactions, unless more than `most` might be open then; return their ids ascending."""
        return None

    def try_commit(
        self, database: Database, key: int, hint: Hint, now: int, event: LogRow | None, *, checks_conflicts: bool
    ) -> Ended | None:
        """Commit an open transaction that holds no more than PLAIN.

        With `checks_conflicts`, one that changed an object is only committed if no other transaction that changed the object committed
        since it began. The event of a read-only transaction is not written.
        """
        return None

    def try_abort(self, database: Database, keys: Sequence[int], hint: Hint, now: int, event: LogRow | None) -> list[int] | None:
        """Abort open transactions, ids ascending, that hold no more than PLAIN and write to no object: all of them, or none.

        `hint` is of the first. The event of a read-only transaction is not written.
        """
        return None

    def try_allocate(
        self, database: Database, key: TableKey, transactions: Sequence[int], event: LogRow | None, *, in_batch: bool
    ) -> int | None:
        """Give a transaction, or consecutive ones, their first write ids in a table, ascending; return the first write id.

        Without `in_batch` the only transaction is assumed to have been opened alone, so that it is within no range of write ids.
        """
        return None

    def try_lock(self, database: Database, new: LockAttempt) -> int | None:
        """Add a lock, and its transaction's intents, if it waits for none; return its id."""
        return None
