"""Recognise names in the folder of a table that are not data. This module does not access files."""

from __future__ import annotations

TEMPORARY = "-tmp."
"""The beginning of names of folders in which Hive 4 lists the files of a statement's tasks; the name of its delta follows."""


def is_hidden(name: str) -> bool:
    """Return whether Hive's readers pass over a file or directory of this name."""
    return name[0] in "._" or name.startswith(TEMPORARY)
