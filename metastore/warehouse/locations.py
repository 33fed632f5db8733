"""Read and join locations as Hadoop writes them: `file:/x`, `file:///x`, `s3a://bucket/x`, `/x`. Never touches a file system.

A location is no URL: `%2F`, `?` and `#` are characters of a name, as in Hadoop's Path.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from metastore.errors import MetaError

LOCATION = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?://([^/]*))?(.*)", re.DOTALL)
ALIASES = {"s3a": "s3", "s3n": "s3", "": "file", "wasb": "abfs", "wasbs": "abfs", "abfss": "abfs", "gcs": "gs"}
"""Schemes that name the same file system to fsspec."""
OBJECT_STORES = frozenset({"s3", "gs", "abfs", "oss", "cos", "obs"})
"""Where a directory is only a common prefix: it needs no request to make."""


class Location(NamedTuple):
    """The parts of a location: scheme and authority may be empty, the path begins with a slash and has no `.` or empty component."""

    scheme: str
    authority: str
    path: str
    protocol: str
    """The name by which fsspec knows the file system."""
    key: tuple[str, str, str]
    """Protocol, authority and path: equal for two spellings of one place."""


@lru_cache(maxsize=8192)
def parse(location: str) -> Location:
    """Split a location; MetaError for one that is not absolute, holds NUL, or climbs out with `..`.

    The last ones are remembered: one call asks for the parts of each of its locations several times.
    """
    if "\0" in location:
        raise MetaError(f"location {location!r} holds a NUL character")
    match = LOCATION.fullmatch(location)
    assert match is not None
    scheme, authority, path = (match[1] or "").lower(), match[2] or "", match[3]
    if not path and authority:
        path = "/"
    if not path.startswith("/"):
        raise MetaError(f"location {location!r} is not absolute: give scheme://authority/path or /path")
    if "/." in path:
        components = path.split("/")
        if ".." in components:
            raise MetaError(f"location {location!r} climbs out of its directory with '..': give the path that is meant")
        path = "/".join(component for component in components if component != ".") or "/"
    if "//" in path:
        path = re.sub("/{2,}", "/", path)
    protocol = ALIASES.get(scheme, scheme)
    local = protocol == "file" and authority.lower() == "localhost"
    return Location(scheme, authority, path, protocol, (protocol, "" if local else authority, path.rstrip("/") or "/"))


def is_absolute(location: str | None) -> bool:
    """Tell whether a location names a place by itself; an alter may store one that does not."""
    return bool(location) and LOCATION.fullmatch(location)[3].startswith("/")  # type: ignore[arg-type,index]  # matches any text


def same_place(a: str, b: str) -> bool:
    """Tell whether two spellings name one directory (`file:/x`, `file:///x/` and `/x` do)."""
    return a == b or parse(a).key == parse(b).key


def is_below(location: str, root: str) -> bool:
    """Tell whether a location is `root` or lies inside it."""
    inner, outer = parse(location).key, parse(root).key
    return inner[:2] == outer[:2] and (inner[2] == outer[2] or inner[2].startswith(outer[2].rstrip("/") + "/"))


def join(base: str, name: str) -> str:
    """Append a relative path."""
    return f"{base.rstrip('/')}/{name}"


def prefix(location: Location) -> str:
    """Return scheme and authority as a location begins with them."""
    if location.authority:
        return f"{location.scheme}://{location.authority}"
    return f"{location.scheme}:" if location.scheme else ""


def qualify(location: str, base: str = "file:/") -> str:
    """Give a location without scheme the file system of another one, as Hadoop gives it the default one; others come back as they came.

    Only a slash at the end goes, as it does from every path in Hadoop.
    """
    parsed = parse(location)
    place = location
    if not parsed.scheme:
        whole = parse(base)
        scheme, authority = whole.scheme or "file", parsed.key[1] or ("" if whole.protocol == "file" else whole.authority)
        place = prefix(parsed._replace(scheme=scheme, authority=authority)) + parsed.path
    return place.rstrip("/") if len(parsed.path) > 1 else place


def as_root(location: str) -> str:
    """Return a root of the warehouse as Hadoop prints it, with one slash behind `file:`: and none at its end."""
    parsed = parse(location)
    place = f"file:{parsed.path}" if parsed.protocol == "file" and not parsed.key[1] else qualify(location)
    return place.rstrip("/")
