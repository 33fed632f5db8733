"""Say into which bucket of a bucketed table each row of a DataFrame goes."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame

from metastore.spark.catalog import AcidTableInfo


def bucket_of(table: AcidTableInfo, rows: DataFrame) -> Column:
    raise NotImplementedError
