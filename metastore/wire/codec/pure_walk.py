r"""Find the end of a value in bytes of the binary protocol, and the most memory that it can take. No object is made.

thriftpy2's compiled protocol decodes faster than Python can, but does not check sizes and types. Therefore a value is walked over first. It
may be decoded by thriftpy2, which then reads the same, only if its fields are all declared, of the declared type and complete. Regular
expressions do most of the walk. They can not count, but the size of a short text is one byte, and each such byte has an alternative:
`\x02.{2}` is a text of two bytes. This module never decides how an unusual value is handled.
"""

from __future__ import annotations

import re
import struct
import sys
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from thriftpy2.thrift import TPayload, TType

from metastore.wire.codec.limits import ELEMENT_MEMORY, ENTRY_MEMORY, LIST_MEMORY, TEXT_MEMORY, memory_of

LEVELS = 4
"""The most levels of nested structs in one pattern."""
MANY = 4
"""The most elements in one pattern."""
MEMORY_PER_BYTE = 11
"""Most memory for each byte of a field with a text or an empty container, its header included."""
CONTAINERS = {TType.LIST, TType.SET, TType.MAP}
_ONCE = b"+" if sys.version_info >= (3, 11) else b""
"""The mark after a repetition that fewer ones are not tried: they would fail, too. Python 3.10 has no such mark, and tries them in vain."""
_TEXT = b"\0\0\0(?:%s)" % b"|".join(re.escape(bytes([size])) + b".{%d}" % size for size in range(256))
_NUMBERS = {
    TType.BOOL: b".", TType.BYTE: b"[\0-\x7f]",  # thriftpy2 decodes a negative byte to another number on some processors
    TType.I16: b".{2}", TType.I32: b".{4}", TType.I64: b".{8}", TType.DOUBLE: b".{8}",
}  # fmt: skip
_size_at = struct.Struct(">i").unpack_from


class Unusual(Exception):
    """A value that thriftpy2 would read in another way, or refuse, or not finish in any reasonable time."""


class Walk:
    """The bytes that are walked over, and the findings."""

    def __init__(self, data: bytes, max_container_size: int) -> None:
        self.data = data
        self.max_container_size = max_container_size
        self.memory = 0
        """Bytes that values take at most, without `MEMORY_PER_BYTE`."""


End = Callable[[Walk, int, int], int]
"""A function from a walk, a value's position and the depth to which it may nest, to its end. Raises Unusual, LookupError, struct.error."""
Elements = Callable[[Walk, int, int, int], tuple[int, int]]
"""A function from a walk, the position of a container's elements, the depth to which each may nest and their number, to the number of
elements before the first unusual one, and the end of these.
"""


def _sent(ttype: int) -> int:
    return TType.STRING if ttype == TType.BINARY else ttype


def _fields(cls: type[TPayload]) -> Iterator[tuple[bytes, int, Any]]:
    """Yield the number of each field, as it is on the wire, and its type."""
    for number, field in cls.thrift_spec.items():
        yield struct.pack(">h", number), field[0], field[2] if len(field) > 3 else None


def parts_of(ttype: int, spec: Any) -> list[tuple[int, Any]]:
    """Return the types in a container: of its elements, or of its keys and its values."""
    return [each if isinstance(each, tuple) else (each, None) for each in (spec if ttype == TType.MAP else (spec,))]


def _header(ttype: int, spec: Any) -> bytes:
    """Return the header before the size of a container."""
    return bytes(_sent(part) for part, _ in parts_of(ttype, spec))


@cache
def _flat(ttype: int, spec: Any, levels: int) -> tuple[bytes, int] | None:
    """Return the pattern of a whole value, and the most memory of it; None for a type with containers, or with deeper structs."""
    if _sent(ttype) == TType.STRING:
        return _TEXT, TEXT_MEMORY
    if ttype in _NUMBERS:
        return _NUMBERS[ttype], 0
    if ttype != TType.STRUCT or levels == 0 or not all(_flat(*inner, levels - 1) for _, *inner in _fields(spec)):
        return None
    pattern, memory = _run(spec, levels)
    return pattern + b"\0", memory_of(spec) + memory


def _run(cls: type[TPayload], levels: int) -> tuple[bytes, int]:
    """Return the pattern of a struct's fields in any order, except containers with elements, and the most memory of a struct in them.

    The pattern matches one struct at most: else few bytes could take much memory.
    """
    plain: dict[tuple[int, bytes], list[bytes]] = {}
    structs, memory = [], 0
    for number, ttype, spec in _fields(cls):
        flat = _flat(ttype, spec, levels - 1)
        if ttype in CONTAINERS:
            plain.setdefault((ttype, re.escape(_header(ttype, spec) + bytes(4))), []).append(number)
        elif flat and ttype == TType.STRUCT:
            structs.append(re.escape(bytes([ttype]) + number) + flat[0])
            memory = max(memory, flat[1])
        elif flat:
            plain.setdefault((_sent(ttype), flat[0]), []).append(number)
    fields = _any([re.escape(bytes([sent])) + _any([*map(re.escape, each)]) + rest for (sent, rest), each in plain.items()])
    fields += b"*" + _ONCE
    return (fields + b"(?:%s%s)?" % (_any(structs), fields) + _ONCE if structs else fields), memory


def _any(patterns: list[bytes]) -> bytes:
    return b"(?:%s)" % b"|".join(patterns)


@cache
def end_of(ttype: int, spec: Any) -> End:
    """Return the function that walks over a value of a declared type."""
    if ttype == TType.STRUCT:
        return _struct(spec)
    if ttype in CONTAINERS:
        return _container(ttype, spec)
    return _text if _sent(ttype) == TType.STRING else _number


def _number(*_: Any) -> int:
    raise Unusual  # no pattern matched it: its bytes are cut


def _text(walk: Walk, at: int, _: int) -> int:
    size: int = _size_at(walk.data, at)[0]
    if size < 0:
        raise Unusual
    return at + 4 + size  # this may be beyond the bytes: nothing is found there


def _struct(cls: type[TPayload]) -> End:
    pattern, run_memory = _run(cls, LEVELS)
    memory = memory_of(cls) + run_memory
    run: Any = None
    fields: dict[bytes, End] = {}

    def end(walk: Walk, at: int, depth: int) -> int:
        nonlocal run
        if depth <= LEVELS + 1:
            raise Unusual
        if run is None:  # not made earlier: it takes time, and a struct may hold others of its class
            fields.update((bytes([_sent(ttype)]) + number, end_of(ttype, spec)) for number, ttype, spec in _fields(cls))
            run = re.compile(pattern, re.DOTALL).match
        data = walk.data
        walk.memory += memory
        at = run(data, at).end()
        while data[at]:
            at = run(data, fields[data[at : at + 3]](walk, at + 3, depth - 1)).end()
            walk.memory += run_memory
        return at + 1

    return end


def _container(ttype: int, spec: Any) -> End:
    header = _header(ttype, spec)
    form = struct.Struct(f">{len(header)}si")
    begin, length = form.unpack_from, form.size
    elements = elements_of(ttype, spec)

    def end(walk: Walk, at: int, depth: int) -> int:
        sent, size = begin(walk.data, at)
        if sent != header or not 0 <= size <= walk.max_container_size:
            raise Unusual
        count, at = elements(walk, at + length, depth - 1, size)
        if count < size:
            raise Unusual
        return at

    return end


@cache
def elements_of(ttype: int, spec: Any) -> Elements:
    """Return the function that walks over the items of a container. Its patterns take milliseconds to make: ask when they are needed."""
    parts = parts_of(ttype, spec)
    ends = [end_of(*part) for part in parts]
    flat = [_flat(*part, LEVELS) for part in parts]
    own_memory = (ENTRY_MEMORY if ttype == TType.MAP else ELEMENT_MEMORY) + sum(each[1] for each in flat if each)
    pattern = b"".join(each[0] for each in flat if each) if all(flat) else b"(?!)"
    one: Any = re.compile(pattern, re.DOTALL).match
    many: Any = re.compile(b"(?:%s){%d}" % (pattern, MANY) + _ONCE, re.DOTALL).match

    def elements(walk: Walk, at: int, depth: int, size: int) -> tuple[int, int]:
        if depth <= LEVELS:
            return 0, at
        data = walk.data
        left = size
        while left >= MANY and (found := many(data, at)):
            at = found.end()
            left -= MANY
        try:
            while left:
                if found := one(data, at):
                    at = found.end()
                else:
                    after = at
                    for end in ends:
                        after = end(walk, after, depth)
                    at = after
                left -= 1
        except (Unusual, LookupError, struct.error):
            pass
        walk.memory += LIST_MEMORY + own_memory * (size - left)
        return size - left, at

    return elements
