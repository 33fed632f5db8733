"""The connections of `metastore.client`, which send messages and receive the bytes of answers. They are independent of methods."""

from __future__ import annotations

import base64
import contextlib
import http.client
import socket
import ssl
from collections.abc import Callable
from typing import Protocol

from metastore.client_login import Bearer, ClientLogin, LoginError, Plain, authenticate
from metastore.wire.auth.negotiation import Frames
from metastore.wire.sockets.addresses import is_loopback
from metastore.wire.sockets.transport import EndOfStream, Feed, frame_feed

MAX_FRAME = 2**31 - 1
"""The most bytes of a frame of an answer."""
CONTENT_TYPE = "application/x-thrift"
HttpLogin = Bearer | Plain


class ClientConnection(Protocol):
    """One open connection."""

    feed: Feed
    """The bytes of the answers; over HTTP the bytes of the last answer."""

    def send(self, message: bytes) -> None:
        """Send a message. Raises OSError, over HTTP also for a refused request."""

    def has_ended(self) -> bool:
        """Return whether the server has closed the connection since the last answer."""

    def close(self) -> None:
        """Close the connection."""


def _has_ended(sock: socket.socket) -> bool:
    """Return whether the other side has closed a socket on which no bytes are expected. Unexpected bytes count as its end too."""
    timeout = sock.gettimeout()
    sock.settimeout(0)
    try:
        sock.recv(1)
    except (BlockingIOError, ssl.SSLWantReadError):
        return False
    except OSError:
        return True
    finally:
        sock.settimeout(timeout)
    return True


class SocketConnection:
    """Thrift on a socket, after a login by SASL where there is one."""

    def __init__(self, host: str, port: int, timeout: float | None, tls: ssl.SSLContext | None, login: ClientLogin | None) -> None:
        """Connect and log in. Raises OSError, LoginError."""
        sock = socket.create_connection((host, port), timeout)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._sock = sock if tls is None else tls.wrap_socket(sock, server_hostname=host)
        self._wrap: Callable[[bytes], bytes] | None = None
        self.feed = Feed(self._sock.recv)
        if login is not None:
            try:
                self._log_in(login, host, encrypted=tls is not None)
            except BaseException:
                self.close()
                raise

    def _log_in(self, login: ClientLogin, host: str, *, encrypted: bool) -> None:
        mechanism = login.begin(host)
        if mechanism.reveals_secret and not encrypted and not is_loopback(host):
            raise LoginError(f"{mechanism.name} would send the password to {host} unencrypted: connect with TLS")
        try:
            layer = authenticate(self._sock.sendall, self.feed, mechanism)
        except EndOfStream:
            raise LoginError(
                f"{host} closed the connection at the login: it accepts no login, or refused this one for a reason that is in its log"
            ) from None
        frames = Frames(self.feed, layer, MAX_FRAME)
        self._wrap, self.feed = frames.wrap, Feed(frames.receive)

    def send(self, message: bytes) -> None:
        """Send a message."""
        self._sock.sendall(message if self._wrap is None else self._wrap(message))

    def has_ended(self) -> bool:
        """Return whether the server has closed the connection since the last answer."""
        return not self.feed.pending and _has_ended(self._sock)

    def close(self) -> None:
        """Close the socket."""
        with contextlib.suppress(OSError):
            self._sock.close()


class HttpConnection:
    """Thrift over HTTP: each message is a request, with the login in it."""

    def __init__(
        self, host: str, port: int, path: str, timeout: float | None, tls: ssl.SSLContext | None, login: HttpLogin | None
    ) -> None:  # fmt: skip
        """Connect. Raises OSError, and LoginError for a secret that others could read on its way."""
        if login is not None and tls is None and not is_loopback(host):
            raise LoginError(f"The login would be sent to {host} unencrypted: write https://")
        self._path = path
        self._headers = {"Content-Type": CONTENT_TYPE, **_authorization(login)}
        if tls is None:
            self._http = http.client.HTTPConnection(host, port, timeout=timeout)
        else:
            self._http = http.client.HTTPSConnection(host, port, timeout=timeout, context=tls)
        self._http.connect()
        self.feed = frame_feed(b"")

    def send(self, message: bytes) -> None:
        """Send a message and read the answer. Raises LoginError for 401, ConnectionError for another status than 200."""
        try:
            self._http.request("POST", self._path, message, self._headers)
            answer = self._http.getresponse()
            body = answer.read()
        except http.client.HTTPException as error:
            raise ConnectionError(f"The server's answer is not HTTP: {type(error).__name__} {error}") from error
        if answer.status != http.HTTPStatus.OK:
            kind = LoginError if answer.status == http.HTTPStatus.UNAUTHORIZED else ConnectionError
            raise kind(f"The server refuses the request with {answer.status}: {body[:1000].decode(errors='replace')}")
        self.feed = frame_feed(body)

    def has_ended(self) -> bool:
        """Return whether the server has closed the connection since the last answer. An announced end does not count: the library has
        closed the connection then, and opens another one for the next request.
        """
        return self._http.sock is not None and _has_ended(self._http.sock)

    def close(self) -> None:
        """Close the connection."""
        self._http.close()


def _authorization(login: HttpLogin | None) -> dict[str, str]:
    if login is None:
        return {}
    if isinstance(login, Bearer):
        return {"Authorization": f"Bearer {login.token}"}
    return {"Authorization": "Basic " + base64.b64encode(f"{login.user}:{login.password}".encode()).decode()}
