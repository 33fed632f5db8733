"""One transaction of a Spark program over any number of transactional tables: all that it writes is seen at once, or nothing.

    with transaction(spark) as txn:
        txn.table("sales.orders").insert(orders)
        txn.table("sales.stock").update("id = 7", {"left": "left - 1"})

Each operation sees the rows that were committed when it began - after its locks were granted - and the transaction's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from metastore.spark.session.catalog import table_name
from metastore.spark.table import AcidTable
from metastore.spark.transaction.spark_transaction import SparkTransaction


class Work(SparkTransaction):
    """A transaction whose tables are found by their names. The names of this class and its module are public."""

    def table(self, name: str) -> AcidTable:
        """Return a table, named as in `AcidTable.forName`, whose operations belong to this transaction."""
        return AcidTable.within(self, *table_name(self.spark, name))


@contextmanager
def transaction(spark: SparkSession, uri: str | None = None) -> Iterator[Work]:
    """Open a transaction; leaving the block commits it, an error aborts it.

    `uri` is the metastore's, by default from Spark's own configuration. TransactionLost, TxnAbortedException when the commit fails: then
    none of its rows are seen.
    """
    opened = Work(spark, uri)
    with opened.txn:
        yield opened
