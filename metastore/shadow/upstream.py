"""Connections to one of the two metastores, logged in to act for the user of a client."""

from __future__ import annotations

import ssl
import time
from collections.abc import Sequence
from dataclasses import is_dataclass, replace
from typing import Any, NamedTuple

from thriftpy2.thrift import TMessageType

from metastore import idl
from metastore.client import place
from metastore.client_connections import ClientConnection
from metastore.client_login import Bearer, ClientLogin
from metastore.wire.messages.protocol import Dialect, Message, Unreadable, read_message, write_message
from metastore.wire.sockets.settings import WireSettings
from metastore.wire.sockets.transport import Choose, EndOfStream, Malformed

PAUSE = 1.0
"""Seconds after a failure to connect in which a line does not try again."""
LIMITS = WireSettings(max_message_size=2**31 - 1, max_container_size=2**31 - 1)
NAMES_USER = "set_ugi"
"""The method by which a client without a login names its user."""
FAILURES = (OSError, EndOfStream, Unreadable, Malformed)
"""The errors of a metastore that does not answer, or not with a message that can be read."""


class Caller(NamedTuple):
    """The user and the groups of a client who has logged in at the proxy; without a login a client may name a user by `set_ugi`."""

    user: str | None = None
    groups: tuple[str, ...] = ()


class Upstream(NamedTuple):
    """A metastore: its URIs, tried in turn, the context of TLS, the login, and the seconds that an answer may take."""

    uris: tuple[str, ...]
    tls: ssl.SSLContext | None
    login: ClientLogin | Bearer | None
    timeout: float

    def open(self, dialect: Dialect, caller: Caller) -> ClientConnection:
        """Connect and log in, for a caller's user as a proxy user. Raises OSError (LoginError is one), EndOfStream, Unreadable."""
        login, problem = self.login, ConnectionError(f"{', '.join(self.uris)} is not an address")
        acts = caller.user is not None and is_dataclass(login) and hasattr(login, "act_for")
        if acts:
            login = replace(login, act_for=caller.user)  # type: ignore[type-var]  # a login by Kerberos has the field
        for uri in self.uris:
            try:
                connection = place(uri, self.timeout, self.tls, login)()
            except ConnectionError as error:
                problem = error
                continue
            if caller.user is not None and not acts:
                name_user(connection, dialect, caller.user, caller.groups)
            return connection
        raise problem


def framed(raw: bytes, dialect: Dialect) -> bytes:
    """Return a message as it is sent."""
    return len(raw).to_bytes(4, "big") + raw if dialect.framed else raw


def exchange(connection: ClientConnection, dialect: Dialect, request: bytes, choose: Choose) -> Message:
    """Send a message and read the reply. Raises OSError, EndOfStream, Unreadable."""
    connection.send(framed(request, dialect))
    return read_message(connection.feed, dialect, LIMITS, choose)


def name_user(connection: ClientConnection, dialect: Dialect, user: str, groups: Sequence[str]) -> None:
    """Call `set_ugi`. A refusal is ignored: the server's answers to later calls show it. Raises OSError, EndOfStream, Unreadable."""
    arguments: Any = idl.service.set_ugi_args(user_name=user, group_names=list(groups))
    request = write_message(Dialect(dialect.protocol, framed=False), NAMES_USER, TMessageType.CALL, 0, arguments)
    exchange(connection, dialect, request, lambda *_: None)


class Line:
    """The connection of one client to a metastore. A lost one is opened again, for the user whom the client named last."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self._connection: ClientConnection | None = None
        self._user: bytes | None = None
        """The last request of `set_ugi`."""
        self._try_at = 0.0

    def ask(self, dialect: Dialect, caller: Caller, method: str, request: bytes, choose: Choose) -> Message:
        """Send a message and read the reply. Raises one of FAILURES, after which the line is closed."""
        try:
            if self._connection is not None and self._connection.has_ended():
                self.close()
            connection = self._connection or self._open(dialect, caller)
            if method == NAMES_USER:
                self._user = request
            return exchange(connection, dialect, request, choose)
        except FAILURES:
            self.close()
            raise

    def _open(self, dialect: Dialect, caller: Caller) -> ClientConnection:
        if time.monotonic() < self._try_at:
            raise ConnectionError("the metastore could not be reached a moment ago")
        try:
            self._connection = self._upstream.open(dialect, caller)
        except FAILURES:
            self._try_at = time.monotonic() + PAUSE
            raise
        if self._user is not None:
            exchange(self._connection, dialect, self._user, lambda *_: None)
        return self._connection

    def close(self) -> None:
        """Close the connection, if there is one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
