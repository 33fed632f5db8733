"""Call a metastore over several connections, no faster than is allowed, and distinguish methods that its release lacks from refusals."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, TypeVar

from metastore.client import Client, is_unknown_method
from metastore.errors import MetaError
from metastore.idl import NoSuchObjectException

T = TypeVar("T")
R = TypeVar("R")
AHEAD = 2
"""Pieces of work that are begun before their results are wanted, for each connection."""


class Calls:
    """A metastore that is asked by several threads. A call that fails raises MetaError, which names the method."""

    def __init__(self, connect: Callable[[], Client], connections: int = 4, rate: float | None = None) -> None:
        """`rate` is the number of calls that may begin in a second."""
        self._idle: SimpleQueue[Client] = SimpleQueue()
        self._clients = [connect() for _ in range(connections)]
        for client in self._clients:
            self._idle.put(client)
        self._connections = connections
        self._pause = 1 / rate if rate else 0.0
        self._next = 0.0
        self._lock = threading.Lock()
        self._unknown: set[str] = set()

    def close(self) -> None:
        """Close the connections."""
        for client in self._clients:
            client.close()

    def knows(self, method: str) -> bool:
        """Return whether no call has shown yet that the server lacks a method."""
        return method not in self._unknown

    def ask(self, method: str, *arguments: Any, absent: Any = None, missing: tuple[type[Exception], ...] = ()) -> Any:
        """Return the result of a method; `absent` from a server that lacks it, or that raises one of the errors `missing`."""
        if method in self._unknown:
            return absent
        self._wait()
        client = self._idle.get()
        try:
            return client.call(method, *arguments)
        except missing:
            return absent
        except Exception as error:
            if is_unknown_method(error):
                self._unknown.add(method)
                return absent
            raise MetaError(f"{method}: {getattr(error, 'message', None) or error or type(error).__name__}") from error
        finally:
            self._idle.put(client)

    def find(self, method: str, *arguments: Any, absent: Any = None) -> Any:
        """Return the result of a method about an object; `absent` for one that is gone, and from a server that lacks the method."""
        return self.ask(method, *arguments, absent=absent, missing=(NoSuchObjectException,))

    def _wait(self) -> None:
        if self._pause:
            with self._lock:
                now = time.monotonic()
                begin = self._next = max(self._next + self._pause, now)
            time.sleep(max(0.0, begin - now))

    def each(self, work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Yield the results for items, in their order; some are begun ahead by other threads."""
        waiting: deque[Future[R]] = deque()
        with ThreadPoolExecutor(self._connections) as pool:
            try:
                for item in items:
                    waiting.append(pool.submit(work, item))
                    if len(waiting) > AHEAD * self._connections:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                for future in waiting:
                    with suppress(Exception):
                        future.cancel()
