"""Bound the time of a request to a remote file system, and keep requests to one that may not answer out of database transactions.

A transaction holds rows that others wait for. Within one, a file system that has not answered lately is not asked: the transaction is
rolled back, the file system is asked for something small, and the transaction begins again (`asking_first`). One that did not answer in
time is refused for a while.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Collection
from contextvars import ContextVar
from functools import cache, partial
from typing import Any, TypeVar

from metastore.call_time import in_files

R = TypeVar("R")
D = TypeVar("D")

FRESH = 30.0
"""Seconds after an answer for which a file system is expected to answer again."""
REFUSED = 10.0
"""Seconds for which a file system that did not answer in time is not asked again."""
LONG = frozenset({"copy", "find", "mv", "rm"})
"""Methods of a driver that work on many files."""
TIMES = 10
"""The time limit of the methods in `LONG`, as a multiple of the limit of the others."""
ANSWERS = (FileNotFoundError, FileExistsError, PermissionError, NotADirectoryError, IsADirectoryError)
"""Errors that are answers of a file system: it was reached."""

_asked: ContextVar[dict[object, Exception | None] | None] = ContextVar("asked", default=None)
"""Within a transaction the errors of the file systems that were asked before it began, None for those that answered."""


class MustBeAsked(BaseException):
    """A file system has to be asked before the transaction. It is a BaseException, so that no handler of failures catches it."""

    def __init__(self, key: object, ask: Callable[[], object]) -> None:
        super().__init__()
        self.key = key
        self.ask = ask


def asking_first(transaction: Callable[[], R]) -> R:
    """Run a transaction that may use file systems. It begins again for each file system that has to be asked first."""
    asked: dict[object, Exception | None] = {}
    while True:
        token = _asked.set(asked)
        try:
            return transaction()
        except MustBeAsked as found:
            key, ask = found.key, found.ask
        finally:
            _asked.reset(token)
        try:
            in_files(ask)()
        except ANSWERS:
            asked[key] = None
        except Exception as error:  # noqa: BLE001  # the transaction raises it
            asked[key] = error
        else:
            asked[key] = None


class Patience:
    """The time limit of requests to one file system, and the time of its last answer."""

    def __init__(self, timeout: float, timed_out: Callable[[], None]) -> None:
        self._timeout = timeout
        self._timed_out = timed_out
        self._answered = self._refused_until = float("-inf")

    def open(self, load: Callable[[], D], make: Callable[[D], R], open_outside: Callable[[], object]) -> R:
        """Return the driver that `make` makes of the module that `load` loads. Only `make` has a time limit.

        Loading the module is not an answer of the file system. Raises the errors of `run`; MustBeAsked has `open_outside`.
        """
        self._check("driver", open_outside)
        return self._bounded(partial(make, load()), self._timeout)

    def run(self, work: Callable[[], R], ask: Callable[[], object], times: int = 1) -> R:
        """Return the value of `work`, or raise its error. TimeoutError when it takes too long; MustBeAsked, with `ask`."""
        self._check("files", partial(self._noting, ask, 1))
        return self._noting(work, times)

    def _check(self, what: str, ask: Callable[[], object]) -> None:
        """Refuse a request that would wait: TimeoutError, MustBeAsked, or the file system's error before the transaction."""
        now = time.monotonic()
        if now < self._refused_until:
            raise TimeoutError(f"the file system did not answer within {self._timeout:g} seconds a moment ago (setting warehouse_timeout)")
        asked = _asked.get()
        if asked is None or now - self._answered <= FRESH:
            return
        if (self, what) not in asked:
            raise MustBeAsked((self, what), ask)
        if error := asked[self, what]:
            raise error

    def _noting(self, work: Callable[[], R], times: int) -> R:
        """Return the value of `work`, and note the time of an answer of the file system."""
        try:
            result = self._bounded(work, self._timeout * times)
        except ANSWERS:
            self._answered = time.monotonic()
            raise
        self._answered = time.monotonic()
        return result

    def _bounded(self, work: Callable[[], R], limit: float) -> R:
        results: list[R] = []
        errors: list[BaseException] = []

        def run() -> None:
            try:
                results.append(work())
            except BaseException as error:  # noqa: BLE001  # the caller raises it
                errors.append(error)

        thread = threading.Thread(target=run, name="file system", daemon=True)  # one that hangs ends with the process
        thread.start()
        thread.join(limit)
        if not results and not errors:
            self._refused_until = time.monotonic() + REFUSED
            self._timed_out()
            raise TimeoutError(f"no answer within {limit:g} seconds (setting warehouse_timeout)")
        if errors:
            raise errors[0]
        return results[0]


class Bounded:
    """A driver whose methods have a time limit."""

    def __init__(self, system: Any, patience: Patience) -> None:
        self._system = system
        self._patience = patience

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._system, name)
        return partial(self._call, name, found) if callable(found) else found

    def _call(self, name: str, method: Callable[..., Any], *args: Any, **options: Any) -> Any:
        path = args[0] if isinstance(args[0], str) else next(iter(args[0]), "") if args and isinstance(args[0], Collection) else ""
        ask = partial(self._system.exists, path)
        return self._patience.run(partial(method, *args, **options), ask, TIMES if name in LONG else 1)


@cache
def own_loop(system: tuple[str, str]) -> asyncio.AbstractEventLoop:
    """Return the event loop of one file system, in a thread of its own: a driver that blocks its loop holds up no other one."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name=f"loop of {system[0]}", daemon=True).start()
    return loop
