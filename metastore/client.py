"""A small Thrift client for any Hive Metastore.

    with connect("thrift://host:9083") as client:
        table = client.get_table("db", "t")

A client never repeats a call: a call whose connection breaks raises, the next one connects again.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from thriftpy2.thrift import TApplicationException, TMessageType, TPayload

from metastore import idl
from metastore.client_connections import ClientConnection, HttpConnection, SocketConnection
from metastore.client_login import Bearer, ClientLogin, LoginError, Plain, from_environment
from metastore.wire.messages.protocol import Dialect, read_message, write_message
from metastore.wire.sockets.settings import WireSettings
from metastore.wire.sockets.transport import EndOfStream

DEFAULT_PORT = 9083
_LIMITS = WireSettings(max_message_size=2**31 - 1, max_container_size=2**31 - 1)


def is_unknown_method(error: Exception) -> bool:
    """Return whether a call failed because the server has no such method, like servers of older releases."""
    return isinstance(error, TApplicationException) and error.type == TApplicationException.UNKNOWN_METHOD


class Client:
    """A client of a metastore: every Thrift method is a method of it, with positional or keyword arguments. Not for several threads.

    A method returns its value and raises the Thrift exceptions that it declares, TApplicationException for an
    unknown method or an internal error, OSError when no server answers.
    """

    def __init__(self, places: list[Callable[[], ClientConnection]], dialect: Dialect) -> None:
        """Each of `places` opens a connection to one server; they are tried in turn."""
        self._places = places
        self._dialect = dialect
        self._connection: ClientConnection | None = None
        self._seqid = 0

    def __enter__(self) -> Client:  # noqa: PYI034  # Self needs Python 3.11
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __getattr__(self, method: str) -> Callable[..., Any]:
        if method not in idl.service.thrift_services:
            raise AttributeError(f"The metastore interface has no method {method}")

        def call(*args: Any, **kwargs: Any) -> Any:
            return self.call(method, *args, **kwargs)

        return call

    def call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Call a method by its name. Raises TypeError for arguments that it does not have."""
        arguments = getattr(idl.service, f"{method}_args")()
        names = [field[1] for field in arguments.thrift_spec.values()]
        if len(args) > len(names) or not set(kwargs) <= set(names[len(args) :]):
            takes = ", ".join(names) or "no arguments"
            raise TypeError(f"{method} takes {takes}; got {len(args)} by position and {sorted(kwargs)} by name")
        for name, value in (*zip(names, args, strict=False), *kwargs.items()):
            setattr(arguments, name, value)
        result_class: type[TPayload] = getattr(idl.service, f"{method}_result")
        oneway = bool(getattr(result_class, "oneway", False))
        self._seqid = (self._seqid + 1) & 0x7FFFFFFF
        request = write_message(self._dialect, method, TMessageType.ONEWAY if oneway else TMessageType.CALL, self._seqid, arguments)
        connection = self._connected()
        try:
            connection.send(request)
            if oneway:
                return None
            message = read_message(
                connection.feed,
                self._dialect,
                _LIMITS,
                lambda _, kind: TApplicationException if kind == TMessageType.EXCEPTION else result_class,
            )
            if isinstance(message.body, TApplicationException):
                if message.body.type == TApplicationException.PROTOCOL_ERROR:
                    self.close()
            elif message.seqid != self._seqid:
                raise ConnectionError(f"{method}: a reply to call {message.seqid} came for call {self._seqid}")
        except EndOfStream:
            self.close()
            raise ConnectionResetError(f"The server closed the connection during {method}") from None
        except BaseException:
            self.close()
            raise
        return _unpack(message.body)

    def _connected(self) -> ClientConnection:
        failures = []
        if self._connection is not None and self._connection.has_ended():
            self.close()  # after a long silence, or when the server asks for another login
        for place in () if self._connection is not None else self._places:
            try:
                self._connection = place()
            except LoginError:
                raise
            except OSError as error:
                failures.append(str(error))
            else:
                break
        if self._connection is None:
            raise ConnectionError(f"No metastore answers; {'; '.join(failures)}")
        return self._connection

    def close(self) -> None:
        """Close the connection; a later call opens it again."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None


def _unpack(result: Any) -> Any:
    """Return the value of a result struct, or raise the exception that it holds."""
    if isinstance(result, TApplicationException):
        raise result
    for field in result.thrift_spec.values():
        if field[1] != "success" and (error := getattr(result, field[1])) is not None:
            raise error
    if 0 not in result.thrift_spec:
        return None
    if result.success is None:
        raise TApplicationException(TApplicationException.MISSING_RESULT, "The reply holds no value and no error")
    return result.success


def connect(
    uri: str,
    *,
    timeout: float | None = 60.0,
    framed: bool = False,
    protocol: str = "binary",
    tls: ssl.SSLContext | None = None,
    login: ClientLogin | Bearer | None = None,
) -> Client:
    """Return a client of the metastore at `uri`: `thrift://host:port` or `https://host:port/metastore`.

    Several URIs, separated by commas, are tried in order.

    `timeout` is in seconds and holds for connecting and for each read. `protocol` is "binary" or "compact". The client
    connects at the first call, and logs in by `login`, else by the variables of the environment (`metastore.client_login`): that call
    raises LoginError if the login is refused. Raises ValueError for another scheme or protocol, LoginError for an environment that does
    not fit.
    """
    if protocol not in ("binary", "compact"):
        raise ValueError(f"Protocol {protocol!r} is unknown; use binary or compact")
    chosen = login if login is not None else from_environment()
    return Client([place(part.strip(), timeout, tls, chosen) for part in uri.split(",")], Dialect(protocol, framed))


def place(
    uri: str, timeout: float | None, tls: ssl.SSLContext | None, login: ClientLogin | Bearer | None
) -> Callable[[], ClientConnection]:
    """Return the function that opens a connection to the server of one URI. Raises ValueError, LoginError for a login that does not fit the
    scheme.
    """
    split = urlsplit(uri if "://" in uri else f"thrift://{uri}")
    if split.scheme not in ("thrift", "http", "https") or not split.hostname:
        raise ValueError(f"{uri!r} is not a metastore URI; write thrift://host:port, or https://host:port/metastore")
    host, port = split.hostname, split.port or DEFAULT_PORT

    def open_socket(login: ClientLogin | None) -> ClientConnection:
        try:
            return SocketConnection(host, port, timeout, tls, login)
        except LoginError:
            raise
        except OSError as error:
            raise ConnectionError(f"{host}:{port}: {error}") from error

    if split.scheme == "thrift":
        if isinstance(login, Bearer):
            raise LoginError(f"A JSON web token needs HTTP: write https://{host}:{port}/metastore in place of {uri}")
        return lambda: open_socket(login)
    if login is not None and not isinstance(login, Bearer | Plain):
        raise LoginError(f"{type(login).__name__} is not a login over HTTP: write thrift://{host}:{port} in place of {uri}")
    context = (tls or ssl.create_default_context()) if split.scheme == "https" else None
    return lambda: HttpConnection(host, port, split.path or "/metastore", timeout, context, login)
