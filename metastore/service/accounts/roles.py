"""Roles: make, drop, grant, revoke, list. Every user holds the role `public`; nothing is enforced here.

Source: Hive's HMSHandler, ObjectStore. A change of grants locks the role's row first.
"""

from __future__ import annotations

import time

from metastore.errors import AlreadyExists, MetaError, NoSuchObject
from metastore.idl import PrincipalType, Role, RolePrincipalGrant
from metastore.rules.names import normalize
from metastore.service.call.context import Call
from metastore.store.accounts import roles
from metastore.store.core.database import Session

ADMIN, PUBLIC = "admin", "public"


def _role(name: str | None) -> str:
    if not name or not normalize(name):
        raise MetaError("The name of a role cannot be null or empty")
    return normalize(name)


def _public(principal: str | None, kind: int | None) -> bool:
    return kind == PrincipalType.USER and principal is not None


def create_role(call: Call, role: Role | None) -> None:
    """Add a role. MetaError for `public`, AlreadyExists."""
    name = _role(role.roleName if role is not None else None)
    if name == PUBLIC:
        raise MetaError("public role implicitly exists. It can't be created.")
    stored = Role(roleName=name, createTime=int(time.time()), ownerName=role.ownerName if role is not None else None)

    def work(session: Session) -> None:
        if roles.find(session, name) is not None:
            raise AlreadyExists(f"Role {name} already exists.")
        roles.insert(session, stored)

    call.database.write(work)


def drop_role(call: Call, name: str | None) -> None:
    """Remove a role, if it exists, with its grants and privileges. MetaError for `admin` and `public`."""
    wanted = _role(name)
    if wanted in (ADMIN, PUBLIC):
        raise MetaError("public,admin roles can't be dropped.")

    def work(session: Session) -> None:
        if roles.lock(session, wanted):
            roles.delete(session, wanted)

    call.database.write(work)


def get_role_names(call: Call) -> list[str]:
    """Return the names of all roles, ascending."""
    return call.database.read(roles.names)


def list_roles(call: Call, principal: str | None, kind: int | None) -> list[Role]:
    """Return the roles granted to a principal; a user holds `public` besides."""
    found = call.database.read(lambda session: roles.roles_of(session, principal or "", kind or 0))
    return [*found, Role(roleName=PUBLIC, createTime=0, ownerName=PUBLIC)] if _public(principal, kind) else found


def get_role_grants(call: Call, principal: str | None, kind: int | None) -> list[RolePrincipalGrant]:
    """Return the grants of roles to a principal; a user holds `public` besides."""
    found = call.database.read(lambda session: roles.held_by(session, [principal or ""], kind or 0))
    if _public(principal, kind):
        found.append(RolePrincipalGrant(roleName=PUBLIC, principalName=principal, principalType=kind, grantOption=False, grantTime=0))
    return found


def get_principals(call: Call, name: str | None) -> list[RolePrincipalGrant]:
    """Return the grants of a role: an empty list for `public`, which all users hold without a grant, and for a missing role."""
    wanted = _role(name)
    return call.database.read(lambda session: roles.members(session, wanted))


def grant_role(
    call: Call, name: str | None, principal: str | None, kind: int | None, grantor: str | None, grantor_kind: int | None, *, option: bool
) -> None:
    """Grant a role to a user, group or role. NoSuchObject, AlreadyExists; MetaError for `public` and for a circle of roles."""
    wanted = _role(name)
    if wanted == PUBLIC:
        raise MetaError("No user can be added to public. Since all users implicitly belong to public role.")
    if not principal or kind is None:
        raise MetaError(f"Role {wanted} can not be granted: name and type of the principal are needed")
    member = _role(principal) if kind == PrincipalType.ROLE else principal
    new = RolePrincipalGrant(wanted, member, kind, option, int(time.time()), grantor, grantor_kind)

    def work(session: Session) -> None:
        # Grants between roles wait for each other: two at the same time could close a circle.
        turn = [PUBLIC, wanted, member] if kind == PrincipalType.ROLE else [wanted]
        for role in turn:
            if not roles.lock(session, role):
                raise NoSuchObject(f"Role {role} does not exist")
        if any(grant.roleName == wanted for grant in roles.held_by(session, [member], kind)):
            raise AlreadyExists(f"Principal {member} already has the role {wanted}")
        if kind == PrincipalType.ROLE and member in _above(roles.between_roles(session), wanted):
            raise MetaError(f"Cannot grant role {wanted} to {member} as {member} already belongs to the role {wanted}. (no cycles allowed)")
        roles.grant(session, new)

    call.database.write(work)


def _above(grants: list[tuple[str, str]], role: str) -> set[str]:
    """Return the roles that `role` holds, directly or through others, and itself; `grants` are (role, holder)."""
    found, new = {role}, {role}
    while new:
        new = {held for held, holder in grants if holder in new} - found
        found |= new
    return found


def held_in_hierarchy(session: Session, user: str | None, groups: list[str]) -> list[str]:
    """Return the names of all roles that a user and its groups hold, directly or through others, ascending."""
    direct = {grant.roleName for grant in roles.held_by(session, [user], PrincipalType.USER)} if user else set()
    if groups:
        direct |= {grant.roleName for grant in roles.held_by(session, groups, PrincipalType.GROUP)}
    between = roles.between_roles(session)
    found = set() if user is None else {PUBLIC}
    for role in direct:
        found |= _above(between, role)
    return sorted(found)


def revoke_role(call: Call, name: str | None, principal: str | None, kind: int | None, *, option_only: bool = False) -> None:
    """Revoke a role from a principal, if it holds the role, or only the option to grant the role on, which it must hold.

    NoSuchObject; MetaError for `public`.
    """
    wanted = _role(name)
    if wanted == PUBLIC:
        raise MetaError("public role can't be revoked.")
    member = _role(principal) if kind == PrincipalType.ROLE else principal or ""

    def work(session: Session) -> None:
        if not roles.lock(session, wanted):
            raise NoSuchObject(f"Role {wanted} does not exist")
        if not roles.revoke(session, wanted, member, kind or 0, option_only=option_only) and option_only:
            raise NoSuchObject(f"Principal {member} does not have the grant option of role {wanted}")

    call.database.write(work)
