"""Small records in memory that the worker processes share: each process writes its own, any process reads those of all.

A process has a part with a fixed number of places, each of a fixed size, which holds a few numbers and a JSON text. Nobody waits for
anybody: who reads a place while it is written sees it change, and reads it again. The memory is taken only where something was written.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator, Sequence
from typing import Any

import orjson

_HEAD = struct.Struct("<QI")
"""How often the place was written, odd while it is; the length of the text, 0 for a place that is free."""
_ATTEMPTS = 5


class Records:
    """Places for the records of some processes. Those of one part are written by its process alone, each by one thread at a time."""

    def __init__(self, parts: int, places: int, size: int, numbers: int = 0) -> None:
        """`size` is the most bytes of a record's text; a record has so many `numbers` beside it, which can be changed alone."""
        self.places = places
        self._parts = parts
        self._part = 0
        self._numbers = struct.Struct(f"<{numbers}d")
        self._text = _HEAD.size + self._numbers.size
        self._each = -(-(self._text + size) // 8) * 8
        self._size = size
        self._used = memoryview(mmap.mmap(-1, parts * 8)).cast("Q")
        """Of each part how many places were ever written: those behind them are not even looked at, which would take their memory."""
        self._cells = memoryview(mmap.mmap(-1, parts * places * self._each))

    def take(self, part: int) -> None:
        """Write into a part from now on."""
        self._part = part

    def at(self, place: int) -> int:
        """Return where a place of the own part is, for `numbers`."""
        return (self._part * self.places + place) * self._each + _HEAD.size

    def write(self, place: int, values: Any, numbers: Sequence[float] = ()) -> None:
        """Write a record, whose texts the caller has shortened; what is too long all the same is left out as a whole."""
        text = orjson.dumps(values, default=str)
        self._put(place, text if len(text) <= self._size else b"{}", numbers)

    def free(self, place: int) -> None:
        """Let a record go."""
        self._put(place, b"", (0.0,) * (self._numbers.size // 8))

    def _put(self, place: int, text: bytes, numbers: Sequence[float]) -> None:
        cells, start = self._cells, self.at(place) - _HEAD.size
        written, _ = _HEAD.unpack_from(cells, start)
        _HEAD.pack_into(cells, start, written | 1, 0)
        self._numbers.pack_into(cells, start + _HEAD.size, *numbers)
        cells[start + self._text : start + self._text + len(text)] = text
        _HEAD.pack_into(cells, start, (written | 1) + 1, len(text))
        self._used[self._part] = max(self._used[self._part], place + 1)

    def number(self, at: int, *numbers: float) -> None:
        """Change the numbers of the record at a place (see `at`)."""
        self._numbers.pack_into(self._cells, at, *numbers)

    def clear(self, part: int) -> None:
        """Let all records of a part go whose process has died."""
        for place in range(self._used[part]):
            _HEAD.pack_into(self._cells, (part * self.places + place) * self._each, 0, 0)
        self._used[part] = 0

    def read(self) -> Iterator[tuple[dict[str, Any], tuple[float, ...]]]:
        """Yield the records of all parts with their numbers, in no order."""
        for part in range(self._parts):
            for place in range(self._used[part]):
                found = self._read((part * self.places + place) * self._each)
                if found is not None:
                    yield found

    def _read(self, start: int) -> tuple[dict[str, Any], tuple[float, ...]] | None:
        for _ in range(_ATTEMPTS):
            head = _HEAD.unpack_from(self._cells, start)
            numbers = self._numbers.unpack_from(self._cells, start + _HEAD.size)
            text = bytes(self._cells[start + self._text : start + self._text + head[1]])
            if not head[0] & 1 and head == _HEAD.unpack_from(self._cells, start):
                return (orjson.loads(text), numbers) if text else None
        return None
