"""Write a stream of Spark into a transactional table, every batch once: its number is committed together with its rows.

    query = write_stream(events, "sales.orders", checkpoint="/checkpoints/orders", trigger={"availableNow": True})

Spark repeats a batch that was under way when a query ended. The number of the newest batch that a query has committed stands in the
table's parameter `_meta.stream.ID`, ID being the query's own in its checkpoint; a batch that is not newer is passed over. A query that
runs twice by mistake is held back by a lock on that name. It never reads the source itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from metastore import log
from metastore.acid.transactions import component
from metastore.idl import DataOperationType, LockType
from metastore.spark.catalog import AcidTableInfo, metastore_uri
from metastore.spark.hadoop import FileError, Files
from metastore.spark.table import AcidTable, CanNotChange
from metastore.spark.work import Work

PARAMETER = "_meta.stream."


def write_stream(
    rows: DataFrame, table: str, checkpoint: str, *, uri: str | None = None, trigger: Mapping[str, Any] | None = None,
    name: str | None = None,
) -> StreamingQuery:
    """Start a query that inserts the rows of a streaming DataFrame into `database.table`; columns are matched by name.

    `trigger` holds the arguments of DataStreamWriter.trigger, `name` is the query's in Spark. NoSuchObjectException, NotTransactional; what
    a batch raises ends the query.
    """
    target = AcidTable.forName(rows.sparkSession, table, uri)
    found = uri or metastore_uri(rows.sparkSession)
    parameter = ""

    def run(batch: DataFrame, number: int) -> None:
        nonlocal parameter
        if not parameter:
            name_of_query = PARAMETER + query_id(Files(batch.sparkSession), checkpoint)
            add_parameter(Work(batch.sparkSession, found), target.name, name_of_query)
            parameter = name_of_query
        insert_once(batch, number, target.name, found, parameter)

    writer = rows.writeStream.outputMode("append").option("checkpointLocation", checkpoint).foreachBatch(run)
    if name is not None:
        writer = writer.queryName(name)
    if trigger is not None:
        writer = writer.trigger(**trigger)
    return writer.start()


def query_id(files: Files, checkpoint: str) -> str:
    """Return the id that Spark gave the query of a checkpoint when it began. FileError."""
    path = f"{checkpoint.rstrip('/')}/metadata"
    try:
        return str(json.loads(files.read(path))["id"])
    except (ValueError, KeyError) as error:
        raise FileError(f"{path} does not tell the query's id: {error}") from error


def insert_once(batch: DataFrame, number: int, table: str, uri: str, parameter: str) -> bool:
    """Insert a batch and note its number in a parameter of the table by the same commit; return False if it was there already."""
    work = Work(batch.sparkSession, uri)
    with work.txn:
        database, _, name = table.rpartition(".")
        mine = component(database, f"{name}.{parameter}", LockType.EXCLUSIVE, DataOperationType.NO_TXN, transactional=False)
        work.txn.lock([mine])
        info = work.load(table)
        if number <= int(info.parameters[parameter]):
            log.get("metastore.spark").info("batch is there already", table=table, batch=number, parameter=parameter)
            return False
        if info.table.id is None:
            raise CanNotChange(f"{table}: the metastore tells no ids of tables, by which a commit notes its batch; it must be as of Hive 4")
        AcidTable.within(work, table).insert(batch)
        work.txn.commit(table_parameter=(info.table.id, parameter, str(number)))
    return True


def add_parameter(work: Work, table: str, parameter: str) -> None:
    """Give the table a parameter, which a commit can then change; nobody commits into the table meanwhile."""
    with work.txn:
        info = work.load(table)
        if parameter in info.parameters:
            return
        work.lock(info, LockType.EXCLUSIVE, DataOperationType.NO_TXN)
        info = work.load(table)
        if parameter not in info.parameters:
            info.table.parameters[parameter] = "-1"
            work.txn.call(lambda client: client.alter_table(info.database, info.name, info.table))


def committed(table: AcidTableInfo) -> dict[str, int]:
    """Return the newest batch of each query that has written into a table, by the query's id."""
    return {name.removeprefix(PARAMETER): int(value) for name, value in table.parameters.items() if name.startswith(PARAMETER)}
