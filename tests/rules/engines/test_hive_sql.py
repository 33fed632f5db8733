"""Expressions of Hive's constraints: their constants, and their texts for other engines."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

from metastore.rules.engines.hive_sql import NoConstant, constant, respelled

NOW = datetime(2024, 5, 1, 3, 4, 5)  # noqa: DTZ001  # a wall clock


@pytest.mark.parametrize(("text", "value"), [
    ("5", 5), ("5L", 5), ("-5", -5), ("1Y", 1), ("1.5", Decimal("1.5")), ("1.5BD", Decimal("1.5")), ("1.5D", 1.5), ("1e3", Decimal(1000)),
    ("'a'", "a"), ('"a\'b"', "a'b"), (r"'it\'s'", "it's"), ("'it''s'", "its"), ("'a' \"b\"", "ab"), (r"'a\nb\\\u0041\101'", "a\nb\\AA"),
    (r"'a\_\%\x'", r"a\_\%x"), ("TRUE", True), ("null", None), ("date '2020-01-02'", date(2020, 1, 2)),
    ("timestamp'2020-01-02 03:04:05'", datetime(2020, 1, 2, 3, 4, 5)),  # noqa: DTZ001  # see above
    ("cast('abcd' as varchar(3))", "abcd"), ("CAST(CAST(1.5 AS DECIMAL(5,2)) AS double)", Decimal("1.5")),
    ("current_date()", date(2024, 5, 1)), ("CURRENT_TIMESTAMP", NOW),
])  # fmt: skip
def test_constants(text: str, value: Any) -> None:
    found = constant(text, NOW)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize("text", [
    "", "upper('a')", "1 + 1", "array(1)", "a", "`5`", "cast(5 as int", "cast(5 int)", "cast(upper('a') as string)", "date 5",
    "date '2020-02-30'", "'a", "5x", "- 'a'", "current_date(1)", "current_user()", "timestamp 'x'",
])  # fmt: skip
def test_expressions_that_are_not_constants(text: str) -> None:
    with pytest.raises(NoConstant, match="is not a constant"):
        constant(text, NOW)


def test_strings_are_spelled_otherwise_and_names_are_not() -> None:
    text = "`it's` <> 'it\\'s' and t > TIMESTAMP '2020-01-01' or `timestamp` = \"a\"'b' and timestamp > 'c' and x in (1, 2L)"
    found = respelled(text, lambda value: f"<{value}>", lambda value: f"({value})")
    assert found == "`it's` <> <it's> and t > timestamp (2020-01-01) or `timestamp` = <ab> and timestamp > <c> and x in (1, 2L)"
