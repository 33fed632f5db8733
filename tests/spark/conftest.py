"""A real server, a real Spark session on it, and a way to make transactional tables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from metastore.acid.folders.table import CAPABILITIES
from metastore.client import Client, connect
from metastore.idl import CreateTableRequest, FieldSchema, NoSuchObjectException
from metastore.spark import AcidTable
from tests.support.acid.acid_tables import TableMaker, definition
from tests.support.engines.spark_session import session
from tests.support.servers.cluster import Cluster
from tests.support.servers.servers import Server, serving

HIVE_SUPPORT = {"spark.sql.catalogImplementation": "hive"}
"""The setting of `enableHiveSupport`."""


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server on SQLite whose cleaner runs every second. Only the tests queue compactions."""
    home = tmp_path_factory.mktemp("spark")
    settings = (
        "hive.compactor.initiator.on=false",
        "hive.compactor.cleaner.run.interval=1s",
        "hive.txn.timeout=20s",
        "metastore.acid.housekeeper.interval=1s",
    )
    options = [part for setting in settings for part in ("--set", setting)]
    with serving("--db", f"sqlite:///{home}/m.db", "--warehouse", str(home / "warehouse"), *options, home=home) as started:
        yield started


@pytest.fixture(scope="session")
def spark(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with session(tmp_path_factory.mktemp("spark-warehouse"), HIVE_SUPPORT | {"spark.hadoop.hive.metastore.uris": server.uri}) as opened:
        yield opened


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    with connect(server.uri) as connected:
        yield connected


@pytest.fixture
def make_table(spark: SparkSession, client: Client, request: pytest.FixtureRequest) -> Iterator[TableMaker]:
    """Make a transactional table named for the test; further calls need a `suffix`."""
    made: list[tuple[str, AcidTable]] = []

    def make(
        columns: str,
        keys: str = "",
        *,
        suffix: str = "",
        insert_only: bool = False,
        file_format: str = "orc",
        buckets: int = 0,
        bucketed_by: tuple[str, ...] = (),
        location: Path | None = None,
        parameters: dict[str, str] | None = None,
        partition_key: tuple[str, str] | None = None,
    ) -> AcidTable:
        name = "".join(letter if letter.isalnum() else "_" for letter in request.node.name).lower() + suffix
        table = definition(
            name,
            columns,
            keys,
            insert_only=insert_only,
            file_format=file_format,
            buckets=buckets,
            bucketed_by=bucketed_by,
            location=location,
            parameters=parameters,
        )
        if partition_key is not None:
            table.partitionKeys = [FieldSchema(*partition_key)]
        client.create_table_req(CreateTableRequest(table=table, processorCapabilities=CAPABILITIES, processorIdentifier="tests"))
        found = AcidTable.forName(spark, f"default.{name}")
        made.append((name, found))
        return found

    yield make
    for name, table in made:
        table.close()
        with suppress(NoSuchObjectException):  # for a table that the test has dropped
            client.drop_table("default", name, True)


@pytest.fixture
def cluster(spark: SparkSession, tmp_path: Path) -> Iterator[Cluster]:
    """A server that can be killed, and one table on it."""
    made = Cluster(spark, tmp_path)
    yield made
    made.stop()
