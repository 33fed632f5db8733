"""The memory of this process."""

from __future__ import annotations

import os
from pathlib import Path

_PAGE = os.sysconf("SC_PAGESIZE")
_STATM = Path("/proc/self/statm")


def resident() -> int:
    """Return the bytes of memory that this process has; 0 where the system does not show them."""
    try:
        return int(_STATM.read_text().split()[1]) * _PAGE
    except OSError:
        return 0
