"""Measure for each thread the parts of its call's time: the database, its locks, its pool, files, encoding. It never waits itself.

A thread serves one call at a time, so the caller that begins a call begins its measure, and reads it at the end. No moment is in two parts:
with the rest, the part `other`, they add up to the call's time. Noting a round trip takes a quarter of a microsecond.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from time import perf_counter
from types import TracebackType
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])
Class = TypeVar("Class", bound=type[Any])

PARTS = ("wait", "pool", "lock", "sql", "files", "encoding", "other")
"""Parts of a call's time. `wait`: a database that can not be reached, and the pause before another attempt. `pool`: the wait for a
connection. `lock`: statements that lock rows, and SQLite's turn to write. `sql`: all other round trips. `files`: files and directories.
`encoding`: the reply. `other`: the rest."""


class Total:
    """The time and the counts of all threads of this process since it began. If two threads add at once, one addition may be lost."""

    def __init__(self) -> None:
        self.seconds = self.lock_seconds = 0.0
        """Seconds of all round trips to the database, and of waits for locks: round trips that lock rows, and SQLite's turn to write."""
        self.added_partitions = self.dropped_partitions = 0


total = Total()


class CallTime:
    """The time of the present call of one thread, by parts, in seconds."""

    __slots__ = (
        "encoding_seconds", "files_seconds", "is_in_files", "lock_seconds", "locking", "pool_seconds", "sql_seconds", "statements", "trace",
        "wait_seconds",
    )  # fmt: skip

    def __init__(self) -> None:
        self.begin()
        self.locking = False
        """Whether the next round trip has a statement that locks rows."""
        self.is_in_files = False
        self.trace: Callable[[str, float, float], None] | None = None
        """A function that gets each round trip: its last statement, its beginning by `perf_counter`, and its duration in seconds."""

    def begin(self) -> None:
        """Forget all notes: a call begins."""
        self.statements = 0
        self.wait_seconds = self.pool_seconds = self.lock_seconds = self.sql_seconds = self.files_seconds = self.encoding_seconds = 0.0

    def parts(self, seconds: float) -> tuple[float, ...]:
        """Return the seconds of each of `PARTS` since the call began."""
        wait, pool, lock, sql, files, encode = (
            self.wait_seconds, self.pool_seconds, self.lock_seconds, self.sql_seconds, self.files_seconds, self.encoding_seconds,
        )  # fmt: skip
        return wait, pool, lock, sql, files, encode, max(0.0, seconds - wait - pool - lock - sql - files - encode)

    def waited_for_lock(self, seconds: float) -> None:
        """Note a wait for a lock, or a round trip in which there may have been one."""
        self.lock_seconds += seconds
        total.lock_seconds += seconds

    def round_trip(self, text: str, began: float) -> None:
        """Note a round trip that ends now; `text` is its last statement, "" if it is not known."""
        seconds = perf_counter() - began
        total.seconds += seconds
        if self.locking:
            self.locking = False
            self.waited_for_lock(seconds)
        else:
            self.sql_seconds += seconds
        if self.trace is not None:
            self.trace(text, began, seconds)


class _Here(threading.local):
    time: CallTime

    def __init__(self) -> None:
        self.time = CallTime()


here = _Here()
"""`here.time` is the measure of the calling thread."""


class _InFiles:
    """Notes the time of its block as time of files, unless it is within another such block."""

    __slots__ = ("_began", "_time")

    def __enter__(self) -> None:
        spent = here.time
        self._time: CallTime | None = None if spent.is_in_files else spent
        spent.is_in_files = True
        self._began = perf_counter()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        spent = self._time
        if spent is not None:
            spent.is_in_files = False
            spent.files_seconds += perf_counter() - self._began


def in_files(function: Function) -> Function:
    """Let a function note its time as time of files and directories. It must not use the database."""

    @wraps(function)
    def run(*args: Any, **options: Any) -> Any:
        with _InFiles():
            return function(*args, **options)

    return cast(Function, run)


def uses_files(cls: Class) -> Class:
    """Let each public method of a class note its time as time of files."""
    for name, found in list(vars(cls).items()):
        if callable(found) and not name.startswith("_"):
            setattr(cls, name, in_files(found))
    return cls


def encoding(function: Function) -> Function:
    """Let a function note its time as time of encoding. It must use neither the database nor files of the warehouse."""

    @wraps(function)
    def run(*args: Any, **options: Any) -> Any:
        began = perf_counter()
        try:
            return function(*args, **options)
        finally:
            here.time.encoding_seconds += perf_counter() - began

    return cast(Function, run)
