"""Check and decode messages of the binary and the compact protocol in Python: simple rather than fast.

Maps with list keys get tuple keys. Container sizes and nesting are limited. The first field whose bytes are not UTF-8 is noted, and the
rest of the message is still read. This module never guesses: a message with an unknown type is refused.
"""

from __future__ import annotations

import struct
import sys
from typing import Any, ClassVar

from thriftpy2.thrift import TPayload, TType

from metastore.wire.codec.limits import (
    ELEMENT_MEMORY,
    ENTRY_MEMORY,
    LIST_MEMORY,
    MAX_DEPTH,
    TEXT_MEMORY,
    TooMuchMemory,
    container_error,
    depth_error,
    memory_of,
    size_error,
    type_error,
    version_error,
)
from metastore.wire.sockets.transport import CHUNK, Choose, Feed, Malformed, TooLarge

Header = tuple[str, int, int]
"""Method name, message type, sequence id."""


class _Undeclared(TPayload):
    thrift_spec: ClassVar[dict[int, Any]] = {}


_UNDECLARED: dict[int, Any] = {TType.STRUCT: _Undeclared, TType.LIST: -1, TType.SET: -1, TType.MAP: (-1, -1)}
"""Pseudo-declarations for skipped values. No element type matches them, so elements are skipped too."""


class Source:
    """The bytes of one message: reads are exact and count against the limit. A reader of `data` itself advances `at`, up to `safe`."""

    def __init__(self, feed: Feed, limit: int, max_kept: int, *, keeps: bool) -> None:
        self._feed = feed
        self._limit = limit
        self._max_kept = max_kept
        self._keeps = keeps
        self._passed = bytearray()
        """The kept part of the message before `data`."""
        self._gone = 0
        """Bytes of the message before `data`."""
        self.data = b""
        self.at = 0
        self.safe = 0
        """The end of the received bytes, or of the bytes that may be read."""

    @property
    def room(self) -> int:
        """The number of bytes that the message may still have."""
        return self._limit - self._gone - self.at

    def read(self, size: int) -> bytes:
        """Return `size` bytes; raises EndOfStream, TooLarge, Malformed for a negative size."""
        if size < 0:
            raise size_error(size)
        out = self.peek(size)
        self.at += size
        return out

    def peek(self, size: int) -> bytes:
        """Return the next `size` bytes, which stay; raises EndOfStream, TooLarge."""
        if self.at + size > self.safe:
            self.wait(size)
        return self.data[self.at : self.at + size]

    def wait(self, size: int) -> None:
        """Receive until `data` has the next `size` bytes. Raises as `peek`."""
        if size > self.room:
            raise TooLarge(self._limit)
        if not self.data and size <= self._max_kept:  # most messages come in one piece
            self.data = self._feed.some(CHUNK)
            self.safe = min(len(self.data), self._limit, self._max_kept)
            if size <= self.safe:
                return
        kept = self._gone + self.at if self._keeps else 0
        if kept + size > self._max_kept:
            raise TooMuchMemory(self._max_kept)
        if self._keeps and self.at:
            self._passed += self.data[: self.at]
        self._gone += self.at
        parts = [self.data[self.at :]]
        here = len(parts[0])
        self.data, self.at, self.safe = parts[0], 0, 0
        while here < size:
            parts.append(self._feed.some(CHUNK))
            here += len(parts[-1])
        self.data = b"".join(parts)
        self.safe = min(here, self._limit - self._gone, self._max_kept - kept)

    def skip(self, size: int) -> None:
        """Skip `size` bytes in small parts, to hold few of them at once. Raises as `read`."""
        if size < 0:
            raise size_error(size)
        if size > self.room:
            raise TooLarge(self._limit)
        while size > 0:
            part = min(size, CHUNK)
            self.read(part)
            size -= part

    def again(self) -> Source:
        """Return a source of the same message from its beginning on, if its bytes are kept."""
        self._feed.unread(self.finish())
        return Source(self._feed, self._limit, self._max_kept, keeps=self._keeps)

    def finish(self) -> bytes:
        """Give the bytes beyond the message back to the feed and return the message's bytes, as far as they are kept."""
        self._feed.unread(self.data[self.at :])
        return bytes(self._passed + self.data[: self.at]) if self._passed else self.data[: self.at]


class Decoder:
    """One message. Its attributes hold the parts that were read so far.

    It has the rules of both protocols: fields are matched by id and type, unknown ones are skipped.
    """

    def __init__(
        self, feed: Feed, max_message_size: int, max_container_size: int, max_memory: int = sys.maxsize,
        max_kept: int = sys.maxsize, keeps: bool = True,
    ) -> None:  # fmt: skip
        """Begin a message of `feed`, of which no more than `max_kept` bytes are kept: TooMuchMemory for more.

        Without `keeps` its bytes are forgotten as they are read, and `finish` does not return them.
        """
        self.name = ""
        self.type = 0
        self.seqid = 0
        self.invalid_text: str | None = None
        """The first field whose bytes are not UTF-8, as `Struct.field`; its text has replacement characters."""
        self.source = Source(feed, max_message_size, max_kept, keeps=keeps)
        self._max_container_size = max_container_size
        self._max_memory = max_memory
        self._memory = 0
        self._field = ""

    def read(self, choose: Choose) -> Any:
        """Return the struct of the message, in the class that `choose` gives for its name and type; None where it gives none.

        Raises Malformed, TooLarge, EndOfStream.
        """
        self.name, self.type, self.seqid = self._message()
        cls = choose(self.name, self.type)
        if cls is None:
            return self._skip(TType.STRUCT, MAX_DEPTH)
        return self._new(cls, MAX_DEPTH)

    def finish(self) -> bytes:
        """Give the bytes beyond the message back to the feed and return the message's bytes."""
        return self.source.finish()

    def _message(self) -> Header:
        """Read the part before the struct of a message."""
        raise NotImplementedError

    def _enter(self) -> int:
        return 0

    def _leave(self, state: int) -> None:
        pass

    def _field_header(self) -> tuple[int, int]:
        raise NotImplementedError

    def _list_header(self) -> tuple[int, int]:
        raise NotImplementedError

    def _map_header(self) -> tuple[int, int, int]:
        raise NotImplementedError

    def _scalar(self, ttype: int) -> Any:
        raise NotImplementedError

    def _string_size(self) -> int:
        """Read the size of a string, which may be negative."""
        raise NotImplementedError

    def _string(self) -> bytes:
        return self.source.read(self._string_size())

    def _take(self, memory: int) -> None:
        """Count memory that values take; raises TooMuchMemory."""
        self._memory += memory
        if self._memory > self._max_memory:
            raise TooMuchMemory(self._max_memory)

    def _new(self, cls: type[TPayload], depth: int) -> TPayload:
        """Read a struct of a class."""
        obj = cls()
        self._struct(obj, depth)
        return obj

    def _struct(self, obj: TPayload, depth: int) -> None:
        depth = self._deeper(depth)
        self._take(memory_of(type(obj)))
        state, outer = self._enter(), self._field
        specs = type(obj).thrift_spec
        while True:
            ttype, fid = self._field_header()
            if ttype == TType.STOP:
                break
            spec = specs.get(fid)
            if spec is None or not _same(ttype, spec[0]):
                self._skip(ttype, depth)
                continue
            name = str(spec[1])
            self._field = f"{type(obj).__name__}.{name}"
            setattr(obj, name, self._value(spec[0], spec[2] if len(spec) > 3 else None, depth))
        self._field = outer
        self._leave(state)

    def _value(self, ttype: int, spec: Any, depth: int) -> Any:
        if ttype == TType.STRING:
            return self._text()
        if ttype == TType.BINARY:
            data = self._string()
            self._take(TEXT_MEMORY + len(data))
            return data
        if ttype == TType.STRUCT:
            return self._new(spec, depth)
        if ttype in (TType.LIST, TType.SET):
            return self._list(spec, self._deeper(depth))
        if ttype == TType.MAP:
            return self._map(spec, self._deeper(depth))
        return self._scalar(ttype)

    def _list(self, spec: Any, depth: int) -> list[Any]:
        etype, espec = spec if isinstance(spec, tuple) else (spec, None)
        return [self._value(etype, espec, depth) for _ in range(self._list_of(etype, depth))]

    def _list_of(self, etype: int, depth: int) -> int:
        """Return the number of elements of a type that follow. Elements of another type are skipped, and 0 is returned."""
        sent, size = self._list_header()
        self._check_size(size)
        if not _same(sent, etype):
            for _ in range(size):
                self._skip(sent, depth)
            return 0
        self._take(LIST_MEMORY + ELEMENT_MEMORY * size)
        return size

    def _map_of(self, ktype: int, vtype: int, depth: int) -> int:
        """Return the number of entries of two types that follow. Entries of other types are skipped, and 0 is returned."""
        sent_key, sent_value, size = self._map_header()
        self._check_size(size)
        if size and not (_same(sent_key, ktype) and _same(sent_value, vtype)):
            for _ in range(size):
                self._skip(sent_key, depth)
                self._skip(sent_value, depth)
            return 0
        self._take(LIST_MEMORY + ENTRY_MEMORY * size)
        return size

    def _map(self, spec: Any, depth: int) -> dict[Any, Any]:
        ktype, kspec = spec[0] if isinstance(spec[0], tuple) else (spec[0], None)
        vtype, vspec = spec[1] if isinstance(spec[1], tuple) else (spec[1], None)
        out: dict[Any, Any] = {}
        size = self._map_of(ktype, vtype, depth)
        for _ in range(size):
            key = self._value(ktype, kspec, depth)
            out[tuple(key) if isinstance(key, list) else key] = self._value(vtype, vspec, depth)
        return out

    def _text(self) -> str:
        data = self._string()
        self._take(TEXT_MEMORY + len(data))
        try:
            return data.decode()
        except UnicodeDecodeError:
            self.invalid_text = self.invalid_text or self._field
            return data.decode(errors="replace")

    def _skip(self, ttype: int, depth: int) -> None:
        """Skip a value of an undeclared type."""
        if ttype == TType.STRING:
            self.source.skip(self._string_size())
        elif ttype == TType.BINARY:
            raise type_error(ttype)  # it is a string on the wire
        else:
            self._value(ttype, _UNDECLARED.get(ttype), depth)

    def _deeper(self, depth: int) -> int:
        if depth <= 0:
            raise depth_error()
        return depth - 1

    def _check_size(self, size: int) -> None:
        if not 0 <= size <= self._max_container_size or size > self.source.room:
            raise container_error(size, self._max_container_size)


def _same(sent: int, declared: int) -> bool:
    return sent == (TType.STRING if declared == TType.BINARY else declared)


class BinaryDecoder(Decoder):
    """The binary protocol, with and without the version header."""

    _SCALARS: ClassVar[dict[int, struct.Struct]] = {
        TType.BOOL: struct.Struct("!?"), TType.BYTE: struct.Struct("!b"), TType.I16: struct.Struct("!h"),
        TType.I32: struct.Struct("!i"), TType.I64: struct.Struct("!q"), TType.DOUBLE: struct.Struct("!d"),
    }  # fmt: skip

    def _message(self) -> Header:
        size = self._i32()
        if size >= 0:
            name, kind = self.source.read(size), self.source.read(1)[0]
        elif size & 0xFFFF0000 == 0x80010000:
            name, kind = self._string(), size & 0xFF
        else:
            raise version_error(size)
        return name.decode(errors="replace"), kind, self._i32()

    def _i32(self) -> int:
        return int.from_bytes(self.source.read(4), "big", signed=True)

    def _field_header(self) -> tuple[int, int]:
        ttype = self.source.read(1)[0]
        return (0, 0) if ttype == TType.STOP else (ttype, int.from_bytes(self.source.read(2), "big", signed=True))

    def _list_header(self) -> tuple[int, int]:
        return self.source.read(1)[0], self._i32()

    def _map_header(self) -> tuple[int, int, int]:
        return self.source.read(1)[0], self.source.read(1)[0], self._i32()

    def _string_size(self) -> int:
        return self._i32()

    def _scalar(self, ttype: int) -> Any:
        form = self._SCALARS.get(ttype)
        if form is None:
            raise type_error(ttype)
        return form.unpack(self.source.read(form.size))[0]


class CompactDecoder(Decoder):
    """The compact protocol: variable-length integers, field ids as differences, booleans inside field headers."""

    _TYPES = (
        TType.STOP, TType.BOOL, TType.BOOL, TType.BYTE, TType.I16, TType.I32, TType.I64, TType.DOUBLE,
        TType.STRING, TType.LIST, TType.SET, TType.MAP, TType.STRUCT,
    )  # fmt: skip

    _last_id = 0
    _header_bool: bool | None = None

    def _message(self) -> Header:
        start, version = self.source.read(2)
        if start != 0x82 or version & 0x1F != 1:
            raise Malformed(f"Version {start:#x} {version & 0x1F} is not that of the compact protocol")
        seqid = self._varint()
        return self._string().decode(errors="replace"), version >> 5, seqid

    def _enter(self) -> int:
        outer, self._last_id = self._last_id, 0
        return outer

    def _leave(self, state: int) -> None:
        self._last_id = state

    def _varint(self) -> int:
        out = shift = 0
        while True:
            byte = self.source.read(1)[0]
            out |= (byte & 0x7F) << shift
            if byte < 0x80:
                return out
            shift += 7
            if shift > 63:
                raise Malformed("An integer of more than ten bytes")

    def _zigzag(self) -> int:
        number = self._varint()
        return (number >> 1) ^ -(number & 1)

    def _type(self, code: int) -> int:
        if code >= len(self._TYPES):
            raise type_error(code)
        return self._TYPES[code]

    def _field_header(self) -> tuple[int, int]:
        byte = self.source.read(1)[0]
        code = byte & 0x0F
        if code == 0:
            return 0, 0
        self._last_id = self._last_id + (byte >> 4) if byte >> 4 else self._zigzag()
        self._header_bool = code == 1 if code in (1, 2) else None
        return self._type(code), self._last_id

    def _list_header(self) -> tuple[int, int]:
        byte = self.source.read(1)[0]
        return self._type(byte & 0x0F), self._varint() if byte >> 4 == 15 else byte >> 4

    def _map_header(self) -> tuple[int, int, int]:
        size = self._varint()
        types = self.source.read(1)[0] if size else 0
        return self._type(types >> 4), self._type(types & 0x0F), size

    def _string_size(self) -> int:
        return self._varint()

    def _scalar(self, ttype: int) -> Any:
        if ttype == TType.BOOL:
            if self._header_bool is not None:
                out, self._header_bool = self._header_bool, None
                return out
            return self.source.read(1)[0] == 1
        if ttype == TType.BYTE:
            return int.from_bytes(self.source.read(1), "big", signed=True)
        if ttype in (TType.I16, TType.I32, TType.I64):
            return self._zigzag()
        if ttype == TType.DOUBLE:
            return struct.unpack("<d", self.source.read(8))[0]
        raise type_error(ttype)
