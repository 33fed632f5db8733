"""Random histories of a table by Hive, by SQL on Spark, AcidTable, `hive_acid` and streams, while the server and Spark compact it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from metastore.spark import disable, enable
from metastore.spark.transaction.readers import close_all
from tests.support.acid.acid_histories import COMPACTED, Action, CompactedTable, statements
from tests.support.engines.hive import Hive, hive
from tests.support.engines.spark_session import session
from tests.support.servers.cluster import LAYOUTS, Cluster, Row

pytest.importorskip("pyspark.sql.datasource", reason="Python data sources came with Spark 4")

from metastore.spark.data_source import register

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]
STEPS = int(os.environ.get("METASTORE_TEST_STEPS", "24"))
"""A step with Hive takes up to 20 seconds."""
TIMEOUT = "20s"
"""The timeout of a transaction without heartbeats. Hive's own heartbeats have an interval of half of it."""
KINDS = ("insert", "update", "delete", "merge", "overwrite", "truncate")


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with session(tmp_path_factory.mktemp("spark-warehouse")) as opened:
        yield opened


@pytest.fixture
def cluster(spark: SparkSession, tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(spark, tmp_path, f"txn_timeout={TIMEOUT}", *COMPACTED)
    spark.conf.set("spark.hadoop.hive.metastore.uris", made.uri)
    register(spark)
    enable()
    yield made
    disable()
    made.stop()


@pytest.fixture
def engine(cluster: Cluster, tmp_path: Path) -> Iterator[Hive]:
    with hive(cluster.uri, tmp_path / "hive", cluster.home / "warehouse", {"hive.txn.timeout": TIMEOUT}) as started:
        yield started


@pytest.mark.parametrize("seed", range(int(os.environ.get("METASTORE_TEST_HISTORIES", "1"))))
@pytest.mark.parametrize(("keys", "columns"), LAYOUTS, ids=["plain", "partitioned"])
def test_a_history_with_hive(cluster: Cluster, engine: Hive, keys: str, columns: str, seed: int) -> None:
    def by_hive(action: Action) -> None:
        close_all()  # Hive's overwrite and truncate wait for readers
        for statement in statements(action, "default.t"):
            engine.sql(statement)

    def read_by_hive() -> list[Row]:
        return sorted((int(key), int(v), k) for key, v, k in engine.sql("SELECT id, v, k FROM default.t"))

    table = CompactedTable(cluster, cluster.spark, keys, columns, f"hive{seed}{keys}", {"hive": (by_hive, KINDS)}, {"hive": read_by_hive})
    for number in range(STEPS):
        if number % 3:
            table.history.step()
        else:
            table.history.step_through("hive")
        table.compact_by_chance()
    table.end()
