"""Figures of the database: the number of each kind, and the age of the oldest.

It changes nothing, except that it gives new events their ids, as readers of events do.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

from metastore.rules.transactions.compactions import INITIATED, STATE_TEXTS, UNATTENDED_MS, Waiting, unattended
from metastore.service.call.clock import now_ms
from metastore.service.call.context import Metastore
from metastore.service.operations.notifications import last_id
from metastore.store.core.database import Session
from metastore.store.operations import observations

COUNT_OBJECTS_AFTER = 60.0
"""Seconds for which the numbers of objects are kept: counting a million partitions reads an index from end to end."""
LOCK_TEXTS = {"a": "acquired", "w": "waiting"}


@dataclass(frozen=True, slots=True)
class Observation:
    """The figures at one time; ages are in seconds."""

    objects: dict[str, int]
    open_transactions: int
    oldest_transaction: float
    locks: dict[str, int]
    """The numbers of locks by state: "acquired", "waiting"."""
    compactions: dict[str, tuple[int, float]]
    """The number and the age of the oldest, by the state's name in Hive."""
    last_event: int
    leases: dict[str, float]
    """The seconds for which a server still holds its lease, by job; 0 if none does."""
    unattended: list[str]
    """Sentences about compactions that no worker takes."""


@dataclass(slots=True)
class Observer:
    """Looks at a server's database. Safe for threads."""

    metastore: Metastore
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _objects: dict[str, int] = field(default_factory=dict)
    _counted_at: float = float("-inf")

    def look(self) -> Observation:
        """Return the present figures; the numbers of objects may be a minute old. Raises the errors of the database."""
        with self._lock:
            if time.monotonic() - self._counted_at > COUNT_OBJECTS_AFTER:
                self._objects = self.metastore.database.read(observations.object_counts)
                self._counted_at = time.monotonic()
            objects = dict(self._objects)
        last_event = last_id(self.metastore)
        return self.metastore.database.read(lambda session: _look(session, objects, last_event))


def _look(session: Session, objects: dict[str, int], last_event: int) -> Observation:
    now = now_ms()

    def age(then: int | None) -> float:
        return max(0.0, (now - then) / 1000) if then is not None else 0.0

    opened, held = observations.open_transactions(session), observations.lock_states(session)
    found = {group.state: group for group in observations.compaction_states(session)}
    return Observation(
        objects=objects,
        open_transactions=opened.number,
        oldest_transaction=age(opened.oldest_ms),
        locks={text: held.get(letter, 0) for letter, text in LOCK_TEXTS.items()},
        compactions={
            text: (found[letter].number, age(found[letter].oldest_ms)) if letter in found else (0, 0.0)
            for letter, text in STATE_TEXTS.items()
        },
        last_event=last_event,
        leases={name: max(0.0, (until - now) / 1000) for name, until in observations.lease_ends(session).items()},
        unattended=unattended_compactions(session),
    )


def unattended_compactions(session: Session) -> list[str]:
    """Describe compactions that no worker takes, with the remedy."""
    now = now_ms()
    waiting = [Waiting(*row) for row in observations.waiting_compactions(session, INITIATED)]
    if not any(now - each.oldest > UNATTENDED_MS for each in waiting):
        return []
    return unattended(waiting, observations.compactions_taken(session), now)
