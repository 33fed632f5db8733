"""Entries of the methods of what engines keep here for themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from metastore.errors import MetaError
from metastore.idl import ScheduledQueryMaintenanceRequestType
from metastore.methods.forms.entry import Handler
from metastore.methods.forms.rules import (
    ADMIN,
    ADMINISTER,
    ALTER,
    SEE,
    SERVER,
    Decision,
    MethodRule,
    Want,
    database,
    database_name_of,
    found_by,
    get,
    needs,
)
from metastore.service.call.context import Call
from metastore.service.catalog.databases import get_databases
from metastore.service.engines import scheduled_queries


def _kept_for_admin(decision: Decision, _args: Any, value: list[str]) -> list[str]:
    return value if decision.is_admin else []


def _is_own_query(call: Call, key: Any) -> bool:
    """Tell whether a scheduled query is there and runs as the caller."""
    try:
        found = scheduled_queries.find(call, scheduled_queries.checked_key(key))
    except MetaError:
        return False
    return found is not None and found.user is not None and found.user == call.client.user


def _maintain(call: Call, args: Any) -> Iterator[Want]:
    """Want to run queries as others, unless the query runs as the caller before and after: what is missing is nobody's."""
    creates, drops = (args.request.type == kind for kind in (_KINDS.CREATE, _KINDS.DROP))
    query = args.request.scheduledQuery
    stays_own = drops or (query is not None and query.user is not None and query.user == call.client.user)
    if not stays_own or not (creates or _is_own_query(call, get(query, "scheduleKey"))):
        yield Want((ADMINISTER,), SERVER)


def _get_query(call: Call, args: Any) -> Iterator[Want]:
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


def _procedure(privilege: str, path: str, operation: str) -> MethodRule:
    return needs(database(privilege, f"{path}.dbName", f"{path}.catName"), operation=operation)


_LISTED = needs(
    database(SEE, "request.dbName", "request.catName"), operation="SHOWFUNCTIONS", around=_names, shows="those of databases that are shown"
)
_KINDS = ScheduledQueryMaintenanceRequestType
_OWN_QUERY = "nothing for a query that runs as the caller, else the role `admin`"

ENTRIES: dict[str, MethodRule] = {
    **dict.fromkeys(("create_dataconnector_req", "get_dataconnector_req", "alter_dataconnector_req", "drop_dataconnector_req"), ADMIN),
    "get_dataconnectors": MethodRule(keep=_kept_for_admin, shows="all to the role `admin`, none to others"),
    "scheduled_query_maintenance": needs(found_by(_OWN_QUERY, _maintain), operation="ADMIN"),
    "get_scheduled_query": needs(found_by(_OWN_QUERY, _get_query), operation="ADMIN"),
    **dict.fromkeys(("scheduled_query_poll", "scheduled_query_progress"), ADMIN),
    "create_stored_procedure": _procedure(ALTER, "proc", "CREATEFUNCTION"),
    "add_package": _procedure(ALTER, "request", "CREATEFUNCTION"),
    **dict.fromkeys(("get_stored_procedure", "find_package"), _procedure(SEE, "request", "DESCFUNCTION")),
    **dict.fromkeys(("drop_stored_procedure", "drop_package"), _procedure(ALTER, "request", "DROPFUNCTION")),
    **dict.fromkeys(("get_all_stored_procedures", "get_all_packages"), _LISTED),
    **dict.fromkeys(("add_runtime_stats", "get_runtime_stats", "add_replication_metrics", "get_replication_metrics"), ADMIN),
    **dict.fromkeys(("get_properties", "set_properties"), ADMIN),
}
