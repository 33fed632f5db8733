"""Properties: values that programs keep by keys such as `db.table.name`. Source: Hive's PropertyManager and HMSPropertyManager.

The first parts of a key, up to three, name a map; the rest is the name in the map. A dot after a backslash does not separate parts. Values
are texts: Hive's own server takes only names that a Java class has declared with a type, and reads conditions in JEXL, which is refused
here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from metastore.errors import MetaError, NoSuchObject
from metastore.service.call.context import Call
from metastore.store.engines import properties

NAME_SPACE = "hms"
_PARTS = 3
"""Parts of a key that name a map, at the most."""
_LONGEST = 300
"""Characters of a map's key, and of a name."""


def _check_name_space(name: str | None) -> None:
    if name != NAME_SPACE:
        raise NoSuchObject(f"There is no name space of properties {name}: use {NAME_SPACE}")


def split_key(key: str) -> tuple[str, str]:
    """Return the key of the map, with the name space, and the name in it. MetaError for an empty or too long one."""
    *front, last = re.split(r"(?<!\\)\.", key)
    parts, name = front[:_PARTS], ".".join([*front[_PARTS:], last])
    if not name or not all(parts):
        raise MetaError(f"The key {key!r} of a property has an empty part: name each part between dots")
    found = ".".join([NAME_SPACE, *parts])
    if max(len(found), len(name)) > _LONGEST:
        raise MetaError(f"The key {key[:_LONGEST]} of a property is too long: map and name have {_LONGEST} characters at the most")
    return found, name


def put(call: Call, name_space: str | None, given: Mapping[str, str] | None) -> None:
    """Set properties by their keys. NoSuchObject for the name space, MetaError."""
    _check_name_space(name_space)
    if given is None:
        raise MetaError("The map of properties is null: send one")
    values = {split_key(key): value for key, value in given.items()}
    call.database.write(lambda session: properties.put(session, values))


def get(
    call: Call, name_space: str | None, prefix: str | None, condition: str | None, names: Sequence[str] | None
) -> dict[str, dict[str, str]]:
    """Return the maps whose names begin with a prefix, with their entries of the given names, or all entries without names.

    A map with none of the names is left out. NoSuchObject for the name space; MetaError for a condition other than `true`.
    """
    _check_name_space(name_space)
    if condition is not None and condition.strip() not in ("", "true"):
        raise MetaError(
            f"This server reads no condition on maps of properties: ask for all of {prefix or NAME_SPACE!r} in place of {condition}"
        )
    found = call.database.read(lambda session: properties.with_prefix(session, f"{NAME_SPACE}.{prefix}" if prefix else NAME_SPACE))
    kept = {key: {name: value for name, value in each.items() if not names or name in names} for key, each in found.items()}
    return {key.partition(".")[2] or key: each for key, each in kept.items() if each}
