"""Read and write the files of a compaction on Spark: each bucket is read and written by one task of its own, so that nothing is shuffled.

Full-ACID buckets are rewritten by Python (`acid/rewriting/rewriting.py`), and by Spark's own reader and writer where Python can not copy
their values.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import reduce

from pyspark.sql import DataFrame, SparkSession

from metastore.acid.buckets.buckets import Bucket, of_original
from metastore.acid.compaction.compacting import DELETES, CompactionJob, Written
from metastore.acid.files import Files, in_parallel
from metastore.acid.folders.placing import staging
from metastore.acid.folders.selecting import Selected
from metastore.acid.values.null_keys import has_maps
from metastore.spark.compaction.bucket_tasks import rewritten
from metastore.spark.reading.misplaced import by_spark
from metastore.spark.reading.physical import null_keys_of
from metastore.spark.reading.plain_files import LINES, skipped, to_write
from metastore.spark.reading.reading import FOLDER, delete_events, live_events, plain_scans, time_zone
from metastore.spark.session.catalog import AcidTableInfo
from metastore.spark.session.orc_metadata import describe
from metastore.spark.transaction.spark_transaction import SparkTransaction
from metastore.spark.writing import faithful, writing

ROWS_OF_A_FILE = 256 << 20
"""Bytes of insert-only files that become one file."""
WHOLE = "whole"
"""The part of the work that copies files as they are."""


class SparkRewriter:
    """A `Rewriter` (`acid.compaction.compacting`) on Spark. Methods raise CanNotKeep, FileError and Spark's errors."""

    def __init__(self, spark: SparkSession, uri: str) -> None:
        self._transaction = SparkTransaction(spark, uri, compaction=True)
        self.txn = self._transaction.txn
        self.files: Files = self._transaction.files
        self._by_spark = by_spark(spark)

    def close(self) -> None:
        """Do nothing: the Spark session stays open."""

    def named(self, path: str) -> Collection[int]:
        """Return the buckets that the rows of a file name, by reading them."""
        return self._by_spark(path)

    def write_buckets(self, job: CompactionJob, selected: Selected, part: str) -> Written:
        """Write the events of each bucket: in Python, or by Spark's own reader and writer where Python can not copy them."""
        table = AcidTableInfo(job.table.table)
        written = rewritten(self._transaction, table, job.snapshot.write_ids, selected, part)
        left = [bucket for bucket, path in written if path is None]
        by_spark = in_parallel(
            lambda bucket: _write_by_spark(self._transaction, table, job, part, bucket, selected.of_bucket(bucket)), left
        )
        found = [(path, bucket.number) for bucket, path in written if path is not None]
        return [*found, *(each for files in by_spark for each in files)]

    def write_rows(self, job: CompactionJob, selected: Selected) -> Written:
        """Write the rows of insert-only files, or copy files as they are."""
        return _copy_rows(self._transaction, AcidTableInfo(job.table.table), selected)


def _write_by_spark(
    transaction: SparkTransaction, table: AcidTableInfo, job: CompactionJob, part: str, bucket: Bucket, selected: Selected
) -> Written:
    """Write one bucket by a Spark job of one task; return (path, bucket) of the file. CanNotKeep."""
    deletes = part == DELETES
    if not deletes:
        faithful.check_columns(transaction.spark, table, selected)
        faithful.check_bucket(transaction.spark, table, selected, job.snapshot)
    read = delete_events if deletes else live_events
    events = read(transaction.spark, table, selected, job.snapshot)
    if events is None:
        return []
    if bucket.is_mixed:
        events = events.where(writing.decoded(events["bucket"]) == bucket.number)
    rows = events.coalesce(1).sortWithinPartitions("originalTransaction", "bucket", "rowId")
    staged = writing.write_staged(transaction, table, rows, f"{part}_{bucket.number}", "orc", writing.orc_options(table))
    describe(transaction.spark, writing.lengths(staged), deletes=deletes)
    return [(status.path, bucket.number) for _, status in staged]


def _copy_rows(transaction: SparkTransaction, table: AcidTableInfo, selected: Selected) -> Written:
    """Write the rows of insert-only files into few files of the same format; a bucketed table has one for each bucket."""
    by_bucket: dict[int, list[str]] = {}
    whole = _unheld(transaction, table, [*selected.originals, *selected.inserts])
    for path in [*selected.originals, *selected.inserts]:
        if path in whole:
            continue
        by_bucket.setdefault(of_original(path.rpartition("/")[2]) if table.buckets else 0, []).append(path)
    found: Written = []
    for bucket, paths in by_bucket.items():
        part = replace(selected, originals=[], inserts=paths)
        rows, source, options = _lines(transaction, table, paths) if table.format[0] in LINES else _rows(transaction, table, part)
        rows = rows.coalesce(1 if table.buckets else selected.bytes // ROWS_OF_A_FILE + 1)
        written = writing.write_staged(transaction, table, rows, f"rows_{bucket}", source, options)
        found += [(status.path, bucket + number) for number, (_, status) in enumerate(written)]
    if whole:
        folder = staging(transaction.txn.id, table, WHOLE)
        transaction.files.make(folder)
        for number, path in enumerate(whole, len(found)):
            transaction.files.copy(path, f"{folder}/{number}")
            found.append((f"{folder}/{number}", number))
    return found


def _unheld(transaction: SparkTransaction, table: AcidTableInfo, paths: list[str]) -> list[str]:
    """Return the files that are copied whole, since they have maps with null keys; none of a bucketed table, whose buckets are one file."""
    if table.format[0] != "orc" or table.buckets or not has_maps([column.type for column in table.table.sd.cols]):
        return []
    found = in_parallel(lambda path: null_keys_of(transaction.spark, path, events=False), paths)
    return [path for path, places in zip(paths, found, strict=True) if places]


def _lines(transaction: SparkTransaction, table: AcidTableInfo, paths: list[str]) -> tuple[DataFrame, str, dict[str, str]]:
    """Return the unchanged lines of files in which each line is a row, with Spark's format and options to write them. CanNotKeep."""
    if skipped(table) is not None:
        raise faithful.CanNotKeep(f"{table.full_name}: its files begin or end with lines that are not rows; nothing was changed")
    options = {"lineSep": "\n"}
    return transaction.spark.read.options(**options).text(paths), "text", options


def _rows(transaction: SparkTransaction, table: AcidTableInfo, selected: Selected) -> tuple[DataFrame, str, dict[str, str]]:
    """Return the rows of other files, with Spark's options to write them. CanNotKeep."""
    faithful.check_plain(transaction.spark, table, selected)
    found = [each.drop(FOLDER) for each in plain_scans(transaction.spark, table, [(selected.folder, selected.inserts)])]
    return to_write(table, reduce(lambda left, right: left.unionByName(right), found), [], time_zone(transaction.spark))
