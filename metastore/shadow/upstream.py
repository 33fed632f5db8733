"""The way to one of the two metastores: connections that are logged in as the user whom a client's calls act for."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from dataclasses import is_dataclass, replace
from typing import Any, NamedTuple

from thriftpy2.thrift import TMessageType

from metastore import idl
from metastore.client import place
from metastore.client_connections import ClientConnection
from metastore.client_login import Bearer, ClientLogin
from metastore.wire.messages.protocol import Dialect, Message, read_message, write_message
from metastore.wire.sockets.settings import WireSettings
from metastore.wire.sockets.transport import Choose

LIMITS = WireSettings(max_message_size=2**31 - 1, max_container_size=2**31 - 1)


class Caller(NamedTuple):
    """The user of a client who has logged in at the proxy; without a user it is one who names it itself by `set_ugi`, or does not."""

    user: str | None = None
    groups: tuple[str, ...] = ()


class Upstream(NamedTuple):
    """A metastore: its URIs, tried in turn, how it is trusted, who logs in, and how long it may take to answer."""

    uris: tuple[str, ...]
    tls: ssl.SSLContext | None
    login: ClientLogin | Bearer | None
    timeout: float

    def open(self, dialect: Dialect, caller: Caller) -> ClientConnection:
        """Connect and log in, for a user as a proxy user does. Raises OSError (LoginError is one)."""
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
    """Call `set_ugi`; a server that refuses it answers later calls accordingly. Raises as `exchange`."""
    arguments: Any = idl.service.set_ugi_args(user_name=user, group_names=list(groups))
    request = write_message(Dialect(dialect.protocol, framed=False), "set_ugi", TMessageType.CALL, 0, arguments)
    exchange(connection, dialect, request, lambda *_: None)
