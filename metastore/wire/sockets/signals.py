"""Signals by which an operator asks a running server: SIGUSR1 for the stacks of all its threads, SIGUSR2 for everything in its log.

The supervisor acts on them for all its worker processes; a worker that gets SIGUSR1 by itself prints its own stacks. They are printed by
Python and not by `faulthandler`, which may crash a process whose other threads run meanwhile.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Iterable
from contextlib import suppress

from metastore import log

ASKING = (signal.SIGUSR1, signal.SIGUSR2)


def listen_alone() -> None:
    """Let this process, which has no workers, print its stacks on SIGUSR1, and ignore SIGUSR2."""
    signal.signal(signal.SIGUSR1, lambda *_: print_stacks())
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)


def print_stacks(workers: Iterable[int] = ()) -> None:
    """Print the stacks of this process to standard error, and let worker processes print theirs.

    It takes no lock, since it may run while its own thread holds any.
    """
    parts = [f"stacks of process {os.getpid()}\n"]
    for thread, frame in sys._current_frames().items():  # noqa: SLF001 # Python's documented way, despite its name
        parts += [f"thread {thread}\n", *traceback.format_stack(frame)]
    with suppress(OSError):  # nobody may read it any more
        os.write(2, "".join(parts).encode(errors="backslashreplace"))
    for pid in workers:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGUSR1)


def switch_log() -> None:
    """Log everything, in all processes, or again by the level of the settings."""
    said = log.get("metastore.supervisor")
    if log.logs_everything():
        said.warning("the settings log_level and log_calls apply again")
        log.log_everything(False)
    else:
        log.log_everything(True)
        said.warning("everything is logged until the next SIGUSR2")
