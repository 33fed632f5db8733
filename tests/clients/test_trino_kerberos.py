"""Trino logs in by Kerberos, and acts for its users by delegation tokens that it fetches for them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from trino.exceptions import TrinoQueryError

pytest.importorskip("gssapi", reason="built with libkrb5-dev: pip install '.[kerberos]'")

from tests.support.engines.trino_server import Trino, trino_on
from tests.support.logins.kdc import REALM, Kdc
from tests.support.logins.secured import Secured
from tests.support.servers.servers import Server

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
TRINO = f"trino@{REALM}"


@pytest.fixture(scope="module", params=["authentication", "privacy"])
def place(request: pytest.FixtureRequest, running_kdc: Kdc, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Trino, Server]]:
    folder = tmp_path_factory.mktemp("trino")
    secured = Secured(running_kdc, folder / "home")
    proxies = {"hadoop.proxyuser.trino.hosts": "127.0.0.1", "hadoop.proxyuser.trino.users": "ann,bob"}
    with (
        secured.serve(warehouse=f"file:{folder}/warehouse", **{"hadoop.rpc.protection": request.param}, **proxies) as server,
        trino_on(
            replace(server, uri=secured.uri),
            folder / "warehouse",
            folder,
            "hive.metastore.authentication.type=KERBEROS",
            f"hive.metastore.service.principal=hive/_HOST@{REALM}",
            f"hive.metastore.client.principal={TRINO}",
            f"hive.metastore.client.keytab={running_kdc.keytab(TRINO)}",
            "hive.metastore.thrift.impersonation.enabled=true",
            jvm=[f"-Djava.security.krb5.conf={running_kdc.configuration}"],
        ) as trino,
    ):
        yield trino, server


def test_trino_acts_for_users_that_it_may_act_for(place: tuple[Trino, Server]) -> None:
    trino, server = place
    trino.run("CREATE SCHEMA of_ann", user="ann")
    trino.run("CREATE TABLE of_ann.t AS SELECT 1 AS a", user="ann")
    assert trino.run("SELECT a FROM of_ann.t", user="bob") == [(1,)]
    with pytest.raises(TrinoQueryError, match="trino gets no delegation token of carl: it may not act for carl"):
        trino.run("CREATE SCHEMA of_carl", user="carl")
    lines = server.logged(method="create_table")
    assert all((line["user"], line["real_user"]) == ("ann", "trino") and line["mechanism"] == "token" for line in lines)
