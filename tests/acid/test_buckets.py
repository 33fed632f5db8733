"""The number of a row's bucket, the bucket that the rows of a file name, and the order in which Hive numbers original files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import orc

from metastore.acid.buckets import buckets
from metastore.acid.files import FsspecFiles
from metastore.acid.orc.orc_files import event_schema
from metastore.acid.orc.own_bucket import Named, footer_at_end, is_of, named
from metastore.acid.rewriting.event_file import EventWriter, OrcOptions

FIRST = buckets.encode(0)


@pytest.mark.parametrize(
    ("numbers", "bucket", "wrong_in"),
    [
        ([buckets.encode(3), buckets.encode(3, 4095)], 3, {0, 4}),
        ([3], 3, {0}),
        ([buckets.encode(0), buckets.encode(1)], None, {0, 1, 2}),
        ([0, 1], None, {0, 1}),
        ([1, buckets.encode(0), buckets.encode(1)], None, {0}),  # numbers of both encodings: those between them are not known
        ([4095, buckets.encode(4095, 7)], None, {0}),
    ],
)
def test_the_bucket_that_a_file_names_in_its_statistics(tmp_path: Path, numbers: list[int], bucket: int | None, wrong_in: set[int]) -> None:
    path = str(tmp_path / "file")
    schema = event_schema(pa.struct([("id", pa.int32()), ("text", pa.string())]))
    rows = [{"id": number, "text": "x" * 50} for number in range(len(numbers))]
    columns = [[0] * len(numbers), [1] * len(numbers), numbers, range(len(numbers)), [1] * len(numbers), rows]
    batch = pa.record_batch([pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)], schema=schema)
    with Path(path).open("wb") as stream, EventWriter(stream, schema, OrcOptions(), deletes=False) as writer:
        writer.write(batch)
    found = named(footer_at_end(lambda size: FsspecFiles().read_end(path, size)))
    assert found == Named(min(numbers), max(numbers))
    assert found.bucket == bucket
    assert {own for own in range(5) if found.is_wrong(own)} >= wrong_in
    assert all(not found.is_wrong(buckets.decode(number)) for number in numbers if bucket is not None)
    for each in range(5):
        assert is_of(np.array(numbers, dtype=np.int32), each).tolist() == [buckets.decode(number) == each for number in numbers]


def test_a_long_end_and_a_file_without_rows(tmp_path: Path) -> None:
    """The end of a file of a thousand columns is longer than the part that is read first."""
    path = str(tmp_path / "file")
    schema = event_schema(pa.struct([(f"column_with_a_long_name_{number}", pa.int32()) for number in range(1000)]))
    row = {field.name: 1 for field in schema.field("row").type}
    for count in (0, 1):
        values = [0, 1, FIRST, 0, 1, row]
        columns = [pa.array([value] * count, field.type) for value, field in zip(values, schema, strict=True)]
        with Path(path).open("wb") as stream, EventWriter(stream, schema, OrcOptions("none"), deletes=False) as writer:
            if count:
                writer.write(pa.record_batch(columns, schema=schema))
        asked: list[int] = []

        def read_end(size: int, asked: list[int] = asked) -> bytes:
            asked.append(size)
            return FsspecFiles().read_end(path, size)

        footer = footer_at_end(read_end)
        assert len(footer.columns) == 1007
        assert len(asked) == 2
        assert named(footer) == (Named(FIRST, FIRST) if count else None)
        assert orc.ORCFile(path).nrows == count


def test_original_files_stand_in_the_order_of_their_paths_as_java_compares_them() -> None:
    """`tests/hive4/test_original_files.py` shows the same order by Hive's row ids."""
    ordered = [
        "\u3000x/000000_0", "000000_0", "000000_0_copy_1", "000000_0_copy_10", "000000_0_copy_11", "000000_0_copy_2", "000000_0_copy_9",
        "000000_0x/000000_0", "000000_1", "00000_0", "0_0",
        "HIVE_UNION_SUBDIR_1/000000_0", "HIVE_UNION_SUBDIR_10/000000_0", "HIVE_UNION_SUBDIR_2/000000_0",
        "a!b/000000_0", "a$b/000000_0", "a b/000000_0", "a%b/000000_0", "a[b/000000_0", "a-/000000_0", "a/000000_0", "b/000000_0",
        "~x/000000_0", "é/000000_0", "\U0001f600/000000_0", "\uffe6/000000_0",
    ]  # fmt: skip
    assert sorted(sorted(ordered), key=buckets.hive_order) == ordered


def test_more_buckets_than_row_ids_distinguish() -> None:
    buckets.check_count("db.t", 4096)
    with pytest.raises(buckets.TooManyBuckets, match=r"db\.t has 4097 buckets, and row ids can number only 4096"):
        buckets.check_count("db.t", 4097)
