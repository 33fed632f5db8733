"""A client without a login is cut off soon, also while it sends bytes; a client that has logged in may be silent for long."""

from __future__ import annotations

import base64
import http.client
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import cast

import pytest

from metastore.config import Config
from metastore.service.accounts import users
from metastore.service.call.context import Metastore
from metastore.service.call.identity import Login
from metastore.wire.connection import connection
from metastore.wire.connection.server import ServerThread
from metastore.wire.sockets.settings import WireSettings
from tests.support.servers.stub_server import HANDLERS, Stub
from tests.wire.auth.speaking import Speaker, request

WAIT = 0.5
"""Seconds in which a client has to log in here."""
HALF_HEAD = b"POST /metastore HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-thrift\r\n"
REFUSED = HALF_HEAD + b"Content-Length: 100\r\n\r\n"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ServerThread]:
    monkeypatch.setattr(connection, "_HANDSHAKE", WAIT)
    monkeypatch.setattr(users, "check", lambda _, user, password, _costly: Login(user, "users") if password == "right" else None)
    stub = Stub()
    stub.config = Config(authentication=("users",))
    with ServerThread(WireSettings(port=0, park_after=0.05), cast(Metastore, stub), HANDLERS) as started:
        yield started


@pytest.mark.parametrize(
    ("begin", "drip"),
    [
        (b"", b""),
        (b"\x01", b""),
        (b"\x01\0\0\0\x80", b"x"),
        (b"\x80\x01\0\x01", b""),
        (b"\x80\x01\0\x01\0\0\x10\0", b"g"),
        (HALF_HEAD, b""),
        (HALF_HEAD + b"A: ", b"x"),
        (REFUSED, b""),
        (REFUSED, b"x"),
    ],
    ids=["silence", "SASL", "a dripping SASL", "Thrift", "a dripping name", "a head", "a dripping head", "no body", "a dripping body"],
)
def test_a_stranger_is_cut_off(server: ServerThread, begin: bytes, drip: bytes) -> None:
    with socket.create_connection((server.host, server.port), 20) as sock:
        sock.sendall(begin)
        sock.settimeout(0.05)
        end = time.monotonic() + 20
        with suppress(ConnectionError):
            while time.monotonic() < end:
                with suppress(TimeoutError):
                    if not sock.recv(1000):
                        break
                sock.sendall(drip)
        assert time.monotonic() < end, "it was not cut off"


def test_the_logged_in_user_is_kept(server: ServerThread) -> None:
    with Speaker(server.uri) as speaker:
        speaker.plain("ann", "right")
        web = http.client.HTTPConnection(server.host, server.port, timeout=20)
        for pause in (0.0, 2 * WAIT):
            time.sleep(pause)
            assert speaker.call("getStatus") == 2
            basic = base64.b64encode(b"ann:right").decode()
            headers = {"Authorization": f"Basic {basic}", "Content-Type": "application/x-thrift"}
            web.request("POST", "/metastore", request("getStatus"), headers)
            assert web.getresponse().read()
        assert web.sock is not None
        web.close()


def test_a_probe_that_needs_no_login_may_come_again_on_its_connection(server: ServerThread) -> None:
    web = http.client.HTTPConnection(server.host, server.port, timeout=20)
    web.connect()
    socket_of_the_first = web.sock
    for _ in range(4):
        time.sleep(WAIT / 2)
        web.request("GET", "/healthz")
        assert web.getresponse().read()
        assert web.sock is socket_of_the_first
    web.close()
