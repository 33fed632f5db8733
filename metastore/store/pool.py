"""Lend connections: the one that came back last goes out first, so few stay warm. This module never looks at what is done with them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from metastore.store.work import here

PATIENCE = 60.0
"""Seconds for which a thread waits for a connection when all are lent."""


class Pool:
    """At most `size` connections, opened when there is none to lend. Safe for threads.

    Taking and giving back are one step of a list each, which threads can not interrupt; only who finds the list empty takes the lock.
    """

    def __init__(self, connect: Callable[[], Any], size: int) -> None:
        self._connect = connect
        self._size = size
        self._idle: list[Any] = []
        self._trusted: set[Any] = set()
        self._opened = 0
        self._waiting = 0
        self._changed = threading.Condition()
        self.waits = 0
        self.waited = 0.0
        """How often no connection was idle, and for how many seconds one was then waited for, or opened."""

    @property
    def size(self) -> int:
        """How many connections there may be."""
        return self._size

    @property
    def in_use(self) -> int:
        """How many connections are lent."""
        return max(0, self._opened - len(self._idle))

    @property
    def waiting(self) -> int:
        """How many threads wait for one to come back."""
        return self._waiting

    def take(self) -> Any:
        """Return a connection. Raises what opening one raises, TimeoutError when none comes back."""
        try:
            return self._idle.pop()
        except IndexError:
            return self._more()

    def give(self, connection: Any) -> None:
        """Take back a connection."""
        if connection not in self._trusted:
            self._drop([connection])
            return
        self._idle.append(connection)
        if self._waiting:
            with self._changed:
                self._changed.notify()

    def distrust(self, connection: Any) -> None:
        """Note that a connection broke, which is still to be given back: most likely all others that were open then have broken with it."""
        if connection in self._trusted:
            self.close()

    def close(self) -> None:
        """Close the connections that are not lent, and the others when they come back."""
        self._trusted = set()
        idle, self._idle = self._idle, []
        self._drop(idle)

    def _drop(self, connections: list[Any]) -> None:
        for each in connections:
            with suppress(Exception):  # it may be broken
                each.close()
        self._leave_room(len(connections))

    def _leave_room(self, number: int) -> None:
        with self._changed:
            self._opened -= number
            self._changed.notify_all()

    def _more(self) -> Any:
        began = time.perf_counter()
        try:
            return self._wait_or_open()
        finally:
            seconds = time.perf_counter() - began
            here.work.pool_seconds += seconds
            with self._changed:
                self.waits += 1
                self.waited += seconds

    def _wait_or_open(self) -> Any:
        until = time.monotonic() + PATIENCE
        with self._changed:
            self._waiting += 1
            try:
                while self._opened == self._size:
                    with suppress(IndexError):
                        return self._idle.pop()
                    if not self._changed.wait(until - time.monotonic()):
                        raise TimeoutError(f"all {self._size} connections were in use for {PATIENCE:.0f} s: raise database_pool_size")
                self._opened += 1
            finally:
                self._waiting -= 1
        try:
            connection = self._connect()
        except BaseException:
            self._leave_room(1)
            raise
        self._trusted.add(connection)
        return connection
