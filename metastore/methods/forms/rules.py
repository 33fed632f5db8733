"""Forms in which an entry declares required privileges, by paths to arguments (`req.dbName`). Never calls a service that changes data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from metastore.errors import MetaError
from metastore.idl import PrincipalType, Table
from metastore.methods.forms import unpack
from metastore.rules.names import normalize
from metastore.service.authorization.decision import Decision, Hide, Sent, Want
from metastore.service.authorizer import (
    ADMINISTER,
    ALTER,
    CATALOG,
    CREATE,
    DATABASE,
    DELETE,
    DROP,
    FUNCTION,
    INSERT,
    ROLE,
    SEE,
    SELECT,
    SERVER,
    TABLE,
    UPDATE,
    Access,
)
from metastore.service.call.context import Call
from metastore.service.call.names import TableName, database_name

READ = (SELECT,)
WRITES = (INSERT, UPDATE, DELETE, ALTER)
ADDS = (INSERT, ALTER)
REMOVES = (DELETE, ALTER)
Handler = Callable[[Call, Any], Any]
"""A function from the call and its decoded argument struct to the value of `success` (None for a void method)."""
Find = Callable[[Call, Any], Iterable[Want]]
Keep = Callable[[Decision, Any, Any], Any]
"""A function from the decision, the arguments and the value that a handler returned to the value that is shown."""
Around = Callable[[Decision, Any, Handler], Any]
"""A function that runs the handler itself, for checks that can not be separated from its work."""

Late = Callable[[Any, Any], Table | None]


@dataclass(frozen=True, slots=True)
class Ask:
    """A method's request for privileges on the objects that its arguments name."""

    text: str
    """For the documentation: the privilege and the object."""
    find: Find


@dataclass(frozen=True, slots=True)
class MethodRule:
    """The rule of one method: the privileges that it requires, and the part of its reply that is shown."""

    asks: tuple[Ask, ...] = ()
    operation: str = "QUERY"
    """Hive's name of the operation, for the text of a refusal."""
    keep: Keep | None = None
    around: Around | None = None
    shows: str = ""
    """For the documentation: the part of the reply that `keep` or `around` leaves, in words; change both together."""
    late: Late | None = None
    """For a method that only reads a table: a function from its arguments and reply to that table, None where a call requires more than
    any privilege on it. The table that was read is judged first, and the request only where that table may not be shown."""
    fill: Callable[[Decision, Any], None] | None = None
    """A function that puts the caller's identity into the arguments, before the handler."""
    renews: bool = False
    """Whether the method changes the facts by which authorization decides."""


OPEN = MethodRule()
"""The rule of methods that name no object and show nothing of any."""


def get(args: Any, path: str) -> Any:
    """Return the value at a path, None if something on the way is absent."""
    for step in path.split("."):
        args = getattr(args, step, None)
        if args is None:
            return None
    return args


def put(args: Any, path: str, value: str) -> str | None:
    """Replace the name at a path, and return the old one; None where the path has none."""
    *way, last = path.split(".")
    holder = get(args, ".".join(way)) if way else args
    old = getattr(holder, last)
    if old is None:
        return None
    text, name = replaced(old, value)
    setattr(holder, last, text)
    return name


def replaced(text: str, value: str) -> tuple[str, str]:
    """Return a text with its name replaced, and the old name. A catalog before the name, and blanks around it, stay."""
    start = text.index("#") + 1 if text.startswith("@") and "#" in text else 0
    name = text[start:].strip()
    begin = text.index(name, start)
    return text[:begin] + value + text[begin + len(name) :], name


def hiding(args: Any, database: str | None, name: str | None) -> Hide:
    """Return the function that puts other names at the paths of a database and of an object in it."""

    def hide(other: str | None, inner: str | None) -> Sent:
        return (
            None if other is None or database is None else put(args, database, other),
            None if inner is None or name is None else put(args, name, inner),
        )

    return hide


def named(call: Call, database: str | None, name: str | None, catalog: str | None = None) -> TableName | None:
    """Return a table's full name; None where a part is absent, which the handler reports."""
    try:
        return unpack.table(call, database, name, catalog)
    except MetaError:
        return None


def named_by_text(call: Call, text: str | None, catalog: str | None = None) -> TableName | None:
    """Return the table of a text `database.table` or `catalog.database.table`; None for another text."""
    parts = (text or "").split(".")
    return named(call, parts[-2], parts[-1], parts[0] if len(parts) == 3 else catalog) if len(parts) in {2, 3} else None


def on_table(
    privileges: tuple[str, ...] | str, database: str, name: str, catalog: str | None = None, *, otherwise: str | None = None
) -> Ask:
    """Require one of the privileges on the table that two fields name."""
    wanted = (privileges,) if isinstance(privileges, str) else privileges

    def find(call: Call, args: Any) -> Iterator[Want]:
        found = named(call, get(args, database), get(args, name), get(args, catalog) if catalog else None)
        if found is not None:
            yield Want(wanted, TABLE, *found, hide=hiding(args, database, name), otherwise=otherwise)

    more = f" ({otherwise} on the database if the table is missing)" if otherwise else ""
    return Ask(f"{_text(wanted)} on the table{more}", find)


def on_database(privileges: tuple[str, ...] | str, path: str, catalog: str | None = None) -> Ask:
    """Require one of the privileges on the database that a field names. Databases that match a pattern in the field are left to `keep`."""
    wanted = (privileges,) if isinstance(privileges, str) else privileges

    def find(call: Call, args: Any) -> Iterator[Want]:
        found, name = database_name_of(call, get(args, path), get(args, catalog) if catalog else None)
        if name is not None:
            yield Want(wanted, DATABASE, found, name, hide=hiding(args, path, None))

    return Ask(f"{_text(wanted)} on the database", find)


def database_name_of(call: Call, name: str | None, catalog: str | None) -> tuple[str | None, str | None]:
    """Return catalog and database; None for a name that the handler refuses."""
    try:
        return database_name(name, catalog, call.config.default_catalog)
    except MetaError:
        return None, None


def on_function(privilege: str, path: str, name: str) -> Ask:
    """Require a privilege on the function that two fields name."""

    def find(call: Call, args: Any) -> Iterator[Want]:
        found = named(call, get(args, path), get(args, name))
        if found is not None:
            yield Want((privilege,), FUNCTION, *found, hide=hiding(args, path, name))

    return Ask(f"{_text((privilege,))} on the function", find)


def on_catalog(privilege: str, path: str) -> Ask:
    """Require a privilege on the catalog that a field names."""

    def find(_call: Call, args: Any) -> Iterator[Want]:
        yield Want((privilege,), CATALOG, normalize(get(args, path) or ""), hide=hiding(args, None, path))

    return Ask(f"{_text((privilege,))} on the catalog", find)


def is_own_principal(decision: Decision, name: str | None, kind: int | None) -> bool:
    """Return whether a principal is the caller, or one of the caller's groups or roles."""
    if kind == PrincipalType.ROLE:
        return decision.allowed([Access(SEE, ROLE, name=normalize(name or ""))])[0]
    return name is not None and (name == decision.who.user if kind == PrincipalType.USER else name in decision.who.groups)


def put_caller(decision: Decision, holder: Any, name: str, kind: str) -> None:
    """Let fields name the caller or a role of the caller, even if the request has another name; an admin may name anybody."""
    given, of_kind = getattr(holder, name), getattr(holder, kind) or PrincipalType.USER
    if given is None or not (is_own_principal(decision, given, of_kind) or decision.is_admin):
        setattr(holder, name, decision.who.user)
        setattr(holder, kind, PrincipalType.USER)


def on_server(privilege: str = ADMINISTER) -> Ask:
    """Require a privilege on the server as a whole."""
    return Ask(f"{_text((privilege,))} on the server", lambda _call, _args: [Want((privilege,), SERVER)])


def found_by(text: str, find: Find) -> Ask:
    """Require the privileges that a function finds in the arguments."""
    return Ask(text, find)


def _text(privileges: tuple[str, ...]) -> str:
    words = {SEE: "any privilege", ADMINISTER: "the role `admin`", DROP: "ownership or DROP", ALTER: "ownership or ALTER"}
    return " or ".join(words.get(each, each) for each in privileges)


def needs(*asks: Ask, operation: str = "QUERY", **more: Any) -> MethodRule:
    """Return the rule of a method that requires privileges."""
    return MethodRule(asks, operation, **more)


ADMIN = needs(on_server(), operation="ADMIN")
"""The rule of methods for administrators of the server."""

__all__ = [
    "ADDS",
    "ADMIN",
    "ADMINISTER",
    "ALTER",
    "CATALOG",
    "CREATE",
    "DATABASE",
    "DELETE",
    "DROP",
    "FUNCTION",
    "INSERT",
    "OPEN",
    "READ",
    "REMOVES",
    "SEE",
    "SELECT",
    "SERVER",
    "TABLE",
    "UPDATE",
    "WRITES",
    "Ask",
    "Decision",
    "MethodRule",
    "Want",
    "database_name_of",
    "found_by",
    "get",
    "hiding",
    "is_own_principal",
    "named",
    "named_by_text",
    "needs",
    "on_catalog",
    "on_database",
    "on_function",
    "on_server",
    "on_table",
    "put",
    "put_caller",
]
