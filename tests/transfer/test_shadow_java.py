"""The traffic of real clients, sent to Java's 3.1.3 and to this server: each difference is one that docs/shadow.md explains.

They write one warehouse. Spark, PyIceberg and Hive's streaming ingest make, change and read their own tables.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import pytest
from thriftpy2.thrift import TException

from metastore import idl
from metastore.client import connect
from tests.clients.test_iceberg_on_spark import iceberg_jar, interpreter
from tests.support.catalog import same_replies
from tests.support.catalog.full_catalog import Filler, columns, storage
from tests.support.databases import databases
from tests.support.engines.ingest import ingest
from tests.support.engines.java_metastore import LISTENER, java_metastore
from tests.support.engines.trino_server import trino_on
from tests.support.servers.servers import ROOT, serving
from tests.support.servers.shadow import Shadow, shadowing

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
EXPLAINED = (
    ("get_database", "success.ownerName"),
    ("get_catalog", "success.catalog.description"),
    ("get_open_txns_info", "success.open_txns[].agentInfo"),
)
"""Methods and paths of the page's table of differences that are not faults."""


class Sides(NamedTuple):
    """Java's metastore and this server, of one warehouse."""

    java: str
    own: str
    warehouse: Path


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    folder = tmp_path_factory.mktemp("sides")
    warehouse = folder / "java" / "warehouse"
    quiet = [word for name in ("compactor_cleaner", "compactor_initiator") for word in ("--set", f"{name}=false")]
    options = ("--workers", "1", "--set", f"warehouse=file:{warehouse}", "--set", "accept_moved_directories=true", *quiet)
    with ExitStack() as stack:
        url = stack.enter_context(contextmanager(databases.fresh)("postgresql", folder))
        java = stack.enter_context(java_metastore(url, folder / "java", "3.1.3", LISTENER))
        own = stack.enter_context(serving(*options, home=folder / "own"))
        yield Sides(java, own.uri, warehouse)


@pytest.fixture
def shadow(sides: Sides, tmp_path: Path) -> Iterator[Shadow]:
    with shadowing(sides.java, sides.own, tmp_path / "shadow", "--send-changes") as found:
        yield found


def check(shadow: Shadow, *asked: str) -> None:
    """Check that the methods were called, and that each difference is an explained one."""
    counts = shadow.end()
    assert {*asked} - {*counts} == set()
    assert {method: found for method, found in counts.items() if not {*found} <= {"same", "different", "unknown"}} == {}
    found = {
        (each["method"], re.sub(r"\[.*?\]", "[]", each["path"]), str(each["primary"])[:200], str(each["secondary"])[:200])
        for each in shadow.differences()
    }
    assert {each for each in found if each[:2] not in EXPLAINED} == set()


def test_the_page_explains_them() -> None:
    page = (ROOT / "docs" / "shadow.md").read_text()
    assert [method for method, path in EXPLAINED if f"| `{method}` | `{path.rpartition('.')[2]}`" not in page] == []


def test_every_kind_of_object(shadow: Shadow, tmp_path: Path) -> None:
    with connect(shadow.uri, timeout=120) as client:
        Filler(client, f"file:{tmp_path / 'data'}").everything()
        for _, ask in same_replies.asked(client):
            with suppress(TException):
                ask(client)
    check(shadow, "create_table", "add_partitions", "lock", "commit_txn", "get_partitions", "get_valid_write_ids", "show_compact")


def test_pyiceberg(shadow: Shadow) -> None:
    catalogs = pytest.importorskip("pyiceberg.catalog.hive")
    pa = pytest.importorskip("pyarrow")
    rows = pa.table({"id": [1, 2], "fare": [1.0, 2.0]})
    catalog = catalogs.HiveCatalog("test", uri=shadow.uri)
    catalog.create_namespace("ice", {"comment": "trips"})
    table = catalog.create_table("ice.trips", rows.schema, properties={"team": "data"})
    table.append(rows)
    with table.update_schema() as update:
        update.rename_column("fare", "price")
    catalog.update_namespace_properties("ice", updates={"city": "berlin"})
    assert catalog.list_tables("ice") == [("ice", "trips")]
    renamed = catalog.rename_table("ice.trips", "ice.rides")
    assert renamed.scan().to_arrow().num_rows == 2
    renamed.delete("id < 2")
    catalog.drop_table("ice.rides")
    catalog.drop_namespace("ice")
    check(shadow, "create_table", "lock", "unlock", "alter_table_with_environment_context", "drop_database")


SPARK = (
    "CREATE DATABASE plain",
    "CREATE TABLE plain.t (id INT, v STRING) USING parquet",
    "INSERT INTO plain.t VALUES (1, 'a'), (2, 'b')",
    "CREATE TABLE plain.h (id INT, v STRING) PARTITIONED BY (ds STRING) STORED AS orc",
    "SET hive.exec.dynamic.partition.mode=nonstrict",
    "INSERT INTO plain.h SELECT id, v, v FROM plain.t",
    "INSERT OVERWRITE plain.h PARTITION (ds = 'c') SELECT 3, 'c'",
    "ANALYZE TABLE plain.t COMPUTE STATISTICS FOR ALL COLUMNS",
    "ALTER TABLE plain.h ADD PARTITION (ds = 'd')",
    "ALTER TABLE plain.h PARTITION (ds = 'd') RENAME TO PARTITION (ds = 'e')",
    "ALTER TABLE plain.h DROP PARTITION (ds = 'a')",
    "ALTER TABLE plain.t ADD COLUMNS (w INT)",
    "ALTER TABLE plain.t SET TBLPROPERTIES ('team' = 'data')",
    "ALTER TABLE plain.t RENAME TO plain.u",
    "CREATE VIEW plain.seen AS SELECT id FROM plain.u",
    "SELECT count(*) FROM plain.h WHERE ds > 'a'",
    "SHOW PARTITIONS plain.h",
    "SHOW TABLES IN plain",
    "DESCRIBE TABLE EXTENDED plain.h PARTITION (ds = 'c')",
    "MSCK REPAIR TABLE plain.h",
    "TRUNCATE TABLE plain.u",
    "CREATE FUNCTION plain.f AS 'org.apache.hadoop.hive.ql.udf.generic.GenericUDFUpper'",
    "DROP FUNCTION plain.f",
    "DROP DATABASE plain CASCADE",
)


ICEBERG = (
    "CREATE DATABASE taxi",
    "CREATE TABLE taxi.trips (id BIGINT, fare DOUBLE, day DATE) USING iceberg PARTITIONED BY (months(day))",
    "INSERT INTO taxi.trips VALUES (1, 1.5, DATE '2024-01-05'), (2, 2.5, DATE '2024-02-05')",
    "ALTER TABLE taxi.trips RENAME COLUMN fare TO price",
    "ALTER TABLE taxi.trips RENAME TO taxi.rides",
    "DELETE FROM taxi.rides WHERE id = 1",
    "CREATE OR REPLACE TABLE taxi.replaced USING iceberg AS SELECT id FROM taxi.rides",
    "SELECT * FROM taxi.replaced",
    "DROP TABLE taxi.rides PURGE",
    "DROP TABLE taxi.replaced PURGE",
    "DROP DATABASE taxi",
)


def test_spark(sides: Sides, shadow: Shadow, tmp_path: Path) -> None:
    """Spark makes and reads its own tables, and tables of Iceberg."""
    python, spark = interpreter()
    settings = (
        f"spark.jars={iceberg_jar(spark, tmp_path)}",
        "spark.sql.extensions=org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.spark_catalog=org.apache.iceberg.spark.SparkSessionCatalog",
        "spark.sql.catalog.spark_catalog.type=hive",
    )
    statements = (*SPARK, *ICEBERG)
    with (tmp_path / "log").open("w") as log:
        done = subprocess.run(
            [python, "-m", "tests.spark.programs.plain_sql", shadow.uri, f"file:{sides.warehouse}", *settings],
            input="".join(f"{line}\n" for line in statements), stdout=subprocess.PIPE, stderr=log, text=True, cwd=ROOT, check=True,
        )  # fmt: skip
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(line, answer) for line, answer in zip(statements, answers, strict=True) if isinstance(answer, str)] == []
    check(shadow, "create_table_with_environment_context", "rename_partition", "get_partitions_by_filter", "lock", "unlock")


TRINO = (
    "CREATE SCHEMA fast",
    "CREATE TABLE fast.t (id bigint, v varchar, ds varchar) WITH (partitioned_by = ARRAY['ds'], format = 'ORC')",
    "INSERT INTO fast.t VALUES (1, 'a', 'x'), (2, 'b', 'y')",
    "ANALYZE fast.t",
    "SHOW STATS FOR fast.t",
    "SELECT v FROM fast.t WHERE ds = 'x'",
    "ALTER TABLE fast.t ADD COLUMN w integer",
    "DELETE FROM fast.t WHERE ds = 'y'",
    "CALL system.sync_partition_metadata('fast', 't', 'FULL')",
    "COMMENT ON TABLE fast.t IS 'rows'",
    "CREATE VIEW fast.seen AS SELECT id FROM fast.t",
    "SELECT * FROM fast.seen",
    "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'fast'",
    "DROP VIEW fast.seen",
    "ALTER TABLE fast.t RENAME TO fast.u",
    "DROP TABLE fast.u",
    "DROP SCHEMA fast",
)


ICEBERG_OF_TRINO = (
    "CREATE SCHEMA ice",
    "CREATE TABLE ice.t (id bigint, ds date) WITH (partitioning = ARRAY['month(ds)'])",
    "INSERT INTO ice.t VALUES (1, DATE '2024-01-05')",
    "ALTER TABLE ice.t RENAME COLUMN id TO number",
    "SELECT * FROM ice.t",
    "DROP TABLE ice.t",
    "DROP SCHEMA ice",
)


def test_trino(sides: Sides, shadow: Shadow, tmp_path: Path) -> None:
    with trino_on(shadow, sides.warehouse, tmp_path / "trino") as trino:
        for statement in TRINO:
            trino.run(statement)
        for statement in ICEBERG_OF_TRINO:
            trino.run(statement, catalog="iceberg")
    check(shadow, "add_partitions", "update_partition_column_statistics", "lock", "unlock")


def test_streaming_ingest(sides: Sides, shadow: Shadow, tmp_path: Path) -> None:
    """Hive's 3.1.3: transactions, write ids, locks, dynamic partitions."""
    with connect(shadow.uri, timeout=120) as client:
        sd = storage(None, ("id", "int"), ("msg", "string"), buckets=2, bucketCols=["id"])
        sd.inputFormat, sd.outputFormat, sd.serdeInfo.serializationLib = (
            f"org.apache.hadoop.hive.ql.io.orc.Orc{name}" for name in ("InputFormat", "OutputFormat", "Serde")
        )
        alerts = idl.Table(
            dbName="default", tableName="alerts", owner="ann", sd=sd, tableType="MANAGED_TABLE",
            partitionKeys=columns(("continent", "string")), parameters={"transactional": "true"},
        )  # fmt: skip
        client.create_table(alerts)
        with ingest(shadow.uri, tmp_path / "ingest", sides.warehouse, "default", "alerts", 3) as stream:
            stream.do("begin", "write 1,hello,asia", "write 2,welcome,europe", "commit")
            stream.do("begin", "write 3,taken back,asia", "abort", "begin", "write 4,more,africa", "commit")
        assert len(client.get_partition_names("default", "alerts", -1)) == 3
        client.get_valid_write_ids(idl.GetValidWriteIdsRequest(fullTableNames=["default.alerts"], validTxnList="9:9223372036854775807::"))
        client.drop_table("default", "alerts", True)
    check(shadow, "open_txns", "allocate_table_write_ids", "lock", "add_dynamic_partitions", "commit_txn", "get_valid_write_ids")
