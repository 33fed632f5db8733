"""Names and docstrings keep to the words of docs/glossary.md."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "metastore"
MODULES = sorted(PACKAGE.rglob("*.py"))
HEADLESS = re.compile(r"(What|Whom|Whoever|Of|By|That of|Those of)\b")
NOT_IN_NAMES = {"told", "tells"}


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Every text that stands alone: docstrings, those of attributes too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value


def names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        for field in ("id", "arg", "attr", "name"):
            name = getattr(node, field, None)
            if isinstance(name, str):
                yield getattr(node, "lineno", 0), name


@pytest.mark.parametrize("check", ["docstrings", "names"])
def test_words(check: str) -> None:
    wrong = []
    for path in MODULES:
        tree = ast.parse(path.read_text())
        if check == "docstrings":
            wrong += [f"{path.relative_to(PACKAGE)}:{line}: {text[:60]}" for line, text in docstrings(tree) if HEADLESS.match(text)]
        else:
            wrong += [
                f"{path.relative_to(PACKAGE)}:{line}: {name}"
                for line, name in names(tree)
                if NOT_IN_NAMES & set(name.lower().strip("_").split("_"))
            ]
    assert not wrong, "\n".join(wrong)
