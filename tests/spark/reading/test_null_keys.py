"""Maps with null keys, which Hive writes: other columns are read and changed, such maps are refused by name, compactions go on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyorc
import pyspark
import pytest
from pyspark.sql import SparkSession

from metastore.acid.buckets import buckets
from metastore.acid.rewriting.bucket_files import event_type, orc_type
from metastore.acid.transactions import Transaction
from metastore.rules.transactions.acid_directories import delta_name
from metastore.spark import AcidTable
from metastore.spark.session.catalog import AcidTableInfo
from tests.spark.reading.test_evolution import outcome, rows
from tests.support.acid.acid_tables import TableMaker
from tests.support.servers.servers import Server

COLUMNS = "id int, m map<int,string>, s struct<m:map<string,int>>, k int"
REFUSED = r"default\.\w+: column {} has maps with null keys, which Spark can not hold; read and set other columns, or let Hive do it"


def written(server: Server, table: AcidTable, *values: Sequence[Any], name: str = "bucket_00000") -> None:
    """Add rows as Hive does, in a transaction of their own."""
    database, short = table.name.split(".")
    with Transaction.begin(server.uri) as txn:
        info = txn.call(lambda client: AcidTableInfo.load(client, database, short))
        write_id = txn.write_id(database, short)
        columns = [(column.name, column.type) for column in info.table.sd.cols]
        place = Path(info.location.removeprefix("file:")) / delta_name(write_id, write_id, 0)
        place.mkdir(parents=True)
        events = [(0, write_id, buckets.encode(0), row, write_id, each) for row, each in enumerate(values)]
        schema = pyorc.Struct(**{each: orc_type(kind) for each, kind in columns}) if info.is_insert_only else event_type(columns)
        with (place / name).open("wb") as file, pyorc.Writer(file, schema) as writer:
            writer.writerows(values if info.is_insert_only else events)


@pytest.fixture
def table(server: Server, make_table: TableMaker) -> AcidTable:
    """Rows 1 and 2 of one file have null keys, row 3 of another has none."""
    made = make_table(COLUMNS)
    written(server, made, (1, {None: "a"}, ({None: 1, "x": 2},), 0), (2, {5: "b"}, ({"y": 1},), 0))
    written(server, made, (3, {0: "c"}, ({"z": 1},), 0))
    return made


@pytest.mark.parametrize("codegen", ["true", pytest.param("false", marks=pytest.mark.slow)])
def test_other_columns_are_read_and_such_maps_refused(spark: SparkSession, table: AcidTable, codegen: str) -> None:
    before = spark.conf.get("spark.sql.codegen.wholeStage")
    spark.conf.set("spark.sql.codegen.wholeStage", codegen)
    try:
        assert rows(table, "id", "k") == [(1, 0), (2, 0), (3, 0)]
        assert rows(table, "count(*)") == [(3,)]
        with table:
            frame = table.toDF()
            assert frame.where("id = 3").collect()[0].m == {0: "c"}
            for name in ("m", "s"):
                for wanted in (name, f"size({name}{'.m' * (name == 's')})", f"{name} is not null"):
                    with pytest.raises(Exception, match=REFUSED.format(name)):
                        frame.selectExpr(wanted).collect()
    finally:
        spark.conf.set("spark.sql.codegen.wholeStage", before or "true")


@pytest.mark.slow
def test_rows_are_changed_where_their_maps_are_not_kept(spark: SparkSession, server: Server, table: AcidTable) -> None:
    """An update that replaces the maps works. The file is refused as a whole until a compaction removes the old rows."""
    assert table.update("id = 3", {"k": "1"}) == 1
    with pytest.raises(Exception, match=REFUSED.format("m")):
        table.update("id = 1", {"k": "1", "s": "null"})
    assert table.update("id = 1", {"k": "1", "s": "null", "m": "map(7, 'new')"}) == 1
    assert table.delete("id = 2") == 1
    assert rows(table, "id", "k") == [(1, 1), (3, 1)]
    assert outcome(spark, server, table)[0] == "compacted"
    assert rows(table, "id", "m", "s.m", "k") == [(1, {7: "new"}, None, 1), (3, {0: "c"}, {"z": 1}, 1)]


@pytest.mark.parametrize("kind", [pytest.param("minor", marks=pytest.mark.slow), "major"])
def test_they_are_compacted(spark: SparkSession, server: Server, table: AcidTable, kind: str) -> None:
    table.delete("id = 2")
    assert outcome(spark, server, table, kind)[0] == "compacted"
    assert rows(table, "id", "k") == [(1, 0), (3, 0)]
    with table, pytest.raises(Exception, match=REFUSED.format("m")):
        table.toDF().collect()
    table.delete("id = 1")
    assert outcome(spark, server, table, "major")[0] == "compacted"
    assert rows(table, "id", "m") == [(3, {0: "c"})]


def test_files_that_python_can_not_copy_are_refused(spark: SparkSession, server: Server, make_table: TableMaker) -> None:
    table = make_table(COLUMNS, parameters={"orc.compress": "LZO"})
    for number in (1, 2):
        written(server, table, (number, {None: "a"}, None, 0))
    state, detail = outcome(spark, server, table)
    assert state == "refused"
    assert "has maps with null keys in the columns m, which Spark can not hold; nothing was changed, let Hive do it" in detail


def test_files_of_insert_only_tables_are_copied_whole(spark: SparkSession, server: Server, make_table: TableMaker) -> None:
    table = make_table(COLUMNS, insert_only=True)
    written(server, table, (1, {None: "a"}, None, 0), name="000000_0")
    for number in (2, 3):
        written(server, table, (number, {number: "a"}, None, 0), name="000000_0")
    with table, pytest.raises(Exception, match=REFUSED.format("m")):
        table.toDF().collect()
    assert outcome(spark, server, table)[0] == "compacted"
    assert rows(table, "id") == [(1,), (2,), (3,)]
    with table:
        assert sorted(row.id for row in table.toDF().where("id > 1").select("id", "m").collect()) == [2, 3]


@pytest.mark.skipif(int(pyspark.__version__.split(".")[0]) < 4, reason="Python data sources came with Spark 4")
def test_the_format_reads_other_columns(spark: SparkSession, table: AcidTable) -> None:
    from metastore.spark.data_source import register

    register(spark)
    reader = spark.read.format("hive_acid").option("table", table.name)
    assert sorted(reader.option("columns", "id, k").load().collect()) == [(1, 0), (2, 0), (3, 0)]
    with pytest.raises(Exception, match=r"default\.\w+: column m has maps with null keys, which Spark can not hold; .* option columns"):
        reader.option("columns", "id, m").load().collect()
