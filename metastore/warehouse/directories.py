"""Make, rename, delete and summarise directories by their locations, on any file system. Never looks at the database.

Every refusal of a file system is a MetaError that names the location. No caller can delete a root of the warehouse, a directory that
holds one, or `/`.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from types import TracebackType
from typing import Any, TypeVar

import structlog

from metastore.errors import MetaError, MetastoreError
from metastore.warehouse import locations
from metastore.warehouse.file_systems import TIMEOUT, Files, FileSystems
from metastore.warehouse.locations import join, parse
from metastore.warehouse.reach import StorageUnreachable
from metastore.warehouse.shares import Shares
from metastore.warehouse.summary import DirectorySummary
from metastore.warehouse.trash import place_in_trash

log = structlog.get_logger()
T = TypeVar("T")
R = TypeVar("R")

ANSWERS = frozenset({errno.ENAMETOOLONG, errno.ENOSPC, errno.ENOTEMPTY, errno.EXDEV, errno.EINVAL, errno.ELOOP, errno.EDQUOT})
PARALLEL = 16
"""Threads that work on many directories at one time, unless the settings say otherwise."""


class ParentMissing(MetaError):
    """The parent of a directory that was to be made is gone."""


class Warehouse:
    """The roots under which databases and tables are by default, and the file systems of locations.

    `options` are fsspec's, by scheme; `threads` bounds those that work on many directories at one time; `timeout`, in seconds, bounds a
    request to a remote file system. `accepts_moved`: another metastore may have moved a directory before.
    """

    def __init__(
        self,
        root: str,
        external_root: str | None = None,
        *,
        trash: bool = False,
        threads: int = PARALLEL,
        options: Mapping[str, Mapping[str, Any]] | None = None,
        timeout: float = TIMEOUT,
        accepts_moved: bool = False,
    ) -> None:
        self.root = locations.as_root(root)
        self.external_root = locations.as_root(external_root) if external_root else None
        self.trash = trash
        self._accepts_moved = accepts_moved
        self._systems = FileSystems(options or {}, timeout)
        self._shares = Shares(threads)
        self.silent = self._systems.silent
        """File systems that did not answer: for a while they are not asked by calls that need not reach them."""

    def _at(self, text: str) -> tuple[Files, str]:
        return self._systems.at(text)

    def check_driver(self, location: str) -> None:
        """Load the driver of a location's file system, without a request to it. MetaError that names the package to install."""
        self._systems.check(location)

    def each(self, work: Callable[[T], R], items: Sequence[T], at: str) -> list[R]:
        """Return the values of `work` for items at the location `at`, in parallel where that helps. An error ends it and is raised."""
        protocol = parse(at).protocol
        if protocol == "file":
            return self._shares.each_local(work, items)
        return [work(item) for item in items] if protocol == "memory" else self._shares.each(work, items)

    def qualified(self, location: str, base: str | None = None) -> str:
        """Return a location with a scheme; one without belongs to the file system of `base`, by default the root. MetaError.

        A location that has a scheme is not changed, but for a slash at its end, which is removed.
        """
        return locations.qualify(location, base or self.root)

    def of_database(self, location: str, base: str | None = None) -> str:
        """Return a database's location, qualified and as Hadoop prints it: `file:/x` for `file:///x`. MetaError."""
        return locations.as_root(self.qualified(location, base))

    def is_below(self, location: str, root: str) -> bool:
        """Return whether a location is a root or is inside it."""
        return locations.is_below(location, root)

    def exists(self, location: str) -> bool:
        """Return whether a file or directory exists. MetaError."""
        with Explained(f"{location} can not be looked at"):
            files, path = self._at(location)
            return files.exists(path)

    def was_moved(self, source: str, target: str) -> bool:
        """Return whether a directory is at its new place already, and may have been moved there by another metastore. MetaError."""
        return self._accepts_moved and self.exists(target) and not self.exists(source)

    def is_directory(self, location: str) -> bool:
        """Return whether a directory exists; on an object store, whether any object is below it. MetaError."""
        with Explained(f"{location} can not be looked at"):
            files, path = self._at(location)
            return files.is_directory(path)

    def is_empty(self, location: str) -> bool:
        """Return whether a directory is empty; true for a missing one. MetaError."""
        with Explained(f"{location} can not be listed"):
            files, path = self._at(location)
            try:
                return files.is_empty(path)
            except FileNotFoundError:
                return True

    def entries(self, location: str) -> list[tuple[str, bool]]:
        """Return (name, is a directory) of the entries of a directory; none for a missing one. MetaError."""
        with Explained(f"{location} can not be listed"):
            files, path = self._at(location)
            try:
                return files.entries(path)
            except FileNotFoundError:
                return []

    def read(self, location: str, most: int | None = None) -> bytes | None:
        """Return the content of a small file, or its first bytes; None for a missing one. MetaError."""
        with Explained(f"{location} can not be read"):
            files, path = self._at(location)
            try:
                return files.read(path, most)
            except FileNotFoundError:
                return None

    def write(self, location: str, data: bytes) -> None:
        """Make a small file, or overwrite it, in a directory that is there. MetaError."""
        with Explained(f"{location} can not be written"):
            files, path = self._at(location)
            files.write(path, data)

    def is_writable(self, location: str) -> bool:
        """Return whether entries of the directory can be removed; true where the file system does not show it or can not be asked."""
        try:
            files, path = self._at(location)
            return files.is_writable(path)
        except (MetastoreError, OSError):
            return True

    def missing(self, location: str, present: set[str] | None = None) -> list[str]:
        """Return the directories that `make` would have to make, outermost first; none on an object store.

        `present` remembers the directories that were found for other locations of one call. MetaError when a file is in the way.
        """
        parsed = parse(location)
        present = set() if present is None else present
        begin = location[: len(location) - len(parsed.path)] if location.endswith(parsed.path) else locations.prefix(parsed)
        name = parsed.path.rstrip("/")
        out: list[str] = []
        with Explained(f"{location} can not be looked at"):
            files, path = self._at(location)
            if not files.makes_directories:
                return []
            while name and begin + name not in present:
                found = files.look(path)
                if found:
                    present.add(begin + name)
                    break
                if found is False:
                    raise MetaError(f"{begin + name} is not a directory or unable to create one: a file of that name is there")
                out.append(begin + name)
                name, path = name.rpartition("/")[0], path.rpartition("/")[0]
        return out[::-1]

    def make(self, location: str) -> bool:
        """Make one directory; return whether this call made it. ParentMissing, MetaError."""
        with Explained(f"{location} is not a directory or unable to create one"):
            files, path = self._at(location)
            if not files.makes_directories:
                return False
            try:
                files.make(path)
            except FileExistsError:
                return False
            except FileNotFoundError as error:
                raise ParentMissing(f"{location} is not a directory or unable to create one: its parent was removed") from error
            return True

    def remove_if_empty(self, location: str) -> bool:
        """Remove a directory if it is there and empty. Return False, with a line in the log, only where its storage refused."""
        try:
            files, path = self._at(location)
            if files.makes_directories:
                files.remove_empty(path)
        except Exception as error:  # noqa: BLE001  # drivers raise many kinds
            if not isinstance(error, OSError) or error.errno not in {errno.ENOTEMPTY, errno.ENOENT, errno.ENOTDIR}:
                log.warning("a directory that may be empty was left behind", location=location, error=str(error) or repr(error))
                return False
        return True

    def rename(self, source: str, target: str) -> None:
        """Move a directory; the target's parent is made. MetaError when the target exists or the file systems differ."""
        if parse(source).key[:2] != parse(target).key[:2]:
            raise MetaError(f"{source} and {target} are on different file systems: copy the data and set the location")
        with Explained(f"{source} can not be moved to {target}"):
            files, old = self._at(source)
            _, new = self._at(target)
            files.make_all(new.rpartition("/")[0] or "/")
            try:
                files.rename(old, new)
            except FileExistsError as error:
                raise MetaError(f"{target} exists already: remove it or choose another name") from error

    def delete(self, location: str, *, purge: bool = False) -> None:
        """Remove a directory, if it is there, and all in it; into the trash if there is one and not `purge`. MetaError."""
        self.refuse_roots(location, {})
        self._delete(location, purge=purge)

    def delete_all(self, many: Sequence[str], *, purge: bool = False) -> dict[str, MetastoreError]:
        """Delete many directories, in parallel where that helps. Return the errors by location of the others."""
        folders: dict[str, str] = {}
        errors: dict[str, MetastoreError] = {}

        def may(location: str) -> bool:
            try:
                self.refuse_roots(location, folders)
            except MetastoreError as error:
                errors[location] = error
            return location not in errors

        def one(location: str) -> None:
            try:
                self._delete(location, purge=purge)
            except MetastoreError as error:
                errors[location] = error

        allowed = list(filter(may, many))
        if allowed:
            self.each(one, allowed, allowed[0])
        return errors

    def parts_but(self, location: str, kept: Collection[str]) -> list[str]:
        """Return the content of a directory but for the locations `kept` and the directories that hold one of them.

        MetaError, also for a root and for a directory that holds one, from which nothing is deleted.
        """
        self.refuse_roots(location, {})
        paths = {parse(each).key[2] for each in kept}
        out: list[str] = []
        folders = [location]
        while folders:
            folder = folders.pop()
            for name, _ in self.entries(folder):
                child = join(folder, name)
                path = parse(child).key[2]
                if any(each.startswith(f"{path}/") for each in paths):
                    folders.append(child)
                elif path not in paths:
                    out.append(child)
        return out

    def can_rename(self, location: str) -> bool:
        """Return whether the file system of a location renames directories; an object store does not. MetaError."""
        with Explained(f"{location} can not be looked at"):
            return self._at(location)[0].makes_directories

    def set_aside(self, source: str, target: str, *, purge: bool) -> bool | None:
        """Rename a directory to an unused name; an empty local one is removed instead, unless it would be put into the trash.

        Returns whether it was renamed, None if it is not there. CanNotRename where only its files can be deleted, MetaError.
        """
        with Explained(f"{source} can not be deleted"):
            files, old = self._at(source)
            try:
                return files.set_aside(old, self._at(target)[1], may_remove=purge or not self.trash)
            except FileNotFoundError:
                return None

    def put_back(self, aside: str, source: str) -> None:
        """Undo `set_aside`, if it was done; a new directory at the old name stays. MetaError."""
        with Explained(f"{aside} can not be put back to {source}"):
            files, here = self._at(aside)
            files.merge(here, self._at(source)[1])

    def delete_aside(self, aside: str, source: str, *, purge: bool) -> None:
        """Delete the data of a location that was set aside, into the trash if there is one and not `purge`. MetaError."""
        with Explained(f"{source} can not be deleted, its data is now in {aside}"):
            files, path = self._at(aside)
            if self.trash and not purge and files.exists(path) and self._to_trash(source, files, path):
                return
            files.delete(path)

    def stamps(self, location: str) -> dict[str, object]:
        """Return the stamps of the files below a directory, by path; an unchanged file keeps its stamp. MetaError."""
        with Explained(f"{location} can not be listed"):
            files, path = self._at(location)
            return files.stamps(path)

    def delete_files(self, location: str, stamps: Mapping[str, object], *, purge: bool, keep: bool) -> None:
        """Delete the listed files of a directory that are still the same, and directories in it that are empty then. MetaError.

        The directory itself is deleted, too, if it is empty, unless `keep` is set.
        """
        with Explained(f"{location} can not be deleted"):
            files, path = self._at(location)
            now = files.stamps(path)
            same = [name for name, stamp in stamps.items() if now.get(name) == stamp]
            target = place_in_trash(location, parse(location)) if self.trash and not purge else None
            if target is None:
                files.delete_files(path, same, keep=keep)
            else:
                files.move_files(path, same, self._at(target + _millis())[1], keep=keep)

    def _delete(self, location: str, *, purge: bool) -> None:
        with Explained(f"{location} can not be deleted"):
            files, path = self._at(location)
            if self.trash and not purge and files.exists(path) and self._to_trash(location, files, path):
                return
            files.delete(path)

    def refuse_roots(self, location: str, folders: dict[str, str]) -> None:
        """Raise MetaError for a root, or a directory that holds one, links resolved. `folders` caches parents' real paths for one call."""

        def real(folder: str) -> str:
            found = folders.get(folder)
            if found is None:
                found = folders[folder] = os.path.realpath(folder)
            return found

        protocol, authority, path = parse(location).key
        if locations.is_root(location):
            raise MetaError(f"{location} is the root of a file system: it is never deleted")
        place = path
        if protocol == "file":
            folder, name = os.path.split(path)
            place = os.path.join(real(folder), name)
        for root in (self.root, self.external_root):
            if root is None or (key := parse(root).key)[:2] != (protocol, authority):
                continue
            if _contains(path, key[2]) or (protocol == "file" and _contains(place, real(key[2]))):
                raise MetaError(f"{location} is or holds the warehouse's root {root}: it is never deleted")

    def _to_trash(self, location: str, files: Files, path: str) -> bool:
        """Move into the trash; False for a location in the trash. A taken name, or a parent's name that a file has, gets the time."""
        wanted = place_in_trash(location, parse(location))
        if wanted is None:
            return False
        while True:
            target = wanted
            parent = target.rpartition("/")[0]
            try:
                files.make_all(self._at(parent)[1], 0o700)
                if files.exists(self._at(target)[1]):
                    target = wanted + _millis()
                files.rename(path, self._at(target)[1])
            except NotADirectoryError:
                pass
            except FileExistsError:
                if files.is_directory(self._at(parent)[1]):
                    continue  # another process took the name: the next attempt has a later time
            else:
                return True
            file = parent
            while not files.exists(self._at(file)[1]):
                file = file.rpartition("/")[0]
            if files.is_directory(self._at(file)[1]):
                continue
            wanted = wanted.replace(file, file + _millis(), 1)

    def summarize(self, location: str) -> DirectorySummary:
        """Count the files below a directory and add up their bytes. MetaError."""
        with Explained(f"{location} can not be listed"):
            files, path = self._at(location)
            return files.summarize(path)

    def database_location(self, name: str, *, catalog_root: str | None = None) -> str:
        """Return the default place of a database: below the catalog's own root, the external root, or the root."""
        return join(catalog_root or self.external_root or self.root, f"{name}.db")


def _contains(path: str, other: str) -> bool:
    """Return whether `path` is `other` or one of its parents."""
    return other.startswith(path) and (other == path or other[len(path)] == "/")


def _millis() -> str:
    return str(time.time_ns() // 1_000_000)


class Explained:
    """A context that turns a file system's errors into a MetaError; drivers raise many kinds.

    A class, since a generator context costs as much as a stat.
    """

    __slots__ = ("_what",)

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if isinstance(error, Exception) and not isinstance(error, MetastoreError):
            reason = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
            raise (MetaError if _is_answer(error) else StorageUnreachable)(f"{self._what}: {reason}") from error


def _is_answer(error: Exception) -> bool:
    """Return whether an error is the answer of a file system about a name or its free space: it was reached."""
    return isinstance(error, (FileExistsError, FileNotFoundError, NotADirectoryError, IsADirectoryError)) or (
        isinstance(error, OSError) and error.errno in ANSWERS
    )
