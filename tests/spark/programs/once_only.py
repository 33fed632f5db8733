"""A program that writes a stream once only and is killed. Arguments: metastore, table, the source's folder, checkpoint, a moment.

The moment is `before N` or `after N`: it ends without a word right before or after the commit of batch N; `never`: it runs to the end.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from pyspark.sql import SparkSession

from metastore.acid.transactions import Transaction
from metastore.spark.streaming_sink import write_stream

uri, table, source, checkpoint, when, number = sys.argv[1:]
real = Transaction.commit


def commit(self: Transaction, *, table_parameter: tuple[int, str, str] | None = None) -> None:
    here = table_parameter is not None and table_parameter[2] == number
    if here and when == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    real(self, table_parameter=table_parameter)
    if here and when == "after":
        os.kill(os.getpid(), signal.SIGKILL)


replaced: Any = Transaction
replaced.commit = commit
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "2")
    .config("spark.hadoop.hive.metastore.uris", uri)
    .getOrCreate()
)
rows = spark.readStream.schema("id int, name string").option("maxFilesPerTrigger", 1).json(source)
write_stream(rows, table, checkpoint, trigger={"availableNow": True}).awaitTermination()
