"""Random histories of a table by SQL, AcidTable, `hive_acid` and streams, while server and Spark compact it and processes are killed."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from metastore.spark import disable, enable
from tests.support.acid.acid_histories import COMPACTED, KINDS, Action, CompactedTable, statements
from tests.support.servers.cluster import LAYOUTS, Cluster, Victim

pytest.importorskip("pyspark.sql.datasource", reason="Python data sources came with Spark 4")

from metastore.spark.data_source import register

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    """A session whose metastore each test sets. The format is registered in the first session, since Spark refuses it to a second one."""
    register(spark)
    return spark.newSession()


@pytest.fixture
def compacting(session: SparkSession, tmp_path: Path) -> Iterator[Cluster]:
    enable()
    made = Cluster(session, tmp_path, *COMPACTED)
    session.conf.set("spark.hadoop.hive.metastore.uris", made.uri)
    yield made
    disable()
    made.stop()


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("keys", "columns"), LAYOUTS, ids=["plain", "partitioned"])
def test_a_short_history(compacting: Cluster, spark: SparkSession, keys: str, columns: str) -> None:
    table = CompactedTable(compacting, spark, keys, columns, f"short{keys}")
    for number in range(6):
        table.history.step()
        if number % 2:
            table.ask()
    table.end()


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(int(os.environ.get("METASTORE_TEST_HISTORIES", "2"))))
@pytest.mark.parametrize(("keys", "columns"), LAYOUTS, ids=["plain", "partitioned"])
def test_a_long_history(compacting: Cluster, spark: SparkSession, keys: str, columns: str, seed: int) -> None:
    table = CompactedTable(compacting, spark, keys, columns, f"{seed}{keys}")
    for _ in range(30):
        table.history.step(table.beside_the_death_of_the_server if table.random.random() < 0.15 else None)
        table.compact_by_chance()
    table.end()


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("keys", "columns"), LAYOUTS, ids=["plain", "partitioned"])
def test_a_driver_of_sql_is_killed(compacting: Cluster, spark: SparkSession, keys: str, columns: str) -> None:
    """The driver is killed at a random moment of each kind of statement; its transaction is aborted, and others go on."""
    table = CompactedTable(compacting, spark, keys, columns, f"driver{keys}")
    table.history.step()
    for kind in (*KINDS[:4], "overwrite", "commit"):
        victim = Victim(sys.executable, "-m", "tests.spark.programs.driver", compacting.uri, "default.t", cwd=compacting.home)
        try:
            assert victim.hear() == "ready", (compacting.home / "victim.log").read_text()[-2000:]
            victim.say(json.dumps(["sql", ["SELECT count(*) FROM default.t"]]))
            assert victim.hear() == "done"
            table.history.step_by(kind, partial(_killed, victim, table.random.uniform(0, 2)))
        finally:
            victim.kill()
        table.ask()
    table.end()


def _killed(victim: Victim, seconds: float, action: Action) -> bool:
    victim.say(json.dumps(["sql", statements(action, "default.t")]))
    return victim.hears_within(seconds) == "done"
