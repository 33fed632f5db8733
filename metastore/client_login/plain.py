"""PLAIN, the client's side: a user and a password, which everybody on the way can read without TLS. Source: RFC 4616."""

from __future__ import annotations

from dataclasses import dataclass, field

from metastore.wire.auth.sasl import Layer


@dataclass(frozen=True)
class Plain:
    """A user and a password."""

    user: str
    password: str = field(repr=False)

    def begin(self, _host: str) -> PlainMechanism:
        """Begin a login."""
        return PlainMechanism(self)


class PlainMechanism:
    """One login by a password: its first message is its only one."""

    name = "PLAIN"
    reveals_secret = True
    layer: Layer | None = None

    def __init__(self, login: Plain) -> None:
        self._login = login
        self.complete = False

    def step(self, _challenge: bytes) -> bytes:
        """Return user and password."""
        self.complete = True
        return f"\0{self._login.user}\0{self._login.password}".encode()
