"""Hive's transactional tables on Spark, through PySpark alone: read, insert, update, delete, merge, compact, by SQL too.

    from metastore.spark import AcidTable, enable, sql, transaction

It is a client of the Thrift API and of Spark; it does not depend on the server.
"""

from metastore.spark.dialect.running import sql
from metastore.spark.enabling.patches import disable, enable
from metastore.spark.table import AcidTable
from metastore.spark.work import transaction

__all__ = ["AcidTable", "disable", "enable", "sql", "transaction"]
