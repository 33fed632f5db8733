"""Bring a database of this server up to date with a source that is still in use, until the switch: changed objects are rewritten.

The source's notification log names the tables that were changed; where there is none, or it begins too late, both sides are compared. A
table that was changed is removed and written again as a whole; objects outside of tables are written again each time, and those that are
gone are removed.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from metastore.errors import InvalidOperation
from metastore.transfer.comparing import differing_keys
from metastore.transfer.contract import Reader
from metastore.transfer.moving import Moved, move
from metastore.transfer.own.reader import OwnReader
from metastore.transfer.own.stored import BY_KIND
from metastore.transfer.own.writer import OwnWriter
from metastore.transfer.records import OF_TABLES, Key, Record, key_text
from metastore.transfer.selection import Selection

LOST_WITH_TABLES = {"constraint": "parent_table", "index": "index_table", "privilege": ""}
"""The kinds that are removed with a table, each with the field of the body for a second table with which they are removed."""


class Round(NamedTuple):
    """One round: the numbers of tables that were changed in the source, written, and removed, and the number of events."""

    changed: int
    written: int
    removed: int
    events: int | None
    """None where the sides were compared instead."""
    moved: Moved


def follow(source: Reader, database: OwnWriter, selection: Selection, *, by_comparison: bool = False) -> Round:
    """Bring the target up to date once. InvalidOperation for a target that was never filled; MetastoreError as `move` raises it."""
    selection = selection.for_move()
    present = database.begin(selection, resume=True)
    if not database.is_filled():
        raise InvalidOperation(f"database {database.name} was not filled yet: run `metastore import` first")
    after = database.last_event()
    changes = None if by_comparison else source.changes(after)
    if changes is None:
        changed = differing_keys(source, OwnReader(database.database), selection, OF_TABLES)
    else:
        changed = {table for table in changes.tables if selection.wants_table(*table)}
    gone = {names for names in present if selection.wants_table(*names)} - source.tables(selection)
    _check_kept(OwnReader(database.database), selection, changed.intersection(present) - gone)
    database.remove(gone.union(changed).intersection(present))
    note = _Noted(None if changes is None else changes.last)
    moved = move(source, database, selection, resume=True, adjust=note)
    database.remove_others(source.kinds, note.seen)
    written = moved.counts.get("table", 0)
    return Round(len(changed), written, len(gone), None if changes is None else changes.last - after, moved)


def _check_kept(target: Reader, selection: Selection, rewritten: Collection[Key]) -> None:
    """Raise InvalidOperation where a rewritten table has an object that is not selected: it would be lost with the old table."""
    kinds = frozenset(LOST_WITH_TABLES)
    if not rewritten or all(map(selection.wants_all, kinds)):
        return
    for record in target.records(Selection(kinds=kinds)):
        if selection.wants_key(record.kind, record.key):
            continue
        other = record.body.get(LOST_WITH_TABLES[record.kind])
        for table in (Selection.table_of(record.kind, record.key), tuple(other or ())):
            if table in rewritten:
                raise InvalidOperation(
                    f"{key_text(record)} would be lost, since table {'.'.join(table)} has changed and is rewritten: choose it too, or all"
                )


class _Noted:
    """Notes the records of a round while they are moved."""

    def __init__(self, last: int | None) -> None:
        self._last = last
        self.seen: dict[str, set[Key]] = {}
        """The kinds of the records. For kinds whose rows are changed in place (`Stored.is_kept`) with the keys."""

    def __call__(self, record: Record) -> Record:
        """Note a record and return it. The position of the log is set to the last event of this round: later ones are for the next one."""
        keys = self.seen.setdefault(record.kind, set())
        stored = BY_KIND.get(record.kind)
        if stored is not None and stored.is_kept:
            keys.add(record.key)
        if self._last is not None and (record.kind, record.key) == ("position", ("notification",)):
            return record._replace(body={"last": self._last})
        return record
