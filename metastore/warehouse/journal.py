"""Note which directories a process is about to make, so that a killed process leaves none behind. Never removes a file itself.

One file per process, locked for the process's life: a file whose lock is free belongs to a dead process. Lines are JSON; a line with
directories opens an entry, the bare number closes it. The file is not synced: it outlives a kill, not a power cut.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson


@dataclass(frozen=True, slots=True)
class Entry:
    """Directories that were being made for an object: ("table", catalog, database, name) or ("partitions", ..., [names])."""

    subject: tuple[str | list[str], ...]
    directories: list[str]


class Journal:
    """The journal of this process in a folder that the processes of one server share."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: int | None = None
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._open: set[int] = set()

    def begin(self, subject: Sequence[str | list[str]], directories: list[str]) -> int:
        """Write an entry; return the number that closes it."""
        number = next(self._numbers)
        with self._lock:
            if self._file is None:
                self._folder.mkdir(parents=True, exist_ok=True)
                name = f"{os.getpid()}-{os.urandom(4).hex()}.journal"
                self._file = os.open(self._folder / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
                fcntl.flock(self._file, fcntl.LOCK_EX)
            self._open.add(number)
            os.write(self._file, orjson.dumps([number, list(subject), directories]) + b"\n")
        return number

    def end(self, number: int) -> None:
        """Close an entry; the file is emptied when none is open."""
        with self._lock:
            assert self._file is not None
            self._open.discard(number)
            if self._open:
                os.write(self._file, b"%d\n" % number)
            else:
                os.ftruncate(self._file, 0)

    def abandoned(self) -> Iterator[Entry]:
        """Yield the open entries of dead processes; a file goes when its entries have been taken."""
        for path in sorted(self._folder.glob("*.journal")):
            try:
                file = os.open(path, os.O_RDWR)
            except FileNotFoundError:
                continue
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if not os.path.exists(path):
                    continue
                with open(file, "rb", closefd=False) as text:
                    lines = text.read().split(b"\n")
                entries: dict[int, Entry] = {}
                for line in lines[:-1]:
                    value = orjson.loads(line)
                    if isinstance(value, int):
                        entries.pop(value, None)
                    else:
                        entries[value[0]] = Entry(tuple(value[1]), value[2])
                yield from entries.values()
                path.unlink()
            except BlockingIOError:
                continue
            finally:
                os.close(file)
