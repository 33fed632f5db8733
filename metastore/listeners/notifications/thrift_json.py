"""Write structs as Thrift's JSON protocol does: the text of the `*ObjJson` values in a message. This module never reads such text.

A field is `"number":{"type":value}`, a list `["type",size,item,...]`, a map `["key type","value type",size,{...}]`, a boolean 0 or 1, and
binary is base64 without padding. Source: Apache Thrift's TJSONProtocol.
"""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Callable
from copy import copy
from typing import Any

import orjson

from metastore.idl import Partition, StorageDescriptor

BOOL, DOUBLE, STRING, STRUCT, MAP, SET, LIST, BINARY = 2, 4, 11, 12, 13, 14, 15, 18
TAGS = {
    BOOL: "tf",
    3: "i8",
    DOUBLE: "dbl",
    6: "i16",
    8: "i32",
    10: "i64",
    STRING: "str",
    STRUCT: "rec",
    MAP: "map",
    SET: "set",
    LIST: "lst",
    BINARY: "str",
}
"""The protocol's names of the types of `thrift_spec`."""

Convert = Callable[[Any], Any]
Fields = tuple[tuple[str, str, str, Any], ...]


class StructWriter:
    """Writes structs as JSON strings that hold their text. Consecutive partitions with equal storage share its text."""

    __slots__ = ("_storage", "_written")

    def __init__(self) -> None:
        self._storage: dict[str, Any] | None = None
        self._written = b""

    def text(self, struct: Any) -> orjson.Fragment:
        """Return a struct of any type as a JSON string."""
        return orjson.Fragment(b'"' + _escaped(_tree(struct)) + b'"')

    def partition(self, partition: Partition) -> orjson.Fragment:
        """Return a partition as a JSON string."""
        if partition.sd is None or partition.sd.location is None:
            return self.text(partition)
        rest = copy(partition)
        rest.sd = None  # type: ignore[assignment]  # written apart
        location = orjson.dumps(orjson.dumps(partition.sd.location).decode())[1:-1]
        storage = self._storage_of(partition.sd)
        return orjson.Fragment(b"".join((b'"', _escaped(_tree(rest))[:-1], SD, storage, LOCATION, location, b'}}}}"')))

    def _storage_of(self, sd: StorageDescriptor) -> bytes:
        """Return a storage descriptor without its location and its last brace."""
        values = sd.__dict__ | {"location": None}
        if values != self._storage:
            plain = copy(sd)
            plain.location = None  # type: ignore[assignment]  # follows
            plain.compressed = bool(plain.compressed)
            self._storage, self._written = values, _escaped(_tree(plain))[:-1]
        return self._written


def _escaped(tree: dict[str, Any]) -> bytes:
    """Return a struct's text, escaped for a JSON string."""
    return orjson.dumps(orjson.dumps(tree).decode())[1:-1]


def _tree(struct: Any) -> dict[str, Any]:
    values = struct.__dict__
    return {
        number: {tag: value if convert is None else convert(value)}
        for name, number, tag, convert in _fields(type(struct))
        if (value := values.get(name)) is not None
    }


_FIELDS: dict[type[Any], Fields] = {}


def _fields(struct: type[Any]) -> Fields:
    """Return (name, number, type, function that converts its value) of each field."""
    found = _FIELDS.get(struct)
    if found is None:
        found = _FIELDS[struct] = tuple(
            (field[1], str(number), TAGS[field[0]], _conversion(field[0], field[2] if len(field) == 4 else None))
            for number, field in struct.thrift_spec.items()
        )
    return found


def _conversion(kind: int, of: Any) -> Convert | None:
    """Return the function that converts a value of a type to JSON; None where both are the same. `of` is its entry in `thrift_spec`."""
    if kind == BOOL:
        return int
    if kind == DOUBLE:
        return _double
    if kind == BINARY:
        return _binary
    if kind == STRUCT:
        return _tree
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
    if key_tag == "str" and convert is None:
        return lambda items: [key_tag, value_tag, len(items), items]
    if convert_key is None:
        return lambda items: [key_tag, value_tag, len(items), {str(k): v if convert is None else convert(v) for k, v in items.items()}]

    def pairs(items: Any) -> list[Any]:
        body = b",".join(orjson.dumps(convert_key(k)) + b":" + orjson.dumps(v if convert is None else convert(v)) for k, v in items.items())
        return [key_tag, value_tag, len(items), orjson.Fragment(b"{" + body + b"}")]

    return pairs


def _double(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _binary(value: bytes | str) -> str:
    return b64encode(value.encode() if isinstance(value, str) else value).rstrip(b"=").decode()


def _opened(struct: type[Any], name: str) -> bytes:
    """Return the separator before a field and its name, escaped for a JSON string."""
    number, tag = next((number, tag) for field, number, tag, _ in _fields(struct) if field == name)
    return f',"{number}":{{"{tag}":'.replace('"', '\\"').encode()


SD, LOCATION = _opened(Partition, "sd"), _opened(StorageDescriptor, "location")
