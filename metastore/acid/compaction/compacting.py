"""Compact one table or partition: merge its deltas, or deltas and base, into new directories that readers see when the transaction commits.

    minor   delta_A_B_vT and delete_delta_A_B_vT hold the events of all deltas from A to B
    major   base_B_vT holds the rows that are left at write id B

B is the highest write id below the first open one, T the compactor's transaction. Readers and writers continue meanwhile. This module
chooses the files to read, and gives the new files their places; a `Rewriter` reads and writes them. Source: Hive's Worker, CompactorMR,
MmMajorQueryCompactor.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Protocol

from metastore.acid.files import FileError, Files
from metastore.acid.folders.misplaced import misplaced
from metastore.acid.folders.placing import place
from metastore.acid.folders.selecting import Selected, is_loaded, select, state_of
from metastore.acid.folders.table import Folder, TableInfo
from metastore.acid.transactions import TableSnapshot, Transaction
from metastore.idl import CompactionInfoStruct, CompactionType
from metastore.rules.transactions.acid_directories import FolderEntry, FolderState, base_name, delta_name, parse, staging_of

BASE, DELTA, DELETES = "base", "delta", "delete"
"""The parts of the work on a full-ACID table: rows of a base, rows of a delta, delete events."""
Written = list[tuple[str, int]]
"""(path of a file in a staging folder, number of its bucket) pairs."""


class NothingToCompact(Exception):
    """There is nothing to do: the directories are compacted already."""


class NoPartition(Exception):
    """An entry names a partitioned table without a partition: the table was missing, or not partitioned, when it was queued."""


class PutBack(Exception):
    """Workers of this version can not do the entry, but others may: it is put back for them. The text has the reason."""


class Stopped(Exception):
    """The worker has to end: the entry waits for any other worker."""


class Cancelled(Exception):
    """The entry is not the worker's any more."""


@dataclass(frozen=True)
class CompactionJob:
    """One entry of the queue with its object, at the moment at which its compaction begins."""

    entry: CompactionInfoStruct
    table: TableInfo
    folder: Folder
    snapshot: TableSnapshot
    transaction: int

    @property
    def is_major(self) -> bool:
        return self.entry.type == CompactionType.MAJOR


class Rewriter(Protocol):
    """The reader and writer of a worker's files, in one transaction. Its methods write into staging folders."""

    txn: Transaction
    files: Files

    def named(self, path: str) -> Collection[int]:
        """Return the buckets that the rows of a file name, by reading them."""

    def write_buckets(self, job: CompactionJob, selected: Selected, part: str) -> Written:
        """Write the events of each bucket, sorted by row id, into one file; `part` is `BASE`, `DELTA` or `DELETES`."""

    def write_rows(self, job: CompactionJob, selected: Selected) -> Written:
        """Write the rows of insert-only files into few files of the same format; a bucketed table has one for each bucket."""

    def close(self) -> None:
        """Release all resources of the compaction but its transaction. Nothing is read or written afterwards."""


def prepare(txn: Transaction, entry: CompactionInfoStruct) -> CompactionJob:
    """Look up the object of an entry. NoSuchObjectException for a table or partition that was dropped, NotTransactional, NoPartition."""
    table = txn.call(lambda client: TableInfo.load(client, entry.dbname, entry.tablename))
    if entry.partitionname:
        partition = txn.call(lambda client: client.get_partition_by_name(table.database, table.name, entry.partitionname))
        folder = table.folder(partition)
    elif table.table.partitionKeys:
        raise NoPartition(f"{table.full_name} is partitioned: compact its partitions, each by its name")
    else:
        folder = Folder(table.location)
    seen = txn.snapshots([(table.database, table.name)])[table.database, table.name]
    return CompactionJob(entry, table, folder, replace(seen, write_ids=seen.write_ids.for_compaction()), txn.id)


def run(rewriter: Rewriter, job: CompactionJob) -> list[str]:
    """Write the new directories and return their names. None are needed where an overwrite has replaced all others.

    After an error no new directory is left. NothingToCompact where the cleaner has nothing to do either; FileError and the errors of the
    rewriter.
    """
    state, _ = state_of(rewriter.files, job.folder, job.snapshot)
    (selected,) = select(rewriter.files, [job.folder], job.snapshot, insert_only=job.table.is_insert_only)
    if not _is_due(rewriter, job, state, selected):
        if state.obsolete:
            return []
        mark = job.snapshot.write_ids.high_watermark
        raise NothingToCompact(f"{job.table.full_name} {job.folder.name}: nothing to compact up to write id {mark}")
    try:
        made = [_major(rewriter, job, selected)] if job.is_major else _minor(rewriter, job, state, selected)
    except BaseException:
        with suppress(FileError):  # the cleaner takes it away later
            _take_back(rewriter.files, job)
        raise
    with suppress(FileError):  # see above
        _remove_staged(rewriter.files, job)
    return made


def _take_back(files: Files, job: CompactionJob) -> None:
    """Remove the files of the transaction, placed and staged. FileError."""
    for status in files.list(job.folder.location):
        parsed = parse(status.name) if status.is_directory else None
        if parsed is not None and parsed.visibility == job.transaction:
            files.delete(status.path)
    _remove_staged(files, job)


def _remove_staged(files: Files, job: CompactionJob) -> None:
    """Remove the staging folders of the transaction. FileError."""
    aside = [FolderEntry(status.name) for status in files.list(job.table.location) if status.is_directory]
    for name in staging_of([job.transaction], aside):
        files.delete(f"{job.table.location}/{name}")


def _is_due(rewriter: Rewriter, job: CompactionJob, state: FolderState, selected: Selected) -> bool:
    """Return whether a minor compaction has several deltas, or a major one deltas, original files, or rows in other buckets' files."""
    if not job.is_major:
        return len({(delta.low, delta.high, delta.statement) for delta in state.deltas}) > 1
    if state.deltas or state.originals:
        return True
    return not job.table.is_insert_only and bool(misplaced(rewriter.files, selected, rewriter.named))


def _major(rewriter: Rewriter, job: CompactionJob, selected: Selected) -> str:
    name = base_name(job.snapshot.write_ids.high_watermark, job.transaction)
    _place(rewriter, job, name, _written(rewriter, job, selected, BASE))
    return name


def _minor(rewriter: Rewriter, job: CompactionJob, state: FolderState, selected: Selected) -> list[str]:
    low, high = min(delta.low for delta in state.deltas), max(delta.high for delta in state.deltas)
    in_deltas = _without_base(selected, state)
    names = [delta_name(low, high, visibility=job.transaction)]
    _place(rewriter, job, names[0], _written(rewriter, job, replace(in_deltas, deletes=[]), DELTA))
    if in_deltas.deletes:
        names.append(delta_name(low, high, is_delete=True, visibility=job.transaction))
        only_deletes = replace(in_deltas, inserts=[], originals=[], growing=[])
        _place(rewriter, job, names[1], _written(rewriter, job, only_deletes, DELETES))
    return names


def _written(rewriter: Rewriter, job: CompactionJob, selected: Selected, part: str) -> Written:
    return rewriter.write_rows(job, selected) if job.table.is_insert_only else rewriter.write_buckets(job, selected, part)


def _place(rewriter: Rewriter, job: CompactionJob, name: str, written: Written) -> None:
    place(rewriter.files, job.table, f"{job.folder.location}/{name}", written)


def _without_base(selected: Selected, state: FolderState) -> Selected:
    base = f"/{state.base.name}/" if state.base is not None else None

    def in_delta(path: str) -> bool:
        return base is None or base not in path

    loaded = [path for path in selected.originals if is_loaded(selected.folder, path) and in_delta(path)]
    return replace(selected, originals=loaded, inserts=[path for path in selected.inserts if in_delta(path)])
