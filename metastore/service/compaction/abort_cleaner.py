"""Delete the files of aborted transactions, and forget them. No compaction is needed for it: nobody ever sees their directories.

A delta that holds aborted rows beside others stays for a compaction, which is queued. Source: Hive 4's AbortedTxnCleaner.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import structlog

from metastore.idl import Table
from metastore.rules.catalog.table_kinds import is_transactional
from metastore.rules.transactions.acid_directories import NONE_OPEN, SeenWriteIds, decide
from metastore.rules.transactions.compactions import ABORT_CLEANUP, MAJOR, READY
from metastore.service.call.clock import now_ms
from metastore.service.call.context import Metastore
from metastore.service.changes.occupants import occupants
from metastore.service.compaction.cleaner import aborted_in, delete, delete_staged
from metastore.service.compaction.compaction_view import compactors, listed, places, write_ids
from metastore.service.compaction.initiator import enqueue
from metastore.store.catalog.partitions import partitions as partition_rows
from metastore.store.catalog.tables import tables
from metastore.store.compaction import compaction_sources, compactions
from metastore.store.compaction.compaction_sources import Aborted
from metastore.store.compaction.compactions import CompactedObject, QueueEntry
from metastore.store.core.database import Session
from metastore.warehouse import acid
from metastore.warehouse.locations import is_below

log = structlog.get_logger()


def clean_aborted(metastore: Metastore, since: int | None = None) -> int:
    """Clean up after the aborted transactions of each object with too many or too old ones; return the number of cleaned objects.

    An object that fails is left alone for a while, twice as long each time; an entry of the queue holds the reason. `since` does not
    matter.
    """
    config, now = metastore.config, now_ms()
    old = now - int(config.compactor_aborted_age * 1000)
    found = metastore.database.read(compaction_sources.aborted)
    count = 0
    for each in found:
        if each.transactions > config.compactor_aborted_number or each.first_started < old:
            count += _clean(metastore, each, now)
    return count


def _clean(metastore: Metastore, aborted: Aborted, now: int) -> bool:
    where = aborted.object
    waiting = [
        entry
        for entry in metastore.database.read(lambda session: compactions.of_table(session, *where[:3]))
        if entry.partition == where.partition and (entry.type, entry.state) == (ABORT_CLEANUP, READY)
    ]
    if any((entry.retry_after or 0) > now for entry in waiting):
        return False
    try:
        _clean_object(metastore, where)
    except Exception as error:  # noqa: BLE001 # any error is noted in the entry, and the others continue
        _pause(metastore, where, waiting[0] if waiting else None, error)
        return False
    metastore.database.write(lambda session: compactions.delete_of_object(session, where, ABORT_CLEANUP, [READY]))
    return True


def _pause(metastore: Metastore, where: CompactedObject, entry: QueueEntry | None, error: Exception) -> None:
    reason = str(error) or type(error).__name__
    retries = entry.retries if entry is not None else 0
    log.error("cleaning up after aborted transactions failed", object=str(where), reason=reason, failures=retries + 1)
    now = now_ms()
    values = {
        "retries": retries + 1,
        "error": reason,
        "retry_after_ms": now + int(metastore.config.compactor_cleaner_pause * 1000 * 2 ** min(retries, 20)),
    }

    def work(session: Session) -> None:
        if entry is None:
            compactions.insert(session, where, ABORT_CLEANUP, READY, {"enqueued_ms": now, **values})
        else:
            compactions.update(session, [entry.id], [READY], **values)

    metastore.database.write(work)


def _clean_object(metastore: Metastore, where: CompactedObject) -> None:
    """Delete the files of one object's aborted transactions, and forget them. MetaError."""

    def read(session: Session) -> tuple[list[int], Table | None, list[str], SeenWriteIds]:
        transactions = sorted({row[0] for row in compaction_sources.aborted_at(session, where)})
        table = tables.find(session, *where[:3])
        folders = [] if table is None or not is_transactional(table) else list(_folders(metastore, session, table, where))
        return transactions, table, folders, write_ids(session, where, NONE_OPEN)

    transactions, table, folders, view = metastore.database.read(read)
    kept: dict[str, set[int]] = {}
    for folder in folders:
        entries = listed(metastore, folder)
        made_by = metastore.database.read(lambda session, entries=entries: compactors(session, entries, NONE_OPEN, none_open=True))  # type: ignore[misc]  # bound now
        state = decide(entries, view, made_by, strict=False)
        if table is not None:
            delete(metastore, table, where.partition, folder, state.aborted)
        if left := aborted_in(state.partly_aborted, view.aborted, state.aborted):
            kept[folder] = left
    if table is not None and is_transactional(table):
        delete_staged(metastore, table)
    metastore.database.write(
        lambda session: compaction_sources.delete_transactions(session, where, transactions, sorted(set().union(*kept.values())))
    )
    if kept and table is not None:
        for each in _compacted(metastore, table, where, kept):
            enqueue(metastore, each, MAJOR, None, table.owner)


def _compacted(metastore: Metastore, table: Table, where: CompactedObject, folders: Iterable[str]) -> list[CompactedObject]:
    """Return the objects whose compaction removes aborted rows from folders: the partitions in them, or the object itself."""
    if where.partition is not None or not table.partitionKeys:
        return [where]
    there = metastore.database.read(lambda session: occupants(session, folders, below=table.sd.location))
    return [where._replace(partition=each.partition) for each in there if each.table_id == table.id and each.partition is not None]


def _folders(metastore: Metastore, session: Session, table: Table, where: CompactedObject) -> Iterator[str]:
    """Yield the folders to which a transaction may have written: the partitions of an aborted dynamic insert are not known."""
    if where.partition is not None or not table.partitionKeys:
        yield from (place.location for place in places(metastore, session, table, [where.partition]).values())
        return
    yield from acid.folders_below(metastore.warehouse, table.sd.location, len(table.partitionKeys))
    for location in partition_rows.locations_outside(session, table.id or 0):
        if not is_below(location, table.sd.location):
            yield location
