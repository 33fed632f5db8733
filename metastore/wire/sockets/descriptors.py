"""File descriptors of the server: as many as the system allows, and a pause in accepting when there is none."""

from __future__ import annotations

import errno
import resource
import time
from contextlib import suppress

from metastore import log

SCARCE = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""Errors of a process, or a system, without room for another connection."""
PAUSE = 0.5
"""Seconds of a pause in accepting: without it the loop would run all the time, since waiting connections keep the socket ready."""


def raise_limit() -> None:
    """Let this process, and those that are forked from it, open as many descriptors as the system allows them: each connection is one."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):  # some systems know no such number
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class Accepting:
    """Whether a worker accepts connections, or pauses; it logs when that changes."""

    def __init__(self) -> None:
        self.resumes_at: float | None = None
        """When the next connection is tried, by the monotonic clock; None while connections are accepted."""
        self._since: float | None = None
        self._log = log.get("metastore.worker")

    def fail(self, reason: str, connections: int) -> None:
        """Begin a pause, or another one; `connections` is the number of open ones, for the log."""
        now = time.monotonic()
        self.resumes_at = now + PAUSE
        if self._since is None:
            self._since = now
            limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
            self._log.error(
                "no room for another connection", reason=reason, connections=connections, descriptors=limit,
                advice="raise the limit of open files (ulimit -n, LimitNOFILE), or lower idle_timeout",
            )  # fmt: skip

    def succeed(self) -> None:
        """Note that a connection was accepted."""
        if self._since is not None:
            self._log.warning("connections are accepted again", seconds=round(time.monotonic() - self._since, 3))
            self._since = None
