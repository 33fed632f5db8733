"""Divide SQL into words, names, texts and marks with their places; comments are left out.

reader = Reader("SHOW LOCKS `a b` EXTENDED")
reader.takes("SHOW", "LOCKS")         True, and the reader is behind the two words
reader.names()                        ["a b"]
statements("a; b 'x;y'; -- c;")       ["a", "b 'x;y'"]
"""

from __future__ import annotations

import re
from typing import NamedTuple, NoReturn

from metastore.rules.engines.hive_sql import text_of

_TOKEN = re.compile(
    r"""(?P<space>\s+)
      | (?P<comment>--[^\n]*)
      | (?P<string>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
      | (?P<quoted>`(?:[^`]|``)*`)
      | (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\w*)
      | (?P<word>\w+)
      | (?P<mark>.)""",
    re.VERBOSE | re.DOTALL,
)
_BRACKETS = re.compile(r"/\*|\*/")


class WrongStatement(ValueError):
    """A statement does not follow the form of its first words, or can not be done; the text has the remedy."""


class Token(NamedTuple):
    """A piece of a statement: `kind` is string, quoted, number, word or mark."""

    kind: str
    text: str
    start: int
    end: int

    @property
    def word(self) -> str:
        """The text in upper case; "" for a quoted text."""
        return self.text.upper() if self.kind in ("word", "mark") else ""

    @property
    def name(self) -> str:
        """The text of a name."""
        return self.text[1:-1].replace("``", "`") if self.kind == "quoted" else self.text


END = Token("end", "", -1, -1)


def tokens(text: str) -> list[Token]:
    """Return the pieces of a text. A comment may hold comments; one that does not end is a mark."""
    out, place = [], 0
    while place < len(text):
        if text.startswith("/*", place):
            place = _behind(text, place)
            continue
        match = _TOKEN.match(text, place)
        assert match is not None  # any letter is a mark
        assert match.lastgroup is not None
        if match.lastgroup not in ("space", "comment"):
            out.append(Token(match.lastgroup, match[0], place, match.end()))
        place = match.end()
    return out


def _behind(text: str, place: int) -> int:
    depth = 0
    for match in _BRACKETS.finditer(text, place):
        depth += 1 if match[0] == "/*" else -1
        if depth == 0:
            return match.end()
    return len(text)


def statements(text: str) -> list[str]:
    """Return the statements of a text, which semicolons separate; a part with comments alone is not one."""
    out, start = [], 0
    found = tokens(text)
    for number, token in enumerate([*found, Token("end", "", len(text), len(text))]):
        if token.text != ";" and token.kind != "end":
            continue
        inner = [each for each in found[:number] if each.start >= start]
        if inner:
            out.append(text[inner[0].start : inner[-1].end])
        start = token.end
    return out


def is_complete(text: str) -> bool:
    """Return whether the last statement of a text has its semicolon, as a shell asks before it runs typed text."""
    found = tokens(text)
    return not found or found[-1].text == ";"


class Reader:
    """The pieces of one statement, read from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._tokens = tokens(text)
        while self._tokens and self._tokens[-1].text == ";":
            self._tokens.pop()
        self.place = 0

    def next(self, ahead: int = 0) -> Token:
        """Return the next piece, without taking it."""
        place = self.place + ahead
        return self._tokens[place] if place < len(self._tokens) else END

    def take(self) -> Token:
        """Take the next piece."""
        found = self.next()
        self.place += 1
        return found

    def sees(self, *words: str) -> bool:
        """Return whether these words, or marks, are next."""
        return all(self.next(number).word == word for number, word in enumerate(words))

    def takes(self, *words: str) -> bool:
        """Take words if they are next, all of them or none."""
        found = self.sees(*words)
        self.place += len(words) if found else 0
        return found

    def takes_one(self, *words: str) -> str | None:
        """Take the next word if it is one of some words, and return it; None for any other."""
        return next((word for word in words if self.takes(word)), None)

    def expect(self, *words: str) -> None:
        """Take words. WrongStatement without them."""
        if not self.takes(*words):
            self.fail(" ".join(words))

    def at_end(self) -> bool:
        """Return whether there is no further piece."""
        return self.next() is END

    def expect_end(self) -> None:
        """Raise WrongStatement where there is a further piece."""
        if not self.at_end():
            self.fail("the end of the statement")

    def identifier(self) -> str:
        """Take a name of one part. WrongStatement."""
        if self.next().kind not in ("word", "quoted", "number"):
            self.fail("a name")
        return self.take().name

    def names(self) -> list[str]:
        """Take a name of several parts, which dots divide. WrongStatement."""
        out = [self.identifier()]
        while self.takes("."):
            out.append(self.identifier())
        return out

    def string(self) -> str:
        """Take a text in quotes, or several behind each other, which are one. WrongStatement."""
        if self.next().kind != "string":
            self.fail("a text in quotes")
        out = ""
        while self.next().kind == "string":
            out += text_of(self.take().text)
        return out

    def number(self) -> int:
        """Take a whole number. WrongStatement."""
        if not self.next().text.isdecimal():
            self.fail("a number")
        return int(self.take().text)

    def listed(self) -> list[str]:
        """Take names in brackets. WrongStatement."""
        self.expect("(")
        out = [self.identifier()]
        while self.takes(","):
            out.append(self.identifier())
        self.expect(")")
        return out

    def properties(self) -> dict[str, str]:
        """Take `('name'='value', ..)`; names and values may be without quotes. WrongStatement."""
        self.expect("(")
        out: dict[str, str] = {}
        while not self.takes(")"):
            name = self.string() if self.next().kind == "string" else ".".join(self.names())
            if not self.takes("="):
                self.takes("=", "=")
            sign = "-" if self.takes("-") else ""
            out[name] = sign + (self.string() if self.next().kind == "string" else self.take().name)
            if not self.takes(",") and not self.sees(")"):
                self.fail("`,` or `)`")
        return out

    def inner(self) -> str:
        """Take a text in brackets, and return it without them. WrongStatement."""
        start = self.next().end
        self.expect("(")
        depth = 1
        while depth:
            if self.at_end():
                self.fail("`)`")
            token = self.take()
            depth += (token.text == "(") - (token.text == ")")
        return self.text[start : self._tokens[self.place - 1].start]

    def rest(self) -> str:
        """Take all further pieces and return their text."""
        found = "" if self.at_end() else self.text[self.next().start : self._tokens[-1].end]
        self.place = len(self._tokens)
        return found

    def since(self, place: int) -> str:
        """Return the text of the pieces from a place, a number of `self.place`, to the one that was taken last."""
        return self.text[self._tokens[place].start : self._tokens[self.place - 1].end] if self.place > place else ""

    def fail(self, wanted: str) -> NoReturn:
        """Raise WrongStatement: `wanted` is required here."""
        token = self.next()
        line = self.text.count("\n", 0, token.start) + 1 if token is not END else self.text.count("\n") + 1
        found = "the statement ends" if token is END else f"{token.text!r} was found"
        raise WrongStatement(f"line {line}: {wanted} is wanted where {found}: {self.text.strip()[:200]}")
