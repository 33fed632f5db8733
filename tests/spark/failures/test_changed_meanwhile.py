"""A table that changes while a statement waits for its lock: the statement fails with that reason, and writes nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager

import pyspark
import pytest
from pyspark.sql import SparkSession

from metastore.acid.rewriting.unchanged import TableChanged
from metastore.acid.transactions import Transaction, component
from metastore.client import Client
from metastore.idl import DataOperationType, FieldSchema, LockState, LockType, ShowLocksRequest
from metastore.spark import AcidTable
from tests.spark.writing.test_partition_values import ids, save
from tests.support.acid.acid_tables import TableMaker, stored_table
from tests.support.servers.servers import Server

HAS_FORMAT = int(pyspark.__version__.split(".")[0]) >= 4


@contextmanager
def held_up(server: Server, client: Client, name: str, statement: Callable[[], object]) -> Iterator[Future[object]]:
    """Delay a statement on a table of `default` until the block ends: it has read the table, and waits for its lock."""
    with ThreadPoolExecutor(1) as pool:
        with Transaction.begin(server.uri) as other:
            other.lock([component("default", name, LockType.EXCLUSIVE, DataOperationType.NO_TXN)])
            under_way = pool.submit(statement)
            while not any(lock.state == LockState.WAITING for lock in client.show_locks(ShowLocksRequest(tablename=name)).locks):
                assert not under_way.done(), under_way.exception()
                threading.Event().wait(0.1)
            yield under_way
        wait([under_way])


def by_insert(spark: SparkSession, table: AcidTable) -> None:
    table.insert(spark.sql("select 2 id, 'new' v"))


def by_update(_spark: SparkSession, table: AcidTable) -> None:
    table.update("id = 1", {"v": "'new'"})


def by_format(spark: SparkSession, table: AcidTable) -> None:
    save(spark.createDataFrame([(2, "new")], "id int, v string"), table)  # which makes the session this thread's too


def by_read(_spark: SparkSession, table: AcidTable) -> None:
    table.toDF().collect()


@pytest.mark.parametrize(
    "statement",
    [
        by_insert,
        by_update,
        pytest.param(by_read, marks=pytest.mark.slow),
        pytest.param(by_format, marks=pytest.mark.skipif(not HAS_FORMAT, reason="Spark 4")),
    ],
)
def test_a_table_that_changed_while_its_lock_was_waited_for(
    spark: SparkSession, server: Server, client: Client, make_table: TableMaker, statement: Callable[[SparkSession, AcidTable], None]
) -> None:
    table = make_table("id int, v string")
    table.insert(spark.sql("select 1 id, 'old' v"))
    name = table.name.split(".")[1]
    with held_up(server, client, name, lambda: statement(spark, table)) as under_way:
        altered = stored_table(client, name)
        altered.sd.cols.append(FieldSchema("w", "int", None))
        client.alter_table("default", name, altered)
    with pytest.raises(Exception, match=rf"{table.name} changed while its lock was waited for \(columns\): run the statement again"):
        under_way.result()
    assert [(row.id, row.v) for row in AcidTable.forName(spark, table.name).toDF().collect()] == [(1, "old")]


def test_parameters_that_no_file_depends_on_may_change(spark: SparkSession, server: Server, client: Client, make_table: TableMaker) -> None:
    table = make_table("id int, v string")
    name = table.name.split(".")[1]
    with held_up(server, client, name, lambda: by_insert(spark, table)) as under_way:
        altered = stored_table(client, name)
        altered.parameters["comment"] = "new"
        altered.sd.cols[0].comment = "a number"
        client.alter_table("default", name, altered)
    under_way.result()
    assert ids(table) == [2]


def test_another_table_of_the_same_name_is_another(spark: SparkSession, server: Server, client: Client, make_table: TableMaker) -> None:
    table = make_table("id int, v string")
    name = table.name.split(".")[1]
    definition = stored_table(client, name)
    with held_up(server, client, name, lambda: by_insert(spark, table)) as under_way:
        client.drop_table("default", name, True)
        definition.id = None
        client.create_table(definition)
    with pytest.raises(TableChanged, match="another table of this name"):
        under_way.result()
    assert ids(table) == []
