"""Work on many directories in several threads where that saves time: where requests cross a network, or threads wait for a disk.

After an error no further item is begun. The error is raised when no item is under way, so that the finished ones can be undone.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextvars import copy_context
from typing import Any, TypeVar

from metastore.call_time import in_files

T = TypeVar("T")
R = TypeVar("R")

SAMPLE = 8
"""Local directories that are worked on before the others, to measure the time for one."""

WORTH = 40e-6
"""The least seconds for a local directory at which more threads save time: a system call takes 4 to 400 us, a hand-over takes time, too."""


class Shares:
    """Threads, at most `threads` at one time, that are started when they are first needed."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None

    def each(self, work: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """Return the values of `work` for all items, at once as far as there are threads."""
        return [work(item) for item in items] if len(items) < 2 else self._spread(work, items, 1)

    def each_local(self, work: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """Return the values of `work` for all items. The time of the first few decides the number of threads for the others.

        Each core gets as many threads as can wait while one computes. A disk that is notified of every freed block (TRIM) makes its
        callers wait, a search for a free inode does not.
        """
        began, computed = time.perf_counter(), time.thread_time()
        done = [work(item) for item in items[:SAMPLE]]
        others = items[SAMPLE:]
        if not others:
            return done
        took, computed = time.perf_counter() - began, time.thread_time() - computed
        threads = 1
        if took > WORTH * SAMPLE:
            threads = min(self._threads, len(others) // SAMPLE, round((os.cpu_count() or 1) * took / max(computed, took / self._threads)))
        if threads < 2:
            return done + [work(item) for item in others]
        return done + self._spread(work, others, math.ceil(len(others) / threads))

    @in_files
    def _spread(self, work: Callable[[T], R], items: Sequence[T], size: int) -> list[R]:
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self._threads, "directories")
        errors: list[BaseException] = []
        done: list[Any] = [None] * len(items)

        def share(start: int) -> None:
            for index in range(start, min(start + size, len(items))):
                if errors:
                    return
                try:
                    done[index] = work(items[index])
                except BaseException as error:  # noqa: BLE001  # the caller raises it
                    errors.append(error)

        wait([self._pool.submit(copy_context().run, share, start) for start in range(0, len(items), size)])
        if errors:
            raise errors[0]
        return done
