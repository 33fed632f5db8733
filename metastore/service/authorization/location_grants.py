"""Let users, groups and roles put data at locations outside of their databases: grant, revoke, list. The authorizer `grants` uses it."""

from __future__ import annotations

from metastore.errors import AlreadyExists, InvalidObject, NoSuchObject
from metastore.idl import PrincipalType
from metastore.places import place_of
from metastore.rules.names import normalize
from metastore.service.accounts.roles import PUBLIC
from metastore.store.accounts import roles
from metastore.store.authorization import location_grants
from metastore.store.authorization.location_grants import LocationGrant
from metastore.store.core.database import Database, Session


def grant(database: Database, principal: str, kind: int, location: str) -> None:
    """Let a principal use a location and all below it. InvalidObject, NoSuchObject for a role that is not there, AlreadyExists."""
    new = _named(principal, kind, location)

    def work(session: Session) -> None:
        roles.lock(session, PUBLIC)
        if new.type == PrincipalType.ROLE and roles.find(session, new.principal) is None:
            raise NoSuchObject(f"Role {new.principal} does not exist: create it first")
        if new in location_grants.all_of(session):
            raise AlreadyExists(f"{new.principal} may use {new.location} already")
        location_grants.insert(session, new)

    database.write(work)


def revoke(database: Database, principal: str, kind: int, location: str) -> None:
    """Revoke the right to a location. InvalidObject; NoSuchObject where it was not granted."""
    old = _named(principal, kind, location)

    def work(session: Session) -> None:
        if not location_grants.delete(session, old):
            raise NoSuchObject(f"{old.principal} was not granted {old.location}: `metastore locations list` shows the grants")

    database.write(work)


def granted(database: Database) -> list[LocationGrant]:
    """Return all grants of locations, ascending by principal and location."""
    return database.read(location_grants.all_of)


def _named(principal: str, kind: int, location: str) -> LocationGrant:
    place = place_of(location)
    if place is None:
        raise InvalidObject(f"{location!r} is not a location: give scheme://authority/path or /path")
    name = normalize(principal) if kind == PrincipalType.ROLE else principal
    if not name:
        raise InvalidObject(f"location {location} needs the name of a user, group or role")
    return LocationGrant(name, kind, place)
