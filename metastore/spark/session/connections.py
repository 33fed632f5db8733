"""Keep connections to a metastore from one statement to the next: to connect, and to log in, takes longer than most calls."""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from metastore.client import Client, connect
from metastore.client_login import from_environment

IDLE = 30.0
"""Seconds for which a connection is kept: the network may drop one that is silent for long."""
_IDLE: defaultdict[object, deque[tuple[float, Client]]] = defaultdict(deque)
"""The unused connections by address and login, each with the time of its last use; the last used are last."""


@contextmanager
def connected(uri: str) -> Iterator[Client]:
    """Yield a connection to a metastore that nobody else uses meanwhile; later callers may get it again. LoginError, ValueError."""
    idle = _IDLE[uri, from_environment()]
    oldest = time.monotonic() - IDLE
    client = None
    with suppress(IndexError):  # there is none, or another thread was faster
        while idle[0][0] < oldest:
            idle.popleft()[1].close()
        client = idle.pop()[1]
    client = client or connect(uri)
    try:
        yield client
    finally:
        idle.append((time.monotonic(), client))
