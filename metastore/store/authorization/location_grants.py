"""Rows that let a principal use locations below a prefix. One function per statement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa

from metastore.store.core import authorization_changes
from metastore.store.core.clauses import Among
from metastore.store.core.database import Session
from metastore.store.schema.model import location_grants

GRANT = location_grants.c
ALL = sa.select(GRANT.principal_name, GRANT.principal_type, GRANT.location).order_by(
    GRANT.principal_type, GRANT.principal_name, GRANT.location
)
OF = sa.select(GRANT.location).where(Among(GRANT.principal_name, "names"), GRANT.principal_type == sa.bindparam("type_key"))
DELETE = sa.delete(location_grants).where(
    GRANT.principal_name == sa.bindparam("name_key"),
    GRANT.principal_type == sa.bindparam("type_key"),
    GRANT.location == sa.bindparam("location_key"),
)


class LocationGrant(NamedTuple):
    """A principal (type: PrincipalType of the interface) and the location at and below which it may put data."""

    principal: str
    type: int
    location: str


def all_of(session: Session) -> list[LocationGrant]:
    """Return all grants of locations, ascending by principal and location."""
    return [LocationGrant(*row) for row in session.rows(ALL)]


def of(session: Session, names: Sequence[str], kind: int) -> list[str]:
    """Return the locations of principals of one type."""
    return session.column(OF, names=list(names), type_key=kind)


def insert(session: Session, new: LocationGrant) -> None:
    """Add a grant of a location."""
    authorization_changes.note(session)
    session.insert(location_grants, principal_name=new.principal, principal_type=new.type, location=new.location)


def delete(session: Session, old: LocationGrant) -> bool:
    """Remove a grant of a location; return whether it existed."""
    authorization_changes.note(session)
    return session.execute(DELETE, name_key=old.principal, type_key=old.type, location_key=old.location) > 0
