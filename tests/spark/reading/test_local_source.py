"""The program spark-sql, which runs no Python of its user's, reads and adds to a transactional table."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from metastore.spark import AcidTable
from metastore.spark.session.zones import local_zone
from tests.support.acid.acid_tables import TableMaker
from tests.support.engines.spark_session import ARGUMENTS
from tests.support.servers.servers import ROOT, Server, free_port, listens
from tests.support.servers.waiting import until

pytestmark = pytest.mark.skipif(pyspark.__version__ < "4", reason="Python data sources came with Spark 4")


def test_the_zone_is_that_of_java(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    assert local_zone() in (str(spark._jvm.java.util.TimeZone.getDefault().getID()), "Etc/UTC", "UTC")
    monkeypatch.setenv("TZ", ":Asia/Tokyo")
    assert local_zone() == "Asia/Tokyo"


def test_the_format_of_the_environment_is_not_taken_for_another_metastores(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    from metastore.spark import data_source

    monkeypatch.delenv("METASTORE_URI", raising=False)
    with pytest.raises(ValueError, match="in only one session of a program"):
        data_source._check_found("thrift://here:9083", local_zone())
    monkeypatch.setenv("METASTORE_URI", "thrift://elsewhere:9083")
    with pytest.raises(ValueError, match="unset it"):
        data_source._check_found("thrift://here:9083", local_zone())
    with pytest.raises(ValueError, match="zone"):
        data_source._check_found("thrift://elsewhere:9083", "Antarctica/Troll")
    data_source._check_found("thrift://elsewhere:9083", local_zone())


def variables(server: Server) -> dict[str, str]:
    """Return the environment of a program that finds the format by itself."""
    return {**os.environ, "METASTORE_URI": server.uri, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(ROOT)}


def two_rows(spark: SparkSession, make_table: TableMaker) -> AcidTable:
    """Return a table that holds the rows 1 and 2, and one that was deleted."""
    table = make_table("id int, v string")
    table.insert(spark.sql("select 1 id, 'a' v union all select 2, 'b' union all select 3, 'gone'"))
    table.delete("id = 3")
    return table


@pytest.mark.timeout(250)
@pytest.mark.slow
def test_spark_sql_reads_filters_and_appends(spark: SparkSession, make_table: TableMaker, server: Server, tmp_path: Path) -> None:
    table = make_table("id int, v string, t timestamp")
    table.insert(spark.sql("select 1 id, 'a' v, timestamp '2024-01-01 00:00:00' t union all select 2, 'b', null"))
    table.delete("id = 2")
    text = (
        f"CREATE TEMPORARY VIEW e USING hive_acid OPTIONS (table '{table.name}'); INSERT INTO e VALUES (500, 'cli', NULL); "
        "SELECT id, v FROM e WHERE id > 0 ORDER BY id"
    )
    program = Path(pyspark.__file__).parent / "bin" / "spark-sql"
    done = subprocess.run(
        [program, *ARGUMENTS, "--conf", "spark.sql.catalogImplementation=in-memory", "-e", text],
        env=variables(server),
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert [line.split("\t") for line in done.stdout.splitlines() if "\t" in line] == [["1", "a"], ["500", "cli"]], done.stderr[-3000:]
    with table:
        assert sorted(row.id for row in table.toDF().collect()) == [1, 500]


SCALA = """
val rows = spark.read.format("hive_acid").option("table", "{table}").load()
println("READ " + rows.where("id > 1").select("id").collect().map(_.getInt(0)).mkString(","))
spark.sql("SELECT 500 AS id, 'scala' AS v").write.format("hive_acid").option("table", "{table}").mode("append").save()
println("ADDED " + rows.where("id > 1").select("id").collect().map(_.getInt(0)).sorted.mkString(","))
sys.exit(0)
"""


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_scala_reads_filters_and_appends(spark: SparkSession, make_table: TableMaker, server: Server, tmp_path: Path) -> None:
    table = two_rows(spark, make_table)
    done = subprocess.run(
        [Path(pyspark.__file__).parent / "bin" / "spark-shell", *ARGUMENTS, "--conf", "spark.sql.catalogImplementation=in-memory"],
        input=SCALA.format(table=table.name),
        env=variables(server),
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    printed = re.findall(r"(?:READ|ADDED) \d[\d,]*", done.stdout)
    assert printed == ["READ 2", "ADDED 2,500"], done.stdout[-2000:] + done.stderr[-3000:]
    with table:
        assert sorted(row.id for row in table.toDF().collect()) == [1, 2, 500]


CONNECTED = """
from pyspark.sql import SparkSession
from metastore.spark import AcidTable, enable, sql

spark = SparkSession.builder.config("spark.api.mode", "connect").master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
rows = spark.read.format("hive_acid").option("table", "{table}").load()
print("READ", sorted(row.id for row in rows.where("id > 1").collect()))
spark.createDataFrame([(500, "c")], "id int, v string").write.format("hive_acid").option("table", "{table}").mode("append").save()
spark.sql("CREATE TEMPORARY VIEW e USING hive_acid OPTIONS (table '{table}')")
spark.sql("INSERT INTO e VALUES (501, 'd')")
print("SQL", sorted(row.id for row in spark.sql("SELECT id FROM e WHERE id > 2").collect()))
for door in (enable, lambda spark: sql(spark, "SELECT 1"), lambda spark: AcidTable.forName(spark, "{table}")):
    try:
        door(spark)
    except ValueError as error:
        print("REFUSED", "hive_acid" in str(error))
spark.stop()
"""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_thrift_server_reads_filters_and_appends(spark: SparkSession, make_table: TableMaker, server: Server, tmp_path: Path) -> None:
    table = two_rows(spark, make_table)
    programs = Path(pyspark.__file__).parent / "bin"
    environment = variables(server)
    port = free_port()
    text = (
        f"CREATE TEMPORARY VIEW e USING hive_acid OPTIONS (table '{table.name}'); INSERT INTO e VALUES (500, 'jdbc'); "
        "SELECT id, v FROM e WHERE id > 1 ORDER BY id"
    )

    def asked() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [
                programs / "beeline",
                "-u",
                f"jdbc:hive2://127.0.0.1:{port}",
                "-n",
                "tests",
                "--outputformat=tsv2",
                "--silent=true",
                "-e",
                text,
            ],
            env=environment,
            capture_output=True,
            text=True,
            cwd=tmp_path,
            check=False,
        )

    with (tmp_path / "thrift-server.log").open("wb") as log, subprocess.Popen(
        [
            programs / "spark-submit", "--class", "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2", *ARGUMENTS,
            "--conf", f"spark.hadoop.hive.metastore.uris={server.uri}", "spark-internal",
            "--hiveconf", f"hive.server2.thrift.port={port}", "--hiveconf", "hive.server2.thrift.bind.host=127.0.0.1",
        ], env=environment, stdout=log, stderr=subprocess.STDOUT, cwd=tmp_path, start_new_session=True,
    ) as process:  # fmt: skip
        try:
            until(lambda: process.poll() is not None or listens(port), missing="the Thrift server's port", seconds=120)
            done = asked()
        finally:
            os.killpg(process.pid, signal.SIGKILL)
    said = done.stderr[-3000:] + (tmp_path / "thrift-server.log").read_text()[-3000:]
    assert [line.split("\t") for line in done.stdout.splitlines() if "\t" in line] == [["id", "v"], ["2", "b"], ["500", "jdbc"]], said
    with table:
        assert sorted(row.id for row in table.toDF().collect()) == [1, 2, 500]


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_spark_connect_reads_filters_and_appends(spark: SparkSession, make_table: TableMaker, server: Server, tmp_path: Path) -> None:
    """Functions that need a JVM in the program fail with that reason, and name another way."""
    pytest.importorskip("grpc_status", reason="pip install 'pyspark[connect]'")
    table = two_rows(spark, make_table)
    program = tmp_path / "program.py"
    program.write_text(CONNECTED.format(table=table.name))
    done = subprocess.run(
        [sys.executable, program],
        env=variables(server),
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.stdout.splitlines() == ["READ [2]", "SQL [500, 501]", *["REFUSED True"] * 3], done.stderr[-3000:]
    with table:
        assert sorted(row.id for row in table.toDF().collect()) == [1, 2, 500, 501]
