"""SASL's messages, frames and HTTP by hand, so that tests can also send bytes that no client would send."""

from __future__ import annotations

import http.client
import socket
import ssl
from typing import Any
from urllib.parse import urlsplit

from thriftpy2.thrift import TApplicationException, TMessageType

from metastore import idl
from metastore.wire.auth.negotiation import COMPLETE, OK, START, login_message, read_login_message
from metastore.wire.messages.protocol import Dialect, read_message, write_message
from metastore.wire.sockets.settings import WireSettings
from metastore.wire.sockets.transport import Feed, frame_feed

BINARY = Dialect("binary", framed=False)


def request(method: str, **arguments: Any) -> bytes:
    """Return a call as bytes."""
    args = getattr(idl.service, f"{method}_args")(**arguments)
    return write_message(BINARY, method, TMessageType.CALL, 1, args)


def value(method: str, reply: bytes) -> Any:
    """Return the content of a reply: its value, or the error as an object."""
    result = getattr(idl.service, f"{method}_result")
    body = read_message(
        frame_feed(reply), BINARY, WireSettings(), lambda _, kind: TApplicationException if kind == TMessageType.EXCEPTION else result
    ).body
    if isinstance(body, TApplicationException):
        return body
    return next((each for each in vars(body).values() if each is not None), None)


class Speaker:
    """A connection on which SASL is spoken."""

    def __init__(self, uri: str, tls: ssl.SSLContext | None = None) -> None:
        where = urlsplit(uri)
        assert where.hostname is not None
        self.sock: socket.socket = socket.create_connection((where.hostname, where.port or 0), 20)
        if tls is not None:
            self.sock = tls.wrap_socket(self.sock, server_hostname="localhost")
        self.feed = Feed(self.sock.recv)

    def __enter__(self) -> Speaker:  # noqa: PYI034
        return self

    def __exit__(self, *_: object) -> None:
        self.sock.close()

    def log_in(self, mechanism: str, *responses: bytes) -> tuple[int, bytes]:
        """Send a mechanism's name and messages in turn; return status and payload of the last answer."""
        self.sock.sendall(login_message(START, mechanism.encode()))
        answer = (0, b"")
        for response in responses:
            self.sock.sendall(login_message(OK, response))
            answer = read_login_message(self.feed)
        return answer

    def plain(self, user: str, password: str, acting_for: str = "") -> tuple[int, bytes]:
        return self.log_in("PLAIN", f"{acting_for}\0{user}\0{password}".encode())

    def call(self, method: str, **arguments: Any) -> Any:
        """Call a method in a frame after a login."""
        message = request(method, **arguments)
        self.sock.sendall(len(message).to_bytes(4, "big") + message)
        return value(method, self.feed.exactly(int.from_bytes(self.feed.exactly(4), "big")))

    def ended(self) -> bool:
        """Return whether the server has closed the connection."""
        try:
            return self.sock.recv(1) == b""
        except ConnectionError:
            return True


def logged_in(uri: str, user: str, password: str, tls: ssl.SSLContext | None = None) -> Speaker:
    """Return a connection that is logged in by PLAIN."""
    speaker = Speaker(uri, tls)
    status, text = speaker.plain(user, password)
    assert status == COMPLETE, text
    return speaker


def post(
    uri: str, body: bytes, headers: dict[str, str] | None = None, path: str = "/metastore", tls: ssl.SSLContext | None = None
) -> tuple[int, bytes]:
    """Send one request over HTTP; return status and body of the answer."""
    where = urlsplit(uri)
    assert where.hostname is not None
    if tls is None:
        connection = http.client.HTTPConnection(where.hostname, where.port, timeout=20)
    else:
        connection = http.client.HTTPSConnection(where.hostname, where.port, timeout=20, context=tls)
    try:
        connection.request("POST", path, body, {"Content-Type": "application/x-thrift", **(headers or {})})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()
