"""Common parts of the server's SASL mechanisms. The negotiation on the wire is `wire.auth.negotiation`.

Source: RFC 4422.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from metastore.service.call.identity import Login


class ClientRefused(Exception):
    """A login failed. The text is for the log and for the client: it names the fault and the remedy, and never a secret."""


class TooManyTries(ClientRefused):
    """A login that was not checked, since there were too many: the text has the time to wait before the next try."""

    def __init__(self, text: str, retry_after: float) -> None:
        """`retry_after` is in seconds."""
        super().__init__(text)
        self.retry_after = retry_after


class Layer(Protocol):
    """The protection of the frames after a login (auth-int, auth-conf)."""

    max_size: int
    """Most bytes that `wrap` may be given at once, so that the other side's buffer holds the frame."""

    def wrap(self, data: bytes) -> bytes:
        """Return the payload of one frame, protected for sending; `data` is at most `max_size` long."""

    def unwrap(self, data: bytes) -> bytes:
        """Return the data of one protected frame. Raises ClientRefused if it was changed on the way."""


@dataclass(frozen=True, slots=True)
class LoginDone:
    """A login that succeeded."""

    login: Login
    last: bytes = b""
    """The mechanism's last message, which is sent with the status that the login is complete."""
    layer: Layer | None = None
    """The protection of the frames that follow; None without one (auth)."""


class Mechanism(Protocol):
    """The server's side of one login by one mechanism; made for each connection."""

    def step(self, response: bytes) -> bytes | LoginDone:
        """Take a message of the client, b"" for no initial response; return the next challenge, or the login. Raises ClientRefused."""
