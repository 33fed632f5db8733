"""Type names: their grammar, the changes that a column allows, and the columns that a table may have."""

from __future__ import annotations

import pytest

from metastore.errors import InvalidObject, InvalidOperation, MetaError
from metastore.idl import FieldSchema, SkewedInfo
from metastore.rules.values import types


def columns(*pairs: tuple[str | None, str | None]) -> list[FieldSchema]:
    return [FieldSchema(name=name, type=kind) for name, kind in pairs]


@pytest.mark.parametrize(
    "text",
    [
        "int",
        "INTEGER",
        "decimal",
        "decimal(38)",
        "decimal(10, 2)",
        "char(255)",
        "varchar(65535)",
        "timestamp with local time zone",
        "array<int>",
        "map<string,array<struct<a:int,`b c`:decimal(10,2)>>>",
        "uniontype<int,string>",
        "struct<>",
        "struct<a_1 : string , B:int>",
        "interval_day_time",
        "array<timestamp with local time zone>",
        "variant",
        "Unknown",
        "struct<v:variant,u:map<string,unknown>>",
    ],
)
def test_types_of_hive_are_valid(text: str) -> None:
    assert types.parse_type(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "foo",
        "int(3)",
        "char",
        "char(0)",
        "char(256)",
        "varchar(65536)",
        "decimal(39)",
        "decimal(2,3)",
        "array<>",
        "array<int,int>",
        "map<int>",
        "map<array<int>,int>",
        "struct<int>",
        "struct<a:foo>",
        "array<int",
        "int>",
        "int int",
        "variant(3)",
        "map<variant,int>",
        "array<" * 5000 + "int" + ">" * 5000,
    ],
)
def test_other_texts_are_no_types(text: str) -> None:
    with pytest.raises(MetaError, match="Invalid type"):
        types.parse_type(text)


def test_a_parsed_type_shows_its_parts() -> None:
    parsed = types.parse_type("struct<a:decimal(10,2),b:array<string>>")
    assert parsed.field_names == ("a", "b")
    assert parsed.children[0] == types.HiveType("decimal", (10, 2))
    assert parsed.children[1].children == (types.HiveType("string"),)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("VARCHAR(20)", "varchar"),
        ("integer", "int"),
        ("numeric(3,1)", "decimal"),
        ("array<int>", "array"),
        ("timestamp", "timestamp"),
        ("timestamp with local time zone", "timestamp with time zone"),
        ("", ""),
    ],
)
def test_the_bare_name_leaves_parameters_out(text: str, name: str) -> None:
    assert types.type_name(text) == name


@pytest.mark.parametrize(
    ("old", "new", "allowed"),
    [
        ("int", "bigint", True),
        ("bigint", "int", False),
        ("int", "string", True),
        ("string", "int", False),
        ("char(3)", "varchar(2)", True),
        ("decimal(10,2)", "decimal(5,1)", True),
        ("decimal(10,2)", "double", True),
        ("double", "float", False),
        ("date", "string", True),
        ("string", "date", False),
        ("void", "boolean", True),
        ("boolean", "string", False),
        ("array<int>", "array<string>", True),
        ("array<int>", "string", False),
        ("timestamp", "date", False),
        ("binary", "string", False),
        ("INT", "int", True),
        ("VARIANT", "variant", True),
        ("variant", "string", False),
        ("int", "variant", False),
        ("unknown", "date", True),
        ("unknown", "array<int>", True),
        ("int", "unknown", False),
    ],
)
def test_types_change_only_to_wider_ones(old: str, new: str, allowed: bool) -> None:
    assert types.is_compatible_change(old, new) is allowed


def test_all_columns_that_can_not_change_are_named() -> None:
    old = columns(("a", "int"), ("b", "string"), ("c", "bigint"))
    with pytest.raises(InvalidOperation, match=r"respective positions :\nb2,c$"):
        types.validate_column_changes(old, columns(("a", "bigint"), ("b2", "int"), ("c", "int"), ("d", "int")))
    types.validate_column_changes(old, old[:1])


def test_columns_are_equal_in_any_case_of_their_names() -> None:
    assert types.columns_equal(columns(("A", "int")), columns(("a", "int")))
    assert not types.columns_equal(columns(("a", "int")), columns(("a", "INT")))
    assert not types.columns_equal(columns(("a", "int")), [FieldSchema(name="a", type="int", comment="c")])
    assert not types.columns_equal(columns(("a", "int")), columns(("a", "int"), ("b", "int")))
    assert not types.columns_equal(columns(("a", "int")), None)
    assert types.columns_equal(None, None)


def test_bad_columns_are_refused_with_hives_texts() -> None:
    types.validate_columns(columns(("a", "int"), ("b", types.FROM_DESERIALIZER), ("c", "struct<a:unknown>")))
    with pytest.raises(InvalidObject, match=r"^Invalid column type: foo<int>$"):
        types.validate_columns(columns(("a", "foo<int>")))
    with pytest.raises(InvalidObject, match=r"^Invalid column type: $"):
        types.validate_columns(columns(("a", "")))
    with pytest.raises(InvalidObject, match=r"^Invalid partition column type: foo$"):
        types.validate_columns([], columns(("a", "foo")))
    with pytest.raises(InvalidObject, match=r"^Invalid skew column \[b, c\]$"):
        types.validate_columns(columns(("a", "int")), None, SkewedInfo(skewedColNames=["a", "b", "c"]))
    with pytest.raises(InvalidObject, match="name"):
        types.validate_columns(columns(("a\0", "int")))


@pytest.mark.parametrize("wrong", [None, columns((None, "int")), columns(("a", None))])
def test_a_missing_name_or_type_is_a_meta_error(wrong: list[FieldSchema] | None) -> None:
    with pytest.raises(MetaError):
        types.validate_columns(wrong)


@pytest.mark.parametrize(
    ("stored", "written"),
    [
        ("decimal(10, 2)", "decimal(10, 2)"),
        ("struct<a:int,b:string>", "struct<`a`:int, `b`:string>"),
        ("map<string,struct<a b:decimal(5,2),`c``d`:array<struct<>>>>", "map<string,struct<`a b`:decimal(5,2), `c``d`:array<struct<>>>>"),
        ("struct<t:timestamp with local time zone,v:varchar(3),u:uniontype<int,string>>",
         "struct<`t`:timestamp with local time zone, `v`:varchar(3), `u`:uniontype<int,string>>"),
        ("struct<a:nothing>", "struct<a:nothing>"),
    ],
)  # fmt: skip
def test_fields_of_structs_are_quoted_in_statements(stored: str, written: str) -> None:
    assert types.statement_type(stored) == written
