"""Filter strings of every client generation are read. All others are refused with a clear error."""

from __future__ import annotations

import contextlib
import datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metastore.errors import MetaError
from metastore.rules.filters import And, Between, Comparison, In, Node, Or, parse

A1 = Comparison("a", "=", 1)
B2 = Comparison("b", "=", 2)
C3 = Comparison("c", "=", 3)
DAY = datetime.date(2020, 1, 31)
MOMENT = datetime.datetime.fromisoformat("2020-01-31 10:20:30")


@pytest.mark.parametrize("text", [None, "", "  \n"])
def test_an_empty_filter_is_none(text: str | None) -> None:
    assert parse(text) is None


@pytest.mark.parametrize(
    ("text", "node"),
    [
        ("a = 1", A1),
        ("a=1", A1),
        ("a == 1", A1),
        ("1 = a", A1),
        ("a <> 1", Comparison("a", "!=", 1)),
        ("a != - 1", Comparison("a", "!=", -1)),
        ("5 < a", Comparison("a", ">", 5)),
        ("5 >= a", Comparison("a", "<=", 5)),
        ('dt >= "2020"', Comparison("dt", ">=", "2020")),
        ("dt LIKE '%x'", Comparison("dt", "like", "%x")),
        (r"dt = 'it\'s'", Comparison("dt", "=", r"it\'s")),
        ("dt = 'a' 'b'", Comparison("dt", "=", "a''b")),
        ("dt = ''", Comparison("dt", "=", "")),
        ("dt = 2020-01-31", Comparison("dt", "=", DAY)),
        ("dt = date2020-01-31", Comparison("dt", "=", DAY)),
        ("dt = DATE '2020-01-31'", Comparison("dt", "=", DAY)),
        ("'x' = date", Comparison("date", "=", "x")),
        ("date = '2020-01-31'", Comparison("date", "=", "2020-01-31")),
        ("timestamp > 5", Comparison("timestamp", ">", 5)),
        ("t = TIMESTAMP '2020-01-31 10:20:30'", Comparison("t", "=", MOMENT)),
        ("t = timestamp 2020-01-31 10:20:30", Comparison("t", "=", MOMENT)),
        ("t = 2020-01-31 10:20:30", Comparison("t", "=", MOMENT)),
        ("t = '2020-01-31 10:20:30'", Comparison("t", "=", "2020-01-31 10:20:30")),
        ("`a b``c` = 1", Comparison("a b`c", "=", 1)),
        ("a between 1 and 5", Between("a", 1, 5)),
        ("a NOT BETWEEN 'x' AND 'y'", Between("a", "x", "y", negated=True)),
        ("(a) in (1, 2)", In("a", (1, 2))),
        ("a <=> 1", A1),
        ("a = +1", A1),
        ("a = 1.5", Comparison("a", "=", Decimal("1.5"))),
        ("a = -.5", Comparison("a", "=", Decimal("-0.5"))),
        ("a = TRUE", Comparison("a", "=", "true")),
        ("true = 1", Comparison("true", "=", 1)),
        ("dt not like 'x%'", Comparison("dt", "not like", "x%")),
        ("dt > +10000-01-31", Comparison("dt", ">", "+10000-01-31")),
        ("t > +10000-01-31 00:00:00", Comparison("t", ">", "+10000-01-31 00:00:00")),
        ("dt > DATE '-0004-01-31'", Comparison("dt", ">", "-0004-01-31")),
        ("(a) NOT IN ('x')", In("a", ("x",), negated=True)),
        ("a in (1)", In("a", (1,))),
        ("in = 1", Comparison("in", "=", 1)),
        ("1a = 1", Comparison("1a", "=", 1)),
        ("_a=1", Comparison("_a", "=", 1)),
    ],
)
def test_conditions_of_every_generation_are_read(text: str, node: Node) -> None:
    assert parse(text) == node
    assert parse(f"(({text}))") == node


def test_and_binds_stronger_than_or() -> None:
    assert parse("a=1 or b=2 and c=3") == Or((A1, And((B2, C3))))
    assert parse("(a=1 or b=2) and c=3") == And((Or((A1, B2)), C3))
    assert parse("a=1 and b between 1 and 2 and c=3") == And((A1, Between("b", 1, 2), C3))


def test_the_form_that_spark_sends_is_read() -> None:
    assert parse('dt >= "2020-01-01" and (hr = 1 or hr = 2) and ((a = 1 and b = 2) or c = 3)') == And(
        (
            Comparison("dt", ">=", "2020-01-01"),
            Or((Comparison("hr", "=", 1), Comparison("hr", "=", 2))),
            Or((And((A1, B2)), C3)),
        )
    )


def test_rows_of_structs_become_alternatives() -> None:
    text = "(struct(a, b)) in (const struct(1, 2), const struct(3, '4'))"
    assert parse(text) == Or((And((A1, B2)), And((Comparison("a", "=", 3), Comparison("b", "=", "4")))))
    assert parse("(STRUCT(a,b)) NOT IN (STRUCT(1,2))") == Or((Comparison("a", "!=", 1), Comparison("b", "!=", 2)))
    with pytest.raises(MetaError, match="sizes do not match"):
        parse("(struct(a,b)) in (const struct(1))")


@pytest.mark.parametrize(
    "text",
    [
        "a",
        "a =",
        "= 1",
        "a = b",
        "1 = 1",
        "a = 1 and",
        "or a = 1",
        "(a = 1",
        "a = 1)",
        "not a = 1",
        "a is null",
        "a = 'x",
        "a = 1.5.2",
        "a = 1 + 2",
        "my-key = 1",
        "größe = 1",
        "a = 2020-13-45",
        "a = DATE 'x'",
        "a = 1; drop table t",
        "a between 1",
        "a in ()",
        "a in (1",
        "()",
        "a not 1",
        "a = 1 b = 2",
        "a = " + "9" * 5000,
        "a = 1\0",
        "'x' like",
        "`a = 1",
    ],
)
def test_a_text_that_is_not_a_filter_is_refused(text: str) -> None:
    with pytest.raises(MetaError, match=r"^Error parsing partition filter: "):
        parse(text)


def test_like_with_its_pattern_on_the_left_is_refused() -> None:
    with pytest.raises(MetaError, match="RHS for LIKE operator : Key <a>"):
        parse("'x' like a")


@pytest.mark.parametrize("depth", [10, 20_000])
def test_parentheses_and_chains_of_any_depth_are_read(depth: int) -> None:
    assert parse("(" * depth + "a=1" + ")" * depth) == A1
    chain = parse("(" * depth + "a=1" + " or a=1)" * depth)
    assert isinstance(chain, Or)
    assert len(chain.children) == depth + 1


def test_nests_keep_the_order_of_their_terms() -> None:
    assert parse("(a=1 or b=2) or c=3") == parse("a=1 or (b=2 or c=3)") == Or((A1, B2, C3))
    assert parse("a=1 or ((b=2 or a=1) or (c=3 or (b=2 or c=3)))") == Or((A1, B2, A1, C3, B2, C3))
    assert parse("(a=1 and b=2) or (c=3 and a=1)") == Or((And((A1, B2)), And((C3, A1))))


@pytest.mark.parametrize("depth", [10, 20_000])
def test_chains_that_nest_to_the_right_are_read(depth: int) -> None:
    chain = parse("a=1 and (" * depth + "a=1" + ")" * depth)
    assert isinstance(chain, And)
    assert len(chain.children) == depth + 1


def test_alternating_nests_that_are_too_deep_are_refused() -> None:
    def nested(depth: int) -> str:
        return "(" * depth + "a=1" + "".join(f" {('or', 'and')[level % 2]} b=2)" for level in range(depth))

    parse(nested(90))
    with pytest.raises(MetaError, match="nested"):
        parse(nested(20_000))


def test_a_filter_of_unbounded_size_is_refused() -> None:
    with pytest.raises(MetaError, match="characters"):
        parse("a = 1 or " * 200_000 + "a = 1")


@given(st.text(alphabet="ab1 ='\"()<>!-,`\\%_.andorlikestuctbw\n", max_size=60), st.lists(st.text(max_size=4), max_size=3))
def test_any_text_with_any_keys_is_read_or_refused_with_a_meta_error(text: str, keys: list[str]) -> None:
    with contextlib.suppress(MetaError):
        parse(text, keys)


@given(st.text(alphabet="ab1 ='\"()<>!-,`\\%_.andorlikestuctbw\n", max_size=60))
def test_any_text_is_read_or_refused_with_a_meta_error(text: str) -> None:
    with contextlib.suppress(MetaError):
        parse(text)
