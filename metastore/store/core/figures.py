"""A process's figures of its database for metrics: statements, times, the pool, the caches. It never asks the database."""

from __future__ import annotations

import time

from metastore.call_time import total
from metastore.store.core.caches import Caches
from metastore.store.core.database import Database
from metastore.store.core.kinds import KINDS

CACHES = tuple(Caches().regions())
Figure = tuple[str, str]
"""The name and the kind of a figure; "" where there is only one."""

TOTALS: tuple[Figure, ...] = (
    *(("statements", kind) for kind in KINDS),
    ("database_seconds", ""),
    ("lock_seconds", ""),
    ("pool_waits", ""),
    ("pool_wait_seconds", ""),
    ("cpu_seconds", ""),
    ("added_partitions", ""),
    ("dropped_partitions", ""),
    *((name, cache) for name in ("cache_hits", "cache_misses") for cache in CACHES),
)
"""Figures that only grow as long as a process lives."""
LEVELS: tuple[Figure, ...] = (
    ("pool_size", ""),
    ("pool_in_use", ""),
    ("pool_waiting", ""),
    ("workers", ""),
    ("cpu_load", ""),
    *(("cache_values", cache) for cache in CACHES),
)
"""Figures that go up and down."""


def totals(database: Database) -> list[float]:
    """Return the values of `TOTALS` in their order; some are seconds."""
    regions, pool = database.caches.regions(), database.pool
    return [
        *database.statements,
        total.seconds,
        total.lock_seconds,
        pool.waits,
        pool.waited,
        time.process_time(),
        total.added_partitions,
        total.dropped_partitions,
        *(regions[name].hits for name in CACHES),
        *(regions[name].misses for name in CACHES),
    ]


def levels(database: Database) -> list[float]:
    """Return the numbers of `LEVELS` in their order."""
    regions, pool = database.caches.regions(), database.pool
    return [pool.size, pool.in_use, pool.waiting, 1, _load.now(), *(len(regions[name]) for name in CACHES)]


class _Load:
    """The number of processors that the process used recently, as the average of at least half a second."""

    def __init__(self) -> None:
        self._at, self._used, self._load = time.monotonic(), time.process_time(), 0.0

    def now(self) -> float:
        at, used = time.monotonic(), time.process_time()
        if at - self._at >= 0.5:
            self._load = max(0.0, used - self._used) / (at - self._at)
            self._at, self._used = at, used
        return self._load


_load = _Load()
