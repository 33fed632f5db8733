"""Look at storage on behalf of one call, and ignore unreachable storage where only clients use it. Never changes anything."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

import structlog

from metastore.errors import MetaError
from metastore.warehouse.locations import parse

log = structlog.get_logger()
T = TypeVar("T")

SLOW = 1.0
"""A failure after this time, in seconds, means that a file system does not answer. One that refuses at once is asked each time."""
SILENCE = 60.0
"""Seconds for which a file system that does not answer is not asked."""


class StorageUnreachable(MetaError):
    """The server has no driver, no credentials or no way to a file system, or may not look at a place there."""


class Silent:
    """The file systems that did not answer this process, by protocol and authority: a look took long, and failed."""

    def __init__(self) -> None:
        self._until: dict[tuple[str, str], float] = {}

    def note(self, system: tuple[str, str], began: float) -> None:
        """Note a failure of a request that began at a time of the monotonic clock."""
        now = time.monotonic()
        if now - began >= SLOW:
            self._until[system] = now + SILENCE

    def mark(self, system: tuple[str, str]) -> None:
        """Note that a file system did not answer in time."""
        self._until[system] = time.monotonic() + SILENCE

    def __contains__(self, system: tuple[str, str]) -> bool:
        return self._until.get(system, 0.0) > time.monotonic()


class Reach:
    """The looks at storage on behalf of one object.

    Where the server need not reach the storage, each file system that it can not reach is reported once. One that does not answer is not
    asked again by this call, nor by other calls for a while.
    """

    def __init__(self, subject: object, *, required: bool, silent: Silent | None = None) -> None:
        self._subject = subject
        self._required = required
        self._silent = silent or Silent()
        self._lost: set[tuple[str, str]] = set()
        self._lock = threading.Lock()

    def look(self, work: Callable[[str], T], location: str, otherwise: T) -> T:
        """Return the value of `work` for a location, or `otherwise` where the location need not be reached and is not. MetaError."""
        if self._required:
            return work(location)
        system = parse(location).key[:2]
        if system in self._lost:
            return otherwise
        began = time.monotonic()
        try:
            if system in self._silent:
                raise StorageUnreachable(
                    f"{location} is not looked at: its file system did not answer within the last {SILENCE:.0f} seconds"
                )
            return work(location)
        except StorageUnreachable as error:
            if system[0] == "file" or self._lose(system, began):
                what = "storage can not be reached, left to its clients"
                log.warning(what, object=str(self._subject), location=location, error=error.message)
            return otherwise

    def _lose(self, system: tuple[str, str], began: float) -> bool:
        """Note that a file system can not be reached. Return True only for the first note, since looks run in several threads."""
        with self._lock:
            first = system not in self._lost
            self._lost.add(system)
        self._silent.note(system, began)
        return first
