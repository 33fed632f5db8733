"""Count changes of the facts for authorization: a cache of them checks by one number whether it may be outdated.

It does not note the changes themselves.
"""

from __future__ import annotations

from collections.abc import Collection

from metastore.store.core import counters
from metastore.store.core.database import Session
from metastore.store.drivers.answer import Answer

COUNTER = "authorization"


def note(session: Session, by: Answer | None = None) -> None:
    """Count a change of roles, privileges, locations or owners of databases when the unit of work ends, once.

    `by` is the answer to a statement that may have changed no row: then no change is counted.
    """
    session.before_commit(_count, by)


def _count(session: Session, changed: Collection[Answer | None]) -> None:
    if any(by is None or by.count for by in changed):
        counters.take(session, counters.NUMBERS, 1, name=COUNTER)


def number(session: Session) -> int:
    """Return the number of changes so far."""
    return counters.value(session, COUNTER)
