"""Negotiate a login by SASL, the client's side. It never knows what a mechanism says.

Source: Thrift's TSaslTransport: messages of a status byte, a length of four bytes and a payload.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from metastore.wire.auth.sasl import Layer
from metastore.wire.transport import Feed

START, OK, BAD, ERROR, COMPLETE = 1, 2, 3, 4, 5
_LONGEST = 1 << 20
"""Bytes of a message of a server."""


class LoginError(ConnectionError):
    """A login was refused, or can not begin. The message says why and what to do."""


class ClientMechanism(Protocol):
    """The client's side of one login."""

    name: str
    """As SASL registers it: "GSSAPI"."""
    complete: bool
    """Whether the client has proved who it is, and that the server is who it should be, if the mechanism does."""
    layer: Layer | None
    """What protects the frames after the login; None until it is complete, and where nothing does."""

    def step(self, challenge: bytes) -> bytes:
        """Return the answer to a challenge; the first is b"" and comes from nobody. Raises LoginError."""


class ClientLogin(Protocol):
    """Who logs in and how, for any number of connections."""

    def begin(self, host: str) -> ClientMechanism:
        """Begin a login at a host. Raises LoginError."""


def authenticate(send: Callable[[bytes], object], feed: Feed, mechanism: ClientMechanism) -> Layer | None:
    """Log in on a connection that nothing was sent on; return what protects its frames. Raises LoginError, EndOfStream."""
    first = mechanism.step(b"")
    send(_message(START, mechanism.name.encode()) + _message(COMPLETE if mechanism.complete else OK, first))
    while True:
        status, size = feed.exactly(1)[0], int.from_bytes(feed.exactly(4), "big")
        if size > _LONGEST:
            raise LoginError(f"The server's answer to the login has {size} bytes: it speaks no SASL")
        payload = feed.exactly(size)
        if status in (BAD, ERROR):
            raise LoginError(f"The server refuses the login by {mechanism.name}: {payload.decode(errors='replace')}")
        if status == COMPLETE:
            if not mechanism.complete:
                mechanism.step(payload)
            if not mechanism.complete:
                raise LoginError(f"The server ended the login by {mechanism.name} before it proved who it is")
            return mechanism.layer
        if status != OK:
            raise LoginError(f"The server answers the login with the status {status}: it speaks no SASL")
        answer = mechanism.step(payload)
        send(_message(COMPLETE if mechanism.complete else OK, answer))


def _message(status: int, payload: bytes) -> bytes:
    return bytes([status]) + len(payload).to_bytes(4, "big") + payload
