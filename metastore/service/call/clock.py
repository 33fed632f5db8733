"""The time that heartbeats are measured by, and the zone of schedules.

Servers that share a database need clocks that agree to well within their time-outs, and one zone.
"""

from __future__ import annotations

import os
import time
from datetime import datetime, tzinfo
from functools import cache
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError


def now_ms() -> int:
    """Return the time in milliseconds."""
    return time.time_ns() // 1_000_000


def now_s() -> int:
    """Return the time in seconds."""
    return int(time.time())


@cache
def zone(name: str | None) -> tzinfo:
    """Return a time zone by its name; without one the machine's (`TZ`, else `/etc/localtime`), with its summer time where known."""
    wanted = name or os.environ.get("TZ", "").removeprefix(":")
    try:
        if wanted:
            return ZoneInfo(wanted)
        with Path("/etc/localtime").open("rb") as file:
            return ZoneInfo.from_file(file)
    except (OSError, ValueError, ZoneInfoNotFoundError):
        return datetime.now().astimezone().tzinfo or ZoneInfo("UTC")
