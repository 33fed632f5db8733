"""PostgreSQL's statements that lock partitions of a table and overwrite their statistics, and count how far that went.

Statistics of other columns than given are left as they are: they are to be read and joined. Whether parameters call columns exact is told
by texts that they have then. PostgreSQL locks while the caller encodes what it then writes, and writes while the caller goes on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import orjson
import sqlalchemy as sa

from metastore.idl import Table
from metastore.store import partitions, tables
from metastore.store.answer import Answer
from metastore.store.clauses import ascending
from metastore.store.database import Database, Session
from metastore.store.drivers import Row
from metastore.store.statistics import Stored

Texts = tuple[str, str]
"""Two texts, one of which parameters have that need no change."""
NEVER: Texts = ("\n", "\n")
"""Texts that no parameters have: as JSON they are one line."""


class Marked(NamedTuple):
    """A partition by its name, with its texts."""

    item: str
    one: str
    other: str


class Written(NamedTuple):
    """Statistics as they are stored, with the key of their partition."""

    key: int
    columns: str
    named: int


def possible(database: Database) -> bool:
    """Tell whether the database has these statements."""
    return database.driver.name == "postgresql"


_KINDS = {"item": "text", "one": "text", "other": "text", "key": "bigint", "columns": "text", "named": "bigint"}


def _given(fields: Sequence[str], differing: Sequence[str]) -> str:
    """Return rows of these fields; the `differing` ones, at least one, are given as a list each, the others as one value."""
    lists = ", ".join(f"CAST(:{name} AS {_KINDS[name]}[])" for name in differing)
    values = ", ".join(f"CAST(:{name} AS {_KINDS[name]}) AS {name}" for name in fields if name not in differing)
    return f"unnest({lists}) AS given({', '.join(differing)}) CROSS JOIN (SELECT {values}) AS same"


@cache
def _locking(differing: tuple[str, ...]) -> sa.TextClause:
    """Lock partitions, looked up one by one as `clauses.looked_up` does it; return their keys by name, and how many have a text."""
    return sa.text(f"""
        SELECT string_agg(CAST(id AS text), ',' ORDER BY item COLLATE "C"), count(*) FILTER (WHERE has_one)
        FROM {_given(Marked._fields, differing)} CROSS JOIN LATERAL (
            SELECT id, strpos(parameters, one) > 0 OR strpos(parameters, other) > 0 AS has_one
            FROM partitions WHERE table_id = :table_id AND name = item OFFSET 0 FOR UPDATE
        ) AS locked
    """)


@cache
def _writing(differing: tuple[str, ...]) -> sa.TextClause:
    """Write statistics of partitions where there are none or some of the same columns; return of how many that was so.

    What is there is found by its key alone: while PostgreSQL believes that it is little, it would read that of the engine, of all tables.
    """
    given = _given(Written._fields, differing)
    return sa.text(f"""
        WITH updated AS (
            UPDATE partition_statistics AS old SET columns = new.columns FROM (SELECT key, columns, named FROM {given}) AS new
            WHERE old.partition_id = new.key AND old.engine || '' = CAST(:engine AS text) AND old.named = new.named
            RETURNING old.partition_id
        ), inserted AS (
            INSERT INTO partition_statistics (partition_id, engine, columns, table_id, named)
            SELECT key, CAST(:engine AS text), columns, :table_id, named FROM {given} WHERE key NOT IN (SELECT partition_id FROM updated)
            ON CONFLICT DO NOTHING RETURNING 1
        )
        SELECT (SELECT count(*) FROM updated) + (SELECT count(*) FROM inserted)
    """)


def _values(rows: Sequence[Marked] | Sequence[Written]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the parameters of a statement, and which fields are lists among them: the first, and those that differ."""
    first, *others = rows[0]._fields
    values: dict[str, Any] = {}
    for field, each in zip(rows[0]._fields, zip(*rows, strict=True), strict=True):
        values[field] = list(each) if field == first or each.count(each[0]) < len(each) else each[0]
    return values, (first, *(field for field in others if type(values[field]) is list))


class Overwriting:
    """Holds a table as `tables.hold` does and locks its named partitions, whose statistics `write` then overwrites."""

    def __init__(self, session: Session, table: Table, texts: Mapping[str, Texts], state: Row | None = None) -> None:
        self._session, self._table, self._names, self._state = session, table, ascending(texts), state
        self._held = tables.hold_later(session, table)
        values, differing = _values([Marked(name, *texts[name]) for name in self._names])
        self._locked = session.later(_locking(differing), table_id=table.id, **values)
        session.send()

    def write(self, engine: str, statistics: Mapping[str, Stored]) -> Writing | set[str] | None:
        """Overwrite the statistics of the partitions, together with the next statement.

        Return the names of those that are missing, if any; None when the table is gone, or is not as it was known. Retry as of
        `partitions.Locking`.
        """
        ((text, have_text),) = self._locked.rows
        if not tables.is_held(self._table, self._held, self._state):
            return None
        keys: list[int] = orjson.loads(f"[{text or ''}]")
        if len(keys) < len(self._names):
            return partitions.missing(self._session, self._table, self._names, len(keys))
        values, differing = _values([Written(key, *statistics[name]) for key, name in zip(keys, self._names, strict=True)])
        answer = self._session.later(_writing(differing), table_id=self._table.id, engine=engine, **values)
        self._session.send()
        return Writing(answer, len(keys), have_text == len(keys))


class Writing(NamedTuple):
    """Statistics that are being overwritten."""

    answer: Answer
    number: int
    have_text: bool
    """Whether all parameters have one of the texts."""

    def is_done(self) -> bool:
        """Tell whether all were overwritten: else some are of other columns."""
        ((written,),) = self.answer.rows
        return bool(written == self.number)
