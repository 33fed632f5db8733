"""Trino's users on a metastore with authorization: Trino's own GRANT decides which tables they see, read and change."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from trino.exceptions import TrinoQueryError

from tests.support.databases import databases
from tests.support.engines.trino_server import USER, Trino, trino_on
from tests.support.servers.servers import serving

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module", params=databases.KINDS)
def trino(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trino]:
    """Trino, which logs in to the metastore as its own user. The server has one worker process, which sees a grant at once."""
    folder = tmp_path_factory.mktemp("trino")
    with contextmanager(databases.fresh)(request.param, folder) as url:
        settings = ("--set", f"admin_users={USER}", "--set", "authorization=grants")
        options = ("--db", url, "--warehouse", f"file:{folder}/warehouse", "--workers", "1", *settings)
        impersonation = "hive.metastore.thrift.impersonation.enabled=true"
        with serving(*options, home=folder / "server") as server, trino_on(server, folder / "warehouse", folder, impersonation) as found:
            yield found


def refused(trino: Trino, statement: str, user: str) -> str:
    with pytest.raises(TrinoQueryError) as raised:
        trino.run(statement, user=user)
    return str(raised.value.message)


def test_users_get_their_granted_objects(trino: Trino) -> None:
    trino.run("CREATE SCHEMA shop")
    for name in ("orders", "prices"):
        trino.run(f"CREATE TABLE shop.{name} (a int)")
        trino.run(f"INSERT INTO shop.{name} VALUES 7")
    assert trino.run("SHOW SCHEMAS LIKE 'shop'", user="bob") == []
    assert "does not exist" in refused(trino, "SELECT * FROM shop.orders", "bob")
    assert "Permission denied: Principal [name=bob, type=USER]" in refused(trino, "CREATE SCHEMA bobs", "bob")

    trino.run("GRANT SELECT ON shop.orders TO USER bob", catalog="secured", role="admin")
    assert trino.run("SHOW TABLES FROM shop", user="bob") == [("orders",)]
    assert trino.run("SELECT * FROM shop.orders", user="bob") == [(7,)]
    assert "does not exist" in refused(trino, "SELECT * FROM shop.prices", "bob")
    assert refused(trino, "ALTER TABLE shop.orders ADD COLUMN b int", "bob") == (
        "Permission denied: Principal [name=bob, type=USER] does not have following privileges for operation ALTERTABLE_PROPERTIES "
        "[[OBJECT OWNERSHIP] on Object [type=TABLE_OR_VIEW, name=shop.orders]]"
    )
    assert "drop table shop.orders" in refused(trino, "DROP TABLE shop.orders", "bob")  # Trino reports several drops together
    assert "Permission denied" in refused(trino, "CREATE TABLE shop.mine (a int)", "bob")

    trino.run("CREATE ROLE readers IN secured", catalog="secured", role="admin")
    trino.run("GRANT readers TO USER bob IN secured", catalog="secured", role="admin")
    trino.run("GRANT SELECT ON shop.prices TO ROLE readers", catalog="secured", role="admin")
    assert trino.run("SHOW TABLES FROM shop", user="bob") == [("orders",), ("prices",)]
    trino.run("REVOKE SELECT ON shop.orders FROM USER bob", catalog="secured", role="admin")
    assert trino.run("SHOW TABLES FROM shop", user="bob") == [("prices",)]
    assert trino.run("SELECT * FROM shop.prices", user="bob") == [(7,)]
