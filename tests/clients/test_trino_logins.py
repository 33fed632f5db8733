"""Trino logs in by its certificate, and acts for its users where the settings allow it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from trino.exceptions import TrinoQueryError

from metastore.client import connect
from metastore.wire.messages.protocol import Unreadable
from tests.support.engines.trino_server import Trino, trino_on
from tests.support.logins.certificates import Authority
from tests.support.servers.servers import Server, serving

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Trino, Server, Authority]]:
    folder = tmp_path_factory.mktemp("trino-logins")
    authority = Authority(folder)
    options = {
        "authentication": "certificate",
        "tls_certificate": authority.issue("server"),
        "tls_client_ca": authority.file,
        "proxy_users": '{"trino": {"hosts": "127.0.0.0/8", "users": "ann,bob"}}',
    }
    arguments = [part for name, text in options.items() for part in ("--set", f"{name}={text}")]
    with (
        serving("--workers", "2", "--warehouse", f"file:{folder}/warehouse", *arguments, home=folder / "server") as server,
        trino_on(
            server,
            folder / "warehouse",
            folder,
            "hive.metastore.thrift.client.ssl.enabled=true",
            f"hive.metastore.thrift.client.ssl.key={authority.issue('trino')}",
            f"hive.metastore.thrift.client.ssl.trust-certificate={authority.file}",
            "hive.metastore.thrift.impersonation.enabled=true",
        ) as trino,
    ):
        yield trino, server, authority


def test_trino_acts_for_users_that_it_may_act_for(place: tuple[Trino, Server, Authority]) -> None:
    trino, server, _ = place
    trino.run("CREATE SCHEMA of_ann", user="ann")
    trino.run("CREATE TABLE of_ann.t AS SELECT 1 AS a", user="ann")
    assert trino.run("SELECT a FROM of_ann.t", user="bob") == [(1,)]
    with pytest.raises(TrinoQueryError, match="logged in as trino by certificate"):
        trino.run("CREATE SCHEMA of_carl", user="carl")
    lines = server.logged(method="create_table")
    assert all((line["user"], line["real_user"]) == ("ann", "trino") for line in lines)


def test_others_do_not_come_in(place: tuple[Trino, Server, Authority]) -> None:
    _, server, _ = place
    with connect(server.uri, timeout=20) as client, pytest.raises((OSError, Unreadable)):
        client.get_all_databases()
