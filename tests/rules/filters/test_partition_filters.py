"""Partition filters: exact for every key type, and never narrowed too far."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metastore.errors import MetaError
from metastore.rules import like
from metastore.rules.filters import And, Between, Comparison, In, Node, Or, parse, select_partitions
from metastore.rules.filters import leading_prefixes as prefixes
from metastore.rules.like import sql_matcher
from metastore.rules.patterns import compile_expression
from metastore.rules.values.partition_names import DEFAULT_PARTITION, make_partition_name


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
    """Who reads such a key as a number finds no partition missing, and no drop takes one that is only a number alike."""
    values = ["7", "07", "10", "x", "7.0", " 7", DEFAULT_PARTITION]
    found = select_partitions(parse(text), [("k", hive_type)], [[value] for value in values])
    judged = set(found.positions) - set(found.unjudged)
    assert [values[position] for position in sorted(judged)] == sure
    expected = [each for each in may_match if each != DEFAULT_PARTITION or not hive_type.startswith("char")]
    assert [values[position] for position in found.positions] == expected


@pytest.mark.parametrize("text", ["k > 7", "k <= 7", "k between 7 and 9", "7 < k", "k >= 7.5"])
def test_no_text_is_less_or_greater_than_a_number(text: str) -> None:
    """As texts 10 < 7, as numbers not: a client that is refused filters by itself."""
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
def test_what_can_not_be_judged_is_selected_but_not_for_certain(hive_type: str, text: str, values: list[str]) -> None:
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


def test_what_can_not_be_judged_is_left_out_where_another_term_decides() -> None:
    columns, rows = [("k", "date"), ("j", "int")], [["2020-01", "1"], ["2020-01", "2"], ["2020-01-01", "1"]]
    assert select_partitions(parse("k = '2020-01-01' and j = 1"), columns, rows) == ([0, 2], [0])
    assert select_partitions(parse("k = '2020-01-01' or j = 2"), columns, rows) == ([0, 1, 2], [0])
    assert select_partitions(parse("k = '2020-01-01' or j > 0"), columns, rows) == ([0, 1, 2], [])
    assert select_partitions(parse("k = '2020-01-01' and j > 2"), columns, rows) == ([], [])


UNUSUAL = [
    "my-key",
    "größe",
    "日期",
    "$date",
    "sp ace",
    "a.b",
    "a",
    "sp",
    "x y-z",
    "dt=1",
    "it's",
    'say "x"',
    "100%",
    "a(b)",
    "2020",
    "2020-01-01",
    "-5",
    "k!",
    "in-between",
    "not in",
    " lead",
    "`tick`",
    "true",
    "date",
    "and",
    "a/b:c",
    "x,y",
    "naïve_1",
    "ключ",
    "1.5",
    "'q'",
]


@pytest.mark.parametrize("key", UNUSUAL)
@pytest.mark.parametrize("template", [
    '{} = "7"', '{}="7"', '"7" = {}', '({} = "7")',
    '{} in ("7", "8")', '({}) in ("7")', '{} not in ("8")', '({}) not in ("8")', '{} like "7%"',
    '{} not like "8%"', '{} between "6" and "7"', '{} not between "1" and "2"', '{} <=> "7"', '({} = "7" and {} != "8")',
    '(z = "1" and {} = "7") or {} = "9"', '"7" >= {} and "6" < {}',
])  # fmt: skip
def test_keys_of_any_name_stand_bare(key: str, template: str) -> None:
    columns = [*((name, "string") for name in UNUSUAL), ("z", "string")]
    text = template.format(*[key] * template.count("{}"))
    rows = [[*("7" if name == key else "0" for name in UNUSUAL), "1"], ["0"] * len(UNUSUAL) + ["1"]]
    wanted = [0, 1] if " not " in template else [0]
    assert select_partitions(parse(text, [name for name, _ in columns]), columns, rows).positions == wanted
    upper = text.replace(key, key.upper()) if key.upper().lower() == key else text
    assert select_partitions(parse(upper, [name for name, _ in columns]), columns, rows).positions == wanted


def test_keys_of_any_name_stand_bare_in_a_struct() -> None:
    columns = [("a-b", "string"), ("sp ace", "string"), ("100%", "int")]
    text = '(struct(a-b, 100%, sp ace)) in (const struct("1", 5, "7"), struct("2", 6, "7"))'
    found = select_partitions(parse(text, [name for name, _ in columns]), columns, [["1", "7", "5"], ["1", "7", "6"], ["2", "7", "6"]])
    assert found == ([0, 2], [])


def test_constants_are_no_keys_of_the_same_text() -> None:
    columns = [("2020-01-01", "string"), ("5", "int"), ("k", "date"), ("a=1", "int"), ("a", "int"), ("'q'", "string")]
    row = ["x", "6", "2020-01-01", "8", "1", "z"]
    for text in (
        "k = 2020-01-01",
        "2020-01-01 = k",
        "a = 1",
        "a=1",
        "5 < 5.5 or a=1",
        "k in (2020-01-01)",
        "5 = 6",
        "k between 2020-01-01 and 2020-01-01 and 5=6",
        "a=1=8",
        "2020-01-01 = 'x'",
        "a in (5, 1)",
        "'q' = 'z'",
        "(5) in (6)",
    ):
        assert selects(parse(text, [name for name, _ in columns]), columns, *row), text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r'k = "C:\\"', r"C:\\"),
        (r'k = "C:\"', "C:\\"),
        (r'k = "a\" or k = "b"', "a\\"),
        (r'(k = "a\") and (k != "b\")', "a\\"),
        (r'k in ("a\","b\")', "b\\"),
        (r'k = "a\tb"', r"a\tb"),
        (r'''k = "it\'s"''', r"it\'s"),
        (r'k like "C:\x.*"', r"C:\xy"),
        ("k = 'say \"x\"'", 'say "x"'),
        ('k = "it\'s"', "it's"),
        ('k = "a\nb"', "a\nb"),
        ('k = "k = 1 or my-key = 2"', "k = 1 or my-key = 2"),
        ('k = "日 期"', "日 期"),
        ('k = ""', ""),
    ],
)
def test_strings_mean_what_spark_writes_between_quotes(text: str, value: str) -> None:
    columns = [("k", "string"), ("my-key", "string")]
    assert selects(parse(text, ["k", "my-key"]), columns, value, "0")
    assert not selects(parse(text, ["k", "my-key"]), columns, "other", "0")


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


def test_like_of_two_readings_is_certain_where_both_agree() -> None:
    rows = [["a"], ["ab"], ["a.*"], ["b"]]
    assert select_partitions(parse("k like 'a.*'"), [("k", "string")], rows) == ([0, 1, 2], [0, 1])
    assert select_partitions(parse("k not like 'a.*'"), [("k", "string")], rows) == ([0, 1, 3], [0, 1])
    assert select_partitions(parse("k not like 'a%'"), [("k", "string")], rows) == ([3], [])
    assert select_partitions(parse("k like 'a%'"), [("k", "string")], rows) == ([0, 1, 2], [])


@given(st.lists(st.text(alphabet="ab.\n", max_size=5), max_size=20), st.text(alphabet="ab%_\\", max_size=6))
def test_like_finds_in_many_texts_what_it_finds_in_each(texts: list[str], pattern: str) -> None:
    columns, rows, matches = [("k", "string")], [[text] for text in texts], sql_matcher(pattern)
    found = select_partitions(Comparison("k", "like", pattern), columns, rows)
    assert found.positions == [number for number, text in enumerate(texts) if matches(text)]
    others = select_partitions(Comparison("k", "not like", pattern), columns, rows)
    assert others.positions == [number for number, text in enumerate(texts) if not matches(text)]


@pytest.mark.parametrize(
    ("pattern", "looked_at"),
    [("s77_", 10), ("s7%5", 111), ("s_77", 20), ("%77_", 20), ("_77_", 20), ("_77", 1), ("a_7.*", 0), ("____", 0), ("_%_", 0)],
)
def test_like_looks_at_the_texts_alone_that_may_match(monkeypatch: pytest.MonkeyPatch, pattern: str, looked_at: int) -> None:
    seen: list[str] = []

    def compiled(text: str) -> Callable[[str], bool]:
        matches = compile_expression(text)

        def matching(value: str) -> bool:
            seen.append(value)
            return matches(value)

        return matching

    monkeypatch.setattr(like, "compile_expression", compiled)
    assert len(like.like(pattern, sorted(f"s{number}" for number in range(1000)))) == 2
    assert len(seen) <= looked_at


@pytest.mark.parametrize("text", ["İl = 'x'", "'x' = İl", "`İl` = 'x'", "İL like 'x%'", "j = 1 and i\u0307l = 'x'", "(İl) in ('x')"])
def test_a_key_whose_capital_is_one_character_and_its_small_letter_two(text: str) -> None:
    columns = [("İl".lower(), "string"), ("j", "int")]
    assert select_partitions(parse(text, [name for name, _ in columns]), columns, [["x", "1"], ["y", "1"]]).positions == [0]


def test_no_filter_selects_all() -> None:
    assert select_partitions(None, [("k", "int")], [["x"]]) == ([0], ())


def test_keys_are_found_in_any_case_and_place() -> None:
    found = select_partitions(parse("B = 2 and (a = 1 or a = 3)"), [("a", "int"), ("b", "int")], [["3", "2"], ["2", "2"]])
    assert found == ([0], [])


def test_a_million_digits_are_no_number() -> None:
    found = select_partitions(parse("k > 0"), [("k", "decimal(38,0)")], [["9" * 1_000_000], ["5"]])
    assert found == ([0, 1], [0])


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


def test_no_prefix_begins_with_another() -> None:
    assert prefixes(parse("(a) in ('1', '10', '2', '100')"), [("a", "string")]) == ["a=1", "a=2"]


def test_too_many_prefixes_are_none() -> None:
    many = ", ".join(f"'{number}'" for number in range(5000))
    assert prefixes(parse(f"(a) in ({many})"), [("a", "string")]) is None


texts = st.sampled_from(["", "x", "y", "a/b", "a%2Fb", "2020-01-31", "é", DEFAULT_PARTITION, "1", "x/b=y"])
keys = st.sampled_from(["a", "b", "A"])
signs = st.sampled_from(["=", "=", "!=", "<", "<=", ">", ">=", "like", "not like"])
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
    narrowed = prefixes(node, columns)
    for position in select_partitions(node, columns, partitions).positions:
        if narrowed is not None:
            values = partitions[position]
            name = make_partition_name(["a", "b", "c"], values)
            assert any(name.startswith(prefix) for prefix in narrowed)


def plainly(node: Node, columns: list[tuple[str, str]], values: tuple[str, str, str]) -> bool:
    """Judge one partition of texts and an int by reading the tree, as slowly as it says."""
    if isinstance(node, And):
        return all(plainly(child, columns, values) for child in node.children)
    if isinstance(node, Or):
        return any(plainly(child, columns, values) for child in node.children)
    if isinstance(node, In):
        return node.negated != any(plainly(Comparison(node.key, "=", value), columns, values) for value in node.values)
    if isinstance(node, Between):
        ends = Comparison(node.key, ">=", node.low), Comparison(node.key, "<=", node.high)
        return all(plainly(end, columns, values) for end in ends) != node.negated
    text = values["abc".index(node.key.lower())]
    if node.key == "c":
        return {"=": int(text) == node.value, "<": int(text) < node.value}[node.operator]  # type: ignore[operator]
    wanted = str(node.value)
    if wanted == DEFAULT_PARTITION:
        text = text or wanted
    return {
        "=": text == wanted,
        "!=": text != wanted,
        "<": text < wanted,
        "<=": text <= wanted,
        ">": text > wanted,
        ">=": text >= wanted,
        "like": text == wanted,
        "not like": text != wanted,
    }[node.operator]


@given(nodes, st.lists(st.tuples(texts, texts, st.sampled_from(["1", "2", "3"])), min_size=1, max_size=200))
def test_many_partitions_are_judged_as_each_would_be(node: Node, partitions: list[tuple[str, str, str]]) -> None:
    columns = [("a", "string"), ("b", "varchar(30)"), ("c", "int")]
    if "_" in str(node).replace(DEFAULT_PARTITION, "") or f"like', value='{DEFAULT_PARTITION}" in str(node):
        return  # a wildcard of LIKE, which this knows nothing of
    found = select_partitions(node, columns, partitions)
    assert found.positions == [number for number, values in enumerate(partitions) if plainly(node, columns, values)]
    assert not found.unjudged or any(value in ("", DEFAULT_PARTITION) for values in partitions for value in values)


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
    assert selects(Comparison("k", "like", pattern), [("k", "string")], text) == (re.fullmatch(translated, text, re.DOTALL) is not None)
