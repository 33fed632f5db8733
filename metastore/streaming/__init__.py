"""Write records into transactional tables in small commits that readers see at once, as Hive's streaming ingest does. Without Spark.

with StreamingConnection("thrift://host:9083", "sales.orders", StrictJson()) as connection, connection.batch(100) as batch:
    for records in source:
        with batch.transaction():
            batch.write(records)
"""

from metastore.acid.rewriting.unchanged import TableChanged
from metastore.acid.storage import CanNotWrite
from metastore.streaming.batch import BatchEnded, Overtaken, TransactionBatch
from metastore.streaming.connection import NotStreamable, StreamingConnection
from metastore.streaming.records import BadRecord, Delimited, Rows, StrictJson

__all__ = [
    "BadRecord",
    "BatchEnded",
    "CanNotWrite",
    "Delimited",
    "NotStreamable",
    "Overtaken",
    "Rows",
    "StreamingConnection",
    "StrictJson",
    "TableChanged",
    "TransactionBatch",
]
