"""Count changes of what authorization goes by: whoever remembers some of it sees by one number whether it may be outdated.

Never says what changed.
"""

from __future__ import annotations

from collections.abc import Collection

from metastore.store import counters
from metastore.store.database import Session

COUNTER = "authorization"


def note(session: Session) -> None:
    """Count a change of roles, privileges, locations or owners of databases when the unit of work ends, once."""
    session.before_commit(_count, None)


def _count(session: Session, _: Collection[None]) -> None:
    counters.take(session, counters.NUMBERS, 1, name=COUNTER)


def number(session: Session) -> int:
    """Return how many there were."""
    return counters.value(session, COUNTER)
