"""Records of each form become the table's columns exactly, or are refused with the name of the part that does not fit."""

from __future__ import annotations

import json
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metastore.acid.rewriting.bucket_files import as_numbers
from metastore.streaming import BadRecord, Delimited, Rows, StrictJson
from metastore.streaming.records import RecordColumns

COLUMNS = RecordColumns("db.t", [
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
        "ok": True,
        "small": -128,
        "id": 7,
        "ratio": 1.0,
        "price": Decimal("12.50"),
        "name": "x",
        "data": b"\0\xff",
        "day": date(2024, 2, 29),
        "at": datetime(2024, 2, 29, 1, 2, 3, 4),  # noqa: DTZ001
        "list": [date(2024, 1, 1), None],
        "map": [("a", Decimal("1.5"))],
        "nested": {"a": 1, "b": [{"c": datetime(2024, 1, 1)}]},  # noqa: DTZ001  # no zone, as in Hive
    }
    assert one(StrictJson(), "{}") == {}


@pytest.mark.parametrize("text", [
    '{"id": "7"}', '{"id": 7.0}', '{"id": true}', '{"id": 3000000000}', '{"small": 128}', '{"ok": 1}', '{"ok": "true"}', '{"name": 7}',
    '{"ratio": "1"}', '{"price": 1.234}', '{"price": 1234567.0}', '{"price": true}', '{"day": "2024-02-30"}',
    '{"day": 5}', '{"at": "now"}', '{"at": "2024-01-01T00:00:00+01:00"}', '{"data": "?"}', '{"list": {"a": 1}}', '{"list": [1]}',
    '{"map": [1]}', '{"nested": {"z": 1}}', '{"nested": {"a": 1.5}}', '{"nested": 1}', '{"unknown": 1}', "{", "[]", "7", '{"id": NaN}',
])  # fmt: skip
def test_json_that_does_not_fit(text: str) -> None:
    with pytest.raises(BadRecord, match=r"db\.t"):
        StrictJson().rows(['{"id": 1}', text], COLUMNS)


@pytest.mark.parametrize(("record", "name"), [
    ('{"id": 1, "id": 2}', "id"), ('{"id": 1, "ID": 2}', "id"), ('{"nested": {"a": 1, "a": 2}}', "a"),
    ('{"nested": {"a": 1, "A": 2}}', "a"), ('{"map": {"k": 1, "k": 2}}', "k"), ({"id": 1, "Id": 2}, "id"),
    ({"nested": {"a": 1, "A": 2}}, "a"), ({"map": [("k", 1), ("k", 2)]}, "k"), (pa.table([[1], [2]], names=["id", "ID"]), "id"),
    (pa.table({"nested": [{"a": 1, "A": 2}]}), "a"),
])  # fmt: skip
def test_a_record_that_gives_a_value_twice(record: Any, name: str) -> None:
    with pytest.raises(BadRecord, match=rf"db\.t.*\b{name} is given twice"):
        (StrictJson() if isinstance(record, str) else Rows()).rows(record, COLUMNS)


def test_a_delimited_column_that_stands_twice() -> None:
    with pytest.raises(ValueError, match="id is given twice"):
        Delimited(names=["id", "name", "ID"])


@pytest.mark.parametrize("text", ["x", "1_000", "1e", "--1", "0x1p3"])
def test_a_text_that_is_no_number(text: str) -> None:
    with pytest.raises(BadRecord, match=rf"db\.t: column ratio, which is double: '{text}' is not a number"):
        Delimited("|", ["ratio"]).rows(text, COLUMNS)
    with pytest.raises(BadRecord, match=rf"db\.t: column price, which is decimal\(8,2\): '{text}' is not a number"):
        StrictJson().rows(json.dumps({"price": text}), COLUMNS)


def test_bytes_of_json_are_utf_8() -> None:
    assert one(StrictJson(), '\ufeff{"name": "é"}'.encode()) == {"name": "é"}
    with pytest.raises(BadRecord, match="is not JSON"):
        StrictJson().rows('{"id": 1}'.encode("utf-16"), COLUMNS)


def test_json_that_is_nested_without_end() -> None:
    with pytest.raises(BadRecord, match="is not JSON"):
        StrictJson().rows('{"list": ' + "[" * 1_000_000, COLUMNS)


def test_delimited_lines() -> None:
    writer = Delimited("|", ["ID", "name", "price", "day", "at", "ok", "ratio"])
    line = "7||1.50|2024-02-29|2024-02-29 01:02:03.5|true|-1e3\n"
    assert one(writer, line) == {
        "id": 7,
        "name": "",
        "price": Decimal("1.50"),
        "day": date(2024, 2, 29),
        "at": datetime(2024, 2, 29, 1, 2, 3, 500000),  # noqa: DTZ001
        "ok": True,
        "ratio": -1000.0,  # no zone, as in Hive
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


@given(st.lists(st.one_of(st.none(), st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**33), max_value=10**33))))
def test_decimals_are_the_numbers_that_orc_keeps(values: list[Decimal | None]) -> None:
    array = pa.array([None, *values], pa.decimal128(38, 4))[1:]
    assert as_numbers(array) == [None if value is None else int(f"{value:.4f}".replace(".", "")) for value in values]


def test_a_moment_with_a_zone_is_refused() -> None:
    with pytest.raises(BadRecord, match="has a zone"):
        Rows().rows({"at": datetime(2024, 1, 1, tzinfo=timezone.utc)}, COLUMNS)


STRICT: list[tuple[str, Any]] = [
    ("varchar(3)", "abcd"), ("char(3)", "abcd"), ("float", Decimal("1e39")), ("float", Decimal("1e-60")), ("float", 16777217),
    ("double", Decimal("1e400")), ("double", 2**53 + 1), ("timestamp", "2024-01-01 00:00:00.1234567"), ("decimal(3,2)", Decimal("1.234")),
    ("decimal(3,2)", Decimal(10)), ("tinyint", 128), ("bigint", 2**63), ("int", Decimal("1.5")), ("int", True),
]  # fmt: skip
"""Hive types and values that would be cut, rounded or changed otherwise."""
AROUND = [
    ("{}", lambda value: value),
    ("array<{}>", lambda value: [None, value]),
    ("map<string,{}>", lambda value: {"k": value}),
    ("struct<x:array<{}>>", lambda value: {"x": [value]}),
]


@pytest.mark.parametrize(("around", "wrapped"), AROUND, ids=[around for around, _ in AROUND])
@pytest.mark.parametrize(("kind", "value"), STRICT, ids=[f"{kind} {value}" for kind, value in STRICT])
def test_nothing_is_cut_or_rounded(kind: str, value: Any, around: str, wrapped: Any) -> None:
    columns = RecordColumns("db.t", [("v", around.format(kind))])
    with pytest.raises(BadRecord, match=r"db\.t: column v"):
        Rows().rows({"v": wrapped(value)}, columns)
    literal = json.dumps(value) if isinstance(value, (str, bool)) else str(value)
    with pytest.raises(BadRecord, match=r"db\.t: column v"):
        StrictJson().rows(json.dumps({"v": wrapped("VALUE")}).replace('"VALUE"', literal), columns)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("varchar(3)", "abcd"),
        ("float", "1e39"),
        ("float", "16777217"),
        ("double", "1e400"),
        ("decimal(3,2)", "1.234"),
        ("timestamp", "2024-01-01 00:00:00.1234567"),
        ("date", "0000-01-01"),
    ],
)
def test_nothing_of_a_line_is_cut_or_rounded(kind: str, text: str) -> None:
    with pytest.raises(BadRecord, match=r"db\.t: column v"):
        Delimited("|").rows(text, RecordColumns("db.t", [("v", kind)]))


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("float", pa.array([1e39])),
        ("float", pa.array([2**24 + 1])),
        ("int", pa.array([1.5])),
        ("int", pa.array([True])),
        ("int", pa.array(["5"])),
        ("timestamp", pa.array([1], pa.timestamp("ns"))),
        ("timestamp", pa.array([1], pa.timestamp("us", "UTC"))),
        ("timestamp", pa.array([300_000_000_000_000_000], pa.timestamp("us"))),
        ("date", pa.array([1], pa.timestamp("us"))),
        ("date", pa.array([3_000_000], pa.date32())),
        ("decimal(3,2)", pa.array([1.239])),
        ("decimal(3,2)", pa.array([Decimal("1.234")])),
        ("varchar(3)", pa.array(["abcd"])),
        ("char(3)", pa.array(["abcd"]).dictionary_encode()),
        ("string", pa.array([5])),
        ("struct<x:int>", pa.array([{"x": 1, "y": 2}])),
        ("array<varchar(3)>", pa.array([["abcd"]])),
        ("map<string,float>", pa.array([[("k", 1e39)]], pa.map_(pa.string(), pa.float64()))),
        ("array<int>", pa.array([5])),
    ],
)
def test_nothing_of_arrow_is_cut_or_rounded(kind: str, values: Any) -> None:
    with pytest.raises(BadRecord, match=r"db\.t: column v"):
        Rows().rows(pa.table({"v": values}), RecordColumns("db.t", [("v", kind)]))


@pytest.mark.parametrize(
    ("kind", "given", "stored"),
    [
        ("varchar(3)", "ab ", "ab "),
        ("varchar(3)", "abc  ", "abc"),
        ("char(3)", "ab ", "ab"),
        ("char(3)", "abc   ", "abc"),
        ("varchar(2)", "𝄞ä", "𝄞ä"),
        ("float", 0.1, 0.10000000149011612),
        ("float", float("inf"), float("inf")),
        ("int", None, None),
    ],
)
def test_values_that_fit_are_stored(kind: str, given: Any, stored: Any) -> None:
    columns = RecordColumns("db.t", [("v", kind)])
    assert Rows().rows({"v": given}, columns).to_pylist() == [{"v": stored}]
    assert Rows().rows(pa.table({"v": [given]}), columns).to_pylist() == [{"v": stored}]


def test_zeros_beyond_microseconds_are_nothing() -> None:
    columns = RecordColumns("db.t", [("v", "timestamp")])
    (found,) = StrictJson().rows('{"v": "2024-01-01 00:00:00.123456000"}', columns).column("v").to_pylist()
    assert found == datetime(2024, 1, 1, 0, 0, 0, 123456)  # noqa: DTZ001  # no zone, as in Hive


def test_slices_and_null_maps_of_arrow() -> None:
    columns = RecordColumns("db.t", [("m", "map<varchar(9),int>"), ("l", "array<varchar(9)>")])
    rows = [{"m": [("a", 1)], "l": ["x"]}, {"m": None, "l": None}, {"m": [], "l": []}, {"m": [("b", None)], "l": ["y", None]}]
    table = pa.Table.from_pylist(rows, schema=columns.schema)
    assert Rows().rows(table.combine_chunks().to_batches()[0].slice(1), columns).to_pylist() == rows[1:]
