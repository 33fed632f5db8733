"""Random messages: arguments and results of every method, put together from the declarations of their structs, and broken ones."""

from __future__ import annotations

from random import Random
from typing import Any

from thriftpy2.protocol import TCyBinaryProtocol
from thriftpy2.thrift import TPayload, TType
from thriftpy2.transport import TCyMemoryBuffer

from metastore import idl

CLASSES: list[Any] = [getattr(idl.service, f"{method}_{kind}") for method in idl.service.thrift_services for kind in ("args", "result")]
SHARING: list[Any] = [
    getattr(idl.service, f"{name}_args") for name in ("add_partitions", "add_partitions_pspec", "alter_partitions", "set_aggr_stats_for")
]
"""Classes of messages whose decoded parts may be shared."""
BITS = {TType.BYTE: 8, TType.I16: 16, TType.I32: 32, TType.I64: 64}
TEXTS = ["", "a", "text of some length", "ü", "\0", "\U0001f40d" * 3]
PIECES = [1, 7, 40, 1000, 100_000]
MAX_DEPTH_MADE = 7
"""The depth of nested structs and containers below which none is made."""


def random_struct(random: Random, cls: Any, depth: int = 0) -> Any:
    """Return a struct with some of its fields."""
    struct = cls()
    for field in cls.thrift_spec.values():
        if random.random() < 0.7:
            setattr(struct, field[1], random_value(random, field[0], field[2] if len(field) > 3 else None, depth + 1))
    return struct


def random_value(random: Random, ttype: int, spec: Any, depth: int) -> Any:
    """Return a value of a declared type."""
    if ttype in BITS:
        half = 1 << (BITS[ttype] - 1)
        return random.choice([0, 1, -1, half - 1, -half, random.randrange(-half, half)])
    if ttype == TType.BOOL:
        return random.random() < 0.5
    if ttype == TType.DOUBLE:
        return random.choice([0.0, -1.5, 1e300, random.random()])
    if ttype == TType.STRING:
        return random.choice(TEXTS)
    if ttype == TType.BINARY:
        return random.choice(TEXTS).encode() + random.randbytes(random.randrange(3))
    if ttype == TType.STRUCT:
        return random_struct(random, spec, depth) if depth < MAX_DEPTH_MADE else spec()
    size = random.choice([0, 1, 1, 2, 5]) if depth < MAX_DEPTH_MADE else 0
    if ttype == TType.MAP:
        keys = [_element(random, spec[0], depth) for _ in range(size)]
        return {tuple(key) if isinstance(key, list) else key: _element(random, spec[1], depth) for key in keys}
    found: list[Any] = []
    for _ in range(size):  # many equal the one before: such elements are shared
        found.append(found[-1] if found and random.random() < 0.5 else _element(random, spec, depth))
    return found


def _element(random: Random, spec: Any, depth: int) -> Any:
    return random_value(random, *(spec if isinstance(spec, tuple) else (spec, None)), depth + 1)  # type: ignore[call-arg]


def encoded(name: str, kind: int, seqid: int, body: TPayload) -> bytes:
    """Return a message as thriftpy2 encodes it."""
    buffer = TCyMemoryBuffer()
    protocol: Any = TCyBinaryProtocol(buffer)
    protocol.write_message_begin(name, kind, seqid)
    protocol.write_struct(body)
    found: bytes = buffer.getvalue()
    return found


def decoded(data: bytes, cls: type[TPayload]) -> Any:
    """Return a message's struct as thriftpy2 decodes it, without any check of sizes."""
    protocol: Any = TCyBinaryProtocol(TCyMemoryBuffer(data), strict_read=False, strict_decode=True)
    protocol.read_message_begin()
    return protocol.read_struct(cls())


def random_message(random: Random) -> tuple[bytes, Any]:
    """Return a message and its struct."""
    body = random_struct(random, random.choice(random.choice([CLASSES, SHARING])))
    return encoded(random.choice(["name", ""]), random.randrange(1, 5), random.randrange(-5, 5), body), body


def broken(random: Random, data: bytes) -> bytes:
    """Return a message with some bytes changed, left out, added or cut off."""
    changed = bytearray(data)
    for _ in range(random.choice([1, 1, 2, 4])):
        at = random.randrange(len(changed) + 1)
        what = random.random()
        if what < 0.6 and at < len(changed):
            changed[at] = random.choice([random.randrange(256), 0, 1, 8, 11, 12, 13, 14, 15, 127, 255])
        elif what < 0.75:
            del changed[at : at + random.choice([1, 4, 100])]
        elif what < 0.95:
            changed[at:at] = random.randbytes(random.choice([1, 4]))
        else:
            del changed[at:]
    return bytes(changed)


ODD = [42, 2**70, 1.5, "text", "\ud800", b"bytes", [], [None], ["x", 1], {}, {"a": 1}, {1: None}, (), True, object()]
"""Values that fit some types and not others."""


def with_odd_value(random: Random, body: Any) -> bool:
    """Put an odd value into a field at a random place in a struct; return whether there was a field."""
    while fields := list(body.thrift_spec.values()):
        field = random.choice(fields)
        value = getattr(body, field[1], None)
        if isinstance(value, TPayload) and random.random() < 0.8:
            body = value
            continue
        if isinstance(value, list) and value and isinstance(value[0], TPayload) and random.random() < 0.8:
            body = random.choice(value)
            continue
        if field[0] == TType.STRUCT:  # a tuple or bytes are allowed here
            setattr(body, field[1], random.choice([42, "text", [], {}, object()]))
        else:
            setattr(body, field[1], random.choice(ODD))
        return True
    return False
