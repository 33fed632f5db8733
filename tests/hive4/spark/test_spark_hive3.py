"""Hive 3's reader, which needs the metadata of Hive's own writer, reads files of Spark: several stripes and deletes, in small splits.

Compactions are not tested: their directories have names of Hive 4, which Hive 3 does not support.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from metastore.acid.folders.table import CAPABILITIES
from metastore.client import connect
from metastore.idl import CreateTableRequest
from metastore.spark import AcidTable
from tests.hive4.conftest import Place
from tests.support.acid.acid_tables import definition
from tests.support.engines.hive import OPENED, settings, variables, write_configuration
from tests.support.engines.jars import INGEST_ARTIFACTS, STREAMING, jars_of
from tests.support.engines.spark_session import session

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
SMALL = {"orc.stripe.size": "8192", "orc.row.index.stride": "1000", "no_auto_compaction": "true"}
QUERY = (
    "SET hive.cbo.enable=false; SET hive.fetch.task.conversion=more; SET mapreduce.input.fileinputformat.split.maxsize=60000; "
    "SET mapreduce.input.fileinputformat.split.minsize=1; SELECT id FROM default.{};"
)
"""Settings and a query for Hive 3 on Java 17, where it can only read without a job."""


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with session(tmp_path_factory.mktemp("spark-warehouse")) as opened:
        yield opened


def ids(place: Place, folder: Path, table: str) -> list[int]:
    """Return the column `id` as Hive 3 reads it."""
    write_configuration(folder, settings(place.uri, folder, place.warehouse))
    jars = jars_of(f"hive-streaming-{STREAMING}", INGEST_ARTIFACTS).removesuffix("/*")
    command = [
        "java",
        "-Xmx1g",
        *(f"--add-opens={package}=ALL-UNNAMED" for package in OPENED),
        f"-Djava.io.tmpdir={folder}/local",
        f"-Dlog4j.configurationFile={folder}/log4j2.properties",
        str(Path(__file__).with_name("OldCli.java")),
        jars,
        str(folder),
        "-e",
        QUERY.format(table),
    ]
    done = subprocess.run(command, env=variables(folder), capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stderr[-3000:]
    return sorted(int(line) for line in done.stdout.split() if line.isdigit())


def test_stripes_and_deletes(spark: SparkSession, place: Place, tmp_path: Path) -> None:
    table = definition("by_spark", "id int, v string", parameters=SMALL)
    with connect(place.uri) as client:
        client.create_table_req(CreateTableRequest(table=table, processorCapabilities=CAPABILITIES, processorIdentifier="tests"))
    ours = AcidTable.forName(spark, "default.by_spark", place.uri)
    ours.insert(spark.range(0, 20_000, 1, 1).selectExpr("cast(id as int) id", "sha2(cast(id as string), 256) v"))
    ours.delete("id % 7 = 0")
    assert ids(place, tmp_path, "by_spark") == [number for number in range(20_000) if number % 7]
    ours.insert(spark.range(20_000, 21_000, 1, 2).selectExpr("cast(id as int) id"))
    ours.delete("id % 11 = 0")
    assert ids(place, tmp_path, "by_spark") == [number for number in range(21_000) if (number % 7 or number >= 20_000) and number % 11]
