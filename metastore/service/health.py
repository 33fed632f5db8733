"""Whether the server can answer calls: its database answers in time, and its schema is this version's. It never changes anything."""

from __future__ import annotations

import threading
from collections.abc import Callable

from metastore.service.context import Metastore
from metastore.store import migrate

PATIENCE = 1.0
"""Seconds in which the database must answer."""


class Readiness:
    """Asks the database in a thread of its own, one at a time: a database that hangs holds up one thread, and no probe."""

    def __init__(self, metastore: Metastore, is_draining: Callable[[], bool]) -> None:
        self._metastore = metastore
        self._is_draining = is_draining
        self._lock = threading.Lock()
        self._asking: threading.Thread | None = None
        self._found = ""

    def problem(self) -> str:
        """Return why no calls should be sent here, "" if they may."""
        if self._is_draining():
            return "the server is draining: it ends when the calls under way have ended"
        with self._lock:
            thread = self._asking
            if thread is None or not thread.is_alive():
                thread = self._asking = threading.Thread(target=self._ask, daemon=True)
                thread.start()
        thread.join(PATIENCE)
        return f"the database gave no answer within {PATIENCE:g} s" if thread.is_alive() else self._found

    def _ask(self) -> None:
        try:
            found, newest = migrate.current(self._metastore.database), migrate.revisions()[-1]
        except Exception as error:  # noqa: BLE001  # whatever it is, calls would meet it too
            self._found = f"the database can not be asked: {type(error).__name__}: {str(error)[:300]}"
        else:
            self._found = (
                "" if found == newest else f"the schema has revision {found}, this version needs {newest}: run `metastore db upgrade`"
            )
