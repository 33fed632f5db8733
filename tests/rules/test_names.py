"""Names: the allowed ones, the parts of database arguments, and the names that a pattern selects."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metastore.errors import InvalidObject, MetaError
from metastore.rules import names, patterns


def select(pattern: str | None, *candidates: str) -> list[str]:
    return [name for name in candidates if names.pattern_matcher(pattern)(name)]


def test_names_are_trimmed_and_lowered() -> None:
    assert names.normalize("  MyTable\t") == "mytable"


@pytest.mark.parametrize("name", ["t", "T_1", "2020", "_x", "a" * 256])
def test_plain_table_names_pass(name: str) -> None:
    names.validate_table_name(name)
    names.validate_table_name(name, special_characters=True)


@pytest.mark.parametrize("name", [None, "", "a/b", "..", ".", "a\0", "a\n", "t ", "../../x", "/x", "file:///x", "\\", "é", "a" * 257])
def test_names_that_could_leave_their_parent_never_pass(name: str | None) -> None:
    for special in (False, True):
        with pytest.raises(InvalidObject, match="is not a valid object name"):
            names.validate_table_name(name, special_characters=special)


SPECIAL = ["a b", "a.b", "a-b", "a@b", "x$y", "50%", "a#$c", "what?", ".a", "a..b", "~", "`q`"]


@pytest.mark.parametrize("name", SPECIAL)
def test_special_characters_pass_unless_they_are_switched_off(name: str) -> None:
    names.validate_table_name(name)
    names.validate_database_name(name)
    for validate in (names.validate_table_name, names.validate_database_name):
        with pytest.raises(InvalidObject, match="special_characters_in_table_names"):
            validate(name, special_characters=False)


@pytest.mark.parametrize("name", ["@a", "@hive#a", "!", "a/b", "..", "a\\b", "größe", "a\0", "a\n", " a", "a" * 129, "", None])
def test_a_database_has_no_name_that_later_calls_read_otherwise(name: str | None) -> None:
    with pytest.raises(InvalidObject, match="is not a valid database name"):
        names.validate_database_name(name)


def test_a_tables_directory_is_named_as_in_hive() -> None:
    assert [names.directory_name(name) for name in ("t_1", "a-b", "a b", "..")] == ["t_1", "a-45-b", "a-32-b", "-46--46-"]


def test_no_two_tables_have_one_directory() -> None:
    assert len({names.directory_name(name) for name in [*SPECIAL, "a-45-b", "a_b", "ab"]}) == len(SPECIAL) + 3


@pytest.mark.parametrize(
    ("expression", "fits", "others"),
    [
        (r"[\x20-\x7E&&[^,]]*", ["", "abc", "]&"], ["a,b", "ü"]),
        (r"[[a-c][x-z]]+", ["abz"], ["d"]),
        (r"[a-z&&[^m-p]&&[^x]]+", ["abc", "q"], ["m", "x", "A"]),
        (r"[^a-f&&[c-z]]", ["a", "1", "z"], ["c", "zz"]),
        (r"\u00e9[\x41]", ["éA"], ["eA"]),
        (r"(?i)[a-c&&[^b]]+", ["AC"], ["aB"]),
    ],
)
def test_classes_contain_classes_and_intersections(expression: str, fits: list[str], others: list[str]) -> None:
    matches = patterns.compile_expression(expression)
    assert [text for text in fits + others if matches(text)] == fits


@pytest.mark.parametrize("expression", [r"\xg1", r"\u12", "[" * 60 + "a" + "]" * 60, "[a&&[b]", r"[z-a]"])
def test_classes_and_characters_that_are_none_are_refused(expression: str) -> None:
    with pytest.raises(MetaError, match="Invalid pattern"):
        patterns.compile_expression(expression)


def test_catalog_and_function_names_are_plain() -> None:
    names.validate_database_name("db_1")
    names.validate_catalog_name("spark_catalog")
    names.validate_function_name("f1")
    for name in ("a/b", "a-b", ".."):
        with pytest.raises(InvalidObject, match="is not a valid catalog name"):
            names.validate_catalog_name(name)
    with pytest.raises(InvalidObject, match=r"f\.g is not a valid object name"):
        names.validate_function_name("f.g")


@pytest.mark.parametrize(
    ("validate", "longest"),
    [
        (names.validate_catalog_name, 256),
        (names.validate_database_name, 128),
        (names.validate_table_name, 256),
        (names.validate_function_name, 128),
        (names.validate_data_connector_name, 128),
    ],
)
def test_a_name_that_is_too_long_is_refused_with_the_limit(validate: Callable[[str], None], longest: int) -> None:
    validate("a" * longest)
    with pytest.raises(InvalidObject, match=f"use at most {longest} ASCII letters"):
        validate("a" * (longest + 1))


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        ("@cat#db", ("cat", "db")),
        ("@cat#", ("cat", None)),
        ("@cat#!", ("cat", "")),
        ("db", ("hive", "db")),
        ("", ("hive", "")),
        (None, ("hive", None)),
        ("d#b", ("hive", "d#b")),
        ("@cat#db*", ("cat", "db*")),
    ],
)
def test_database_arguments_may_carry_a_catalog(argument: str | None, expected: tuple[str, str | None]) -> None:
    assert names.split_database(argument) == expected


def test_a_catalog_mark_without_its_end_is_refused() -> None:
    with pytest.raises(MetaError, match="@db"):
        names.split_database("@db")
    assert names.split_database("db", "other") == ("other", "db")


def test_no_pattern_selects_all_and_an_empty_one_nothing() -> None:
    assert select(None, "a", "b") == ["a", "b"]
    assert select("*", "a", "b") == ["a", "b"]
    assert select("", "a", "b") == []


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("test_*", ["test_1", "test_2"]),
        ("TEST_1|other", ["test_1", "other"]),
        ("test_.", ["test_1", "test_2"]),
        (".*", ["test_1", "test_2", "other"]),
        ("*e*", ["test_1", "test_2", "other"]),
        ("test_[2-9]", ["test_2"]),
        ("  other  ", ["other"]),
        ("est", []),
        ("other|", ["other"]),
        ("(t)est_\\d", ["test_1", "test_2"]),
        ("test_{1}1", ["test_1"]),
    ],
)
def test_patterns_select_as_in_hive(pattern: str, expected: list[str]) -> None:
    assert select(pattern, "test_1", "test_2", "other") == expected


@pytest.mark.parametrize(
    "pattern",
    [
        "(a|b)",
        "[a",
        "a)",
        "a{2",
        "a{3,1}",
        "+",
        "(?=a)b",
        "a(?i)b",
        "(?i:a)",
        "(?s)a",
        "(a)\\1",
        "\\",
        "[z-a]",
    ],
)
def test_a_pattern_that_is_no_regular_expression_is_a_meta_error(pattern: str) -> None:
    with pytest.raises(MetaError, match="Invalid pattern"):
        names.pattern_matcher(pattern)


@pytest.mark.parametrize(
    "pattern",
    ["(a+)+" * 8 + "b", "*a" * 60 + "*b", "(.{0,9}){9}x", "(((((a?)?)?)?)?)?" * 20 + "!", "[a-z]+" * 99 + "!"],
)
def test_hostile_patterns_end_after_few_steps(pattern: str) -> None:
    """A backtracking engine needs more than 2**60 steps for each of these."""
    matches = patterns.compile_expression(pattern.replace("*", ".*") if pattern[0] == "*" else pattern)
    assert not matches("a" * 200)


@pytest.mark.parametrize("pattern", ["(" * 500 + "a" + ")" * 500, "((a{99}){99}){99}", "a" * 50_000, "a{99999}"])
def test_patterns_of_unbounded_size_are_refused(pattern: str) -> None:
    with pytest.raises(MetaError):
        patterns.compile_expression(pattern)


@st.composite
def expressions(draw: st.DrawFn, depth: int = 2) -> str:
    atoms = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", "\\w", "\\d", "\\.", "1"])
    if depth:
        atoms |= expressions(depth - 1).map(lambda inner: f"({inner})")
    parts = st.tuples(atoms, st.sampled_from(["", "", "*", "+", "?", "{2}", "{0,2}", "{1,}", "*?"])).map("".join)
    return "|".join(draw(st.lists(st.lists(parts, max_size=3).map("".join), min_size=1, max_size=3)))


@given(expressions(), st.text("abAB1._", max_size=3), st.booleans())
def test_expressions_match_the_same_texts_as_pythons(expression: str, text: str, ignore_case: bool) -> None:
    """The texts are short because Python's engine takes exponential time for some of these expressions."""
    flags = re.DOTALL | re.ASCII | (re.IGNORECASE if ignore_case else 0)
    expected = re.fullmatch(expression, text, flags) is not None
    assert patterns.compile_expression(expression, ignore_case)(text) == expected
    assert patterns.compile_expression(f"(?i){expression}")(text) == (re.fullmatch(expression, text, flags | re.IGNORECASE) is not None)


def test_quoted_text_and_anchors_are_understood() -> None:
    assert patterns.compile_expression("^\\Qa.b*\\Ec$")("a.b*c")
    assert not patterns.compile_expression("^\\Qa.b*\\Ec$")("axb*c")
