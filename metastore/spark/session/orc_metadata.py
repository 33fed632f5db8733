"""Add the notes of Hive's own writer to ORC files that Spark has written, see `acid/rewriting/event_file.py`.

The metadata is appended to a finished file; only its end and one row of each stripe are read. Where a file system can not append, as S3,
the file is not changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from py4j.java_gateway import get_field
from pyspark.sql import SparkSession

from metastore.acid.files import in_parallel
from metastore.acid.orc.orc_tail import LONGEST_POSTSCRIPT, tail_length, with_user_metadata
from metastore.acid.rewriting.event_file import hive_metadata
from metastore.spark.session.hadoop import HadoopFiles
from metastore.spark.session.java import java_class

IDENTITY = (2, 3, 4)
"""The numbers of ORC's columns that hold a row's write id, bucket and row number."""
USUAL_TAIL = 16_384


def describe(spark: SparkSession, paths: Iterable[tuple[str, int]], *, deletes: bool) -> None:
    """Append the metadata to files of events, given as (path, length); all their rows are inserts, or all delete events. FileError."""
    files = HadoopFiles(spark)

    def work(file: tuple[str, int]) -> None:
        path, length = file
        rows, keys = _last_keys(spark, path)
        files.append(path, with_user_metadata(_tail(files, path, length), hive_metadata(rows, keys, deletes=deletes)))

    in_parallel(work, paths)


def _tail(files: HadoopFiles, path: str, length: int) -> bytes:
    end = files.read(path, max(0, length - USUAL_TAIL))
    size = tail_length(end[-LONGEST_POSTSCRIPT:])
    return end[-size:] if size <= len(end) else files.read(path, length - size)


def _last_keys(spark: SparkSession, path: str) -> tuple[int, list[tuple[int, int, int]]]:
    """Return the number of rows of a file, and (write id, bucket, row number) of the last row of each stripe, by Java's reader of ORC."""
    context: Any = spark.sparkContext
    configuration = spark._jsc.hadoopConfiguration()  # noqa: SLF001  # PySpark's only way to Java's reader
    orc = java_class(spark, "org.apache.orc.OrcFile")
    reader = orc.createReader(java_class(spark, "org.apache.hadoop.fs.Path")(path), orc.readerOptions(configuration))
    schema = reader.getSchema()
    include = context._gateway.new_array(java_class(spark, "boolean"), schema.getMaximumId() + 1)  # noqa: SLF001  # see above
    for column in (0, *IDENTITY):
        include[column] = True
    rows = reader.rows(reader.options().include(include))
    batch = schema.createRowBatch(1)
    columns = get_field(batch, "cols")
    out: list[tuple[int, int, int]] = []
    count = 0
    for stripe in reader.getStripes():
        count += int(stripe.getNumberOfRows())
        rows.seekToRow(count - 1)
        rows.nextBatch(batch)
        write_id, bucket, row = (int(get_field(columns[column - 1], "vector")[0]) for column in IDENTITY)
        out.append((write_id, bucket, row))
    rows.close()
    reader.close()
    return count, out
