"""The life of a process that compacts beside the server: look for entries, compact them with Arrow, end at a signal or after many entries.

Arrow is loaded with the first entry: until then the process is as small as the server's.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from metastore import log
from metastore.acid.compaction.memory import resident
from metastore.acid.files import set_options
from metastore.acid.transactions import Agent, Connect, Transaction
from metastore.idl import CompactionInfoStruct, ShowCompactRequest
from metastore.rules.transactions.compactions import INITIATED, SERVERS_OWN

if TYPE_CHECKING:
    from metastore.acid.compaction.worker import CompactionWorker

LOOK = 1.0
"""Seconds between looks into an empty queue."""
PAUSE = 5.0
"""Seconds to wait after an error, such as a database that does not answer."""
ENTRIES = 100
"""Entries after which a process ends, and another follows: Arrow's memory is given back to the system.

A process that holds half of its allowed memory ends after its first entry.
"""
LOWER = 10
"""The niceness that the process adds to its own: its work gives way to the server's."""


def run(
    connected: Connect, name: str, memory: int, first: Callable[[], float], *, filesystems: Mapping[str, Mapping[str, Any]] | None = None
) -> int:
    """Compact under a name until SIGTERM, the end of the parent process, or many entries; return the exit status.

    `memory` is the allowed memory of the process, in bytes. `first` is called before all else, and returns the seconds to wait then.
    `filesystems` are fsspec's options by scheme.
    """
    set_options(filesystems or {})
    ended, parent = threading.Event(), os.getppid()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    os.nice(LOWER)
    with suppress(OSError):  # where memory is short the system is to end this process, not the server
        Path("/proc/self/oom_score_adj").write_text("500")
    logger = log.get("metastore.compactor")

    def is_to_end() -> bool:
        return ended.is_set() or os.getppid() != parent

    def wait(seconds: float) -> None:
        for _ in range(max(1, round(seconds / LOOK))):
            if not is_to_end():
                ended.wait(LOOK)

    try:
        if pause := first():
            wait(pause)
    except Exception as error:  # noqa: BLE001  # the database may be restarting: time-outs do the rest
        logger.warning("a dead worker's compaction was not put back into the queue", reason=str(error))
    worker: CompactionWorker | None = None
    done = 0
    while done < ENTRIES and not is_to_end():
        try:
            if worker is None and _waits(connected):
                worker = _worker(connected, name, memory, is_to_end)
            if worker is not None and worker.run_once() is not None:
                done = ENTRIES if resident() * 2 > memory else done + 1
                continue
        except Exception as error:  # noqa: BLE001  # see above
            logger.warning("no compaction could be taken", reason=str(error))
            wait(PAUSE)
        wait(LOOK)
    return 0


def _waits(connected: Connect) -> bool:
    """Return whether an entry waits that workers of this version have not put back."""
    with connected() as client:
        found = client.show_compact(ShowCompactRequest(state=INITIATED)).compacts
    return any(each.workerVersion != SERVERS_OWN for each in found)


def _worker(connected: Connect, name: str, memory: int, is_to_end: Callable[[], bool]) -> CompactionWorker:
    import pyarrow as pa

    from metastore.acid.compaction.arrow_rewriter import ArrowRewriter
    from metastore.acid.compaction.watch import Watch
    from metastore.acid.compaction.worker import CompactionWorker, WorkerKind

    pa.set_cpu_count(1)

    def begin(entry: CompactionInfoStruct) -> ArrowRewriter:
        txn = Transaction.begin(connected, agent=Agent(name=name), compaction=True)
        return ArrowRewriter(txn, Watch(connected, entry, txn, memory, is_to_end))

    return CompactionWorker(WorkerKind(SERVERS_OWN, begin, ()), connected, name=name)
