"""Names, docstrings and comments keep to the words of docs/glossary.md."""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "metastore"
MODULES = sorted(PACKAGE.rglob("*.py"))
NOT_IN_NAMES = {"told", "tells", "whoever", "whom", "anew", "affair"}
QUOTED = re.compile(r"""`[^`]*`|"[^"]*"|'[^'\s][^']*[^'\s]'(?=[\s.,;:)])""")
"""Names of the code, examples, and texts of messages: they are not judged."""
BEGINNING = re.compile(r"(What|Whom|Whoever|Of|By|That of|Those of)\b")
"""A docstring without its own subject."""
CLAUSE = re.compile(
    r"""\b(what|whatever|whoever|whomever)\b                # a clause in place of a noun
      | (?:^|[.:;(]\s*)(who|whom|that\ of)\b                # the same at the beginning of a clause
      | \b(by|for|from|of|to|with|without|at|than|as|and|or)\ (who|that\ of)\b""",
    re.VERBOSE | re.IGNORECASE,
)
PERSONS = re.compile(r"\b(tell|tells|told|lies|let in|lets in|as it stands|goes by|anew)\b", re.IGNORECASE)
"""The code does not speak, lie, or go by something, and does things again, not anew; see the table in the glossary."""


Found = list[tuple[int, str]]
"""Texts by their lines."""


@cache
def read(source: str) -> tuple[Found, Found]:
    """Return the texts that stand alone, docstrings and those of attributes, and the names. The tree, which is large, is not kept."""
    texts: Found = []
    names: Found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            texts.append((node.lineno, node.value.value))
        for field in ("id", "arg", "attr", "name"):
            name = getattr(node, field, None)
            if isinstance(name, str):
                names.append((getattr(node, "lineno", 0), sys.intern(name)))
    return texts, names


def docstrings(source: str) -> Found:
    return read(source)[0]


def names(source: str) -> Found:
    return read(source)[1]


@cache
def comments(source: str) -> Found:
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return [(token.start[0], token.string.lstrip("# ")) for token in tokens if token.type == tokenize.COMMENT]


def headless(text: str) -> bool:
    return BEGINNING.match(text) is not None or has_clause(text)


def has_clause(text: str) -> bool:
    return CLAUSE.search(QUOTED.sub("..", text)) is not None


def person(text: str) -> bool:
    return PERSONS.search(QUOTED.sub("..", text)) is not None


def unwanted(name: str) -> bool:
    return bool(NOT_IN_NAMES & set(name.lower().strip("_").split("_")))


@pytest.mark.parametrize(
    ("found_in", "is_wrong"),
    [(docstrings, headless), (comments, has_clause), (docstrings, person), (comments, person), (names, unwanted)],
    ids=["docstrings", "comments", "persons in docstrings", "persons in comments", "names"],
)
def test_words(found_in: Callable[[str], Found], is_wrong: Callable[[str], bool]) -> None:
    wrong = [
        f"{path.relative_to(PACKAGE)}:{line}: {' '.join(text.split())[:120]}"
        for path in MODULES
        for line, text in found_in(path.read_text())
        if is_wrong(text)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("What a reader sees.", True),
        ("Return what a reader sees.", True),
        ("Delete a directory, whoever made it.", True),
        ("Wait for who holds the row.", True),
        ("The lock: who holds it.", True),
        ("Of the table, that of the index.", True),
        ("Return the users who may read.", False),
        ("The grantor is the caller, who logged in.", False),
        ("ConfigError, which calls the class `what`.", False),
        ('Hive answers "what" to that.', False),
    ],
)
def test_what_is_a_headless_clause(text: str, wrong: bool) -> None:
    assert headless(text) is wrong
