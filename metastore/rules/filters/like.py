r"""Match `LIKE` patterns on partition values. Never uses a backtracking engine.

Two generations of clients write two languages. 4.x servers read SQL: `%` any characters, `_` one, `\` takes the meaning
of either away. 2.3 and 3.1 servers handed LIKE to JDO, where `.*` means any characters and `.` one, and Spark still
writes that (`startswith("a")` arrives as `like "a.*"`). A pattern without `.*` is SQL. One that holds it matches what
either reading matches: no partition that the client meant is lost.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from metastore.rules.patterns import compile_expression

if TYPE_CHECKING:
    from collections.abc import Callable

_SQL = re.compile(r"\\([\\%_])|([%_])|(.)", re.DOTALL)
_JDO = re.compile(r"(\.\*)|(\.)|(.)", re.DOTALL)


def _literal(character: str) -> str:
    return character if character.isalnum() or not character.isascii() else "\\" + character


def _from_sql(match: re.Match[str]) -> str:
    escaped, wildcard, literal = match.groups()
    return {"%": ".*", "_": "."}[wildcard] if wildcard else _literal(escaped or literal)


def _from_jdo(match: re.Match[str]) -> str:
    return match[0] if match[1] or match[2] else _literal(match[3])


def sql_matcher(pattern: str) -> Callable[[str], bool]:
    """Return a predicate over texts for a LIKE pattern of SQL; MetaError when it is too long."""
    return compile_expression(_SQL.sub(_from_sql, pattern))


def like_matcher(pattern: str) -> Callable[[str], bool]:
    """Return a predicate over texts for a LIKE pattern of either language; MetaError when it is too long."""
    sql = sql_matcher(pattern)
    if ".*" not in pattern:
        return sql
    jdo = compile_expression(_JDO.sub(_from_jdo, pattern))
    return lambda text: jdo(text) or sql(text)
