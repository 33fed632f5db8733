"""The compaction worker on Spark under its public name: `Compactor(spark).run_once()`."""

from metastore.spark.compaction.compactor import Compactor

__all__ = ["Compactor"]
