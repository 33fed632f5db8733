"""The users and roles that are stored as the grantors of a privilege or a role."""

from __future__ import annotations

from metastore import idl
from tests.service.authorization.callers import ROLE, USER, As, Caller, bag, table


def test_the_grantor_is_the_caller(root: Caller, as_user: As) -> None:
    """An admin may name anybody: HiveServer2 grants in the name of its users."""
    bob, ref = as_user("bob"), idl.HiveObjectRef(objectType=idl.HiveObjectType.TABLE, dbName="shop", objectName="orders")
    root.grant_privileges(bag("SELECT", "bob", option=True, dbName="shop", objectName="orders"))
    given = bag("SELECT", "eve", dbName="shop", objectName="orders")
    bob.grant_privileges(given)
    given.privileges[0].principalName = "carl"
    bob.grant_revoke_privileges(idl.GrantRevokePrivilegeRequest(requestType=idl.GrantRevokeType.GRANT, privileges=given))
    found = {each.principalName: each.grantInfo.grantor for each in root.list_privileges(None, None, ref)}
    assert found == {"bob": "root", "eve": "bob", "carl": "bob"}
    given.privileges[0].principalName, given.privileges[0].grantInfo.grantor = "dora", "olga"
    root.grant_privileges(given)
    assert {each.grantInfo.grantor for each in root.list_privileges("dora", USER, ref)} == {"olga"}


def test_grants_in_a_new_table_are_made_by_the_caller(root: Caller, as_user: As) -> None:
    root.grant_privileges(bag("CREATE", "bob", dbName="shop"))
    info = idl.PrivilegeGrantInfo(privilege="SELECT", grantor="root", grantorType=USER, grantOption=True)
    made = table("shop", "given")
    made.privileges = idl.PrincipalPrivilegeSet(userPrivileges={"eve": [info]}, groupPrivileges={}, rolePrivileges={})
    for name, method in (("given", "create_table"), ("given2", "create_table_req")):
        made.tableName = name
        getattr(as_user("bob"), method)(made if method == "create_table" else idl.CreateTableRequest(table=made))
        ref = idl.HiveObjectRef(objectType=idl.HiveObjectType.TABLE, dbName="shop", objectName=name)
        assert [each.grantInfo.grantor for each in root.list_privileges("eve", USER, ref)] == ["bob"]


def test_the_grantor_of_a_role_is_the_caller_or_a_role_of_the_caller(root: Caller, as_user: As) -> None:
    for role in ("readers", "staff"):
        root.create_role(idl.Role(roleName=role))
    for role in ("readers", "staff"):
        root.grant_role(role, "bob", USER, "root", USER, True)
    bob = as_user("bob")
    bob.grant_role("readers", "eve", USER, "olga", USER, False)
    bob.grant_revoke_role(
        idl.GrantRevokeRoleRequest(
            requestType=idl.GrantRevokeType.GRANT, roleName="readers", principalName="carl", principalType=USER, grantor="root"
        )
    )
    bob.grant_role("readers", "dora", USER, "staff", ROLE, False)
    grants = root.get_principals_in_role(idl.GetPrincipalsInRoleRequest(roleName="readers")).principalGrants
    assert {each.principalName: each.grantorName for each in grants} == {"bob": "root", "eve": "bob", "carl": "bob", "dora": "staff"}
