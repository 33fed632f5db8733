"""Read locations as Hadoop writes them: `file:/x`, `file:///x`, `s3a://bucket/x`, `/x`. Never touches a file system.

A location is not a URL: `%2F`, `?` and `#` are characters of a name, as in Hadoop's Path.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

LOCATION = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?://([^/]*))?(.*)", re.DOTALL)
ALIASES = {"s3a": "s3", "s3n": "s3", "": "file", "wasb": "abfs", "wasbs": "abfs", "abfss": "abfs", "gcs": "gs"}
"""The schemes that fsspec uses for other schemes of the same file system."""
LENGTH = 512
"""The most characters of a place's text in an index: every database supports so many."""
END = "0"
"""The character after the slash: `x0` is the first text after all places in `x`."""


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
def read(location: str) -> Location:
    """Split a location; ValueError for one that is not absolute, holds NUL, or climbs out with `..`.

    The last results are cached: one call needs the parts of each of its locations several times.
    """
    if "\0" in location:
        raise ValueError(f"location {location!r} holds a NUL character")
    match = LOCATION.fullmatch(location)
    assert match is not None
    scheme, authority, path = (match[1] or "").lower(), match[2] or "", match[3]
    if not path and authority:
        path = "/"
    if not path.startswith("/"):
        raise ValueError(f"location {location!r} is not absolute: give scheme://authority/path or /path")
    if "/." in path:
        components = path.split("/")
        if ".." in components:
            raise ValueError(f"location {location!r} climbs out of its directory with '..': give the path that is meant")
        path = "/".join(component for component in components if component != ".") or "/"
    if "//" in path:
        path = re.sub("/{2,}", "/", path)
    protocol = ALIASES.get(scheme, scheme)
    local = protocol == "file" and authority.lower() == "localhost"
    return Location(scheme, authority, path, protocol, (protocol, "" if local else authority, path.rstrip("/") or "/"))


def place_of(location: str | None) -> str | None:
    """Return the one text of all spellings of a place, `s3://bucket/x`, without a slash at its end; None for a text that names no place.

    A namenode's port is 8020 where none is given, and hosts have no case.
    """
    try:
        protocol, authority, path = read(location).key if location else ("", "", "")
    except ValueError:
        return None
    if protocol == "hdfs":
        authority = authority.lower().removesuffix(":8020")
    return f"{protocol}://{authority}{path if path != '/' else ''}" if protocol else None


def indexed(location: str | None) -> str | None:
    """Return the beginning of a place's text by which a row is found: as many characters as every database supports in an index."""
    place = place_of(location)
    return place and place[:LENGTH]


def is_in(place: str, other: str) -> bool:
    """Return whether a place is another one, or inside it, by their texts."""
    return place.startswith(other) and (len(place) == len(other) or place[len(other)] == "/")


def above(place: str) -> Iterator[str]:
    """Yield the texts of the places that hold another one, the innermost first, up to the root of its file system."""
    root, at = place.index("://") + 3, place.rfind("/")
    while at >= root:
        yield place[:at]
        at = place.rfind("/", 0, at)
