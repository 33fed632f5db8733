"""Note what each thread asks of the database: how many statements, and for how long it waited. This module never asks anything itself.

A thread serves one call at a time, so whoever begins a call begins its work, and reads at the end what it took. Noting a round trip takes
a quarter of a microsecond.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import perf_counter

KINDS = ("select", "lock", "insert", "update", "delete", "other")
"""Of statements; "lock" are queries that lock rows, and so may wait for others."""
LOCK = KINDS.index("lock")
_OTHER = KINDS.index("other")
_LOCKING = ("FOR UPDATE", "FOR SHARE", "LOCK IN SHARE MODE")


def kind_of(text: str) -> int:
    """Return the place of a statement's kind in `KINDS`."""
    word = text[:6].lower()
    if word == "select" and any(phrase in text for phrase in _LOCKING):
        return LOCK
    return KINDS.index(word) if word in KINDS else _OTHER


class Total:
    """What all threads of this process took and did since it began. Two that add at once may lose one addition: it is a measure."""

    def __init__(self) -> None:
        self.seconds = self.lock_seconds = 0.0
        self.added_partitions = self.dropped_partitions = 0


total = Total()


class DatabaseWork:
    """What the work of one thread took since it began: times are in seconds."""

    __slots__ = ("lock_seconds", "locking", "pool_seconds", "seconds", "statements", "trace")

    def __init__(self) -> None:
        self.begin()
        self.locking = False
        """Whether the next round trip has a statement that locks rows."""
        self.trace: Callable[[str, float, float], None] | None = None
        """Is told of each round trip: its last statement, when it began by `perf_counter`, and how long it took."""

    def begin(self) -> None:
        """Forget what was noted: a call begins."""
        self.statements = 0
        self.seconds = self.lock_seconds = self.pool_seconds = 0.0
        """In round trips to the database; the part of it in those that lock rows, and for SQLite's turn to write; for a connection."""

    def waited_for_lock(self, seconds: float) -> None:
        """Note a wait for a lock, or a round trip in which there may have been one."""
        self.lock_seconds += seconds
        total.lock_seconds += seconds

    def round_trip(self, text: str, began: float) -> None:
        """Note a round trip that ends now; `text` is its last statement, "" if it is not known."""
        seconds = perf_counter() - began
        self.seconds += seconds
        total.seconds += seconds
        if self.locking:
            self.locking = False
            self.waited_for_lock(seconds)
        if self.trace is not None:
            self.trace(text, began, seconds)


class _Here(threading.local):
    work: DatabaseWork

    def __init__(self) -> None:
        self.work = DatabaseWork()


here = _Here()
"""`here.work` is that of the thread which asks."""
