from __future__ import annotations

from typing import cast

from hypothesis import given, settings
from hypothesis import strategies as st

from metastore import idl
from metastore.wire.messages.protocol import Dialect, read_message, write_message
from metastore.wire.sockets.settings import WireSettings
from metastore.wire.sockets.transport import Feed

LENGTHS = st.sampled_from([0, 1, 3, 100, 16_379, 16_384, 16_385, 32_768, 32_769, 50_000, 200_000])


def pieces(data: bytes, sizes: list[int]) -> Feed:
    """Return a feed that gets `data` in packets of the given sizes, in turn."""
    position, turn = 0, 0

    def receive(size: int) -> bytes:
        nonlocal position, turn
        part = data[position : position + min(size, sizes[turn % len(sizes)])]
        position += len(part)
        turn += 1
        return part

    return Feed(receive)


@settings(max_examples=150)
@given(
    strings=st.lists(st.tuples(LENGTHS, LENGTHS), min_size=1, max_size=4),
    sizes=st.lists(st.sampled_from([1, 7, 1000, 16_383, 16_384, 70_000, 10**9]), min_size=1, max_size=5).filter(
        lambda sizes: max(sizes) > 500
    ),
    protocol=st.sampled_from(["binary", "compact"]),
    skewed=st.booleans(),
)
def test_messages_are_separated_however_they_are_cut(strings: list[tuple[int, int]], sizes: list[int], protocol: str, skewed: bool) -> None:
    dialect = Dialect(protocol, framed=False)
    skew = idl.SkewedInfo(skewedColValueLocationMaps={("a", "b"): "c"}) if skewed else None
    bodies = [
        idl.service.create_table_args(tbl=idl.Table(dbName="d" * first, sd=idl.StorageDescriptor(skewedInfo=skew), tableName="t" * second))
        for first, second in strings
    ]
    encoded = [write_message(dialect, "create_table", 1, number, body) for number, body in enumerate(bodies)]
    feed = pieces(b"".join(encoded), sizes)
    for number, body in enumerate(bodies):
        message = read_message(feed, dialect, WireSettings(), lambda *_: idl.service.create_table_args)
        assert message.seqid == number
        assert message.body == body
        assert message.raw == encoded[number]


def test_a_long_string_in_small_packets_takes_a_read_for_each_packet() -> None:
    body = idl.service.get_table_args(dbname="d", tbl_name="t" * 1_000_000)
    data = write_message(Dialect("binary", framed=False), "get_table", 1, 1, body)
    reads: list[int] = []
    feed = pieces(data, [1000])

    class Counting:
        pending, at, is_whole = b"", 0, False
        unread = staticmethod(feed.unread)

        def some(self, size: int) -> bytes:
            reads.append(size)
            return feed.some(size)

    message = read_message(
        cast(Feed, Counting()),
        Dialect("binary", framed=False),
        WireSettings(),
        lambda *_: idl.service.get_table_args,
    )
    assert message.body == body
    assert len(reads) == -(-len(data) // 1000)
