"""Say what a directory holds. Never reads one itself."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DirectorySummary:
    """What a directory holds, hidden names (`_x`, `.x`) left out: number of files and their bytes."""

    files: int
    size: int


def is_hidden(name: str) -> bool:
    """Tell whether Hive's readers pass over a file or directory of this name."""
    return name[0] in "._"
