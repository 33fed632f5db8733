from copy import copy
from typing import Any

import pytest

from metastore.errors import AlreadyExists, InvalidObject, MetaError, NoSuchObject
from metastore.idl import (
    DataConnector,
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    PrincipalPrivilegeSet,
    PrincipalType,
    PrivilegeBag,
    PrivilegeGrantInfo,
    Role,
)
from metastore.service.accounts import roles
from metastore.service.call.context import Call
from metastore.service.call.names import TableName
from metastore.service.catalog import privileges
from metastore.service.catalog.catalogs import create_startup_objects
from metastore.service.catalog.databases import drop_database
from metastore.service.catalog.tables.alter_table import alter_table
from metastore.service.catalog.tables.create_table import create_table
from metastore.service.catalog.tables.tables import drop_table, get_table
from metastore.service.engines import data_connectors
from tests.support.catalog.catalog import add_partitions, make_database, make_table

pytestmark = pytest.mark.on_one_database

USER, GROUP, ROLE = PrincipalType.USER, PrincipalType.GROUP, PrincipalType.ROLE
GLOBAL, DATABASE, TABLE = HiveObjectType.GLOBAL, HiveObjectType.DATABASE, HiveObjectType.TABLE
PARTITION, COLUMN = HiveObjectType.PARTITION, HiveObjectType.COLUMN
CONNECTOR = HiveObjectType.DATACONNECTOR


def on(kind: int, table: TableName | None = None, **fields: Any) -> HiveObjectRef:
    if table is not None:
        fields = {"catName": table.catalog, "dbName": table.database, "objectName": table.table, **fields}
    return HiveObjectRef(objectType=kind, **fields)


def privilege(ref: HiveObjectRef, names: str, principal: str = "bob", kind: int = USER, **info: Any) -> HiveObjectPrivilege:
    grant = PrivilegeGrantInfo(privilege=names, grantor="alice", grantorType=USER, **{"grantOption": False, **info})
    return HiveObjectPrivilege(hiveObject=ref, principalName=principal, principalType=kind, grantInfo=grant, authorizer="SQL")


def grant(call: Call, *each: HiveObjectPrivilege) -> None:
    privileges.grant(call, PrivilegeBag(privileges=list(each)))


def listed(call: Call, principal: str | None, kind: int | None, ref: HiveObjectRef | None) -> list[tuple[str, str, bool]]:
    return [
        (each.principalName, each.grantInfo.privilege, each.grantInfo.grantOption)
        for each in privileges.list_privileges(call, principal, kind, ref)
    ]


def role_names(call: Call, principal: str, kind: int) -> list[str]:
    return [role.roleName for role in roles.list_roles(call, principal, kind)]


def test_a_server_begins_with_admin_and_public(call: Call) -> None:
    assert roles.get_role_names(call) == ["admin", "public"]
    assert listed(call, "admin", ROLE, on(GLOBAL)) == [("admin", "All", True)]
    create_startup_objects(call.metastore)
    assert listed(call, None, None, None) == [("admin", "All", True)]


def test_roles_are_made_granted_and_dropped(call: Call) -> None:
    roles.create_role(call, Role(roleName="Analyst", ownerName="alice"))
    with pytest.raises(AlreadyExists):
        roles.create_role(call, Role(roleName="analyst"))
    roles.grant_role(call, "analyst", "bob", USER, "alice", USER, option=True)
    with pytest.raises(AlreadyExists):
        roles.grant_role(call, "analyst", "bob", USER, "alice", USER, option=False)
    assert role_names(call, "bob", USER) == ["analyst", "public"]
    assert role_names(call, "bob", GROUP) == []
    (grant_of_bob,) = roles.get_principals(call, "ANALYST")
    assert (grant_of_bob.principalName, grant_of_bob.grantOption, grant_of_bob.grantorName) == ("bob", True, "alice")
    assert [each.roleName for each in roles.get_role_grants(call, "bob", USER)] == ["analyst", "public"]
    roles.revoke_role(call, "analyst", "bob", USER, option_only=True)
    assert not roles.get_principals(call, "analyst")[0].grantOption
    for _ in range(2):  # the second call has nothing to revoke, which Java's server allows
        roles.revoke_role(call, "analyst", "bob", USER)
    with pytest.raises(NoSuchObject, match="does not have the grant option"):
        roles.revoke_role(call, "analyst", "bob", USER, option_only=True)
    assert role_names(call, "bob", USER) == ["public"]
    roles.grant_role(call, "analyst", "bob", USER, "alice", USER, option=True)
    roles.drop_role(call, "analyst")
    assert role_names(call, "bob", USER) == ["public"]
    roles.drop_role(call, "analyst")
    for gone_or_public in ("analyst", "public"):
        assert roles.get_principals(call, gone_or_public) == []


def test_admin_and_public_can_not_be_misused(call: Call) -> None:
    for name in ("admin", "public"):
        with pytest.raises(MetaError, match="can't be dropped"):
            roles.drop_role(call, name)
    with pytest.raises(MetaError, match="implicitly"):
        roles.create_role(call, Role(roleName="public"))
    with pytest.raises(MetaError, match="public"):
        roles.grant_role(call, "public", "bob", USER, "alice", USER, option=False)


def test_roles_can_not_be_granted_in_a_circle(call: Call) -> None:
    for name in ("a", "b", "c"):
        roles.create_role(call, Role(roleName=name))
    roles.grant_role(call, "a", "b", ROLE, "alice", USER, option=False)
    roles.grant_role(call, "b", "c", ROLE, "alice", USER, option=False)
    with pytest.raises(MetaError, match="no cycles"):
        roles.grant_role(call, "c", "a", ROLE, "alice", USER, option=False)
    with pytest.raises(NoSuchObject, match="nope"):
        roles.grant_role(call, "a", "nope", ROLE, "alice", USER, option=False)


def test_privileges_are_listed_by_principal_and_object(call: Call) -> None:
    table = make_table(call, "t", keys=[("p", "string")])
    add_partitions(call, table, [["1"]])
    grant(
        call,
        privilege(on(TABLE, table), "SELECT,INSERT"),
        privilege(on(TABLE, table), "SELECT", "team", GROUP, grantOption=True),
        privilege(on(DATABASE, dbName="Default"), "CREATE"),
        privilege(on(COLUMN, table, columnName="A"), "SELECT"),
        privilege(on(PARTITION, table, partValues=["1"]), "UPDATE"),
        privilege(on(COLUMN, table, columnName="a", partValues=["1"]), "UPDATE"),
    )
    assert listed(call, "bob", USER, on(TABLE, table)) == [("bob", "SELECT", False), ("bob", "INSERT", False)]
    assert listed(call, None, None, on(TABLE, table))[-1] == ("team", "SELECT", True)
    assert listed(call, "bob", USER, on(DATABASE, dbName="default")) == [("bob", "CREATE", False)]
    assert listed(call, "bob", USER, on(COLUMN, table, columnName="a")) == [("bob", "SELECT", False)]
    assert listed(call, "bob", USER, on(PARTITION, table, partValues=["1"])) == [("bob", "UPDATE", False)]
    assert len(listed(call, "bob", USER, None)) == 6
    assert len(listed(call, "bob", USER, on(TABLE))) == 2
    assert listed(call, "bob", USER, on(TABLE, table._replace(table="nope"))) == []
    found = privileges.list_privileges(call, "bob", USER, on(PARTITION, table, partValues=["1"]))[0].hiveObject
    assert (found.catName, found.dbName, found.objectName, found.partValues) == ("hive", "default", "t", ["1"])


def test_a_bag_is_granted_and_revoked_as_a_whole(call: Call) -> None:
    table = make_table(call, "t")
    grant(call, privilege(on(TABLE, table), "SELECT"))
    with pytest.raises(InvalidObject, match="already granted"):
        grant(call, privilege(on(TABLE, table), "INSERT,SELECT"))
    with pytest.raises(InvalidObject, match="No grant of DELETE"):
        privileges.revoke(call, PrivilegeBag(privileges=[privilege(on(TABLE, table), "SELECT,DELETE")]))
    assert listed(call, "bob", USER, on(TABLE, table)) == [("bob", "SELECT", False)]
    with pytest.raises(NoSuchObject, match="nope"):
        grant(call, privilege(on(TABLE, table._replace(table="nope")), "SELECT"))
    with pytest.raises(NoSuchObject, match="Role nope"):
        grant(call, privilege(on(TABLE, table), "SELECT", "nope", ROLE))
    privileges.revoke(call, PrivilegeBag(privileges=[privilege(on(TABLE, table), "select")]))
    assert listed(call, "bob", USER, on(TABLE, table)) == []


def test_the_grant_option_alone_can_be_taken(call: Call) -> None:
    table = make_table(call, "t")
    grant(call, privilege(on(TABLE, table), "SELECT", grantOption=True))
    bag = PrivilegeBag(privileges=[privilege(on(TABLE, table), "SELECT")])
    privileges.revoke(call, bag, option_only=True)
    assert listed(call, "bob", USER, on(TABLE, table)) == [("bob", "SELECT", False)]
    with pytest.raises(InvalidObject, match="grant option"):
        privileges.revoke(call, bag, option_only=True)


def test_refresh_replaces_the_grants_of_one_authorizer(call: Call) -> None:
    table = make_table(call, "t")
    other = privilege(on(TABLE, table), "SELECT", "carol")
    other.authorizer = "Ranger"
    grant(call, privilege(on(TABLE, table), "SELECT"), other)
    privileges.refresh(call, on(TABLE, table), "SQL", PrivilegeBag(privileges=[privilege(on(TABLE, table), "DELETE")]))
    assert listed(call, None, None, on(TABLE, table)) == [("carol", "SELECT", False), ("bob", "DELETE", False)]


def test_privileges_follow_a_renamed_table_and_go_with_a_dropped_one(call: Call) -> None:
    table = make_table(call, "t")
    grant(call, privilege(on(TABLE, table), "SELECT"))
    new = get_table(call, table)
    new.tableName = "renamed"
    alter_table(call, table, new)
    renamed = table._replace(table="renamed")
    assert listed(call, "bob", USER, on(TABLE, renamed)) == [("bob", "SELECT", False)]
    drop_table(call, renamed, delete_data=False)
    assert listed(call, "bob", USER, None) == []


def test_a_new_database_does_not_inherit_the_privileges_of_a_dropped_one(call: Call) -> None:
    make_database(call, "d")
    grant(call, privilege(on(DATABASE, dbName="d"), "CREATE"))
    drop_database(call, "hive", "d", delete_data=False, cascade=False)
    make_database(call, "d")
    assert listed(call, None, None, on(DATABASE, dbName="d")) == []
    assert listed(call, "bob", USER, None) == []


def test_the_privilege_set_holds_those_of_all_roles(call: Call) -> None:
    table = make_table(call, "t")
    for name in ("inner", "outer", "stranger"):
        roles.create_role(call, Role(roleName=name))
    roles.grant_role(call, "inner", "outer", ROLE, "alice", USER, option=False)
    roles.grant_role(call, "outer", "bob", USER, "alice", USER, option=False)
    grant(
        call,
        privilege(on(TABLE, table), "SELECT", "inner", ROLE),
        privilege(on(TABLE, table), "INSERT", "stranger", ROLE),
        privilege(on(TABLE, table), "DELETE"),
        privilege(on(TABLE, table), "UPDATE", "team", GROUP),
    )
    found = privileges.get_privilege_set(call, on(TABLE, table), "bob", ["team", "none"])

    def names(grants: dict[str, list[PrivilegeGrantInfo]]) -> dict[str, list[str]]:
        return {name: [each.privilege for each in infos] for name, infos in grants.items()}

    assert names(found.userPrivileges) == {"bob": ["DELETE"]}
    assert names(found.groupPrivileges) == {"team": ["UPDATE"], "none": []}
    assert names(found.rolePrivileges) == {"inner": ["SELECT"], "outer": [], "public": []}


def test_missing_objects_have_no_grants(call: Call) -> None:
    for ref in (
        HiveObjectRef(objectType=DATABASE, dbName="lost"),
        HiveObjectRef(objectType=TABLE, dbName="default", objectName="lost"),
        HiveObjectRef(objectType=COLUMN, dbName="default", objectName="lost", columnName="c"),
    ):
        assert privileges.get_privilege_set(call, ref, "bob", []).userPrivileges == {"bob": []}
    lost = HiveObjectRef(objectType=PARTITION, dbName="default", objectName="lost", partValues=["v"])
    with pytest.raises(NoSuchObject, match="lost"):
        privileges.get_privilege_set(call, lost, "bob", [])


def test_privileges_come_with_a_new_table(call: Call) -> None:
    info = [
        PrivilegeGrantInfo(privilege=name, createTime=1, grantor="bob", grantorType=USER, grantOption=True) for name in ("INSERT", "SELECT")
    ]
    table = make_table(call, "plain")
    new = copy(get_table(call, table))
    new.tableName, new.privileges = "given", PrincipalPrivilegeSet(userPrivileges={"bob": info}, rolePrivileges={"public": info[:1]})
    info[0].createTime = -1
    create_table(call, new)
    given = on(TABLE, TableName("hive", "default", "given"))
    assert min(each.grantInfo.createTime for each in privileges.list_privileges(call, None, None, given)) == 1
    assert listed(call, "bob", USER, given) == [("bob", "INSERT", True), ("bob", "SELECT", True)]
    assert listed(call, "public", ROLE, given) == [("public", "INSERT", True)]
    assert listed(call, "bob", USER, on(TABLE, table)) == []


def make_connector(call: Call, name: str) -> HiveObjectRef:
    data_connectors.create_data_connector(call, DataConnector(name=name, type="mysql", url="jdbc:mysql://x"))
    return on(CONNECTOR, objectName=name)


def test_privileges_on_connectors(call: Call) -> None:
    """The answers are as in 4.0.1, except that its `revoke` does not find these privileges."""
    pg, my = make_connector(call, "pg"), make_connector(call, "my")
    grant(call, privilege(pg, "ALL", grantOption=True), privilege(on(CONNECTOR, objectName="PG"), "select,insert", "carol"))
    grant(call, privilege(my, "ALL", "team", GROUP))
    assert listed(call, None, None, pg) == [("bob", "ALL", True), ("carol", "select", False), ("carol", "insert", False)]
    assert [each.hiveObject for each in privileges.list_privileges(call, "bob", USER, pg)] == [pg]
    assert listed(call, "carol", USER, on(CONNECTOR)) == [("carol", "select", False), ("carol", "insert", False)]
    assert listed(call, "bob", USER, None) == [("bob", "ALL", True)]
    assert listed(call, None, None, on(CONNECTOR, objectName="nope")) == []
    held = privileges.get_privilege_set(call, pg, "bob", ["team"])
    assert [each.privilege for each in held.userPrivileges["bob"]] == ["ALL"]
    assert held.groupPrivileges == {"team": []}
    with pytest.raises(InvalidObject, match="all is already granted to bob on pg by alice"):
        grant(call, privilege(pg, "all"))
    privileges.revoke(call, PrivilegeBag([privilege(pg, "ALL")]), option_only=True)
    privileges.revoke(call, PrivilegeBag([privilege(pg, "insert", "carol")]))
    assert listed(call, None, None, pg) == [("bob", "ALL", False), ("carol", "select", False)]
    privileges.refresh(call, pg, "SQL", PrivilegeBag([privilege(pg, "SELECT", "dave")]))
    assert listed(call, None, None, pg) == [("dave", "SELECT", False)]
    data_connectors.drop_data_connector(call, "PG", if_exists=False, check_references=False)
    make_connector(call, "pg")
    assert listed(call, None, None, on(CONNECTOR)) == [("team", "ALL", False)]


def test_a_privilege_needs_a_connector_that_is_there(call: Call) -> None:
    with pytest.raises(NoSuchObject, match="There is no data connector nope"):
        grant(call, privilege(on(CONNECTOR, objectName="nope"), "ALL"))
    with pytest.raises(MetaError, match="needs its name: set objectName"):
        grant(call, privilege(on(CONNECTOR), "ALL"))


def test_privileges_stay_when_a_connector_gets_another_owner(call: Call) -> None:
    pg = make_connector(call, "pg")
    grant(call, privilege(pg, "ALL"))
    data_connectors.alter_data_connector(call, "pg", DataConnector(url="jdbc:mysql://y", ownerName="eve", ownerType=USER))
    assert listed(call, None, None, pg) == [("bob", "ALL", False)]
