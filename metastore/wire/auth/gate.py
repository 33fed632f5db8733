"""Limit the computations that run at one time; the sites of the waiting ones take turns. It does not run the computation itself."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Iterator
from contextlib import contextmanager

from metastore.wire.auth.sasl import TooManyTries

MAX_WAITING = 400
"""Tries that wait at one time, of which `MAX_OF_SITE` may come from one site: no attacker fills the queue alone."""
MAX_OF_SITE = 200
PATIENCE = 20.0
"""Seconds that a try waits at most: less than a client has for its login."""


class Gate:
    """A limit on the computations that run at one time. Safe for threads."""

    def __init__(self, at_once: int) -> None:
        self._lock = threading.Lock()
        self._free = at_once
        self._waiting = 0
        self._queues: OrderedDict[str, deque[threading.Event]] = OrderedDict()
        """The waiting tries by site; the first site has the next turn."""

    @contextmanager
    def passed(self, site: str) -> Iterator[None]:
        """Wait for a turn, and hold it during the context. Raises TooManyTries where many wait already, and after `PATIENCE` seconds."""
        self._enter(site)
        try:
            yield
        finally:
            self._leave()

    def _enter(self, site: str) -> None:
        with self._lock:
            if self._free:
                self._free -= 1
                return
            queue = self._queues.get(site, deque())
            if self._waiting >= MAX_WAITING or len(queue) >= MAX_OF_SITE:
                raise TooManyTries("Too many logins wait for their turn: try again in a minute", 60)
            turn = threading.Event()
            queue.append(turn)
            self._queues[site] = queue
            self._waiting += 1
        if not turn.wait(PATIENCE):
            with self._lock:
                if not turn.is_set():
                    self._remove(site, turn)
                    raise TooManyTries(f"The login had no turn within {PATIENCE:g} seconds: try again in a minute", 60)

    def _remove(self, site: str, turn: threading.Event) -> None:
        queue = self._queues[site]
        queue.remove(turn)
        self._waiting -= 1
        if not queue:
            del self._queues[site]

    def _leave(self) -> None:
        with self._lock:
            if not self._queues:
                self._free += 1
                return
            site, queue = self._queues.popitem(last=False)
            queue.popleft().set()
            self._waiting -= 1
            if queue:
                self._queues[site] = queue
