"""Tell which names in the folder of a table are no data. This module knows no file system."""

from __future__ import annotations

TEMPORARY = "-tmp."
"""The beginning of names of folders in which Hive 4 notes what the tasks of a statement wrote; the name of its delta follows."""


def is_hidden(name: str) -> bool:
    """Return whether Hive's readers pass over a file or directory of this name."""
    return name[0] in "._" or name.startswith(TEMPORARY)
