"""Processes of the server compact tables that Spark writes, reads and changes. Spark's own worker runs the entries that they put back."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from metastore.acid.folders.table import CAPABILITIES
from metastore.client import Client, connect
from metastore.idl import CreateTableRequest, ShowCompactRequest
from metastore.rules.transactions.compactions import SERVERS_OWN
from metastore.spark import AcidTable
from metastore.spark.compaction.compactor import Compactor
from tests.spark.compaction.test_compacting import EVERYTHING, VALUES, root, rows
from tests.support.acid.acid_tables import definition
from tests.support.servers.servers import Server, serving

COMPACTED = ("ready for cleaning", "succeeded")
"""States of an entry whose compaction has committed. In the second one the cleaner has already deleted the replaced files."""


@pytest.fixture(scope="module")
def compacting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that compacts on request only, in a process of its own."""
    home = tmp_path_factory.mktemp("compacting")
    settings = ("compactor_initiator=false", "compactor_cleaner_interval=1s", "compactor_worker_threads=1")
    options = [part for setting in settings for part in ("--set", setting)]
    with serving("--db", f"sqlite:///{home}/m.db", "--warehouse", str(home / "warehouse"), *options, home=home) as started:
        yield started


@pytest.fixture
def client(compacting: Server) -> Iterator[Client]:
    with connect(compacting.uri) as connected:
        yield connected


def make(spark: SparkSession, server: Server, client: Client, name: str, columns: str, keys: str = "", **options: Any) -> AcidTable:
    table = definition(name, columns, keys, **options)
    client.create_table_req(CreateTableRequest(table=table, processorCapabilities=CAPABILITIES, processorIdentifier="tests"))
    return AcidTable.forName(spark, f"default.{name}", server.uri)


def compact(client: Client, table: AcidTable, kind: str, partition: str | None = None) -> Any:
    """Request a compaction; return its entry once a process has finished it or put it back."""
    table.close()
    table.compact(kind, partition)
    end = time.monotonic() + 120
    while True:
        entry = max(client.show_compact(ShowCompactRequest()).compacts, key=lambda each: each.id)
        if entry.state not in ("initiated", "working") or (entry.state == "initiated" and entry.workerVersion):
            return entry
        assert time.monotonic() < end, entry
        time.sleep(0.1)


@pytest.mark.slow
def test_all_types_stay_the_same(spark: SparkSession, compacting: Server, client: Client) -> None:
    table = make(spark, compacting, client, "everything", EVERYTHING, buckets=2, bucketed_by=("id",))
    for first, last in ((0, 400), (400, 700)):
        table.insert(spark.range(first, last, 1, 2).selectExpr(*VALUES))
    assert table.update("id % 10 = 3", {"h": "'changed'"}) == 70
    assert table.delete("id % 10 = 4") == 70
    before = rows(table)
    assert len(before) == 630
    entry = compact(client, table, "minor")
    assert (entry.state in COMPACTED, entry.workerVersion) == (True, SERVERS_OWN), entry
    assert rows(table) == before
    assert table.update("id % 10 = 5", {"h": "null"}) == 70
    before = rows(table)
    assert compact(client, table, "major").workerVersion == SERVERS_OWN
    assert rows(table) == before
    assert table.delete("id % 10 = 6") == 70
    assert len(rows(table)) == 560


def test_a_partition_and_an_insert_only_table(spark: SparkSession, compacting: Server, client: Client) -> None:
    table = make(spark, compacting, client, "parted", "id int, at timestamp", "p string")
    plain = make(spark, compacting, client, "plain", "id int, at timestamp", insert_only=True)
    for first in (0, 10, 20):
        found = spark.range(first, first + 10).selectExpr("cast(id as int) id", "timestamp_seconds(1700000000 + id) at")
        table.insert(found.selectExpr("*", "if(id % 2 = 0, 'a/b', 'c') p"))
        plain.insert(found)
    for each, partition in ((table, "p=a%2Fb"), (plain, None)):
        before = rows(each)
        assert len(before) == 30
        entry = compact(client, each, "major", partition)
        assert (entry.state in COMPACTED, entry.workerVersion) == (True, SERVERS_OWN), entry
        assert rows(each) == before
    assert [path.name for path in sorted(root(plain).glob("base_*/*"))] == ["000000_0"]


def test_compactions_that_are_put_back_are_done_by_spark(spark: SparkSession, compacting: Server, client: Client) -> None:
    table = make(spark, compacting, client, "late", "id int, at timestamp")
    table.insert(spark.sql("select 1 id, timestamp'2024-01-01 00:00:00' at"))
    table.insert(spark.sql("select 2 id, timestamp'9999-12-31 00:00:00' at"))
    before = rows(table)
    entry = compact(client, table, "major")
    assert (entry.state, entry.workerVersion) == ("initiated", SERVERS_OWN)
    assert "times before 1678 or after 2261" in entry.errorMessage
    assert sorted(path.name[:5] for path in root(table).iterdir()) == ["delta", "delta"]
    outcome = Compactor(spark, compacting.uri).run_once()
    assert outcome is not None
    assert (outcome.entry.id, outcome.state) == (entry.id, "compacted")
    assert rows(table) == before
    assert len(list(Path(root(table)).glob("base_*"))) == 1
