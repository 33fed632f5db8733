"""A change of a table's columns: the renamed ones, the dropped ones, and the names elsewhere that follow."""

from __future__ import annotations

import pytest

from metastore.idl import FieldSchema, Order, SkewedInfo, StorageDescriptor
from metastore.rules.catalog import columns as rules
from metastore.rules.catalog.columns import ColumnsDifference


def fields(text: str) -> list[FieldSchema]:
    """Read `a int, b string`; without a type it is int."""
    parts = (each.strip().partition(" ") for each in text.split(",") if each)
    return [FieldSchema(name=name, type=kind or "int") for name, _, kind in parts]


@pytest.mark.parametrize(
    ("old", "new", "renamed", "dropped"),
    [
        ("a,b,c", "a,b,c", {}, set()),
        ("a,b,c", "a2,b,c", {"a": "a2"}, set()),
        ("a,b,c", "A,B,C", {}, set()),
        ("a,b", "x,y", {"a": "x", "b": "y"}, set()),
        ("a,b,c", "c,a,b", {}, set()),
        ("a,b,c", "b,c,a2", {"a": "a2"}, set()),
        ("a,b,c", "a,c", {}, {"b"}),
        ("a,b,c", "a", {}, {"b", "c"}),
        ("a,b", "a,b,c", {}, set()),
        ("a,b", "c,a,b", {}, set()),
        ("a int,b", "a2 bigint,b", {"a": "a2"}, set()),
        ("a string,b", "a2 int,b", {}, {"a"}),
        ("a string,b string", "b string,c date", {}, {"a"}),
        ("", "a", {}, set()),
        ("a", "", {}, {"a"}),
    ],
)
def test_a_column_is_renamed_at_its_place(old: str, new: str, renamed: dict[str, str], dropped: set[str]) -> None:
    assert rules.difference(fields(old), fields(new)) == ColumnsDifference(renamed, frozenset(dropped))


def test_a_name_comes_twice_in_any_case_and_among_keys() -> None:
    assert rules.repeated_column(fields("a,b"), fields("c,d")) is None
    assert rules.repeated_column(fields("a,b,A")) == "a"
    assert rules.repeated_column(fields("größe,GRÖSSE"), None) is None
    assert rules.repeated_column(fields("Ä,ä")) == "ä"
    assert rules.repeated_column(fields("a,b"), fields("B")) == "b"
    assert rules.repeated_column([], fields("k,K")) == "k"


def test_columns_that_storage_names_are_columns() -> None:
    sd = StorageDescriptor(
        cols=fields("a,b"),
        bucketCols=["A", "x"],
        sortCols=[Order(col="b", order=1), Order(col="y", order=0)],
        skewedInfo=SkewedInfo(skewedColNames=["B", "z"]),
    )
    assert rules.strangers(sd) == ["x", "y", "z"]
    known = StorageDescriptor(cols=fields("a"), bucketCols=["x"])
    assert rules.strangers(sd, known, None) == ["y", "z"], "what is there already is not refused"
    sd.cols = []
    assert rules.strangers(sd) == [], "the serde has the columns"
    assert rules.strangers(StorageDescriptor(cols=fields("a"))) == []


def test_columns_that_storage_names_follow_a_rename() -> None:
    sd = StorageDescriptor(
        cols=fields("n,b"),
        bucketCols=["A", "b"],
        sortCols=[Order(col="a", order=1), Order(col="b", order=0)],
        skewedInfo=SkewedInfo(skewedColNames=["a"], skewedColValues=[["1"]]),
    )
    found = rules.follow(sd, {"a": "n"})
    assert (found.bucketCols, [(order.col, order.order) for order in found.sortCols]) == (["n", "b"], [("n", 1), ("b", 0)])
    assert (found.skewedInfo.skewedColNames, found.skewedInfo.skewedColValues) == (["n"], [["1"]])
    assert (sd.bucketCols, sd.skewedInfo.skewedColNames) == (["A", "b"], ["a"]), "what a client sent is not changed"
    assert rules.follow(sd, {}) is sd


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("a > 0", "n > 0"),
        ("A > 0 and b < `a`", "n > 0 and b < `n`"),
        ("a > length(b)", "n > length(b)"),
        ("a(b) = 'a' and \"a\" <> ab and a1 > 1", "a(b) = 'a' and \"a\" <> ab and a1 > 1"),
        ("a in (1, 2)", "n in (1, 2)"),
        ("d > 0", None),
        ("`D` > 0", None),
        ("b = 'd'", "b = 'd'"),
    ],
)
def test_expressions_follow(expression: str, expected: str | None) -> None:
    assert rules.renamed_in(expression, ColumnsDifference({"a": "n"}, frozenset({"d"}))) == expected


def test_a_new_name_that_is_no_word_is_quoted() -> None:
    assert rules.renamed_in("a > 0", ColumnsDifference({"a": "my col"}, frozenset())) == "`my col` > 0"


def test_statistics_of_a_column_are_lost_with_its_name_or_type() -> None:
    assert rules.lost_columns(fields("a,b,c string"), fields("A,b bigint,d")) == ["b", "c"]
    assert rules.lost_columns(None, fields("a")) == []
