"""Watch a process while it compacts: its memory, whether its entry was aborted, whether it is to end. This module touches no file.

A thread checks these, and reports the progress of the work. The work itself calls `passed` between two portions of rows, and gets an error
where it has to give up. If it has not given up after `PATIENCE` seconds, or takes far too much memory, its process ends.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

from metastore import idl, log
from metastore.acid.compaction.compacting import Cancelled, PutBack, Stopped
from metastore.acid.compaction.memory import resident
from metastore.acid.transactions import Connect, Transaction
from metastore.idl import AbortTxnRequest, CompactionInfoStruct, HeartbeatRequest, TxnType
from metastore.rules.transactions.compactions import INITIATED

TICK = 0.1
"""Seconds between looks at the memory."""
REPORT = 0.5
"""Seconds between looks at the entry."""
PATIENCE = 5.0
FAR_TOO_MUCH = 1.25
"""The multiple of its allowed memory beyond which a process ends at once."""


class Watch:
    """The watch over the work on one entry in a transaction, from `start` to `stop`. `is_to_end` returns whether the process has to end."""

    def __init__(
        self, connected: Connect, entry: CompactionInfoStruct, txn: Transaction, memory: int, is_to_end: Callable[[], bool]
    ) -> None:
        self._connect = connected
        self._entry = entry
        self._txn = txn
        self._memory = memory
        self._is_to_end = is_to_end
        self._reason: Exception | None = None
        self._since = 0.0
        self._rows = 0
        self._expected = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look, name=f"watch-{entry.id}", daemon=True)

    def start(self) -> None:
        """Start the watch."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the watch and note the progress of the work. It may be called again."""
        if not self._done.is_set():
            self._done.set()
            self._thread.join()
            if self._reason is None:
                self._report()

    def expect(self, rows: int) -> None:
        """Add to the number of rows that are to be read."""
        self._expected += rows

    def passed(self, rows: int) -> None:
        """Add to the number of rows that have been rewritten. Stopped, Cancelled, PutBack where the work has to give up."""
        self._rows += rows
        self.check()

    def check(self) -> None:
        """Raise Stopped, Cancelled or PutBack where the work is to be given up."""
        if self._reason is not None:
            raise self._reason

    def check_memory(self, more: int, what: str) -> None:
        """Raise PutBack where work that needs `more` bytes would exceed the allowed memory."""
        if resident() + more > self._memory:
            raise PutBack(
                f"{what} needs about {more >> 20} MB more, and the worker uses {resident() >> 20} of its {self._memory >> 20} MB already; "
                "raise compactor_worker_memory"
            )

    def _look(self) -> None:
        reported = 0.0
        while not self._done.wait(TICK):
            if self._reason is None and (reason := self._found()) is not None:
                self._give_up(reason)
            if self._reason is not None:
                if time.monotonic() - self._since > PATIENCE or resident() > self._memory * FAR_TOO_MUCH:
                    self._leave(self._reason)
            elif time.monotonic() - reported > REPORT:
                self._report()
                reported = time.monotonic()

    def _give_up(self, reason: Exception) -> None:
        self._reason, self._since = reason, time.monotonic()

    def _found(self) -> Exception | None:
        if self._is_to_end():
            return Stopped("the server stops")
        if resident() > self._memory:
            return PutBack(f"it takes more than the {self._memory >> 20} MB of compactor_worker_memory")
        return None

    def _report(self) -> None:
        """Report the progress of the work, and check that its transaction is open: a server aborts it together with the entry."""
        try:
            with self._connect() as client:
                client.heartbeat(HeartbeatRequest(lockid=0, txnid=self._txn.id))
                client.set_hadoop_jobid(f"{self._rows} of {self._expected} rows", self._entry.id)
        except (idl.NoSuchTxnException, idl.TxnAbortedException) as error:
            self._give_up(Cancelled(f"aborted: {error.message}"))
        except Exception as error:  # noqa: BLE001 # a database that does not answer may answer later
            log.get("metastore.compactor").warning("progress was not noted", id=self._entry.id, reason=str(error))

    def _leave(self, reason: Exception) -> None:
        """Put the entry back, unless it was aborted, and end the process: its compaction does not react. The cleaner removes its files."""
        try:
            with self._connect() as client:
                client.abort_txn(AbortTxnRequest(txnid=self._txn.id, txn_type=TxnType.COMPACTION))
                if not isinstance(reason, Cancelled):
                    self._entry.state, self._entry.errorMessage = INITIATED, str(reason) if isinstance(reason, PutBack) else None
                    client.update_compactor_state(self._entry, 0)
        finally:
            log.get("metastore.compactor").warning(
                "a compaction process ends in the middle of its work", id=self._entry.id, reason=str(reason)
            )
            os._exit(0)
