"""List, read and move files by one interface: through fsspec here, through Hadoop's file systems on Spark's driver."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

import fsspec

from metastore.acid.durable import local_path, sync_placed

PARALLEL = 16
"""Threads that list or move files at one time."""
OTHER_NAMES = {"s3a": "s3", "s3n": "s3"}
"""The usual names of schemes, by Hadoop's own names."""


class FileError(Exception):
    """A file system refused a request; the text has the file and the reason."""


class Status(NamedTuple):
    """An entry of a directory; `path` is complete, `length` in bytes and 0 for directories."""

    path: str
    is_directory: bool
    length: int

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rstrip("/").rpartition("/")[2]


class Files(Protocol):
    """The file systems that hold tables. Each method raises FileError where they refuse."""

    def list(self, path: str) -> list[Status]:
        """Return the entries of a directory; none when it is missing."""

    def read(self, path: str) -> bytes:
        """Return the content of a small file."""

    def read_end(self, path: str, size: int) -> bytes:
        """Return the last `size` bytes of a file, or all of it."""

    def write(self, path: str, content: bytes) -> None:
        """Make a small file."""

    def make(self, path: str) -> None:
        """Make a directory with its parents, unless it is there."""

    def rename(self, source: str, target: str) -> None:
        """Give a file or directory another name, which must be free."""

    def copy(self, source: str, target: str) -> None:
        """Copy a file."""

    def delete(self, path: str) -> None:
        """Remove a file or directory with all its content. A missing one is not an error."""

    def sync(self, directory: str, top: str) -> None:
        """Write a directory through to the disk, as `durable.sync_placed` does, where that is the machine's own."""


def open_path(path: str) -> tuple[Any, str]:
    """Return the fsspec file system of a location and the path in it; Hadoop's names of S3 are understood."""
    scheme, colon, rest = path.partition("://")
    return fsspec.core.url_to_fs(f"{OTHER_NAMES.get(scheme, scheme)}{colon}{rest}")  # type: ignore[no-any-return]  # untyped


def set_options(options: Mapping[str, Mapping[str, Any]]) -> None:
    """Have this process open all file systems of a scheme with options of fsspec."""
    fsspec.config.conf.update({OTHER_NAMES.get(scheme, scheme): dict(given) for scheme, given in options.items()})


class FsspecFiles:
    """The file systems that fsspec has drivers for."""

    def list(self, path: str) -> list[Status]:
        """Return the entries of a directory; none when it is missing. FileError."""
        with _refused(path, "listed"):
            system, inner = open_path(path)
            system.invalidate_cache(inner)
            try:
                found = system.ls(inner, detail=True)
            except FileNotFoundError:
                return []
        begin, own = path.rstrip("/"), inner.rstrip("/")
        names = [(each["name"].rstrip("/"), each["type"] == "directory", int(each.get("size") or 0)) for each in found]
        return [
            Status(f"{begin}/{name.rpartition('/')[2]}", is_directory, 0 if is_directory else length)
            for name, is_directory, length in names
            if name != own
        ]

    def read(self, path: str) -> bytes:
        """Return the content of a small file. FileError."""
        with _refused(path, "read"):
            system, inner = open_path(path)
            return bytes(system.cat_file(inner))

    def read_end(self, path: str, size: int) -> bytes:
        """Return the last `size` bytes of a file, or all of it. FileError."""
        with _refused(path, "read"):
            system, inner = open_path(path)
            return bytes(system.tail(inner, size))

    def write(self, path: str, content: bytes) -> None:
        """Make a small file. FileError."""
        with _refused(path, "written"):
            system, inner = open_path(path)
            system.pipe_file(inner, content)

    def make(self, path: str) -> None:
        """Make a directory with its parents, unless it is there. FileError."""
        with _refused(path, "made"):
            system, inner = open_path(path)
            system.makedirs(inner, exist_ok=True)

    def rename(self, source: str, target: str) -> None:
        """Give a file or directory another name, which must be free. FileError."""
        with _refused(source, f"renamed to {target}"):
            system, old = open_path(source)
            _, new = open_path(target)
            if system.exists(new):
                raise FileExistsError("the name is taken")
            system.mv(old, new, recursive=system.isdir(old))

    def copy(self, source: str, target: str) -> None:
        """Copy a file. FileError."""
        with _refused(source, f"copied to {target}"):
            system, old = open_path(source)
            system.cp_file(old, open_path(target)[1])

    def delete(self, path: str) -> None:
        """Remove a file or directory with all its content. A missing one is not an error. FileError."""
        with _refused(path, "deleted"):
            system, inner = open_path(path)
            try:
                system.rm(inner, recursive=True)
            except FileNotFoundError:
                return

    def sync(self, directory: str, top: str) -> None:
        """Write a directory through to the disk, as `durable.sync_placed` does, where that is the machine's own. FileError."""
        path = local_path(directory)
        if path is not None:
            with _refused(directory, "written through to the disk"):
                sync_placed([path], local_path(top) or path)


@contextmanager
def _refused(path: str, done: str) -> Iterator[None]:
    """Raise FileError for an error of a driver of fsspec: not all of its errors are OSErrors."""
    try:
        yield
    except Exception as error:
        raise FileError(f"{path} can not be {done}: {error}") from error


def in_parallel(work: Any, items: Iterable[Any]) -> list[Any]:
    """Run `work` for each item in several threads, and return the results. The first error is raised when all have ended."""
    listed = list(items)
    if len(listed) < 2:
        return [work(item) for item in listed]
    with ThreadPoolExecutor(min(PARALLEL, len(listed)), "files") as pool:
        return list(pool.map(work, listed))
