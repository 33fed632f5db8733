"""Ask the authorizer about a call's wants, and decide: allowed, refused, or to be answered as if an object were missing.

It never looks at a request: the entries in `methods` name its wants. An object that the caller may not see is hidden: the method then gets
a name that nothing has, and answers as for a missing object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from metastore import log
from metastore.errors import MetaError, NoSuchObject, PermissionDenied
from metastore.service.authorization.locations import judged_locations
from metastore.service.authorizer import (
    ADMINISTER,
    ALTER,
    CATALOG,
    CONNECTOR,
    CREATE,
    DATABASE,
    DROP,
    FUNCTION,
    LOCATION,
    OWN,
    SEE,
    SERVER,
    TABLE,
    Access,
    Authorizer,
    Who,
)
from metastore.service.call.context import Call
from metastore.service.catalog.translation import DEFAULT_DATABASE
from metastore.store.authorization import authorization
from metastore.store.authorization.authorization import Facts, Owner

TYPE_TEXTS = {
    TABLE: "TABLE_OR_VIEW",
    DATABASE: "DATABASE",
    FUNCTION: "FUNCTION",
    LOCATION: "DFS_URI",
    CATALOG: "CATALOG",
    SERVER: "GLOBAL",
    CONNECTOR: "DATACONNECTOR",
}
"""Hive's words for kinds of objects."""
PRIVILEGE_TEXTS = {
    SEE: "SELECT",
    ALTER: "OBJECT OWNERSHIP",
    DROP: "OBJECT OWNERSHIP",
    OWN: "OBJECT OWNERSHIP",
    ADMINISTER: "ADMIN PRIVILEGE",
}

TRANSACTION, LOCK = "transaction", "lock"
"""Kinds of objects that belong to their maker; only an administrator of the server may use another's."""

Sent = tuple[str | None, str | None]
"""The names of a database and of an object in it, as the request spells them. None for a name that it lacks or that is not needed."""
Hide = Callable[[str | None, str | None], Sent]
"""A function that replaces the names of the database and of the object in a request. None leaves a name. It returns the old names."""


def _nothing(_database: str | None, _name: str | None) -> Sent:
    """Replace no name: the request does not name the object itself."""
    return None, None


class Want(NamedTuple):
    """Privileges on an object; a call needs one of them."""

    privileges: tuple[str, ...]
    kind: str
    catalog: str | None = None
    database: str | None = None
    name: str | None = None
    hide: Hide = _nothing
    otherwise: str | None = None
    """The privilege that is wanted on the database for a missing or hidden table, and on the catalog for a missing database."""
    grant: bool = False
    new_owner: tuple[str | None, int | None] | None = None
    """The new owner of the object; None where the owner stays."""
    label: str | None = None
    """The name of the object in a refusal, where the request names it by a number."""
    locations: tuple[str, ...] = ()
    """The wanted locations of the object, or of parts of it."""
    by_default: Callable[[], Sequence[str]] = tuple
    """A function that returns the default places of objects without a location; called only where all else is allowed."""
    has_to_be: bool = False
    """Whether a missing or hidden table ends the call with an error, because its name would be stored."""


class _Refused(NamedTuple):
    privilege: str
    kind: str
    name: str

    def __str__(self) -> str:
        text = PRIVILEGE_TEXTS.get(self.privilege, self.privilege)
        return f"[{text}] on Object [type={TYPE_TEXTS.get(self.kind, self.kind.upper())}, name={self.name}]"


class _Missing(NamedTuple):
    name: str


class _Hidden(NamedTuple):
    """Whether the names of the database and of the object have to be hidden from the caller."""

    database: bool
    name: bool


_Objection = _Refused | _Missing | _Hidden
"""The reason why a want is not simply granted."""


class Decision:
    """The rights of one call, and the part of its reply that may be shown."""

    def __init__(self, call: Call, authorizer: Authorizer, operation: str) -> None:
        self.call = call
        self.who = Who(call.client.user, tuple(call.client.groups))
        self._authorizer = authorizer
        self._operation = operation

    def allowed(self, asked: Sequence[Access]) -> list[bool]:
        """Answer for each access. Everybody sees the default catalog and its database `default`, which clients look for when they start."""
        if not asked:
            return []
        found = list(self._authorizer.allowed(self.who, asked))
        if len(found) != len(asked):
            raise MetaError(f"authorization answered {len(found)} of {len(asked)} questions: nothing is allowed")
        return [ok is True or self._is_known(access) for ok, access in zip(found, asked, strict=True)]

    def _is_known(self, access: Access) -> bool:
        return (
            access.privilege == SEE
            and access.catalog == self.call.config.default_catalog
            and (access.kind == CATALOG or (access.kind == DATABASE and access.database == DEFAULT_DATABASE))
        )

    @property
    def is_admin(self) -> bool:
        """Whether the caller may administer the server as a whole."""
        return self.allowed([Access(ADMINISTER, SERVER)])[0]

    def judge(self, wants: Iterable[Want]) -> list[tuple[Want, bool, bool]]:
        """Return the wants on hidden objects, each with whether to hide the database's name, and whether to hide the object's.

        PermissionDenied; NoSuchObject for an object that must exist.
        """
        refused: list[_Refused] = []
        missing: list[_Missing] = []
        hidden: list[tuple[Want, bool, bool]] = []
        known: dict[tuple[str | None, ...], Facts | None] = {}
        for want in wants:
            outcome = self._one(want, known)
            if isinstance(outcome, _Refused):
                refused.append(outcome)
            elif isinstance(outcome, _Missing):
                missing.append(outcome)
            elif outcome is not None:
                hidden.append((want, *outcome))
        if refused:
            raise PermissionDenied(self._refusal(refused))
        if missing:
            raise NoSuchObject(f"{missing[0].name} table not found: name tables that are there and that you may read")
        return hidden

    def passes(self, wants: Iterable[Want]) -> bool:
        """Return whether all wants are allowed."""
        known: dict[tuple[str | None, ...], Facts | None] = {}
        return all(self._one(want, known) is None for want in wants)

    def refusal(self, want: Want) -> PermissionDenied:
        """Return the error for a want that is refused."""
        return PermissionDenied(self._refusal([_Refused(want.privileges[0], want.kind, want.label or "an object that is named")]))

    def _refusal(self, refused: Sequence[_Refused]) -> str:
        texts = sorted({str(each) for each in refused})
        if len(texts) > MOST_IN_MESSAGE:
            texts = [*texts[:MOST_IN_MESSAGE], f"and {len(texts) - MOST_IN_MESSAGE} more"]
        return (
            f"Permission denied: Principal [name={self.who.user}, type=USER] does not have following privileges for operation "
            f"{self._operation} [{', '.join(texts)}]"
        )

    def _one(self, want: Want, known: dict[tuple[str | None, ...], Facts | None]) -> _Objection | None:
        """Return the fault of a want: the refusal, the missing object, or the names to hide; None if it is allowed."""
        if want.privileges == (SEE,) and want.otherwise is None:
            # The answer is the same for a missing object and a hidden one: the object is not looked up.
            if want.kind == DATABASE and self._authorizer.knows_databases:
                return None if self.allowed([Access(SEE, DATABASE, want.catalog, want.database)])[0] else _Hidden(database=True, name=False)
            if want.kind == TABLE and self.sees_all_tables(want.catalog or "", want.database or ""):
                return None
        if want.kind in (TABLE, DATABASE):
            key = (want.catalog, want.database, want.name)
            if key not in known:
                known[key] = self.call.database.read(
                    lambda session: authorization.facts(session, want.catalog or "", want.database or "", want.name)
                )
            facts = known[key]
            return self._table(want, facts) if want.kind == TABLE else self._database(want, facts)
        if want.kind == FUNCTION:
            return self._function(want)
        if want.kind in (TRANSACTION, LOCK):
            return None if self.is_admin else _Refused(OWN, want.kind, want.name or "")
        owner = self.connector_owners(want.name).get(want.name or "") if want.kind == CONNECTOR else None
        what = Access(SEE, want.kind, want.catalog, want.database, want.name, owner=owner)
        *allowed, sees = self.allowed([*(what._replace(privilege=each, grant=want.grant) for each in want.privileges), what])
        if not any(allowed):
            if want.kind == CATALOG and want.hide is not _nothing and not sees:
                return _Hidden(database=False, name=True)
            return _Refused(want.privileges[0], want.kind, want.name or want.catalog or "server")
        return self._locations(want, None)

    def _table(self, want: Want, facts: Facts | None) -> _Objection | None:
        where = (want.catalog, want.database)
        database = Access(SEE, DATABASE, *where, owner=facts and facts.owner)
        table = facts and facts.table
        if table is None:
            if want.has_to_be:
                return _Missing(f"{want.catalog}.{want.database}.{want.name}")
            if want.otherwise is not None:
                return self._otherwise(want, facts)
            return None if facts is None or self.allowed([database])[0] else _Hidden(database=True, name=True)
        what = Access(SEE, TABLE, *where, want.name, owner=table.owner, key=table.key)
        asked = [what._replace(privilege=each, grant=want.grant) for each in want.privileges]
        *allowed, sees, sees_database = self.allowed([*asked, what, database])
        if not any(allowed):
            if want.otherwise is not None and not sees and isinstance(refused := self._otherwise(want, facts), _Refused):
                return refused
            if sees or want.otherwise is not None:
                return _Refused(want.privileges[0], TABLE, want.label or f"{want.database}.{want.name}")
            return (
                _Missing(f"{want.catalog}.{want.database}.{want.name}")
                if want.has_to_be
                else _Hidden(database=not sees_database, name=True)
            )
        if _changes_owner(want, table.owner) and not self.allowed([what._replace(privilege=OWN)])[0]:
            return _Refused(OWN, TABLE, f"{want.database}.{want.name}")
        return self._locations(want, facts)

    def _otherwise(self, want: Want, facts: Facts | None) -> _Refused | None:
        """Judge a want on a missing or hidden table, by the database's privileges."""
        privilege = want.otherwise or CREATE
        asked = Access(privilege, DATABASE, want.catalog, want.database, want.name, owner=facts and facts.owner)
        return None if self.allowed([asked])[0] else _Refused(privilege, DATABASE, want.label or want.database or "")

    def _database(self, want: Want, facts: Facts | None) -> _Objection | None:
        if facts is None:
            if want.otherwise is None or self.allowed([Access(want.otherwise, CATALOG, want.catalog)])[0]:
                return None
            return _Refused(want.privileges[0], DATABASE, want.database or "")
        what = Access(SEE, DATABASE, want.catalog, want.database, owner=facts.owner)
        asked = [what._replace(privilege=each, name=want.name, grant=want.grant) for each in want.privileges]
        *allowed, sees = self.allowed([*asked, what])
        if not any(allowed):
            return (
                _Refused(want.privileges[0], DATABASE, want.database or "")
                if sees or want.otherwise is not None
                else _Hidden(database=True, name=False)
            )
        if _changes_owner(want, facts.owner) and not self.allowed([what._replace(privilege=OWN)])[0]:
            return _Refused(OWN, DATABASE, want.database or "")
        return self._locations(want, facts)

    def _function(self, want: Want) -> _Objection | None:
        where = (want.catalog or "", want.database or "", want.name or "")
        is_there, owner = self.call.database.read(lambda session: authorization.function_owner(session, *where))
        what = Access(SEE, FUNCTION, *where, owner=owner)
        *allowed, sees, sees_database = self.allowed(
            [*(what._replace(privilege=each) for each in want.privileges), what, what._replace(kind=DATABASE, name=None, owner=None)]
        )
        if not is_there or not any(allowed):
            if is_there and sees:
                return _Refused(want.privileges[0], FUNCTION, f"{want.database}.{want.name}")
            return None if sees_database and not is_there else _Hidden(database=not sees_database, name=True)
        if _changes_owner(want, owner) and not self.allowed([what._replace(privilege=OWN)])[0]:
            return _Refused(OWN, FUNCTION, f"{want.database}.{want.name}")
        return None

    def _locations(self, want: Want, facts: Facts | None) -> _Refused | None:
        if not want.locations and want.by_default is tuple:
            return None
        makes = CREATE in want.privileges
        made = want.name if want.kind == DATABASE else None
        if (is_admin := self.is_admin) and not (makes and (made is not None or want.kind == CATALOG)):
            return None
        name = (want.catalog, want.database, want.name if want.kind == TABLE else None)
        present = facts.locations if facts is not None and want.kind == DATABASE and not makes else ()
        ask = self._is_own if is_admin else self.allowed
        for location in judged_locations(self.call, ask, name, facts, want.locations, want.by_default(), present, made):
            if not is_admin:
                return _Refused("OBJECT OWNERSHIP", LOCATION, location)
            log.get("metastore.authorization").warning(
                "an admin puts a table or database into another's directory",
                user=self.who.user,
                object=".".join(filter(None, (want.catalog, want.database, made))),
                location=location,
            )
        return None

    def _is_own(self, asked: Sequence[Access]) -> list[bool]:
        """Return for each object whether it is the caller's own; an admin may use every place."""
        return [each.kind == LOCATION or (each.owner is not None and each.owner.name == self.who.user) for each in asked]

    def sees_all_tables(self, catalog: str, database: str) -> bool:
        """Return whether the caller is known to see all tables of a database, without a question about each."""
        return self._authorizer.sees_all_tables(self.who, catalog, database)

    def seen_tables(self, catalog: str, database: str) -> set[str] | None:
        """Return the names of the tables of a database that may be shown; None where they have to be asked for one by one."""
        return self._authorizer.seen_tables(self.who, catalog, database)

    def tables(self, catalog: str, database: str, names: Sequence[str]) -> set[str]:
        """Return the names of tables that may be shown."""
        if not names:
            return set()
        if self.sees_all_tables(catalog, database):
            return set(names)
        wanted = None if len(names) > MOST_NAMED else list(names)
        if wanted is None and (seen := self.seen_tables(catalog, database)) is not None:
            return seen.intersection(names)
        facts = self.call.database.read(lambda session: authorization.tables_of(session, catalog, database, wanted))
        there = [name for name in names if name in facts]
        asked = [Access(SEE, TABLE, catalog, database, name, owner=facts[name][1], key=facts[name][0]) for name in there]
        return {name for name, ok in zip(there, self.allowed(asked), strict=True) if ok}

    def connector_owners(self, name: str | None = None) -> dict[str, Owner | None]:
        """Return the owners of data connectors by name: of all, or of one if it exists."""
        return self.call.database.read(lambda session: authorization.connector_owners(session, name))

    def databases(self, names: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
        """Return the databases (catalog, name) that may be shown."""
        wanted = list(dict.fromkeys(names))
        owners = {} if self._authorizer.knows_databases else self.call.database.read(authorization.database_owners)
        seen = self.allowed([Access(SEE, DATABASE, *name, owner=owners.get(name)) for name in wanted])
        return {name for name, ok in zip(wanted, seen, strict=True) if ok}


MOST_IN_MESSAGE = 20
"""Objects that one refusal names."""
MOST_NAMED = 1000
"""The most names that are asked for one by one where the authorizer can list all visible ones."""


def _changes_owner(want: Want, now: Owner | None) -> bool:
    if want.new_owner is None:
        return False
    name, kind = want.new_owner
    new = authorization.owner(name, kind or 1)
    return new != (now and Owner(now.name, now.type or 1))
