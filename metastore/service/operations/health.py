"""Whether the server can answer calls: its database answers in time, takes changes, and its schema is this version's.

It changes nothing that stays.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

from metastore import log
from metastore.errors import MetastoreError
from metastore.service.call.context import Metastore
from metastore.service.operations.observations import unattended_compactions
from metastore.store.core import migrate, probe

PATIENCE = 1.0
"""Seconds in which the database must answer."""
WRITES_APART = 1.0
"""Seconds between two changes by which a process tests the database: anybody may ask for `/readyz`, and often."""


LOOKS_APART = 60.0
"""Seconds between two looks at the compaction queue."""


class _Question:
    """A question that is asked in a thread of its own, once at a time: a database that hangs holds up one thread, and no probe."""

    def __init__(self, ask: Callable[[], str], holds: float = 0.0) -> None:
        """`ask` returns the fault, "" without one; it never raises. An answer is valid for `holds` seconds."""
        self.found = ""
        """The newest answer."""
        self._holds = holds
        self._asked_at = float("-inf")
        self._ask = ask
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def is_answered(self, patience: float) -> bool:
        """Ask, unless an answer is pending or still valid; return whether there is an answer within `patience` seconds."""
        with self._lock:
            thread = self._thread
            if thread is None or not (thread.is_alive() or time.monotonic() - self._asked_at < self._holds):
                self._asked_at = time.monotonic()
                thread = self._thread = threading.Thread(target=self._note, daemon=True)
                thread.start()
        thread.join(patience)
        return not thread.is_alive()

    def _note(self) -> None:
        self.found = self._ask()


class Readiness:
    """The readiness of one worker process; it logs when that changes."""

    def __init__(self, metastore: Metastore, is_draining: Callable[[], bool]) -> None:
        self._database = metastore.database
        self._is_draining = is_draining
        self._reading = _Question(self._read)
        self._writing = _Question(self._write, holds=WRITES_APART)
        self._compactions = _Question(self._look_at_compactions, holds=LOOKS_APART)
        self._lock = threading.Lock()
        self._was_ready = True
        self._log = log.get("metastore.readiness")

    def problem(self) -> str:
        """Return why no calls should be sent here, "" if they may."""
        if self._is_draining():
            return "the server is draining: it ends when the calls under way have ended"
        until = time.monotonic() + PATIENCE
        found = self.unanswered() or self.refusal(until - time.monotonic())
        is_ready = not found
        with self._lock:
            changed, self._was_ready = is_ready != self._was_ready, is_ready
        if changed and is_ready:
            self._log.warning("ready again", pid=os.getpid())
        elif changed:
            self._log.error("not ready", reason=found, pid=os.getpid())
        return found

    def warning(self) -> str:
        """Return advice for an operator on a problem that does not prevent calls, "" for none; it may be a minute old."""
        self._compactions.is_answered(PATIENCE)
        return self._compactions.found

    def _look_at_compactions(self) -> str:
        try:
            return "; ".join(self._database.read(unattended_compactions))
        except Exception:  # noqa: BLE001  # that the database can not be asked others say
            return ""

    def unanswered(self) -> str:
        """Return why the database can not be asked, "" if it can."""
        if self._reading.is_answered(PATIENCE):
            return self._reading.found
        reason = self._database.contact.loss
        return f"the database gave no answer within {PATIENCE:g} s{reason and f': {reason[:300]}'}"

    def refusal(self, patience: float = PATIENCE) -> str:
        """Return why the database takes no changes, "" if it does.

        Where that is not known within `patience` seconds, since a change has to wait for others, the last answer is returned.
        """
        self._writing.is_answered(max(0.0, patience))
        if self._writing.found:
            return self._writing.found
        reason = self._database.contact.refusal
        return reason and f"the database takes no changes: {reason}"

    def _read(self) -> str:
        try:
            found, newest = migrate.current(self._database), migrate.revisions()[-1]
        except Exception as error:  # noqa: BLE001 # calls would meet any such error too
            return f"the database can not be asked: {type(error).__name__}: {str(error)[:300]}"
        return "" if found == newest else f"the schema has revision {found}, this version needs {newest}: run `metastore db upgrade`"

    def _write(self) -> str:
        try:
            probe.change_nothing(self._database)
        except MetastoreError as error:
            return error.message[:300]
        except Exception as error:  # noqa: BLE001  # the same
            return f"the database takes no changes: {type(error).__name__}: {str(error)[:300]}"
        return ""
