"""Values as parameters of PostgreSQL's statements: numbers and single texts in text form, lists of text in binary form."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from psycopg import errors

INT8, BOOL, FLOAT8, BYTEA, TEXT, UNKNOWN = 20, 16, 701, 17, 25, 0
"""Object ids of the types of parameters. Text and NULL have the type that their place needs."""
NUL = "PostgreSQL text can not contain NUL (0x00) bytes"
ARRAY_HEAD = struct.Struct("!iiiii")
"""The head of an array in binary form: dimensions, whether there are NULLs, type of the items, their number, number of the first."""
NULL = (-1).to_bytes(4, "big", signed=True)
"""The size of an item that is NULL."""


class BinaryArray(bytes):
    """An array parameter in PostgreSQL's binary form."""


def encoded(value: Any) -> tuple[bytes | None, int]:
    """Return a value and the object id of its type. DataError, TypeError."""
    kind = type(value)
    if kind is str:
        raw = value.encode()
        if b"\0" in raw:
            raise errors.DataError(NUL)
        return raw, UNKNOWN
    if kind is int:
        return b"%d" % value, INT8
    if value is None:
        return None, UNKNOWN
    if kind is bool:
        return b"t" if value else b"f", BOOL
    if kind is float:
        return repr(value).encode(), FLOAT8
    if kind is BinaryArray:
        return value, UNKNOWN
    if kind is bytes:
        return b"\\x" + value.hex().encode(), BYTEA
    raise TypeError(f"a parameter of type {kind.__name__}: the store takes str, int, bool, float, bytes and None")


def array(items: Sequence[Any]) -> BinaryArray | str:
    """Return a list of texts, numbers or None as a parameter. DataError, TypeError.

    Texts are sent in binary form: PostgreSQL copies them and does not look for quotes. Numbers are sent as text, since the binary form
    fixes their size.
    """
    kinds = {*map(type, items)}
    if str not in kinds:
        return f"{{{','.join('NULL' if item is None else str(item) for item in items)}}}"
    if not kinds <= {str, type(None)}:
        raise TypeError("an array must not hold both texts and values of other types")
    parts = [ARRAY_HEAD.pack(1, None in items, TEXT, len(items), 1)]
    for item in items:
        if item is None:
            parts.append(NULL)
        else:
            raw = item.encode()
            parts += (len(raw).to_bytes(4, "big"), raw)
    if "\0" in "".join(filter(None, items)):
        raise errors.DataError(NUL)
    return BinaryArray(b"".join(parts))
