"""Feed bytes to the protocols, and put back bytes beyond a message. This module never decodes a field."""

from __future__ import annotations

from collections.abc import Callable

from thriftpy2.thrift import TPayload

CHUNK = 64 * 1024
Choose = Callable[[str, int], type[TPayload] | None]
"""A function from the name of a method and the type of a message to the class of its struct; None to skip the struct."""


class EndOfStream(Exception):
    """The client closed the connection."""


class Malformed(Exception):
    """The bytes are not a Thrift message."""


class TooLarge(Malformed):
    """The message is longer than `max_message_size`."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"The message is larger than {limit} bytes; split the request or raise max_message_size")


class Feed:
    """The bytes of one connection or frame in order, with a place to put back those that were read ahead."""

    __slots__ = ("_receive", "at", "is_whole", "pending")

    def __init__(self, receive: Callable[[int], bytes], pending: bytes = b"", *, is_whole: bool = False) -> None:
        self._receive = receive
        self.is_whole = is_whole
        """Whether no more bytes follow the pending ones."""
        self.pending = pending
        """The bytes that are received, or were put back. The ones before `at` are already taken."""
        self.at = 0

    def some(self, size: int) -> bytes:
        """Return 1 to `size` bytes, as soon as there are any; raises EndOfStream."""
        if self.pending:
            out = self.pending[self.at : self.at + size]
            self.at += size
            if self.at >= len(self.pending):
                self.pending, self.at = b"", 0
            return out
        out = self._receive(size)
        if not out:
            raise EndOfStream
        return out

    def exactly(self, size: int) -> bytes:
        """Return `size` bytes; raises EndOfStream."""
        parts = []
        while size > 0:
            part = self.some(min(size, CHUNK))
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def unread(self, data: bytes) -> None:
        """Put `data` before all bytes that are still to be read."""
        if data:
            self.pending = data + self.pending[self.at :]
            self.at = 0


def frame_feed(frame: bytes) -> Feed:
    """Return the feed of a message that is received as a whole."""
    return Feed(lambda _: b"", frame, is_whole=True)
