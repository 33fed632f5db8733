"""LIKE in partition filters: SQL patterns, and the patterns of older clients."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metastore.rules import like
from metastore.rules.filters import Comparison, Node, parse, select_partitions
from metastore.rules.like import sql_matcher
from metastore.rules.patterns import compile_expression


def select(text: str, hive_type: str, *values: str) -> list[str]:
    return [values[position] for position in select_partitions(parse(text), [("k", hive_type)], [[value] for value in values]).positions]


def selects(node: Node | None, columns: list[tuple[str, str]], *values: str) -> bool:
    return bool(select_partitions(node, columns, [values]).positions)


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
def test_like_finds_the_same_in_many_texts_as_in_each(texts: list[str], pattern: str) -> None:
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
