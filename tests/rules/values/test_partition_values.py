"""A value of a partition column has one text, which is Hive's."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pytest

from metastore.rules.values.partition_names import DEFAULT_PARTITION
from metastore.rules.values.partition_values import can_hold, canonical, hive_name, read_value, text_of

SPELLED = [
    # type, a text, Hive's own text
    ("tinyint", "05", "5"), ("int", "-007", "-7"), ("bigint", "+9223372036854775807", "9223372036854775807"),
    ("decimal(6,2)", "1.10", "1.1"), ("decimal(6,2)", "100.00", "100"), ("decimal(6,2)", "0.00", "0"), ("decimal(6,2)", "1E+2", "100"),
    ("decimal(38,10)", "12345678901234567890.5", "12345678901234567890.5"), ("decimal(6,2)", "-.5", "-0.5"),
    ("double", "1", "1.0"), ("double", "1e20", "1.0E20"), ("double", "0.0001", "1.0E-4"), ("double", "0.001", "0.001"),
    ("double", "9999999", "9999999.0"), ("double", "1e7", "1.0E7"), ("double", "-12.50", "-12.5"), ("double", "0", "0.0"),
    ("double", "nan", "NaN"), ("double", "-inf", "-Infinity"), ("double", "1.7976931348623157e308", "1.7976931348623157E308"),
    ("float", "0.1", "0.1"), ("float", "1e10", "1.0E10"), ("float", "3.4028235e38", "3.4028235E38"), ("float", "16777216", "1.6777216E7"),
    ("boolean", "TRUE", "true"), ("date", "2024-7-1", "2024-07-01"), ("date", "0001-01-01", "0001-01-01"),
    ("timestamp", "2024-07-01 00:30:00.0", "2024-07-01 00:30:00"), ("timestamp", "2024-07-01", "2024-07-01 00:00:00"),
    ("timestamp", "2024-07-01 00:30:00.120", "2024-07-01 00:30:00.12"),
    ("timestamp", "2024-07-01 00:30:00.000000001", "2024-07-01 00:30:00.000000001"),
    ("char(5)", "ab", "ab   "), ("varchar(5)", "ab ", "ab "), ("string", "05", "05"), ("string", " a ", " a "),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "text", "hives"), SPELLED)
def test_every_spelling_has_hives_text(kind: str, text: str, hives: str) -> None:
    assert canonical(kind, text) == hives
    assert canonical(kind, hives) == hives
    if hives != "NaN":
        assert read_value(kind, hives) == read_value(kind, text)


@pytest.mark.parametrize(("kind", "text"), [("int", "abc"), ("date", "2024-02-30"), ("boolean", "yes"), ("decimal(4,2)", "")])
def test_a_text_that_is_no_value_of_its_type_stays(kind: str, text: str) -> None:
    assert read_value(kind, text) is None
    assert canonical(kind, text) == text
    assert not can_hold(kind, text)


@pytest.mark.parametrize(
    ("kind", "text", "held"),
    [("int", "1.5", False), ("int", "-7", True), ("decimal(4,2)", "1.5", True), ("int", DEFAULT_PARTITION, True), ("binary", "x", True)],
)
def test_a_key_holds_values_of_its_type(kind: str, text: str, held: bool) -> None:
    assert can_hold(kind, text) is held


def test_null_and_the_empty_text_are_the_default_partition() -> None:
    default = "__HIVE_DEFAULT_PARTITION__"
    assert [text_of("string", None), text_of("int", None), text_of("string", "")] == [default] * 3
    assert canonical("int", default) == default
    assert read_value("string", default) is None


def test_values_of_python_have_hives_text() -> None:
    moment = datetime.datetime(2024, 7, 1, 0, 30, 0, 120000)  # noqa: DTZ001  # wall-clock time
    assert text_of("timestamp", moment) == "2024-07-01 00:30:00.12"
    assert text_of("timestamp with local time zone", moment) == "2024-07-01 00:30:00.12 UTC"
    assert text_of("decimal(10,4)", Decimal("1000.0000")) == "1000"
    assert text_of("float", 0.10000000149011612) == "0.1"
    assert text_of("boolean", value=False) == "false"


def test_the_name_of_a_partition_is_put_together_of_hives_texts() -> None:
    keys = [("d", "decimal(6,2)"), ("at", "timestamp")]
    assert hive_name(keys, ["1.10", "2024-07-01 00:30:00.0"]) == "d=1.1/at=2024-07-01 00%3A30%3A00"
