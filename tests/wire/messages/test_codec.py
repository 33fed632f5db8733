"""The compiled codec, the pure one and thriftpy2 read and write the same; the first two refuse the same messages, for the same reason."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tracemalloc
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thriftpy2.thrift import TDecodeException, TPayload, TType

from metastore import idl
from metastore.binary import from_bytes, to_bytes
from metastore.idl import ColumnStatisticsData, ColumnStatisticsObj, PartitionsStatsResult, TxnToWriteId
from metastore.wire import codec
from metastore.wire.codec import pure, pure_binary, pure_encoder
from metastore.wire.sockets.transport import EndOfStream, Feed, Malformed
from tests.support.catalog.messages import PIECES, broken, decoded, encoded, random_message, with_odd_value
from tests.support.servers.servers import ROOT

PURE = os.environ.get("METASTORE_CODEC") == "pure"
TEXT = (TType.STRING, TType.BINARY)
MAX_MESSAGE_SIZE, MAX_CONTAINER_SIZE = 100_000, 10_000


class Watching(pure.BinaryDecoder):
    """Notes messages that thriftpy2 reads in another way: maps with lists as keys, and texts in place of other keys or values."""

    odd_maps = False

    def _map(self, spec: Any, depth: int) -> dict[Any, Any]:
        keys, values = (each[0] if isinstance(each, tuple) else each for each in spec)
        sent_key, sent_value = self.source.peek(2)
        self.odd_maps |= keys == TType.LIST or (sent_key in TEXT) != (keys in TEXT) or (sent_value in TEXT) != (values in TEXT)
        return super()._map(spec, depth)


def outcome(decoder: Any, data: bytes, cls: type[TPayload], piece: int) -> tuple[Any, ...]:
    """Return a decoder's result for a message in pieces: its struct as text, its bytes and the bytes after it, and the fields of its head.

    Texts of structs show everything that a comparison has to notice: exceptions, not-a-number, True in place of 1.
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
    assert outcome(pure_binary.FastBinaryDecoder, data, cls, piece) == expected
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


@pytest.mark.parametrize("count", [5_000, pytest.param(1_000_000, marks=[pytest.mark.slow, pytest.mark.timeout(7200)])])
def test_all_read_or_refuse_the_same_of_many_broken_messages(count: int) -> None:
    random = Random(count)
    accepted = 0
    for number in range(count):
        if number % 20 == 0:
            data, body = random_message(random)
        accepted += hold_together(random, broken(random, data), type(body))
    assert 0.05 * count < accepted < 0.95 * count


@pytest.mark.parametrize("piece", [1, 50, 100_000])
@pytest.mark.parametrize("decoder", [codec.DECODERS["binary"], pure_binary.FastBinaryDecoder, pure.BinaryDecoder])
def test_a_message_that_is_cut_or_too_long_is_refused(decoder: Any, piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(1)
    data, body = max((random_message(random) for _ in range(100)), key=lambda found: min(len(found[0]), 5_000))
    for at in range(0, len(data), 97):
        assert outcome(decoder, data[:at], type(body), piece)[0] is EndOfStream
        with monkeypatch.context() as patch:
            patch.setattr("tests.wire.messages.test_codec.MAX_MESSAGE_SIZE", at)
            error, reason, *_ = outcome(decoder, data, type(body), piece)
        assert issubclass(error, Malformed)
        assert "max_message_size" in reason


def test_the_version_is_optional() -> None:
    data = b"\0\0\0\x04name\x01\0\0\0\x07\0"
    for decoder in (codec.DECODERS["binary"], pure.BinaryDecoder):
        reading = decoder(Feed(lambda _: b"", data), 100, 100)
        assert reading.read(lambda *_: None) is None
        assert (reading.name, reading.type, reading.seqid) == ("name", 1, 7)


ENCODERS = [codec.ENCODERS["binary"], pure_encoder.encode_binary]


def written(encode: Any, body: Any) -> bytes | None:
    """Return the bytes of a message; None for one that can not be written."""
    try:
        found: bytes = encode("name", 2, -7, body, False)
    except Exception:  # noqa: BLE001  # the client gets an internal error for any of them
        return None
    return found


@settings(max_examples=200)
@given(st.randoms(use_true_random=False))
def test_all_write_the_same_of_a_struct(random: Random) -> None:
    _, body = random_message(random)
    assert [encode("name", 2, -7, body, False) for encode in ENCODERS] == [encoded("name", 2, -7, body)] * 2


def test_a_frame_has_the_size_of_the_message() -> None:
    body = idl.service.get_table_args(dbname="ä" * 1000, tbl_name="t")
    message = encoded("name", 1, 7, body)
    for encode in ENCODERS:
        assert encode("name", 1, 7, body, True) == len(message).to_bytes(4, "big") + message


@settings(max_examples=500)
@given(st.randoms(use_true_random=False))
def test_all_write_or_refuse_the_same_of_a_struct_with_an_odd_value(random: Random) -> None:
    _, body = random_message(random)
    with_odd_value(random, body)
    assert [written(encode, body) for encode in ENCODERS] == [written(lambda *args: encoded(*args[:-1]), body)] * 2


@pytest.mark.parametrize("encode", ENCODERS)
def test_the_error_names_the_field(encode: Any) -> None:
    body = idl.service.create_table_args(idl.Table(sd=idl.StorageDescriptor(cols=[idl.FieldSchema(name="a", type=5)])))
    with pytest.raises(TDecodeException, match=r"Field 'type\(2\)' of 'FieldSchema' needs type 'STRING', but the value is `5`"):
        encode("name", 2, -7, body, False)


def test_repeated_values_are_written_each_time() -> None:
    columns, other = [idl.FieldSchema("a", "int", None)], [idl.FieldSchema("b", "int", None)]
    parts = [idl.Partition(values=[], sd=idl.StorageDescriptor(cols=each)) for each in (columns, columns, other, columns, None, columns)]
    body = idl.service.add_partitions_args(new_parts=parts)
    assert [encode("name", 2, -7, body, False) for encode in ENCODERS] == [encoded("name", 2, -7, body)] * 2
    columns[0].name = "changed"
    assert [encode("name", 2, -7, body, False) for encode in ENCODERS] == [encoded("name", 2, -7, body)] * 2


@pytest.mark.skipif(codec.IMPLEMENTATION == "pure", reason="the pure codec holds a reply twice")
def test_a_long_reply_is_held_once() -> None:
    body = idl.service.get_partition_names_result(success=[f"day=2024-01-01/number={number:050}" for number in range(60_000)])
    tracemalloc.start()
    try:
        reply = codec.ENCODERS["binary"]("get_partition_names", 2, 7, body, True)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(reply) > 4_000_000
    assert peak < 1.5 * len(reply)


STATISTICS = [
    ColumnStatisticsData(booleanStats=idl.BooleanColumnStatsData(1, 2, 3)),
    ColumnStatisticsData(longStats=idl.LongColumnStatsData(-5, 2**40, 0, 7, b"\0\xff")),
    ColumnStatisticsData(decimalStats=idl.DecimalColumnStatsData(lowValue=idl.Decimal(scale=2, unscaled=b"\x80"), numNulls=1, numDVs=2)),
    ColumnStatisticsData(),
]


@pytest.mark.parametrize("protocol", ["binary", "compact"])
def test_rows_and_bytes_stand_for_structs(protocol: str) -> None:
    rows: Any = {"k=1/ä=😀": [(f"c{number}", None, to_bytes(data)) for number, data in enumerate(STATISTICS)], "k=2": []}
    structs = {
        name: [ColumnStatisticsObj(column, kind, from_bytes(ColumnStatisticsData, data)) for column, kind, data in columns]
        for name, columns in rows.items()
    }
    result = idl.service.get_partitions_statistics_req_result
    found, wanted = (result(PartitionsStatsResult(partStats=each, isStatsCompliant=True)) for each in (rows, structs))
    encoders = ENCODERS if protocol == "binary" else [codec.ENCODERS["compact"]]
    for encode in encoders:
        assert encode("name", 2, 7, found, False) == encode("name", 2, 7, wanted, False)
    assert found.success.partStats is rows


@pytest.mark.parametrize("encode", ENCODERS)
def test_a_row_is_short_or_fits(encode: Any) -> None:
    result, response = idl.service.allocate_table_write_ids_result, idl.AllocateTableWriteIdsResponse

    def reply(row: Any) -> bytes:
        found: bytes = encode("name", 2, 7, result(response(txnToWriteIds=[row])), False)
        return found

    assert reply((7,)) == reply(TxnToWriteId(txnId=7))
    assert reply(()) == reply(TxnToWriteId())
    for row in ((7, 1, 2), ("7", 1)):
        with pytest.raises((TypeError, TDecodeException)):
            reply(row)


@pytest.mark.skipif(PURE or shutil.which("cc") is None, reason="the pure codec is asked for, or there is no compiler")
def test_the_tested_codec_is_compiled() -> None:
    assert codec.IMPLEMENTATION == "compiled"
    assert codec.DECODERS["binary"] is not pure_binary.FastBinaryDecoder
    assert codec.ENCODERS["binary"] is not pure_encoder.encode_binary


@pytest.mark.parametrize(
    ("before", "variable"),
    [
        pytest.param("", "pure", id="asked for"),
        pytest.param("sys.modules['metastore.wire.codec.fast_decoder'] = None", "", id="no decoder"),
        pytest.param("sys.modules['metastore.wire.codec.fast_encoder'] = None", "", id="no encoder"),
    ],
)
def test_the_pure_codec_serves_where_the_compiled_one_does_not(before: str, variable: str) -> None:
    code = f"""import sys
{before}
from metastore.wire import codec
from metastore.wire.codec import pure, pure_binary, pure_encoder
assert codec.IMPLEMENTATION == "pure"
assert codec.DECODERS["binary"] is pure_binary.FastBinaryDecoder and codec.ENCODERS["binary"] is pure_encoder.encode_binary
"""
    subprocess.run([sys.executable, "-c", code], env={**os.environ, "METASTORE_CODEC": variable}, check=True)


def test_a_compiled_codec_that_can_not_be_loaded_is_reported(tmp_path: Path) -> None:
    """A compiled codec can fail to load: it may be built for another build of Python, or lack a library that it needs."""
    (tmp_path / "broken.py").write_text("raise ImportError('undefined symbol: PyLong_Of')")
    code = """import sys, importlib
real = importlib.import_module
importlib.import_module = lambda name: real("broken" if "fast_" in name else name)
from metastore.wire import codec
assert codec.IMPLEMENTATION == "pure"
"""
    variables = {**os.environ, "METASTORE_CODEC": "", "PYTHONPATH": str(tmp_path)}
    ended = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=True)
    assert "the compiled codec can not be loaded, the pure one is used: undefined symbol: PyLong_Of" in ended.stderr


@pytest.mark.parametrize("seed", range(3))
def test_threads_that_read_the_first_messages_of_a_process_read_them_whole(seed: int) -> None:
    command = [sys.executable, "-m", "tests.support.catalog.first_messages", str(seed)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert ended.stdout == ""
