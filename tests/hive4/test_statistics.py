"""Hive answers count(*), min and max from statistics without reading a row, only if they are right for the query."""

from __future__ import annotations

import pytest

from metastore.idl import (
    AbortTxnRequest,
    AllocateTableWriteIdsRequest,
    AlterPartitionsRequest,
    AlterTableRequest,
    ClientCapabilities,
    ClientCapability,
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    EnvironmentContext,
    GetTableRequest,
    GetValidWriteIdsRequest,
    LongColumnStatsData,
    OpenTxnRequest,
    PartitionsStatsRequest,
    TableStatsRequest,
)
from metastore.rules.statistics.distinct_sketches import decode
from metastore.rules.transactions.snapshots import format_table, of_table_reply
from tests.hive4.conftest import Story

pytestmark = pytest.mark.slow
COUNTED = EnvironmentContext(properties={"STATS_GENERATED": "TASK", "DO_NOT_UPDATE_STATS": "true"})
QUESTION = "SELECT count(*), min(id), max(id) FROM t"


def from_statistics(story: Story, question: str) -> bool:
    """Return whether Hive's plan of a query contains the answer already."""
    plan = "\n".join("\t".join(row) for row in story.sql(f"EXPLAIN {question}"))
    assert "STAGE PLANS" in plan
    return "TableScan" not in plan


def make(story: Story, partitioned: bool) -> None:
    story.sql("SET hive.compute.query.using.stats=true")
    story.sql("SET hive.stats.fetch.column.stats=true")
    story.sql("SET hive.stats.column.autogather=true")
    keys = "PARTITIONED BY (p string)" if partitioned else ""
    story.sql(f"CREATE TABLE t (id int) {keys} STORED AS ORC TBLPROPERTIES ('transactional' = 'true')")


def insert(story: Story, partitioned: bool, rows: str) -> None:
    story.sql(f"INSERT INTO t {'PARTITION (p = 1)' if partitioned else ''} VALUES {rows}")


def count_in_advance(story: Story, partitioned: bool) -> int:
    """Add a hundred rows to the statistics in an open transaction, as Hive does before it commits an insert; return the transaction."""
    client, name = story.client, story.name
    (key,) = client.open_txns(OpenTxnRequest(num_txns=1, user="somebody", hostname="far")).txn_ids
    (given,) = client.allocate_table_write_ids(AllocateTableWriteIdsRequest(dbName=name, tableName="t", txnIds=[key])).txnToWriteIds
    (valid,) = client.get_valid_write_ids(GetValidWriteIdsRequest(fullTableNames=[f"{name}.t"])).tblValidWriteIds
    seen = of_table_reply(valid)
    open_ones = [each for each in seen.exceptions if each != given.writeId]
    assert open_ones == []
    text = format_table(f"{name}.t", type(seen)(given.writeId))
    capabilities = ClientCapabilities([ClientCapability.INSERT_ONLY_TABLES])
    if partitioned:
        (found,) = client.get_partitions_by_names(name, "t", ["p=1"])
    else:
        found = client.get_table_req(GetTableRequest(dbName=name, tblName="t", capabilities=capabilities)).table
    found.parameters["numRows"] = str(int(found.parameters["numRows"]) + 100)
    found.writeId = given.writeId
    common = {"dbName": name, "tableName": "t", "environmentContext": COUNTED, "validWriteIdList": text}
    if partitioned:
        client.alter_partitions_req(AlterPartitionsRequest(**common, partitions=[found], writeId=given.writeId))
    else:
        client.alter_table_req(AlterTableRequest(**common, table=found))
    return int(key)


@pytest.mark.parametrize("partitioned", [False, True])
def test_answers_come_from_statistics_while_those_are_right(story: Story, partitioned: bool) -> None:
    make(story, partitioned)
    insert(story, partitioned, "(1), (2), (3)")
    assert from_statistics(story, "SELECT count(*) FROM t")
    assert from_statistics(story, QUESTION)
    assert story.sql(QUESTION) == [("3", "1", "3")]
    insert(story, partitioned, "(10), (-5)")
    assert from_statistics(story, QUESTION)
    assert story.sql(QUESTION) == [("5", "-5", "10")]
    key = count_in_advance(story, partitioned)
    assert not from_statistics(story, QUESTION)
    assert story.sql(QUESTION) == [("5", "-5", "10")]
    story.client.abort_txn(AbortTxnRequest(txnid=key))
    assert story.sql(QUESTION) == [("5", "-5", "10")]
    story.sql("DELETE FROM t WHERE id = 10")
    story.sql("UPDATE t SET id = 4 WHERE id = 3")
    assert story.sql(QUESTION) == [("4", "-5", "4")]
    story.sql("ANALYZE TABLE t PARTITION (p) COMPUTE STATISTICS FOR COLUMNS" if partitioned else
              "ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS")  # fmt: skip
    assert from_statistics(story, QUESTION)
    assert story.sql(QUESTION) == [("4", "-5", "4")]


def known_of(story: Story, partitioned: bool) -> LongColumnStatsData:
    names = {"dbName": story.name, "tblName": "t", "colNames": ["id"]}
    if partitioned:
        (found,) = story.client.get_partitions_statistics_req(PartitionsStatsRequest(**names, partNames=["p=1"])).partStats["p=1"]
    else:
        (found,) = story.client.get_table_statistics_req(TableStatsRequest(**names)).tableStats
    return found.statsData.longStats


@pytest.mark.parametrize("partitioned", [False, True])
def test_distinct_values_of_several_inserts_are_counted_as_hive_counts_them_at_once(story: Story, partitioned: bool) -> None:
    make(story, partitioned)
    where = "PARTITION (p = 1)" if partitioned else ""
    for rows, most in (("0", 40), ("20", 80), ("0", 2_000), ("1500", 3_000)):
        story.sql(f"INSERT INTO t {where} SELECT {rows} + pos FROM (SELECT posexplode(split(space({most - 1}), ' '))) x")
        joined = known_of(story, partitioned)
        story.sql(f"ANALYZE TABLE t {where} COMPUTE STATISTICS FOR COLUMNS")
        whole = known_of(story, partitioned)
        assert decode(joined.bitVectors) == decode(whole.bitVectors) is not None
        assert abs(joined.numDVs - whole.numDVs) <= whole.numDVs // 50


@pytest.mark.parametrize("partitioned", [False, True])
def test_hive_reads_and_merges_statistics_of_times_that_others_wrote(story: Story, partitioned: bool) -> None:
    """Trino, Impala and clients before Hive 4 write `longStats` for timestamps, on which Hive 4's planner failed (HIVE-29398)."""
    make_times(story, partitioned)
    name, part = story.name, "p=1" if partitioned else None
    day = 86_400
    others = [
        ColumnStatisticsObj("z", "timestamp", ColumnStatisticsData(longStats=LongColumnStatsData(day, 2 * day, 1, 2))),
        ColumnStatisticsObj("d", "date", ColumnStatisticsData(longStats=LongColumnStatsData(1, 2, 1, 2))),
    ]
    statistics = ColumnStatistics(ColumnStatisticsDesc(not partitioned, name, "t", part), others, engine="hive")
    if partitioned:
        story.client.update_partition_column_statistics(statistics)
    else:
        story.client.update_table_column_statistics(statistics)
    where = "WHERE z > '1970-01-02 12:00:00' AND d > '1970-01-01'"
    assert "TableScan" in "\n".join("\t".join(row) for row in story.sql(f"EXPLAIN SELECT * FROM t {where}"))
    story.sql(f"INSERT INTO t {'PARTITION (p = 1)' if partitioned else ''} VALUES ('1970-01-05 00:00:00', '1970-01-05')")
    if partitioned:
        asked = PartitionsStatsRequest(dbName=name, tblName="t", colNames=["z", "d"], partNames=["p=1"])
        found = story.client.get_partitions_statistics_req(asked).partStats["p=1"]
    else:
        found = story.client.get_table_statistics_req(TableStatsRequest(dbName=name, tblName="t", colNames=["z", "d"])).tableStats
    z, d = (each.statsData for each in found)
    assert (z.longStats.lowValue, z.longStats.highValue, z.longStats.numNulls) == (day, 4 * day, 1)
    assert (d.dateStats.lowValue.daysSinceEpoch, d.dateStats.highValue.daysSinceEpoch) == (1, 4)


def make_times(story: Story, partitioned: bool) -> None:
    """Make a plain table of times with three rows, and without column statistics."""
    for setting in ("hive.compute.query.using.stats", "hive.stats.fetch.column.stats", "hive.stats.column.autogather"):
        story.sql(f"SET {setting}=true")
    keys = "PARTITIONED BY (p string)" if partitioned else ""
    story.sql(f"CREATE EXTERNAL TABLE t (z timestamp, d date) {keys} STORED AS ORC")
    rows = "('1970-01-02 00:00:00', '1970-01-02'), ('1970-01-03 00:00:00', '1970-01-03'), (null, null)"
    story.sql(f"INSERT INTO t {'PARTITION (p = 1)' if partitioned else ''} VALUES {rows}")
