"""Statements are parsed as Hive and Spark mean them; an error names the text that does not fit, and its line."""

from __future__ import annotations

import pytest

from metastore.spark.grammar.columns import Column, columns
from metastore.spark.grammar.tokens import Reader, WrongStatement, is_complete, statements, tokens


def test_statements_end_at_semicolons_that_are_no_text_name_or_comment() -> None:
    text = "a; b 'x;\\'y' \";\" `q;``;`; -- c;\n /* d; /* e; */ f; */ g\n;;\n-- alone"
    assert statements(text) == ["a", "b 'x;\\'y' \";\" `q;``;`", "g"]
    assert statements("select 1 -- no end") == ["select 1"]
    assert [is_complete(part) for part in ("", "select 1", "select ';'", "select 1; -- c")] == [True, False, False, True]


def test_pieces_know_their_places() -> None:
    text = "select /*+ hint */ `a b`.c, 'é' || \"x\", 1.5e3BD from t1 -- end"
    assert [text[each.start : each.end] for each in tokens(text)] == [each.text for each in tokens(text)]
    assert [each.text for each in tokens(text)][:4] == ["select", "`a b`", ".", "c"]


def test_columns_keep_hives_types() -> None:
    found = columns(
        "ID integer, `Na``me` VARCHAR ( 20 ) COMMENT 'it''s', d Decimal(10, 2) NOT NULL, p numeric, "
        "m map<string, struct<x : int COMMENT 'c', y:array<char(3)>>>, t timestamp with local time zone, f double precision"
    )
    assert found.columns == [
        Column("id", "int"),
        Column("na`me", "varchar(20)", "its"),
        Column("d", "decimal(10,2)"),
        Column("p", "decimal(10,0)"),
        Column("m", "map<string,struct<x:int,y:array<char(3)>>>"),
        Column("t", "timestamp with local time zone"),
        Column("f", "double"),
    ]
    assert [(each.kind, each.columns) for each in found.constraints] == [("NOT NULL", ("d",))]


def test_constraints_of_columns_and_tables() -> None:
    found = columns(
        "a int CONSTRAINT nn NOT NULL DISABLE RELY, b string DEFAULT concat('a', 'b') COMMENT 'c', c int CHECK (c > 0 AND (c < 9)), "
        "d date DEFAULT date '2020-01-01', e int DEFAULT -1 NOT NULL, primary int, "
        "CONSTRAINT pk PRIMARY KEY (A, b) DISABLE NOVALIDATE RELY, "
        "UNIQUE (c), FOREIGN KEY (a) REFERENCES db.other(x), CHECK (a <> c) DISABLE"
    ).constraints
    assert [(each.kind, each.columns, each.text, each.name, each.enable, each.rely) for each in found] == [
        ("NOT NULL", ("a",), "", "nn", False, True),
        ("DEFAULT", ("b",), "concat('a', 'b')", None, True, True),
        ("CHECK", ("c",), "c > 0 AND (c < 9)", None, True, True),
        ("DEFAULT", ("d",), "date '2020-01-01'", None, True, True),
        ("DEFAULT", ("e",), "-1", None, True, True),
        ("NOT NULL", ("e",), "", None, True, True),
        ("PRIMARY", ("a", "b"), "", "pk", False, True),
        ("UNIQUE", ("c",), "", None, False, False),
        ("FOREIGN", ("a",), "", None, False, False),
        ("CHECK", (), "a <> c", None, False, False),
    ]
    assert found[8].references == (("db", "other"), ("x",))


@pytest.mark.parametrize("text", ["", "a", "a int b int", "a int,", "a array<int", "a int COMMENT x", "a decimal(3"])
def test_an_invalid_column_is_refused_with_its_line(text: str) -> None:
    with pytest.raises(WrongStatement, match="line 1: "):
        columns(text)


def test_a_reader_takes_words_names_properties_and_brackets() -> None:
    reader = Reader("show  locks `a b`.c ('x'='1', y.z = 'it\\'s', n = -2) (a (b) 'c)') rest of it;")
    assert reader.takes("SHOW", "LOCKS")
    assert not reader.takes("EXTENDED")
    assert reader.names() == ["a b", "c"]
    assert reader.properties() == {"x": "1", "y.z": "it's", "n": "-2"}
    assert reader.inner() == "a (b) 'c)'"
    assert reader.rest() == "rest of it"
    assert reader.at_end()
