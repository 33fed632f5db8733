"""Partition filters: exact for every key type, and never narrowed too far."""

from __future__ import annotations

import re
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metastore.errors import MetaError
from metastore.rules.filters import And, Between, Comparison, In, Node, Or, compile_partition_filter, parse
from metastore.rules.filters import leading_prefixes as prefixes
from metastore.rules.partition_names import DEFAULT_PARTITION, make_partition_name


def select(text: str, hive_type: str, *values: str) -> list[str]:
    predicate = compile_partition_filter(parse(text), [("k", hive_type)])
    return [value for value in values if predicate([value])]


@pytest.mark.parametrize("hive_type", ["tinyint", "smallint", "int", "bigint", "INTEGER", "decimal(20,0)", "double"])
def test_numbers_compare_as_numbers(hive_type: str) -> None:
    values = ("9", "10", "-3", "007", DEFAULT_PARTITION, "x", "")
    assert select("k > 8", hive_type, *values) == ["9", "10"]
    assert select("k = 7", hive_type, *values) == ["007"]
    assert select("k != 7", hive_type, *values) == ["9", "10", "-3"]
    assert select("k = '10'", hive_type, *values) == ["10"]
    assert select("k between -5 and 7", hive_type, *values) == ["-3", "007"]
    assert select("k not between -5 and 7", hive_type, *values) == ["9", "10"]
    assert select("(k) in (9, 7)", hive_type, *values) == ["9", "007"]
    assert select("(k) not in (9, 7)", hive_type, *values) == ["10", "-3"]
    assert select("8 < k", hive_type, *values) == ["9", "10"]


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


def test_char_ignores_its_padding() -> None:
    assert select("k = 'a  '", "char(5)", "a", "a    ", "b") == ["a", "a    "]


def test_dates_compare_as_dates() -> None:
    values = ("2020-01-31", "2019-12-31", "2020-1-5", "x", DEFAULT_PARTITION)
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


def test_the_default_partition_can_be_named_for_every_type() -> None:
    for hive_type in ("int", "date", "string", "boolean"):
        assert select(f"k = '{DEFAULT_PARTITION}'", hive_type, "1", DEFAULT_PARTITION, "") == [DEFAULT_PARTITION, ""]
        assert select(f"(k) in ('{DEFAULT_PARTITION}')", hive_type, "1", DEFAULT_PARTITION) == [DEFAULT_PARTITION]


@pytest.mark.parametrize(
    ("text", "hive_type"),
    [
        ("k = 'x'", "int"),
        ("k = 5", "string"),
        ("k = 5", "date"),
        ("k = 2020-01-01 10:00:00", "date"),
        ("k = 'x'", "date"),
        ("k = '2020-02-30'", "date"),
        ("k = 'x'", "timestamp"),
        ("k = 1", "boolean"),
        ("k = 'yes'", "boolean"),
        ("k = 'x'", "decimal(3,1)"),
        ("k = 2020-01-01", "int"),
        ("(k) in (1, 'x')", "int"),
        ("k between 1 and 'x'", "int"),
    ],
)
def test_what_can_not_be_compared_is_a_meta_error(text: str, hive_type: str) -> None:
    with pytest.raises(MetaError, match="Cannot push down filter for"):
        select(text, hive_type)


def test_types_without_an_order_are_a_meta_error() -> None:
    with pytest.raises(MetaError, match="not supported for type binary"):
        select("k = 'x'", "binary")


def test_an_unknown_key_is_a_meta_error() -> None:
    for text in ("x = 1", "(x) in (1)", "x between 1 and 2", "x like 'a'", "K = 1 and x = 1"):
        with pytest.raises(MetaError, match="Specified key <x> is not a partitioning key for the table"):
            select(text, "int")


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("a%", ["abc", "a_c", "a%c", "a.*"]),
        ("a_c", ["abc", "a_c", "a%c"]),
        (r"a\_c", ["a_c"]),
        (r"a\%c", ["a%c"]),
        ("%", ["abc", "a_c", "a%c", "xbz", "a.*", "("]),
        ("b", []),
        ("a.*", ["abc", "a_c", "a%c", "a.*"]),
        (".*b.*", ["abc", "xbz"]),
        ("(", ["("]),
        (".*(.*", ["("]),
    ],
)
def test_like_reads_sql_and_the_patterns_of_older_clients(pattern: str, expected: list[str]) -> None:
    assert select(f"k like '{pattern}'", "string", "abc", "a_c", "a%c", "xbz", "a.*", "(") == expected


def test_no_filter_selects_all() -> None:
    assert compile_partition_filter(None, [("k", "int")])(["x"])


def test_keys_are_found_in_any_case_and_place() -> None:
    predicate = compile_partition_filter(parse("B = 2 and (a = 1 or a = 3)"), [("a", "int"), ("b", "int")])
    assert predicate(["3", "2"])
    assert not predicate(["2", "2"])


def test_a_million_digits_are_no_number() -> None:
    assert select("k > 0", "decimal(38,0)", "9" * 1_000_000, "5") == ["5"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 'x'", ["a=x/"]),
        ("a = 'x' and b = 'y/z'", ["a=x/b=y%2Fz/"]),
        ("(a) in ('x', 'y') and (b) in ('1', '2')", ["a=x/b=1/", "a=x/b=2/", "a=y/b=1/", "a=y/b=2/"]),
        ("a = 'x' or a = 'y'", ["a=x/", "a=y/"]),
        ("a = 'x' and a = 'y'", []),
        ("a = 'x' or b = 'y'", None),
        ("b = 'y'", None),
        ("a != 'x'", None),
        ("(a) not in ('x')", None),
        ("a > 'x'", None),
        ("a like 'x'", None),
        ("a = 'x' and c = 3", ["a=x/"]),
        ("a = 'x' and b = 'y' and c = 3", ["a=x/b=y/"]),
        ("a = ''", [f"a={DEFAULT_PARTITION}/"]),
        ("a = 'x' and (b = 'y' or c = 1)", ["a=x/"]),
    ],
)
def test_equality_on_leading_texts_narrows_the_names(text: str, expected: list[str] | None) -> None:
    assert prefixes(parse(text), [("a", "string"), ("b", "varchar(9)"), ("c", "int")]) == expected


def test_a_prefix_of_all_keys_is_the_whole_name() -> None:
    assert prefixes(parse("a = 'x'"), [("a", "string")]) == ["a=x"]
    assert prefixes(parse("a = 1"), [("a", "int")]) is None
    assert prefixes(parse("a = 'x'"), [("a", "char(3)")]) is None
    assert prefixes(None, [("a", "string")]) is None


def test_too_many_prefixes_are_none() -> None:
    many = ", ".join(f"'{number}'" for number in range(5000))
    assert prefixes(parse(f"(a) in ({many})"), [("a", "string")]) is None


texts = st.sampled_from(["", "x", "y", "a/b", "a%2Fb", "2020-01-31", "é", DEFAULT_PARTITION, "1", "x/b=y"])
keys = st.sampled_from(["a", "b", "A"])
signs = st.sampled_from(["=", "=", "!=", "<", "<=", ">", ">=", "like"])
leaves: st.SearchStrategy[Node] = (
    st.builds(Comparison, keys, signs, texts)
    | st.builds(In, keys, st.lists(texts, min_size=1, max_size=3).map(tuple), st.booleans())
    | st.builds(Between, keys, texts, texts, st.booleans())
    | st.builds(Comparison, st.just("c"), st.sampled_from(["=", "<"]), st.integers(0, 3))
)
nodes = st.recursive(
    leaves,
    lambda inner: (
        st.builds(And, st.lists(inner, min_size=2, max_size=3).map(tuple))
        | st.builds(Or, st.lists(inner, min_size=2, max_size=3).map(tuple))
    ),
    max_leaves=8,
)


@given(nodes, st.lists(st.tuples(texts, texts, st.sampled_from(["1", "2", "x"])), min_size=1, max_size=10))
def test_narrowing_never_loses_a_match(node: Node, partitions: list[tuple[str, str, str]]) -> None:
    columns = [("a", "string"), ("b", "varchar(30)"), ("c", "int")]
    predicate = compile_partition_filter(node, columns)
    narrowed = prefixes(node, columns)
    for values in partitions:
        if narrowed is not None and predicate(values):
            name = make_partition_name(["a", "b", "c"], values)
            assert any(name.startswith(prefix) for prefix in narrowed)


@given(st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-99, max_value=99), st.integers(-99, 99))
def test_any_decimal_compares_with_any_integer(value: Decimal, constant: int) -> None:
    for sign, expected in (("<", value < constant), ("=", value == constant), (">=", value >= constant)):
        found = select(f"k {sign} {constant}", "decimal(10,3)", str(value))
        assert bool(found) is expected


@given(st.text(max_size=10), st.text(alphabet="ab%_.*\\", max_size=8))
def test_like_agrees_with_a_plain_translation_to_a_regular_expression(text: str, pattern: str) -> None:
    if ".*" in pattern:
        return
    translated, position = "", 0
    while position < len(pattern):
        if pattern[position] == "\\" and pattern[position + 1 : position + 2] in ("%", "_", "\\"):
            position += 1
            translated += re.escape(pattern[position])
        else:
            translated += {"%": ".*", "_": "."}.get(pattern[position], re.escape(pattern[position]))
        position += 1
    predicate = compile_partition_filter(Comparison("k", "like", pattern), [("k", "string")])
    assert predicate([text]) == (re.fullmatch(translated, text, re.DOTALL) is not None)
