"""Thrift's framing of SASL: the messages of a login, and the frames that follow. It is independent of the mechanism.

A message of a login is a status (1 byte), a length (4 bytes, big endian) and a payload. Afterwards each frame is a length and a payload.
Source: Thrift's TSaslTransport.
"""

from __future__ import annotations

from collections.abc import Callable

from metastore.wire.auth.sasl import ClientRefused, Layer, LoginDone, Mechanism
from metastore.wire.sockets.transport import EndOfStream, Feed, Malformed

START, OK, BAD, ERROR, COMPLETE = 1, 2, 3, 4, 5
MAX_LOGIN_MESSAGE = 1 << 17
"""Bytes of one message of a login; a Kerberos ticket with many groups has 64 KiB."""
MAX_LOGIN_STEPS = 20

Send = Callable[[bytes], None]


def read_login_message(feed: Feed) -> tuple[int, bytes]:
    """Return status and payload of the next message of a login. Raises EndOfStream, Malformed."""
    head = feed.exactly(5)
    status, size = head[0], int.from_bytes(head[1:], "big")
    if not START <= status <= COMPLETE:
        raise Malformed(f"A message of a SASL login has status {status}; 1 to 5 are known")
    if size > MAX_LOGIN_MESSAGE:
        raise Malformed(f"A message of a SASL login has {size} bytes, more than {MAX_LOGIN_MESSAGE}")
    return status, feed.exactly(size)


def login_message(status: int, payload: bytes = b"") -> bytes:
    """Return a message of a login as bytes."""
    return bytes((status,)) + len(payload).to_bytes(4, "big") + payload


def negotiate(feed: Feed, send: Send, choose: Callable[[str], Mechanism]) -> LoginDone:
    """Let a client log in and return the login with its layer. `choose` makes the mechanism of a name, or raises ClientRefused.

    A failed login is reported to the client. Raises ClientRefused, EndOfStream, Malformed.
    """
    try:
        status, name = read_login_message(feed)
        if status != START:
            raise ClientRefused(f"A SASL login begins with status {status} in place of 1 (START)")
        mechanism = choose(name.decode("ascii", "replace"))
        for _ in range(MAX_LOGIN_STEPS):
            status, response = read_login_message(feed)
            if status not in (OK, COMPLETE):
                raise ClientRefused(f"The client broke off the login: {response[:300].decode('utf-8', 'replace')}")
            step = mechanism.step(response)
            if isinstance(step, LoginDone):
                send(login_message(COMPLETE, step.last))
                return step
            send(login_message(OK, step))
        raise ClientRefused(f"The login has more than {MAX_LOGIN_STEPS} steps")
    except ClientRefused as error:
        send(login_message(BAD, str(error).encode()))
        raise


class Frames:
    """The frames after a login, on top of the connection's bytes."""

    def __init__(self, feed: Feed, layer: Layer | None, max_size: int) -> None:
        """`max_size` is the greatest size of a frame to be read, in bytes."""
        self._feed = feed
        self._layer = layer
        self._max_size = max_size
        self._payload = b""
        self._at = 0
        self._left = 0
        """Bytes of a frame without protection that are not yet received: such a frame is not kept as a whole."""

    def receive(self, size: int) -> bytes:
        """Return 1 to `size` bytes that the other side sent, b"" at the end. Raises Malformed, ClientRefused, EndOfStream in a frame."""
        while self._at >= len(self._payload) and not self._left:
            try:
                first = self._feed.some(1)
            except EndOfStream:
                return b""
            length = int.from_bytes(first + self._feed.exactly(3), "big")
            if length > self._max_size:
                raise Malformed(f"A SASL frame of {length} bytes is not accepted; split the request or raise max_message_size")
            if self._layer is None:
                self._left = length
            else:
                self._payload, self._at = self._layer.unwrap(self._feed.exactly(length)), 0
        if self._left:
            part = self._feed.some(min(size, self._left))
            self._left -= len(part)
            return part
        out = self._payload[self._at : self._at + size]
        self._at += size
        return out

    def wrap(self, data: bytes) -> bytes:
        """Return the frames that carry some bytes."""
        layer = self._layer
        if layer is None:
            return len(data).to_bytes(4, "big") + data
        size = layer.max_size
        parts = [layer.wrap(data[at : at + size]) for at in range(0, len(data), size)]
        return b"".join(len(part).to_bytes(4, "big") + part for part in parts)
