"""Rights to the objects that engines store: connectors, procedures, and scheduled queries, which run as a user."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from metastore import idl
from metastore.client import Client, connect
from tests.support.servers.servers import serving

CREATE, ALTER, DROP = 1, 2, 3


def maintain(client: Client, kind: int, name: str, user: str | None) -> None:
    key = idl.ScheduledQueryKey(scheduleName=name, clusterNamespace="hive")
    query = idl.ScheduledQuery(scheduleKey=key, enabled=True, schedule="0 0 0 * * ?", user=user, query="select 1")
    client.scheduled_query_maintenance(idl.ScheduledQueryMaintenanceRequest(type=kind, scheduledQuery=query))


def user_of(client: Client, name: str) -> str | None:
    return client.get_scheduled_query(idl.ScheduledQueryKey(scheduleName=name, clusterNamespace="hive")).user


Clients = tuple[Client, Client, Client]
REFUSED = {"match": "Permission denied"}


@pytest.fixture
def clients(tmp_path: Path) -> Iterator[Clients]:
    """An admin, alice and bob."""
    settings = ("--set", "authorization=grants", "--set", "admin_users=root", "--workers", "1", "--warehouse", str(tmp_path / "warehouse"))
    with ExitStack() as stack:
        server = stack.enter_context(serving(*settings, home=tmp_path))
        root, alice, bob = (stack.enter_context(connect(server.uri)) for _ in range(3))
        for name, client in (("root", root), ("alice", alice), ("bob", bob)):
            client.set_ugi(name, [])
        yield root, alice, bob


def test_connectors_are_for_the_admin(clients: Clients) -> None:
    root, alice, _ = clients
    connector = idl.DataConnector(name="pg", type="postgres", url="jdbc:x", parameters={"hive.sql.dbcp.password": "secret"})
    for method, request in (
        ("create_dataconnector_req", idl.CreateDataConnectorRequest(connector=connector)),
        ("get_dataconnector_req", idl.GetDataConnectorRequest(connectorName="pg")),
        ("alter_dataconnector_req", idl.AlterDataConnectorRequest(connectorName="pg", newConnector=connector)),
    ):
        with pytest.raises(idl.MetaException, **REFUSED):
            alice.call(method, request)
        root.call(method, request)
    assert (root.get_dataconnectors(), alice.get_dataconnectors()) == (["pg"], [])
    drop = idl.DropDataConnectorRequest(connectorName="pg", checkReferences=True)
    with pytest.raises(idl.MetaException, **REFUSED):
        alice.drop_dataconnector_req(drop)
    database = idl.Database(name="far", type=idl.DatabaseType.REMOTE, connector_name="pg", parameters={})
    root.create_database(database)
    with pytest.raises(idl.InvalidOperationException, match="the databases far name it"):
        root.drop_dataconnector_req(drop)
    for method in ("get_table", "get_tables"):
        with pytest.raises(idl.MetaException, match=r"hive\.far is of type REMOTE"):
            root.call(method, "far", "t")
    assert root.get_all_tables("far") == []
    root.drop_database("far", True, False)
    root.drop_dataconnector_req(drop)


def connector_privilege(name: str, privilege: str, user: str, *, option: bool = False) -> idl.PrivilegeBag:
    ref = idl.HiveObjectRef(objectType=idl.HiveObjectType.DATACONNECTOR, objectName=name)
    info = idl.PrivilegeGrantInfo(privilege=privilege, grantOption=option)
    granted = idl.HiveObjectPrivilege(hiveObject=ref, principalName=user, principalType=1, grantInfo=info, authorizer="SQL")
    return idl.PrivilegeBag([granted])


def test_a_granted_connector_may_be_read(clients: Clients) -> None:
    root, alice, bob = clients
    for name in ("pg", "other"):
        connector = idl.DataConnector(name=name, type="postgres", url="jdbc:x", ownerName="root", parameters={})
        root.create_dataconnector_req(idl.CreateDataConnectorRequest(connector=connector))
    read = idl.GetDataConnectorRequest(connectorName="PG")
    root.grant_privileges(connector_privilege("pg", "SELECT", "alice", option=True))
    assert alice.get_dataconnectors() == ["pg"]
    assert alice.get_dataconnector_req(read).url == "jdbc:x"
    connector = idl.DataConnector(name="pg", type="postgres", url="jdbc:y", ownerName="root", parameters={})
    change = idl.AlterDataConnectorRequest(connectorName="pg", newConnector=connector)
    for refused in (
        lambda: alice.alter_dataconnector_req(change),
        lambda: bob.get_dataconnector_req(read),
        lambda: alice.grant_privileges(connector_privilege("pg", "ALL", "bob")),
        lambda: alice.grant_privileges(connector_privilege("other", "SELECT", "bob")),
        lambda: bob.revoke_privileges(connector_privilege("pg", "SELECT", "alice")),
    ):
        with pytest.raises(idl.MetaException, **REFUSED):
            refused()
    alice.grant_privileges(connector_privilege("pg", "SELECT", "bob"))
    assert bob.get_dataconnectors() == ["pg"]
    root.grant_privileges(connector_privilege("pg", "ALL", "bob"))
    bob.alter_dataconnector_req(change)
    root.revoke_privileges(connector_privilege("pg", "SELECT", "alice"))
    assert alice.get_dataconnectors() == []
    bob.drop_dataconnector_req(idl.DropDataConnectorRequest(connectorName="pg"))
    root.create_dataconnector_req(idl.CreateDataConnectorRequest(connector=connector))
    assert bob.get_dataconnectors() == []


def test_a_connector_is_its_owners(clients: Clients) -> None:
    root, alice, bob = clients
    connector = idl.DataConnector(name="pg", type="postgres", url="jdbc:x", ownerName="alice", ownerType=1, parameters={})
    root.create_dataconnector_req(idl.CreateDataConnectorRequest(connector=connector))
    alice.grant_privileges(connector_privilege("pg", "SELECT", "bob"))
    assert (alice.get_dataconnectors(), bob.get_dataconnectors()) == (["pg"], ["pg"])
    connector.ownerName = "bob"
    alice.alter_dataconnector_req(idl.AlterDataConnectorRequest(connectorName="pg", newConnector=connector))
    assert (alice.get_dataconnectors(), bob.get_dataconnectors()) == ([], ["pg"])
    bob.drop_dataconnector_req(idl.DropDataConnectorRequest(connectorName="pg"))


@pytest.mark.parametrize("kind", ["procedure", "package"])
def test_the_owner_of_a_database_keeps_its_procedures(clients: Clients, kind: str) -> None:
    root, alice, bob = clients
    for name, owner in (("hers", "alice"), ("his", "bob")):
        root.create_database(idl.Database(name=name, ownerName=owner, ownerType=idl.PrincipalType.USER, parameters={}))

    def put(client: Client, database: str, name: str) -> None:
        if kind == "procedure":
            client.create_stored_procedure(idl.StoredProcedure(catName="hive", dbName=database, name=name, source="text"))
        else:
            client.add_package(idl.AddPackageRequest(catName="hive", dbName=database, packageName=name, header="text", body="text"))

    def names(client: Client, database: str | None) -> list[str]:
        procedures = (idl.ListStoredProcedureRequest, "get_all_stored_procedures")
        struct, method = procedures if kind == "procedure" else (idl.ListPackageRequest, "get_all_packages")
        found: list[str] = client.call(method, struct(catName="hive", dbName=database))
        return found

    put(alice, "hers", "A")
    put(bob, "his", "B")
    with pytest.raises((idl.MetaException, idl.NoSuchObjectException)):
        put(bob, "hers", "A")
    with pytest.raises(idl.MetaException, **REFUSED):
        put(bob, "default", "C")
    assert (names(root, None), names(alice, None), names(bob, None)) == (["A", "B"], ["A"], ["B"])
    assert (names(alice, "his"), names(bob, "his")) == ([], ["B"])


def test_everybody_keeps_queries_that_run_as_themselves(clients: Clients) -> None:
    root, alice, bob = clients
    maintain(alice, CREATE, "hers", "alice")
    maintain(alice, ALTER, "hers", "alice")
    assert user_of(alice, "hers") == user_of(root, "hers") == "alice"
    maintain(root, CREATE, "as_bob", "bob")
    assert user_of(bob, "as_bob") == "bob"
    for client, kind, name, user in (
        (alice, CREATE, "new", "bob"), (alice, CREATE, "new", None), (alice, ALTER, "hers", "bob"), (alice, ALTER, "as_bob", "alice"),
        (bob, ALTER, "hers", "bob"), (bob, DROP, "hers", "bob"), (bob, DROP, "no", "bob"), (bob, ALTER, "no", "bob"),
    ):  # fmt: skip
        with pytest.raises(idl.MetaException, **REFUSED):
            maintain(client, kind, name, user)
    for name in ("hers", "no"):
        with pytest.raises(idl.MetaException, **REFUSED):
            user_of(bob, name)
    with pytest.raises(idl.MetaException, **REFUSED):
        alice.scheduled_query_poll(idl.ScheduledQueryPollRequest(clusterNamespace="hive"))
    assert user_of(root, "hers") == "alice"
    maintain(alice, DROP, "hers", None)
    with pytest.raises(idl.NoSuchObjectException):
        user_of(root, "hers")
