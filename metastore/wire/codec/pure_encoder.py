"""Encode messages of the binary and the compact protocol with thriftpy2: simple rather than fast."""

from __future__ import annotations

from copy import copy
from functools import cache
from operator import is_
from typing import Any

from thriftpy2.protocol import TCompactProtocol, TCyBinaryProtocol
from thriftpy2.thrift import TPayload, TType
from thriftpy2.transport import TCyMemoryBuffer

from metastore.binary import from_bytes

_Binary: Any = TCyBinaryProtocol
_Compact: Any = TCompactProtocol
NESTED = (TType.STRUCT, TType.LIST, TType.SET, TType.MAP)


class _Parts(list[bytes]):
    """A transport that gathers the written bytes."""

    write = list.append


def encode_binary(name: str, kind: int, seqid: int, body: TPayload, framed: bool) -> bytes:
    """Return a message as bytes. Raises thriftpy2's errors for a value of the wrong type."""
    buffer = TCyMemoryBuffer()
    _write(_Binary(buffer), name, kind, seqid, body)
    return _framed(buffer.getvalue(), framed)


def encode_compact(name: str, kind: int, seqid: int, body: TPayload, framed: bool) -> bytes:
    """Return a message as bytes. Raises thriftpy2's errors for a value of the wrong type."""
    parts = _Parts()
    _write(_Compact(parts), name, kind, seqid, body)
    return _framed(b"".join(parts), framed)


def _write(protocol: Any, name: str, kind: int, seqid: int, body: TPayload) -> None:
    protocol.write_message_begin(name, kind, seqid)
    protocol.write_struct(as_structs(TType.STRUCT, type(body), body) if 0 in type(body).thrift_spec else body)


def _framed(data: bytes, framed: bool) -> bytes:
    return len(data).to_bytes(4, "big") + data if framed else data


def as_structs(ttype: int, spec: Any, value: Any) -> Any:
    """Return a value of a declared type with structs in place of tuples or bytes; the value itself if it has none of these."""
    if ttype == TType.STRUCT:
        return _struct(spec, value)
    if ttype == TType.MAP and isinstance(value, dict):
        if not isinstance(spec[1], tuple):
            return value
        kind, inner = spec[1]
        entries = {key: as_structs(kind, inner, each) for key, each in value.items()}
        return entries if any(entries[key] is not each for key, each in value.items()) else value
    if ttype in {TType.LIST, TType.SET} and isinstance(value, (list, tuple)):
        if not isinstance(spec, tuple):
            return value
        kind, inner = spec
        if kind == TType.STRUCT and not _nested(inner) and set(map(type, value)) <= {inner}:
            return value
        elements = [_struct(inner, each) for each in value] if kind == TType.STRUCT else [as_structs(kind, inner, each) for each in value]
        return value if all(map(is_, elements, value)) else elements
    return value


def _struct(cls: Any, value: Any) -> Any:
    if isinstance(value, bytes):
        return from_bytes(cls, value)
    if isinstance(value, tuple):
        value = cls(*value)
    elif not isinstance(value, TPayload):
        return value
    given = vars(value)
    changed = {}
    for name, ttype, spec in _nested(type(value)):  # type: ignore[arg-type]  # a class is hashable
        before = given.get(name)
        if before is not None and (after := as_structs(ttype, spec, before)) is not before:
            changed[name] = after
    if not changed:
        return value
    made = copy(value)
    vars(made).update(changed)
    return made


@cache
def _nested(cls: type) -> list[tuple[str, int, Any]]:
    """Return the fields of a class that can hold structs, with type and declaration."""
    fields: Any = cls.thrift_spec.values()  # type: ignore[attr-defined]  # a struct's class
    return [(field[1], field[0], field[2]) for field in fields if field[0] in NESTED and _holds_structs(field[0], field[2])]


def _holds_structs(ttype: int, spec: Any) -> bool:
    if ttype == TType.STRUCT:
        return True
    inner = spec[1] if ttype == TType.MAP else spec
    return isinstance(inner, tuple) and _holds_structs(*inner)
