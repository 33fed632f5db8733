"""A stream, and the heartbeats that go with it, log in as the environment says."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("gssapi", reason="built with libkrb5-dev: pip install metastore[kerberos]")

from metastore.client import Client
from metastore.client_login import LoginError
from metastore.streaming import StreamingConnection
from tests.streaming.conftest import TableMaker
from tests.streaming.reading import rows
from tests.support.kdc import Kdc
from tests.support.secured import Secured
from tests.support.servers import Server


@pytest.fixture
def server(kdc: Kdc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server that gives up silent transactions soon, with a token of it in the environment."""
    secured = Secured(kdc, tmp_path / "home")
    more = {"hive.txn.timeout": "3s", "metastore.acid.housekeeper.interval": "1s", "warehouse": f"{tmp_path}/warehouse"}
    with secured.serve(**more) as started:
        with secured.kerberos() as client:
            monkeypatch.setenv("METASTORE_CLIENT_TOKEN", client.get_delegation_token("alice", "alice"))
        monkeypatch.setenv("METASTORE_CLIENT_LOGIN", "token")
        yield started


def test_a_stream_outlives_the_time_out_by_its_heartbeats(
    server: Server, client: Client, make_table: TableMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make_table("id int")
    with StreamingConnection(server.uri, f"default.{table.tableName}") as stream, stream.batch(2) as batch:
        batch.begin_next()
        batch.write([{"id": 1}])
        beats = server.log.read_text().count('"method":"heartbeat')
        while server.log.read_text().count('"method":"heartbeat') < beats + 4:
            time.sleep(0.1)
        batch.commit()
    assert rows(client, table) == [{"id": 1}]
    monkeypatch.setenv("METASTORE_CLIENT_TOKEN", "AAAA")
    with pytest.raises(LoginError, match="no delegation token"):
        StreamingConnection(server.uri, f"default.{table.tableName}")
