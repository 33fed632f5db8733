"""Whether this process reaches its database: one line of the log when it is lost, and one when it is back. Never connects itself."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from metastore import log


class Contact:
    """What one process knows of its way to one database: lost while no connection can be opened. Safe for threads."""

    def __init__(self, database: str) -> None:
        """`database` is its URL, without the password."""
        self.was_made = False
        """Whether a connection was ever opened."""
        self._database = database
        self._lock = threading.Lock()
        self._lost_since: float | None = None
        self._log = log.get("metastore.database")

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Open a connection, and note whether that succeeds. Raises what opening it raises."""
        try:
            yield
        except Exception as error:
            if self.was_made:
                self._lose(str(error))
            raise
        self.was_made = True
        self._regain()

    def _lose(self, reason: str) -> None:
        with self._lock:
            if self._lost_since is not None:
                return
            self._lost_since = time.monotonic()
        self._log.error("database lost", database=self._database, reason=reason, pid=os.getpid())

    def _regain(self) -> None:
        with self._lock:
            if self._lost_since is None:
                return
            seconds = round(time.monotonic() - self._lost_since, 3)
            self._lost_since = None
        self._log.warning("database is back", database=self._database, seconds=seconds, pid=os.getpid())
