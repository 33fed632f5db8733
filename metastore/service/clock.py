"""The time that heartbeats are measured by. Servers that share a database need clocks that agree to well within their time-outs."""

from __future__ import annotations

import time


def now_ms() -> int:
    """Return the time in milliseconds."""
    return time.time_ns() // 1_000_000
