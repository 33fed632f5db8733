"""The transaction of a DataFrame keeps its files for as long as a reader may need them, and no longer."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable

import pytest
from pyspark.sql import DataFrame, SparkSession

from metastore.client import Client
from metastore.idl import TxnState
from metastore.spark import AcidTable
from metastore.spark.session.catalog import WrongColumns
from metastore.spark.transaction import readers
from metastore.spark.transaction.spark_transaction import CanNotChange
from tests.support.acid.acid_tables import TableMaker
from tests.support.servers.waiting import until


def open_transactions(client: Client) -> set[int]:
    return {each.id for each in client.get_open_txns_info().open_txns if each.state == TxnState.OPEN}


@pytest.fixture
def left(client: Client) -> Callable[[], set[int]]:
    """A function that returns the transactions that were opened since the test began and are still open."""
    before = open_transactions(client)
    return lambda: open_transactions(client) - before


@pytest.fixture
def table(spark: SparkSession, make_table: TableMaker) -> AcidTable:
    made = make_table("id int", "p string")
    made.insert(spark.sql("select 1 id, 'x' p"))
    return made


def test_a_reader_that_fails_leaves_no_transaction(table: AcidTable, make_table: TableMaker, left: Callable[[], set[int]]) -> None:
    plain = make_table("id int", suffix="_plain", insert_only=True)
    for fails in (
        lambda: table.toDF(partitions="p ="),
        lambda: plain.toDF(row_id=True),
        lambda: table.toDF(partitions="nope = 1"),
        lambda: table.toDF(lease="soon"),  # type: ignore[arg-type]  # as a caller may do
    ):
        with pytest.raises(Exception, match=r".+"):
            fails()
    with pytest.raises(CanNotChange, match="insert-only"):
        plain.toDF(row_id=True)
    assert not left()


def test_a_frame_that_nobody_can_compute_ends_its_reader(spark: SparkSession, table: AcidTable, left: Callable[[], set[int]]) -> None:
    def derived() -> DataFrame:
        return table.toDF().where("id > 0").selectExpr("id + 1 n")

    frame = derived()
    opened = left()
    assert len(opened) == 1
    gc.collect()
    spark._jvm.java.lang.System.gc()
    seen = [threading.Event().wait(readers.LOOK * 3), [row.n for row in frame.collect()], left()]
    assert seen == [False, [2], opened], "what was made of it is still there"
    del frame

    def is_gone() -> bool:
        gc.collect()
        spark._jvm.java.lang.System.gc()
        return not left()

    until(is_gone)


def test_a_reader_ends_when_spark_is_idle_for_its_lease(spark: SparkSession, table: AcidTable, left: Callable[[], set[int]]) -> None:
    frame = table.toDF(lease=1.0)
    opened = left()
    spark.udf.register("slowly", lambda value: threading.Event().wait(4.0) or value, "int")
    assert [row.n for row in frame.selectExpr("slowly(id) n").collect()] == [1]  # four seconds of work do not count as idle time
    assert left() == opened
    until(lambda: not left())
    assert [row.id for row in frame.collect()] == [1], "its files are there until somebody cleans"


def test_closing_ends_all_readers_of_a_table(table: AcidTable, left: Callable[[], set[int]]) -> None:
    frames = [table.toDF(), table.toDF(row_id=True)]
    assert len(left()) == len(frames)
    table.close()
    assert not left()


def test_errors_are_ours(spark: SparkSession, table: AcidTable) -> None:
    with pytest.raises(CanNotChange, match="major"):
        table.compact("weekly")
    for partition in ("p=nope", "q=x", "x"):
        with pytest.raises(WrongColumns, match="partition"):
            table.compact("major", partition)
    for name in ("", "a..b", "other.default.t", "`open"):
        with pytest.raises(ValueError, match=r"not a name|names no table"):
            AcidTable.forName(spark, name)
    assert AcidTable.forName(spark, f"spark_catalog.`default`.{table.name.split('.')[1].upper()}").name == table.name
