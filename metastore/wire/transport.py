"""Feed bytes to the protocols, and put back what was read beyond a message. It never decodes a field."""

from __future__ import annotations

from collections.abc import Callable

CHUNK = 64 * 1024


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

    __slots__ = ("_receive", "at", "pending")

    def __init__(self, receive: Callable[[int], bytes], pending: bytes = b"") -> None:
        self._receive = receive
        self.pending = pending
        """Bytes that are here and need no reading from the socket, those before `at` taken already."""
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
        """Put `data` before everything that is still to come."""
        if data:
            self.pending = data + self.pending[self.at :]
            self.at = 0


def frame_feed(frame: bytes) -> Feed:
    """Return the feed of a message that is here as a whole."""
    return Feed(lambda _: b"", frame)


class Exact:
    """What the Python decoders read one message from: exact reads, counted against the limit."""

    __slots__ = ("_at", "_buffer", "_feed", "_limit", "_past", "_taken")

    def __init__(self, feed: Feed, limit: int) -> None:
        self._feed = feed
        self._limit = limit
        self._buffer = b""
        self._at = 0
        self._taken = 0
        self._past: list[bytes] = []

    @property
    def room(self) -> int:
        """How many bytes the message may still have."""
        return self._limit - self._taken

    def read(self, size: int) -> bytes:
        """Return `size` bytes; raises EndOfStream, TooLarge, Malformed for a negative size."""
        if size < 0:
            raise Malformed(f"A size of {size} bytes")
        self._taken += size
        if self._taken > self._limit:
            raise TooLarge(self._limit)
        end = self._at + size
        if end > len(self._buffer):
            parts = [self._buffer[self._at :]]
            missing = size - len(parts[0])
            self._past.append(self._buffer[: self._at])
            while missing > 0:
                parts.append(self._feed.some(CHUNK))
                missing -= len(parts[-1])
            self._buffer = b"".join(parts)
            self._at, end = 0, size
        out = self._buffer[self._at : end]
        self._at = end
        return out

    def finish(self) -> bytes:
        """Give what was read beyond the message back to the feed and return the message's bytes."""
        self._feed.unread(self._buffer[self._at :])
        self._past.append(self._buffer[: self._at])
        return b"".join(self._past)
