"""A walk over the bytes of structs finds the structs that thriftpy2 reads as the pure codec does. Only these are given to thriftpy2.

Structs that thriftpy2 would read in another way, refuse or never end are not given to it.
"""

from __future__ import annotations

import struct
from contextlib import suppress
from random import Random
from typing import Any

import pytest
from thriftpy2.thrift import TPayload, TType

from metastore import idl
from metastore.binary import from_bytes, to_bytes
from metastore.wire.codec import pure, pure_binary
from metastore.wire.codec.pure_walk import MANY, MEMORY_PER_BYTE, Unusual, Walk, elements_of, end_of
from metastore.wire.sockets.transport import EndOfStream, Feed, Malformed, TooLarge
from tests.support.catalog.messages import PIECES, broken, random_message

HEAD = b"\x80\x01\0\1\0\0\0\4name\0\0\0\7"
LIMIT, NO_LIMIT = 1_000_000, 1_000_000_000


def read(decoder: Any, data: bytes, cls: type[TPayload], piece: int = 100_000, max_memory: int = NO_LIMIT) -> tuple[Any, ...]:
    """Return a decoder's result for a message in pieces, or its refusal, and all bytes from the beginning of the message on."""
    pieces = iter([data[at : at + piece] for at in range(0, len(data), piece)])
    feed = Feed(lambda _: next(pieces, b""))
    reading = decoder(feed, LIMIT, 10_000, max_memory)
    try:
        body = reading.read(lambda *_: cls)
    except (Malformed, EndOfStream) as error:
        return type(error), str(error), reading.name, reading.seqid
    return repr(body), reading.invalid_text, reading.name, reading.seqid, reading.finish() + b"".join([feed.pending, *pieces])


def counted(data: bytes, cls: type[TPayload]) -> tuple[pure.BinaryDecoder, Any]:
    """Read a message value by value; return its decoder and its struct."""
    reading = pure.BinaryDecoder(Feed(lambda _: b"", data), LIMIT, 10_000)
    return reading, reading.read(lambda *_: cls)


def test_thriftpy2_reads_walked_messages_as_the_pure_codec_does() -> None:
    random, walked = Random(5), 0
    for number in range(3_000):
        if number % 20 == 0:
            proper = random_message(random)[1]
            raw, cls = to_bytes(proper), type(proper)
        changed = broken(random, raw) if number % 20 else raw
        walk = Walk(changed, 10_000)
        try:
            end = end_of(TType.STRUCT, cls)(walk, 0, 64)
        except (Unusual, LookupError, struct.error):
            continue
        walked += 1
        reading, body = counted(HEAD + changed, cls)
        assert len(reading.finish()) == len(HEAD) + end
        assert reading._memory <= walk.memory + MEMORY_PER_BYTE * end
        try:
            found = from_bytes(cls, changed[:end], strict=True)
        except UnicodeDecodeError:
            assert reading.invalid_text
        except TypeError:
            assert "('" in repr(body) or "((" in repr(body) or "{()" in repr(body)  # a map with lists for keys
        else:
            assert repr(found) == repr(body)
    assert 500 < walked < 2_500


def test_values_that_nest_too_deep_are_not_walked_over() -> None:
    random = Random(3)
    for _ in range(50):
        body = random_message(random)[1]
        cls, raw = type(body), to_bytes(body)
        for depth in range(20):
            reading = pure.BinaryDecoder(Feed(lambda _, raw=raw: raw), LIMIT, 10_000)  # type: ignore[misc]
            with suppress(Unusual, LookupError, struct.error):
                end_of(TType.STRUCT, cls)(Walk(raw, 10_000), 0, depth)
                reading._new(cls, depth)  # raises Malformed at too great a depth
            if elements_of(TType.LIST, (TType.STRUCT, cls))(Walk(raw, 10_000), 0, depth, 1)[0]:
                reading._new(cls, depth)


def test_a_message_over_the_limit_is_not_walked_over(given: list[bytes]) -> None:
    data, cls = tables(*[to_bytes(TABLE)] * 9)
    for limit in (len(data) - 1, len(data)):
        reading = pure_binary.FastBinaryDecoder(Feed(lambda _: data), limit, 10_000)
        if limit < len(data):
            with pytest.raises(TooLarge):
                reading.read(lambda *_: cls)
        else:
            assert repr(reading.read(lambda *_: cls)) == read(pure.BinaryDecoder, data, cls)[0]
    assert given == [data[len(HEAD) :]]


TABLE = idl.Table(tableName="t", owner="somebody", parameters={"a": "b"}, partitionKeys=[idl.FieldSchema("day", "string", "c" * 100)])
SKEWED = idl.StorageDescriptor(skewedInfo=idl.SkewedInfo(skewedColValueLocationMaps={("1",): "x"}))  # type: ignore[dict-item]
UNUSUAL = {
    "unknown field": b"\x08\x03\xe7\0\0\0\1",
    "unknown field without an end": b"\x0f\x03\xe7\1\0\0\x27\x10",
    "unknown type": b"\x63\0\1",
    "another type": b"\x08\0\1\0\0\0\5",
    "type of its own for bytes": b"\x12\0\1\0\0\0\1x",
    "negative text": b"\x0b\0\1\xff\xff\xff\xff",
    "negative list": b"\x0f\0\x08\x0c\xff\xff\xff\xff",
    "negative map": b"\x0d\0\x09\x0b\x0b\xff\xff\xff\xff",
    "list of nothing": b"\x0f\0\x08\1\0\0\x27\x10",
    "list of another type": b"\x0f\0\x08\x08\0\0\0\1\0\0\0\5",
    "map of another type": b"\x0d\0\x09\x08\x0b\0\0\0\1\0\0\0\1\0\0\0\1x",
    "long list": b"\x0f\0\x08\x0c\0\0\x27\x11" + bytes(10_001),
    "long map": b"\x0d\0\x09\x0b\x0b\0\0\x27\x11" + bytes(8 * 10_001),
    "negative byte": b"\x03\0\x16\xff",
    "deep nesting": b"\x0f\x03\xe7" + b"\x0f\0\0\0\1" * 100,
    "text that is not whole": b"\x0b\0\1\0\x0f\0\0",
}
REFUSED = {
    "text that is not UTF-8": b"\x0b\0\1\0\0\0\2x\xff",
    "lists for keys": b"\x0c\0\7" + to_bytes(SKEWED),
}
"""Messages that thriftpy2 refuses: they do no harm there."""


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The bytes that thriftpy2 is given."""
    noted: list[bytes] = []

    def noting(real: Any) -> Any:
        def note(*args: Any, strict: bool) -> Any:
            noted.append(args[-1])
            return real(*args, strict=strict)

        return note

    for name in ("from_bytes", "joined_from_bytes"):
        monkeypatch.setattr(pure_binary, name, noting(getattr(pure_binary, name)))
    return noted


def one_table(table: bytes) -> tuple[bytes, type[TPayload]]:
    return HEAD + b"\x0c\0\1" + table + b"\0", idl.service.create_table_args


def tables(*raw: bytes) -> tuple[bytes, type[TPayload]]:
    return HEAD + b"\x0f\0\0\x0c" + len(raw).to_bytes(4, "big") + b"".join(raw) + b"\0", idl.service.get_table_objects_by_name_result


@pytest.mark.parametrize("piece", PIECES)
@pytest.mark.parametrize("kind", [*UNUSUAL, *REFUSED])
def test_unusual_messages_are_read_or_refused_by_the_pure_codec(kind: str, piece: int, given: list[bytes]) -> None:
    part = {**UNUSUAL, **REFUSED}[kind]
    proper = to_bytes(TABLE)
    unusual = proper[:-1] + part + b"\0"
    for data, cls in (one_table(unusual), tables(*[proper] * 9, unusual, *[proper] * 9)):
        assert read(pure_binary.FastBinaryDecoder, data, cls, piece) == read(pure.BinaryDecoder, data, cls, piece)
    if kind in UNUSUAL:
        assert not any(part in each for each in given)


@pytest.mark.parametrize("size", [0, 1, 127, 128, 255, 256, 70_000])
def test_texts_of_any_size_are_walked_over(size: int, given: list[bytes]) -> None:
    text = "ä" * (size // 2) + "x" * (size % 2)
    table = idl.Table(tableName=text, parameters={text: text}, partitionKeys=[idl.FieldSchema(text, comment="c" * 100)] * (MANY + 1))
    data, cls = tables(*[to_bytes(table)] * 5)
    found = read(pure_binary.FastBinaryDecoder, data, cls, len(data))
    assert found == read(pure.BinaryDecoder, data, cls, len(data))
    assert sum(map(len, given)) > 0.9 * len(data) or len(data) > 64 * 1024


def test_structs_behind_one_that_is_unusual_are_walked_over_again(given: list[bytes]) -> None:
    proper = to_bytes(TABLE)
    data, cls = tables(*[proper] * 9, proper[:-1] + UNUSUAL["unknown field"] + b"\0", *[proper] * 8)
    assert read(pure_binary.FastBinaryDecoder, data, cls) == read(pure.BinaryDecoder, data, cls)
    assert given == [proper * 9, proper * 8]


@pytest.mark.parametrize("kind", REFUSED)
def test_thriftpy2_refuses_once_in_a_message(kind: str, given: list[bytes]) -> None:
    """After one refusal thriftpy2 is not tried again. Otherwise each table would be decoded once for each table before it."""
    proper = to_bytes(TABLE)
    data, cls = tables(*[proper] * 50, proper[:-1] + REFUSED[kind] + b"\0")
    assert read(pure_binary.FastBinaryDecoder, data, cls) == read(pure.BinaryDecoder, data, cls)
    assert len(given) == 1


@pytest.mark.parametrize("piece", PIECES)
def test_memory_is_counted_where_there_may_be_too_much(piece: int) -> None:
    random = Random(piece)
    for _ in range(100):
        raw, body = random_message(random)
        data, cls = raw + b"next", type(body)
        exact = counted(data, cls)[0]._memory
        for most in (exact, exact - 1):
            assert read(pure_binary.FastBinaryDecoder, data, cls, piece, most) == read(pure.BinaryDecoder, data, cls, piece, most) or (
                most < exact and pure_binary.plan_of(cls).is_plain is False  # parts that repeat in partitions are counted once
            )
