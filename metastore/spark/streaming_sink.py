"""Write a stream of Spark into a transactional table, every batch once: its number is committed together with its rows.

    query = write_stream(events, "sales.orders", checkpoint="/checkpoints/orders", trigger={"availableNow": True})

Spark repeats a batch that was under way when a query ended. The number of the newest batch that a query has committed is in the table's
parameter `_meta.stream.ID`, where ID is the query's id in its checkpoint. A batch that is not newer is skipped. A query that runs twice by
mistake is held back by a lock on that name. This module never reads the source itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from metastore.spark.session.catalog import AcidTableInfo, metastore_uri, table_name
from metastore.spark.session.hadoop import HadoopFiles
from metastore.spark.table import AcidTable
from metastore.spark.transaction.readers import give_way
from metastore.spark.transaction.spark_transaction import SparkTransaction
from metastore.spark.writing.batch_numbers import PARAMETER, add_parameter, is_new, note, parameter_of


def write_stream(
    rows: DataFrame,
    table: str,
    checkpoint: str,
    *,
    uri: str | None = None,
    trigger: Mapping[str, Any] | None = None,
    name: str | None = None,
) -> StreamingQuery:
    """Start a query that inserts the rows of a streaming DataFrame into `database.table`; columns are matched by name.

    `trigger` holds the arguments of DataStreamWriter.trigger, `name` is the query's in Spark. NoSuchObjectException, NotTransactional; an
    error of a batch ends the query.
    """
    AcidTable.forName(rows.sparkSession, table, uri)
    found = uri or metastore_uri(rows.sparkSession)
    parameter = ""

    def run(batch: DataFrame, number: int) -> None:
        nonlocal parameter
        if not parameter:
            name_of_query = parameter_of(HadoopFiles(batch.sparkSession).read, checkpoint)
            database, short = table_name(batch.sparkSession, table)
            transaction = SparkTransaction(batch.sparkSession, found)
            with transaction.txn as txn:
                give_way(batch.sparkSession, found, transaction.load(database, short))
                add_parameter(txn, database, short, name_of_query)
            parameter = name_of_query
        insert_once(batch, number, table, found, parameter)

    writer = rows.writeStream.outputMode("append").option("checkpointLocation", checkpoint).foreachBatch(run)
    if name is not None:
        writer = writer.queryName(name)
    if trigger is not None:
        writer = writer.trigger(**trigger)
    return writer.start()


def insert_once(batch: DataFrame, number: int, table: str, uri: str, parameter: str) -> bool:
    """Insert a batch and note its number in the table by the same commit; return False if it was there already. NoTableId."""
    transaction = SparkTransaction(batch.sparkSession, uri)
    with transaction.txn:
        database, name = table_name(batch.sparkSession, table)
        if not is_new(transaction.txn, database, name, parameter, number):
            return False
        noted = note(transaction.load(database, name), parameter, number)
        AcidTable.within(transaction, database, name).insert(batch)
        transaction.txn.commit(table_parameter=noted)
    return True


def committed(table: AcidTableInfo) -> dict[str, int]:
    """Return the newest batch of each query that has written into a table, by the query's id."""
    return {name.removeprefix(PARAMETER): int(value) for name, value in table.parameters.items() if name.startswith(PARAMETER)}
