"""Cut a filter string into tokens.

The union of Hive's Filter.g (2.3, 3.1) and PartitionFilter.g4 (4.x): keywords in any case, `==`, back-quoted keys,
`date2020-01-31` as well as `DATE '2020-01-31'`. The lexer never decides what a word means; a column may be called
`date` or `in`.
"""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass

from metastore.errors import MetaError

MAXIMUM_LENGTH = 1_000_000

_TOKEN = re.compile(
    r"""[ \r\n\t]*(?:
      (?P<timestamp>(?:timestamp[ \t]*)?\d{4}-\d\d-\d\d[ ]\d\d:\d\d:\d\d(?:\.\d{1,9})?)
    | (?P<date>(?:date[ \t]*)?\d{4}-\d\d-\d\d)
    | (?P<string>'(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*")
    | (?P<word>[A-Za-z0-9_]+)
    | `(?P<quoted>(?:[^`]|``)*)`
    | (?P<operator><=>|<=|>=|<>|!=|==|=|<|>)
    | (?P<mark>[(),-])
    | (?P<end>$)
    )""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL | re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Token:
    """`kind` is string, integer, word, quoted, date, timestamp, operator, mark or end; `text` as it was written."""

    kind: str
    text: str
    position: int

    @property
    def keyword(self) -> str:
        """The word in lower case, or the text of a mark; empty for constants and back-quoted keys."""
        return self.text.lower() if self.kind in {"word", "mark"} else ""


def error(text: str, reason: str) -> MetaError:
    """Return the error that a filter which can not be read ends with."""
    return MetaError(f"Error parsing partition filter: {reason}; filter: {text[:500]}")


def tokens(text: str) -> list[Token]:
    """Return the tokens of `text`, the last of kind end; MetaError where none fits."""
    if len(text) > MAXIMUM_LENGTH:
        raise error(text, f"it has {len(text)} characters, at most {MAXIMUM_LENGTH} are read")
    found = []
    position = 0
    while True:
        match = _TOKEN.match(text, position)
        if not match or match.lastgroup is None:
            raise error(text, f"unexpected character '{text[position:].lstrip()[:1]}' at position {position}")
        kind = match.lastgroup
        content = match[kind]
        if kind == "word" and content.isdigit():
            kind = "integer"
        elif kind == "quoted":
            content = content.replace("``", "`")
        found.append(Token(kind, content, match.start(match.lastgroup)))
        if kind == "end":
            return found
        position = match.end()


def date_constant(text: str, token: Token, content: str) -> datetime.date:
    """Return the date that a date literal names."""
    try:
        return datetime.date.fromisoformat(content.strip()[-10:])
    except ValueError as wrong:
        raise error(text, f"'{content}' at position {token.position} is no date ({wrong})") from wrong


def timestamp_constant(text: str, token: Token, content: str) -> datetime.datetime:
    """Return the time that a timestamp literal names, to the microsecond."""
    match = re.search(r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d:\d\d(?:\.(\d{1,9}))?)?$", content.strip(), re.ASCII)
    try:
        if not match:
            raise ValueError("expected yyyy-MM-dd HH:mm:ss")
        fraction = int((match[1] or "0").ljust(9, "0")) // 1000
        return datetime.datetime.fromisoformat(match[0].partition(".")[0]).replace(microsecond=fraction)
    except ValueError as wrong:
        raise error(text, f"'{content}' at position {token.position} is no timestamp ({wrong})") from wrong
