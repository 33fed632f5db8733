"""An ORC file to which a tail was appended is the same file with more user metadata, for each codec."""

from __future__ import annotations

import hashlib
import io

import pyarrow as pa
import pyorc
import pytest
from pyarrow import orc

from metastore.acid.orc.orc_tail import LONGEST_POSTSCRIPT, NotOrc, tail_length, with_user_metadata

ROWS = [(number, hashlib.sha256(str(number).encode()).hexdigest()) for number in range(5_000)]


def written(codec: pyorc.CompressionKind) -> bytes:
    out = io.BytesIO()
    with pyorc.Writer(out, "struct<a:bigint,b:string>", compression=codec, stripe_size=1 << 13, batch_size=64) as writer:
        writer.set_user_metadata(old=b"kept")
        writer.writerows(ROWS)
    return out.getvalue()


@pytest.mark.parametrize("codec", [kind for kind in pyorc.CompressionKind if kind != pyorc.CompressionKind.LZO])
@pytest.mark.parametrize("size", [3, 40_000, 3_000_000])
def test_readers_see_the_rows_and_all_items(codec: pyorc.CompressionKind, size: int) -> None:
    content = written(codec)
    tail = content[-tail_length(content[-LONGEST_POSTSCRIPT:]) :]
    items = {"new": b"x" * size, "empty": b"", "bytes": bytes(range(256))}
    changed = content + with_user_metadata(tail, items)
    reader = pyorc.Reader(io.BytesIO(changed))
    assert reader.user_metadata == {"old": b"kept", **items}
    assert list(reader) == ROWS
    before = pyorc.Reader(io.BytesIO(content))
    assert before.num_of_stripes > 1
    assert [stripe.bytes_offset for stripe in reader.iter_stripes()] == [stripe.bytes_offset for stripe in before.iter_stripes()]
    assert orc.ORCFile(pa.BufferReader(changed)).read().to_pylist() == [{"a": a, "b": b} for a, b in ROWS]
    again = changed + with_user_metadata(changed[-tail_length(changed[-LONGEST_POSTSCRIPT:]) :], {"third": b"3"})
    assert pyorc.Reader(io.BytesIO(again)).user_metadata == {"old": b"kept", **items, "third": b"3"}


@pytest.mark.parametrize("content", [b"", b"ORC", b"no ORC file", b"\x00" * 300, b"\xffORC\x04", b"\x0bORC\x04"])
def test_other_files_are_refused(content: bytes) -> None:
    with pytest.raises(NotOrc):
        tail_length(content)
