"""Choose which records are moved, by kinds and by patterns of names. Never looks at a record's body."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from metastore.errors import InvalidInput
from metastore.transfer.records import KINDS, Key

_WHERE = {kind: tuple(parts.index(name) for name in ("catalog", "database", "table") if name in parts) for kind, parts in KINDS.items()}
_WHERE["database"] = (0, 1)
_WHERE["catalog"] = (0,)
TOGETHER = (
    frozenset({"position", "transaction", "transaction_component", "write_id_position", "write_id"}),
    frozenset({"schema", "schema_version"}),
)
"""Kinds whose records refer to each other by numbers: a move takes all of them or none."""


class Selection(NamedTuple):
    """A choice of records; without patterns it is everything.

    A pattern is `database`, `database.table` or `catalog.database.table`; * matches any text, ? one character.
    """

    include: tuple[tuple[str, ...], ...] = ()
    exclude: tuple[tuple[str, ...], ...] = ()
    kinds: frozenset[str] = frozenset(KINDS)
    done: Collection[Key] = frozenset()
    """Tables (catalog, database, name) that exist already: they and their contents are not wanted."""
    with_transactions: bool = False
    """Whether transactions and positions are wanted in spite of patterns to include."""

    def for_move(self) -> Selection:
        """Return this selection with transactions: without them a target would show the rows of uncommitted ones.

        InvalidInput where only some of the kinds that go together are chosen.
        """
        for kinds in TOGETHER:
            if (chosen := kinds & self.kinds) and chosen != kinds:
                raise InvalidInput(
                    f"kind {', '.join(sorted(chosen))} is chosen without {', '.join(sorted(kinds - chosen))}, and they refer to each "
                    "other: choose all of them or none"
                )
        return self._replace(with_transactions=True)

    def wants(self, kind: str) -> bool:
        """Return whether records of a kind may be wanted. With patterns to include, objects outside of databases are not."""
        if kind not in self.kinds:
            return False
        return bool(_WHERE[kind]) or not self.include or (self.with_transactions and kind in ("position", "transaction"))

    def wants_all(self, kind: str) -> bool:
        """Return whether all records of a kind are wanted, wherever they are."""
        return self.wants(kind) and not (_WHERE[kind] and (self.include or self.exclude))

    def wants_catalog(self, catalog: str) -> bool:
        """Return whether anything of a catalog may be wanted."""
        return not self.include or any(fnmatchcase(catalog, pattern[0]) for pattern in self.include)

    def wants_database(self, catalog: str, database: str) -> bool:
        """Return whether a database, or anything in it, may be wanted."""
        if any(pattern[2] == "*" and _is(pattern[:2], (catalog, database)) for pattern in self.exclude):
            return False
        return not self.include or any(_is(pattern[:2], (catalog, database)) for pattern in self.include)

    def wants_table(self, catalog: str, database: str, table: str) -> bool:
        """Return whether a table with its contents is wanted."""
        names = (catalog, database, table)
        if any(_is(pattern, names) for pattern in self.exclude):
            return False
        return not self.include or any(_is(pattern, names) for pattern in self.include)

    def wants_key(self, kind: str, key: Key) -> bool:
        """Return whether a record is wanted. A record in a database that belongs to no table is wanted with the database."""
        if not self.wants(kind):
            return False
        named = [key[place] for place in _WHERE[kind]]
        if not named:
            return True
        if named[0] is None:
            return not self.include
        if len(named) == 1:
            return self.wants_catalog(named[0])
        if len(named) == 2 or named[2] is None:
            return self.wants_database(named[0], named[1])
        return self.wants_table(*named) and not (kind in ("table", "descriptor", "partition") and tuple(named) in self.done)

    @staticmethod
    def table_of(kind: str, key: Key) -> Key:
        """Return catalog, database and table in the key of a kind that names them; each may be None."""
        return tuple(key[place] for place in _WHERE[kind])


EVERYTHING = Selection()


def _is(pattern: Sequence[str], names: Sequence[str]) -> bool:
    return all(fnmatchcase(name, part) for name, part in zip(names, pattern, strict=True))


def _pattern(text: str) -> tuple[str, ...]:
    """Return a pattern's catalog, database and table. InvalidInput."""
    parts = text.lower().split(".")
    if len(parts) > 3 or not all(parts):
        raise InvalidInput(
            f"pattern {text!r}: write database, database.table or catalog.database.table; * matches any text, ? any character"
        )
    if len(parts) == 1:
        return "*", parts[0], "*"
    return tuple(parts) if len(parts) == 3 else ("*", *parts)


def selection(
    include: Sequence[str] = (), exclude: Sequence[str] = (), kinds: Sequence[str] = (), without: Sequence[str] = ()
) -> Selection:
    """Return the selection of patterns and kinds. InvalidInput for an invalid pattern or kind."""
    if unknown := sorted({*kinds, *without}.difference(KINDS)):
        raise InvalidInput(f"kind {', '.join(unknown)} is not known: use {', '.join(KINDS)}")
    chosen = frozenset(kinds or KINDS).difference(without)
    return Selection(tuple(map(_pattern, include)), tuple(map(_pattern, exclude)), chosen)
