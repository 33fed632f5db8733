"""Cut a filter string into tokens.

The union of Hive's Filter.g (2.3, 3.1) and PartitionFilter.g4 (4.x): keywords in any case, `==`, back-quoted keys,
`date2020-01-31` as well as `DATE '2020-01-31'`. The lexer never decides the meaning of a word; a column may be called
`date` or `in`. Keys that are not words of the grammar (`my-key`, `a b`) are passed to the lexer: Spark writes them without quotes.
"""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from metastore.errors import MetaError

if TYPE_CHECKING:
    from collections.abc import Sequence

MAXIMUM_FILTER_LENGTH = 1_000_000

_ESCAPED_STRING = r"""'(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*\""""
_PLAIN_STRING = r"""'[^']*' | "[^"]*\""""


def _grammar(string: str) -> re.Pattern[str]:
    return re.compile(
        rf"""[ \r\n\t]*(?:
          (?P<timestamp>(?:timestamp[ \t]*)?[+-]?\d{{4,9}}-\d\d-\d\d[ ]\d\d:\d\d:\d\d(?:\.\d{{1,9}})?)
        | (?P<date>(?:date[ \t]*)?[+-]?\d{{4,9}}-\d\d-\d\d)
        | (?P<decimal>(?:\d{{1,100}}\.\d{{0,100}}|\.\d{{1,100}})(?:e[+-]?\d{{1,6}})?(?![\w.]))
        | (?P<string>{string})
        | (?P<word>[A-Za-z0-9_]+)
        | `(?P<quoted>(?:[^`]|``)*)`
        | (?P<operator><=>|<=|>=|<>|!=|==|=|<|>)
        | (?P<mark>[(),+-])
        | (?P<end>$)
        )""",
        re.VERBOSE | re.IGNORECASE | re.DOTALL | re.ASCII,
    )


_TOKEN, _TOKEN_OF_PLAIN_STRINGS = _grammar(_ESCAPED_STRING), _grammar(_PLAIN_STRING)
_WORD = re.compile(r"\d*[A-Za-z_]\w*", re.ASCII)
_CONSTANT = re.compile(r"""[+-]?[\d.]+(?:-\d\d-\d\d.*)?|(['"]).*\1""", re.DOTALL | re.ASCII)
_BEFORE_A_KEY = frozenset({"(", "and", "or", ","})
_CONSTANTS = frozenset({"string", "integer", "decimal", "date", "timestamp"})
_BEHIND_A_KEY = r"(?=\s*(?:[<>=!),]|(?:not|in|between|like)\b))"
_BEHIND_A_KEY_LIKE_A_CONSTANT = (
    r"""(?=\s*(?:[<>=!]{1,3}\s*(?:['"\d.+-]|(?:date|timestamp|true|false)\b)|(?:not|in|between|like)\b|\)\s*(?:not\s+)?in\b))"""
)
_BEHIND_THE_LAST = r"(?=\s*(?:\)|$|(?:and|or)\b))"


@dataclass(frozen=True, slots=True)
class Names:
    """A finder of keys that are not words, the longest first: at the beginning of a condition, and after `constant operator`."""

    first: re.Pattern[str]
    last: re.Pattern[str]


@lru_cache(maxsize=256)
def names_of(keys: Sequence[str]) -> Names | None:
    """Return the finder of the `keys` that are not words of the grammar; None when all are.

    A key is stored in lower case, in which the Turkish capital I with a dot is two characters.
    """
    unusual = sorted((key for key in keys if key and not _WORD.fullmatch(key)), key=len, reverse=True)
    if not unusual:
        return None
    written = [re.escape(key).replace("i\u0307", "(?:i\u0307|\u0130)") + (r"(?!\w)" if re.match(r"\w", key[-1]) else "") for key in unusual]
    behind = [_BEHIND_A_KEY_LIKE_A_CONSTANT if _CONSTANT.fullmatch(key) else _BEHIND_A_KEY for key in unusual]
    first = "|".join(map("".join, zip(written, behind, strict=True)))
    return Names(
        re.compile(rf"[ \r\n\t]*?({first})", re.IGNORECASE),
        re.compile(rf"[ \r\n\t]*?({'|'.join(written)}){_BEHIND_THE_LAST}", re.IGNORECASE),
    )


@dataclass(frozen=True, slots=True)
class Token:
    """`kind` is string, integer, decimal, word, quoted, date, timestamp, operator, mark or end; `text` as it was written."""

    kind: str
    text: str
    position: int

    @property
    def keyword(self) -> str:
        """The word in lower case, or the text of a mark; empty for constants and back-quoted keys."""
        return self.text.lower() if self.kind in {"word", "mark"} else ""


def error(text: str, reason: str) -> MetaError:
    """Return the error for a filter that can not be read."""
    return MetaError(f"Error parsing partition filter: {reason}; filter: {text[:500]}")


def tokens(text: str, names: Names | None = None, *, escapes: bool = True) -> list[Token]:
    """Return the tokens of `text`, the last of kind end; MetaError where none fits.

    A key that `names` finds is a token of kind quoted. Without `escapes` a backslash in a string is a letter, as Spark means it.
    """
    if len(text) > MAXIMUM_FILTER_LENGTH:
        raise error(text, f"it has {len(text)} characters, at most {MAXIMUM_FILTER_LENGTH} are read")
    grammar = _TOKEN if escapes else _TOKEN_OF_PLAIN_STRINGS
    found: list[Token] = []
    position = 0
    among_values = False
    while True:
        if names is not None and not among_values and (key := _key(names, text, position, found)):
            found.append(Token("quoted", key[1], key.start(1)))
            position = key.end()
            continue
        match = grammar.match(text, position)
        if not match or match.lastgroup is None:
            raise error(text, f"unexpected character '{text[position:].lstrip()[:1]}' at position {position}")
        kind = match.lastgroup
        content = match[kind]
        if kind == "word" and content.isdigit():
            kind = "integer"
        elif kind == "quoted":
            content = content.replace("``", "`")
        elif kind == "mark":
            among_values = (content == "(" and bool(found) and found[-1].keyword == "in") or (among_values and content != ")")
        found.append(Token(kind, content, match.start(match.lastgroup)))
        if kind == "end":
            return found
        position = match.end()


def _key(names: Names, text: str, position: int, before: Sequence[Token]) -> re.Match[str] | None:
    """Return the key of an unusual name at this position, if one may be here."""
    if not before or before[-1].keyword in _BEFORE_A_KEY:
        return names.first.match(text, position)
    if before[-1].kind == "operator" and len(before) > 1 and before[-2].kind in _CONSTANTS:
        return names.last.match(text, position)
    return None


_PARTS = re.compile(r"([+-]?)(\d{4,9})-(\d\d)-(\d\d)(?:[ T](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?)?$", re.ASCII)


def date_constant(text: str, token: Token, content: str) -> datetime.date | str:
    """Return the date that a date literal names; its text for a year that Python does not have."""
    found = _PARTS.search(content.strip())
    if found and _is_far(found):
        return found[0]
    try:
        return datetime.date.fromisoformat(content.strip()[-10:])
    except ValueError as wrong:
        raise error(text, f"'{content}' at position {token.position} is not a date ({wrong})") from wrong


def timestamp_constant(text: str, token: Token, content: str) -> datetime.datetime | str:
    """Return the time that a timestamp literal names, to the microsecond; its text for a year that Python does not have."""
    match = _PARTS.search(content.strip())
    if match and _is_far(match):
        return match[0]
    try:
        if not match:
            raise ValueError("expected yyyy-MM-dd HH:mm:ss")
        fraction = int((match[6] or "0").ljust(9, "0")) // 1000
        return datetime.datetime.fromisoformat(match[0].partition(".")[0]).replace(microsecond=fraction)
    except ValueError as wrong:
        raise error(text, f"'{content}' at position {token.position} is not a timestamp ({wrong})") from wrong


def _is_far(parts: re.Match[str]) -> bool:
    """Return whether the year has a sign or more than four digits, or is 0, and the month and the day are possible."""
    return (bool(parts[1]) or len(parts[2]) > 4 or parts[2] == "0000") and 1 <= int(parts[3]) <= 12 and 1 <= int(parts[4]) <= 31
