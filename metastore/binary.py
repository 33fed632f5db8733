"""Structs to and from Thrift's binary protocol, without a message around them. Only for bytes of our own making: sizes are not checked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from struct import Struct as Layout
from typing import Any, TypeVar

from thriftpy2.protocol import TCyBinaryProtocol
from thriftpy2.thrift import TPayload, TType
from thriftpy2.transport import TCyMemoryBuffer

_Protocol: Any = TCyBinaryProtocol
Struct = TypeVar("Struct", bound=TPayload)
LIST_OF_STRUCTS = Layout("!bhbi").pack


def to_bytes(struct: TPayload) -> bytes:
    """Return a struct's bytes, its STOP included."""
    return each_to_bytes([struct])[0]


def each_to_bytes(structs: Iterable[TPayload]) -> list[bytes]:
    """Return the bytes of each struct, its STOP included."""
    buffer = TCyMemoryBuffer()
    protocol = _Protocol(buffer)
    out: list[bytes] = []
    for struct in structs:
        protocol.write_struct(struct)
        out.append(buffer.getvalue())
        buffer.clean()
    return out


def beginnings(union: type[TPayload]) -> dict[bytes, str]:
    """Return the fields of a union of structs by the first three bytes of a union in which the field is set."""
    return {Layout("!bh").pack(TType.STRUCT, number): field[1] for number, field in union.thrift_spec.items()}


def from_bytes(cls: type[Struct], data: bytes, *, strict: bool = False) -> Struct:
    """Return the struct in bytes of `to_bytes`. `strict`: UnicodeDecodeError for a text that is not UTF-8, which else is left as bytes."""
    struct = cls()
    _Protocol(TCyMemoryBuffer(data), strict_decode=strict).read_struct(struct)
    return struct


def list_from_bytes(cls: type[Struct], items: Sequence[bytes]) -> list[Struct]:
    """Return the structs in bytes of `to_bytes`, one for each item. They are decoded together, which takes half the time."""
    return joined_from_bytes(cls, len(items), b"".join(items))


def joined_from_bytes(cls: type[Struct], count: int, data: bytes, *, strict: bool = False) -> list[Struct]:
    """Return the `count` structs whose bytes follow each other in `data`. `strict` as in `from_bytes`."""
    head = LIST_OF_STRUCTS(TType.LIST, 1, TType.STRUCT, count)
    found: list[Struct] = from_bytes(_list_of(cls), head + data + b"\0", strict=strict).items
    return found


@cache
def _list_of(cls: type[TPayload]) -> Any:
    spec = {1: (TType.LIST, "items", (TType.STRUCT, cls), False)}
    return type("Items", (TPayload,), {"thrift_spec": spec, "default_spec": [("items", None)]})
