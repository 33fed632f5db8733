"""Make, rename, delete and summarise directories through fsspec. Never looks at the database."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from getpass import getuser
from pathlib import Path
from typing import Any

import fsspec

from metastore.errors import MetaError
from metastore.warehouse import locations
from metastore.warehouse.locations import OBJECT_STORES, Location, join, parse

PARALLEL = 16
"""Threads that work on many directories of one call on a remote file system."""


@dataclass(frozen=True, slots=True)
class DirectorySummary:
    """What a directory holds, hidden names (`_x`, `.x`) left out: number of files and their bytes."""

    files: int
    size: int


class Warehouse:
    """The roots under which databases and tables lie by default, and the file systems that locations name."""

    def __init__(
        self, root: str, external_root: str | None = None, *, trash: bool = False, options: Mapping[str, Mapping[str, Any]] | None = None
    ) -> None:
        self.root = locations.qualify(root).rstrip("/")
        self.external_root = locations.qualify(external_root).rstrip("/") if external_root else None
        self.trash = trash
        self._options = {locations.ALIASES.get(scheme, scheme): dict(value) for scheme, value in (options or {}).items()}
        self._systems: dict[str, Any] = {}
        self._lock = threading.Lock()

    def _system(self, location: Location) -> Any:
        protocol = location.protocol
        system = self._systems.get(protocol)
        if system is None:
            with self._lock:
                try:
                    system = fsspec.filesystem(protocol, **self._options.get(protocol, {}))
                except (ImportError, ValueError) as error:
                    raise MetaError(f"no file system for scheme {location.scheme}: {error}; install its fsspec driver") from error
                self._systems[protocol] = system
        return system

    def _at(self, text: str) -> tuple[Any, str, Location]:
        """Return the file system, the path in its own form, and the parts of a location."""
        location = parse(text)
        system = self._system(location)
        path = location.path.rstrip("/") or "/"
        if location.protocol in OBJECT_STORES:
            return system, location.authority + path, location
        return system, path, location

    def qualified(self, location: str) -> str:
        """Return a location with a scheme; one that has a scheme comes back as it is. MetaError when it is malformed."""
        return locations.qualify(location)

    def is_below(self, location: str, root: str) -> bool:
        """Tell whether a location is a root or lies inside it."""
        return locations.is_below(location, root)

    def exists(self, location: str) -> bool:
        """Tell whether a file or directory is there."""
        system, path, parsed = self._at(location)
        return os.path.lexists(path) if parsed.protocol == "file" else bool(system.exists(path))

    def is_directory(self, location: str) -> bool:
        """Tell whether a directory is there; on an object store, whether anything lies below it."""
        system, path, parsed = self._at(location)
        return os.path.isdir(path) if parsed.protocol == "file" else bool(system.isdir(path))

    def is_empty(self, location: str) -> bool:
        """Tell whether nothing lies in a directory; true for one that is not there."""
        system, path, parsed = self._at(location)
        try:
            if parsed.protocol == "file":
                with os.scandir(path) as entries:
                    return next(entries, None) is None
            return not system.ls(path, detail=False)
        except FileNotFoundError:
            return True

    def missing(self, location: str) -> list[str]:
        """Return the directories that `make` would have to make, outermost first; none on an object store."""
        parsed = parse(location)
        if parsed.protocol in OBJECT_STORES:
            return []
        if self.is_directory(location):
            return []
        out = []
        prefix = location[: len(location) - len(parsed.path)] if location.endswith(parsed.path) else _prefix(parsed)
        path = parsed.path.rstrip("/")
        while path and not self.is_directory(prefix + path):
            if self.exists(prefix + path):
                raise MetaError(f"{prefix + path} is not a directory or unable to create one: a file of that name is there")
            out.append(prefix + path)
            path = path.rpartition("/")[0]
        return out[::-1]

    def make(self, location: str) -> bool:
        """Make one directory whose parent is there; return whether this call made it."""
        system, path, parsed = self._at(location)
        try:
            if parsed.protocol == "file":
                os.mkdir(path)
            elif parsed.protocol not in OBJECT_STORES:
                system.mkdir(path, create_parents=False)
            else:
                return False
        except FileExistsError:
            return False
        except OSError as error:
            raise MetaError(f"{location} is not a directory or unable to create one: {error.strerror or error}") from error
        return True

    def remove_if_empty(self, location: str) -> None:
        """Remove a directory unless something lies in it or it is gone."""
        system, path, parsed = self._at(location)
        try:
            if parsed.protocol == "file":
                os.rmdir(path)
            elif parsed.protocol not in OBJECT_STORES and self.is_empty(location):
                system.rmdir(path)
        except OSError:
            return

    def rename(self, source: str, target: str) -> None:
        """Move a directory; the target's parent is made. MetaError when the target is there or the file systems differ."""
        system, old, parsed = self._at(source)
        _, new, other = self._at(target)
        if parsed.key[:2] != other.key[:2]:
            raise MetaError(f"{source} and {target} are on different file systems: copy the data and set the location")
        if self.exists(target):
            raise MetaError(f"{target} exists already: remove it or choose another name")
        try:
            if parsed.protocol == "file":
                os.makedirs(os.path.dirname(new), exist_ok=True)
                os.rename(old, new)
            else:
                if parsed.protocol not in OBJECT_STORES:
                    system.makedirs(new.rpartition("/")[0], exist_ok=True)
                system.mv(old, new, recursive=True)
        except OSError as error:
            raise MetaError(f"{source} can not be moved to {target}: {error.strerror or error}") from error

    def delete(self, location: str, *, purge: bool = False) -> None:
        """Remove a directory and all in it; into the trash when there is one and `purge` is not asked for."""
        system, path, parsed = self._at(location)
        if not self.exists(location):
            return
        try:
            if self.trash and not purge:
                self._to_trash(location, parsed)
            elif parsed.protocol == "file":
                if os.path.isdir(path) and not os.path.islink(path):
                    shutil.rmtree(path)
                else:
                    os.unlink(path)
            else:
                system.rm(path, recursive=True)
        except OSError as error:
            raise MetaError(f"{location} can not be deleted: {error.strerror or error}") from error

    def delete_all(self, many: list[str], *, purge: bool = False) -> None:
        """Delete many directories; in parallel where a request crosses the network."""
        if len(many) < 2 or parse(many[0]).protocol == "file":
            for location in many:
                self.delete(location, purge=purge)
            return
        with ThreadPoolExecutor(PARALLEL) as pool:
            list(pool.map(lambda location: self.delete(location, purge=purge), many))

    def _to_trash(self, location: str, parsed: Location) -> None:
        """Move below HOME/.Trash/Current at the same path, as Hadoop's TrashPolicyDefault does; a taken name gets the time."""
        home = str(Path.home()) if parsed.protocol == "file" else f"/user/{getuser()}"
        prefix = _prefix(parsed)
        target = f"{prefix}{home}/.Trash/Current{parsed.path.rstrip('/')}"
        if self.exists(target):
            target += str(time.time_ns() // 1_000_000)
        self.rename(location, target)

    def is_writable(self, location: str) -> bool:
        """Tell whether entries of the directory can be removed; true where the file system does not say."""
        _, path, parsed = self._at(location)
        return parsed.protocol != "file" or not os.path.isdir(path) or os.access(path, os.W_OK)

    def summarize(self, location: str) -> DirectorySummary:
        """Count the files below a directory and add up their bytes."""
        system, path, parsed = self._at(location)
        files = size = 0
        if parsed.protocol == "file":
            for folder, names, leaves in os.walk(path):
                names[:] = [name for name in names if name[0] not in "._"]
                for leaf in leaves:
                    if leaf[0] not in "._":
                        files += 1
                        size += os.lstat(os.path.join(folder, leaf)).st_size
            return DirectorySummary(files, size)
        try:
            found = system.find(path, detail=True)
        except FileNotFoundError:
            return DirectorySummary(0, 0)
        for name, entry in found.items():
            relative = name[len(path.strip("/")) :] if not name.startswith(path) else name[len(path) :]
            if not any(part[0] in "._" for part in relative.split("/") if part):
                files += 1
                size += int(entry.get("size") or 0)
        return DirectorySummary(files, size)

    def database_location(self, name: str, *, catalog_root: str | None = None) -> str:
        """Return where a database lies by default: below the catalog's own root, the external root, or the root."""
        return join(catalog_root or self.external_root or self.root, f"{name}.db")

    def managed_location(self, name: str, *, catalog_root: str | None = None) -> str:
        """Return where a database's managed tables lie by default."""
        return join(catalog_root or self.root, f"{name}.db")


def _prefix(parsed: Location) -> str:
    """Return scheme and authority as a location begins with them."""
    if parsed.authority:
        return f"{parsed.scheme}://{parsed.authority}"
    return f"{parsed.scheme}:" if parsed.scheme else ""
