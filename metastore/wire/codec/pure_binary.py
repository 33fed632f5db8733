"""Check and decode messages of the binary protocol in Python, as fast as it can: a value that is wholly in the buffer is read at once.

Most structs are walked over and decoded by thriftpy2 (see `pure_walk`). Those that are short, or unusual, or may share parts are read here.
The rules are the same as in `pure.BinaryDecoder`, which reads the rare cases: the end of the buffer, unknown fields, bytes that are not
UTF-8. The parts that partitions of a message repeat are decoded once, in the places that `limits` names.
"""

from __future__ import annotations

import struct
import sys
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from thriftpy2.thrift import TPayload, TType

from metastore.binary import from_bytes, joined_from_bytes
from metastore.wire.codec.limits import SHARED_PARTS, TEXT_MEMORY, TooMuchMemory, depth_error, memory_of
from metastore.wire.codec.pure import BinaryDecoder, Header
from metastore.wire.codec.pure_walk import CONTAINERS, MEMORY_PER_BYTE, Elements, Walk, elements_of, parts_of
from metastore.wire.sockets.transport import CHUNK, Choose

TEXT, INTEGER, NUMBER, STRUCT, NESTED = range(5)
HEADER, FIXED, COUNTED = 3, 11, 7
"""Bytes of a field's type and id; of a field with the largest number; of one with a size."""
_NUMBERS = {
    ttype: struct.Struct(form)
    for ttype, form in {
        TType.BOOL: ">?", TType.BYTE: ">b", TType.I16: ">h", TType.I32: ">i", TType.I64: ">q", TType.DOUBLE: ">d",
    }.items()
}  # fmt: skip
FEW_BYTES, FEW_STRUCTS = 80, 4
"""The least bytes of a message's struct, and elements of a list, for which a walk and thriftpy2 take less time than reading here."""
_begin = struct.Struct(">3si").unpack_from
"""Type and id of a field together, and its size or 32-bit number, if one follows."""
_size_at = _NUMBERS[TType.I32].unpack_from
_version_at = struct.Struct(">Ii").unpack_from
"""Version with the type of the message, and the size of its name."""
_list_at, _map_at = struct.Struct(">Bi").unpack_from, struct.Struct(">BBi").unpack_from
"""Types and number of elements or entries."""


class Plan:
    """The facts to read the structs of a class."""

    def __init__(self, cls: type[TPayload]) -> None:
        self.cls = cls
        self.make: Callable[[type[TPayload]], TPayload] = cls.__new__
        self.defaults = dict(vars(cls()))
        self.memory = memory_of(cls)
        self.fields: dict[bytes, tuple[int, str, Any, Any]] = {}
        """Fields by type and id as on the wire: kind, name and two details. For a number these are its unpacker, and its bytes with the
        field's header. For a text they are None and its label, for a struct its plan and the label, for another nested type a `Nested` and
        the label.
        """
        self.is_plain = False
        """Whether its structs share no parts."""
        self.elements: Elements | None = None
        """The walk over many of the structs; None until it is needed."""


class Nested(NamedTuple):
    """A field with a container or bytes, or with a struct that may be shared."""

    ttype: int
    declared: Any
    plan: Plan | None
    """The plan of a struct."""
    is_shared: bool


_plans: dict[tuple[type[TPayload], bool], Plan] = {}
_lock = threading.Lock()


def plan_of(cls: type[TPayload], shares: bool = False) -> Plan:
    """Return the plan of a class. `shares`: containers and structs of its structs may be one object for equal bytes."""
    plan = _plans.get((cls, shares))
    if plan is None:
        with _lock:
            made: dict[tuple[type[TPayload], bool], Plan] = {}
            plan = _make(cls, shares, made)
            _plans.update(made)  # all of them are complete
    return plan


def _make(cls: type[TPayload], shares: bool, made: dict[tuple[type[TPayload], bool], Plan]) -> Plan:
    """Return the plan of a class. `made` gets it and the new plans of the structs inside, some of them not yet complete."""
    plan = _plans.get((cls, shares)) or made.get((cls, shares))
    if plan is not None:
        return plan
    plan = made[cls, shares] = Plan(cls)
    plan.is_plain = not shares and not _may_share(TType.STRUCT, cls, set())
    for number, spec in cls.thrift_spec.items():
        ttype, name, place = spec[0], spec[1], (cls.__name__, spec[1])
        key = struct.pack(">bh", TType.STRING if ttype == TType.BINARY else ttype, number)
        label = ".".join(place)
        if ttype == TType.STRING:
            plan.fields[key] = TEXT, name, None, label
        elif ttype in _NUMBERS:
            plan.fields[key] = INTEGER if ttype == TType.I32 else NUMBER, name, _NUMBERS[ttype].unpack_from, HEADER + _NUMBERS[ttype].size
        else:
            declared: Any = spec[2] if len(spec) > 3 else None
            inner = _make(declared, place in SHARED_PARTS, made) if ttype == TType.STRUCT else None
            is_shared = shares and ttype != TType.BINARY
            if inner is not None and not is_shared:
                plan.fields[key] = STRUCT, name, inner, label
            else:
                plan.fields[key] = NESTED, name, Nested(ttype, declared, inner, is_shared), label
    return plan


def _may_share(ttype: int, spec: Any, above: set[type[TPayload]]) -> bool:
    """Return whether parts of a value of a type may be one object in several structs. `above` are the classes that were looked at."""
    if ttype in CONTAINERS:
        return any(_may_share(*part, above) for part in parts_of(ttype, spec))
    if ttype != TType.STRUCT or spec in above:
        return False
    above.add(spec)
    return any(
        (spec.__name__, field[1]) in SHARED_PARTS or _may_share(field[0], field[2] if len(field) > 3 else None, above)
        for field in spec.thrift_spec.values()
    )


class FastBinaryDecoder(BinaryDecoder):
    """One message. Its attributes hold the parts that were read so far."""

    _seen: dict[str, tuple[bytes, int, Any]] | None = None
    """The last value of each field that may be shared, by label: its bytes, the depth to which it may nest, and the value."""
    _walks = sys.implementation.name == "cpython"
    """Whether structs may be walked over: elsewhere thriftpy2 has no compiled part to decode them."""
    _is_most = False
    """Whether the memory is an upper bound, since structs were walked over; else it was counted."""

    def read(self, choose: Choose) -> Any:
        """Return the struct of the message as `Decoder.read` does.

        A walk finds an upper bound of the memory alone. Where that is too much, the message is read once more, and each value is counted.
        """
        try:
            return super().read(choose)
        except TooMuchMemory:
            if not self._is_most or self._memory <= self._max_memory:
                raise
        self.source = self.source.again()
        self._walks = self._is_most = False
        self._memory, self._seen, self.invalid_text = 0, None, None
        return super().read(choose)

    def _message(self) -> Header:
        source = self.source
        if source.at + 4 > source.safe:
            source.wait(4)
        at, left = source.at, source.safe - source.at - 12
        if left > 0:
            version, size = _version_at(source.data, at)
            if version >> 16 == 0x8001 and 0 <= size <= left:
                end = at + 8 + size
                source.at = end + 4
                return source.data[at + 8 : end].decode(errors="replace"), version & 0xFF, _size_at(source.data, end)[0]
        return super()._message()

    def _new(self, cls: type[TPayload], depth: int) -> Any:
        plan, source = plan_of(cls), self.source
        if source.safe - source.at >= FEW_BYTES and source.safe < CHUNK:  # else the rest may not be received
            found = self._walked(plan, 1, depth)
            if found:
                return found[0]
        return self._planned(plan, depth)

    def _walked(self, plan: Plan, size: int, depth: int) -> list[Any]:
        """Return the next structs, at most `size`, up to the first unusual one, decoded by thriftpy2; none where parts may be shared."""
        source = self.source
        data, begin = source.data, source.at
        if not plan.is_plain or not self._walks or source.safe < len(data):
            return []
        walk = Walk(data, self._max_container_size)
        if plan.elements is None:
            plan.elements = elements_of(TType.LIST, (TType.STRUCT, plan.cls))
        count, end = plan.elements(walk, begin, depth, size)
        if count == 0:
            return []
        self._is_most = True
        self._take(walk.memory + MEMORY_PER_BYTE * (end - begin))
        raw = data[begin:end]
        try:
            found = [from_bytes(plan.cls, raw, strict=True)] if count == 1 else joined_from_bytes(plan.cls, count, raw, strict=True)
        except (UnicodeDecodeError, TypeError):  # a text that is not UTF-8; a map with lists for keys
            self._walks = False  # else it might be walked over again for each struct before it
            return []
        source.at = end
        return found

    def _planned(self, plan: Plan, depth: int) -> Any:  # noqa: C901  # calls would take most of the time
        """Read a struct by its plan."""
        if depth <= 0:
            raise depth_error()
        source, fields = self.source, plan.fields
        data, at, safe = source.data, source.at, source.safe
        values = plan.defaults.copy()
        memory = plan.memory
        while True:
            known = None
            if at + FIXED <= safe:
                key, size = _begin(data, at)
                known = fields.get(key)
            if known is not None:
                kind, name, detail, more = known
                if kind == TEXT:
                    begin = at + COUNTED
                    end = begin + size
                    if begin <= end <= safe:
                        try:
                            values[name] = data[begin:end].decode()
                        except UnicodeDecodeError:
                            pass  # is read as a rare case
                        else:
                            memory += TEXT_MEMORY + size
                            at = end
                            continue
                elif kind == INTEGER:
                    values[name] = size
                    at += COUNTED
                    continue
                elif kind == NUMBER:
                    (values[name],) = detail(data, at + HEADER)
                    at += more
                    continue
                else:
                    source.at = at + HEADER
                    if kind == STRUCT:
                        values[name] = self._planned(detail, depth - 1)
                    else:
                        values[name] = self._nested(detail, more, depth - 1)
                    data, at, safe = source.data, source.at, source.safe
                    continue
            elif at < safe and data[at] == TType.STOP:
                source.at = at + 1
                break
            source.at = at
            if not self._rare_field(plan, values, depth - 1):
                break
            data, at, safe = source.data, source.at, source.safe
        self._memory += memory
        if self._memory > self._max_memory:
            raise TooMuchMemory(self._max_memory)
        made = plan.make(plan.cls)
        made.__dict__ = values
        return made

    def _rare_field(self, plan: Plan, values: dict[str, Any], depth: int) -> bool:
        """Read a field of any kind; return whether there was one."""
        ttype, number = self._field_header()
        if ttype == TType.STOP:
            return False
        field = plan.fields.get(struct.pack(">Bh", ttype, number))
        if field is None:
            self._skip(ttype, depth)
            return True
        kind, name, detail, more = field
        if kind in (INTEGER, NUMBER):
            values[name] = self._scalar(ttype)
        elif kind == TEXT:
            self._field, outer = more, self._field
            values[name] = self._text()
            self._field = outer
        else:
            values[name] = self._planned(detail, depth) if kind == STRUCT else self._nested(detail, more, depth)
        return True

    def _nested(self, field: Nested, label: str, depth: int) -> Any:
        """Read a container, bytes or a struct that may be shared. If the bytes are the same, it is the last value of the field."""
        if not field.is_shared:
            return self._unshared(field, label, depth)
        source = self.source
        data, begin = source.data, source.at
        if self._seen is None:
            self._seen = {}
        raw, nests, value = self._seen.get(label, (b"", -1, None))
        if nests == depth and data.startswith(raw, begin, source.safe):
            source.at += len(raw)
            return value
        value = self._unshared(field, label, depth)
        if source.data is data:
            self._seen[label] = data[begin : source.at], depth, value
        return value

    def _unshared(self, field: Nested, label: str, depth: int) -> Any:
        if field.plan is not None:
            return self._planned(field.plan, depth)
        self._field, outer = label, self._field
        value = self._value(field.ttype, field.declared, depth)
        self._field = outer
        return value

    def _list(self, spec: Any, depth: int) -> list[Any]:
        etype, espec = spec if isinstance(spec, tuple) else (spec, None)
        size = self._list_of(etype, depth)
        if etype == TType.STRUCT:
            return self._structs(plan_of(espec), size, depth)
        return [self._value(etype, espec, depth) for _ in range(size)]

    def _structs(self, plan: Plan, size: int, depth: int) -> list[Any]:
        """Return `size` structs. One that can not be walked over is read here, and the walk continues after it."""
        if not plan.is_plain:
            return [self._planned(plan, depth) for _ in range(size)]
        found: list[Any] = []
        while len(found) < size:
            if size - len(found) >= FEW_STRUCTS:
                found += self._walked(plan, size - len(found), depth)
            if len(found) < size:
                found.append(self._planned(plan, depth))
        return found

    def _list_header(self) -> tuple[int, int]:
        source = self.source
        at = source.at
        if at + 5 > source.safe:
            return super()._list_header()
        source.at = at + 5
        return _list_at(source.data, at)

    def _map_header(self) -> tuple[int, int, int]:
        source = self.source
        at = source.at
        if at + 6 > source.safe:
            return super()._map_header()
        source.at = at + 6
        return _map_at(source.data, at)

    def _map(self, spec: Any, depth: int) -> dict[Any, Any]:
        if spec[0] != TType.STRING or spec[1] != TType.STRING:
            return super()._map(spec, depth)
        text = self._text
        return {text(): text() for _ in range(self._map_of(TType.STRING, TType.STRING, depth))}

    def _text(self) -> str:
        source = self.source
        at = source.at + 4
        if at <= source.safe:
            (size,) = _size_at(source.data, source.at)
            end = at + size
            if size >= 0 and end <= source.safe:
                try:
                    text = source.data[at:end].decode()
                except UnicodeDecodeError:
                    return super()._text()
                self._take(TEXT_MEMORY + size)
                source.at = end
                return text
        return super()._text()
