"""Compute the bucket of each row of a DataFrame in a bucketed table. The hash itself is in `metastore.acid.buckets.hashing`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the name that everyone gives it
from pyspark.sql.pandas.functions import pandas_udf
from pyspark.sql.types import (
    ByteType,
    DataType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    TimestampType,
)

from metastore.acid.buckets.hashing import CanNotHash
from metastore.spark.reading.reading import time_zone
from metastore.spark.session.catalog import AcidTableInfo

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_NUMBERS = (ByteType, ShortType, IntegerType, LongType, FloatType, DoubleType)
_LENGTH = re.compile(r"(?:var)?char\s*\(\s*(\d+)\s*\)", re.IGNORECASE)
_DECIMAL = re.compile(r"decimal(?:\((\d+)(?:,(\d+))?\))?")


class _Hashed(NamedTuple):
    """A bucket column: its type in Hive, and whether a column that marks nulls follows it, since pandas has no null numbers."""

    kind: str
    flagged: bool


def bucket_of(table: AcidTableInfo, rows: DataFrame) -> Column:
    """Return the bucket, 0 to `table.buckets` - 1, of rows that have the table's columns and types. CanNotHash for a nested bucket column.

    Timestamps are in the JVM's zone, as in the files; Hive, whose hash of version 1 depends on its zone, is assumed to run in the same.
    """
    kinds = {column.name.lower(): column.type for column in table.table.sd.cols}
    plan = []
    arguments = []
    for name in table.bucket_columns:
        kind, spark = kinds[name], rows.schema[name].dataType
        if "<" in kind:
            raise CanNotHash(f"{table.full_name} is bucketed by {name}, which is {kind}: Spark can not write such a table")
        plan.append(_Hashed(kind, isinstance(spark, (*_NUMBERS, TimestampType))))
        arguments.append(_as_argument(F.col(name), kind, spark))
        if plan[-1].flagged:
            arguments.append(F.col(name).isNull())
    count, version, zone = table.buckets, table.bucketing_version, time_zone(rows.sparkSession)

    def run(*given: pd.Series) -> pd.Series:
        import pandas as pd

        from metastore.acid.buckets.hashing import buckets_of

        left = iter(given)
        columns = [(_to_arrow(next(left), each.kind, next(left) if each.flagged else None, zone), each.kind) for each in plan]
        return pd.Series(buckets_of(columns, count, version, zone=zone))

    # Spark reads the annotations of the function, which must therefore be types and no texts.
    import pandas as pd

    run.__annotations__ = {"given": pd.Series, "return": pd.Series}
    make: Any = pandas_udf  # its type hints allow only functions with annotations in their source
    hashed: Column = make(run, IntegerType())(*arguments)
    return hashed


def _as_argument(column: Column, kind: str, spark: DataType) -> Column:
    """Return a column in a form that pandas keeps unchanged."""
    if isinstance(spark, _NUMBERS):
        return F.coalesce(column, F.lit(0).cast(spark))
    if isinstance(spark, TimestampType):
        return F.coalesce(F.unix_micros(column), F.lit(0))  # pandas has not all years
    if (length := _LENGTH.fullmatch(kind)) is not None:
        return F.substring(column, 1, int(length[1]))
    return column


def _to_arrow(values: pd.Series, kind: str, is_null: pd.Series | None, zone: str) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    if kind == "timestamp":
        assert is_null is not None
        moments = pa.array(values.to_numpy(), pa.int64(), mask=is_null.to_numpy())
        return pc.local_timestamp(moments.cast(pa.timestamp("us", "UTC")).cast(pa.timestamp("us", zone)))
    if (decimal := _DECIMAL.fullmatch(kind)) is not None:
        return pa.array(values, pa.decimal128(int(decimal[1] or 10), int(decimal[2] or 0)))
    return pa.array(values.to_numpy(), mask=None if is_null is None else is_null.to_numpy(), from_pandas=is_null is None)
