"""Hive's engine with its own SQL-standard authorization. This server keeps its roles and privileges: Hive's grants hold in both."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from metastore import idl
from metastore.client import Client, connect
from tests.support.databases import databases
from tests.support.engines.hive import Hive, HiveError, Rows, hive
from tests.support.servers.servers import serving

pytestmark = pytest.mark.slow

PLUGIN = "org.apache.hadoop.hive.ql.security.authorization.plugin.sqlstd.SQLStdHiveAuthorizerFactory"
AUTHENTICATOR = "org.apache.hadoop.hive.ql.security.SessionStateUserAuthenticator"
SETTINGS = {
    "hive.security.authorization.enabled": "true",
    "hive.security.authorization.manager": PLUGIN,
    "hive.security.authenticator.manager": AUTHENTICATOR,
}


class Warehouse:
    """An engine with authorization, on a server that has it too (`authorization = "grants"`), and clients of the server."""

    def __init__(self, engine: Hive, uri: str) -> None:
        self._engine = engine
        self.uri = uri

    def sql(self, statement: str, user: str = "hive") -> Rows:
        """Run a statement in the session of a user."""
        return self._engine.sql(statement, f"session@{user}")

    @contextmanager
    def client(self, user: str) -> Iterator[Client]:
        with connect(self.uri) as client:
            client.set_ugi(user, [])
            yield client


@pytest.fixture(scope="module")
def warehouse(database_kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warehouse]:
    folder = tmp_path_factory.mktemp("server")
    with contextmanager(databases.fresh)(database_kind, folder) as url:
        options = ("--db", url, "--warehouse", str(folder / "warehouse"), "--set", "authorization=grants", "--set", "admin_users=hive")
        with serving(*options, home=folder) as server, hive(server.uri, folder / "hive", folder / "warehouse", SETTINGS) as engine:
            yield Warehouse(engine, server.uri)


def granted(rows: Rows) -> list[tuple[str, ...]]:
    """Return (principal, type, privilege, grant option) of SHOW GRANT, and check that each has the time of its grant."""
    assert all(int(row[8]) > 0 for row in rows), rows
    return [(row[4], row[5], row[6], row[7]) for row in rows]


def test_grants_of_hive_hold_in_both(warehouse: Warehouse) -> None:
    sql = warehouse.sql
    assert sql("SHOW CURRENT ROLES") == [("public",)]
    with pytest.raises(HiveError, match="User has to belong to ADMIN role"):
        sql("CREATE ROLE readers")
    sql("SET ROLE ADMIN")
    for statement in (
        "CREATE ROLE readers", "CREATE ROLE staff", "CREATE DATABASE shop", "CREATE TABLE shop.orders (id int, name string) STORED AS ORC",
        "GRANT SELECT ON TABLE shop.orders TO ROLE readers", "GRANT readers TO ROLE staff WITH ADMIN OPTION", "GRANT staff TO USER bob",
        "GRANT SELECT, INSERT ON TABLE shop.orders TO USER carl WITH GRANT OPTION",
    ):  # fmt: skip
        sql(statement)
    assert sql("SHOW ROLES") == [("admin",), ("public",), ("readers",), ("staff",)]
    own = [("hive", "USER", each, "true") for each in ("DELETE", "INSERT", "SELECT", "UPDATE")]
    both = [("carl", "USER", each, "true") for each in ("INSERT", "SELECT")]
    assert granted(sql("SHOW GRANT ON TABLE shop.orders")) == [*both, *own, ("readers", "ROLE", "SELECT", "false")]
    assert [row[:2] for row in sql("SHOW ROLE GRANT USER bob")] == [("public", "false"), ("staff", "false")]
    assert [row[:3] for row in sql("SHOW PRINCIPALS readers")] == [("staff", "ROLE", "true")]
    assert sql("SELECT * FROM shop.orders", "bob") == []
    with pytest.raises(HiveError, match=r"Principal \[name=bob.*\[INSERT\]"):
        sql("INSERT INTO shop.orders VALUES (1, 'a')", "bob")
    sql("INSERT INTO shop.orders VALUES (1, 'a')", "carl")
    sql("GRANT SELECT ON TABLE shop.orders TO USER dave", "carl")
    assert sql("SELECT * FROM shop.orders", "dave") == [("1", "a")]
    with pytest.raises(HiveError, match="already granted"):
        sql("GRANT SELECT ON TABLE shop.orders TO USER carl")
    for user, tables in (("bob", ["orders"]), ("carl", ["orders"]), ("dave", ["orders"]), ("eve", [])):
        with warehouse.client(user) as client:
            assert client.get_all_tables("shop") == tables
    with warehouse.client("bob") as client, pytest.raises(idl.MetaException, match="OBJECT OWNERSHIP"):
        client.drop_table("shop", "orders", True)


def test_grants_that_hive_revokes_hold_no_longer(warehouse: Warehouse) -> None:
    sql = warehouse.sql
    sql("SET ROLE ADMIN")
    for statement in (
        "CREATE ROLE crew", "CREATE DATABASE yard", "CREATE TABLE yard.t (id int)", "GRANT crew TO USER ben WITH ADMIN OPTION",
        "GRANT SELECT ON TABLE yard.t TO ROLE crew WITH GRANT OPTION",
    ):  # fmt: skip
        sql(statement)
    assert sql("SELECT * FROM yard.t", "ben") == []
    sql("REVOKE ADMIN OPTION FOR crew FROM USER ben")
    sql("REVOKE GRANT OPTION FOR SELECT ON TABLE yard.t FROM ROLE crew")
    assert granted(sql("SHOW GRANT ROLE crew ON TABLE yard.t")) == [("crew", "ROLE", "SELECT", "false")]
    assert sql("SHOW PRINCIPALS crew")[0][:3] == ("ben", "USER", "false")
    sql("REVOKE SELECT ON TABLE yard.t FROM ROLE crew")
    with pytest.raises(HiveError, match=r"Principal \[name=ben.*\[SELECT\]"):
        sql("SELECT * FROM yard.t", "ben")
    with warehouse.client("ben") as client:
        assert client.get_all_tables("yard") == []
    sql("REVOKE crew FROM USER ben")
    assert [row[0] for row in sql("SHOW ROLE GRANT USER ben") if row[0] == "crew"] == []
    sql("DROP ROLE crew")
    sql("DROP ROLE crew")
    for role in ("crew", "public"):
        assert sql(f"SHOW PRINCIPALS {role}") == []


def test_hive_renames_a_table_with_its_privileges(warehouse: Warehouse) -> None:
    """After a rename Hive finds a table's privileges under its new name."""
    sql = warehouse.sql
    sql("SET ROLE ADMIN")
    sql("CREATE DATABASE attic")
    sql("CREATE TABLE attic.t (id int)")
    sql("GRANT SELECT ON TABLE attic.t TO USER bob")
    sql("ALTER TABLE attic.t RENAME TO attic.u")
    assert ("bob", "USER", "SELECT", "false") in granted(sql("SHOW GRANT ON TABLE attic.u"))
    assert sql("SELECT * FROM attic.u", "bob") == []
    sql("SET ROLE ALL")
    assert sql("SHOW CURRENT ROLES") == [("public",)]
