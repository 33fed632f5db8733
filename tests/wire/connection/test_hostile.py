"""Bytes that are not a proper message cost their sender the answer or the connection. Other clients notice nothing."""

from __future__ import annotations

import errno
import socket
import struct
import threading
from collections.abc import Iterator
from typing import NoReturn, cast

import pytest
import structlog
from hypothesis import given, settings
from hypothesis import strategies as st
from thriftpy2.thrift import TApplicationException

from metastore import idl
from metastore.client import connect
from metastore.idl import FieldSchema, Partition, StorageDescriptor
from metastore.service.call.context import Metastore
from metastore.wire.connection.server import ServerThread
from metastore.wire.messages.protocol import Dialect, read_message, write_message
from metastore.wire.sockets.settings import WireSettings
from metastore.wire.sockets.transport import Feed, frame_feed
from tests.support.servers.stub_server import HANDLERS, Start, Stub
from tests.wire.connection.test_calls import DIALECTS, receive, wait_until

BINARY = Dialect("binary", framed=False)
CALL = b"\x80\x01\0\x01\0\0\0\x09get_table\0\0\0\x07"
"""A message's begin; the argument struct follows."""


def exchange(server: ServerThread, data: bytes) -> bytes:
    """Send `data` and the end of the stream; return all bytes that the server sends before it closes."""
    with socket.create_connection((server.host, server.port), 10) as sock:
        try:
            sock.sendall(data)
            sock.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # the server was faster
        out = b""
        try:
            while part := sock.recv(65536):
                out += part
        except ConnectionResetError:
            pass
        return out


def alive(server: ServerThread) -> bool:
    with connect(server.uri, timeout=10) as client:
        return bool(client.getStatus() == 2)


def refusal(data: bytes, dialect: Dialect = BINARY) -> TApplicationException:
    pending = [data]
    feed = Feed(lambda _: pending.pop() if pending else b"")
    body = read_message(feed, dialect, WireSettings(), lambda *_: TApplicationException).body
    assert isinstance(body, TApplicationException)
    return body


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"\x01\x00\x00\x00\x06GSSAPI",
        b"\xff" * 100,
        b"\0" * 100,
        b"\x80\x01",
        b"\x82",
        b"\x7f\xff\xff\xff\x80",
        bytes(range(256)),
    ],
    ids=["nothing", "http", "tls", "sasl", "ones", "zeros", "half a header", "half a compact", "frame", "count"],
)
def test_bytes_that_are_not_thrift_end_the_connection_only(server: ServerThread, data: bytes) -> None:
    exchange(server, data)
    assert alive(server)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_log_that_can_not_be_written_keeps_no_connection_open(server: ServerThread) -> None:
    def full(*_: object) -> NoReturn:
        raise OSError(errno.ENOSPC, "No space left on device")

    others = set(threading.enumerate())
    with structlog.testing.capture_logs():
        structlog.configure(processors=[full])
        assert exchange(server, b"\x80\x01") == b""
        for thread in set(threading.enumerate()) - others:  # pytest then shows the warning about the thread's error in this test
            thread.join(60)


@settings(max_examples=60)
@given(data=st.binary(max_size=200))
@pytest.mark.parametrize(
    "head",
    [CALL, b"\x82\x21\x01\x09get_table", b"\0\0\0\x64" + CALL],
    ids=["binary", "compact", "framed"],
)
def test_random_arguments_end_the_connection_at_worst(shared_server: ServerThread, head: bytes, data: bytes) -> None:
    exchange(shared_server, head + data)
    assert alive(shared_server)


@pytest.fixture(scope="module")
def shared_server() -> Iterator[ServerThread]:
    with ServerThread(WireSettings(port=0), cast(Metastore, Stub()), HANDLERS) as server:
        yield server


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (b"\x0b\0\x01\x7f\xff\xff\xff", "larger than"),
        (b"\x0b\0\x01\xff\xff\xff\xff", "ize"),
        (b"\x0f\0\x63" + b"\x0f\0\0\0\x01" * 100, "nest deeper"),
    ],
    ids=["huge string", "negative string", "deep nesting"],
)
def test_a_bad_size_is_refused_with_the_reason(server: ServerThread, arguments: bytes, reason: str) -> None:
    error = refusal(exchange(server, CALL + arguments))
    assert error.type == TApplicationException.PROTOCOL_ERROR
    assert reason in error.message
    assert alive(server)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (b"\x0f\0\x01\x01\x7f\xff\xff\xff", "max_container_size"),
        (b"\x0d\0\x01\x01\x01\x00\x7f\xff\xff", "max_container_size"),
        (b"\x0f\0\x01\x0c\x06\x40\0\0\x01", "max_message_size"),
        (b"\x0f\0\x01\x01\0\0\0\x01", "Type 1 is unknown"),
        (b"\x63\0\x01", "Type 99 is unknown"),
        (b"\x0f\0\x01" + b"\x0f\0\0\0\x01" * 100, "nest deeper than 64"),
    ],
    ids=["void list", "void map", "more than fits", "void", "unknown type", "deep nesting"],
)
def test_an_unknown_method_is_passed_over_within_limits(start: Start, arguments: bytes, reason: str) -> None:
    server = start(max_container_size=2_000_000 if "container" in reason else 2**31 - 1)
    error = refusal(exchange(server, b"\x80\x01\0\x01\0\0\0\x04nope\0\0\0\x07" + arguments + b"\0"))
    assert error.type == TApplicationException.PROTOCOL_ERROR
    assert reason in error.message


def test_a_message_over_the_limit_is_refused_and_one_below_passes(start: Start) -> None:
    server = start(max_message_size=100_000)
    with connect(server.uri, timeout=10) as client:
        assert client.get_table("d", "x" * 90_000).tableName == "x" * 90_000
        with pytest.raises(TApplicationException, match=r"larger than 100000 bytes.*max_message_size"):
            client.get_table("d", "x" * 100_000)
    table = idl.Table(parameters={str(number): "x" * 50 for number in range(3000)})
    with connect(server.uri, timeout=10) as client, pytest.raises(TApplicationException, match="max_message_size"):
        client.create_table(table)
    assert alive(server)


@pytest.mark.parametrize("protocol", ["binary", "compact"])
def test_a_frame_over_the_limit_is_refused(start: Start, protocol: str) -> None:
    server = start(max_message_size=100_000)
    with connect(server.uri, timeout=10, framed=True, protocol=protocol) as client:
        assert client.getStatus() == 2
        with pytest.raises(TApplicationException, match="max_message_size"):
            client.get_table("d", "x" * 100_000)


def test_a_framed_connection_lives_on_after_a_bad_message(server: ServerThread) -> None:
    bad = CALL + b"\x0b\0\x01\x7f\xff\xff\xff"
    with socket.create_connection((server.host, server.port), 10) as sock:
        sock.sendall(len(bad).to_bytes(4, "big") + bad)
        frame = receive(sock, int.from_bytes(receive(sock, 4), "big"))
        assert refusal(frame).type == TApplicationException.PROTOCOL_ERROR
        dialect = Dialect("binary", framed=True)
        sock.sendall(write_message(dialect, "getStatus", 1, 9, idl.service.getStatus_args()))
        assert b"getStatus\0\0\0\x09" in receive(sock, int.from_bytes(receive(sock, 4), "big"))


def test_a_message_that_is_no_call_is_refused(server: ServerThread) -> None:
    with socket.create_connection((server.host, server.port), 10) as sock:
        sock.sendall(write_message(BINARY, "getStatus", 2, 9, idl.service.getStatus_args()))
        sock.shutdown(socket.SHUT_WR)
        error = refusal(sock.recv(65536))
    assert error.type == TApplicationException.INVALID_MESSAGE_TYPE


@pytest.mark.parametrize(("protocol", "framed"), DIALECTS)
def test_fields_of_another_type_are_passed_over(server: ServerThread, protocol: str, framed: bool) -> None:
    wrong = type(
        "get_table_args",
        (idl.service.get_table_args,),
        {
            "thrift_spec": {
                1: (15, "dbname", (13, (11, 8)), False),
                2: (11, "tbl_name", False),
                9: (12, "more", idl.Table, False),
                10: (2, "flag", False),
                11: (4, "number", False),
            }
        },
    )()
    wrong.dbname, wrong.tbl_name = [{"a": 1}, {}], "t"
    wrong.more, wrong.flag, wrong.number = idl.Table(parameters={"a": "b"}, rewriteEnabled=True), True, 1.5
    dialect = Dialect(protocol, framed)
    with socket.create_connection((server.host, server.port), 10) as sock:
        sock.sendall(write_message(dialect, "get_table", 1, 3, wrong))
        feed = Feed(sock.recv)
        message = read_message(feed, dialect, WireSettings(), lambda *_: idl.service.get_table_result)
    assert (message.seqid, message.body.success.dbName, message.body.success.tableName) == (3, None, "t")


def test_a_client_that_vanishes_within_a_message_leaves_no_thread(server: ServerThread) -> None:
    sock = socket.create_connection((server.host, server.port), 10)
    sock.sendall(CALL + b"\x0b\0\x01\0\0\x10\0half")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()
    wait_until(lambda: not server._worker._active)
    assert alive(server)


def test_a_client_that_stays_silent_within_a_message_is_closed(start: Start) -> None:
    server = start(idle_timeout=0.05)
    with socket.create_connection((server.host, server.port), 10) as sock:
        sock.sendall(CALL + b"\x0b\0\x01")
        assert sock.recv(1) == b""


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (b"\x1b\xff\xff\xff\xff\x07\x88", "max_container_size"),
        (b"\x19\xf1\xff\xff\xff\xff\x07", "max_container_size"),
        (b"\x18\xff\xff\xff\xff\x0f", "larger than"),
        (b"\x18" + b"\xff" * 30, "more than ten bytes"),
        (b"\x1d\0", "Type 13 is unknown"),
        (b"\x1c" * 100, "nest deeper than 64"),
    ],
    ids=["map", "list", "string", "integer", "type", "nesting"],
)
def test_the_compact_protocol_has_the_same_limits(server: ServerThread, arguments: bytes, reason: str) -> None:
    reply = exchange(server, b"\x82\x21\x01\x09get_table" + arguments)
    error = refusal(reply, Dialect("compact", framed=False))
    assert error.type == TApplicationException.PROTOCOL_ERROR
    assert reason in error.message
    assert alive(server)


VOIDS = b"\x01\x7f\xff\xff\xff"


@pytest.mark.parametrize(
    "arguments",
    [
        b"\x0f\0\x63" + VOIDS,
        b"\x0f\0\x63\x0f\0\0\0\x02" + VOIDS + VOIDS,
        b"\x0d\0\x63\x01\x29\x7f\xff\xff\xff",
        b"\xaa\x03\x84\x07m\xab\r#\xbe\x01)p\x81\xa9\xf3",
        # SkewedInfo.skewedColValueLocationMaps of a table, sent as a map of texts: the first key is not a list header.
        b"\x0c\0\x01\x0c\0\x07\x0c\0\x0b\x0d\0\x03\x0b\x0b\0\0\0\x01\0\0\0\x05" + VOIDS + b"\0\0\0\0" + b"\0\0\0",
    ],
    ids=["list", "lists in a list", "map", "found by fuzzing", "map of another key type"],
)
def test_elements_that_take_no_bytes_hold_nobody_up(server: ServerThread, arguments: bytes) -> None:
    reply = exchange(server, b"\x80\x01\0\x01\0\0\0\x0ccreate_table\0\0\0\x07" + arguments + b"\0")
    assert reply
    assert alive(server)


def test_equal_lists_are_walked_over_once_and_decoded_all() -> None:
    columns = [FieldSchema(f"c{number}", "string", "") for number in range(20)]
    parts = [Partition(values=[str(number)], sd=StorageDescriptor(cols=columns)) for number in range(50)]
    parts[30].sd.cols = [FieldSchema("other", "string", ""), *columns[1:]]
    body = idl.service.add_partitions_args(new_parts=parts)
    data = write_message(Dialect("binary", framed=False), "add_partitions", 1, 1, body)
    message = read_message(frame_feed(data), Dialect("binary", framed=False), WireSettings(), lambda *_: idl.service.add_partitions_args)
    assert message.body == body
