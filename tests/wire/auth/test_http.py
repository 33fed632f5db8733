"""Thrift over HTTP: the requests of Hive 4's client, and requests that no client should send."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thriftpy2.thrift import TApplicationException

from metastore.client import connect
from metastore.service.call.context import Metastore
from metastore.wire.connection.server import ServerThread
from metastore.wire.sockets.settings import WireSettings
from tests.support.servers.stub_server import HANDLERS, Stub
from tests.wire.auth.speaking import post, request, value

STATUS = request("getStatus")


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThread]:
    with ServerThread(WireSettings(port=0, max_message_size=100_000, park_after=0.05), cast(Metastore, Stub()), HANDLERS) as started:
        yield started


def exchange(server: ServerThread, data: bytes) -> bytes:
    """Send bytes and the end of the stream; return all received bytes."""
    with socket.create_connection((server.host, server.port), 20) as sock:
        with suppress(OSError):  # the server may have answered and closed before all bytes were sent
            sock.sendall(data)
            sock.shutdown(socket.SHUT_WR)
        out = b""
        try:
            while part := sock.recv(65536):
                out += part
        except ConnectionResetError:
            pass
        return out


def head(path: str = "/metastore", *lines: str) -> bytes:
    return "\r\n".join([f"POST {path} HTTP/1.1", "Host: localhost", "Content-Type: application/x-thrift", *lines, "", ""]).encode()


def test_requests_of_one_connection_are_answered_in_turn(server: ServerThread) -> None:
    connection = http.client.HTTPConnection(server.host, server.port, timeout=20)
    for name in ("ann", "bob"):
        for _ in range(2):
            headers = {"x-actor-username": name, "Content-Type": "application/x-thrift"}
            connection.request("POST", "/metastore", request("get_table", dbname="d", tbl_name="t" * 70_000), headers)
            answer = connection.getresponse()
            assert answer.status == 200
            assert answer.getheader("Content-Type") == "application/x-thrift"
            assert value("get_table", answer.read()).tableName == "t" * 70_000
    connection.close()


def test_requests_that_come_at_once_are_answered_one_after_the_other(server: ServerThread) -> None:
    one = head("/metastore", f"Content-Length: {len(STATUS)}") + STATUS
    assert exchange(server, one * 3).count(b"HTTP/1.1 200") == 3


@pytest.mark.parametrize(("path", "status"), [("/healthz", 200), ("/metastore", 405), ("/nowhere", 404)])
def test_an_answer_to_head_has_no_body(server: ServerThread, path: str, status: int) -> None:
    connection = http.client.HTTPConnection(server.host, server.port, timeout=20)
    for _ in range(2):
        connection.request("HEAD", path)
        answer = connection.getresponse()
        assert answer.status == status
        assert int(answer.getheader("Content-Length", "0")) > 0
        assert answer.read() == b""
    connection.close()


def test_credentials_that_are_not_base64_are_refused(server: ServerThread) -> None:
    for text in ("YTpi=x", "Y\xc3Tpi", "/w=="):
        answer = exchange(server, head("/metastore", f"Authorization: Basic {text}").decode().encode("latin-1"))
        assert answer.startswith(b"HTTP/1.1 401"), answer
        assert b"not base64 of name:password" in answer


def test_a_body_in_chunks_and_one_that_waits_to_be_asked_for(server: ServerThread) -> None:
    chunked = b"".join(b"%x\r\n%s\r\n" % (1, bytes((byte,))) for byte in STATUS) + b"0\r\n\r\n"
    assert b"HTTP/1.1 200" in exchange(server, head("/metastore/*", "Transfer-Encoding: chunked") + chunked)
    with socket.create_connection((server.host, server.port), 20) as sock:
        sock.sendall(head("/metastore?x=1", f"Content-Length: {len(STATUS)}", "Expect: 100-continue"))
        assert sock.recv(1000).startswith(b"HTTP/1.1 100")
        sock.sendall(STATUS)
        assert sock.recv(1000).startswith(b"HTTP/1.1 200")


def test_an_unknown_method_and_a_failed_call_are_thrift_replies(server: ServerThread) -> None:
    status, answer = post(server.uri, request("get_all_tables", db_name="d"))
    assert status == 200
    assert isinstance(value("get_all_tables", answer), TApplicationException)


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET /metastore HTTP/1.1\r\nHost: x\r\n\r\n", 405),
        (b"GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n", 404),
        (head("/other", "Content-Length: 3") + b"abc", 404),
        (head("/metastores", "Content-Length: 3") + b"abc", 404),
        (head("/metastore", "Content-Length: 3") + b"abc", 400),
        (head("/metastore", "Content-Length: 0"), 400),
        (head("/metastore", "Content-Length: x"), 400),
        (head("/metastore", "Transfer-Encoding: gzip"), 501),
        (head("/metastore", "Content-Length: 100001") + b"\x80" + b"\0" * 100_000, 413),
        (b"POST /metastore HTTP/1.1\r\n\r\n", 400),
        (b"POST /metastore HTTP/1.1\r\nHost: x\r\nA: " + b"x" * 140_000, 431),
        (b"HELLO\r\n\r\n", 400),
        (head("/metastore", "Content-Length: 3", "Transfer-Encoding: chunked") + b"0\r\n\r\n" + head(), 400),
        (head("/metastore", "Authorization: Basic YTpi", "Authorization: Basic Yjpj", "Content-Length: 3") + b"abc", 400),
        (head("/metastore", "Content-Type: text/plain", "Content-Length: 3") + b"abc", 400),
        (head("/metastore", "Origin: http://localhost", "Origin: http://evil.example.org", "Content-Length: 3") + b"abc", 400),
        (head("/metastore", "x-actor-username: ann", "X-Actor-Username: bob", "Content-Length: 3") + b"abc", 400),
    ],
)
def test_a_request_that_is_not_a_call_gets_a_fitting_status(server: ServerThread, sent: bytes, status: int) -> None:
    answer = exchange(server, sent)
    assert answer.startswith(b"HTTP/1.1 %d" % status)
    assert answer.count(b"HTTP/1.1") == 1, "what follows is not a request"
    with connect(server.uri, timeout=20) as client:
        assert client.getStatus() == 2


def test_a_connection_that_the_client_wants_to_end_is_ended(server: ServerThread) -> None:
    with socket.create_connection((server.host, server.port), 20) as sock:
        sock.sendall(head("/metastore", f"Content-Length: {len(STATUS)}", "Connection: close") + STATUS)
        out = b""
        while part := sock.recv(65536):
            out += part
    assert out.startswith(b"HTTP/1.1 200")


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200), st.sampled_from([b"", b"POST ", b"POST /metastore HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nHost: x\r\n"]))
def test_any_bytes_leave_the_server_serving(server: ServerThread, sent: bytes, start: bytes) -> None:
    exchange(server, b"P" + start[1:] + sent)
    with connect(server.uri, timeout=20) as client:
        assert client.getStatus() == 2
