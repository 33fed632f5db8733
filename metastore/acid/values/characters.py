"""Values of Hive's types char(n) and varchar(n): n characters at most; blanks at the end of a char are padding and no part of the value.

Arrow and Spark have texts alone. Here a char's text is kept without padding; ORC's own type pads it, and so does Hive when it reads.
Source: Hive's HiveChar and HiveVarchar, Spark's CharVarcharCodegenUtils.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from metastore.acid.values.nested import lists, maps, structs
from metastore.acid.values.types import parts

_LIMITED = re.compile(r"(char|varchar)\s*\(\s*(\d+)\s*\)")


class TooLong(ValueError):
    """A text has more characters than its column takes."""


def limit_of(kind: str) -> tuple[bool, int] | None:
    """Return (whether it is a char, the most characters) of a simple type, None for those without limit."""
    match = _LIMITED.fullmatch(kind.strip().lower())
    return None if match is None else (match[1] == "char", int(match[2]))


def is_limited(kind: str, *, char_only: bool = False) -> bool:
    """Return whether a type is a char or varchar or has one within."""
    return any(not char_only or match[1] == "char" for match in _LIMITED.finditer(kind.lower()))


def unpadded(values: Any, kind: str) -> Any:
    """Return an Arrow array of a Hive type with the texts of chars without the blanks at their end."""
    return _changed(values, kind, _unpadded) if is_limited(kind, char_only=True) else values


def shown(values: Any, kind: str) -> Any:
    """Return an Arrow array of a Hive type as Hive shows it: cut to n characters, where a column was longer before, and without padding."""
    return _changed(values, kind, _shown) if is_limited(kind) else values


def fitted(values: Any, kind: str) -> Any:
    """Return an Arrow array of a Hive type in the form to write. TooLong for a text with more than n characters before its final blanks."""
    return _changed(values, kind, _fitted) if is_limited(kind) else values


def fit(text: str, kind: str) -> str:
    """Return a single text as `fitted` does. TooLong."""
    limit = limit_of(kind)
    if limit is None:
        return text
    is_char, most = limit
    if is_char:
        text = text.rstrip(" ")
    if len(text) > most and len(text.rstrip(" ")) > most:
        raise TooLong(f"{text!r} has {len(text)} characters, more than {kind} takes")
    return text[:most]


def _unpadded(values: Any, kind: str) -> Any:
    limit = limit_of(kind)
    return pc.utf8_rtrim(values, characters=" ") if limit is not None and limit[0] else values


def _shown(values: Any, kind: str) -> Any:
    limit = limit_of(kind)
    return values if limit is None else _unpadded(pc.utf8_slice_codeunits(values, 0, limit[1]), kind)


def _fitted(values: Any, kind: str) -> Any:
    limit = limit_of(kind)
    if limit is None:
        return values
    is_char, most = limit
    trimmed = pc.utf8_rtrim(values, characters=" ")
    if not is_char and not pc.any(pc.greater(pc.utf8_length(values), most)).as_py():
        return values
    long = pc.fill_null(pc.greater(pc.utf8_length(trimmed), most), False)
    if pc.any(long).as_py():
        text = values.filter(long)[0].as_py()
        raise TooLong(f"{text!r} has {len(text)} characters, more than {kind} takes")
    return trimmed if is_char else pc.utf8_slice_codeunits(values, 0, most)


def _changed(values: Any, kind: str, change: Callable[[Any, str], Any]) -> Any:
    """Change the arrays of simple types within an array."""
    if "<" not in kind:
        return change(values, kind)
    inner = [each for _, each in parts(kind)]
    if pa.types.is_struct(values.type):
        fields = [_changed(values.field(place), each, change) for place, each in enumerate(inner)]
        return structs(values, fields, values.type)
    if pa.types.is_map(values.type):
        return maps(values, _changed(values.keys, inner[0], change), _changed(values.items, inner[1], change), values.type)
    return lists(values, _changed(values.values, inner[0], change), values.type)
