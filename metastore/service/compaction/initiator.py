"""Queue compactions of transactional tables and partitions when they are due. Never compacts or deletes a file.

Only objects that were written to, compacted or failed since the last look are looked at. Source: Hive 4's Initiator and InitiatorBase.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import NamedTuple

import structlog

from metastore.errors import MetaError, MetastoreError
from metastore.idl import Table
from metastore.rules.catalog.table_kinds import is_full_acid, is_transactional, is_true, parameter
from metastore.rules.transactions.acid_directories import NONE_OPEN, Base, FolderState, SeenWriteIds, decide, parse
from metastore.rules.transactions.compactions import (
    COMPACTED,
    DID_NOT_INITIATE,
    ENDED,
    FAILED,
    INITIATED,
    MINOR,
    NO_AUTO_COMPACTION,
    POOL,
    QUEUED,
    Thresholds,
    due,
    gave_up,
)
from metastore.service.call.clock import now_ms
from metastore.service.call.context import Metastore
from metastore.service.compaction.compaction_view import Place, compactors, listed, places, write_ids
from metastore.service.compaction.compaction_workers import did_not_initiate
from metastore.service.compaction.compactions import scheduled
from metastore.store.catalog import databases
from metastore.store.catalog.tables import tables
from metastore.store.compaction import compaction_sources, compactions
from metastore.store.compaction.compactions import CompactedObject, QueueEntry
from metastore.store.core.database import Session
from metastore.warehouse import acid

log = structlog.get_logger()

OVERLAP = 60_000
"""Milliseconds by which the period of each look overlaps the one before: the time of a write is a moment before its commit."""

NAME = "metastore"
"""The initiator's name in the queue."""


class _Known(NamedTuple):
    """A table with the facts that decide on it and its partitions."""

    table: Table
    pool: str | None
    view: SeenWriteIds
    places: dict[str | None, Place]
    entries: list[QueueEntry]


def initiate(metastore: Metastore, since: int | None = None) -> int:
    """Look at the objects that changed since a time in milliseconds, None for all, and queue the due ones; return their number.

    An object that can not be looked at is noted in the history with the reason, and tried again by each later call.
    """
    count = 0
    candidates = sorted(_candidates(metastore, since), key=lambda where: (*where[:3], where.partition or ""))
    for name, group in groupby(candidates, key=lambda where: where[:3]):
        wanted = list(group)
        try:
            known = metastore.database.read(lambda session, name=name, wanted=wanted: _known(metastore, session, name, wanted))  # type: ignore[misc]  # bound now
        except MetastoreError as error:
            for where in wanted:
                _note(metastore, where, error)
            continue
        if known is not None:
            count += sum(_initiate(metastore, known, where) for where in wanted if where.partition in known.places)
    return count


def _candidates(metastore: Metastore, since: int | None) -> set[CompactedObject]:
    start = 0 if since is None else since - OVERLAP

    def work(session: Session) -> set[CompactedObject]:
        found = compaction_sources.written_since(session, start)
        if since is not None:
            found |= compaction_sources.compacted_since(session, start, COMPACTED)
        return found | compaction_sources.last_tried(session, ENDED, [FAILED, DID_NOT_INITIATE])

    return metastore.database.read(work)


def _known(metastore: Metastore, session: Session, name: tuple[str, str, str], wanted: Iterable[CompactedObject]) -> _Known | None:
    """Read the facts that decide on objects of one table; None for a table that is gone or has no automatic compaction."""
    table = tables.find(session, *name)
    if table is None or not is_transactional(table):
        return None
    database = databases.find(session, *name[:2])
    inherited: Mapping[str, str] = (database.parameters if database is not None else None) or {}
    own = parameter(table.parameters, NO_AUTO_COMPACTION)
    if is_true(own if own is not None else parameter(inherited, NO_AUTO_COMPACTION)):
        return None
    view = write_ids(session, CompactedObject(*name, None), NONE_OPEN).for_compaction()
    found = places(metastore, session, table, (where.partition for where in wanted))
    pool = parameter(table.parameters, POOL) or parameter(inherited, POOL)
    return _Known(table, pool, view, found, compactions.of_table(session, *name))


def _initiate(metastore: Metastore, known: _Known, where: CompactedObject) -> bool:
    """Queue one object if it is due, or note the reason if that can not be decided; return whether it was queued."""
    own = [entry for entry in known.entries if entry.partition == where.partition]
    if any(entry.state in QUEUED for entry in own):
        return False
    try:
        _refuse_after_failures(metastore, own)
        kind = _due(metastore, known, known.places[where.partition].location)
    except Exception as error:  # noqa: BLE001 # any error is noted in the history, and the others continue
        _note(metastore, where, error)
        return False
    return kind is not None and enqueue(metastore, where, kind, known.pool, known.table.owner)


def _note(metastore: Metastore, where: CompactedObject, error: Exception) -> None:
    """Note in the history the reason for which an object was not considered, unless its last entry has the same reason."""
    reason = str(error) or type(error).__name__
    found = metastore.database.read(lambda session: compactions.of_table(session, *where[:3]))
    last = next((entry for entry in found if entry.partition == where.partition), None)
    if last is None or (last.state, last.error) != (DID_NOT_INITIATE, reason):
        log.error("whether a compaction is due can not be decided", object=str(where), reason=reason)
        did_not_initiate(metastore, where, MINOR, reason)


def _refuse_after_failures(metastore: Metastore, own: Iterable[QueueEntry]) -> None:
    config = metastore.config
    outcomes = [(entry.state, entry.enqueued) for entry in own if entry.state in ENDED and entry.state != DID_NOT_INITIATE]
    if gave_up(outcomes, config.compactor_failures, int(config.compactor_retry_time * 1000), now_ms()):
        raise MetaError(
            f"Compaction is not initiated since the last {config.compactor_failures} attempts to compact it failed: correct the cause "
            "and queue a compaction by hand; after one that succeeds, compactions are initiated again"
        )


def _due(metastore: Metastore, known: _Known, location: str) -> str | None:
    """Return the type of the compaction that a folder is due for. MetaError, NotEnoughHistory."""
    warehouse, config = metastore.warehouse, metastore.config
    entries = listed(metastore, location)
    state = decide(entries, known.view, metastore.database.read(lambda session: compactors(session, entries, NONE_OPEN, none_open=True)))
    bases = sum(isinstance(parse(name), Base) for name in state.obsolete)
    if not state.deltas and not bases:
        return None
    thresholds = Thresholds(config.compactor_delta_number, config.compactor_delta_ratio).of_table(known.table.parameters or {})
    base_size = acid.total_size(warehouse, location, _base(state))
    delta_size = acid.total_size(warehouse, location, [delta.name for delta in state.deltas])
    only_major = is_full_acid(known.table) and bool(state.originals)
    return due(len(state.deltas), delta_size, base_size, bases, thresholds, only_major=only_major)


def _base(state: FolderState) -> list[str]:
    return state.originals if state.base is None else [state.base.name]


def enqueue(metastore: Metastore, where: CompactedObject, kind: str, pool: str | None, run_as: str | None) -> bool:
    """Queue a compaction of an object unless it is scheduled; return whether it was queued."""
    values = {"pool": pool, "run_as": run_as, "initiator": NAME, "enqueued_ms": now_ms()}

    def work(session: Session) -> bool:
        compactions.take_turn(session)
        if scheduled(session, where) is not None:
            return False
        compactions.insert(session, where, kind, INITIATED, values)
        return True

    return metastore.database.write(work)
