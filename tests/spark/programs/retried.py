"""A program whose write through `hive_acid` has six tasks that each fail once. Arguments: metastore, table, a folder for notes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession

from metastore.spark.data_source import register

uri, table, notes = sys.argv[1:]


def once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    context = TaskContext.get()
    assert context is not None
    note = Path(notes, str(context.partitionId()))
    first = not note.exists()
    note.touch()
    for number, batch in enumerate(batches):
        yield batch
        if first and context.partitionId() % 2 and number == 1:
            raise ValueError("fails between its rows")
    if first:
        raise ValueError("fails after its rows")


spark = (
    SparkSession.builder.master("local[2,3]")
    .config("spark.ui.enabled", "false")
    .config("spark.hadoop.hive.metastore.uris", uri)
    .config("spark.sql.execution.arrow.maxRecordsPerBatch", "10")
    .getOrCreate()
)
register(spark)
rows = spark.range(0, 600, 1, 6).selectExpr("cast(id as int) id").mapInArrow(once, "id int")
rows.write.format("hive_acid").option("table", table).mode("append").save()
spark.stop()
