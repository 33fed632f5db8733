"""The footer of an ORC file of any writer: rows of each stripe, bounds of numbers, days and times, and the calendar."""

from __future__ import annotations

import io
from datetime import date, datetime, timezone

import pyarrow as pa
import pyorc
import pytest
from pyarrow import orc

from metastore.acid.orc.orc_footer import DATE, TIMESTAMPS, FooterColumn, footer_of
from metastore.acid.orc.orc_tail import tail_length
from metastore.acid.orc.protobuf import fields, varint
from metastore.acid.rewriting.rewriting import CanNotCopy, _check_values

KIND = "struct<a:bigint,b:date,c:timestamp,d:array<date>,e:string>"


def written(*rows: tuple[object, ...], stripe: int = 1 << 26) -> bytes:
    out = io.BytesIO()
    with pyorc.Writer(out, KIND, compression=pyorc.CompressionKind.NONE, stripe_size=stripe, batch_size=100) as writer:
        writer.writerows(rows)
    return out.getvalue()


def opened(content: bytes) -> orc.ORCFile:
    return orc.ORCFile(pa.BufferReader(content))


def proleptic(content: bytes) -> bytes:
    """Return the file with a footer that declares days of the proleptic calendar."""
    added = varint(11 << 3) + varint(2)
    length = content[-1]
    postscript = b"".join(
        varint(1 << 3) + varint(field.value + len(added)) if field.number == 1 else field.raw for field in fields(content[-1 - length : -1])
    )
    return content[: -1 - length] + added + postscript + bytes([len(postscript)])


def test_bounds() -> None:
    early = datetime(1960, 1, 1, tzinfo=timezone.utc)
    late = datetime(2024, 1, 1, tzinfo=timezone.utc)
    rows = [(-5, date(1970, 1, 3), late, [], "x"), (7, date(1969, 12, 30), early, [date(1970, 1, 2), None], None)]
    footer = footer_of(opened(written(*rows)))
    assert (footer.stripes, footer.is_proleptic) == ([2], False)
    kinds = [column.kind for column in footer.columns]
    assert (kinds[2], kinds[3] in TIMESTAMPS, kinds[5]) == (DATE, True, DATE)
    assert footer.columns[1] == FooterColumn(kinds[1], 2, -5, 7, has_null=False)
    assert footer.columns[2] == FooterColumn(DATE, 2, -2, 2, has_null=False)
    assert footer.columns[3] == FooterColumn(kinds[3], 2, int(early.timestamp() * 1000), int(late.timestamp() * 1000), has_null=False)
    assert footer.columns[5] == FooterColumn(DATE, 1, 1, 1, has_null=True)
    assert footer.columns[6].values == 1


def test_stripes() -> None:
    content = written(*((number, None, None, None, str(number)) for number in range(5_000)), stripe=1 << 12)
    file = opened(content)
    stripes = footer_of(file).stripes
    assert len(stripes) == file.nstripes > 2
    assert stripes == [file.read_stripe(number).num_rows for number in range(file.nstripes)]


@pytest.mark.parametrize(("day", "copied"), [(date(1582, 10, 16), True), (date(1582, 10, 1), False)])
def test_old_days_of_the_other_calendar_are_not_copied(day: date, copied: bool) -> None:
    plain = written((1, day, None, None, None))
    other = footer_of(opened(proleptic(plain)))
    assert other.is_proleptic
    assert tail_length(proleptic(plain)) == tail_length(plain) + 2
    _check_values("f", footer_of(opened(plain)))
    if copied:
        _check_values("f", other)
    else:
        with pytest.raises(CanNotCopy, match="calendar"):
            _check_values("f", other)
