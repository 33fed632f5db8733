"""Hive's transactional tables on Spark, through PySpark alone: read, insert, update, delete, merge, compact.

    from metastore.spark import AcidTable, transaction

It is a client of the Thrift API and of Spark; it knows nothing of the server.
"""

from metastore.spark.table import AcidTable
from metastore.spark.work import transaction

__all__ = ["AcidTable", "transaction"]
