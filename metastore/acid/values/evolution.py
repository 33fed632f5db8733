"""Match a file's columns with its table's, and decide whether their values may be rewritten as values of the table's types.

Hive takes the columns of an ORC file by position, not by name, and the fields of structs within them by name. Columns that the
file does not have, since they were added later, are null. This module reads no file.

Source: ORC's SchemaEvolution with `orc.force.positional.evolution`, as Hive 4 runs it.
"""

from __future__ import annotations

from collections.abc import Sequence

from metastore.acid.values.types import decimal_of, parts
from metastore.rules.values.types import is_compatible_change

_WHOLE = {"tinyint": 3, "smallint": 5, "int": 10, "integer": 10, "bigint": 19}
"""Digits of whole numbers."""


def loss(there: Sequence[tuple[str, str]], wanted: Sequence[tuple[str, str]]) -> str | None:
    """Return the reason why a file, given by its columns' (name, Hive type), can not be rewritten in a table's columns; None if it can.

    It can where a metastore allows the change of type, as with Hive's compactor: readers then see the same values as before, though a float
    that became a string is not a float any more.
    """
    if len(there) > len(wanted) and any(mine.lower() != name.lower() for (mine, _), (name, _) in zip(there, wanted, strict=False)):
        return f"it has {len(there)} columns, the table {len(wanted)}, some with other names: the dropped columns are unknown"
    for (mine, old), (name, new) in zip(there, wanted, strict=False):
        if (reason := _loss(old, new)) is not None:
            return f"its column {mine} of type {old} is the table's column {name} of type {new}: {reason}"
    return None


def _loss(old: str, new: str) -> str | None:
    old, new = old.strip().lower(), new.strip().lower()
    decimals = decimal_of(old) is not None and decimal_of(new) is not None
    if old == new or is_widened(old, new) or (not decimals and "<" not in old and is_compatible_change(old, new)):
        return None
    outer, inner = old.partition("<")[0], new.partition("<")[0]
    if outer != inner or "<" not in old:
        return f"{old} does not fit into {new}"
    if outer == "struct":
        fields = dict(parts(new))
        for name, kind in parts(old):
            if name not in fields:
                return f"the table's struct has no field {name}, and fields of structs are matched by name"
            if (reason := _loss(kind, fields[name])) is not None:
                return reason
        return None
    return next((found for (_, a), (_, b) in zip(parts(old), parts(new), strict=True) if (found := _loss(a, b)) is not None), None)


def is_widened(old: str, new: str) -> bool:
    """Return whether all numbers of a simple type are numbers of another, in the same order."""
    decimal = decimal_of(new)
    if old in _WHOLE:
        wide = _WHOLE.get(new, 0)
        exact = (new == "double" and _WHOLE[old] <= 10) or (new == "float" and _WHOLE[old] <= 5)
        return wide >= _WHOLE[old] or exact or (decimal is not None and decimal[0] - decimal[1] >= _WHOLE[old])
    before = decimal_of(old)
    if before is not None and decimal is not None:
        return decimal[1] >= before[1] and decimal[0] - decimal[1] >= before[0] - before[1]
    return (old, new) == ("float", "double")
