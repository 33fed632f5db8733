"""Records of each form become the table's columns exactly, or are refused with the name of what does not fit."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metastore.acid.bucket_files import as_numbers
from metastore.streaming import BadRecord, Delimited, Rows, StrictJson
from metastore.streaming.records import Columns

COLUMNS = Columns("db.t", [
    ("ok", "boolean"), ("small", "tinyint"), ("id", "int"), ("ratio", "double"), ("price", "decimal(8,2)"), ("name", "varchar(20)"),
    ("data", "binary"), ("day", "date"), ("at", "timestamp"), ("list", "array<date>"), ("map", "map<string,decimal(5,1)>"),
    ("nested", "struct<a:int,b:array<struct<c:timestamp>>>"),
])  # fmt: skip


def one(writer: Any, record: Any) -> dict[str, Any]:
    (found,) = writer.rows(record, COLUMNS).to_pylist()
    return {name: value for name, value in found.items() if value is not None}


def test_a_json_record_of_every_type() -> None:
    text = (
        '{"OK": true, "small": -128, "id": 7, "ratio": 1, "price": 12.5, "name": "x", "data": "AP8=", "day": "2024-02-29",'
        ' "at": "2024-02-29T01:02:03.000004", "list": ["2024-01-01", null], "map": {"a": "1.5"},'
        ' "nested": {"A": 1, "b": [{"c": "2024-01-01 00:00:00"}]}}'
    )
    assert one(StrictJson(), text.encode()) == {
        "ok": True, "small": -128, "id": 7, "ratio": 1.0, "price": Decimal("12.50"), "name": "x", "data": b"\0\xff",
        "day": date(2024, 2, 29), "at": datetime(2024, 2, 29, 1, 2, 3, 4), "list": [date(2024, 1, 1), None], "map": [("a", Decimal("1.5"))],  # noqa: DTZ001
        "nested": {"a": 1, "b": [{"c": datetime(2024, 1, 1)}]},  # noqa: DTZ001  # no zone, as in Hive
    }
    assert one(StrictJson(), "{}") == {}


@pytest.mark.parametrize("text", [
    '{"id": "7"}', '{"id": 7.0}', '{"id": true}', '{"id": 3000000000}', '{"small": 128}', '{"ok": 1}', '{"ok": "true"}', '{"name": 7}',
    '{"ratio": "1"}', '{"price": 1.234}', '{"price": 1234567.0}', '{"price": "x"}', '{"price": true}', '{"day": "2024-02-30"}',
    '{"day": 5}', '{"at": "now"}', '{"at": "2024-01-01T00:00:00+01:00"}', '{"data": "?"}', '{"list": {"a": 1}}', '{"list": [1]}',
    '{"map": [1]}', '{"nested": {"z": 1}}', '{"nested": {"a": 1.5}}', '{"nested": 1}', '{"unknown": 1}', "{", "[]", "7", '{"id": NaN}',
])  # fmt: skip
def test_json_that_does_not_fit(text: str) -> None:
    with pytest.raises(BadRecord, match=r"db\.t"):
        StrictJson().rows(['{"id": 1}', text], COLUMNS)


def test_delimited_lines() -> None:
    writer = Delimited("|", ["ID", "name", "price", "day", "at", "ok", "ratio"])
    line = "7||1.50|2024-02-29|2024-02-29 01:02:03.5|true|-1e3\n"
    assert one(writer, line) == {
        "id": 7, "name": "", "price": Decimal("1.50"), "day": date(2024, 2, 29),
        "at": datetime(2024, 2, 29, 1, 2, 3, 500000), "ok": True, "ratio": -1000.0,  # noqa: DTZ001  # no zone, as in Hive
    }
    assert one(writer, b"|\\N|||||") == {}
    assert len(writer.rows([line, line.encode()], COLUMNS)) == 2
    assert len(writer.rows([], COLUMNS)) == 0


@pytest.mark.parametrize("line", ["7", "7|a|b", "x|a", "7.0|a", b"7|\xff"])
def test_lines_that_do_not_fit(line: str | bytes) -> None:
    with pytest.raises(BadRecord, match=r"db\.t"):
        Delimited("|", ["id", "name"]).rows(["1|a", line], COLUMNS)
    with pytest.raises(BadRecord, match="has no column other"):
        Delimited("|", ["id", "other"]).rows("1|a", COLUMNS)
    with pytest.raises(BadRecord, match="use JSON"):
        Delimited("|", ["list"]).rows("1", COLUMNS)


def test_arrow() -> None:
    table = pa.table({"ID": pa.array([1, 2], pa.int64()), "name": ["a", None]})
    assert Rows().rows(table, COLUMNS).column("id").to_pylist() == [1, 2]
    assert len(Rows().rows(table[:0], COLUMNS)) == 0
    for wrong in ({"id": [1.5]}, {"id": [2**40]}, {"other": [1]}, {"small": [128]}):
        with pytest.raises(BadRecord, match=r"db\.t"):
            Rows().rows(pa.table(wrong), COLUMNS)


@given(st.lists(st.one_of(st.none(), st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-10**33, max_value=10**33))))
def test_decimals_are_the_numbers_that_orc_keeps(values: list[Decimal | None]) -> None:
    array = pa.array([None, *values], pa.decimal128(38, 4))[1:]
    assert as_numbers(array) == [None if value is None else int(f"{value:.4f}".replace(".", "")) for value in values]


def test_a_moment_with_a_zone_is_refused() -> None:
    with pytest.raises(BadRecord, match="has a zone"):
        Rows().rows({"at": datetime(2024, 1, 1, tzinfo=timezone.utc)}, COLUMNS)
