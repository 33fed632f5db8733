"""A program that writes a stream with the format `hive_acid` and dies. Arguments: metastore, table, source, checkpoint, a moment.

The moment is `before N` or `after N`: the commit of batch N kills all processes of the program's session right before or after;
`never`: it runs to the end.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from metastore.acid.transactions import Transaction
from metastore.spark.data_source import HiveAcidDataSource


def kill(group: int) -> None:
    """End the program and, first of all, this process, which Spark may have put into a group of its own."""
    if os.fork() == 0:
        os.setsid()
        os.kill(os.getppid(), signal.SIGKILL)
        os.killpg(group, signal.SIGKILL)
        os._exit(0)
    signal.pause()


class DeadlySource(HiveAcidDataSource):
    """A source whose options `when`, `number` and `session` choose the moment of the kill, and the killed processes."""

    def streamWriter(self, schema: StructType, overwrite: bool) -> Any:  # noqa: N802  # Spark's name
        options, real = self.options, Transaction.commit

        def commit(self: Transaction, *, table_parameter: tuple[int, str, str] | None = None) -> None:
            here = table_parameter is not None and table_parameter[2] == options["number"]
            if here and options["when"] == "before":
                kill(int(options["session"]))
            real(self, table_parameter=table_parameter)
            if here and options["when"] == "after":
                kill(int(options["session"]))

        replaced: Any = Transaction
        replaced.commit = commit
        return super().streamWriter(schema, overwrite)


def main(uri: str, table: str, source: str, checkpoint: str, when: str, number: str) -> None:
    from tests.spark.programs.deadly import DeadlySource as Importable  # Spark's own processes know no class of `__main__`

    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    spark.dataSource.register(Importable)
    rows = spark.readStream.schema("id int, name string").option("maxFilesPerTrigger", 1).json(source)
    writer = rows.writeStream.format("hive_acid").option("table", table).option("uri", uri).option("checkpointLocation", checkpoint)
    writer = writer.option("when", when).option("number", number).option("session", str(os.getpgrp())).trigger(availableNow=True)
    writer.start().awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
