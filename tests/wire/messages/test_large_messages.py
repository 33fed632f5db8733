"""Messages whose values take much memory: values are made only after the end is received, and never for messages over the limit."""

from __future__ import annotations

import io
import itertools
import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from thriftpy2.thrift import TMessageType

from metastore import idl
from metastore.client import connect
from metastore.wire.auth.negotiation import Frames
from metastore.wire.codec import DECODERS, limits, pure, pure_binary
from metastore.wire.messages import protocol
from metastore.wire.messages.protocol import Dialect, Unreadable, read_message, write_message
from metastore.wire.sockets.settings import WireSettings
from metastore.wire.sockets.transport import Feed, Malformed
from tests.support.catalog.messages import PIECES, random_message, random_struct
from tests.support.servers.servers import Server, serving

MIB = 1024 * 1024
NAMES = idl.service.get_table_objects_by_name_args


def feed_of(data: bytes, piece: int = 100_000) -> Feed:
    stream = io.BytesIO(data)
    return Feed(lambda size: stream.read(min(size, piece)))


@pytest.mark.parametrize("kind", ["binary", "compact"])
@pytest.mark.parametrize("framed", [False, True])
@pytest.mark.parametrize("piece", PIECES)
def test_a_message_is_read_the_same_in_two_passes(kind: str, framed: bool, piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random, dialect = Random(piece), Dialect(kind, framed)
    for _ in range(40):
        body = random_struct(random, idl.service.add_partitions_args)
        both = b"".join(write_message(dialect, "add_partitions", TMessageType.CALL, number, body) for number in (7, 8))
        found = []
        for early in (limits.MAX_EARLY_MEMORY, 0):
            monkeypatch.setattr(protocol, "MAX_EARLY_MEMORY", early)
            feed = feed_of(both, piece)
            messages = [read_message(feed, dialect, WireSettings(), lambda *_: idl.service.add_partitions_args) for _ in range(2)]
            found.append([(repr(each.body), each.name, each.seqid, each.invalid_text, each.raw) for each in messages])
        assert found[0] == found[1]


def test_all_decoders_count_the_same_memory() -> None:
    random = Random(1)
    for _ in range(300):
        data, body = random_message(random)
        needed = []
        for decoder in (DECODERS["binary"], pure_binary.FastBinaryDecoder, pure.BinaryDecoder):
            low, high = 0, 10_000_000
            while low < high:
                middle = (low + high) // 2
                try:
                    decoder(feed_of(data), MIB, MIB, middle).read(lambda *_, cls=type(body): cls)
                    high = middle
                except limits.TooMuchMemory:
                    low = middle + 1
            needed.append(low)
        assert needed[0] <= needed[1] <= needed[2]  # equal parts are made once, by the compiled codec more of them


def memory(server: Server) -> int:
    """Return the most memory, in bytes, that the worker of a server has had."""
    peaks = [Path(f"/proc/{child}/status").read_text().partition("VmHWM:")[2].split()[0] for child in server.children()]
    return max(map(int, peaks)) * 1024


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with serving(
        "--workers", "1", "--warehouse", str(tmp_path / "warehouse"), "--set", f"data_directory={tmp_path}", home=tmp_path
    ) as started:
        with connect(started.uri) as client:
            client.get_all_databases()
        yield started


METHOD = b"get_table_objects_by_name"
BINARY = b"\x80\x01\0\x01" + struct.pack(">i", len(METHOD)) + METHOD + b"\0\0\0\7"
COMPACT = b"\x82\x21\7" + bytes([len(METHOD)]) + METHOD
TOO_MUCH = 101 * MIB


def texts(length: int, field: int = 2, *, alike: bool = False) -> Iterator[bytes]:
    """Yield lists of a thousand texts in a field, without an end."""
    number = 0
    while True:
        values = (b"x" * length if alike else b"%0*d" % (length, number + each) for each in range(1000))
        yield b"\x0f" + struct.pack(">hBi", field, 11, 1000) + b"".join(struct.pack(">i", length) + value for value in values)
        number += 1000


def compact_texts() -> Iterator[bytes]:
    """Yield lists of a hundred texts in a field that is not declared, without an end."""
    while True:
        yield b"\x09\x7e\xf8\x64" + (b"\x64" + b"x" * 100) * 100


def long_text() -> Iterator[bytes]:
    """Yield a text of almost the limit in a field that is not declared, and further ones."""
    yield b"\x0b\0\x63" + struct.pack(">i", 99 * MIB)
    yield from itertools.repeat(b"x" * MIB, 99)
    yield from itertools.repeat(b"\x0b\0\x63" + struct.pack(">i", MIB) + b"x" * MIB)


MESSAGES: dict[str, tuple[bytes, Iterator[bytes]]] = {
    "texts": (BINARY, texts(6)),
    "longer texts": (BINARY, texts(1000)),
    "equal texts": (BINARY, texts(6, alike=True)),
    "undeclared texts": (BINARY, texts(30, field=99)),
    "one long text": (BINARY, long_text()),
    "unknown method": (BINARY.replace(METHOD, METHOD[::-1]), texts(6)),
    "compact": (COMPACT, compact_texts()),
}


def as_http(parts: Iterator[bytes], *, chunked: bool) -> Iterator[bytes]:
    length = b"Transfer-Encoding: chunked" if chunked else b"Content-Length: %d" % TOO_MUCH
    yield b"POST /metastore HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-thrift\r\n%s\r\n\r\n" % length
    for part in parts:
        yield b"%x\r\n%s\r\n" % (len(part), part) if chunked else part
    if chunked:
        yield b"0\r\n\r\n"


def cut(parts: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the first 101 MiB."""
    left = TOO_MUCH
    while left > 0:
        part = next(parts)[:left]
        left -= len(part)
        yield part


def sent(server: Server, parts: Iterator[bytes]) -> bytes:
    """Send as much as the server takes; return its reply."""
    host, port = server.uri.removeprefix("thrift://").split(":")
    with socket.create_connection((host, int(port)), 60) as sock:
        reply = b""
        try:
            for part in parts:
                sock.sendall(part)
            sock.shutdown(socket.SHUT_WR)
            while part := sock.recv(65536):
                reply += part
        except ConnectionError:
            reply = reply or b"closed"
    return reply


@pytest.mark.parametrize(
    ("kind", "transport"),
    [
        ("texts", "plain"),
        ("compact", "plain"),
        ("texts", "http in chunks"),
        *(pytest.param(kind, "plain", marks=pytest.mark.slow) for kind in MESSAGES if kind not in ("texts", "compact")),
        pytest.param("texts", "http", marks=pytest.mark.slow),
    ],
)
def test_a_message_over_the_limit_takes_little_memory(server: Server, kind: str, transport: str) -> None:
    before = memory(server)
    head, parts = MESSAGES[kind]
    message = cut(itertools.chain([head], parts))
    reply = sent(server, message if transport == "plain" else as_http(message, chunked=transport == "http in chunks"))
    assert memory(server) - before < 48 * MIB
    assert b"larger than 104857600 bytes" in reply or reply == b"closed", reply[:300]
    with connect(server.uri) as client:
        assert client.get_all_databases() == ["default"]


def test_a_body_that_says_that_it_is_too_long_is_answered_before_it_comes(server: Server) -> None:
    host, port = server.uri.removeprefix("thrift://").split(":")
    with socket.create_connection((host, int(port)), 60) as sock:
        sock.sendall(next(as_http(iter(()), chunked=False)).replace(b"\r\n\r\n", b"\r\nExpect: 100-continue\r\n\r\n"))
        assert sock.recv(65536).startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize("kind", ["binary", "compact"])
@pytest.mark.parametrize("framed", [False, True])
def test_a_long_message_within_the_limit_is_read(kind: str, framed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "MAX_EARLY_BYTES", 10_000)
    dialect, body = Dialect(kind, framed), NAMES(dbname="d", tbl_names=["t" * 50_000, *["n"] * 20_000])
    both = b"".join(write_message(dialect, "m", TMessageType.CALL, number, body) for number in (7, 8))
    feed = feed_of(both)
    for number in (7, 8):
        found = read_message(feed, dialect, WireSettings(), lambda *_: NAMES)
        assert (found.seqid, found.body) == (number, body)


def test_a_frame_of_a_login_without_protection_is_passed_on_as_it_comes() -> None:
    left = [b"\0", b"\0\1\0", b"a" * 100, b"b" * 156, b"\0", b"\0\0\1", b"c"]

    def receive(size: int) -> bytes:
        """Return the next bytes, at most `size`, as a socket does."""
        if not left:
            return b""
        part, left[0] = left[0][:size], left[0][size:]
        if not left[0]:
            del left[0]
        return part

    frames = Frames(Feed(receive), None, 256)
    assert frames.receive(1000) == b"a" * 100
    assert left[0] == b"b" * 156, "nothing waits for the rest of the frame"
    assert [frames.receive(56), frames.receive(1000)] == [b"b" * 56, b"b" * 100]
    assert (frames.receive(5), frames.receive(5)) == (b"c", b"")
    with pytest.raises(Malformed, match="SASL frame of 257 bytes"):
        Frames(feed_of(b"\0\0\1\1"), None, 256).receive(1)


def test_values_take_ten_times_the_limit_at_most() -> None:
    settings = WireSettings(max_message_size=MIB)
    data = write_message(Dialect("binary", framed=False), "add_partitions", TMessageType.CALL, 7, idl.service.add_partitions_args())[:-1]
    many = data + b"\x0f\0\1\x0c" + struct.pack(">i", 100_000) + b"\0" * 100_001
    with pytest.raises(Unreadable, match=r"more than 10485760 bytes of memory.*max_message_size") as raised:
        read_message(feed_of(many), Dialect("binary", framed=False), settings, lambda *_: idl.service.add_partitions_args)
    assert (raised.value.name, raised.value.seqid) == ("add_partitions", 7)
