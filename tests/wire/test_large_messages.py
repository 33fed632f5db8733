"""Messages whose values take much memory: values are made only once the end is there, of messages over the limit never."""

from __future__ import annotations

import io
import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from thriftpy2.thrift import TMessageType

from metastore import idl
from metastore.client import connect
from metastore.wire import protocol
from metastore.wire.codec import DECODERS, limits, pure
from metastore.wire.protocol import Dialect, Unreadable, read_message, write_message
from metastore.wire.settings import WireSettings
from metastore.wire.transport import Feed
from tests.support.servers import Server, serving
from tests.wire.messages import PIECES, random_message, random_struct

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


def test_both_codecs_count_the_same_memory() -> None:
    random = Random(1)
    for _ in range(300):
        data, body = random_message(random)
        needed = []
        for decoder in (DECODERS["binary"], pure.BinaryDecoder):
            low, high = 0, 10_000_000
            while low < high:
                middle = (low + high) // 2
                try:
                    decoder(feed_of(data), MIB, MIB, middle).read(lambda *_, cls=type(body): cls)
                    high = middle
                except limits.TooMuchMemory:
                    low = middle + 1
            needed.append(low)
        assert needed[0] <= needed[1]  # the compiled codec makes equal parts once


def memory(server: Server) -> int:
    """Return the most memory, in bytes, that the worker of a server has had."""
    children = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text().split()
    peaks = [Path(f"/proc/{child}/status").read_text().partition("VmHWM:")[2].split()[0] for child in children]
    return max(map(int, peaks)) * 1024


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with serving(
        "--workers", "1", "--warehouse", str(tmp_path / "warehouse"), "--set", f"data_directory={tmp_path}", home=tmp_path
    ) as started:
        with connect(started.uri) as client:
            client.get_all_databases()
        yield started


def many_texts() -> Iterator[bytes]:
    """Yield lists of texts of six bytes, without an end."""
    number = 0
    while True:
        texts = b"".join(struct.pack(">i6s", 6, b"%06d" % (number % 1_000_000 + each)) for each in range(1000))
        yield b"\x0f\0\2\x0b" + struct.pack(">i", 1000) + texts
        number += 1000


def test_a_message_without_an_end_takes_little_memory(server: Server) -> None:
    before = memory(server)
    host, port = server.uri.removeprefix("thrift://").split(":")
    with socket.create_connection((host, int(port)), 60) as sock:
        method = b"get_table_objects_by_name"
        sock.sendall(b"\x80\x01\0\x01" + struct.pack(">i", len(method)) + method + b"\0\0\0\7")
        sent = 0
        try:
            for part in many_texts():
                sock.sendall(part)
                sent += len(part)
                if sent > 130 * MIB:
                    break
            sock.shutdown(socket.SHUT_WR)
            reply = b""
            while part := sock.recv(65536):
                reply += part
        except ConnectionError:
            reply = b"closed"
    assert memory(server) - before < 64 * MIB
    assert b"limit" in reply or b"larger than" in reply or b"memory" in reply or reply == b"closed", reply[:300]
    with connect(server.uri) as client:
        assert client.get_all_databases() == ["default"]


def test_values_take_ten_times_the_limit_at_most() -> None:
    settings = WireSettings(max_message_size=MIB)
    data = write_message(Dialect("binary", framed=False), "add_partitions", TMessageType.CALL, 7, idl.service.add_partitions_args())[:-1]
    many = data + b"\x0f\0\1\x0c" + struct.pack(">i", 100_000) + b"\0" * 100_001
    with pytest.raises(Unreadable, match=r"more than 10485760 bytes of memory.*max_message_size") as raised:
        read_message(feed_of(many), Dialect("binary", framed=False), settings, lambda *_: idl.service.add_partitions_args)
    assert (raised.value.name, raised.value.seqid) == ("add_partitions", 7)
