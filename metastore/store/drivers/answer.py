"""The answer of a statement that is sent together with a later one. If it is read before, the pending statements are sent then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, TypeVar

from metastore.call_time import here

T = TypeVar("T")
Later = Callable[[], T]
"""A function that reads a value from an answer. Statements that are enqueued before its call are sent together."""


class Answer:
    """Rows, their number, and the key that the database gave a new row. Errors are raised by the call that lets the statement run."""

    __slots__ = ("_count", "_key", "_rows", "_wait_for")

    def __init__(self, wait_for: Callable[[Answer], object] | None = None) -> None:
        self._wait_for = wait_for
        self._rows: Sequence[tuple[Any, ...]] = ()
        self._count = 0
        self._key: int | None = None

    def settle(self, rows: Sequence[tuple[Any, ...]], count: int, key: int | None = None) -> None:
        """Store the answer. Without `key`, the key is the first value of the first row."""
        self._wait_for, self._rows, self._count, self._key = None, rows, count, key

    def _wait(self) -> None:
        if self._wait_for is not None:
            began = perf_counter()
            try:
                self._wait_for(self)
            finally:
                here.time.round_trip("", began)

    @property
    def rows(self) -> Sequence[tuple[Any, ...]]:
        """All rows of a query."""
        self._wait()
        return self._rows

    @property
    def count(self) -> int:
        """The number of rows that were found or changed."""
        self._wait()
        return self._count

    @property
    def key(self) -> int:
        """The key of a row that was inserted by `Session.insert_keyed`."""
        self._wait()
        return int(self._rows[0][0]) if self._key is None else self._key
