"""The statement that would create a table."""

from __future__ import annotations

from metastore.console.ddl import create_statement
from metastore.idl import FieldSchema, Order, Table
from tests.console.sample import table


def test_a_managed_table_with_everything() -> None:
    made = table(
        "d", "t", keys=[FieldSchema(name="ds", type="string", comment="the day's")], transactional="true", numRows="7", comment="It's"
    )
    made.sd.location = "file:/w/t"
    made.sd.bucketCols, made.sd.numBuckets, made.sd.sortCols = ["id"], 4, [Order(col="id", order=1)]
    assert create_statement(made) == (
        "CREATE TABLE `d`.`t` (\n"
        "  `id` bigint COMMENT 'the key',\n"
        "  `amount` decimal(10,2)\n"
        ")\n"
        "COMMENT 'It\\'s'\n"
        "PARTITIONED BY (\n"
        "  `ds` string COMMENT 'the day\\'s'\n"
        ")\n"
        "CLUSTERED BY (`id`) SORTED BY (`id` ASC) INTO 4 BUCKETS\n"
        "ROW FORMAT SERDE 'org.apache.hadoop.hive.ql.io.orc.OrcSerde'\n"
        "WITH SERDEPROPERTIES (\n"
        "  'serialization.format' = '1'\n"
        ")\n"
        "STORED AS INPUTFORMAT 'org.apache.hadoop.hive.ql.io.orc.OrcInputFormat'\n"
        "  OUTPUTFORMAT 'org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat'\n"
        "LOCATION 'file:/w/t'\n"
        "TBLPROPERTIES (\n"
        "  'transactional' = 'true'\n"
        ");"
    )


def test_an_external_table_and_odd_names() -> None:
    made = table("d", "a`b", "EXTERNAL_TABLE", EXTERNAL="TRUE")
    made.sd.serdeInfo = None  # type: ignore[assignment]  # a client may leave it out
    assert create_statement(made).startswith("CREATE EXTERNAL TABLE `d`.`a``b` (")


def test_views() -> None:
    view = Table(dbName="d", tableName="v", tableType="VIRTUAL_VIEW", viewOriginalText="select 1", viewExpandedText="SELECT 1")
    assert create_statement(view) == "CREATE VIEW `d`.`v` AS\nSELECT 1;"
    view.tableType = "MATERIALIZED_VIEW"
    assert create_statement(view) == "CREATE MATERIALIZED VIEW `d`.`v` AS\nSELECT 1;"
