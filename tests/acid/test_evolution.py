"""Values of a file's types may be rewritten as values of its table's types, or the reason against that is returned."""

from __future__ import annotations

import pytest

from metastore.acid.values.evolution import loss
from metastore.acid.values.types import parts


@pytest.mark.parametrize(("old", "new"), [
    ("int", "bigint"), ("int", "double"), ("smallint", "float"), ("int", "decimal(12,2)"), ("int", "string"), ("float", "double"),
    ("char(5)", "varchar(5)"), ("string", "varchar(3)"), ("decimal(8,2)", "decimal(10,3)"), ("array<int>", "array<bigint>"),
    ("map<string,int>", "map<string,bigint>"), ("struct<a:int>", "struct<b:string,a:bigint>"), ("timestamp", "timestamp"),
    ("float", "string"), ("double", "varchar(20)"), ("decimal(8,2)", "string"), ("date", "string"), ("timestamp", "varchar(30)"),
    ("decimal(8,2)", "double"), ("bigint", "double"), ("int", "float"), ("int", "decimal(10,1)"), ("array<float>", "array<string>"),
])  # fmt: skip
def test_types_that_keep_the_values_of_readers(old: str, new: str) -> None:
    assert loss([("x", old)], [("y", new)]) is None


@pytest.mark.parametrize(("old", "new"), [
    ("bigint", "int"), ("double", "float"), ("string", "int"), ("boolean", "string"), ("double", "decimal(38,18)"), ("string", "binary"),
    ("decimal(8,2)", "decimal(8,3)"), ("decimal(8,2)", "decimal(8,1)"), ("timestamp", "date"), ("array<int>", "string"),
    ("array<bigint>", "array<int>"), ("map<bigint,int>", "map<int,int>"), ("struct<a:int,b:int>", "struct<a:int>"),
    ("struct<a:int>", "int"),
])  # fmt: skip
def test_types_that_lose_values(old: str, new: str) -> None:
    assert loss([("x", old)], [("y", new)]) is not None


def test_columns_are_compared_by_position() -> None:
    assert loss([("a", "int"), ("b", "string")], [("b", "int"), ("a", "string"), ("c", "date")]) is None
    assert loss([("a", "int"), ("b", "int"), ("c", "int")], [("a", "int"), ("b", "int")]) is None
    assert "the dropped columns are unknown" in (loss([("a", "int"), ("b", "int"), ("c", "int")], [("a", "int"), ("c", "int")]) or "")


def test_names_in_back_quotes() -> None:
    assert parts("struct<id:int,`a b,c`:map<string,int>,`x``y`:struct<`q:r`:int>>") == [
        ("id", "int"),
        ("a b,c", "map<string,int>"),
        ("x`y", "struct<`q:r`:int>"),
    ]
    assert parts("struct<>") == []
