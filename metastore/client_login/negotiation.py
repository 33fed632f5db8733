"""Negotiate a login by SASL, the client's side. It never looks into the messages of a mechanism.

Source: Thrift's TSaslTransport.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from metastore.wire.auth.negotiation import BAD, COMPLETE, ERROR, OK, START, login_message, read_login_message
from metastore.wire.auth.sasl import Layer
from metastore.wire.sockets.transport import Feed, Malformed


class LoginError(ConnectionError):
    """A login was refused, or can not begin. The message has the reason and the remedy."""


class ClientMechanism(Protocol):
    """The client's side of one login."""

    name: str
    """The mechanism's name in the registry of SASL, such as "GSSAPI"."""
    reveals_secret: bool
    """Whether a reader of the messages could log in with them: such a login needs TLS."""
    complete: bool
    """Whether the client has proved its identity, and checked the server's, if the mechanism does."""
    layer: Layer | None
    """The protection of the frames after the login; None until it is complete, and where nothing protects them."""

    def step(self, challenge: bytes) -> bytes:
        """Return the answer to a challenge. The first challenge is b"", not a message of the server. Raises LoginError."""


class ClientLogin(Protocol):
    """The user who logs in and the mechanism, for any number of connections."""

    def begin(self, host: str) -> ClientMechanism:
        """Begin a login at a host. Raises LoginError."""


def authenticate(send: Callable[[bytes], object], feed: Feed, mechanism: ClientMechanism) -> Layer | None:
    """Log in on a connection on which nothing was sent yet; return the layer of its frames. Raises LoginError, EndOfStream."""
    answer, begin = mechanism.step(b""), login_message(START, mechanism.name.encode())
    while True:
        send(begin + login_message(COMPLETE if mechanism.complete else OK, answer))
        begin = b""
        try:
            status, payload = read_login_message(feed)
        except Malformed as error:
            raise LoginError(f"The server does not speak SASL: {error}") from error
        if status in (BAD, ERROR):
            raise LoginError(f"The server refuses the login by {mechanism.name}: {payload.decode(errors='replace')}")
        if status == COMPLETE:
            break
        if status != OK or mechanism.complete:
            raise LoginError(f"The server continues with the status {status}, which this step of the login does not allow")
        answer = mechanism.step(payload)
    if not mechanism.complete:
        mechanism.step(payload)
    if not mechanism.complete:
        raise LoginError(f"The server ended the login by {mechanism.name} before it proved its identity")
    return mechanism.layer
