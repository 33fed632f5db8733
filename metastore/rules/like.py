r"""Match `LIKE` patterns on partition values. Never uses a backtracking engine.

Two generations of clients write two languages. 4.x servers read SQL: `%` any characters, `_` one, `\` makes either a letter. 2.3
and 3.1 servers handed LIKE to JDO, where `.*` means any characters and `.` one, and Spark still writes that (`startswith("a")` arrives as
`like "a.*"`). A pattern without `.*` is SQL. A pattern with `.*` is read in both languages. A partition that matches in only one of them
may match: a read returns it, and a drop by the pattern is refused.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_left, bisect_right
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from metastore.rules.patterns import compile_expression

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_SQL = re.compile(r"\\([\\%_])|([%_])|(.)", re.DOTALL)
_JDO = re.compile(r"(\.\*)|(\.)|(.)", re.DOTALL)
_ANY, _ONE = ".*", "."


def _literal(character: str) -> str:
    return character if character.isalnum() or not character.isascii() else "\\" + character


class _Pattern:
    """Wildcards and letters in their order, each as (text, whether it is a letter)."""

    def __init__(self, parts: list[tuple[str, bool]]) -> None:
        self.parts = parts
        self.ends = (parts[:1] == [(_ANY, False)], parts[-1:] == [(_ANY, False)])
        self.inner = "".join(text for text, is_letter in parts if is_letter)
        """All letters together. A matching text contains them if no wildcard is between them."""
        self.is_simple = bool(self.inner) and sum(not is_letter for _, is_letter in parts) == sum(self.ends)
        self.runs = ["".join(text for text, _ in run) for is_letter, run in groupby(parts, itemgetter(1)) if is_letter]
        """Letters between wildcards."""
        self.least = sum(text != _ANY or is_letter for text, is_letter in parts)
        """The fewest characters of a matching text; also the most, unless a wildcard stands for any number of them."""

    def matcher(self) -> Callable[[str], bool]:
        return compile_expression("".join(_literal(text) if is_letter else text for text, is_letter in self.parts))

    def among(self, texts: Sequence[str]) -> list[str]:
        """Return the matches among ascending texts. Texts with the pattern's prefix are found without a look at the others."""
        inner = self.inner
        if not self.is_simple:
            matches = self.matcher()
            found = self._possible(texts)
            return [*filter(matches, found)] if inner else found
        if self.ends == (True, True):
            return [text for text in texts if inner in text]
        if self.ends == (True, False):
            return [text for text in texts if text.endswith(inner)]
        begin = _beginning_with(inner, texts)
        return begin if self.ends[1] else begin[: begin[:1] == [inner]]

    def _possible(self, texts: Sequence[str]) -> list[str]:
        """Return the texts that may match, by beginning, length and longest run of letters; for a pattern without letters, the matches."""
        if self.parts and self.parts[0][1]:
            texts = _beginning_with(self.runs[0], texts)
        least, most = self.least, sys.maxsize if (_ANY, False) in self.parts else self.least
        longest = max(self.runs, key=len, default="")
        return [text for text in texts if longest in text and least <= len(text) <= most]


def _beginning_with(begin: str, texts: Sequence[str]) -> list[str]:
    """Return the texts, which ascend, that begin with the prefix."""
    length = len(begin)
    return [*texts[bisect_left(texts, begin) : bisect_right(texts, begin, key=lambda text: text[:length])]]


def _sql(pattern: str) -> _Pattern:
    return _Pattern(
        [
            ({"%": _ANY, "_": _ONE}[wildcard], False) if wildcard else (escaped or literal, True)
            for escaped, wildcard, literal in _SQL.findall(pattern)
        ]
    )


def sql_matcher(pattern: str) -> Callable[[str], bool]:
    """Return a predicate over texts for a LIKE pattern of SQL; MetaError when it is too long."""
    return _sql(pattern).matcher()


def like(pattern: str, texts: Sequence[str]) -> tuple[set[str], set[str]]:
    """Return the sets of the ascending texts that a LIKE pattern matches in both languages, and in at least one. MetaError."""
    sql = {*_sql(pattern).among(texts)}
    if ".*" not in pattern:
        return sql, sql
    jdo = {*_Pattern([(many or one or literal, not (many or one)) for many, one, literal in _JDO.findall(pattern)]).among(texts)}
    return sql & jdo, sql | jdo
