"""The summary of a directory: its files and their size. Never reads one itself."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DirectorySummary:
    """The content of a directory, hidden names left out: number of files and their bytes."""

    files: int
    size: int
