"""An overwrite replaces all rows that were committed before it, and no rows that are committed after it."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pyspark
import pytest
from pyspark.sql import SparkSession

from metastore.client import Client
from metastore.idl import LockState, LockType, ShowLocksRequest
from metastore.spark import AcidTable, transaction
from metastore.spark.transaction.spark_transaction import CanNotChange, SparkTransaction
from tests.spark.writing.test_partition_values import ids, save
from tests.support.acid.acid_tables import TableMaker

HAS_FORMAT = int(pyspark.__version__.split(".")[0]) >= 4


def waits_for(client: Client, table: AcidTable) -> bool:
    """Return whether an exclusive lock on the table waits."""
    database, name = table.name.split(".")
    found = client.show_locks(ShowLocksRequest(dbname=database, tablename=name)).locks
    return any(lock.type == LockType.EXCLUSIVE and lock.state == LockState.WAITING for lock in found)


@pytest.mark.parametrize("writer", ["AcidTable", pytest.param("hive_acid", marks=pytest.mark.skipif(not HAS_FORMAT, reason="Spark 4"))])
@pytest.mark.parametrize("keys", ["", pytest.param("p string", marks=pytest.mark.slow)])
def test_an_overwrite_waits_for_an_insert_that_is_open(
    spark: SparkSession, client: Client, make_table: TableMaker, writer: str, keys: str
) -> None:
    table = make_table("id int", keys)
    columns = "id, 'x' p" if keys else "id"
    with transaction(spark) as txn:
        txn.table(table.name).insert(spark.sql(f"select {columns} from values (1) as t(id)"))

        def overwrite() -> None:
            rows = spark.createDataFrame([(2,)], "id int").selectExpr(*columns.split(", "))  # makes the session this thread's too
            if writer == "AcidTable":
                table.insert_overwrite(rows)
            else:
                save(rows, table, "overwrite")

        thread = threading.Thread(target=overwrite)
        thread.start()
        while not waits_for(client, table):
            assert thread.is_alive(), "it did not wait"
            threading.Event().wait(0.1)
    thread.join()
    assert ids(table) == [2]


@pytest.mark.parametrize(
    "later", ["insert", "merge", *(pytest.param(each, marks=pytest.mark.slow) for each in ("update", "delete", "overwrite"))]
)
def test_nothing_is_written_behind_an_overwrite_of_the_same_transaction(spark: SparkSession, make_table: TableMaker, later: str) -> None:
    table = make_table("id int")
    table.insert(spark.sql("select 1 id"))
    rows = spark.sql("select 7 id")
    statements: dict[str, Callable[[AcidTable], object]] = {
        "insert": lambda inside: inside.insert(rows),
        "update": lambda inside: inside.update(None, {"id": "id + 1"}),
        "delete": lambda inside: inside.delete(),
        "overwrite": lambda inside: inside.insert_overwrite(rows),
        "merge": lambda inside: inside.merge(rows, "target.id = source.id").whenNotMatchedInsertAll().execute(),
    }

    def both() -> None:
        with transaction(spark) as txn:
            inside = txn.table(table.name)
            inside.insert_overwrite(spark.sql("select 2 id"))
            assert [row.id for row in inside.toDF().collect()] == [2]
            statements[later](inside)

    with pytest.raises(CanNotChange, match="has overwritten it"):
        both()
    assert ids(table) == [1]


def test_an_overwrite_replaces_earlier_writes_of_its_transaction(spark: SparkSession, make_table: TableMaker) -> None:
    table, other = make_table("id int"), make_table("id int", suffix="_other")
    with transaction(spark) as txn:
        txn.table(table.name).insert(spark.sql("select 1 id"))
        txn.table(table.name).insert_overwrite(spark.sql("select 2 id"))
        txn.table(other.name).insert(spark.sql("select 3 id"))
    assert (ids(table), ids(other)) == ([2], [3])


def test_a_table_is_overwritten_by_its_own_rows(spark: SparkSession, make_table: TableMaker) -> None:
    """The reader of these rows is the program's own: the overwrite does not wait for it."""
    table = make_table("id int")
    table.insert(spark.sql("select explode(sequence(1, 10)) id"))
    table.insert_overwrite(table.toDF().where("id > 7"))
    assert ids(table) == [8, 9, 10]


def test_an_overwrite_waits_for_readers_of_others(spark: SparkSession, client: Client, make_table: TableMaker) -> None:
    table = make_table("id int")
    table.insert(spark.sql("select 1 id"))
    reader = SparkTransaction(spark, read_only=True)
    reader.lock_to_read([reader.load(*table.name.split("."))])
    thread = threading.Thread(target=lambda: table.insert_overwrite(spark.sql("select 2 id")))
    thread.start()
    while not waits_for(client, table):
        assert thread.is_alive(), "it did not wait"
        threading.Event().wait(0.1)
    reader.close()
    thread.join()
    assert ids(table) == [2]
