"""What a database can do of a whole change of transactions in one round trip, together with its row in the notification log.

Each method does nothing, and returns nothing, where there is more to do than it can; the caller then goes the long way. What a change
is told with is given as it will stand in the log, but for numbers that only the database knows: FIRST, LAST and WRITE_ID stand for them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from metastore.store.components import Intent
from metastore.store.database import Database, Session
from metastore.store.locks import Component, Given, NewLock
from metastore.store.notifications import LogRow
from metastore.store.transactions import COMPONENTS, LOCKS, RANGES, WRITE_IDS, Who
from metastore.store.write_ids import Key

FIRST, LAST, WRITE_ID = -2, -1, -1
"""What stands in a message for the first and the last opened transaction, which follow each other as ids do, and for the first write id."""
BEFORE_WRITE_ID = '"writeIdList":['
"""What stands right before it. JSON has no name that looks so, since it escapes quotes."""
IN_PLACE_OF_WRITE_ID = f"{BEFORE_WRITE_ID}{WRITE_ID}"

PLAIN = LOCKS | WRITE_IDS | COMPONENTS | RANGES
"""What a transaction may hold that is committed in one round trip."""


class Guess(NamedTuple):
    """What a transaction is thought to be. It is only ended in one round trip if it holds no more; the database looks."""

    type: int
    holds: int
    intents: int
    """How many rows say what it writes."""


class AtOnce:
    """What a database can do in one round trip: nothing, unless it has a class of its own that says what."""

    most_opened = 0
    """Transactions that are opened in one round trip, and so the others."""
    most_ended = 0
    least_allocated, most_allocated = 1, 0
    adds_locks = judges = commits_changes = False
    """Whether it has `lock`, `commit_if_first` and `commit_change`."""

    def open(self, database: Database, count: int, kind: int, who: Who, now: int, most: int, told: LogRow | None) -> list[int]:
        """Open transactions unless more than `most` might be open; return their ids ascending. The message has FIRST and LAST."""
        raise AssertionError(self, database, count, kind, who, now, most, told)

    def commit(
        self, database: Database, key: int, guess: Guess, inserting: str, inserted: Intent | None, now: int, told: LogRow | None
    ) -> tuple[int, int] | None:
        """Commit a transaction that only did the operation `inserting`; return its id and type. One that is read-only is not told.

        `inserted` is the one object that it did this to, if it is known.
        """
        raise AssertionError(self, database, key, guess, inserting, inserted, now, told)

    def commit_if_first(
        self, database: Database, key: int, guess: Guess, changed: Intent, now: int, told: LogRow | None, *, judges: bool
    ) -> tuple[int, int] | None:
        """Commit a transaction that only changed rows of one object; return its id and type.

        With `judges`, only if no other one that changed the object committed since it began.
        """
        raise AssertionError(self, database, key, guess, changed, now, told, judges)

    def abort(self, database: Database, key: int, guess: Guess, now: int, told: LogRow | None) -> bool:
        """Abort a transaction that noted no writes; tell whether it was done. One that is read-only is not told."""
        raise AssertionError(self, database, key, guess, now, told)

    def abort_all(self, database: Database, keys: Sequence[int], now: int, told: LogRow | None) -> bool:
        """Abort transactions that noted no writes, ids ascending; tell whether it was done, for all of them or none."""
        raise AssertionError(self, database, keys, now, told)

    def allocate(self, database: Database, transactions: Sequence[int], key: Key, *, batch: bool, told: LogRow | None) -> int | None:
        """Give transactions that have no write id one each in a table, ascending; return the first. The message has WRITE_ID.

        Without `batch` they are thought to have been opened singly, so that none is within a range; the database looks.
        """
        raise AssertionError(self, database, transactions, key, batch, told)

    def lock(
        self,
        database: Database,
        lock: NewLock,
        parts: Sequence[Component],
        intents: Sequence[Intent],
        types: Collection[int],
        given: Mapping[Key, Given],
    ) -> int | None:
        """Add a lock, and what its open transaction means to write, unless it may meet one of these types; return its id.

        `given` are write ids of the transaction that are known; the others are looked for.
        """
        raise AssertionError(self, database, lock, parts, intents, types, given)

    def commit_change(self, session: Session, key: int, commit_id: int, inserting: str, now: int, told: LogRow | None) -> None:
        """Commit, together with the next statement, a locked transaction that holds no more than PLAIN and may commit what it changed."""
        raise AssertionError(self, session, key, commit_id, inserting, now, told)
