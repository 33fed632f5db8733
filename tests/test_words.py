"""Names of files and of code, docstrings, comments and pages keep to the words of docs/glossary.md."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]
NOT_IN_NAMES = {"tell", "telling", "tells", "told", "whoever", "whom", "anew", "affair"}
NOT_IN_TESTS = {"what", "whatever"}
"""Words that are not in the name of a test, which is a sentence."""
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
"""Code is not a person, see the table in the glossary."""


BLOCK = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
"""A block of code in a page."""
Text = tuple[int, str]
"""A text and its line."""


def strings(nodes: Sequence[ast.AST]) -> tuple[list[Text], list[Text]]:
    """Return the texts that stand alone, which are docstrings and those of attributes, and the other strings that hold a blank."""
    alone = [node.value for node in nodes if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)]
    found = [node for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    own = {id(each) for each in alone}
    docstrings = [(each.lineno, str(each.value)) for each in found if id(each) in own]
    return docstrings, [(each.lineno, str(each.value)) for each in found if id(each) not in own and " " in str(each.value)]


def names(nodes: Sequence[ast.AST]) -> Iterator[Text]:
    for node in nodes:
        for field in ("id", "arg", "attr", "name"):
            name = getattr(node, field, None)
            if isinstance(name, str) and (field, name) != ("attr", "tell"):  # of a file: Python names its place so
                yield getattr(node, "lineno", 0), name


def comments(source: str) -> Iterator[Text]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("# ")


def wrong_words(source: str, *, messages: bool = False) -> Iterator[Text]:
    """Find the texts of a module that break a rule: its docstrings, comments and names, and on request its messages."""
    nodes = list(ast.walk(ast.parse(source)))
    docstrings, others = strings(nodes)
    yield from (found for found in docstrings if headless(found[1]) or person(found[1]))
    yield from (found for found in comments(source) if has_clause(found[1]) or person(found[1]))
    yield from (found for found in names(nodes) if unwanted(found[1]))
    if messages:
        yield from (found for found in others if has_clause(found[1]) or person(found[1]))


def wrong_file_name(path: Path) -> Iterator[Text]:
    words = path.stem.replace("_", " ")
    if has_clause(words) or person(words):
        yield 0, "the file's name"


def headless(text: str) -> bool:
    return BEGINNING.match(text) is not None or has_clause(text)


def has_clause(text: str) -> bool:
    return CLAUSE.search(QUOTED.sub("..", text)) is not None


def person(text: str) -> bool:
    return PERSONS.search(QUOTED.sub("..", text)) is not None


def unwanted(name: str) -> bool:
    words = set(name.lower().strip("_").split("_"))
    return bool(words & (NOT_IN_NAMES | NOT_IN_TESTS if name.startswith("test_") else NOT_IN_NAMES))


@pytest.mark.parametrize("folder", ["metastore", "tests", "benchmarks", "examples", "migrations"])
def test_words(folder: str) -> None:
    """Comments of the database's columns are left out of the messages: they change by migrations only."""
    wrong = [
        f"{name}:{line}: {' '.join(text.split())[:120]}"
        for path in sorted((PROJECT / folder).rglob("*.py"))
        for name in [str(path.relative_to(PROJECT))]
        for line, text in [
            *wrong_file_name(path),
            *wrong_words(path.read_text(), messages=folder == "metastore" and "/schema/" not in name),
        ]
    ]
    assert not wrong, "\n".join(wrong)


def sentences(page: str) -> Iterator[Text]:
    """Return the lines of a page, and the cells of its tables, without code and questions."""
    without_code = BLOCK.sub(lambda block: "\n" * block[0].count("\n"), page)
    for line, text in enumerate(without_code.splitlines(), 1):
        yield from ((line, part) for cell in text.split("|") if not (part := cell.strip("#*-> ")).endswith("?"))


def test_pages() -> None:
    pages = [page for page in [*PROJECT.glob("*.md"), *(PROJECT / "docs").rglob("*.md")] if page.name != "glossary.md"]
    wrong = [
        f"{page.relative_to(PROJECT)}:{line}: {text[:120]}"
        for page in sorted(pages)
        for line, text in sentences(page.read_text())
        if has_clause(text) or person(text)
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
def test_headless_clauses_are_found(text: str, wrong: bool) -> None:
    assert headless(text) is wrong


def test_names_of_files_are_read() -> None:
    assert list(wrong_file_name(PROJECT / "0003_find_what_lies_there.py")) == [(0, "the file's name")]
    assert list(wrong_file_name(PROJECT / "0003_find_objects.py")) == []


def test_each_kind_of_text_is_read() -> None:
    source = (
        '"""What a module does."""\n# for who reads this\ntold = what = 1\nraise ValueError("whoever holds it")\nfine = "a reader"\n'
        "def test_what_is_there(): ...\n"
    )
    assert sorted(line for line, _ in wrong_words(source, messages=True)) == [1, 2, 3, 4, 6]
    assert sorted(line for line, _ in wrong_words(source)) == [1, 2, 3, 6]
