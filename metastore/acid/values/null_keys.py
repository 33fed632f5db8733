"""Find the columns of an ORC file that hold maps with null keys: Hive writes them, Spark and Arrow can not hold them.

Spark reads a null key of numbers as 0 and fails for other types, Arrow ends the process: such columns are never read by either. They are
found by the statistics of the column of keys, which do not exclude nulls. This module opens no file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from metastore.acid.values.types import parts


class NullKeys(Exception):
    """A column that is asked for has maps with null keys."""


def has_maps(kinds: Sequence[str]) -> bool:
    """Return whether some of the types are maps, or have maps within."""
    return any("map<" in kind.lower().replace(" ", "") for kind in kinds)


def with_null_keys(kinds: Sequence[str], number: int, may_have_nulls: Callable[[int], bool]) -> frozenset[int]:
    """Return the places of the columns, given by their types, that have maps with null keys.

    `number` is ORC's number of the first column; `may_have_nulls` returns for a number whether the statistics of the file allow nulls.
    """
    found = set()
    for place, kind in enumerate(kinds):
        keys: list[int] = []
        number = _numbered(kind.strip().lower(), number, keys)
        if any(map(may_have_nulls, keys)):
            found.add(place)
    return frozenset(found)


def _numbered(kind: str, number: int, keys: list[int]) -> int:
    """Add the column numbers of map keys within a type to `keys`; `number` is the type's own. Return the next number."""
    inner = [each for _, each in parts(kind)] if "<" in kind else []
    if kind.startswith("map"):
        keys.append(number + 1)
    number += 1
    for each in inner:
        number = _numbered(each.strip().lower(), number, keys)
    return number
