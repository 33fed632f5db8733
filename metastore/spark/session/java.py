"""Classes of the JVM of a Spark session, for which PySpark has no public interface."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession


def java_class(spark: SparkSession, name: str) -> Any:
    """Return a class by its full name, or the package of that name where no class has it.

    It takes one look-up. `jvm.org.apache...` takes one for each part of the name, and each searches the tables of contents of all of
    Spark's archives for a class with the name of a package. That takes a hundred times as long.
    """
    return getattr(spark._jvm, name)  # noqa: SLF001  # see the module
