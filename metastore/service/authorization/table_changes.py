"""Judge a changed table: whether only the counts of its rows changed, and the locations that it points to. Never stores any."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from metastore.errors import MetastoreError
from metastore.idl import Table
from metastore.rules.catalog.table_kinds import is_transactional
from metastore.rules.catalog.table_types import place_of_new
from metastore.rules.statistics.statistics_validity import counts
from metastore.service.call.context import Call
from metastore.service.call.names import TableName
from metastore.service.catalog.tables.tables import find_table
from metastore.service.transactions.commit import KEY_PREFIX
from metastore.store.catalog.tables.tables import STORED

METADATA = "metadata_location"
"""The parameter by which an Iceberg table names its current state."""
TIMES = frozenset({"transient_lastDdlTime", "last_modified_time", "last_modified_by", "numFilesErasureCoded"})
FREE = frozenset({"id", "catName", "dbName", "tableName", "ownerType", "createTime", "lastAccessTime", "parameters"})
"""Stored fields that no writer changes, that only concern reading, or that are judged separately. Of transactional tables the write id
is set by the transaction."""
COMMITS = ("current-snapshot-", "snapshot-count", METADATA, f"previous_{METADATA}")
"""The beginnings of the names of parameters that a commit of Iceberg changes."""


def locations(table: Table) -> tuple[str, ...]:
    """Return the location of a table, and the location of its metadata."""
    place = table.sd.location if table.sd is not None else None
    return tuple(each for each in (place, (table.parameters or {}).get(METADATA)) if each)


def locations_of_new(table: Table) -> tuple[str, ...]:
    """Return the location of a new table, if the request has one, and the location of its metadata."""
    place = table.sd.location if table.sd is not None else None
    return tuple(place_of_new(table, each) if each == place else each for each in locations(table))


class TableChange(NamedTuple):
    """A change of a table: whether only counts of rows change, its new locations, and whether it gets new sources."""

    only_counts: bool
    locations: tuple[str, ...]
    has_other_sources: bool


def change(call: Call, name: TableName, new: Table) -> TableChange:
    """Compare a table with its stored row; a missing row counts as an empty table."""
    try:
        old = find_table(call, name)
    except MetastoreError:
        return TableChange(only_counts=False, locations=locations(new), has_other_sources=True)
    compared = STORED - FREE - ({"writeId"} if is_transactional(old) else set())
    same = all(_plain(getattr(old, field)) == _plain(getattr(new, field)) for field in compared)
    before = locations(old)
    pointed = tuple(each for each in locations(new) if each not in before)
    more = not _sources(new) <= _sources(old)
    return TableChange(same and _only_counts(old.parameters or {}, new.parameters or {}), pointed, has_other_sources=more)


def _sources(table: Table) -> set[Any]:
    made = table.creationMetadata
    named = (each.table for each in getattr(made, "sourceTables", None) or () if each.table is not None)
    return {*(getattr(made, "tablesUsed", None) or ()), *((each.catName, each.dbName, each.tableName) for each in named)}


def _plain(value: Any) -> Any:
    """Return a value without empty fields: clients leave such fields out, or send them empty."""
    if hasattr(value, "thrift_spec"):
        return {name: plain for name, each in vars(value).items() if (plain := _plain(each))}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return None if value == -1 else value or None


def _only_counts(old: Mapping[str, str], new: Mapping[str, str]) -> bool:
    changed = {key for key in old.keys() | new.keys() if old.get(key) != new.get(key)}
    commits = (KEY_PREFIX, *(COMMITS if old.get("table_type", "").upper() == "ICEBERG" else ()))
    return all(counts(key) or key in TIMES or key.startswith(commits) for key in changed)
