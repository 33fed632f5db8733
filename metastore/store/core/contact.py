"""Note whether a process reaches its database, and whether the database takes changes.

The log gets a line when one of these ends, and when it is so again. This module never connects itself.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from metastore import log

CALM = 5.0
"""Seconds without a refusal after which a change proves that changes are taken: a full disk may still have room for a small one."""


class Contact:
    """One process's contact with one database: lost while no connection can be opened. Safe for threads."""

    def __init__(self, database: str) -> None:
        """`database` is its URL, without the password."""
        self.was_made = False
        """Whether a connection was ever opened."""
        self.loss = ""
        """The reason for which no connection could be opened, "" while the database is reached."""
        self.refusal = ""
        """The reason for which the database takes no changes, "" as far as it is known to take them."""
        self._lost_at = self._refused_at = 0.0
        self._lock = threading.Lock()
        self._log = log.get("metastore.database").bind(database=database)

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Note whether a block that opens a connection succeeds. Raises the block's errors."""
        try:
            yield
        except Exception as error:
            if self.was_made:
                self._lose(str(error) or type(error).__name__)
            raise
        self.was_made = True
        self._regain()

    def _lose(self, reason: str) -> None:
        with self._lock:
            known, self.loss = bool(self.loss), reason
            if not known:
                self._lost_at = time.monotonic()
        if not known:
            self._log.error("database lost", reason=reason, pid=os.getpid())

    def _regain(self) -> None:
        with self._lock:
            if not self.loss:
                return
            self.loss = ""
        self._log.warning("database is back", seconds=round(time.monotonic() - self._lost_at, 3), pid=os.getpid())

    def refuse(self, reason: str) -> None:
        """Note that the database did not take a change."""
        with self._lock:
            known, self.refusal, self._refused_at = bool(self.refusal), reason, time.monotonic()
        if not known:
            self._log.error("database takes no changes", reason=reason, pid=os.getpid())

    def accept(self) -> None:
        """Note that the database took a change."""
        with self._lock:
            if not self.refusal or time.monotonic() - self._refused_at < CALM:
                return
            self.refusal = ""
        self._log.warning("database takes changes again", pid=os.getpid())
