"""The SASL mechanism PLAIN: a name and a password in one message. Source: RFC 4616."""

from __future__ import annotations

from collections.abc import Callable

from metastore.service.call.identity import Login
from metastore.wire.auth.sasl import ClientRefused, LoginDone

MAX_LENGTH = 4096
"""Bytes of a name or password; a key or a token is sent as a password."""


class PlainLogin:
    """The server's side of one login."""

    def __init__(self, check: Callable[[str, str], Login], act_for: Callable[[Login, str], Login]) -> None:
        """`check` returns the login of a name and password, `act_for` the login to act for another user; both raise ClientRefused."""
        self._check = check
        self._act_for = act_for

    def step(self, response: bytes) -> bytes | LoginDone:
        """Check the client's one message; answer a missing one with an empty challenge. Raises ClientRefused."""
        if not response:
            return b""
        parts = response.split(b"\0")
        if len(parts) != 3 or max(map(len, parts)) > MAX_LENGTH:
            raise ClientRefused(
                f"A message of PLAIN must be a name to act for, a name and a password, separated by NUL, of at most {MAX_LENGTH} bytes each"
            )
        try:
            acting_for, user, password = (part.decode() for part in parts)
        except UnicodeDecodeError:
            raise ClientRefused("Name and password of PLAIN must be UTF-8") from None
        return LoginDone(self._act_for(self._check(user, password), acting_for))
