"""PostgreSQL's statement that locks partitions of a table and overwrites their statistics, and counts how far that went.

Statistics of other columns than given are left as they are: they are to be read and joined. Whether parameters call columns exact is told
by texts that they have then.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

import sqlalchemy as sa

from metastore.idl import Table
from metastore.store import partitions, tables
from metastore.store.clauses import ascending
from metastore.store.database import Database, Session
from metastore.store.drivers import Row

NEVER = "\n"
"""A text that no parameters have: as JSON they are one line."""


class New(NamedTuple):
    """What is written of a partition, and two texts, one of which parameters have that need no change."""

    columns: str
    named: int
    one: str = NEVER
    other: str = NEVER


class Done(NamedTuple):
    """How far it went."""

    missing: set[str]
    """Names of partitions that are not there."""
    have_text: bool
    """Whether all parameters have one of the texts."""
    all_written: bool
    """Whether all statistics were written: else some are of other columns."""


def possible(database: Database) -> bool:
    """Tell whether the database has this statement."""
    return database.driver.name == "postgresql"


@cache
def _statement(*, alike: bool) -> sa.TextClause:
    """Return how many were locked, how many of those have one of the texts, and of how many the statistics were written.

    `alike` if the same is written of all. Partitions are looked up one by one as `clauses.looked_up` does it, and their statistics by their
    keys alone: while PostgreSQL believes that there are few, it would read those of the engine, of all tables.
    """
    kinds = {"columns": "text", "named": "bigint", "one": "text", "other": "text"}
    if alike:
        values = ", ".join(f"CAST(:{name} AS {kind}) AS {name}" for name, kind in kinds.items())
        given = f"(SELECT {values}) AS new CROSS JOIN unnest(CAST(:names AS text[])) AS given(item)"
    else:
        lists = ", ".join(f"CAST(:{name} AS {kind}[])" for name, kind in kinds.items())
        given = f"unnest(CAST(:names AS text[]), {lists}) AS new(item, {', '.join(kinds)})"
    return sa.text(f"""
        WITH locked AS (
            SELECT found.id, found.has_one, new.columns, new.named FROM {given} CROSS JOIN LATERAL (
                SELECT id, strpos(parameters, new.one) > 0 OR strpos(parameters, new.other) > 0 AS has_one
                FROM partitions WHERE table_id = :table_id AND name = item OFFSET 0 FOR UPDATE
            ) AS found
        ), updated AS (
            UPDATE partition_statistics SET columns = locked.columns FROM locked
            WHERE partition_id = locked.id AND engine || '' = CAST(:engine AS text) AND partition_statistics.named = locked.named
            RETURNING partition_id
        ), inserted AS (
            INSERT INTO partition_statistics (partition_id, engine, columns, table_id, named)
            SELECT id, CAST(:engine AS text), columns, :table_id, named FROM locked WHERE id NOT IN (SELECT partition_id FROM updated)
            ON CONFLICT DO NOTHING RETURNING 1
        )
        SELECT count(*), count(*) FILTER (WHERE has_one), (SELECT count(*) FROM updated) + (SELECT count(*) FROM inserted) FROM locked
    """)


class Overwriting:
    """Holds a table as `tables.hold` does, and overwrites statistics of its named partitions, in one round trip with what waits."""

    def __init__(self, session: Session, table: Table, engine: str, new: Mapping[str, New], state: Row | None = None) -> None:
        self._session, self._table, self._names, self._state = session, table, ascending(new), state
        self._held = tables.hold_later(session, table)
        rows = [new[name] for name in self._names]
        alike = rows.count(rows[0]) == len(rows)
        values = rows[0]._asdict() if alike else dict(zip(New._fields, map(list, zip(*rows, strict=True)), strict=True))
        self._answer = session.later(_statement(alike=alike), table_id=table.id, engine=engine, names=self._names, **values)
        session.send()

    def done(self) -> Done | None:
        """Return how far it went; None when the table is gone, or is not as it was known. Retry as of `partitions.Locking`."""
        ((locked, have_text, written),) = self._answer.rows
        if not tables.is_held(self._table, self._held, self._state):
            return None
        missing = partitions.missing(self._session, self._table, self._names, locked) if locked < len(self._names) else set()
        return Done(missing, have_text == locked, written == locked)
