"""Work on a file system or object store through its fsspec driver. Never keeps a listing: other processes write there too.

Paths are in the driver's own form. Methods raise the driver's errors, which are not always OSErrors.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from metastore.call_time import uses_files
from metastore.hidden import is_hidden
from metastore.warehouse.summary import DirectorySummary

PATTERN = re.compile(r"[*?\[]")
"""Characters that make a path a pattern for drivers, which then remove or copy all matches."""

STAMP = ("size", "ETag", "etag", "LastModified", "last_modified", "updated", "mtime", "created")
"""Entries of drivers' details that identify the time and content of a file."""
PORTION = 1000
"""Files that one request removes."""


@uses_files
class RemoteFiles:
    """One file system; on an object store a directory is a prefix of names, so that it is neither made nor removed."""

    is_remote = True

    def __init__(self, system: Any, *, is_object_store: bool) -> None:
        self._system = system
        self.makes_directories = not is_object_store

    def exists(self, path: str) -> bool:
        return bool(self._system.exists(path))

    def is_directory(self, path: str) -> bool:
        """Return whether a directory exists; on an object store, whether any object is below it."""
        return bool(self._system.isdir(path))

    def look(self, path: str) -> bool | None:
        """Return True for a directory, False for anything else, None for nothing. It is one look: the path may change meanwhile."""
        try:
            return bool(self._system.info(path)["type"] == "directory")
        except FileNotFoundError:
            return None

    def is_empty(self, path: str) -> bool:
        """Return whether a directory is empty; FileNotFoundError if it is missing."""
        return not self._system.ls(path, detail=False)

    def entries(self, path: str) -> list[tuple[str, bool]]:
        """Return (name, is a directory) of the entries of a directory; FileNotFoundError if it is missing."""
        found = ((entry["name"].rstrip("/"), entry["type"] == "directory") for entry in self._system.ls(path, detail=True))
        own = path.strip("/")
        return [(name.rpartition("/")[2], is_directory) for name, is_directory in found if name.strip("/") != own]

    def read(self, path: str, most: int | None = None) -> bytes:
        """Return the content of a small file, or its first bytes; FileNotFoundError if it is missing."""
        return bytes(self._system.cat_file(path) if most is None else self._system.cat_file(path, start=0, end=most))

    def write(self, path: str, data: bytes) -> None:
        """Make a small file, or overwrite it."""
        self._system.pipe_file(path, data)

    def is_writable(self, path: str) -> bool:  # noqa: ARG002  # see LocalFiles
        """Return True: a driver does not show it."""
        return True

    def make(self, path: str) -> None:
        """Make one directory. FileExistsError."""
        self._system.mkdir(path, create_parents=False)

    def make_all(self, path: str, mode: int = 0o777) -> None:  # noqa: ARG002  # see LocalFiles
        """Make a directory with its parents, or nothing on an object store; `mode` is ignored."""
        if self.makes_directories:
            self._system.makedirs(path, exist_ok=True)

    def remove_empty(self, path: str) -> None:
        """Remove an empty directory; OSError for any other."""
        if not self.is_empty(path):
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), path)
        self._system.rmdir(path)

    def rename(self, old: str, new: str) -> None:
        """Give a directory another name; FileExistsError when that is taken.

        An object store copies each object and then removes the old ones; nothing of the copies stays if that fails.
        """
        if self._system.exists(new):
            raise FileExistsError(new)
        if self.makes_directories and not PATTERN.search(old + new):
            self._system.mv(old, new, recursive=True)
            return
        names = self._system.find(old)
        if not names and not self.makes_directories:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), old)
        self.make_all(new)
        try:
            self._system.copy(names, [new + name[len(old) :] for name in names], on_error="raise")
        except Exception:
            with suppress(Exception):
                self.delete(new)
            raise
        self.delete(old)

    def set_aside(self, old: str, new: str, *, may_remove: bool) -> bool:  # noqa: ARG002  # see LocalFiles
        """Rename to a name that nothing else uses. Returns True; FileNotFoundError."""
        self.rename(old, new)
        return True

    def merge(self, here: str, there: str) -> None:
        """Rename a directory, if it is there. Where the new name is taken, move its content there; FileExistsError if files remain."""
        if not self.exists(here):
            return
        with suppress(Exception):
            self.remove_empty(there)
        try:
            self.rename(here, there)
        except FileExistsError:
            if not (self.is_directory(here) and self.is_directory(there)):
                raise
            for name, _ in self.entries(here):
                self.merge(f"{here}/{name}", f"{there}/{name}")
            self.remove_empty(here)

    def stamps(self, path: str) -> dict[str, object]:
        """Return the stamps of the files below a directory, by path; objects that mark directories are among them."""
        found = self._system.find(path, detail=True)
        return {name: tuple(entry.get(key) for key in STAMP) for name, entry in found.items() if entry["type"] != "directory"}

    def delete_files(self, path: str, names: Sequence[str], *, keep: bool) -> None:  # noqa: ARG002  # see LocalFiles
        """Remove files in portions. Names that a driver would read as patterns are removed one by one."""
        plain = [name for name in names if not PATTERN.search(name)]
        for start in range(0, len(plain), PORTION):
            with suppress(FileNotFoundError):
                self._system.rm(plain[start : start + PORTION])
        for name in names:
            if PATTERN.search(name):
                with suppress(FileNotFoundError):
                    self._system.rm_file(name)

    def move_files(self, path: str, names: Sequence[str], target: str, *, keep: bool) -> None:
        """Copy files below a directory to another one, then remove them."""
        files = [name for name in names if not name.endswith("/")]
        self._system.copy(files, [target + name[len(path) :] for name in files], on_error="raise")
        self.delete_files(path, names, keep=keep)

    def delete(self, path: str) -> None:
        """Remove a directory and all below it.

        A driver would take a name with `*`, `?` or `[` in it for a pattern, and remove all matches: such names are removed one by one.
        """
        if not PATTERN.search(path):
            with suppress(FileNotFoundError):
                self._system.rm(path, recursive=True)
            return
        with suppress(FileNotFoundError):
            found = {path: {"type": "directory"}, **self._system.find(path, withdirs=True, detail=True)}
            for name, entry in sorted(found.items(), reverse=True):
                with suppress(FileNotFoundError):
                    if entry["type"] != "directory":
                        self._system.rm_file(name)
                    elif self.makes_directories:
                        self._system.rmdir(name)

    def summarize(self, path: str) -> DirectorySummary:
        """Count the files below a directory; objects that only mark a directory are not files."""
        try:
            found = self._system.find(path, detail=True)
        except FileNotFoundError:
            return DirectorySummary(0, 0)
        base = len(path.strip("/"))
        files = size = 0
        for name, entry in found.items():
            relative = name.lstrip("/")[base:]
            if entry.get("type") == "directory" or relative.endswith(("/", "_$folder$")):
                continue
            if not any(is_hidden(part) for part in relative.split("/") if part):
                files += 1
                size += int(entry.get("size") or 0)
        return DirectorySummary(files, size)
