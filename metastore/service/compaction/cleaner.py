"""Delete the files that nobody needs any more: files that compactions replaced, and files that were dropped while they were read.

The entry of a compaction is cleaned once no transaction is open that began before the worker's transaction committed: every reader then
uses the worker's files. Only directories that such a reader ignores are deleted. A missing directory is not an error: an interrupted
cleaner, or two at a time, do no harm. Source: Hive 4's Cleaner, CompactionCleaner and TaskHandler.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import partial

import structlog

from metastore.errors import MetaError
from metastore.idl import Table
from metastore.rules.catalog.table_kinds import is_transactional, is_true, parameter
from metastore.rules.transactions.acid_directories import Delta, FolderState, SeenWriteIds, decide, stagers, staging_of
from metastore.rules.transactions.compactions import (
    ABORT_CLEANUP,
    FAILED,
    NO_CLEANUP,
    PENDING,
    READY,
    REFUSED,
    read_properties,
    waits_for_compactors,
)
from metastore.service.call.clock import now_ms
from metastore.service.call.context import Metastore
from metastore.service.call.names import TableName
from metastore.service.changes import deletion
from metastore.service.changes.occupants import occupants
from metastore.service.compaction.compaction_view import Place, compactors, listed, places, write_ids
from metastore.service.compaction.compaction_workers import following_transaction, succeed
from metastore.store.catalog import databases
from metastore.store.catalog.tables import tables
from metastore.store.compaction import compaction_sources, compactions
from metastore.store.compaction.compactions import CompactedObject, QueueEntry, Ready
from metastore.store.core.database import Session
from metastore.store.transactions.transactions import ABORTED
from metastore.warehouse.locations import join

log = structlog.get_logger()


class CleaningRefused(Exception):
    """A parameter of the table or partition forbids its cleaning."""


def clean(metastore: Metastore, since: int | None = None) -> int:
    """Clean the ready entries; return the number that ended well. One that fails gets the reason, and waits longer each time.

    `since` does not matter: the queue holds the new entries.
    """
    count, after = 0, 0
    while True:
        found = metastore.database.read(partial(compactions.ready, state=READY, now=now_ms(), after=after))
        for ready in found:
            after = ready.entry.id
            if ready.entry.type != ABORT_CLEANUP and _is_free(metastore, ready):
                count += _clean(metastore, ready)
        if not found:
            return count


def _is_free(metastore: Metastore, ready: Ready) -> bool:
    """Return whether no open transaction may still read an entry's replaced files.

    The first transaction that surely does not read them is noted in the entry, once it is known.
    """
    entry, clock = ready.entry, ready.clock
    if entry.transaction is not None and clock.state == ABORTED:
        reason = f"Transaction {entry.transaction} of the worker was aborted: its files are not used"
        metastore.database.write(partial(_end, entry=entry, state=FAILED, error=reason))
        return False
    following = entry.next_transaction
    if following is None:
        following = following_transaction(entry, clock)
        if following is None:
            return False
        values = {"next_transaction_id": following, "committed_ms": now_ms()}
        metastore.database.write(lambda session: compactions.update(session, [entry.id], [READY], **values))
    return following <= ready.lowest_open


def _end(session: Session, entry: QueueEntry, state: str, error: str) -> None:
    compactions.update(session, [entry.id], [READY], state=state, ended_ms=now_ms(), error=error)


def _clean(metastore: Metastore, ready: Ready) -> bool:
    entry = ready.entry
    try:
        location = read_properties(entry.properties).get("location")
        if location is not None:
            return _clean_dropped(metastore, entry, location)
        return _clean_compacted(metastore, ready)
    except CleaningRefused as error:
        metastore.database.write(partial(_end, entry=entry, state=REFUSED, error=str(error)))
    except Exception as error:  # noqa: BLE001 # any error is noted in the entry, and the others continue
        _pause(metastore, entry, error)
    return False


def _pause(metastore: Metastore, entry: QueueEntry, error: Exception) -> None:
    """Leave an entry alone for a while, twice as long each time. After too many times it counts as failed."""
    config = metastore.config
    reason = str(error) or type(error).__name__
    log.error("cleaning failed", compaction=entry.id, object=str(entry.object), reason=reason, failures=entry.retries + 1)
    if entry.retries >= config.compactor_cleaner_retries:
        metastore.database.write(partial(_end, entry=entry, state=FAILED, error=reason))
        return
    values = {
        "retries": entry.retries + 1,
        "retry_after_ms": now_ms() + int(config.compactor_cleaner_pause * 1000 * 2**entry.retries),
        "error": reason,
        "cleaner_started_ms": None,
    }
    metastore.database.write(lambda session: compactions.update(session, [entry.id], [READY], **values))


def _clean_compacted(metastore: Metastore, ready: Ready) -> bool:
    """Delete the files that a compaction replaced; return whether the entry ended well. MetaError, CleaningRefused."""
    entry = ready.entry
    where, highest = entry.object, entry.highest_write_id
    found = metastore.database.read(partial(_found, metastore, where=where))
    if found is None:
        return metastore.database.write(partial(_delete_gone, metastore, entry=entry))
    table, place = found
    if highest is None:
        return metastore.database.write(lambda session: succeed(session, entry, None))
    metastore.database.write(lambda session: compactions.update(session, [entry.id], PENDING, cleaner_started_ms=now_ms()))
    entries = listed(metastore, place.location)

    def read(session: Session) -> tuple[FolderState, SeenWriteIds, Collection[int], list[int]]:
        aborted = compaction_sources.aborted_up_to(session, where, highest)
        view = write_ids(session, where, highest)
        none_open = ready.lowest_open > ready.clock.last
        seen = compactors(session, entries, ready.lowest_open, none_open=none_open, own=entry.transaction)
        return decide(entries, view, seen, strict=False), view, seen.open, aborted

    state, view, others, aborted = metastore.database.read(read)
    doomed = [*state.obsolete, *state.aborted]
    delete(metastore, table, where.partition, place.location, doomed)
    if aborted:
        delete_staged(metastore, table)
    if others:  # directories that they replaced would stay if this entry ended now
        reason = waits_for_compactors(others, ready.lowest_open)
        if entry.error != reason:
            metastore.database.write(lambda session: compactions.update(session, [entry.id], [READY], error=reason))
        return False
    kept = aborted_in(state.partly_aborted, view.aborted, doomed)
    return metastore.database.write(lambda session: succeed(session, entry, highest, aborted, kept))


def aborted_in(deltas: Iterable[Delta], aborted: Collection[int], doomed: Collection[str]) -> set[int]:
    """Return the aborted write ids that still have rows in deltas that stay."""
    return {number for delta in deltas if delta.name not in doomed for number in aborted if delta.low <= number <= delta.high}


def delete(metastore: Metastore, table: Table, partition: str | None, location: str, names: Iterable[str]) -> None:
    """Delete directories and files that were listed in the folder of a table or partition, without the trash.

    The folder may belong to another table meanwhile, whose files have the same names: MetaError. MetaError also if some could not be
    deleted, with the reason of the first.
    """
    doomed = [join(location, name) for name in names]
    if not doomed:
        return
    where = TableName(table.catName or "", table.dbName, table.tableName)

    def check(session: Session) -> None:
        tables.lock(session, *where)
        now = tables.find(session, *where)
        lies_there = now is not None and now.id == table.id and now.sd.location == table.sd.location
        if lies_there and now is not None and partition is not None:
            place = places(metastore, session, now, [partition]).get(partition)
            lies_there = place is not None and place.location == location
        if not lies_there:
            raise MetaError(f"{location} is not cleaned: {where} was moved or made again meanwhile")

    errors = deletion.delete_parts(metastore, str(where), location, doomed, check)
    if errors:
        raise MetaError(f"{len(errors)} of {len(doomed)} could not be deleted: {next(iter(errors.values()))}")
    log.info("deleted directories that nobody reads", location=location, names=[name.rpartition("/")[2] for name in doomed])


def delete_staged(metastore: Metastore, table: Table) -> None:
    """Delete the staging folders of transactions that have ended, which are in the table's own directory. MetaError."""
    entries = listed(metastore, table.sd.location)
    if found := stagers(entries):  # a transaction begins before it has a folder, so none of them begins from now on
        done = metastore.database.read(lambda session: compaction_sources.ended(session, found))
        delete(metastore, table, None, table.sd.location, staging_of(done, entries))


def _found(metastore: Metastore, session: Session, where: CompactedObject) -> tuple[Table, Place] | None:
    """Return an object's table and the location of its files, None when it is gone. MetaError, CleaningRefused."""
    table = tables.find(session, *where[:3])
    if table is None:
        return None
    if not is_transactional(table):
        raise MetaError(f"{'.'.join(where[:3])} is not transactional: nothing of it is cleaned")
    if where.partition is None and table.partitionKeys:
        raise MetaError(f"{where} has partitions: compact those, each by its name")
    if is_true(parameter(table.parameters, NO_CLEANUP)):
        raise CleaningRefused(f"{NO_CLEANUP} is set on {'.'.join(where[:3])}")
    place = places(metastore, session, table, [where.partition]).get(where.partition)
    if place is not None and is_true(parameter(place.parameters, NO_CLEANUP)):
        raise CleaningRefused(f"{NO_CLEANUP} is set on {where}")
    return None if place is None else (table, place)


def _delete_gone(metastore: Metastore, session: Session, entry: QueueEntry) -> bool:
    """End the entry of an object that was dropped, if it still is not there."""
    if _found(metastore, session, entry.object) is not None:
        return False
    compaction_sources.delete_completed(session, entry.object)
    return succeed(session, entry, None)


def _clean_dropped(metastore: Metastore, entry: QueueEntry, location: str) -> bool:
    """Delete the folder of a dropped table or partition; return whether the entry ended well. MetaError when an object uses it again."""
    where = entry.object

    def check(session: Session) -> None:
        if where.partition is None:
            databases.lock(session, where.catalog, where.database)  # nobody makes the table while it is looked for
        else:
            tables.lock(session, where.catalog, where.database, where.table or "")
        if others := occupants(session, [location]):
            raise MetaError(f"{location} is not deleted: a table, database or partition is at {others[0].location}")

    for error in deletion.delete_parts(metastore, str(where), location, [location], check).values():
        raise error
    return metastore.database.write(lambda session: succeed(session, entry, None))
