"""Rows of roles and of their members. One function per statement."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from metastore.idl import HiveObjectType, PrincipalType, Role, RolePrincipalGrant
from metastore.store.core import authorization_changes
from metastore.store.core.clauses import Among, constant
from metastore.store.core.database import Session
from metastore.store.drivers.contract import Row
from metastore.store.schema.model import privileges, role_grants, roles

NAMES = sa.select(roles.c.name).order_by(roles.c.name)
STARTUP_ROLES = ("admin", "public")
ROLE, GRANT = roles.c, role_grants.c
FIND = sa.select(ROLE.name, ROLE.create_time, ROLE.owner_name).where(ROLE.name == sa.bindparam("name_key"))
LOCK = sa.select(ROLE.name).where(ROLE.name == sa.bindparam("name_key")).with_for_update()
DELETE = sa.delete(roles).where(ROLE.name == sa.bindparam("name_key"))
DELETE_GRANTS = sa.delete(role_grants).where(
    sa.or_(
        GRANT.role_name == sa.bindparam("name_key"),
        sa.and_(GRANT.principal_name == sa.bindparam("name_key"), GRANT.principal_type == constant(PrincipalType.ROLE)),
    )
)
DELETE_PRIVILEGES = sa.delete(privileges).where(
    privileges.c.principal_name == sa.bindparam("name_key"), privileges.c.principal_type == constant(PrincipalType.ROLE)
)
HELD = (
    sa.select(role_grants)
    .where(Among(GRANT.principal_name, "names"), GRANT.principal_type == sa.bindparam("type_key"))
    .order_by(GRANT.role_name, GRANT.principal_name)
)
HELD_ROLES = (
    sa.select(ROLE.name, ROLE.create_time, ROLE.owner_name)
    .select_from(roles.join(role_grants, GRANT.role_name == ROLE.name))
    .where(GRANT.principal_name == sa.bindparam("principal_key"), GRANT.principal_type == sa.bindparam("type_key"))
    .order_by(ROLE.name)
)
MEMBERS = sa.select(role_grants).where(GRANT.role_name == sa.bindparam("name_key")).order_by(GRANT.principal_type, GRANT.principal_name)
BETWEEN_ROLES = sa.select(GRANT.role_name, GRANT.principal_name).where(GRANT.principal_type == constant(PrincipalType.ROLE))
ONE_GRANT = sa.and_(
    GRANT.role_name == sa.bindparam("name_key"),
    GRANT.principal_name == sa.bindparam("principal_key"),
    GRANT.principal_type == sa.bindparam("type_key"),
)
REVOKE = sa.delete(role_grants).where(ONE_GRANT)
REVOKE_OPTION = sa.update(role_grants).where(ONE_GRANT, GRANT.grant_option == constant(1)).values(grant_option=constant(0))
ADMINS = sa.select(role_grants.c.principal_name).where(
    role_grants.c.role_name == constant("admin"), role_grants.c.principal_type == constant(PrincipalType.USER)
)

ADMIN_MAY = sa.select(privileges.c.id).where(
    privileges.c.principal_name == constant("admin"),
    privileges.c.principal_type == constant(PrincipalType.ROLE),
    privileges.c.object_type == constant(HiveObjectType.GLOBAL),
)


def names(session: Session) -> list[str]:
    """Return the names of all roles, ascending."""
    return session.column(NAMES)


def missing_startup_roles(session: Session, admins: Sequence[str]) -> bool:
    """Return whether a role that a server begins with, or an admin user's membership, is missing."""
    if not set(STARTUP_ROLES) <= set(names(session)):
        return True
    return bool(set(admins) - {*session.column(ADMINS)})


def create_startup_roles(session: Session, admins: Sequence[str], now: int) -> None:
    """Create the roles `admin`, which has all privileges, and `public`. The users that the settings name get the role `admin`."""
    by_admin = {"grant_option": 1, "grantor": "admin", "grantor_type": PrincipalType.ROLE}
    session.insert_missing(roles, [{"name": name, "create_time": now, "owner_name": name} for name in STARTUP_ROLES])
    lock(session, STARTUP_ROLES[0])
    authorization_changes.note(session)
    if not session.exists(ADMIN_MAY):
        session.insert(
            privileges,
            object_type=HiveObjectType.GLOBAL,
            principal_name="admin",
            principal_type=PrincipalType.ROLE,
            privilege="All",
            create_time=now,
            authorizer="SQL",
            **by_admin,
        )
    session.insert_missing(
        role_grants,
        [
            {"role_name": "admin", "principal_name": user, "principal_type": PrincipalType.USER, "grant_time": now, **by_admin}
            for user in admins
        ],
    )


def lock(session: Session, name: str) -> bool:
    """Lock a role's row until the transaction ends; return whether it exists."""
    return session.exists(LOCK, name_key=name)


def find(session: Session, name: str) -> Role | None:
    """Return a role, or None."""
    row = session.row(FIND, name_key=name)
    return None if row is None else Role(*row)


def insert(session: Session, role: Role) -> None:
    """Add a role."""
    session.insert(roles, name=role.roleName, create_time=role.createTime, owner_name=role.ownerName)


def delete(session: Session, name: str) -> None:
    """Remove a role, its members, its memberships and its privileges."""
    authorization_changes.note(session)
    session.execute(DELETE_PRIVILEGES, name_key=name)
    session.execute(DELETE_GRANTS, name_key=name)
    session.execute(DELETE, name_key=name)


def _grants(rows: Sequence[Row]) -> list[RolePrincipalGrant]:
    return [
        RolePrincipalGrant(role, principal, kind, bool(option), time, grantor, grantor_kind)
        for role, principal, kind, option, time, grantor, grantor_kind in rows
    ]


def held_by(session: Session, principal_names: Sequence[str], kind: int) -> list[RolePrincipalGrant]:
    """Return the grants of roles to principals of one kind, ascending by role."""
    return _grants(session.rows(HELD, names=list(principal_names), type_key=kind))


def roles_of(session: Session, principal: str, kind: int) -> list[Role]:
    """Return the roles granted to a principal, ascending by name."""
    return [Role(*row) for row in session.rows(HELD_ROLES, principal_key=principal, type_key=kind)]


def members(session: Session, name: str) -> list[RolePrincipalGrant]:
    """Return the grants of a role, ascending by kind and name of the principal."""
    return _grants(session.rows(MEMBERS, name_key=name))


def between_roles(session: Session) -> list[tuple[str, str]]:
    """Return (role, role to which it is granted) of all grants of roles to roles."""
    return [(role, member) for role, member in session.rows(BETWEEN_ROLES)]


def grant(session: Session, new: RolePrincipalGrant) -> None:
    """Grant a role."""
    authorization_changes.note(session)
    session.insert(
        role_grants,
        role_name=new.roleName,
        principal_name=new.principalName,
        principal_type=new.principalType,
        grant_option=int(bool(new.grantOption)),
        grant_time=new.grantTime,
        grantor=new.grantorName,
        grantor_type=new.grantorPrincipalType,
    )


def revoke(session: Session, name: str, principal: str, kind: int, *, option_only: bool) -> bool:
    """Take a role, or only the option to grant it to others, from a principal. Return whether the principal had it."""
    authorization_changes.note(session)
    clause = REVOKE_OPTION if option_only else REVOKE
    return session.execute(clause, name_key=name, principal_key=principal, type_key=kind) > 0
