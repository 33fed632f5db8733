"""Find the time zone of this machine."""

from __future__ import annotations

import os
from pathlib import Path


def local_zone() -> str:
    """Return the zone of this machine's clock, which Java uses too unless it is set to another one."""
    if zone := os.environ.get("TZ", "").lstrip(":"):
        return zone
    place = str(Path("/etc/localtime").resolve())
    return place.partition("zoneinfo/")[2] or "UTC"
