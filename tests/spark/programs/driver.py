"""A Spark program that the tests kill: it changes a table as its input says, and reports each change that is done.

    python -m tests.spark.programs.driver URI TABLE [MASTER]

Each line is a JSON list: insert, update or merge, then rows (id, v, k), or for an update the v whose rows get v + 1; or sql, then
statements. Each is answered by `done`.
"""

from __future__ import annotations

import json
import sys

from pyspark.sql import SparkSession

from metastore.spark import AcidTable, sql

SCHEMA = "id int, v int, k string"


def do(spark: SparkSession, table: AcidTable, action: str, what: object) -> None:
    """Run one request."""
    if action == "update":
        table.update(f"v = {what}", {"v": "v + 1"})
        return
    assert isinstance(what, list)
    if action == "sql":
        for statement in what:
            sql(spark, statement).collect()
        return
    rows = spark.createDataFrame([tuple(row) for row in what], SCHEMA)
    if action == "insert":
        table.insert(rows)
    else:
        table.merge(rows, "target.id = source.id AND target.k = source.k").whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()


def _answer(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main(uri: str, name: str, master: str = "local[1]") -> None:
    """Serve one table."""
    builder = SparkSession.builder.master(master).config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "1")
    spark = builder.config("spark.hadoop.hive.metastore.uris", uri).getOrCreate()
    table = AcidTable.forName(spark, name, uri)
    _answer("ready")
    for line in sys.stdin:
        do(spark, table, *json.loads(line))
        _answer("done")


if __name__ == "__main__":
    main(*sys.argv[1:])
