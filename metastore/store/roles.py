"""Rows of roles and who holds them. One function per statement."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from metastore.idl import PrincipalType
from metastore.store.database import Session
from metastore.store.schema import role_grants, roles

NAMES = sa.select(roles.c.name).order_by(roles.c.name)
STARTUP_ROLES = ("admin", "public")
ADMINS = sa.select(role_grants.c.principal_name).where(
    role_grants.c.role_name == sa.literal_column("'admin'"), role_grants.c.principal_type == sa.literal_column(str(PrincipalType.USER))
)


def names(session: Session) -> list[str]:
    """Return the names of all roles, ascending."""
    return [name for (name,) in session.rows(NAMES)]


def missing_startup_roles(session: Session, admins: Sequence[str]) -> bool:
    """Tell whether a role that a server begins with, or an admin user's membership, is missing."""
    if not set(STARTUP_ROLES) <= set(names(session)):
        return True
    return bool(set(admins) - {name for (name,) in session.rows(ADMINS)})


def create_startup_roles(session: Session, admins: Sequence[str], now: int) -> None:
    """Make the roles `admin` and `public`; users named in the settings hold the first."""
    session.insert_missing(roles, [{"name": name, "create_time": now, "owner_name": name} for name in STARTUP_ROLES])
    session.insert_missing(role_grants, [
        {"role_name": "admin", "principal_name": user, "principal_type": PrincipalType.USER, "grant_option": 1, "grant_time": now,
         "grantor": "admin", "grantor_type": PrincipalType.ROLE}
        for user in admins
    ])
