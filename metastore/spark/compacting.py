"""Compact one table or partition: merge its deltas, or deltas and base, into new directories that readers see when the transaction commits.

    minor   delta_A_B_vT and delete_delta_A_B_vT hold the events of all deltas from A to B
    major   base_B_vT holds the rows that are left at write id B

B is the highest write id below the first open one, T the compactor's transaction. Each bucket is read and written by one task of its own,
so nothing is shuffled; readers and writers go on meanwhile. Source: Hive's Worker, CompactorMR, MmMajorQueryCompactor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the name that everyone gives it

from metastore.acid import buckets
from metastore.acid.files import Status
from metastore.acid.transactions import TableSnapshot
from metastore.idl import CompactionInfoStruct, CompactionType
from metastore.rules.acid_directories import State, base_name, delta_name
from metastore.spark import writing
from metastore.spark.catalog import AcidTableInfo, Folder
from metastore.spark.hadoop import in_parallel
from metastore.spark.orc_metadata import describe
from metastore.spark.reading import Selected, delete_events, live_events, select, state_of
from metastore.spark.work import Work

ROWS_OF_A_FILE = 256 << 20
"""Bytes of insert-only files that become one file."""
MOST_WRITE_IDS, MOST_ROWS = (1 << 23) - 1, (1 << 28) - 1
"""How many write ids below the highest, and rows of a bucket in one statement, a rank tells apart."""


class NothingToCompact(Exception):
    """The directories are compacted as they are."""


@dataclass(frozen=True)
class Job:
    """One entry of the queue with what it is about, at the moment at which its work begins."""

    entry: CompactionInfoStruct
    table: AcidTableInfo
    folder: Folder
    snapshot: TableSnapshot

    @property
    def is_major(self) -> bool:
        return self.entry.type == CompactionType.MAJOR


def prepare(work: Work, entry: CompactionInfoStruct) -> Job:
    """Look up what an entry is about. NoSuchObjectException for a table or partition that was dropped, NotTransactional."""
    table = work.load(f"{entry.dbname}.{entry.tablename}")
    if entry.partitionname:
        partition = work.txn.call(lambda client: client.get_partition_by_name(table.database, table.name, entry.partitionname))
        folder = table.folder(partition)
    else:
        folder = Folder(table.location)
    seen = work.snapshot(table)
    return Job(entry, table, folder, replace(seen, write_ids=seen.write_ids.for_compaction()))


def run(work: Work, job: Job) -> list[str]:
    """Write the new directories and return their names. NothingToCompact; FileError and what Spark raises."""
    state, _ = state_of(work.files, job.folder, job.snapshot)
    _check(job, state)
    (selected,) = select(work.files, [job.folder], job.snapshot, insert_only=job.table.is_insert_only)
    if job.is_major:
        return [_major(work, job, selected)]
    return _minor(work, job, state, selected)


def _check(job: Job, state: State) -> None:
    """Raise NothingToCompact where one directory holds all that there is."""
    if job.is_major:
        enough = bool(state.deltas or state.originals)
    else:
        enough = len({(delta.low, delta.high, delta.statement) for delta in state.deltas}) > 1
    if not enough:
        mark = job.snapshot.write_ids.high_watermark
        raise NothingToCompact(f"{job.table.full_name} {job.folder.name}: nothing to compact up to write id {mark}")


def _major(work: Work, job: Job, selected: Selected) -> str:
    name = base_name(job.snapshot.write_ids.high_watermark, work.txn.id)
    if job.table.is_insert_only:
        _copy_rows(work, job, selected, name)
    else:
        _write_buckets(work, job, "base", name, selected, lambda part: live_events(work.spark, job.table, part, job.snapshot))
    return name


def _minor(work: Work, job: Job, state: State, selected: Selected) -> list[str]:
    low, high = min(delta.low for delta in state.deltas), max(delta.high for delta in state.deltas)
    name = delta_name(low, high, visibility=work.txn.id)
    in_deltas = _without_base(selected, state)
    if job.table.is_insert_only:
        _copy_rows(work, job, in_deltas, name)
        return [name]
    inserts_alone = replace(in_deltas, deletes=[])
    _write_buckets(work, job, "delta", name, inserts_alone, lambda part: live_events(work.spark, job.table, part, job.snapshot))
    names = [name]
    if in_deltas.deletes:
        deletes = delta_name(low, high, is_delete=True, visibility=work.txn.id)
        events = replace(in_deltas, inserts=in_deltas.deletes, deletes=[], growing=[])
        _write_buckets(work, job, "delete", deletes, events, lambda part: delete_events(work.spark, job.table, part, job.snapshot))
        names.append(deletes)
    return names


def _without_base(selected: Selected, state: State) -> Selected:
    base = f"/{state.base.name}/" if state.base is not None else None
    return replace(selected, originals=[], inserts=[path for path in selected.inserts if base is None or base not in path])


def _write_buckets(
    work: Work, job: Job, part: str, name: str, selected: Selected, events_of: Callable[[Selected], DataFrame | None]
) -> None:
    """Write the events of each bucket, sorted by row id, by a Spark job of one task; the jobs run side by side."""

    def write(item: tuple[int, Selected]) -> list[tuple[Status, int]]:
        bucket, files = item
        events = events_of(files)
        if events is None:
            return []
        rank = _rank(bucket, job.snapshot.write_ids.high_watermark)
        rows = events.coalesce(1).sortWithinPartitions(rank, "originalTransaction", "bucket", "rowId")
        found = writing.write_staged(work, job.table, rows, f"{part}_{bucket}", "orc", writing.orc_options(job.table))
        return [(status, bucket) for _, status in found]

    by_bucket = _by_bucket(selected)
    found = [each for written in in_parallel(write, sorted(by_bucket.items())) for each in written]
    describe(work.spark, [(status.path, status.length) for status, _ in found], deletes=part == "delete")
    writing.place(work, job.table, f"{job.folder.location}/{name}", found)
    for bucket in by_bucket:
        writing.remove_staged(work, job.table, f"{part}_{bucket}")


def _rank(bucket: int, highest: int) -> Column:
    """Return a number that grows with the row id: Spark compares by it alone as long as it differs, a tenth of what comparing rows takes.

    It has 23 bits of the write id, counted from the highest down, 12 of the statement and 28 of the row's number. What has no room there,
    or was numbered in another bucket, comes first or last.
    """
    age = F.col("originalTransaction") - F.lit(highest - MOST_WRITE_IDS)
    number = F.col("bucket") - F.lit(buckets.encode(bucket))
    place = F.shiftleft(number.cast("bigint"), 28).bitwiseOR(F.least(F.col("rowId"), F.lit(MOST_ROWS)))
    within = F.when(number < 0, F.lit(0)).when(number >= buckets.MOST_STATEMENTS, F.lit((1 << 40) - 1)).otherwise(place)
    return F.when(age <= 0, F.lit(0)).otherwise(F.shiftleft(age, 40).bitwiseOR(within))


def _by_bucket(selected: Selected) -> dict[int, Selected]:
    """Split what is read by buckets: delete events are found in the file of the same bucket."""
    out: dict[int, Selected] = {}

    def of(bucket: int | None) -> Selected:
        return out.setdefault(bucket or 0, Selected(selected.folder, mixed=selected.mixed))

    for path in selected.inserts:
        of(buckets.of_file(_name(path))).inserts.append(path)
    for path in selected.deletes:
        of(buckets.of_file(_name(path))).deletes.append(path)
    for path in selected.originals:
        of(buckets.of_original(_name(path))[0]).originals.append(path)
    for path, length in selected.growing:
        of(buckets.of_file(_name(path))).growing.append((path, length))
    return out


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _copy_rows(work: Work, job: Job, selected: Selected, name: str) -> None:
    """Write the rows of insert-only files into few files of the same format."""
    source, options = job.table.format
    paths = [*selected.originals, *selected.inserts]
    target = f"{job.folder.location}/{name}"
    found: Iterable[tuple[str, Status]] = ()
    if paths:
        rows = work.spark.read.format(source).options(**options).schema(job.table.columns).load(paths)
        found = writing.write_staged(work, job.table, rows.coalesce(selected.bytes // ROWS_OF_A_FILE + 1), "rows", source, options)
    writing.place(work, job.table, target, [(status, number) for number, (_, status) in enumerate(found)])
    writing.remove_staged(work, job.table, "rows")


