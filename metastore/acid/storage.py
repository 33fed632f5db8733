"""The file system that holds a table: make, rename and remove files there, and write them through to the disk. Knows no format."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import fsspec

from metastore.acid import durable

VERSION_FILE, VERSION = "_orc_acid_version", b"2"


class CanNotWrite(OSError):
    """The warehouse refused a write; nothing of the transaction will be seen."""


@contextmanager
def naming_the_file(path: str) -> Iterator[None]:
    """Raise CanNotWrite, which names a file, for any other OSError."""
    try:
        yield
    except CanNotWrite:
        raise
    except OSError as error:
        raise CanNotWrite(f"{path} can not be written: {error}; the stream needs the right to write into the table's folder") from error


class Storage:
    """The file system that holds a table."""

    def __init__(self, location: str) -> None:
        self._system, self._root = fsspec.core.url_to_fs(_plain(location))
        protocol = self._system.protocol if isinstance(self._system.protocol, str) else self._system.protocol[0]
        self._is_local = protocol in ("file", "local")
        self.grows = self._is_local
        """Whether others see flushed bytes before a file is closed; object stores show whole files only."""

    def path(self, location: str) -> str:
        """Return a location as this file system names it."""
        return str(self._system._strip_protocol(_plain(location)))  # noqa: SLF001  # fsspec's way to say it

    def make_directory(self, path: str, *, versioned: bool = True) -> None:
        """Make a base or delta directory, of events or of plain files, unless it is there. CanNotWrite."""
        with naming_the_file(path):
            self._system.makedirs(path, exist_ok=True)
            if versioned and not self._system.exists(f"{path}/{VERSION_FILE}"):
                self._system.pipe_file(f"{path}/{VERSION_FILE}", VERSION)

    def create(self, path: str) -> Any:
        """Open a new file. CanNotWrite."""
        with naming_the_file(path):
            return self._system.open(path, "wb")

    def sync(self, *files: str) -> None:
        """Write files through to the disk, where that is the machine's own. CanNotWrite."""
        self._through(durable.sync, files)

    def sync_names(self, directory: str) -> None:
        """Write the names in a directory, and in those above it in the table, through to the disk, as `sync`. CanNotWrite."""
        self._through(durable.sync, durable.up_to(directory, self._root))

    def sync_placed(self, directories: Sequence[str]) -> None:
        """Write directories with their files through to the disk, as `sync_names`. CanNotWrite."""
        self._through(lambda paths: durable.sync_placed(paths, self._root), directories)

    def _through(self, work: Callable[[Sequence[str]], None], paths: Sequence[str]) -> None:
        if self._is_local:
            try:
                work(paths)
            except OSError as error:
                raise CanNotWrite(f"{error.filename} can not be written through to the disk: {error.strerror}") from error

    def open(self, path: str) -> Any:
        """Open a file to read."""
        return self._system.open(path, "rb")

    def read_end(self, path: str, size: int) -> bytes:
        """Return the last `size` bytes of a file, or all of it."""
        return bytes(self._system.tail(path, size))

    def rename(self, source: str, target: str) -> None:
        """Give a file another name, which must be free. CanNotWrite."""
        with naming_the_file(target):
            if self._system.exists(target):
                raise CanNotWrite(f"{target} is there already")
            self._system.mv(source, target)

    def remove(self, path: str) -> None:
        """Remove a file; one that stays does no harm."""
        with suppress(OSError):
            self._system.rm_file(path)

    def remove_directory(self, path: str) -> None:
        """Remove a directory with all in it; a remainder does no harm."""
        with suppress(OSError):
            self._system.rm(path, recursive=True)

    def below(self, path: str) -> list[str]:
        """Return the paths of a directory's entries, hidden ones too; none when it is missing."""
        self._system.invalidate_cache(path)
        try:
            return [str(found) for found in self._system.ls(path, detail=False)]
        except FileNotFoundError:
            return []


def _plain(location: str) -> str:
    return location.replace("s3a://", "s3://", 1).replace("s3n://", "s3://", 1)
