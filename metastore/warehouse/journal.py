"""Note which directories a process is about to make or move, so that a killed process leaves no trace. Never changes a directory itself.

One file per process, locked for the process's life: a file whose lock is free belongs to a dead process. Lines are JSON;
a list [number, subject, directories, moves] opens an entry, the bare number closes it. The file is not synced: it outlives
a kill, not a power cut.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import signal
import threading
import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson
import structlog

from metastore.call_time import in_files
from metastore.errors import MetaError

log = structlog.get_logger()


Subject = Sequence[str | list[str]]
"""The object that a change makes: ("table", catalog, database, name), ("partitions", catalog, database, table, [names]) and the like."""


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """Work under way for an object: ("catalog", name), ("database", catalog, name), ("table", catalog, database, name) or
    ("partitions", catalog, database, table, [names]); or a deletion: ("deletion", number, "purge" or "trash").
    """

    subject: tuple[str | list[str], ...]
    directories: list[str]
    """The directories that were missing, outermost first; for a deletion those whose files were listed."""
    moves: list[tuple[str, str]]
    """Pairs of the old and the new location."""


class Journal:
    """The journal of this process in a folder that the processes of one server share."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder
        self._file: int | None = None
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._open: set[int] = set()

    @in_files
    def begin(self, subject: Subject, directories: Sequence[str], moves: Sequence[tuple[str, str]] = ()) -> int:
        """Write an entry; return the number that closes it. MetaError when the disk is full: then the caller must not go on."""
        number = next(self._numbers)
        line = orjson.dumps([number, list(subject), list(directories), list(moves)]) + b"\n"
        with self._lock:
            try:
                if self._file is None:
                    self._file = self._create()
                self._append(self._file, line)
            except OSError as error:
                raise MetaError(
                    f"the journal of directories can not be written in {self._folder}: {error.strerror or error}; make room there"
                ) from error
            self._open.add(number)
        return number

    def _create(self) -> int:
        self._folder.mkdir(parents=True, exist_ok=True)
        while True:
            path = self._folder / f"{os.getpid()}-{os.urandom(4).hex()}.journal"
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(file, fcntl.LOCK_EX)
            except OSError:
                os.close(file)
                path.unlink()
                raise
            if path.exists():
                self._path = path
                return file
            os.close(file)  # a process that looked for journals of dead ones removed it before it was locked

    def _append(self, file: int, line: bytes) -> None:
        """Write a whole line or nothing."""
        size = os.fstat(file).st_size
        if os.write(file, line) < len(line):
            os.ftruncate(file, size)
            raise OSError(28, os.strerror(28))

    @in_files
    def end(self, number: int) -> None:
        """Close an entry; the file is emptied when none is open. On a full disk it stays open, which only costs recovery a check."""
        with self._lock:
            assert self._file is not None
            self._open.discard(number)
            try:
                if self._open:
                    self._append(self._file, b"%d\n" % number)
                else:
                    os.ftruncate(self._file, 0)
            except OSError as error:
                log.warning("journal entry was not closed", folder=str(self._folder), error=str(error))

    def close(self) -> None:
        """Close the file, and remove it unless an entry is open: the next server undoes that entry. The journal may be used again."""
        with self._lock:
            if self._file is None:
                return
            if not self._open:
                self._path.unlink(missing_ok=True)
            os.close(self._file)
            self._file = None

    def abandoned(self, patience: float = 0.0) -> Generator[JournalEntry, None, None]:
        """Yield the open entries of dead processes, the latest of a process first; wait some seconds for those that are being killed.

        A file is removed after its last entry has been consumed. It stays for the next time when the consumer ends the iteration early.
        """
        until = time.monotonic() + patience
        for path in sorted(self._folder.glob("*.journal")):
            try:
                file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            except FileNotFoundError:
                continue
            try:
                if not _locked(file, path, until) or not path.exists():
                    continue
                yield from reversed(_open_entries(path))
                path.unlink()
            finally:
                os.close(file)


def _locked(file: int, path: Path, until: float) -> bool:
    """Lock the journal of a dead process; return whether that worked. Wait for a process that is being killed until a monotonic time."""
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until or not _is_being_killed(path.name.partition("-")[0]):
                return False
            time.sleep(0.02)
        else:
            return True


def _is_being_killed(pid: str) -> bool:
    """Return whether a process has been sent SIGKILL or is ending; True where the system does not show it."""
    try:
        status = dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line)
    except OSError:
        return True  # its number is free already, its files are being closed; or the system is not Linux
    pending = int(status.get("SigPnd", "0"), 16) | int(status.get("ShdPnd", "0"), 16)
    return status.get("State", "")[:1] in "ZX" or bool(pending >> (signal.SIGKILL - 1) & 1)


def _open_entries(path: Path) -> list[JournalEntry]:
    """Return the open entries of a journal. A last line that the kill cut short is left out."""
    entries: dict[int, JournalEntry] = {}
    for line in path.read_bytes().split(b"\n")[:-1]:
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError:
            log.exception("journal line is not readable, passed over", journal=str(path))
            continue
        if isinstance(value, int):
            entries.pop(value, None)
        else:
            number, subject, directories, moves = value
            entries[number] = JournalEntry(tuple(subject), directories, [(source, target) for source, target in moves])
    return list(entries.values())
