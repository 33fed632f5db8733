"""Find the file system that a location is on, and open its driver when it is first needed. Never touches a file."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import fsspec
from fsspec.asyn import AsyncFileSystem

from metastore.call_time import in_files
from metastore.errors import MetaError
from metastore.warehouse import locations
from metastore.warehouse.bounded import Bounded, Patience, own_loop
from metastore.warehouse.local import LocalFiles
from metastore.warehouse.locations import OBJECT_STORES, Location, parse
from metastore.warehouse.reach import Silent, StorageUnreachable
from metastore.warehouse.remote import RemoteFiles

Files = LocalFiles | RemoteFiles
EXTRAS = {"s3": "s3", "gs": "gcs", "abfs": "abfs"}
"""The extras of this package that install drivers, by the scheme in fsspec's spelling."""
KNOWN = "write a path, file:///path, s3a://bucket/path, gs://bucket/path, abfss://.., hdfs://.., or another scheme with a driver of fsspec"
TIMEOUT = 30.0
"""Seconds for which a remote file system is waited for, unless the settings say otherwise."""


def _place(text: str) -> Location:
    """Split a location. MetaError for one that can name no place of its file system."""
    location = parse(text)
    authority = location.key[1]
    if location.protocol == "file" and authority:
        raise MetaError(f"{text} names the host {authority}: write file:///path, with three slashes, for a local file")
    if location.protocol in OBJECT_STORES and not authority:
        raise MetaError(f"{text} names no bucket: write {location.scheme}://bucket/path")
    return location


class FileSystems:
    """The file systems that locations name. `options` are fsspec's, by scheme; `timeout`, in seconds, bounds a request to a remote one."""

    def __init__(self, options: Mapping[str, Mapping[str, Any]], timeout: float = TIMEOUT) -> None:
        self.silent = Silent()
        self._options = {locations.ALIASES.get(scheme, scheme): dict(value) for scheme, value in options.items()}
        self._timeout = timeout
        self._local = LocalFiles()
        self._remote: dict[tuple[str, str], tuple[RemoteFiles, type[Any]]] = {}
        self._patience: dict[tuple[str, str], Patience] = {}

    def at(self, text: str) -> tuple[Files, str]:
        """Return the file system of a location and the path there. MetaError, StorageUnreachable."""
        location = _place(text)
        _, authority, path = location.key
        if location.protocol == "file":
            return self._local, path
        files, driver = self._remote.get((location.protocol, authority)) or self._open(text, location)
        if location.protocol in OBJECT_STORES or location.protocol == "memory":
            return files, driver._strip_protocol(f"{location.protocol}://{authority}{path}")  # noqa: SLF001  # a driver's hook
        return files, path

    def check(self, text: str) -> None:
        """Load the driver of a location, without asking its file system. MetaError that names the package to install."""
        location = _place(text)
        if location.protocol == "file":
            return
        try:
            fsspec.get_filesystem_class(location.protocol)
        except ImportError as error:
            extra = EXTRAS.get(location.protocol)
            install = f"pip install '.[{extra}]' in the checkout of metastore" if extra else "install that"
            raise MetaError(f"{text}: the driver of {location.scheme}:// is not installed ({error}); {install}") from error
        except ValueError as error:
            raise MetaError(f"{text}: no driver supports the scheme {location.scheme}://; {KNOWN}") from error

    @in_files
    def _open(self, text: str, location: Location) -> tuple[RemoteFiles, type[Any]]:
        key = protocol, authority = location.protocol, location.key[1]
        patience = self._patience.setdefault(key, Patience(self._timeout, partial(self.silent.mark, key)))
        load, make = partial(fsspec.get_filesystem_class, protocol), partial(self._make, protocol, authority)
        try:
            system, driver = make(load()) if protocol == "memory" else patience.open(load, make, partial(self._open, text, location))
        except Exception as error:
            reason = f"no file system for scheme {location.scheme}: {error}; look at its driver and options"
            raise StorageUnreachable(f"{text}: {reason}") from error
        if protocol != "memory":
            system = Bounded(system, patience)
        return self._remote.setdefault(key, (RemoteFiles(system, is_object_store=protocol in OBJECT_STORES), driver))

    def _make(self, protocol: str, authority: str, driver: type[Any]) -> tuple[Any, type[Any]]:
        options: dict[str, Any] = {"use_listings_cache": False} if protocol in OBJECT_STORES else {}
        if issubclass(driver, AsyncFileSystem):
            options["loop"] = own_loop((protocol, authority))
        named = driver._get_kwargs_from_urls(f"{protocol}://{authority}/")  # noqa: SLF001  # a driver's hook
        return driver(**{**options, **named, **self._options.get(protocol, {})}), driver
