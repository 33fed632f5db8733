"""Encode messages of the binary and the compact protocol with thriftpy2: simple rather than fast."""

from __future__ import annotations

from copy import copy
from typing import Any

from thriftpy2.protocol import TCompactProtocol, TCyBinaryProtocol
from thriftpy2.thrift import TPayload, TType
from thriftpy2.transport import TCyMemoryBuffer

from metastore.binary import from_bytes

_Binary: Any = TCyBinaryProtocol
_Compact: Any = TCompactProtocol
NESTED = (TType.STRUCT, TType.LIST, TType.SET, TType.MAP)


class _Parts(list[bytes]):
    """A transport to write to: it gathers."""

    write = list.append


def encode_binary(name: str, kind: int, seqid: int, body: TPayload, framed: bool) -> bytes:
    """Return a message as bytes. Raises whatever thriftpy2 raises for a value of the wrong type."""
    buffer = TCyMemoryBuffer()
    _write(_Binary(buffer), name, kind, seqid, body)
    return _framed(buffer.getvalue(), framed)


def encode_compact(name: str, kind: int, seqid: int, body: TPayload, framed: bool) -> bytes:
    """Return a message as bytes. Raises whatever thriftpy2 raises for a value of the wrong type."""
    parts = _Parts()
    _write(_Compact(parts), name, kind, seqid, body)
    return _framed(b"".join(parts), framed)


def _write(protocol: Any, name: str, kind: int, seqid: int, body: TPayload) -> None:
    protocol.write_message_begin(name, kind, seqid)
    protocol.write_struct(as_structs(TType.STRUCT, type(body), body) if 0 in type(body).thrift_spec else body)


def _framed(data: bytes, framed: bool) -> bytes:
    return len(data).to_bytes(4, "big") + data if framed else data


def as_structs(ttype: int, spec: Any, value: Any) -> Any:
    """Return a value of a declared type with structs where tuples or bytes stand for such. What was given stays as it is."""
    if ttype == TType.MAP and isinstance(value, dict):
        return {key: _element(spec[1], each) for key, each in value.items()}
    if ttype in {TType.LIST, TType.SET} and isinstance(value, (list, tuple)):
        return [_element(spec, each) for each in value]
    if ttype == TType.STRUCT and isinstance(value, bytes):
        return from_bytes(spec, value)
    if ttype == TType.STRUCT and isinstance(value, tuple):
        value = spec(*value)
    elif isinstance(value, TPayload):
        value = copy(value)
    else:
        return value
    for field in value.thrift_spec.values():
        if field[0] in NESTED:
            setattr(value, field[1], as_structs(field[0], field[2], getattr(value, field[1], None)))
    return value


def _element(spec: Any, value: Any) -> Any:
    return as_structs(spec[0], spec[1], value) if isinstance(spec, tuple) else value
