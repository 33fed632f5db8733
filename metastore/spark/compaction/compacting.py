"""Compact one table or partition: merge its deltas, or deltas and base, into new directories that readers see when the transaction commits.

    minor   delta_A_B_vT and delete_delta_A_B_vT hold the events of all deltas from A to B
    major   base_B_vT holds the rows that are left at write id B

B is the highest write id below the first open one, T the compactor's transaction. Each bucket is read and written by one task of its own,
so nothing is shuffled; readers and writers go on meanwhile. Full-ACID buckets are rewritten by Python (`acid/rewriting/rewriting.py`),
and by Spark's own reader and writer where Python can not copy what they hold. Source: Hive's Worker, CompactorMR, MmMajorQueryCompactor.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import DataFrame

from metastore.acid.buckets.buckets import Bucket, of_original
from metastore.acid.transactions import TableSnapshot
from metastore.acid.values.null_keys import has_maps
from metastore.idl import CompactionInfoStruct, CompactionType
from metastore.rules.transactions.acid_directories import FolderEntry, FolderState, base_name, delta_name, parse, staging_of
from metastore.spark.compaction.bucket_tasks import DELETES, rewritten
from metastore.spark.reading.misplaced import by_spark, misplaced
from metastore.spark.reading.physical import null_keys_of
from metastore.spark.reading.plain_files import LINES, skipped, to_write
from metastore.spark.reading.reading import FOLDER, delete_events, live_events, plain_scans, time_zone
from metastore.spark.reading.selecting import Selected, is_loaded, select, state_of
from metastore.spark.session.catalog import AcidTableInfo, Folder
from metastore.spark.session.hadoop import FileError, in_parallel
from metastore.spark.session.orc_metadata import describe
from metastore.spark.transaction.spark_transaction import SparkTransaction
from metastore.spark.writing import faithful, writing

ROWS_OF_A_FILE = 256 << 20
"""Bytes of insert-only files that become one file."""


WHOLE = "whole"
"""The part of the work that copies files as they are."""


class NothingToCompact(Exception):
    """The directories are compacted as they are."""


class NoPartition(Exception):
    """An entry names a partitioned table as a whole, which was not there, or not partitioned, when it was queued."""


@dataclass(frozen=True)
class CompactionJob:
    """One entry of the queue with what it is about, at the moment at which its work begins."""

    entry: CompactionInfoStruct
    table: AcidTableInfo
    folder: Folder
    snapshot: TableSnapshot

    @property
    def is_major(self) -> bool:
        return self.entry.type == CompactionType.MAJOR


def prepare(work: SparkTransaction, entry: CompactionInfoStruct) -> CompactionJob:
    """Look up what an entry is about. NoSuchObjectException for a table or partition that was dropped, NotTransactional, NoPartition."""
    table = work.load(entry.dbname, entry.tablename)
    if entry.partitionname:
        partition = work.txn.call(lambda client: client.get_partition_by_name(table.database, table.name, entry.partitionname))
        folder = table.folder(partition)
    elif table.table.partitionKeys:
        raise NoPartition(f"{table.full_name} is partitioned: compact its partitions, each by its name")
    else:
        folder = Folder(table.location)
    seen = work.snapshot(table)
    return CompactionJob(entry, table, folder, replace(seen, write_ids=seen.write_ids.for_compaction()))


def run(work: SparkTransaction, job: CompactionJob) -> list[str]:
    """Write the new directories and return their names, or leave none. NothingToCompact, CanNotKeep; FileError and what Spark raises."""
    state, _ = state_of(work.files, job.folder, job.snapshot)
    (selected,) = select(work.files, [job.folder], job.snapshot, insert_only=job.table.is_insert_only)
    _check(work, job, state, selected)
    try:
        if job.is_major:
            return [_major(work, job, selected)]
        return _minor(work, job, state, selected)
    except BaseException:
        with suppress(FileError):  # the cleaner takes it away later
            _take_back(work, job)
        raise


def _take_back(work: SparkTransaction, job: CompactionJob) -> None:
    """Remove what the transaction has written, whole and aside. FileError."""
    for status in work.files.list(job.folder.location):
        parsed = parse(status.name) if status.is_directory else None
        if parsed is not None and parsed.visibility == work.txn.id:
            work.files.delete(status.path)
    aside = [FolderEntry(status.name) for status in work.files.list(job.table.location) if status.is_directory]
    for name in staging_of([work.txn.id], aside):
        work.files.delete(f"{job.table.location}/{name}")


def _check(work: SparkTransaction, job: CompactionJob, state: FolderState, selected: Selected) -> None:
    """Raise NothingToCompact where one directory holds all that there is, and rows in the files of their buckets."""
    if job.is_major:
        enough = bool(state.deltas or state.originals)
        if not enough and not job.table.is_insert_only:
            enough = bool(misplaced(work.files, selected, by_spark(work.spark)))
    else:
        enough = len({(delta.low, delta.high, delta.statement) for delta in state.deltas}) > 1
    if not enough:
        mark = job.snapshot.write_ids.high_watermark
        raise NothingToCompact(f"{job.table.full_name} {job.folder.name}: nothing to compact up to write id {mark}")


def _major(work: SparkTransaction, job: CompactionJob, selected: Selected) -> str:
    name = base_name(job.snapshot.write_ids.high_watermark, work.txn.id)
    if job.table.is_insert_only:
        _copy_rows(work, job, selected, name)
    else:
        _write_buckets(work, job, "base", name, selected)
    return name


def _minor(work: SparkTransaction, job: CompactionJob, state: FolderState, selected: Selected) -> list[str]:
    low, high = min(delta.low for delta in state.deltas), max(delta.high for delta in state.deltas)
    name = delta_name(low, high, visibility=work.txn.id)
    in_deltas = _without_base(selected, state)
    if job.table.is_insert_only:
        _copy_rows(work, job, in_deltas, name)
        return [name]
    _write_buckets(work, job, "delta", name, replace(in_deltas, deletes=[]))
    names = [name]
    if in_deltas.deletes:
        deletes = delta_name(low, high, is_delete=True, visibility=work.txn.id)
        _write_buckets(work, job, DELETES, deletes, replace(in_deltas, inserts=[], originals=[], growing=[]))
        names.append(deletes)
    return names


def _without_base(selected: Selected, state: FolderState) -> Selected:
    base = f"/{state.base.name}/" if state.base is not None else None

    def in_delta(path: str) -> bool:
        return base is None or base not in path

    loaded = [path for path in selected.originals if is_loaded(selected.folder, path) and in_delta(path)]
    return replace(selected, originals=loaded, inserts=[path for path in selected.inserts if in_delta(path)])


def _write_buckets(work: SparkTransaction, job: CompactionJob, part: str, name: str, selected: Selected) -> None:
    """Write the events of each bucket, sorted by row id: in Python, or where that can not by Spark's own reader and writer."""
    written = rewritten(work, job.table, job.snapshot.write_ids, selected, part)
    left = [bucket for bucket, path in written if path is None]
    by_spark = in_parallel(lambda bucket: _write_by_spark(work, job, part, bucket, selected.of_bucket(bucket)), left)
    found = [(path, bucket.number) for bucket, path in written if path is not None]
    writing.place(work, job.table, f"{job.folder.location}/{name}", [*found, *(each for files in by_spark for each in files)])
    for each in (part, *(_part_of(part, bucket) for bucket in left)):
        writing.remove_staged(work, job.table, each)


def _part_of(part: str, bucket: Bucket) -> str:
    return f"{part}_{bucket.number}"


def _write_by_spark(work: SparkTransaction, job: CompactionJob, part: str, bucket: Bucket, selected: Selected) -> list[tuple[str, int]]:
    """Write one bucket by a Spark job of one task; return (path, bucket) of the file. CanNotKeep."""
    deletes = part == DELETES
    if not deletes:
        faithful.check_columns(work.spark, job.table, selected)
        faithful.check_bucket(work.spark, job.table, selected, job.snapshot)
    read = delete_events if deletes else live_events
    events = read(work.spark, job.table, selected, job.snapshot)
    if events is None:
        return []
    if bucket.is_mixed:
        events = events.where(writing.decoded(events["bucket"]) == bucket.number)
    rows = events.coalesce(1).sortWithinPartitions("originalTransaction", "bucket", "rowId")
    staged = writing.write_staged(work, job.table, rows, _part_of(part, bucket), "orc", writing.orc_options(job.table))
    describe(work.spark, writing.lengths(staged), deletes=deletes)
    return [(status.path, bucket.number) for _, status in staged]


def _copy_rows(work: SparkTransaction, job: CompactionJob, selected: Selected, name: str) -> None:
    """Write the rows of insert-only files into few files of the same format, of a bucketed table into one for each bucket."""
    by_bucket: dict[int, list[str]] = {}
    whole = _unheld(work, job, [*selected.originals, *selected.inserts])
    for path in [*selected.originals, *selected.inserts]:
        if path in whole:
            continue
        by_bucket.setdefault(of_original(path.rpartition("/")[2]) if job.table.buckets else 0, []).append(path)
    found: list[tuple[str, int]] = []
    for bucket, paths in by_bucket.items():
        part = replace(selected, originals=[], inserts=paths)
        rows, source, options = _lines(work, job, paths) if job.table.format[0] in LINES else _rows(work, job, part)
        rows = rows.coalesce(1 if job.table.buckets else selected.bytes // ROWS_OF_A_FILE + 1)
        written = writing.write_staged(work, job.table, rows, f"rows_{bucket}", source, options)
        found += [(status.path, bucket + number) for number, (_, status) in enumerate(written)]
    if whole:
        folder = writing.staging(work, job.table, WHOLE)
        work.files.make(folder)
        for number, path in enumerate(whole, len(found)):
            work.files.copy(path, f"{folder}/{number}")
            found.append((f"{folder}/{number}", number))
    writing.place(work, job.table, f"{job.folder.location}/{name}", found)
    for name_of_part in (WHOLE, *(f"rows_{bucket}" for bucket in by_bucket)):
        writing.remove_staged(work, job.table, name_of_part)


def _unheld(work: SparkTransaction, job: CompactionJob, paths: list[str]) -> list[str]:
    """Return the files that are copied whole, since they have maps with null keys; none of a bucketed table, whose buckets are one file."""
    table = job.table
    if table.format[0] != "orc" or table.buckets or not has_maps([column.type for column in table.table.sd.cols]):
        return []
    found = in_parallel(lambda path: null_keys_of(work.spark, path, events=False), paths)
    return [path for path, places in zip(paths, found, strict=True) if places]


def _lines(work: SparkTransaction, job: CompactionJob, paths: list[str]) -> tuple[DataFrame, str, dict[str, str]]:
    """Return files of which a line is a row as they are, line by line. CanNotKeep."""
    if skipped(job.table) is not None:
        raise faithful.CanNotKeep(f"{job.table.full_name}: its files begin or end with lines that are no rows; nothing was changed")
    options = {"lineSep": "\n"}
    return work.spark.read.options(**options).text(paths), "text", options


def _rows(work: SparkTransaction, job: CompactionJob, selected: Selected) -> tuple[DataFrame, str, dict[str, str]]:
    """Return the rows of other files, with what Spark writes them by. CanNotKeep."""
    faithful.check_plain(work.spark, job.table, selected)
    found = [each.drop(FOLDER) for each in plain_scans(work.spark, job.table, [(job.folder, selected.inserts)])]
    return to_write(job.table, reduce(lambda left, right: left.unionByName(right), found), [], time_zone(work.spark))
