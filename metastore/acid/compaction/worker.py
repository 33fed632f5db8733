"""A compaction worker: take entries from the metastore's queue and do them, one after the other.

The entry belongs to this worker while its transaction lives; a worker that is killed loses both after the time-out, and the entry waits for
another. The files of a killed worker are never seen, and removed by the cleaner. Source: Hive's Worker.
"""

from __future__ import annotations

import os
import platform
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from metastore import idl, log
from metastore.acid.compaction import compacting
from metastore.acid.compaction.compacting import Rewriter
from metastore.acid.transactions import Connect, component
from metastore.client import Client
from metastore.idl import CompactionInfoStruct, CompactionType, DataOperationType, FindNextCompactRequest, LockType
from metastore.rules.transactions.compactions import INITIATED

KINDS = {CompactionType.MAJOR: "major", CompactionType.MINOR: "minor"}

Progress = Callable[[str], None]
"""A function that is called with the present step of the worker."""


@dataclass(frozen=True)
class CompactionOutcome:
    """The outcome of an entry: compacted, nothing to do, failed, or refused; `detail` has the new directories or the reason."""

    entry: CompactionInfoStruct
    state: str
    detail: str


@dataclass(frozen=True)
class WorkerKind:
    """The kind of a worker: its rewriters, and the errors that they raise."""

    version: str
    """Its name in the queue's column `worker_version`."""
    open: Callable[[CompactionInfoStruct], Rewriter]
    """Begins a transaction for an entry."""
    refusals: tuple[type[Exception], ...]
    """Errors for which an entry is refused: no worker can do it better."""


class CompactionWorker:
    """One worker on the queue of a metastore; `connected` opens a connection to it."""

    def __init__(
        self, kind: WorkerKind, connected: Connect, *, name: str | None = None, pool: str | None = None, progress: Progress | None = None
    ) -> None:
        self._kind = kind
        self._connect = connected
        self._pool = pool
        self._progress = progress or (lambda _: None)
        self.name = name or f"{platform.node()}-{os.getpid()}-{threading.get_ident()}"
        self._log = log.get("metastore.compactor")

    def run_once(self) -> CompactionOutcome | None:
        """Process the oldest entry of the queue. Return its outcome, None for an empty queue. OSError if the metastore does not answer."""
        with self._connect() as client:
            request = FindNextCompactRequest(workerId=self.name, workerVersion=self._kind.version, poolName=self._pool)
            entry = client.find_next_compact2(request).ci
            if entry is None:
                return None
            outcome = self._do(client, entry)
        self._log.info(
            "compaction",
            id=entry.id,
            table=f"{entry.dbname}.{entry.tablename}",
            partition=entry.partitionname,
            kind=KINDS.get(entry.type),
            outcome=outcome.state,
            detail=outcome.detail,
        )
        return outcome

    def attempt(self) -> CompactionOutcome | None:
        """Do the same as `run_once`, but only log an error: the metastore may be restarting."""
        try:
            return self.run_once()
        except Exception as error:  # noqa: BLE001  # see the text
            self._log.warning("no compaction could be taken", reason=str(error))
            return None

    def _do(self, client: Client, entry: CompactionInfoStruct) -> CompactionOutcome:
        what = f"{KINDS.get(entry.type, entry.type)} compaction of {entry.dbname}.{entry.tablename} {entry.partitionname or ''}".rstrip()
        if entry.type not in KINDS:
            return self._end(entry, client.mark_refused, "refused", f"{what}: this worker does major and minor compactions")
        if entry.dbname.startswith("@"):
            return self._end(entry, client.mark_refused, "refused", f"{what}: this worker does tables of the default catalog")
        self._progress(what)
        refusals: tuple[type[Exception], ...] = (*self._kind.refusals, compacting.NoPartition)
        try:
            rewriter = self._kind.open(entry)
        except Exception as error:  # noqa: BLE001 # any error must be reported to the queue
            return self._end(entry, client.mark_failed, "failed", f"no transaction: {error}")
        try:
            return self._compact(client, entry, rewriter)
        except idl.NoSuchObjectException as error:
            rewriter.txn.abort()
            return self._end(entry, client.mark_cleaned, "nothing to do", f"dropped: {error}")
        except compacting.NothingToCompact as error:
            rewriter.txn.abort()
            return self._end(entry, client.mark_cleaned, "nothing to do", str(error))
        except refusals as error:
            rewriter.txn.abort()
            return self._end(entry, client.mark_refused, "refused", str(error))
        except compacting.Cancelled as error:
            rewriter.txn.abort()
            return CompactionOutcome(entry, "aborted", str(error))
        except (compacting.Stopped, compacting.PutBack) as error:
            rewriter.txn.abort()
            entry.state, entry.errorMessage = INITIATED, str(error) if isinstance(error, compacting.PutBack) else None
            client.update_compactor_state(entry, 0)
            return CompactionOutcome(entry, "put back", str(error))
        except Exception as error:  # noqa: BLE001  # see above
            rewriter.txn.abort()
            return self._end(entry, client.mark_failed, "failed", f"{type(error).__name__}: {error}"[:2000])
        finally:
            rewriter.close()

    def _compact(self, client: Client, entry: CompactionInfoStruct, rewriter: Rewriter) -> CompactionOutcome:
        rewriter.txn.lock(
            [
                component(
                    entry.dbname,
                    entry.tablename,
                    LockType.SHARED_READ,
                    DataOperationType.SELECT,
                    partition=entry.partitionname,
                )
            ]
        )
        job = compacting.prepare(rewriter.txn, entry)
        entry.highestWriteId = job.snapshot.write_ids.high_watermark
        client.update_compactor_state(entry, rewriter.txn.id)
        made = compacting.run(rewriter, job)
        rewriter.close()
        rewriter.txn.check()
        client.mark_compacted(entry)
        rewriter.txn.commit()
        return CompactionOutcome(
            entry, "compacted", ", ".join(made) or "nothing to write: an overwrite has replaced the old files, which the cleaner deletes"
        )

    def _end(self, entry: CompactionInfoStruct, report: Callable[[Any], None], state: str, reason: str) -> CompactionOutcome:
        entry.errorMessage = reason
        report(entry)
        return CompactionOutcome(entry, state, reason)
