"""Decide by the roles and privileges that are stored, with the meaning that standard SQL and Hive give them. Never changes one.

A user's privileges are read once and remembered until a count in the database shows a change. The count is looked at
again after a second at the latest, and after each change of this process at once.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from metastore.idl import HiveObjectType, PrincipalType
from metastore.places import is_in, place_of
from metastore.service.accounts.roles import ADMIN, PUBLIC, held_in_hierarchy
from metastore.service.authorizer import (
    ADMINISTER,
    ALTER,
    CATALOG,
    CONNECTOR,
    CREATE,
    DATABASE,
    DELETE,
    DROP,
    FUNCTION,
    INSERT,
    LOCATION,
    OWN,
    ROLE,
    SEE,
    SELECT,
    TABLE,
    UPDATE,
    Access,
    Authorizer,
    Who,
)
from metastore.store.accounts import roles
from metastore.store.authorization import authorization, location_grants
from metastore.store.authorization.authorization import Granted, Owner
from metastore.store.core import authorization_changes
from metastore.store.core.database import Database, Session

LOOK_AGAIN = 1.0
"""Seconds after which changes of other servers are seen."""
MOST_REMEMBERED = 10_000
"""The most users whose privileges one process remembers."""
MOST_LOOKED_UP = 1000
"""Tables whose names are looked up by their keys; with more of them, all tables of the database are read."""
ALL = "ALL"
ON_TABLES = frozenset({ALL, SELECT, INSERT, UPDATE, DELETE, ALTER, DROP})
"""Privileges on a database that hold for each table in it."""
ENOUGH = {
    **{each: frozenset({each, ALL}) for each in (SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, DROP)},
    SEE: ON_TABLES,
    OWN: frozenset({ALL}),
}
"""Privileges by the wanted access to a table; one of them is enough."""
NOTHING = frozenset[str]()
EVERYBODY = Owner(PUBLIC, PrincipalType.ROLE)
Name = tuple[str | None, str | None]
Principal = tuple[str, int]


@dataclass(slots=True)
class Rights:
    """The privileges of a user: direct ones, and the privileges of groups and roles."""

    principals: frozenset[Principal]
    """The user, its groups and all its roles, with their types: any of them may be an owner."""
    roles_to_grant: frozenset[str]
    is_admin: bool
    everywhere: frozenset[str] = frozenset()
    databases: dict[Name, frozenset[str]] = field(default_factory=dict)
    tables: dict[int | None, frozenset[str]] = field(default_factory=dict)
    connectors: dict[str | None, frozenset[str]] = field(default_factory=dict)
    columns: frozenset[int | None] = frozenset()
    """Tables with a column that may be read."""
    shown: frozenset[int] = frozenset()
    """Tables that are visible by grants on them or on a column."""
    to_grant: dict[object, frozenset[str]] = field(default_factory=dict)
    """The privileges that may be granted on: by the catalog and name of a database, a table's key, (kind, name) of a data connector, or
    None for everything."""
    visible: frozenset[Name] = frozenset()
    """Databases with a table on which something was granted."""
    places: tuple[str, ...] = ()
    own: tuple[float, frozenset[Name]] | None = None
    """Databases with a table of the user's own, and when they were looked for."""

    def owns(self, owner: Owner | None) -> bool:
        """Return whether an owner is the user, one of its groups or roles."""
        return owner is not None and (owner.name, owner.type or PrincipalType.USER) in self.principals

    def by_type(self) -> dict[int, list[str]]:
        """Return the names of the principals by their types."""
        out: dict[int, list[str]] = defaultdict(list)
        for name, kind in self.principals:
            out[kind].append(name)
        return out


class _Snapshot:
    """The state at one count of changes."""

    def __init__(self, number: int, owners: dict[tuple[str, str], Owner | None]) -> None:
        self.number = number
        self.owners = owners
        self.rights: dict[Who, Rights] = {}
        self.looked: tuple[object | None, float] = (None, 0.0)
        """The last look at the count: the renewal before it (see `Grants`), and the time until which it holds."""

    def holds(self, renewal: object, now: float) -> bool:
        """Return whether the count was looked at after a renewal, and less than `LOOK_AGAIN` ago."""
        return self.looked[0] is renewal and now < self.looked[1]


class Grants(Authorizer):
    """An authorizer by the grants of `grant_privileges`, `grant_role` and `metastore locations`."""

    knows_databases = True

    def __init__(self, database: Database) -> None:
        self._database = database
        self._snapshot: _Snapshot | None = None
        self._renewal = object()
        """An object that is replaced after each change of this process."""
        self._lock = threading.Lock()

    def renew(self) -> None:
        """Look at the count of changes before something is answered next."""
        self._renewal = object()

    def allowed(self, who: Who, asked: Sequence[Access]) -> list[bool]:
        """Answer by the user's privileges."""
        snapshot = self._current()
        rights = self._rights(snapshot, who)
        if rights.is_admin:
            return [True] * len(asked)
        return [self._allows(snapshot, rights, each) for each in asked]

    def sees_all_tables(self, who: Who, catalog: str, database: str) -> bool:
        """Return whether the user is an admin, owns the database, or has a privilege that holds for all its tables."""
        snapshot = self._current()
        rights = self._rights(snapshot, who)
        return rights.is_admin or _covers(snapshot, rights, (catalog, database), SEE)

    def seen_tables(self, who: Who, catalog: str, database: str) -> set[str]:
        """Return the names of the tables that the user owns, or on which something was granted."""
        rights = self._rights(self._current(), who)
        keys = rights.shown

        def work(session: Session) -> set[str]:
            if len(keys) > MOST_LOOKED_UP:
                seen = authorization.names_among(session, catalog, database, keys)
            else:
                named = authorization.names_of(session, list(keys)).values() if keys else ()
                seen = {name for *where, name in named if where == [catalog, database]}
            for kind, names in rights.by_type().items():
                seen |= authorization.own_tables(session, catalog, database, names, kind)
            return seen

        return self._database.read(work)

    def _current(self) -> _Snapshot:
        found, now = self._snapshot, time.monotonic()
        if found is not None and found.holds(self._renewal, now):
            return found
        with self._lock:
            # The renewal is read before the count: after a change in between, the next question reads the count again. Other callers wait
            # here for the new snapshot, since the old one could allow them a right that was just revoked.
            found, renewal = self._snapshot, self._renewal
            if found is None or not found.holds(renewal, now):
                number = self._database.read(authorization_changes.number)
                if found is None or found.number != number:
                    found = _Snapshot(number, self._database.read(authorization.database_owners))
                found.looked = renewal, now + LOOK_AGAIN
                self._snapshot = found
            return found

    def _rights(self, snapshot: _Snapshot, who: Who) -> Rights:
        found = snapshot.rights.get(who)
        if found is None:
            found = self._database.read(lambda session: _read(session, who))
            if len(snapshot.rights) >= MOST_REMEMBERED:
                snapshot.rights.clear()
            snapshot.rights[who] = found
        return found

    def _allows(self, snapshot: _Snapshot, rights: Rights, access: Access) -> bool:
        if access.grant:
            return _may_grant(snapshot, rights, access)
        kind, where = access.kind, (access.catalog, access.database)
        if kind == TABLE:
            return _allows_table(snapshot, rights, access)
        if kind == DATABASE:
            return _has(snapshot, rights, where, access.privilege) or (access.privilege == SEE and self._sees(rights, where))
        if kind == FUNCTION:
            if access.privilege == SEE:
                return self._allows(snapshot, rights, access._replace(kind=DATABASE))
            return rights.owns(access.owner) or _has(snapshot, rights, where, access.privilege)
        if kind == LOCATION:
            place = place_of(access.location)
            return place is not None and any(is_in(place, each) for each in rights.places)
        if kind == CATALOG and access.privilege == SEE:
            names = [name for name in snapshot.owners if name[0] == access.catalog]
            return any(_has(snapshot, rights, name, SEE) or self._sees(rights, name) for name in names)
        if kind == ROLE:
            return (access.name or "", PrincipalType.ROLE) in rights.principals and access.privilege == SEE
        if kind == CONNECTOR:
            held = rights.connectors.get(access.name, NOTHING)
            return rights.owns(access.owner) or (bool(held) if access.privilege == SEE else ALL in held)
        return access.privilege != ADMINISTER and not rights.everywhere.isdisjoint({access.privilege, ALL})

    def _sees(self, rights: Rights, where: Name) -> bool:
        """Return whether a database is visible through its tables: by a grant on one, or by a table of the user's own."""
        if where in rights.visible:
            return True
        now = time.monotonic()
        if rights.own is None or rights.own[0] <= now:
            by_type = rights.by_type()

            def work(session: Session) -> frozenset[Name]:
                return frozenset[Name]().union(*(authorization.with_own_tables(session, names, kind) for kind, names in by_type.items()))

            rights.own = (now + LOOK_AGAIN, self._database.read(work))
        return where in rights.own[1]


def _allows_table(snapshot: _Snapshot, rights: Rights, access: Access) -> bool:
    where, wanted = (access.catalog, access.database), access.privilege
    if rights.owns(access.owner) or _covers(snapshot, rights, where, wanted):
        return True
    if access.key is None:
        return False
    if wanted in (SELECT, SEE) and access.key in rights.columns:
        return True
    held = rights.tables.get(access.key)
    return held is not None and not held.isdisjoint(ENOUGH.get(wanted, NOTHING))


def _covers(snapshot: _Snapshot, rights: Rights, where: Name, wanted: str) -> bool:
    """Return whether a privilege on the database or everywhere, or its ownership, allows an access to each of its tables."""
    enough = ENOUGH.get(wanted, NOTHING)
    if not rights.everywhere.isdisjoint(enough) or not rights.databases.get(where, NOTHING).isdisjoint(enough):
        return True
    return _owns_database(snapshot, rights, where)


def _owns_database(snapshot: _Snapshot, rights: Rights, where: Name) -> bool:
    """Return whether the user owns a database. One of the role `public`, as `default` is, has no owner: everybody only may create in it."""
    owner = snapshot.owners.get(where)  # type: ignore[arg-type]  # None is not a key
    return owner != EVERYBODY and rights.owns(owner)


def _has(snapshot: _Snapshot, rights: Rights, where: Name, wanted: str) -> bool:
    """Return whether an access to a database itself is allowed."""
    held = rights.everywhere | rights.databases.get(where, frozenset())
    if _owns_database(snapshot, rights, where):
        return True
    if wanted in (CREATE, SEE) and rights.owns(snapshot.owners.get(where)):  # type: ignore[arg-type]  # None is not a key
        return True
    return bool(held) if wanted == SEE else not held.isdisjoint({ALL} if wanted == OWN else {wanted, ALL})


def _may_grant(snapshot: _Snapshot, rights: Rights, access: Access) -> bool:
    """Return whether a privilege may be granted on: by the owner, or by a user who holds it with the option to grant it."""
    where = (access.catalog, access.database)
    if access.kind == ROLE:
        return access.name in rights.roles_to_grant
    keys: list[object] = [None]
    if access.kind in (DATABASE, TABLE):
        keys.append(where)
        if _owns_database(snapshot, rights, where):
            return True
    if access.kind == TABLE:
        keys.append(access.key)
        if rights.owns(access.owner):
            return True
    if access.kind == CONNECTOR:
        keys = [(CONNECTOR, access.name)]
        if rights.owns(access.owner):
            return True
    wanted = {access.privilege, ALL}
    return any(not rights.to_grant.get(key, frozenset()).isdisjoint(wanted) for key in keys)


def _read(session: Session, who: Who) -> Rights:
    """Return the current privileges of a user."""
    groups = list(who.groups)
    held = held_in_hierarchy(session, who.user or None, groups)
    principals = [
        (PrincipalType.USER, [who.user] if who.user else []), (PrincipalType.GROUP, groups), (PrincipalType.ROLE, held)
    ]  # fmt: skip
    rights = Rights(
        principals=frozenset((name, kind) for kind, names in principals for name in names),
        roles_to_grant=frozenset(
            grant.roleName for kind, names in principals if names for grant in roles.held_by(session, names, kind) if grant.grantOption
        ),
        is_admin=ADMIN in held,
    )
    if rights.is_admin:
        return rights
    _fill(rights, [each for kind, names in principals if names for each in authorization.granted(session, names, kind)])
    places = (place_of(each) for kind, names in principals if names for each in location_grants.of(session, names, kind))
    rights.places = tuple(sorted({place for place in places if place}))
    return rights


def _fill(rights: Rights, granted: Iterable[Granted]) -> None:
    """Sort privileges by their objects. Privileges on partitions give no right: clients ask for tables."""
    everywhere, columns, visible = set[str](), set[int | None](), set[Name]()
    databases, tables = defaultdict[Name, set[str]](set), defaultdict[int | None, set[str]](set)
    connectors, to_grant = defaultdict[str | None, set[str]](set), defaultdict[object, set[str]](set)
    for each in granted:
        privilege = each.privilege.upper()
        key: object = None
        if each.type == HiveObjectType.GLOBAL:
            everywhere.add(privilege)
        elif each.type == HiveObjectType.DATABASE:
            key = (each.catalog, each.database)
            databases[each.catalog, each.database].add(privilege)
        elif each.type == HiveObjectType.TABLE:
            key = each.table_key
            tables[each.table_key].add(privilege)
            visible.add((each.catalog, each.database))
        elif each.type == HiveObjectType.DATACONNECTOR:
            key = (CONNECTOR, each.connector)
            connectors[each.connector].add(privilege)
        elif each.type == HiveObjectType.COLUMN and privilege in (SELECT, ALL):
            columns.add(each.table_key)
            visible.add((each.catalog, each.database))
            continue
        else:
            continue
        if each.option:
            to_grant[key].add(privilege)
    rights.everywhere, rights.columns, rights.visible = frozenset(everywhere), frozenset(columns), frozenset(visible)
    rights.databases = {name: frozenset(held) for name, held in databases.items()}
    rights.connectors = {name: frozenset(held) for name, held in connectors.items()}
    rights.tables = {table: frozenset(held) for table, held in tables.items()}
    shown = (*columns, *(table for table, held in tables.items() if not held.isdisjoint(ON_TABLES)))
    rights.shown = frozenset(table for table in shown if table is not None)
    rights.to_grant = {thing: frozenset(held) for thing, held in to_grant.items()}
