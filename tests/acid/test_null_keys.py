"""Maps with null keys are found by the ends of files, never read by Arrow, and copied as they are."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyorc
import pytest

from metastore.acid.buckets.buckets import Bucket, Original
from metastore.acid.orc.orc_files import event_schema, null_key_places, open_orc, read_events, read_original
from metastore.acid.rewriting.rewriting import CanNotCopy, rewrite_rows
from metastore.acid.rewriting.row_copying import copy_rows
from metastore.acid.values.null_keys import NullKeys, has_maps, with_null_keys
from metastore.rules.transactions.acid_directories import SeenWriteIds
from tests.acid.test_rewriting import delete, form, insert, read, write

COLUMNS = [
    ("id", "int"), ("m", "map<string,int>"), ("s", "struct<a:array<map<int,string>>,b:int>"), ("d", "decimal(30,4)"), ("t", "timestamp"),
    ("day", "date"), ("c", "char(5)"), ("v", "varchar(5)"), ("x", "binary"), ("f", "float"), ("k", "map<date,map<decimal(5,2),timestamp>>"),
]  # fmt: skip
AT = datetime(1969, 12, 31, 23, 59, 58, 500_000, tzinfo=timezone.utc)
HELD: tuple[Any, ...] = (
    1, {None: 5, "x": 6}, ([{None: "a"}, None], 7), Decimal("-12345678901234567890.1200"), AT, date(1500, 3, 1), "ab   ", "c ", b"\0",
    0.5, {date(2024, 1, 1): {None: AT, Decimal("1.50"): None}},
)  # fmt: skip
PLAIN = (2, {"y": None}, ([], None), None, None, None, None, None, None, None, None)  # type: ignore[var-annotated]


def test_places_are_those_of_maps_whose_keys_may_be_null() -> None:
    kinds = [kind for _, kind in COLUMNS]
    numbers = {9: {1}, 14: {2}, 25: {10}, 27: {10}, 1: set(), 8: set(), 10: set()}
    for number, places in numbers.items():
        assert with_null_keys(kinds, 7, lambda each, number=number: each == number) == places, number  # type: ignore[misc]
    assert with_null_keys(kinds, 7, lambda _: True) == {1, 2, 10}
    assert has_maps(["int", "array<MAP<int,int>>"])
    assert not has_maps(["int", "struct<map:int>"])


@pytest.mark.parametrize("shielded", [frozenset(), frozenset({"m", "s", "k"})])
def test_other_columns_are_read(tmp_path: Path, shielded: frozenset[str]) -> None:
    path = write(tmp_path / "delta" / "bucket_00003", [insert(1, 0, *HELD), insert(1, 1, *PLAIN)], COLUMNS)
    assert null_key_places(open_orc(path), events=True) == {1, 2, 10}
    row = pa.struct([("c", pa.string()), ("id", pa.int32())])
    (batch,) = read_events(path, event_schema(row), "UTC", columns=COLUMNS, shielded=shielded)
    assert batch.column("row").to_pylist() == [{"c": "ab", "id": 1}, {"c": None, "id": 2}]
    wider = pa.struct([("id", pa.int32()), ("m", pa.map_(pa.string(), pa.int32()))])
    if shielded:
        (batch,) = read_events(path, event_schema(wider), "UTC", columns=COLUMNS, shielded=shielded)
        assert batch.column("row").to_pylist() == [{"id": 1, "m": None}, {"id": 2, "m": None}]
    else:
        with pytest.raises(NullKeys, match="column m has maps with null keys"):
            read_events(path, event_schema(wider), "UTC", columns=COLUMNS)


@pytest.mark.parametrize("columns", ["id int, m map<string,int>", "m map<string,int>"])
def test_files_of_rows_alone(tmp_path: Path, columns: str) -> None:
    path = tmp_path / "000000_0"
    kinds = [tuple(each.split(" ")) for each in columns.split(", ")]
    with path.open("wb") as file, pyorc.Writer(file, f"struct<{','.join(':'.join(each) for each in kinds)}>") as writer:
        writer.writerows([(7, {None: 1})[-len(kinds) :]] * 3)
    row = pa.struct([("id", pa.int32())] if len(kinds) > 1 else [("m", pa.map_(pa.string(), pa.int32()))])
    shielded = frozenset({"m"})
    (batch,) = read_original(Original(str(path), 0, 5), event_schema(row), "UTC", columns=kinds, shielded=shielded)  # type: ignore[arg-type]
    assert batch.column("rowId").to_pylist() == [5, 6, 7]
    assert batch.column("row").to_pylist() == ([{"id": 7}] if len(kinds) > 1 else [{"m": None}]) * 3


def test_they_are_copied_in_order_without_deleted_rows(tmp_path: Path) -> None:
    first = [insert(1, row, *(HELD if row % 2 else PLAIN)) for row in range(25_000)]
    older = [("i", "int"), ("n", "map<string,int>")]  # at first the table had only these columns, with other names
    second = [insert(2, row, row, {None: row}) for row in range(3)] + [insert(3, 0, 9, None)]
    files = [
        (write(tmp_path / "b" / "bucket_00003", second, older), None),
        (write(tmp_path / "a" / "bucket_00003", first, COLUMNS), None),
    ]
    gone = write(tmp_path / "c" / "bucket_00003", [delete(1, 0, 4), delete(2, 1, 4), delete(1, 24_999, 4)])
    wanted = form(tmp_path, COLUMNS, SeenWriteIds(4, aborted=frozenset({3})))
    with pytest.raises(NullKeys):
        rewrite_rows(wanted, Bucket(3, files, [gone]), "out")
    out = copy_rows(wanted, Bucket(3, files, [gone]), "out")
    missing = (None,) * (len(COLUMNS) - 2)
    assert read(out) == first[1:-1] + [insert(2, row, row, {None: row}, *missing) for row in (0, 2)]


@pytest.mark.parametrize(
    ("there", "match"),
    [([("id", "int"), ("m", "map<string,bigint>")], "columns of other types"), ([*COLUMNS, ("z", "int")], "columns of other types")],
)
def test_files_of_another_form_are_not_copied(tmp_path: Path, there: list[tuple[str, str]], match: str) -> None:
    values = [None] * (len(there) - 2)
    path = write(tmp_path / "delta" / "bucket_00003", [insert(1, 0, 1, {None: 5}, *values)], there)
    with pytest.raises(CanNotCopy, match=match):
        copy_rows(form(tmp_path, COLUMNS), Bucket(3, [(path, None)]), "out")
    unsorted = [insert(1, 1, 1, {None: 5}), insert(1, 0, 1, {None: 5})]
    path = write(tmp_path / "other" / "bucket_00003", unsorted, COLUMNS[:2])
    with pytest.raises(CanNotCopy, match="not sorted"):
        copy_rows(form(tmp_path, COLUMNS[:2]), Bucket(3, [(path, None)]), "out")
