"""Processes of Linux, as tests look at them: any of them may end between two looks."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

from tests.support.servers.waiting import until


def children(pid: int) -> list[int]:
    """Return the running children of a process; none if it has ended itself."""
    with suppress(FileNotFoundError, ProcessLookupError):
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [each for each in map(int, found) if runs(each)]
    return []


def runs(pid: int) -> bool:
    """Return whether a process runs. One that has ended, but is still listed for its parent, does not."""
    with suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def kill_with_children(pid: int) -> None:
    """Kill a process and all its descendants, also in sessions of their own, and return when none of them runs."""
    stopped = [pid]
    for each in stopped:  # the list grows in the loop; a stopped process starts no others
        with suppress(ProcessLookupError):
            os.kill(each, signal.SIGSTOP)
        stopped += children(each)
    for each in stopped:
        with suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)
    until(lambda: not any(map(runs, stopped)))


def niceness(pid: int) -> int | None:
    """Return the niceness of a process; None if it has ended."""
    with suppress(ProcessLookupError):
        return os.getpriority(os.PRIO_PROCESS, pid)
    return None
