"""Spark's types as Arrow's, in the form that the installed release of PySpark requires of results. This module converts no values."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import StructType

if TYPE_CHECKING:
    import pyarrow as pa


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return the schema of record batches for Spark; timestamps are microseconds in UTC, the zone for which PySpark since 4.2 asks."""
    from pyspark.sql.pandas.types import to_arrow_schema

    options: dict[str, Any] = {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_schema).parameters else {}
    return to_arrow_schema(schema, **options)
