"""Replies that hold a long list: its pages are encoded one after the other into a file, which then is sent block by block.

A method's result is encoded with an empty list and with a list of one element: the two begin to differ at the list's size.
"""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

from metastore.call_time import encoding
from metastore.service.call.long_lists import LongList

BLOCK = 1 << 20
MAX_FRAME = 2**31 - 1
Encode = Callable[[list[Any]], bytes]
"""A function from a list to the bytes of the message with this result, without a frame."""


class LargeReply:
    """A message in a file; its length is the number of bytes to send."""

    def __init__(self, protocol: str, encode: Encode, *, framed: bool) -> None:
        self._compact = protocol == "compact"
        self._encode = encode
        self._framed = framed
        self._empty = encode([])
        self._file = tempfile.TemporaryFile()  # noqa: SIM115  # it is closed when the reply is sent
        self._at = -1
        """The position of the list's size in the message; -1 while no element was taken."""
        self._count = self._written = 0

    def begin(self) -> None:
        """Forget the bytes that were taken."""
        self._file.seek(0)
        self._file.truncate()
        self._count = self._written = 0

    @encoding
    def take(self, page: list[Any]) -> None:
        """Encode the next elements of the list."""
        if self._at < 0:
            one = self._encode(page[:1])
            differs = next(at for at, (left, right) in enumerate(zip(self._empty, one, strict=False)) if left != right)
            self._at = differs if self._compact else differs - 3
        data = self._encode(page)
        begin = self._at + len(self._size(len(page)))
        self._written += self._file.write(memoryview(data)[begin : len(data) - len(self._tail)])
        self._count += len(page)

    @encoding
    def end(self) -> None:
        """Encode the fields beside the list, which may be known only with the last page."""
        self._empty = self._encode([])

    def _size(self, count: int) -> bytes:
        """Return the encoding of a list's size in the message."""
        if not self._compact:
            return struct.pack(">i", count)
        kind = self._empty[self._at] & 0x0F
        if count < 15:
            return bytes([count << 4 | kind])
        out = [0xF0 | kind]
        while count > 0x7F:
            out.append(count & 0x7F | 0x80)
            count >>= 7
        return bytes([*out, count])

    @property
    def _tail(self) -> bytes:
        return b"" if self._at < 0 else self._empty[self._at + len(self._size(0)) :]

    @property
    def _head(self) -> bytes:
        return self._empty if self._at < 0 else self._empty[: self._at] + self._size(self._count)

    def __len__(self) -> int:
        return len(self._head) + self._written + len(self._tail) + (4 if self._framed else 0)

    def blocks(self) -> Iterator[bytes]:
        """Yield the bytes to send. This works once: the file is removed afterwards."""
        frame = struct.pack(">i", len(self) - 4) if self._framed else b""
        with self._file as file:
            file.seek(0)
            yield frame + self._head
            while block := file.read(BLOCK):
                yield block
            yield self._tail

    def close(self) -> None:
        """Remove the file."""
        self._file.close()


def encoded(value: LongList, protocol: str, encode: Encode, *, framed: bool) -> LargeReply:
    """Return the reply that holds all pages. Raises OverflowError if it is too long for a frame, and the errors of reading and encoding."""
    reply = LargeReply(protocol, encode, framed=framed)
    try:
        value.read(reply)
        reply.end()
        if framed and len(reply) - 4 > MAX_FRAME:
            raise OverflowError(f"a reply of {len(reply)} bytes is too long for a frame: ask for less, or use a transport without frames")
    except BaseException:
        reply.close()
        raise
    return reply
