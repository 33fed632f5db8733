"""Recognise the protocol of a connection, read its messages into structs, write replies into bytes.

This module never calls a method.
"""

from __future__ import annotations

import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from thriftpy2.thrift import TPayload

from metastore.wire.codec import DECODERS, ENCODERS
from metastore.wire.codec.limits import MAX_EARLY_BYTES, MAX_EARLY_MEMORY, MEMORY_PER_BYTE, TooMuchMemory
from metastore.wire.codec.pure import Decoder
from metastore.wire.sockets.settings import WireSettings
from metastore.wire.sockets.transport import Choose, EndOfStream, Feed, Malformed, frame_feed


@dataclass(frozen=True, slots=True)
class Dialect:
    """The encoding of a connection's messages."""

    protocol: str
    """"binary" or "compact"."""
    framed: bool


@dataclass(slots=True)
class Message:
    """One message as it was read; `body` is None if `choose` gave no struct for it."""

    name: str
    type: int
    seqid: int
    body: Any
    raw: bytes
    invalid_text: str | None = None
    """The first field whose bytes are not UTF-8."""


class Unreadable(Exception):
    """A message could not be read; `name` and `seqid` are set if they were read before the error."""

    def __init__(self, reason: str, name: str = "", seqid: int = 0) -> None:
        super().__init__(reason)
        self.name = name
        self.seqid = seqid
        self.resumable = False
        """Whether the beginning of the next message is known nevertheless."""


def recognise(feed: Feed) -> Dialect:
    """Return the protocol of the client, from the first bytes of its first message; they stay in the feed.

    0x80 begins a binary message and 0x82 a compact one; anything else is the length of a frame, or of the name in a
    binary message without version header, which begins with a letter. Raises Malformed, EndOfStream.
    """
    start = feed.exactly(1)
    if start not in b"\x80\x82":
        start += feed.exactly(4)
    feed.unread(start)
    if start[0] in (0x80, 0x82):
        return Dialect("compact" if start[0] == 0x82 else "binary", framed=False)
    if start[4] == 0x82:
        return Dialect("compact", framed=True)
    if start[0] < 0x10 and start[4] in (0x80, 0x00):
        return Dialect("binary", framed=True)
    if start[:2] == b"\0\0" and chr(start[4]).isalpha():
        return Dialect("binary", framed=False)
    raise Malformed(f"The connection begins with {start!r}: {_guess(start)}")


def _guess(start: bytes) -> str:
    if start[:2] == b"\x16\x03":
        return "a TLS handshake, but this port has no TLS; set tls_certificate or connect without"
    if start[:1].isalpha():
        return "HTTP or text; this port speaks Thrift"
    if start[:1] == b"\x01":
        return "a SASL handshake, which this server does not offer; use hive.metastore.sasl.enabled=false"
    if start[:4] in (b"\x03\0\0\0", b"\x04\0\0\0"):
        return "a SASL login that the client gave up before it began; its own log has the reason, such as a missing Kerberos ticket"
    return "no Thrift message"


def read_message(feed: Feed, dialect: Dialect, settings: WireSettings, choose: Choose) -> Message:
    """Read the next message. Raises EndOfStream, OSError, Unreadable."""
    if not dialect.framed:
        return _read(feed, dialect.protocol, settings, choose)
    size = int.from_bytes(feed.exactly(4), "big", signed=True)
    if not 0 <= size <= settings.max_message_size:
        raise Unreadable(f"A frame of {size} bytes is not accepted; split the request or raise max_message_size, which is "
                         f"{settings.max_message_size}")  # fmt: skip
    frame = frame_feed(feed.exactly(size))
    try:
        return _read(frame, dialect.protocol, settings, choose)
    except Unreadable as error:
        error.resumable = True
        raise
    except EndOfStream as error:
        short = Unreadable("The frame ends within the message")
        short.resumable = True
        raise short from error


def decode(data: bytes, protocol: str, settings: WireSettings, cls: type[TPayload]) -> Any:
    """Read the bytes of a whole message once more, into another struct."""
    return _read(frame_feed(data), protocol, settings, lambda *_: cls).body


def _read(feed: Feed, protocol: str, settings: WireSettings, choose: Choose) -> Message:
    """Read a message while it is received. A message that is long or takes much memory is first checked to end within the limit."""
    begin = feed.pending, feed.at
    kept = sys.maxsize if feed.is_whole else MAX_EARLY_BYTES
    decoder = DECODERS[protocol](feed, settings.max_message_size, settings.max_container_size, MAX_EARLY_MEMORY, kept)
    with suppress(TooMuchMemory):  # its traceback keeps the values that were made, and is dropped here
        return _decoded(decoder, choose)
    if feed.is_whole:
        feed.pending, feed.at = begin
        _pass_over(feed, protocol, settings)
        feed.pending, feed.at = begin
        whole = feed
    else:
        feed.unread(bytes(decoder.finish()))
        whole = frame_feed(_kept_in_file(feed, protocol, settings))
    max_memory = MEMORY_PER_BYTE * settings.max_message_size
    decoder = DECODERS[protocol](whole, settings.max_message_size, settings.max_container_size, max_memory)
    try:
        return _decoded(decoder, choose)
    except TooMuchMemory as error:
        raise Unreadable(str(error), decoder.name, decoder.seqid) from error


def _pass_over(feed: Feed, protocol: str, settings: WireSettings) -> None:
    """Check that a message ends within the limit, without making values or keeping bytes. Raises as `_decoded`."""
    decoder = DECODERS[protocol](feed, settings.max_message_size, settings.max_container_size, keeps=False)
    _decoded(decoder, lambda *_: None)


def _kept_in_file(feed: Feed, protocol: str, settings: WireSettings) -> bytes:
    """Return the bytes of a message, which are kept in a file until it is complete."""
    with tempfile.TemporaryFile() as file:

        def copied(size: int) -> bytes:
            data = feed.some(size)
            file.write(data)
            return data

        copy = Feed(copied)
        _pass_over(copy, protocol, settings)
        feed.unread(copy.pending[copy.at :])
        size = file.tell() - (len(copy.pending) - copy.at)
        file.seek(0)
        return file.read(size)


def _decoded(decoder: Decoder, choose: Choose) -> Message:
    try:
        body = decoder.read(choose)
    except (EndOfStream, OSError, TooMuchMemory):
        raise
    except Exception as error:
        reason = str(error) if isinstance(error, Malformed | RecursionError) else f"{type(error).__name__}: {error}"
        raise Unreadable(reason, decoder.name, decoder.seqid) from error
    return Message(decoder.name, decoder.type, decoder.seqid, body, decoder.finish(), decoder.invalid_text)


def write_message(dialect: Dialect, name: str, kind: int, seqid: int, body: TPayload) -> bytes:
    """Return the message as bytes. Raises TDecodeException or another error for a value of the wrong type."""
    return ENCODERS[dialect.protocol](name, kind, seqid, body, dialect.framed)
