"""PostgreSQL's statements that lock partitions of a table and overwrite their statistics, and count how far that went.

Statistics of other columns than given are left as they are: they are to be read and joined. Whether parameters call columns exact is told
by texts that they have then. PostgreSQL locks while the caller encodes what it then writes, and writes while the caller goes on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

import orjson
import sqlalchemy as sa

from metastore.idl import Table
from metastore.store import partitions, tables
from metastore.store.answer import Answer
from metastore.store.clauses import ascending
from metastore.store.database import Database, Session
from metastore.store.drivers import Row
from metastore.store.drivers.postgresql import Given
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
    return database.driver.overwrites_statistics


_KINDS = {"item": "text", "one": "text", "other": "text", "key": "bigint", "columns": "text", "named": "bigint"}


def _given(fields: Sequence[str], arrays: Sequence[str]) -> str:
    """Return rows of these fields, which are given as `Given` does it: the others than the `arrays` as one value."""
    lists = ", ".join(f"CAST(:{name} AS {_KINDS[name]}[])" for name in arrays)
    values = ", ".join(f"CAST(:{name} AS {_KINDS[name]}) AS {name}" for name in fields if name not in arrays)
    return f"unnest({lists}) AS sent({', '.join(arrays)}) CROSS JOIN (SELECT {values}) AS same"


@cache
def _locking(arrays: tuple[str, ...]) -> sa.TextClause:
    """Lock partitions, looked up one by one as `clauses.looked_up` does it; return their keys by name, and how many have a text."""
    return sa.text(f"""
        SELECT string_agg(CAST(id AS text), ',' ORDER BY item COLLATE "C"), count(*) FILTER (WHERE has_one)
        FROM {_given(Marked._fields, arrays)} CROSS JOIN LATERAL (
            SELECT id, strpos(parameters, one) > 0 OR strpos(parameters, other) > 0 AS has_one
            FROM partitions WHERE table_id = :table_id AND name = item OFFSET 0 FOR UPDATE
        ) AS locked
    """)


@cache
def _writing(arrays: tuple[str, ...]) -> sa.TextClause:
    """Write statistics of partitions where there are none or some of the same columns; return of how many that was so.

    What is there is found by its key alone: while PostgreSQL believes that it is little, it would read that of the engine, of all tables.
    """
    given = _given(Written._fields, arrays)
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


class Overwriting:
    """Holds a table as `tables.hold` does and locks its named partitions, whose statistics `write` then overwrites."""

    def __init__(self, session: Session, table: Table, texts: Mapping[str, Texts], state: Row | None = None) -> None:
        self._session, self._table, self._names, self._state = session, table, ascending(texts), state
        self._held = tables.enqueue_hold(session, table)
        given = Given(Marked._fields, [Marked(name, *texts[name]) for name in self._names])
        self._locked = session.enqueue(_locking(given.arrays), table_id=table.id, **given.values)
        session.flush()

    def _keys(self) -> list[int]:
        keys: list[int] = orjson.loads(f"[{self._locked.rows[0][0] or ''}]")
        return keys

    def missing(self) -> set[str] | None:
        """Return the names of partitions that are not there; None when the table is gone, or is not as it was known.

        Retry as of `partitions.Locking`.
        """
        keys = self._keys()
        if not tables.is_held(self._table, self._held, self._state):
            return None
        return partitions.missing(self._session, self._table, self._names, len(keys)) if len(keys) < len(self._names) else set()

    def write(self, engine: str, statistics: Mapping[str, Stored]) -> Writing:
        """Overwrite the statistics of the partitions, none of which may be missing, together with the next statement."""
        keys = self._keys()
        given = Given(Written._fields, [Written(key, *statistics[name]) for key, name in zip(keys, self._names, strict=True)])
        answer = self._session.enqueue(_writing(given.arrays), table_id=self._table.id, engine=engine, **given.values)
        self._session.flush()
        return Writing(answer, len(keys), self._locked.rows[0][1] == len(keys))


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
