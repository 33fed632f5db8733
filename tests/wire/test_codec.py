"""The compiled decoder, the pure one and thriftpy2 read the same of a message; the first two refuse the same ones, for the same reason."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thriftpy2.thrift import TPayload, TType

from metastore.wire import codec
from metastore.wire.codec import pure
from metastore.wire.transport import EndOfStream, Feed, Malformed
from tests.wire.messages import PIECES, broken, decoded, random_message

TEXT = (TType.STRING, TType.BINARY)
MAX_MESSAGE_SIZE, MAX_CONTAINER_SIZE = 100_000, 10_000


class Watching(pure.BinaryDecoder):
    """Notes what thriftpy2 reads in another way: maps with lists as keys, and texts in place of other keys or values."""

    odd_maps = False

    def _map(self, spec: Any, depth: int) -> dict[Any, Any]:
        keys, values = (each[0] if isinstance(each, tuple) else each for each in spec)
        sent_key, sent_value = self.source.peek(2)
        self.odd_maps |= keys == TType.LIST or (sent_key in TEXT) != (keys in TEXT) or (sent_value in TEXT) != (values in TEXT)
        return super()._map(spec, depth)


def outcome(decoder: Any, data: bytes, cls: type[TPayload], piece: int) -> tuple[Any, ...]:
    """Return all that a decoder tells of a message which comes in pieces, its struct as text, and its bytes with all behind them.

    As text structs are compared with all they hold: exceptions, not-a-number, True beside 1.
    """
    pieces = iter([data[at : at + piece] for at in range(0, len(data), piece)])
    feed = Feed(lambda _: next(pieces, b""))
    reading = decoder(feed, MAX_MESSAGE_SIZE, MAX_CONTAINER_SIZE)
    try:
        body = reading.read(lambda *_: cls)
    except (Malformed, EndOfStream) as error:
        return type(error), str(error), reading.name, reading.seqid
    return repr(body), reading.finish() + b"".join([feed.pending, *pieces]), reading.name, reading.type, reading.seqid, reading.invalid_text


def hold_together(random: Random, data: bytes, cls: type[TPayload]) -> bool:
    """Check that all read the same; return whether the message was read at all."""
    piece = random.choice(PIECES)
    watching: list[Watching] = []

    def watched(*args: Any) -> Watching:
        watching.append(Watching(*args))
        return watching[0]

    expected = outcome(watched, data, cls, piece)
    assert outcome(codec.DECODERS["binary"], data, cls, piece) == expected
    if isinstance(expected[0], type):
        return False
    if expected[-1] is None and not watching[0].odd_maps:
        assert repr(decoded(data, cls)) == expected[0]
    return True


@settings(max_examples=200)
@given(st.randoms(use_true_random=False))
def test_all_read_the_same_of_a_proper_message(random: Random) -> None:
    data, body = random_message(random)
    assert hold_together(random, data, type(body))
    found, rest, *_ = outcome(codec.DECODERS["binary"], data + b"next", type(body), 100_000)
    assert (found, rest) == (repr(body), data + b"next")


@settings(max_examples=300)
@given(st.randoms(use_true_random=False))
def test_all_read_or_refuse_the_same_of_a_broken_message(random: Random) -> None:
    data, body = random_message(random)
    hold_together(random, broken(random, data), type(body))


@pytest.mark.parametrize("count", [20_000, pytest.param(1_000_000, marks=[pytest.mark.slow, pytest.mark.timeout(7200)])])
def test_all_read_or_refuse_the_same_of_many_broken_messages(count: int) -> None:
    random = Random(count)
    accepted = 0
    for number in range(count):
        if number % 20 == 0:
            data, body = random_message(random)
        accepted += hold_together(random, broken(random, data), type(body))
    assert 0.05 * count < accepted < 0.95 * count


@pytest.mark.parametrize("piece", [1, 50, 100_000])
@pytest.mark.parametrize("decoder", [codec.DECODERS["binary"], pure.BinaryDecoder])
def test_a_message_that_is_cut_or_too_long_is_refused(decoder: Any, piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(1)
    data, body = max((random_message(random) for _ in range(100)), key=lambda found: min(len(found[0]), 5_000))
    for at in range(0, len(data), 97):
        assert outcome(decoder, data[:at], type(body), piece)[0] is EndOfStream
        with monkeypatch.context() as patch:
            patch.setattr("tests.wire.test_codec.MAX_MESSAGE_SIZE", at)
            error, reason, *_ = outcome(decoder, data, type(body), piece)
        assert issubclass(error, Malformed)
        assert "max_message_size" in reason


def test_the_version_is_optional() -> None:
    data = b"\0\0\0\x04name\x01\0\0\0\x07\0"
    for decoder in (codec.DECODERS["binary"], pure.BinaryDecoder):
        reading = decoder(Feed(lambda _: b"", data), 100, 100)
        assert reading.read(lambda *_: None) is None
        assert (reading.name, reading.type, reading.seqid) == ("name", 1, 7)
