"""Lend connections: the last returned one is lent first, so few stay warm. This module never looks at their use."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from metastore.call_time import here

PATIENCE = 60.0
"""Seconds for which a thread waits for a connection when all are lent."""


class NoneIdle(TimeoutError):
    """No connection was returned in time; the database itself may work."""


class _Waiter:
    """A waiting thread. It is served with a connection, or without one, and may then open one itself."""

    __slots__ = ("connection", "served")

    def __init__(self) -> None:
        self.connection: Any = None
        self.served = threading.Event()


class Pool:
    """At most `size` connections, opened when there is none to lend. Safe for threads; the longest waiting one is served first.

    As long as no thread waits, a connection is taken or given back by a single operation on a list, which other threads can not interrupt.
    """

    def __init__(self, connect: Callable[[], Any], size: int) -> None:
        self._connect = connect
        self._size = size
        self._idle: list[Any] = []
        self._trusted: set[Any] = set()
        self._opened = 0
        self._waiters: deque[_Waiter] = deque()
        self._lock = threading.Lock()
        self.waits = 0
        self.waited = 0.0
        """The number of times that no connection was idle, and the seconds in which one was then waited for, or opened."""

    @property
    def size(self) -> int:
        """The largest number of connections."""
        return self._size

    @property
    def in_use(self) -> int:
        """The number of connections that are lent."""
        return max(0, self._opened - len(self._idle))

    @property
    def waiting(self) -> int:
        """The number of threads that wait for a connection."""
        return len(self._waiters)

    def take(self) -> Any:
        """Return a connection. Raises the errors of opening one, NoneIdle when none is returned in time."""
        if not self._waiters:
            with suppress(IndexError):
                return self._idle.pop()
        return self._more()

    def give(self, connection: Any) -> None:
        """Take back a connection."""
        if connection not in self._trusted:
            self._drop([connection])
            return
        self._idle.append(connection)
        if self._waiters:
            with self._lock:
                self._serve()

    def distrust(self, connection: Any) -> None:
        """Note that a connection broke, which is still to be given back. All open ones are closed: most likely they broke with it."""
        if connection in self._trusted:
            self.close()

    def close(self) -> None:
        """Close the connections that are not lent, and the others when they are given back."""
        self._trusted = set()
        idle, self._idle = self._idle, []
        self._drop(idle)

    def _drop(self, connections: list[Any]) -> None:
        for each in connections:
            with suppress(Exception):  # it may be broken
                each.close()
        self._leave_room(len(connections))

    def _leave_room(self, number: int) -> None:
        with self._lock:
            self._opened -= number
            self._serve()

    def _more(self) -> Any:
        began = time.perf_counter()
        unreachable = False
        try:
            return self._wait_or_open()
        except NoneIdle:
            raise
        except Exception:
            unreachable = True
            raise
        finally:
            seconds = time.perf_counter() - began
            if unreachable:
                here.time.wait_seconds += seconds
            else:
                here.time.pool_seconds += seconds
            with self._lock:
                self.waits += 1
                self.waited += seconds

    def _serve(self) -> None:
        """Give idle connections, or room to open one, to waiting threads, in their order; the lock is held."""
        while self._waiters:
            connection = None
            try:
                connection = self._idle.pop()
            except IndexError:
                if self._opened == self._size:
                    return
                self._opened += 1
            waiter = self._waiters.popleft()
            waiter.connection = connection
            waiter.served.set()

    def _wait_or_open(self) -> Any:
        waiter = _Waiter()
        with self._lock:
            self._waiters.append(waiter)
            self._serve()
        if not waiter.served.wait(PATIENCE):
            with self._lock:
                if not waiter.served.is_set():
                    self._waiters.remove(waiter)
                    raise NoneIdle(f"all {self._size} connections were in use for {PATIENCE:.0f} s: raise database_pool_size")
        if waiter.connection is not None:
            return waiter.connection
        try:
            connection = self._connect()
        except BaseException:
            self._leave_room(1)
            raise
        self._trusted.add(connection)
        return connection
