"""A bucket's files become one file with the same values in the order of their ids, or are left to Spark with the reason."""

from __future__ import annotations

import io
import random
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyorc
import pytest
from pyarrow import orc
from pyorc.converters import ORCConverter

from metastore.acid.buckets import buckets
from metastore.acid.buckets.buckets import Bucket, Original
from metastore.acid.orc.orc_files import event_schema
from metastore.acid.rewriting.bucket_files import event_type
from metastore.acid.rewriting.event_file import CODECS, EventWriter, OrcOptions
from metastore.acid.rewriting.rewriting import CanNotCopy, Form, rewrite_deletes, rewrite_rows
from metastore.rules.transactions.acid_directories import SeenWriteIds

NUMBER = buckets.encode(3)
COLUMNS = [("id", "int"), ("v", "string")]
Event = tuple[int, int, int, int, int, Any]
ALL = SeenWriteIds(1000)


def insert(write_id: int, row: int, *values: Any, number: int = NUMBER, writer: int | None = None) -> Event:
    return 0, write_id, number, row, write_id if writer is None else writer, values


def delete(write_id: int, row: int, writer: int, number: int = NUMBER) -> Event:
    return 2, write_id, number, row, writer, None


def write(path: Path, events: Sequence[Event], columns: Sequence[tuple[str, str]] = COLUMNS) -> str:
    """Write events as another writer does; return the path."""
    path.parent.mkdir(exist_ok=True)
    with path.open("wb") as file, pyorc.Writer(file, event_type(columns)) as writer:
        writer.writerows(events)
    return str(path)


def form(
    folder: Path, columns: Sequence[tuple[str, str]] = COLUMNS, write_ids: SeenWriteIds = ALL, zone: str = "UTC", **sizes: Any
) -> Form:
    return Form(list(columns), OrcOptions(**sizes), write_ids, (zone,), str(folder))


def read(path: str) -> list[Event]:
    """Read a file with another reader than PyArrow's, and check the metadata about stripes and events at its end."""
    file = orc.ORCFile(path)
    assert file.nstripe_statistics == file.nstripes
    with Path(path).open("rb") as stream:
        reader = pyorc.Reader(stream)
        rows = list(reader)
        ends = [stripe.row_offset + len(stripe) - 1 for stripe in reader.iter_stripes()]
        metadata = reader.user_metadata
    assert metadata["hive.acid.key.index"].decode() == "".join("{},{},{};".format(*rows[end][1:4]) for end in ends)
    deletes = sum(row[0] == 2 for row in rows)
    assert metadata["hive.acid.stats"].decode() == (f"0,0,{deletes}" if deletes else f"{len(rows)},0,0")
    assert metadata["hive.acid.version"] == b"2"
    return rows


def copied(folder: Path, events: Sequence[Event], columns: Sequence[tuple[str, str]], **given: Any) -> list[Event]:
    path = write(folder / "delta" / "bucket_00003", events, columns)
    return read(rewrite_rows(form(folder, columns, **given), Bucket(3, [(path, None)]), "out"))


@pytest.mark.parametrize("codec", sorted(CODECS))
def test_many_stripes_have_the_last_id_of_each(tmp_path: Path, codec: str) -> None:
    events = [insert(1 + row // 7_000, row % 7_000, row, f"{random.Random(row).random()}") for row in range(30_000)]
    path = write(tmp_path / "delta" / "bucket_00003", events)
    small = form(tmp_path, codec=codec, stripe=1 << 14, stride=1_000, block=1 << 14)
    out = rewrite_rows(small, Bucket(3, [(path, None)]), "out")
    assert read(out) == events
    assert orc.ORCFile(out).nstripes > 3
    assert orc.ORCFile(out).compression == CODECS[codec].upper()


def test_files_are_put_in_order_and_deleted_and_invalid_rows_left_out(tmp_path: Path) -> None:
    other = buckets.encode(3, 1)
    parts = [
        [insert(9, row, row, "d") for row in range(4)],
        [insert(2, row, row, "b", number=other) for row in range(3)],
        [insert(2, row, row, "a") for row in range(3)],
        [insert(5, row, row, None) for row in range(2)] + [insert(7, 0, 0, "aborted")],
    ]
    inserts = [write(tmp_path / f"delta{place}" / "bucket_00003", events) for place, events in enumerate(parts)]
    gone = [
        write(tmp_path / "delete0" / "bucket_00003", [delete(2, 1, 3), delete(2, 2, 3, other), delete(9, 1, 10)]),
        write(tmp_path / "delete1" / "bucket_00003", [delete(2, 0, 7), delete(5, 1, 8), delete(6, 1, 8), delete(9, 0, 12)]),
    ]
    found = Bucket(3, [(path, None) for path in inserts], gone)
    rows = read(rewrite_rows(form(tmp_path, write_ids=SeenWriteIds(11, aborted=frozenset({7}))), found, "out"))
    want = [*parts[2], *parts[1], *parts[3], *parts[0]]
    lost = {(2, NUMBER, 1), (2, other, 2), (5, NUMBER, 1), (7, NUMBER, 0), (9, NUMBER, 1)}
    assert rows == [event for event in want if event[1:4] not in lost]


def test_a_bucket_of_which_nothing_is_left_is_an_empty_file(tmp_path: Path) -> None:
    path = write(tmp_path / "delta" / "bucket_00003", [insert(1, 0, 7, "x")])
    gone = write(tmp_path / "delete" / "bucket_00003", [delete(1, 0, 2)])
    assert read(rewrite_rows(form(tmp_path), Bucket(3, [(path, None)], [gone]), "out")) == []


def test_delete_events_of_several_files_are_sorted(tmp_path: Path) -> None:
    random_ = random.Random(5)
    ids = random_.sample([(write_id, row) for write_id in range(1, 40) for row in range(60)], 1_500)
    events = [delete(write_id, row, random_.randrange(40, 60)) for write_id, row in ids]
    parts = [sorted(events[place::3], key=lambda event: event[1:4]) for place in range(3)]
    paths = [write(tmp_path / f"delete{place}" / "bucket_00003", part) for place, part in enumerate(parts)]
    seen = SeenWriteIds(57, aborted=frozenset({45}))
    rows = read(rewrite_deletes(form(tmp_path, write_ids=seen), Bucket(3, deletes=paths), "out"))
    assert rows == sorted((event for event in events if event[4] != 45 and event[4] <= 57), key=lambda event: event[1:4])


VALUES: list[tuple[str, list[Any]]] = [
    ("boolean", [True, False, None]),
    ("tinyint", [-128, 127, None]),
    ("smallint", [-32768, 32767, None]),
    ("int", [-(2**31), 2**31 - 1]),
    ("bigint", [-(2**63), 2**63 - 1, None]),
    ("float", [0.5, -1.25, None]),
    ("double", [1e300, -0.0, None]),
    ("string", ["", "ä€𝄞", " padded ", None]),
    ("varchar(9)", ["", "abc ", None]),
    ("binary", [b"", b"\x00\xff", None]),
    ("decimal(38,10)", [Decimal("-1234567890123456789012345678.0123456789"), Decimal("0E-10"), None]),
    ("decimal(9,2)", [Decimal("-1.50"), None]),
    ("timestamp", [datetime(1970, 1, 4), datetime(2024, 2, 29, 1, 2, 3, 456789), datetime(2261, 1, 1), None]),  # noqa: DTZ001  # wall-clock
    ("date", [date(1, 1, 1), date(1500, 2, 28), date(1970, 1, 1), date(9999, 12, 31), None]),
    ("array<int>", [[], [1, None, 3], None]),
    ("map<string,int>", [{}, {"a": 1, "b": None}, None]),
    (
        "struct<a:int,b:array<struct<c:string,d:timestamp>>>",
        [
            (1, [("x", datetime(2000, 1, 1)), None]),  # noqa: DTZ001
            (None, None),
            None,
            (2, []),  # wall-clock
        ],
    ),
]


@pytest.mark.parametrize(("kind", "values"), VALUES, ids=[kind for kind, _ in VALUES])
def test_values_keep_their_types(tmp_path: Path, kind: str, values: list[Any]) -> None:
    events = [insert(1, row, row, values[row % len(values)]) for row in range(25)]
    path = tmp_path / "delta" / "bucket_00003"
    write(path, events, [("id", "int"), ("v", kind)])
    (stored,) = orc.ORCFile(path).read().column("row").chunks
    out = rewrite_rows(form(tmp_path, [("id", "int"), ("v", kind)]), Bucket(3, [(str(path), None)]), "out")
    assert orc.ORCFile(out).read().column("row").combine_chunks().equals(stored)
    assert read(out) == read_plainly(path)


def read_plainly(path: Path) -> list[Event]:
    with path.open("rb") as file:
        return list(pyorc.Reader(file))


def test_nanoseconds_stay(tmp_path: Path) -> None:
    schema = event_schema(pa.struct([("v", pa.timestamp("ns"))]))
    moments = pa.array([1_700_000_000_123_456_789, 259_200_000_000_001], pa.int64()).cast(pa.timestamp("ns"))
    columns = [[0, 0], [1, 1], [NUMBER, NUMBER], [0, 1], [1, 1]]
    batch = pa.record_batch([*columns, pa.StructArray.from_arrays([moments], ["v"])], schema=schema)
    orc.write_table(pa.Table.from_batches([batch]), tmp_path / "bucket_00003")
    out = rewrite_rows(form(tmp_path, [("v", "timestamp")]), Bucket(3, [(str(tmp_path / "bucket_00003"), None)]), "out")
    assert orc.ORCFile(out).read().to_pylist() == batch.to_pylist()


MOMENTS = [
    -630_720_000_000_000_123, -630_719_999_876_543_211, -1_500_000_000, -1_000_000_000, 0, 1, 1_700_000_000_123_456_789, None,
]  # fmt: skip
"""Nanoseconds since 1970; ORC has no place for the last second before it."""


class AsNumber(ORCConverter):
    """Times as pyorc reads them: seconds and nanoseconds."""

    @staticmethod
    def from_orc(*given: Any) -> Any:
        return given[0] * 1_000_000_000 + given[1]

    @staticmethod
    def to_orc(*given: Any) -> Any:
        return divmod(given[0], 1_000_000_000)


def test_nanoseconds_before_1970_stay(tmp_path: Path) -> None:
    """Times in many stripes by ORC's own writer keep their nanoseconds. Days stay days of the file's calendar."""
    columns = [
        ("v", "timestamp"), ("w", "array<timestamp>"), ("d", "date"), ("c", "char(5)"), ("n", "decimal(20,3)"), ("s", "struct<a:int>"),
    ]  # fmt: skip
    events = [
        insert(1 + row // 7_000, row % 7_000, MOMENTS[row % 8], [MOMENTS[row % 8]], date(1400, 1, 1), "ab", Decimal("-1.5"), (row,))
        for row in range(20_000)
    ]
    path = tmp_path / "delta" / "bucket_00003"
    path.parent.mkdir()
    with path.open("wb") as file, pyorc.Writer(file, event_type(columns), converters={pyorc.TypeKind.TIMESTAMP: AsNumber}) as writer:
        writer.writerows(events)
    small = form(tmp_path, columns, stripe=1 << 14, stride=1_000, block=1 << 14)
    out = rewrite_rows(small, Bucket(3, [(str(path), None)]), "out")
    assert orc.ORCFile(out).nstripes > 1
    assert len(read(out)) == len(events)
    for each in (path, Path(out)):
        with each.open("rb") as file:  # type: ignore[assignment]
            found = list(pyorc.Reader(file, converters={pyorc.TypeKind.TIMESTAMP: AsNumber}))
        assert [row[:5] for row in found] == [row[:5] for row in events]
        assert [row[5][:2] for row in found] == [(MOMENTS[row % 8], [MOMENTS[row % 8]]) for row in range(20_000)]
        assert {row[5][2:5] for row in found} == {(found[0][5][2], "ab   ", Decimal("-1.500"))}
    assert read_plainly(path)[0][5][2] == read_plainly(Path(out))[0][5][2] == date(1400, 1, 1)


def test_columns_go_by_position(tmp_path: Path) -> None:
    """Columns get the table's names. Fields of structs are matched by name; where they differ, the file is left to Spark."""
    there = [("a", "int"), ("id", "string"), ("z", "struct<q:int>")]
    old = write(tmp_path / "delta1" / "bucket_00003", [insert(1, 0, 7, "x", None)], there)
    table = [("id", "int"), ("a", "string"), ("s", "struct<q:int>"), ("z", "int")]
    out = rewrite_rows(form(tmp_path, table), Bucket(3, [(old, None)]), "out")
    assert read(out) == [insert(1, 0, 7, "x", None, None)]
    assert [field.name for field in orc.ORCFile(out).schema.field("row").type] == ["id", "a", "s", "z"]
    with pytest.raises(CanNotCopy, match="columns of other types"):
        rewrite_rows(form(tmp_path, [*table[:2], ("s", "struct<r:int>")]), Bucket(3, [(old, None)]), "out")


def test_the_padding_of_chars_goes_where_a_file_knows_texts_alone(tmp_path: Path) -> None:
    columns = [("c", "char(5)"), ("v", "varchar(5)"), ("s", "struct<c:char(3)>"), ("m", "map<string,array<char(2)>>")]
    rows = [("ab", "ab ", ("x",), {"k": ["y", None]}), (None, None, None, None), ("", "", (None,), {})]
    path = write(tmp_path / "delta" / "bucket_00003", [insert(1, place, *row) for place, row in enumerate(rows)], columns)
    out = rewrite_rows(form(tmp_path, columns), Bucket(3, [(path, None)]), "out")
    assert [event[5] for event in read(out)] == rows


def test_columns_that_were_added_are_null(tmp_path: Path) -> None:
    old = write(tmp_path / "delta1" / "bucket_00003", [insert(1, 0, 7)], [("id", "int")])
    new = write(tmp_path / "delta2" / "bucket_00003", [insert(2, 0, 8, "x", None)], [*COLUMNS, ("w", "array<int>")])
    rows = read(rewrite_rows(form(tmp_path, [*COLUMNS, ("w", "array<int>")]), Bucket(3, [(new, None), (old, None)]), "out"))
    assert rows == [insert(1, 0, 7, None, None), insert(2, 0, 8, "x", None)]


def original(path: Path, names: str, rows: Sequence[tuple[Any, ...]]) -> str:
    with path.open("wb") as file, pyorc.Writer(file, names) as writer:
        writer.writerows(rows)
    return str(path)


@pytest.mark.parametrize("names", ["struct<id:int,v:string>", "struct<_col0:int,_col1:string>"])
def test_files_from_before_come_first(tmp_path: Path, names: str) -> None:
    first = original(tmp_path / "000003_0", names, [(1, "a"), (2, "b")])
    second = original(tmp_path / "000003_0_copy_1", names, [(3, None)])
    later = write(tmp_path / "delta" / "bucket_00003", [insert(1, 0, 4, "d")])
    gone = write(tmp_path / "delete" / "bucket_00003", [delete(0, 1, 2)])
    found = Bucket(3, [(later, None)], [gone], [Original(first, 3, 0), Original(second, 3, 2)])
    assert read(rewrite_rows(form(tmp_path), found, "out")) == [insert(0, 0, 1, "a"), insert(0, 2, 3, None), insert(1, 0, 4, "d")]


def test_a_growing_file_is_read_up_to_its_length(tmp_path: Path) -> None:
    out = io.BytesIO()
    writer = pyorc.Writer(out, event_type(COLUMNS), batch_size=1)
    writer.writerows([insert(1, 0, 1, "a"), insert(2, 0, 2, "b")])
    length = writer.write_intermediate_footer()
    writer.write(insert(3, 0, 3, "c"))
    (tmp_path / "bucket_00003").write_bytes(out.getvalue() + b"not flushed")
    found = Bucket(3, [(str(tmp_path / "bucket_00003"), length)])
    assert read(rewrite_rows(form(tmp_path), found, "out")) == [insert(1, 0, 1, "a"), insert(2, 0, 2, "b")]


def at(*moments: datetime) -> list[Event]:
    return [insert(1, row, moment) for row, moment in enumerate(moments)]


@pytest.mark.parametrize(
    ("columns", "events", "reason"),
    [
        ([("v", "timestamp")], at(datetime(1677, 12, 31, 23)), "before 1678"),  # noqa: DTZ001  # wall-clock
        ([("v", "timestamp")], at(datetime(2263, 1, 1)), "after 2261"),  # noqa: DTZ001  # wall-clock
        ([("v", "timestamp")], at(datetime(2024, 11, 3, 1, 30)), "a time twice"),  # noqa: DTZ001  # wall-clock
        (COLUMNS, [insert(1, 1, 1, "a"), insert(1, 0, 2, "b")], "not sorted"),
        (COLUMNS, [insert(1, 1, 1, "a"), insert(1, 1, 2, "b")], "not sorted"),
        (COLUMNS, [delete(1, 0, 2)], "beside the rows"),
    ],
    ids=["long ago", "far ahead", "twice", "unsorted", "same id", "delete event"],
)
def test_events_that_are_not_copied(tmp_path: Path, columns: list[tuple[str, str]], events: list[Event], reason: str) -> None:
    with pytest.raises(CanNotCopy, match=reason):
        copied(tmp_path, events, columns, zone="America/New_York")


@pytest.mark.parametrize(
    ("there", "wanted", "reason"),
    [
        ([("id", "int")], [("id", "bigint")], "int64"),
        (COLUMNS, [("v", "string"), ("id", "int")], "columns of other types"),
        (COLUMNS, [("id", "int")], "columns of other types"),
        ([("d", "decimal(9,2)")], [("d", "decimal(10,2)")], "decimal128"),
        ([("id", "int")], [("id", "uniontype<int,string>")], "uniontype"),
    ],
)
def test_tables_whose_columns_changed(tmp_path: Path, there: list[tuple[str, str]], wanted: list[tuple[str, str]], reason: str) -> None:
    path = write(tmp_path / "delta" / "bucket_00003", [insert(1, 0, *([None] * len(there)))], there)
    with pytest.raises(CanNotCopy, match=reason):
        rewrite_rows(form(tmp_path, wanted), Bucket(3, [(path, None)]), "out")


def test_files_that_overlap(tmp_path: Path) -> None:
    parts = [[insert(1, 0, 1, "a"), insert(3, 0, 3, "c")], [insert(2, 0, 2, "b")]]
    inserts = [(write(tmp_path / f"delta{place}" / "bucket_00003", events), None) for place, events in enumerate(parts)]
    with pytest.raises(CanNotCopy, match="overlap"):
        rewrite_rows(form(tmp_path), Bucket(3, inserts), "out")


def test_a_codec_that_is_not_known(tmp_path: Path) -> None:
    with pytest.raises(CanNotCopy, match="lzo"):
        rewrite_rows(form(tmp_path, codec="lzo"), Bucket(3), "out")


def test_a_slice_is_refused() -> None:
    schema = event_schema(pa.struct([("v", pa.int32())]))
    batch = pa.record_batch([[0] * 4, [1] * 4, [NUMBER] * 4, [0, 1, 2, 3], [1] * 4, [{"v": each} for each in range(4)]], schema=schema)
    with pytest.raises(ValueError, match="slice"), EventWriter(io.BytesIO(), schema, OrcOptions(), deletes=False) as writer:
        writer.write(batch.slice(2))


class Full(io.BytesIO):
    """A stream that takes a limited number of bytes."""

    def __init__(self, left: int) -> None:
        super().__init__()
        self._left = left

    def write(self, data: Any) -> int:
        self._left -= len(data)
        if self._left < 0:
            raise OSError("no space left")
        return super().write(data)


@pytest.mark.parametrize("left", [0, 20, 100_000, 200_000, 300_000])
def test_a_stream_that_refuses_is_an_error(left: int) -> None:
    schema = event_schema(pa.struct([("v", pa.binary())]))
    count = 20_000
    row = pa.StructArray.from_arrays([pa.array([random.Random(each).randbytes(16) for each in range(count)])], ["v"])
    same = [pa.array([value] * count, kind) for value, kind in ((0, pa.int32()), (1, pa.int64()), (NUMBER, pa.int32()))]
    batch = pa.record_batch([*same, pa.array(range(count), pa.int64()), same[1], row], schema=schema)
    with (
        pytest.raises(OSError, match="no space left"),
        Full(left) as stream,
        EventWriter(stream, schema, OrcOptions(stripe=1 << 17), deletes=False) as writer,
    ):
        writer.write(batch)
