"""Check whether Parquet files have times that Spark would not keep: Hive's have nanoseconds, Spark's times microseconds. Never writes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from metastore.acid.files import open_path
from metastore.acid.values.nested import times

SPARK = b"org.apache.spark.version"
"""The property of files that Spark wrote; their times have microseconds at most."""


def has_finer(path: str) -> bool:
    """Return whether a file has times of nanoseconds. OSError, ArrowException."""
    system, inner = open_path(path)
    with system.open(inner, "rb") as stream:
        file = parquet.ParquetFile(stream)
        if SPARK in (file.metadata.metadata or {}):
            return False
        columns = [field.name for field in file.schema_arrow if any(True for _ in times(pa.nulls(0, field.type)))]
        return bool(columns) and any(_finer(batch) for batch in file.iter_batches(columns=columns))


def _finer(batch: pa.RecordBatch) -> bool:
    return any(_has_finer(found) for column in batch.columns for found in times(column))


def _has_finer(values: Any) -> bool:
    return values.type.unit == "ns" and bool(np.any(np.asarray(values.drop_null().cast(pa.int64())) % 1000))
