"""Decide which names a catalog, database, table or function may have, and match names against patterns. A column may have any.

Source: Hive's MetaStoreUtils (validateName, encodeTableName, parseDbName), StringUtils.normalizeIdentifier and
ObjectStore.appendPatternCondition. A name that passes here never makes a path leave its parent. This module never
looks a name up.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from metastore.errors import InvalidObject, MetaError
from metastore.rules.patterns import compile_expression

if TYPE_CHECKING:
    from collections.abc import Callable

NULL_NAME_MARK = "!"
"""The text that a client since 3.1 sends after `@cat#` for an empty name."""

CATALOG_LENGTH, DATABASE_LENGTH, TABLE_LENGTH, FUNCTION_LENGTH, DATA_CONNECTOR_LENGTH = 256, 128, 256, 128, 128
"""Most characters of a name: the widths of the columns in Hive's database."""

_PLAIN = re.compile(r"[A-Za-z0-9_]+")
# Hive also lists the slash; here it never passes, for in a database's name it would name another directory.
_DIRECTORY = re.compile(r"(?:[A-Za-z0-9_]|-\d+-)+")
_SPECIAL = re.compile(r"[A-Za-z0-9_ \"#%&'()*+,\-.:;<=>?\[\]|{}$^!~@`]+")


def normalize(name: str) -> str:
    """Return `name` trimmed and in lower case, as every lookup and every stored row has it."""
    return name.strip().lower()


def validate_table_name(name: str | None, special_characters: bool = True) -> None:
    """Raise InvalidObject unless `name` may name a table or view."""
    if not _passes(name, TABLE_LENGTH, special_characters):
        raise InvalidObject(f"{name} is not a valid object name: {_allowed(TABLE_LENGTH, special_characters)}")


def validate_database_name(name: str | None, special_characters: bool = True) -> None:
    """Raise InvalidObject unless `name` may name a database. In calls `@` at the beginning marks a catalog, and `!` alone an empty name."""
    if name is None or not _passes(name, DATABASE_LENGTH, special_characters) or name.startswith("@") or name == NULL_NAME_MARK:
        raise InvalidObject(f"{name} is not a valid database name: {_allowed(DATABASE_LENGTH, special_characters)}")


def _passes(name: str | None, longest: int, special_characters: bool) -> bool:
    allowed = _SPECIAL if special_characters else _PLAIN
    return (
        name is not None
        and len(name) <= longest
        and allowed.fullmatch(name) is not None
        and name not in (".", "..")
        and name == name.strip()
    )


def _allowed(longest: int, special_characters: bool) -> str:
    if special_characters:
        return f"use at most {longest} ASCII letters, digits, blanks inside and punctuation but / and \\"
    return f"use at most {longest} ASCII letters, digits and _, or switch special_characters_in_table_names on"


def directory_name(table: str) -> str:
    """Return the default name of a table's directory: `a-45-b` for `a-b`.

    A character that is not a letter, a digit or `_` is replaced by its number.
    """
    return table if _PLAIN.fullmatch(table) else "".join(each if each.isalnum() or each == "_" else f"-{ord(each)}-" for each in table)


def is_directory_name(directory: str) -> bool:
    """Return whether a directory's name is the default for some table; `a-5f3b`, which a client made up, is not."""
    return _DIRECTORY.fullmatch(directory) is not None


def validate_catalog_name(name: str | None) -> None:
    """Raise InvalidObject unless `name` may name a catalog."""
    if name is None or len(name) > CATALOG_LENGTH or not _PLAIN.fullmatch(name):
        raise InvalidObject(f"{name} is not a valid catalog name: use at most {CATALOG_LENGTH} ASCII letters, digits and _")


def validate_data_connector_name(name: str | None) -> None:
    """Raise InvalidObject unless `name` may name a data connector."""
    if not _passes(name, DATA_CONNECTOR_LENGTH, special_characters=True):
        raise InvalidObject(f"{name} is not a valid data connector name: {_allowed(DATA_CONNECTOR_LENGTH, True)}")


def validate_function_name(name: str | None) -> None:
    """Raise InvalidObject unless `name` may name a function."""
    if name is None or len(name) > FUNCTION_LENGTH or not _PLAIN.fullmatch(name):
        raise InvalidObject(f"{name} is not a valid object name: use at most {FUNCTION_LENGTH} ASCII letters, digits and _")


_RESERVED = frozenset(
    """abstract assert boolean break byte case catch char class const continue default do double else enum extends false final finally
    float for goto if implements import instanceof int interface long native new null package private protected public return short static
    strictfp super switch synchronized this throw throws transient true try void volatile while _""".split()  # noqa: SIM905
)
"""Words of Java that name neither package nor class."""


def is_class_name(text: str) -> bool:
    """Return whether a text can name a class of Java, its package included."""
    return all(part.replace("$", "_").isidentifier() and part not in _RESERVED for part in text.split("."))


def split_database(name: str | None, default_catalog: str = "hive") -> tuple[str, str | None]:
    """Split a database argument into catalog and database; the latter None for "all", "" for an empty name.

    `@cat#db`, `@cat#` (no database), `@cat#!` (the empty name); anything without `@` is in `default_catalog`.
    MetaError for `@` without `#`.
    """
    if name is None:
        return default_catalog, None
    if not name.startswith("@"):
        return default_catalog, name
    catalog, mark, database = name[1:].partition("#")
    if not mark:
        raise MetaError(f"{name} is prefixed with the catalog marker '@' but has no '#' after the catalog's name")
    if not database:
        return catalog, None
    return catalog, "" if database == NULL_NAME_MARK else database


def with_catalog(catalog: str, database: str, default_catalog: str) -> str:
    """Return a database's name for a struct without a field for the catalog: `@cat#db` outside of the default catalog."""
    return database if catalog == default_catalog else f"@{catalog}#{database}"


def exact_name(pattern: str | None) -> str | None:
    """Return the one name that a pattern can match, None when it may match several."""
    return normalize(pattern) if pattern and _PLAIN.fullmatch(normalize(pattern)) else None


def pattern_matcher(pattern: str | None) -> Callable[[str], bool]:
    """Return a predicate over names for one of Hive's name patterns.

    None and "*" match every name, "" none. Otherwise alternatives are separated by `|` (also inside brackets, as in Hive), `*` means any
    characters, and the rest is a case-insensitive regular expression over the whole name. MetaError when it is not a regular expression.
    The time to match grows only linearly with the name.
    """
    if pattern is None or pattern == "*":
        return lambda _: True
    alternatives = normalize(pattern).split("|")
    while alternatives and not alternatives[-1]:
        alternatives.pop()  # Java's split drops empty parts at the end.
    literals = frozenset(part for part in alternatives if _PLAIN.fullmatch(part))
    expressions = [compile_expression(part.replace("*", ".*"), ignore_case=True) for part in alternatives if part not in literals]
    return lambda name: name.lower() in literals or any(matches(name) for matches in expressions)
