r"""Read SQL expressions that Hive keeps in its constraints: constants, and texts as other engines take them. Evaluates no column.

    constant("cast('ab' as varchar(3))")      'ab'
    respelled("`v` <> 'it\'s'", strings=..)  the same text with its strings, and times, spelled otherwise

Strings are in either kind of quotes, with escapes by backslash; strings that follow each other are one: `'it''s'` is `its`.
Source: Hive's HiveLexer and BaseSemanticAnalyzer.unescapeSQLString; constraints of Hive 4.0.1
(`tests/hive4/spark/test_spark_constraints.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from metastore.rules.values.times import timestamp

_STRING = r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
_NAME = r"`(?:[^`]|``)*`"
_TOKEN = re.compile(
    rf"""\s*(?:
      (?P<string>{_STRING}(?:\s*{_STRING})*)
    | (?P<name>{_NAME})
    | (?P<number>(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?(?:bd|[lsyd])?(?!\w))
    | (?P<word>\w+)
    | (?P<mark>[^\s])
    | (?P<end>$)
    )""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_LITERAL = re.compile(
    rf"(?P<name>{_NAME})|(?P<time>\btimestamp\s*(?P<of>{_STRING}))|(?P<string>{_STRING}(?:\s*{_STRING})*)", re.IGNORECASE | re.DOTALL
)
_ONE = re.compile(_STRING, re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|([01][0-7]{2})|(.))", re.DOTALL)
_LETTERS = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_WORDS: dict[str, Any] = {"null": None, "true": True, "false": False}


class NoConstant(ValueError):
    """An expression is more than a constant: it is left to engines that compute it."""


def constant(text: str, now: datetime) -> Any:
    """Return the value of a constant: text, int, float, Decimal, bool, date, datetime or None. NoConstant.

    `now` is the wall-clock time of `current_date()` and `current_timestamp()`. The value of a cast is the constant in it,
    which the column then converts as it does any other value.
    """
    reader = _Reader(text, now)
    value = reader.value()
    reader.expect("end", "")
    return value


def respelled(text: str, strings: Callable[[str], str], times: Callable[[str], str]) -> str:
    """Return an expression with its strings spelled by `strings`, and the strings after `timestamp` by `times`. Both get the plain text."""

    def spell(match: re.Match[str]) -> str:
        if match["name"]:
            return match[0]
        return f"timestamp {times(text_of(match['of']))}" if match["time"] else strings(text_of(match["string"]))

    return _LITERAL.sub(spell, text)


def text_of(token: str) -> str:
    """Return the text of consecutive strings in quotes."""
    return "".join(_ESCAPE.sub(_letter, each[0][1:-1]) for each in _ONE.finditer(token))


def _letter(match: re.Match[str]) -> str:
    if match[1] or match[2]:
        return chr(int(match[1], 16) if match[1] else int(match[2], 8))
    return _LETTERS.get(match[3], match[3])


class _Reader:
    def __init__(self, text: str, now: datetime) -> None:
        self._text = text
        self._now = now
        self._place = 0

    def value(self) -> Any:
        kind, token = self._next()
        word = token.lower()
        if kind == "string":
            return text_of(token)
        if kind == "number":
            return _number(word)
        if token in ("+", "-"):
            kind, token = self._next()
            if kind != "number":
                raise self._unknown()
            return _number(token.lower()) if word == "+" else -_number(token.lower())
        if kind != "word":
            raise self._unknown()
        if word in _WORDS:
            return _WORDS[word]
        if word in ("current_date", "current_timestamp"):
            return self._current(word)
        if word in ("date", "timestamp"):
            return self._time(word)
        if word == "cast":
            return self._cast()
        raise self._unknown()

    def expect(self, kind: str, token: str) -> None:
        found = self._next()
        if (found[0], found[1].lower()) != (kind, token):
            raise self._unknown()

    def _current(self, word: str) -> date | datetime:
        if self._text[self._place :].strip().startswith("("):
            self.expect("mark", "(")
            self.expect("mark", ")")
        return self._now.date() if word == "current_date" else self._now

    def _time(self, word: str) -> date | datetime:
        kind, token = self._next()
        if kind != "string":
            raise self._unknown()
        try:
            return date.fromisoformat(text_of(token)) if word == "date" else timestamp(text_of(token))
        except ValueError as error:
            raise self._unknown() from error

    def _cast(self) -> Any:
        self.expect("mark", "(")
        value = self.value()
        self.expect("word", "as")
        if self._next()[0] != "word":
            raise self._unknown()
        depth = 1
        while depth:
            kind, text = self._next()
            if kind == "end":
                raise self._unknown()
            depth += (text == "(") - (text == ")")
        return value

    def _next(self) -> tuple[str, str]:
        match = _TOKEN.match(self._text, self._place)
        assert match is not None  # any letter is a mark
        assert match.lastgroup is not None
        self._place = match.end()
        return match.lastgroup, match[match.lastgroup]

    def _unknown(self) -> NoConstant:
        return NoConstant(f"{self._text} is not a constant")


def _number(text: str) -> Any:
    """Read a number in lower case, as Hive does: one with a point or an exponent is a decimal unless it ends with `d`."""
    if text.endswith("bd"):
        return Decimal(text[:-2])
    if text.endswith("d"):
        return float(text[:-1])
    if text[-1] in "lsy":
        return int(text[:-1]) if text[:-1].isdecimal() else Decimal(text[:-1])
    return int(text) if text.isdecimal() else Decimal(text)
