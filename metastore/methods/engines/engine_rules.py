"""Entries of the methods of objects that engines keep here for themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from metastore.errors import MetaError
from metastore.idl import ScheduledQueryMaintenanceRequestType
from metastore.methods.forms.rules import (
    ADMINISTER,
    SEE,
    SERVER,
    Ask,
    Decision,
    Handler,
    MethodRule,
    Want,
    database_name_of,
    get,
    needs,
    on_database,
)
from metastore.rules.names import normalize
from metastore.service.authorizer import CONNECTOR, Access
from metastore.service.call.context import Call
from metastore.service.catalog.databases import get_databases
from metastore.service.engines import scheduled_queries


def kept_versions(decision: Decision, _args: Any, value: Any) -> Any:
    """Keep versions of schemas in databases that may be shown: a schema belongs to its database and has no owner of its own."""
    seen = decision.databases((each.schema.catName, each.schema.dbName) for each in value.schemaVersions)
    value.schemaVersions = [each for each in value.schemaVersions if (each.schema.catName, each.schema.dbName) in seen]
    return value


def kept_connectors(decision: Decision, _args: Any, value: list[str]) -> list[str]:
    """Keep the data connectors that are the caller's own, or on which the caller has a privilege."""
    owners = decision.connector_owners()
    seen = decision.allowed([Access(SEE, CONNECTOR, name=name, owner=owners.get(name)) for name in value])
    return [name for name, ok in zip(value, seen, strict=True) if ok]


def on_connector(privilege: str, path: str) -> Ask:
    """Require a privilege on the data connector that a request names."""
    text = "any privilege" if privilege == SEE else "ownership or ALL"

    def find(_call: Call, args: Any) -> Iterator[Want]:
        yield Want((privilege,), CONNECTOR, name=normalize(get(args, path) or ""))

    return Ask(f"{text} on the data connector", find)


def _is_own_query(call: Call, key: Any) -> bool:
    """Return whether a scheduled query exists and runs as the caller."""
    try:
        found = scheduled_queries.find(call, scheduled_queries.checked_key(key))
    except MetaError:
        return False
    return found is not None and found.user is not None and found.user == call.client.user


def maintains_query(call: Call, args: Any) -> Iterator[Want]:
    """Require the role `admin`, unless the query runs as the caller before and after the change. A missing query has no owner."""
    creates, drops = (args.request.type == kind for kind in (_KINDS.CREATE, _KINDS.DROP))
    query = args.request.scheduledQuery
    stays_own = drops or (query is not None and query.user is not None and query.user == call.client.user)
    if not stays_own or not (creates or _is_own_query(call, get(query, "scheduleKey"))):
        yield Want((ADMINISTER,), SERVER)


def reads_query(call: Call, args: Any) -> Iterator[Want]:
    if not _is_own_query(call, args.scheduleKey):
        yield Want((ADMINISTER,), SERVER)


def _names(decision: Decision, args: Any, handler: Handler) -> list[str]:
    """List names of one database, or of those databases of a catalog that may be shown, one after the other."""
    request, call = args.request, decision.call
    catalog, one = database_name_of(call, request.dbName, request.catName)
    if catalog is None or one is not None:
        return handler(call, args)  # type: ignore[no-any-return]  # names
    found: list[str] = []
    request.catName = catalog
    for _, name in sorted(decision.databases((catalog, each) for each in get_databases(call, catalog, None))):
        request.dbName = name
        found += handler(call, args)
    return found


def procedure(privilege: str, path: str, operation: str) -> MethodRule:
    return needs(on_database(privilege, f"{path}.dbName", f"{path}.catName"), operation=operation)


LISTED = needs(
    on_database(SEE, "request.dbName", "request.catName"),
    operation="SHOWFUNCTIONS",
    around=_names,
    shows="entries of databases that are shown",
)
_KINDS = ScheduledQueryMaintenanceRequestType
OWN_QUERY = "nothing for a query that runs as the caller, else the role `admin`"
