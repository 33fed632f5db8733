"""Small records in memory that the worker processes share: each process writes its own, and any process reads all of them.

A process has a part with a fixed number of places, each of a fixed size, for a JSON text. No process waits for another: a reader that sees
a place change while it is written reads it again. The memory is taken only where something was written.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from typing import Any

import orjson

_HEAD = struct.Struct("<QQ")
"""A counter, raised at the beginning and the end of each write, so that it is odd during one; the text's length, 0 for a free place."""
_ATTEMPTS = 5


class Records:
    """Places for the records of some processes. The places of one part are written by its process alone, each by one thread at a time."""

    def __init__(self, parts: int, places: int, size: int) -> None:
        """`size` is the most bytes of a record's text."""
        self._places = places
        self._parts = parts
        self._part = 0
        self._size = size
        self._each = _HEAD.size + size
        self._used = memoryview(mmap.mmap(-1, parts * 8)).cast("Q")
        """The number of places of each part that were ever written: to read the places behind them would take their memory."""
        self._cells = memoryview(mmap.mmap(-1, parts * places * self._each))

    def take(self, part: int) -> None:
        """Write into a part from now on."""
        self._part = part

    def write(self, place: int, value: Any) -> None:
        """Write a record, a dataclass whose texts the caller has shortened; one that is still too long is written empty."""
        text = orjson.dumps(value)
        self._put(place, text if len(text) <= self._size else b"{}")

    def free(self, place: int) -> None:
        """Remove a record."""
        self._put(place, b"")

    def _put(self, place: int, text: bytes) -> None:
        cells, start = self._cells, self._start(self._part, place)
        written: int = _HEAD.unpack_from(cells, start)[0] | 1
        _HEAD.pack_into(cells, start, written, 0)
        cells[start + _HEAD.size : start + _HEAD.size + len(text)] = text
        _HEAD.pack_into(cells, start, written + 1, len(text))
        self._used[self._part] = max(self._used[self._part], place + 1)

    def _start(self, part: int, place: int) -> int:
        return (part * self._places + place) * self._each

    def clear(self, part: int) -> None:
        """Remove all records of a part whose process has died."""
        for place in range(self._used[part]):
            _HEAD.pack_into(self._cells, self._start(part, place), 0, 0)
        self._used[part] = 0

    def read(self) -> Iterator[dict[str, Any]]:
        """Yield the records of all parts, in no order."""
        for part in range(self._parts):
            for place in range(self._used[part]):
                text = self._read(self._start(part, place))
                if text:
                    yield orjson.loads(text)

    def _read(self, start: int) -> bytes:
        """Return the text at a place; b"" for a free place, and after some attempts that found an incomplete text."""
        for _ in range(_ATTEMPTS):
            head = written, length = _HEAD.unpack_from(self._cells, start)
            text = bytes(self._cells[start + _HEAD.size : start + _HEAD.size + length])
            if not written & 1 and head == _HEAD.unpack_from(self._cells, start):
                return text
        return b""
