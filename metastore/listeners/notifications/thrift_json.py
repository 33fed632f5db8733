"""Write structs as Thrift's JSON protocol does: the text of the `*ObjJson` values in a message. It never reads such text.

A field is `"number":{"type":value}`, a list `["type",size,item,...]`, a map `["key type","value type",size,{...}]`, a boolean 0 or 1, and
binary is base64 without padding. Source: Apache Thrift's TJSONProtocol.
"""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Callable
from typing import Any

import orjson

BOOL, DOUBLE, STRING, STRUCT, MAP, SET, LIST, BINARY = 2, 4, 11, 12, 13, 14, 15, 18
TAGS = {
    BOOL: "tf", 3: "i8", DOUBLE: "dbl", 6: "i16", 8: "i32", 10: "i64", STRING: "str", STRUCT: "rec", MAP: "map", SET: "set", LIST: "lst",
    BINARY: "str",
}
"""The protocol's names of the types of `thrift_spec`."""

Convert = Callable[[Any], Any]
Fields = tuple[tuple[str, str, str, Any], ...]


class StructWriter:
    """Writes the structs of one message; column lists that several structs share are written once."""

    __slots__ = ("_columns",)

    def __init__(self) -> None:
        self._columns: dict[int, tuple[Any, orjson.Fragment]] = {}

    def text(self, struct: Any) -> str:
        """Return a struct as text."""
        return orjson.dumps(self._tree(struct)).decode()

    def _tree(self, struct: Any) -> dict[str, Any]:
        out: dict[str, Any] = {}
        values = struct.__dict__
        for name, number, tag, convert in _fields(type(struct)):
            value = values.get(name)
            if value is None:
                continue
            if tag == "rec":
                out[number] = {"rec": self._tree(value)}
            elif name == "cols":
                out[number] = {tag: self._shared(value, convert)}
            else:
                out[number] = {tag: value if convert is None else convert(value)}
        return out

    def _shared(self, columns: Any, convert: Convert) -> orjson.Fragment:
        found = self._columns.get(id(columns))
        if found is None:
            found = self._columns[id(columns)] = (columns, orjson.Fragment(orjson.dumps(convert(columns))))
        return found[1]


def _plain(struct: Any) -> dict[str, Any]:
    values = struct.__dict__
    return {
        number: {tag: value if convert is None else convert(value)}
        for name, number, tag, convert in _fields(type(struct)) if (value := values.get(name)) is not None
    }


_FIELDS: dict[type[Any], Fields] = {}


def _fields(struct: type[Any]) -> Fields:
    """Return (name, number, type, how its value is converted) of each field."""
    found = _FIELDS.get(struct)
    if found is None:
        found = _FIELDS[struct] = tuple(
            (field[1], str(number), TAGS[field[0]], _conversion(field[0], field[2] if len(field) == 4 else None))
            for number, field in struct.thrift_spec.items()
        )
    return found


def _conversion(kind: int, of: Any) -> Convert | None:
    """Return what turns a value of a type into what JSON holds of it; None where it is the same. `of` is what `thrift_spec` says of it."""
    if kind == BOOL:
        return int
    if kind == DOUBLE:
        return _double
    if kind == BINARY:
        return _binary
    if kind == STRUCT:
        return _plain
    if kind in (LIST, SET):
        tag, convert = _inner(of)
        return lambda items: [tag, len(items), *(items if convert is None else map(convert, items))]
    if kind == MAP:
        return _map(*of)
    return None


def _inner(of: Any) -> tuple[str, Convert | None]:
    kind, below = of if isinstance(of, tuple) else (of, None)
    return TAGS[kind], _conversion(kind, below)


def _map(key: Any, value: Any) -> Convert:
    (key_tag, convert_key), (value_tag, convert) = _inner(key), _inner(value)
    if convert_key is None:
        return lambda items: [
            key_tag, value_tag, len(items), {str(k): v if convert is None else convert(v) for k, v in items.items()}
        ]

    def pairs(items: Any) -> list[Any]:
        body = b",".join(
            orjson.dumps(convert_key(k)) + b":" + orjson.dumps(v if convert is None else convert(v)) for k, v in items.items()
        )
        return [key_tag, value_tag, len(items), orjson.Fragment(b"{" + body + b"}")]

    return pairs


def _double(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _binary(value: bytes | str) -> str:
    return b64encode(value.encode() if isinstance(value, str) else value).rstrip(b"=").decode()
