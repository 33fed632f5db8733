"""Privilege sets: the grants on one object to a user, its groups and all their roles, as clients ask for them with the object."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from metastore.idl import HiveObjectPrivilege, HiveObjectType, Partition, PrincipalPrivilegeSet, PrincipalType, PrivilegeGrantInfo, Table
from metastore.service.accounts.roles import held_in_hierarchy
from metastore.store.authorization import privileges
from metastore.store.core.database import Session


class Grantee(NamedTuple):
    """The user for whom privileges are shown."""

    user: str | None
    groups: Sequence[str]


def privilege_set(found: Sequence[HiveObjectPrivilege], grantee: Grantee, roles: Sequence[str]) -> PrincipalPrivilegeSet:
    """Return the grants to a user, its groups and the roles that they hold, out of all on an object."""
    return PrincipalPrivilegeSet(
        userPrivileges=_by_name(found, PrincipalType.USER, [] if grantee.user is None else [grantee.user]),
        groupPrivileges=_by_name(found, PrincipalType.GROUP, grantee.groups),
        rolePrivileges=_by_name(found, PrincipalType.ROLE, roles),
    )


def show_to(session: Session, grantee: Grantee, table: Table, partitions: Sequence[Partition]) -> None:
    """Set the privileges of a table's partitions."""
    granted = defaultdict[tuple[str, ...], list[HiveObjectPrivilege]](list)
    for each in privileges.find(session, table_id=table.id, object_type=HiveObjectType.PARTITION):
        granted[tuple(each.privilege.hiveObject.partValues or ())].append(each.privilege)
    roles = held_in_hierarchy(session, grantee.user, list(grantee.groups))
    for partition in partitions:
        partition.privileges = privilege_set(granted.get(tuple(partition.values), []), grantee, roles)


def _by_name(found: Sequence[HiveObjectPrivilege], kind: int, names: Sequence[str]) -> dict[str, list[PrivilegeGrantInfo]]:
    return {name: [each.grantInfo for each in found if (each.principalType, each.principalName) == (kind, name)] for name in names}
