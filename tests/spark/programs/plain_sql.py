"""A Spark session as users of a metastore have it: with Hive support, and nothing of ours in it.

    python -m tests.spark.programs.plain_sql URI WAREHOUSE [KEY=VALUE ..]

Each line is a SQL statement. It is answered by a JSON list of its rows, or by the text of its error.
"""

from __future__ import annotations

import json
import sys

from pyspark.sql import SparkSession


def main(uri: str, warehouse: str, *settings: str) -> None:
    """Run statements until the input ends."""
    builder = (
        SparkSession.builder.master("local[1]")
        .enableHiveSupport()
        .config("spark.ui.enabled", "false")
        .config("spark.sql.warehouse.dir", warehouse)
        .config("spark.hadoop.hive.metastore.uris", uri)
    )
    for setting in settings:
        builder = builder.config(*setting.split("=", 1))
    spark = builder.getOrCreate()
    for line in sys.stdin:
        try:
            answer: object = [list(row) for row in spark.sql(line).collect()]
        except Exception as error:  # noqa: BLE001  # the test reads any error
            answer = str(error)
        sys.stdout.write(json.dumps(answer, default=str) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
