"""Reads of the catalog from a replica: never older than promised, or than the client's own changes. Without it, from the primary."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from metastore.app import build
from metastore.client import connect
from metastore.config import Config
from metastore.errors import MetaError
from metastore.idl import Database
from tests.support.databases.replicas import Pair, pair
from tests.support.servers.servers import Server, serving
from tests.support.servers.waiting import until

STALENESS = 6


@pytest.fixture
def servers() -> Iterator[Pair]:
    with pair() as started:
        started.run("primary", "ALTER SYSTEM SET synchronous_standby_names = ''", "SELECT pg_reload_conf()")
        yield started


@pytest.fixture
def server(servers: Pair, tmp_path: Path) -> Iterator[Server]:
    with ExitStack() as stack:
        options = {
            "db": servers.address("primary"), "db_read": servers.address("standby"), "db_read_staleness": str(STALENESS),
            "warehouse": str(tmp_path / "warehouse"), "workers": "1",
        }  # fmt: skip
        settings = [part for name, value in options.items() for part in ("--set", f"{name}={value}")]
        started = stack.enter_context(serving(*settings, home=tmp_path))
        until(lambda: "reads go to the replica" in started.log.read_text())
        yield started


def names(server: Server) -> list[str]:
    """Return the databases that a client without changes of its own sees."""
    with connect(server.uri) as client:
        return client.get_all_databases()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_reads_are_as_old_as_is_promised_at_the_most(server: Server, servers: Pair) -> None:
    with connect(server.uri) as writer:
        writer.create_database(Database(name="first"))
        assert "first" in writer.get_all_databases()
        until(lambda: "first" in names(server))
        servers.run("standby", "SELECT pg_wal_replay_pause()")
        writer.create_database(Database(name="second"))
        assert "second" in writer.get_all_databases()  # a client's own changes are seen at once
        assert "second" not in names(server)  # from the replica, which replays nothing
        until(lambda: "second" in names(server), seconds=STALENESS + 20)
        until(lambda: "too far behind" in server.log.read_text())
        servers.run("standby", "SELECT pg_wal_replay_resume()")
        until(lambda: server.log.read_text().count("reads go to the replica") == 2)
        assert "second" in names(server)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_replica_that_is_gone_is_not_missed(server: Server, servers: Pair) -> None:
    with connect(server.uri) as reader:
        assert reader.get_all_databases() == ["default"]
        servers.kill("standby")
        began = time.monotonic()
        for _ in range(5):
            assert reader.get_all_databases() == ["default"]
        assert time.monotonic() - began < 10
        with connect(server.uri) as writer:
            writer.create_database(Database(name="later"))
        until(lambda: "later" in reader.get_all_databases())


@pytest.mark.parametrize("urls", [("sqlite:///{}/a.db", "sqlite:///{}/b.db"), ("sqlite:///{}/a.db", "postgresql://h/n")])
def test_other_databases_have_no_replicas(urls: tuple[str, str], tmp_path: Path) -> None:
    db, db_read = (url.format(tmp_path) for url in urls)
    with pytest.raises(MetaError, match="db_read needs PostgreSQL"):
        build(Config(db=db, db_read=db_read, warehouse=str(tmp_path), data_directory=str(tmp_path)))
