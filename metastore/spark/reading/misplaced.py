"""Read by Spark the buckets that the rows of a file of events name, see `acid/folders/misplaced.py`. This module changes nothing."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from metastore.acid.buckets import buckets
from metastore.acid.folders.misplaced import Exact
from metastore.spark.reading.reading import complete, event_schema


def by_spark(spark: SparkSession) -> Exact:
    """Return the function by which Spark reads the buckets that the rows of a file name."""

    def read(path: str) -> set[int]:
        events = complete(spark.read.format("orc").schema(event_schema(StructType([]))).load(path))
        return {buckets.decode(row.bucket) for row in events.select("bucket").distinct().collect()}

    return read
