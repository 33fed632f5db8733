"""How the files of insert-only tables are read and written, so that Hive and Spark see the same values. It moves no file.

Text is written and read here field by field, as Hive's LazySimpleSerDe does; what that can not tell apart is refused. Times in text and JSON
are wall-clock times of the JVM's zone, as in ORC. Days before 1582-10-15 are Julian ones in Parquet, as Hive takes them to be and Spark's
LEGACY modes write them. Source: Hive's LazySimpleSerDe, LazyUtils, TimestampParser, DataWritableReadSupport.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # the name that everyone gives it
from pyspark.sql.types import BinaryType, DataType, DateType, StringType, StructType, TimestampType

from metastore.spark.assignment import refusal, tried
from metastore.spark.catalog import AcidTableInfo, NotTransactional
from metastore.spark.reading import time_zone

LINE = "__line"
"""The column of a line of text."""
READ_TIME = "yyyy-MM-dd[ HH:mm:ss[.SSSSSSSSS]]"
WRITTEN_TIME = "yyyy-MM-dd HH:mm:ss.SSSSSS"
_REBASE = ("spark.sql.parquet.datetimeRebaseModeInWrite", "spark.sql.parquet.int96RebaseModeInWrite")
