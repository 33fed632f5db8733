"""Each message on the page for troubleshooting is one of the product's, so that a search for it finds the page."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text().partition("## Nothing fails")[0]
MESSAGES = re.findall(r"^\| `(.+?)` \|", PAGE, flags=re.MULTILINE)


def texts() -> Iterator[str]:
    """Yield the product's texts, with `..` for each value that is put in."""
    for path in (ROOT / "metastore").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value
            elif isinstance(node, ast.JoinedStr):
                yield "".join(str(part.value) if isinstance(part, ast.Constant) else ".." for part in node.values)


@pytest.fixture(scope="module")
def known() -> str:
    return "\n".join(texts())


@pytest.mark.parametrize("message", MESSAGES)
def test_a_message_on_the_page_is_the_products(known: str, message: str) -> None:
    assert message in known


def test_the_page_has_messages() -> None:
    assert len(MESSAGES) > 20
