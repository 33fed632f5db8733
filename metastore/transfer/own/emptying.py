"""Remove the rows of a kind that a selection wants, before its records are written: rows of other databases and tables stay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from metastore.store.core.clauses import constant
from metastore.store.core.database import Session
from metastore.store.schema.model import transactions, write_id_ranges
from metastore.store.schema.registry import registry_columns
from metastore.store.transactions.transactions import ABORTED
from metastore.transfer.own.reader import pages
from metastore.transfer.own.stored import Stored
from metastore.transfer.records import KINDS
from metastore.transfer.selection import Selection

FURTHER = {"write_id": write_id_ranges, "schema_version": registry_columns}
"""Another table with rows of a kind."""
VERSION_COLUMNS = sa.delete(registry_columns).where(registry_columns.c.version_id == sa.bindparam("key_id"))
PLACES = sa.select(write_id_ranges.c.catalog, write_id_ranges.c.database, write_id_ranges.c.table).distinct()
NOT_ABORTED = sa.delete(transactions).where(transactions.c.state != constant(ABORTED))


def empty(session: Session, stored: Stored, selection: Selection) -> None:
    """Remove the wanted rows of a kind.

    Aborted transactions stay while write ids of other tables may belong to them: the source may have forgotten them meanwhile.
    """
    if stored.kind == "transaction" and not selection.wants_all("write_id"):
        session.execute(NOT_ABORTED)
    elif selection.wants_all(stored.kind):
        for table in (FURTHER.get(stored.kind), stored.table):
            if table is not None:
                session.execute(sa.delete(table))
    else:
        _empty_places(session, stored, selection)


def _empty_places(session: Session, stored: Stored, selection: Selection) -> None:
    parts = len(KINDS[stored.kind])
    names = stored.table.primary_key.columns.keys()
    wanted = [row[-len(names) :] for rows in pages(session, stored) for row in rows if selection.wants_key(stored.kind, tuple(row[:parts]))]
    if stored.kind == "schema_version":
        _delete(session, VERSION_COLUMNS, ["id"], wanted)
    _delete(session, _of_key(stored.table, names), names, wanted)
    if stored.kind == "write_id":
        places = [row for row in session.rows(PLACES) if selection.wants_table(*row)]
        columns = ["catalog", "database", "table"]
        _delete(session, _of_key(write_id_ranges, columns), columns, places)


def _of_key(table: sa.Table, names: Sequence[str]) -> sa.Delete:
    return sa.delete(table).where(*(table.c[name] == sa.bindparam(f"key_{name}") for name in names))


def _delete(session: Session, statement: sa.Delete, names: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    if rows:
        session.executemany(statement, [{f"key_{name}": value for name, value in zip(names, row, strict=True)} for row in rows])
