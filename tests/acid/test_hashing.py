"""The bucketing hash equals that of Hive's own classes for each form of a value. tests/hive4/test_bucket_hashes.py runs those classes."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from metastore.acid.buckets.hashing import CanNotHash, buckets_of, hash_values, hashes

INT = pa.int32()
KNOWN: list[tuple[str, pa.DataType, Any, int, int]] = [
    ("boolean", pa.bool_(), True, 1, 1),
    ("tinyint", pa.int8(), -7, -7, -7),
    ("smallint", pa.int16(), -12345, -12345, -1724696960),
    ("int", INT, 0, 0, 1362653161),
    ("int", INT, 42, 42, 1960085659),
    ("int", INT, -2147483648, -2147483648, 1194881028),
    ("bigint", pa.int64(), 1234567890123, 1912276436, -254696621),
    ("float", pa.float32(), 1.5, 1069547520, -1009260869),
    ("float", pa.float32(), float("nan"), 2143289344, -480354314),
    ("double", pa.float64(), -0.0, -2147483648, -1757926548),
    ("double", pa.float64(), 3.141592653589793, 340593891, 1158856885),
    ("string", pa.string(), "", 0, -965378730),
    ("string", pa.string(), "hive", 3202928, -1992589179),
    ("string", pa.string(), "Grüße, 漢字", 1544999644, -1775065650),
    ("char(10)", pa.string(), "ab  ", 4066, 398604456),
    ("varchar(10)", pa.string(), "ab  ", 3908450, -906682965),
    ("binary", pa.binary(), b"\x00\xff\x80", 29632, -75899403),
    ("date", pa.date32(), date(2024, 2, 29), 19782, -476630087),
    ("date", pa.date32(), date(1969, 12, 31), -1, 1626716813),
    ("decimal(38,10)", pa.decimal128(38, 10), Decimal(0), 0, 500407381),
    ("decimal(38,10)", pa.decimal128(38, 10), Decimal("123.4500"), 382697, -282817729),
    ("decimal(38,10)", pa.decimal128(38, 10), Decimal("-99999999999999999999.5"), 544351245, 304802114),
    ("timestamp", pa.timestamp("us"), datetime(2024, 2, 29, 12, 34, 56), 427302524, -1081746584),  # noqa: DTZ001  # no zone, as in Hive
    ("timestamp", pa.timestamp("us"), datetime(1969, 12, 31, 23, 59, 59, 999000), 74741823, -452174061),  # noqa: DTZ001
    ("timestamp", pa.timestamp("us"), datetime(2100, 1, 1, 0, 0, 0, 1), 1025611304, -230737937),  # noqa: DTZ001
]


@pytest.mark.parametrize(("kind", "arrow", "value", "old", "new"), KNOWN, ids=lambda part: str(part)[:20])
def test_known_values(kind: str, arrow: pa.DataType, value: Any, old: int, new: int) -> None:
    values = pa.array([None, value, value], arrow)[1:]
    assert hash_values(values, kind, 1).view(np.int32).tolist() == [old, old]
    assert hash_values(values, kind, 2).view(np.int32).tolist() == [new, new]


def row() -> list[tuple[Any, str]]:
    return [(pa.array([42]), "int"), (pa.array(["hive"]), "string"), (pa.array([date(2024, 2, 29)]), "date")]


def test_columns_are_joined() -> None:
    assert hashes(row(), 1).view(np.int32).tolist() == [99350912]
    assert hashes(row(), 2).view(np.int32).tolist() == [329290159]


@pytest.mark.parametrize(("kind", "arrow"), {kind: arrow for kind, arrow, *_ in KNOWN}.items(), ids=str)
@pytest.mark.parametrize("version", [1, 2])
def test_nulls_are_zero_and_bucket_zero(kind: str, arrow: pa.DataType, version: int) -> None:
    assert buckets_of([(pa.nulls(3, arrow), kind)], 7, version).tolist() == [0, 0, 0]
    assert hash_values(pa.array([], arrow), kind, version).tolist() == []


def test_the_form_of_an_array_does_not_matter() -> None:
    texts = [f"value {number}" * (number % 5) for number in range(100)] + [None]
    plain = pa.array(texts, pa.string())
    forms = [
        plain, plain.cast(pa.large_string()), plain.dictionary_encode(), pa.chunked_array([plain[:40], plain[40:]]),
        pa.concat_arrays([pa.array(["before"]), plain])[1:],
    ]  # fmt: skip
    for version in (1, 2):
        found = {tuple(hashes([(form, "string")], version).tolist()) for form in forms}
        assert len(found) == 1
        assert len(set(*found)) > 20


def test_a_slice_of_nested_values() -> None:
    kind = "array<struct<a:int,b:decimal(5,2)>>"
    arrow = pa.list_(pa.struct([("a", INT), ("b", pa.decimal128(5, 2))]))
    items = [[{"a": number, "b": Decimal(number)}] * (number % 3) for number in range(9)]
    whole = hash_values(pa.array(items, arrow), kind, 2)
    assert hash_values(pa.array(items, arrow)[4:], kind, 2).tolist() == whole[4:].tolist()
    assert whole[::3].tolist() == [0, 0, 0]


def test_buckets_are_never_negative() -> None:
    values = pa.array(range(-5000, 5000), INT)
    found = buckets_of([(values, "int")], 16, 2)
    assert np.bincount(found, minlength=16).min() > 500
    assert buckets_of([(pa.array([-1], INT), "int")], 16, 1).tolist() == [(2**31 - 1) % 16]


@pytest.mark.parametrize("kind", ["uniontype<int,string>", "interval_day_time", "void"])
def test_a_type_that_can_not_be_hashed(kind: str) -> None:
    with pytest.raises(CanNotHash, match=r"can not be bucketed by a column of type"):
        hash_values(pa.array([1]), kind, 2)


def test_impossible_hashes_are_refused() -> None:
    with pytest.raises(CanNotHash, match="version 3 is unknown"):
        hash_values(pa.array([1]), "int", 3)
    with pytest.raises(CanNotHash, match="no column"):
        buckets_of([], 4, 2)
