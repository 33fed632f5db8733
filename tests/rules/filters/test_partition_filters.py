"""Partition filters compare exactly for every key type, and mark the partitions that they can not evaluate."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metastore.errors import MetaError
from metastore.rules.filters import Comparison, Node, parse, select_partitions
from metastore.rules.values.partition_names import DEFAULT_PARTITION


def select(text: str, hive_type: str, *values: str) -> list[str]:
    return [values[position] for position in select_partitions(parse(text), [("k", hive_type)], [[value] for value in values]).positions]


def selects(node: Node | None, columns: list[tuple[str, str]], *values: str) -> bool:
    return bool(select_partitions(node, columns, [values]).positions)


@pytest.mark.parametrize("hive_type", ["tinyint", "smallint", "int", "bigint", "INTEGER", "decimal(20,0)", "double"])
def test_numbers_compare_as_numbers(hive_type: str) -> None:
    values = ("9", "10", "-3", "007", DEFAULT_PARTITION, "")
    assert select("k > 8", hive_type, *values) == ["9", "10"]
    assert select("k = 7", hive_type, *values) == ["007"]
    assert select("k != 7", hive_type, *values) == ["9", "10", "-3"]
    assert select("k = '10'", hive_type, *values) == ["10"]
    assert select("k between -5 and 7", hive_type, *values) == ["-3", "007"]
    assert select("k not between -5 and 7", hive_type, *values) == ["9", "10"]
    assert select("(k) in (9, 7)", hive_type, *values) == ["9", "007"]
    assert select("(k) not in (9, 7)", hive_type, *values) == ["10", "-3"]
    assert select("8 < k", hive_type, *values) == ["9", "10"]
    assert select("k <=> 7", hive_type, *values) == ["007"]
    assert select("k > 8.5 and k < 1.0e1", hive_type, *values) == ["9"]
    assert select("k = -3.0 or k = +9", hive_type, *values) == ["9", "-3"]


def test_decimals_and_floats_accept_quoted_fractions() -> None:
    for hive_type in ("decimal(10,2)", "double", "float"):
        assert select("k >= '1.5'", hive_type, "1.49", "1.50", "1.6", "10") == ["1.50", "1.6", "10"]
        assert select("k = '1.5'", hive_type, "1.5", "1.50", "15e-1") == ["1.5", "1.50", "15e-1"]
    assert select("k < '1e3'", "int", "999", "1000") == ["999"]
    huge = "123456789012345678901234567890.1"
    assert select(f"k = '{huge}'", "decimal(38,1)", huge, "123456789012345678901234567890.2") == [huge]


@pytest.mark.parametrize("hive_type", ["string", "varchar(20)"])
def test_texts_compare_as_texts(hive_type: str) -> None:
    values = ("10", "9", "B", "a", DEFAULT_PARTITION)
    assert select("k > '9'", hive_type, *values) == ["B", "a", DEFAULT_PARTITION]
    assert select("k = 'b'", hive_type, *values) == []
    assert select("k != '9'", hive_type, *values) == ["10", "B", "a", DEFAULT_PARTITION]
    assert select("(k) in ('9', 'a')", hive_type, *values) == ["9", "a"]
    assert select("k = 2020-01-31", hive_type, "2020-01-31", "2020-1-31") == ["2020-01-31"]


@pytest.mark.parametrize("hive_type", ["string", "varchar(20)", "char(9)"])
@pytest.mark.parametrize(
    ("text", "sure", "may_match"),
    [
        ("k = 7", ["7"], ["7", "07", "7.0", " 7"]),
        ("7 = k", ["7"], ["7", "07", "7.0", " 7"]),
        ("k <=> 7.0", ["7.0"], ["7", "07", "7.0", " 7"]),
        ("k in (7, 10)", ["7", "10"], ["7", "07", "10", "7.0", " 7"]),
        ("k != 7", ["10", "x"], ["07", "10", "x", "7.0", " 7", DEFAULT_PARTITION]),
        ("k not in (7, 10)", ["x"], ["07", "x", "7.0", " 7", DEFAULT_PARTITION]),
        ("k = -7", [], []),
        ("k = 123456789012345678901234567890", [], []),
    ],
)
def test_a_text_equals_a_number_as_it_is_written_and_may_equal_it_otherwise(
    hive_type: str, text: str, sure: list[str], may_match: list[str]
) -> None:
    """A client that reads such a key as a number misses no partition, and no drop takes a partition whose key is equal only as a number."""
    values = ["7", "07", "10", "x", "7.0", " 7", DEFAULT_PARTITION]
    found = select_partitions(parse(text), [("k", hive_type)], [[value] for value in values])
    judged = set(found.positions) - set(found.unjudged)
    assert [values[position] for position in sorted(judged)] == sure
    expected = [each for each in may_match if each != DEFAULT_PARTITION or not hive_type.startswith("char")]
    assert [values[position] for position in found.positions] == expected


@pytest.mark.parametrize("text", ["k > 7", "k <= 7", "k between 7 and 9", "7 < k", "k >= 7.5"])
def test_no_text_is_less_or_greater_than_a_number(text: str) -> None:
    """As texts 10 < 7, but not as numbers. A client whose filter is refused filters by itself."""
    for partitions in ([], [["7"]]):
        with pytest.raises(MetaError, match="Filtering is supported only on partition keys of type string"):
            select_partitions(parse(text), [("k", "string")], partitions)


def test_char_ignores_its_padding() -> None:
    assert select("k = 'a  '", "char(5)", "a", "a    ", "b") == ["a", "a    "]


def test_dates_compare_as_dates() -> None:
    values = ("2020-01-31", "2019-12-31", "2020-1-5", DEFAULT_PARTITION)
    for text in ("k >= 2020-01-01", "k >= '2020-01-01'", "k >= DATE '2020-01-01'"):
        assert select(text, "date", *values) == ["2020-01-31", "2020-1-5"]
    assert select("k = '2020-01-31'", "date", "2020-01-31 00:00:00") == ["2020-01-31 00:00:00"]


def test_timestamps_compare_to_the_nanosecond() -> None:
    values = ("2020-01-31 10:00:00", "2020-01-31 10:00:00.000000001", "2020-01-31", DEFAULT_PARTITION)
    assert select("k > '2020-01-31 10:00:00'", "timestamp", *values) == [values[1]]
    assert select("k = 2020-01-31 10:00:00", "timestamp", *values) == [values[0]]
    assert select("k = '2020-01-31 10:00:00.0'", "timestamp", *values) == [values[0]]
    assert select("k < 2020-01-31 10:00:00", "timestamp", *values) == [values[2]]
    assert select("k = DATE '2020-01-31'", "timestamp", *values) == [values[2]]


def test_booleans_compare_as_booleans() -> None:
    assert select("k = 'TRUE'", "boolean", "true", "false", DEFAULT_PARTITION) == ["true"]
    assert select("k != 'true'", "boolean", "true", "false", DEFAULT_PARTITION) == ["false"]
    assert select("k < 'true'", "boolean", "true", "false") == ["false"]
    assert select("k = true", "boolean", "true", "false", DEFAULT_PARTITION) == ["true"]
    assert select_partitions(parse("FALSE = k", ["k"]), [("k", "boolean")], [["true"], ["false"]]) == ([1], [])


@pytest.mark.parametrize(
    ("hive_type", "text", "values"),
    [
        ("date", "k >= '2020-01-01'", ["2020-01", "2020", "+10000-01-01", "0000-01-01", "20200101", "x"]),
        ("date", "k = '2020-01'", ["2020-01-01", "2020-02-01"]),
        ("date", "k < +10000-01-01", ["2020-01-01", "+10000-01-01"]),
        ("date", "k in (DATE '+10000-01-01')", ["2020-01-01"]),
        ("date", "k != '2020-02-30'", ["2020-01-01"]),
        ("date", "k > '2020-01-01 10:00:00'", ["2020-01-01"]),
        ("timestamp", "k between '2020-01' and '2021-01-01 00:00:00'", ["2020-06-01 00:00:00", "2020-06"]),
        ("timestamp", "k = TIMESTAMP '+10000-01-01 00:00:00'", ["2020-06-01 00:00:00"]),
        ("int", "k = 5", ["x", "5L", "0x5", "\u0665"]),
        ("int", "k not in (5, 6)", ["x"]),
        ("double", "k > 5", ["NaN", "x"]),
        ("boolean", "k = false", ["0", "no", "f"]),
    ],
)
def test_partitions_that_can_not_be_judged_are_selected_but_not_for_certain(hive_type: str, text: str, values: list[str]) -> None:
    found = select_partitions(parse(text), [("k", hive_type)], [[value] for value in values])
    assert [values[position] for position in found.positions] == values
    assert found.unjudged
    null = select_partitions(parse(text), [("k", hive_type)], [[DEFAULT_PARTITION], [""]])
    assert null == ([], [])


@pytest.mark.parametrize("text", ["k != 'a'", "k > 'A'", "k not in ('a')", "k like '%'", "k not like 'a%'"])
def test_the_default_partition_of_a_text_may_match_but_not_for_certain(text: str) -> None:
    columns = [("k", "string")]
    assert select_partitions(parse(text), columns, [["b"]]) == ([0], [])
    assert select_partitions(parse(text), columns, [["b"], [DEFAULT_PARTITION]]) == ([0, 1], [1])
    assert select_partitions(parse(f"k = '{DEFAULT_PARTITION}'"), columns, [["b"], [DEFAULT_PARTITION], [""]]) == ([1, 2], [])


def test_a_term_that_can_not_be_judged_is_left_out_where_another_decides() -> None:
    columns, rows = [("k", "date"), ("j", "int")], [["2020-01", "1"], ["2020-01", "2"], ["2020-01-01", "1"]]
    assert select_partitions(parse("k = '2020-01-01' and j = 1"), columns, rows) == ([0, 2], [0])
    assert select_partitions(parse("k = '2020-01-01' or j = 2"), columns, rows) == ([0, 1, 2], [0])
    assert select_partitions(parse("k = '2020-01-01' or j > 0"), columns, rows) == ([0, 1, 2], [])
    assert select_partitions(parse("k = '2020-01-01' and j > 2"), columns, rows) == ([], [])


def test_the_default_partition_can_be_named_for_every_type() -> None:
    for hive_type in ("int", "date", "string", "boolean"):
        assert select(f"k = '{DEFAULT_PARTITION}'", hive_type, "1", DEFAULT_PARTITION, "") == [DEFAULT_PARTITION, ""]
        assert select(f"(k) in ('{DEFAULT_PARTITION}')", hive_type, "1", DEFAULT_PARTITION) == [DEFAULT_PARTITION]


@pytest.mark.parametrize(
    ("text", "hive_type"),
    [
        ("k = 'x'", "int"),
        ("k > 5", "string"),
        ("k = 5", "date"),
        ("k = 2020-01-01 10:00:00", "date"),
        ("k = 'x'", "date"),
        ("k = 'x'", "timestamp"),
        ("k = 1", "boolean"),
        ("k = 'yes'", "boolean"),
        ("k = 'x'", "decimal(3,1)"),
        ("k = 2020-01-01", "int"),
        ("k < 1.5", "string"),
        ("k = 1.5", "date"),
        ("k = true", "int"),
        ("(k) in (1, 'x')", "int"),
        ("k between 1 and 'x'", "int"),
    ],
)
def test_values_that_can_not_be_compared_are_a_meta_error(text: str, hive_type: str) -> None:
    with pytest.raises(MetaError, match="Cannot push down filter for"):
        select(text, hive_type)


def test_types_without_an_order_are_a_meta_error() -> None:
    with pytest.raises(MetaError, match="not supported for type binary"):
        select("k = 'x'", "binary")


def test_an_unknown_key_is_a_meta_error() -> None:
    for text in ("x = 1", "(x) in (1)", "x between 1 and 2", "x like 'a'", "K = 1 and x = 1"):
        with pytest.raises(MetaError, match="Specified key <x> is not a partitioning key for the table"):
            select(text, "int")


def test_no_filter_selects_all() -> None:
    assert select_partitions(None, [("k", "int")], [["x"]]) == ([0], ())


def test_keys_are_found_in_any_case_and_place() -> None:
    found = select_partitions(parse("B = 2 and (a = 1 or a = 3)"), [("a", "int"), ("b", "int")], [["3", "2"], ["2", "2"]])
    assert found == ([0], [])


def test_a_million_digits_are_no_number() -> None:
    found = select_partitions(parse("k > 0"), [("k", "decimal(38,0)")], [["9" * 1_000_000], ["5"]])
    assert found == ([0, 1], [0])


@given(st.lists(st.integers(-60, 60), max_size=300), st.integers(-61, 61), st.sampled_from(["<", "<=", ">", ">=", "=", "!="]))
def test_any_number_of_values_compares(values: list[int], constant: int, sign: str) -> None:
    holds = {"<": int.__lt__, "<=": int.__le__, ">": int.__gt__, ">=": int.__ge__, "=": int.__eq__, "!=": int.__ne__}[sign]
    found = select_partitions(Comparison("k", sign, constant), [("k", "int")], [[str(value)] for value in values])
    assert found == ([number for number, value in enumerate(values) if holds(value, constant)], [])


@given(st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-99, max_value=99), st.integers(-99, 99))
def test_any_decimal_compares_with_any_integer(value: Decimal, constant: int) -> None:
    for sign, expected in (("<", value < constant), ("=", value == constant), (">=", value >= constant)):
        found = select(f"k {sign} {constant}", "decimal(10,3)", str(value))
        assert bool(found) is expected
