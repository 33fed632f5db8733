"""Compare, qualify and join locations. Never touches a file system."""

from __future__ import annotations

from metastore.errors import MetaError
from metastore.places import ALIASES, LOCATION, Location, read

__all__ = [
    "ALIASES",
    "OBJECT_STORES",
    "Location",
    "as_root",
    "is_absolute",
    "is_below",
    "is_root",
    "join",
    "parse",
    "prefix",
    "qualify",
    "same_place",
]

OBJECT_STORES = frozenset({"s3", "gs", "abfs", "oss", "cos", "obs"})
"""Schemes in which a directory is only a common prefix of names, and is made without a request."""


def parse(location: str) -> Location:
    """Split a location; MetaError for one that is not absolute, holds NUL, or climbs out with `..`."""
    try:
        return read(location)
    except ValueError as error:
        raise MetaError(str(error)) from error


def is_absolute(location: str | None) -> bool:
    """Return whether a location has an absolute path; an alter may store one that has none."""
    return bool(location) and LOCATION.fullmatch(location)[3].startswith("/")  # type: ignore[arg-type,index]  # matches any text


def is_root(location: str) -> bool:
    """Return whether a location is the root of a file system or a bucket; False for one that can not be read."""
    try:
        return read(location).key[2] == "/"
    except ValueError:
        return False


def same_place(a: str, b: str) -> bool:
    """Return whether two spellings name one directory (`file:/x`, `file:///x/` and `/x` do)."""
    return a == b or parse(a).key == parse(b).key


def is_below(location: str, root: str) -> bool:
    """Return whether a location is `root` or is inside it."""
    inner, outer = parse(location).key, parse(root).key
    return inner[:2] == outer[:2] and (inner[2] == outer[2] or inner[2].startswith(outer[2].rstrip("/") + "/"))


def join(base: str, name: str) -> str:
    """Append a relative path."""
    return f"{base.rstrip('/')}/{name}"


def prefix(location: Location) -> str:
    """Return the beginning of a location: its scheme and authority."""
    if location.authority:
        return f"{location.scheme}://{location.authority}"
    return f"{location.scheme}:" if location.scheme else ""


def qualify(location: str, base: str = "file:/") -> str:
    """Return a location with a scheme. One without gets the file system of `base`, as it gets the default file system in Hadoop.

    A location with a scheme is not changed, but for a slash at its end, which Hadoop removes from every path.
    """
    parsed = parse(location)
    place = location
    if not parsed.scheme:
        whole = parse(base)
        scheme, authority = whole.scheme or "file", parsed.key[1] or ("" if whole.protocol == "file" else whole.authority)
        place = prefix(parsed._replace(scheme=scheme, authority=authority)) + parsed.path
    return place.rstrip("/") if len(parsed.path) > 1 else place


def as_root(location: str) -> str:
    """Return a root of the warehouse as Hadoop prints it, with one slash after `file:`, and none at its end unless it is a whole disk."""
    parsed = parse(location)
    place = f"file:{parsed.path}" if parsed.protocol == "file" and not parsed.key[1] else qualify(location)
    return place.rstrip("/") if len(parsed.path) > 1 or parsed.key[1] else place
