"""A stream and its heartbeats log in with the environment's variables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("gssapi", reason="built with libkrb5-dev: pip install '.[kerberos]'")

from metastore import idl
from metastore.client import Client, connect
from metastore.client_login import LoginError
from metastore.streaming import StreamingConnection
from tests.streaming.conftest import CAPABILITIES, TableMaker, folder
from tests.streaming.reading import rows
from tests.support.acid.acid_tables import definition, stored_table
from tests.support.logins.kdc import Kdc
from tests.support.logins.secured import Secured, grant
from tests.support.servers.servers import Server
from tests.support.servers.waiting import until


@pytest.fixture
def server(kdc: Kdc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server that gives up silent transactions soon. The environment has a token of the server."""
    secured = Secured(kdc, tmp_path / "home")
    more = {"hive.txn.timeout": "3s", "metastore.acid.housekeeper.interval": "1s", "warehouse": f"{tmp_path}/warehouse", "log_calls": "all"}
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
        until(lambda: server.log.read_text().count('"method":"heartbeat') >= beats + 4, missing="four heartbeats")
        batch.commit()
    assert rows(client, table) == [{"id": 1}]
    monkeypatch.setenv("METASTORE_CLIENT_TOKEN", "AAAA")
    with pytest.raises(LoginError, match="not a delegation token"):
        StreamingConnection(server.uri, f"default.{table.tableName}")


PRIVILEGES = {"ingrid": "INSERT", "sam": "SELECT", "ute": "UPDATE"}
TABLE = "ruled"
AsUser = Callable[[str], None]


@pytest.fixture(params=["grants", "file"])
def ruled(request: pytest.FixtureRequest, kdc: Kdc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Secured, AsUser]]:
    """A server where each user of `PRIVILEGES` gets one privilege on a table, and a function to become one of these users."""
    secured = Secured(kdc, tmp_path / "home")
    monkeypatch.setenv("METASTORE_CLIENT_LOGIN", "token")
    with secured.serve(**secured.rights(request.param, TABLE, PRIVILEGES), warehouse=f"{tmp_path}/warehouse"):
        yield secured, lambda user: monkeypatch.setenv("METASTORE_CLIENT_TOKEN", secured.token_of(user))


def made(admin: Client, keys: str) -> idl.Table:
    """Make the table and grant the privileges on it. A file of rules may contain them already."""
    table = definition(TABLE, "id int", keys)
    admin.create_table_req(idl.CreateTableRequest(table=table, processorCapabilities=CAPABILITIES, processorIdentifier="tests"))
    grant(admin, TABLE, PRIVILEGES)
    found: idl.Table = stored_table(admin, TABLE)
    return found


def refused(user: str, privilege: str) -> str:
    return rf"name={user}, type=USER\].*\[{privilege}\] on Object \[type=TABLE_OR_VIEW, name=default.{TABLE}\]"


def test_a_user_who_may_insert_streams_and_others_leave_nothing_behind(ruled: tuple[Secured, AsUser]) -> None:
    secured, as_user = ruled
    with secured.kerberos() as admin:
        table = made(admin, "k string")
        as_user("sam")
        with StreamingConnection(secured.uri, TABLE) as stream, pytest.raises(Exception, match=refused("sam", "INSERT")):
            stream.batch(2)
        as_user("ute")
        with (
            StreamingConnection(secured.uri, TABLE) as stream,
            stream.batch(2) as batch,
            pytest.raises(Exception, match=refused("ute", "INSERT")),
        ):
            batch.begin_next()
        as_user("nobody")
        with pytest.raises(idl.NoSuchObjectException, match=f"{TABLE} table not found"):
            StreamingConnection(secured.uri, TABLE)
        assert all(each.state == idl.TxnState.ABORTED for each in admin.get_open_txns_info().open_txns)
        assert admin.show_locks(idl.ShowLocksRequest()).locks == []
        assert list(folder(table).rglob("*")) == []
        as_user("ingrid")
        with StreamingConnection(secured.uri, TABLE) as stream, stream.batch(2) as batch, batch.transaction():
            batch.write([{"id": 1, "k": "new"}])
        assert rows(admin, table, "k=new") == [{"id": 1}]
        assert admin.get_partition_names("default", TABLE, -1) == ["k=new"]


def test_a_writer_of_rows_may_declare_counts_outdated(ruled: tuple[Secured, AsUser]) -> None:
    """A user with any privilege to write may mark statistics as outdated. The pipeline does so before each commit."""
    secured, as_user = ruled
    with secured.kerberos() as admin:
        made(admin, "k string")
        admin.append_partition("default", TABLE, ["p"])
    for user, privilege in PRIVILEGES.items():
        as_user(user)
        with connect(secured.uri) as client:
            part = client.get_partition("default", TABLE, ["p"])
            part.parameters["numRows"] = "7"
            changed = stored_table(client, TABLE)
            changed.parameters["_meta.stream.q"] = "-1"
            if privilege == "SELECT":
                with pytest.raises(idl.MetaException, match=refused(user, "INSERT")):
                    client.alter_partitions("default", TABLE, [part])
                with pytest.raises(idl.MetaException, match=refused(user, "INSERT")):
                    client.alter_table("default", TABLE, changed)
            else:
                client.alter_partitions("default", TABLE, [part])
                client.alter_table("default", TABLE, changed)
            changed.parameters["other"] = "x"
            with pytest.raises(idl.MetaException, match=refused(user, "OBJECT OWNERSHIP")):
                client.alter_table("default", TABLE, changed)
