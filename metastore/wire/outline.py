"""Walk over a binary message before it is decoded: find its end, check its sizes, see whether thriftpy2 may decode it.

thriftpy2's Cython protocol takes the sizes of containers on trust: one of elements that take no bytes, which a few bytes
on the wire can ask for, holds the interpreter for minutes. It also takes a map's text for keys of any declared type and
loses its place. So every message that is not one again that was (`memory.py`) is walked over here first; that takes a few
microseconds for an ordinary one. What comes again and again, such as all but the location in the storage of a thousand
partitions, is compared instead of walked again. No struct is made. `likeness.py` has how structs of a list are compared.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

from thriftpy2.thrift import TPayload, TType

from metastore.idl import ColumnStatistics, Partition, StorageDescriptor
from metastore.wire.decoder import MAX_DEPTH
from metastore.wire.likeness import SIZE, WIDTH, Likeness, Likenesses, Notes, Piece, Places
from metastore.wire.transport import CHUNK, Feed, Malformed, TooLarge

WIDTHS = {TType.BOOL: 1, TType.BYTE: 1, TType.I16: 2, TType.I32: 4, TType.I64: 8, TType.DOUBLE: 8}
NUMBERS = frozenset((TType.I32, TType.I64, TType.DOUBLE))
"""Those that may differ from struct to struct of a list."""
FIELD_HEADER = struct.Struct("!Bh").unpack_from
LIST_HEADER = struct.Struct("!Bi").unpack_from
MAP_HEADER = struct.Struct("!BBi").unpack_from
LEAST_ALIKE = 4
"""Structs of a list from which on it is worth to look what they have in common."""
LEAST_KNOWN = 16
"""Bytes of a value that is worth a comparison."""
MOST_MISSES = 4
"""How often a value may differ from the one before until it is no longer compared."""
EMPTY = b"\0\0\0\0"
SIZE_AT = {TType.LIST: 4, TType.SET: 4, TType.MAP: 5}
"""Where the number of elements stands, from the header of a field."""
DESCRIPTOR = StorageDescriptor.thrift_spec
LOCATION = next(TType.STRING.to_bytes(1, "big") + fid.to_bytes(2, "big") for fid, spec in DESCRIPTOR.items() if spec[1] == "location")
"""The header of a storage descriptor's only field that differs from partition to partition."""
IN_LONG_LISTS = (Partition, ColumnStatistics)
"""Structs that are noted where they are alike."""
TEXT = frozenset((TType.STRING, TType.BINARY))


Repeated = tuple[int, int, tuple[str, ...], int, int]
"""Fields of a storage descriptor that stand as the same bytes in an earlier one: the numbers of both descriptors, counted from 0, the names
of the fields, where the first one's header stands in the message, and where the last one ends; the STOP of its struct is not counted."""


class Alike(NamedTuple):
    """Structs in turn that are like an earlier one of their list but for some texts and numbers."""

    number: int
    """Of the first, in the list, counted from 0."""
    like: Likeness
    places: list[Places]
    descriptors: range
    """The numbers of their storage descriptors, if they have one each."""

    def repeated(self) -> list[Repeated]:
        """Return what of their storage descriptors need not be decoded."""
        return [
            (number, earlier, fields, places[run] + begin, places[run] + end)
            for number, places in zip(self.descriptors, self.places, strict=False)
            for run, (earlier, fields, begin, end) in self.like.runs.pieces
        ]


class Part:
    """What stood last before or after the location of a storage descriptor. Empty data is never compared."""

    __slots__ = ("data", "descriptor", "fields", "misses")

    def __init__(self) -> None:
        self.data = b""
        self.descriptor = 0
        self.fields: tuple[str, ...] = ()
        self.misses = 0


class Outline:
    """The walk over one message. `careful` tells that the Python decoder must read it.

    `descriptors` counts the storage descriptors that the walk met; `repeated` lists what of them need not be decoded again, but of the
    structs in `alike`, which need not be decoded at all. `lists` tells where the sizes of all lists of such structs stand. `memory` has
    what the structs of an earlier message had in common.
    """

    def __init__(self, feed: Feed, limit: int, max_container_size: int, memory: Likenesses | None = None) -> None:
        self._feed = feed
        self._memory = memory or {}
        self._limit = limit
        self._max_container_size = max_container_size
        self._last: dict[tuple[int, int, int, int], bytes | None] = {}
        self._misses: dict[tuple[int, int, int, int], int] = {}
        self._parts = Part(), Part()
        self._notes: Notes | None = None
        self.data = bytearray()
        self.careful = False
        self.descriptors = 0
        self.repeated: list[Repeated] = []
        self.alike: list[Alike] = []
        self.lists: list[int] = []

    def need(self, size: int) -> None:
        """Wait until so many bytes of the message are here. TooLarge, EndOfStream."""
        if size > self._limit:
            raise TooLarge(self._limit)
        data = self.data
        while len(data) < size:
            data += self._feed.some(CHUNK)

    def header(self) -> tuple[str, int, int, int]:
        """Return name, type and sequence id of the message, and where its struct begins. Malformed."""
        self.need(4)
        size = SIZE(self.data, 0)[0]
        at = 4
        kind = -1
        if size < 0:
            if size & 0xFFFF0000 != 0x80010000:
                raise Malformed(f"Version {size & 0xFFFFFFFF:#x} is not that of the binary protocol")
            kind = size & 0xFF
            self.need(8)
            size = SIZE(self.data, 4)[0]
            at = 8
            if size < 0:
                raise Malformed(f"A size of {size} bytes")
        self.need(at + size + (5 if kind < 0 else 4))
        name = self.data[at : at + size].decode(errors="replace")
        at += size
        if kind < 0:
            kind = self.data[at]
            at += 1
        return name, kind, int(SIZE(self.data, at)[0]), at + 4

    def end(self, at: int, cls: type[TPayload] | None) -> int:
        """Return where the struct that begins at `at` ends; `cls` is what it will be decoded into. Malformed, TooLarge."""
        return self._struct(at, None if cls is None else cls.thrift_spec, MAX_DEPTH)

    def _struct(self, at: int, specs: dict[int, tuple[Any, ...]] | None, depth: int) -> int:
        if depth <= 0:
            raise Malformed(f"Structs and containers nest deeper than {MAX_DEPTH}")
        if specs is DESCRIPTOR:
            return self._descriptor(at, depth)
        data = self.data
        while True:
            if at + 7 > len(data):
                self.need(at + 1)
                if data[at]:
                    self.need(at + 4)
            ttype = data[at]
            if ttype == TType.STRING:
                if at + 7 > len(data):
                    self.need(at + 7)
                size = SIZE(data, at + 3)[0]
                if size < 0:
                    raise Malformed(f"A size of {size} bytes")
                if self._notes is not None:
                    self._notes.leaves.append((at + 3, 0, at + 7 + size))
                at += 7 + size
                if at > len(data):
                    self.need(at)
            elif ttype == TType.STOP:
                return at + 1
            elif ttype in WIDTHS:
                if self._notes is not None and ttype in NUMBERS:
                    self._notes.leaves.append((at + 3, WIDTHS[ttype], at + 3 + WIDTHS[ttype]))
                at += 3 + WIDTHS[ttype]
                if at > len(data):
                    self.need(at)
            else:
                at = self._field(ttype, at, specs, depth - 1)

    def _descriptor(self, at: int, depth: int) -> int:
        """Return where a storage descriptor ends: what comes before its location, the location, what comes after it."""
        number = self.descriptors
        self.descriptors += 1
        before, after = self._parts
        at = self._part(before, number, at, depth)
        self.need(at + 1)
        while self.data[at] != TType.STOP:
            at = self._part(after, number, self._strings(at + 3, 1), depth)
            self.need(at + 1)
        return at + 1

    def _part(self, part: Part, number: int, at: int, depth: int) -> int:
        """Return where a location or the STOP stands, from `at` on."""
        known = part.data
        if known:
            if self.data.startswith(known, at):
                end = at + len(known)
                if end < len(self.data) and (self.data[end] == TType.STOP or self.data[end : end + 3] == LOCATION):
                    self.repeated.append((number, part.descriptor, part.fields, at, end))
                    if self._notes is not None:
                        self._notes.pieces.append(Piece(part.descriptor, part.fields, at, end))
                    return end
            elif at + len(known) <= len(self.data):
                part.misses += 1
        begin, fields = at, []
        while True:
            self.need(at + 1)
            if self.data[at] == TType.STOP:
                break
            self.need(at + 3)
            if self.data[at : at + 3] == LOCATION:
                break
            ttype, fid = FIELD_HEADER(self.data, at)
            spec = DESCRIPTOR.get(fid)
            if spec is not None:
                fields.append(spec[1])
            at = self._element(ttype, at + 3, _inner(spec, ttype), depth - 1)
        if self._notes is not None and fields:
            self._notes.pieces.append(Piece(number, tuple(fields), begin, at))
        if part.misses == MOST_MISSES or at - begin > CHUNK:
            part.data = b""
        elif at - begin >= LEAST_KNOWN and not self.careful:
            part.data, part.descriptor, part.fields = bytes(self.data[begin:at]), number, tuple(fields)
        return at

    def _field(self, ttype: int, at: int, specs: dict[int, tuple[Any, ...]] | None, depth: int) -> int:
        """Return where the field whose header stands at `at` ends, which holds a struct, list, set or map."""
        size = SIZE_AT.get(ttype)
        if size is not None and self.data[at + size : at + size + 4] == EMPTY:
            return at + size + 4
        fid = FIELD_HEADER(self.data, at)[1]
        inner = _inner(specs.get(fid), ttype) if specs is not None else None
        at += 3
        key = (id(specs), fid, ttype, depth)
        known = self._last.get(key, b"")
        if known is None or inner is StorageDescriptor or self._notes is not None:  # what is passed over is not noted
            return self._value(ttype, at, inner, depth)
        if known:
            if self.data.startswith(known, at):
                return at + len(known)
            if at + len(known) <= len(self.data):
                self._misses[key] = self._misses.get(key, 0) + 1
        end = self._value(ttype, at, inner, depth)
        if self._misses.get(key, 0) == MOST_MISSES or end - at > CHUNK:
            self._last[key] = None
        elif end - at >= LEAST_KNOWN and not self.careful:
            self._last[key] = bytes(self.data[at:end])
        return end

    def _value(self, ttype: int, at: int, spec: Any, depth: int) -> int:
        """Return where a struct, list, set or map ends."""
        if ttype == TType.STRUCT:
            return self._struct(at, spec.thrift_spec if spec is not None else None, depth)
        if depth <= 0:
            raise Malformed(f"Structs and containers nest deeper than {MAX_DEPTH}")
        if ttype in (TType.LIST, TType.SET):
            return self._list(at, spec, depth)
        if ttype == TType.MAP:
            return self._map(at, spec, depth)
        raise Malformed(f"Type {ttype} is unknown")

    def _list(self, at: int, spec: Any, depth: int) -> int:
        if at + 5 > len(self.data):
            self.need(at + 5)
        etype, size = LIST_HEADER(self.data, at)
        at += 5
        if size == 0:
            return at
        self._check(size, at)
        if etype in WIDTHS:
            at += size * WIDTHS[etype]
            self.need(at)
            return at
        if etype == TType.STRING:
            return self._strings(at, size)
        inner = spec[1] if isinstance(spec, tuple) and spec[0] == etype else None
        if inner in IN_LONG_LISTS:
            self.lists.append(at - WIDTH)
            if size >= LEAST_ALIKE:
                return self._structs(at, size, inner, depth - 1)
        number = 0
        if etype == TType.STRUCT and size >= LEAST_ALIKE and depth > 1 and self._notes is None:
            number, at = self._same_sized(at, size)
        for _ in range(size - number):
            at = self._value(etype, at, inner, depth - 1)
        return at

    def _same_sized(self, at: int, size: int) -> tuple[int, int]:
        """Return how many structs that are here have the fields of the first one, all of them numbers, and where they end; 0 and `at`."""
        data, place = self.data, at
        heads: list[int] = []
        while place < len(data) and (width := WIDTHS.get(data[place])) is not None:
            heads += (place, place + 1, place + 2)
            place += 3 + width
        if place >= len(data) or data[place] != TType.STOP:
            return 0, at
        step = place + 1 - at
        here = min(size, (len(data) - at) // step)
        end = at + here * step
        same = all(data[head:end:step] == data[head : head + 1] * here for head in (*heads, place))
        return (here, end) if same else (0, at)

    def _structs(self, at: int, size: int, spec: Any, depth: int) -> int:
        """Return where the last of so many structs ends: those that are like an earlier one are compared with it."""
        like = self._memory.get(spec)
        misses, number, begin = 0, 0, len(self.alike)
        while number < size:
            if like is not None and (places := like.following(self.data, at, size - number, self.need)):
                descriptors = range(self.descriptors, self.descriptors + len(places) * like.descriptors)
                self.alike.append(Alike(number, like, places, descriptors))
                self.descriptors = descriptors.stop
                number += len(places)
                at = places[-1][-1]
                if number == size:
                    break
            if misses == MOST_MISSES:
                at = self._value(TType.STRUCT, at, spec, depth)
            else:
                at, like = self._noted(at, spec, depth)
                misses += 1
            number += 1
        self.alike[begin:] = [each._replace(places=each.like.widened(each.places, self.data, self.need)) for each in self.alike[begin:]]
        return at

    def _noted(self, at: int, spec: Any, depth: int) -> tuple[int, Likeness | None]:
        """Return where a struct ends, and what others are compared by; None for one that is too long or too odd for that."""
        begin, number = at, self.descriptors
        self._notes = notes = Notes()
        at = self._value(TType.STRUCT, at, spec, depth)
        self._notes = None
        descriptors = self.descriptors - number
        if at - begin > CHUNK or self.careful or descriptors > 1:
            return at, None
        return at, Likeness(bytes(self.data[begin:at]), notes, begin, descriptors)

    def _map(self, at: int, spec: Any, depth: int) -> int:
        if at + 6 > len(self.data):
            self.need(at + 6)
        ktype, vtype, size = MAP_HEADER(self.data, at)
        at += 6
        if size == 0:
            return at
        self._check(size, at)
        keys, values = (_declared(spec[0]), _declared(spec[1])) if spec is not None else ((None, None), (None, None))
        if spec is not None and (keys[0] == TType.LIST or (ktype in TEXT) != (keys[0] in TEXT) or (vtype in TEXT) != (values[0] in TEXT)):
            self.careful = True
        if ktype == vtype == TType.STRING:
            return self._strings(at, 2 * size)
        for _ in range(size):
            at = self._element(ktype, at, keys[1] if keys[0] == ktype else None, depth - 1)
            at = self._element(vtype, at, values[1] if values[0] == vtype else None, depth - 1)
        return at

    def _element(self, ttype: int, at: int, spec: Any, depth: int) -> int:
        if ttype == TType.STRING:
            return self._strings(at, 1)
        if ttype in WIDTHS:
            at += WIDTHS[ttype]
            self.need(at)
            return at
        return self._value(ttype, at, spec, depth)

    def _strings(self, at: int, count: int) -> int:
        data = self.data
        for _ in range(count):
            if at + 4 > len(data):
                self.need(at + 4)
            size = SIZE(data, at)[0]
            if size < 0:
                raise Malformed(f"A size of {size} bytes")
            if self._notes is not None:
                self._notes.leaves.append((at, 0, at + 4 + size))
            at += 4 + size
            if at > len(data):
                self.need(at)
        return at

    def _check(self, size: int, at: int) -> None:
        if size < 0:
            raise Malformed(f"A container of {size} elements")
        if size > self._max_container_size:
            raise Malformed(f"A container of {size} elements; max_container_size is {self._max_container_size}")
        if size > self._limit - at:
            raise Malformed(f"A container of {size} elements can not fit in the message; see max_message_size")


def _inner(spec: tuple[Any, ...] | None, ttype: int) -> Any:
    """Return what a field's declaration says of what a struct or container of this type holds."""
    return spec[2] if spec is not None and spec[0] == ttype and len(spec) > 3 else None


def _declared(spec: Any) -> tuple[int, Any]:
    """Return a declared element type and what it holds."""
    return (spec[0], spec[1]) if isinstance(spec, tuple) else (spec, None)
