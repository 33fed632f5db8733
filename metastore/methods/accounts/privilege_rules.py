"""Entries of the methods of roles, privileges and the server itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from metastore.idl import GrantRevokeType, HiveObjectType
from metastore.methods.forms.rules import (
    ADMINISTER,
    CREATE,
    DATABASE,
    SEE,
    SERVER,
    TABLE,
    Ask,
    Decision,
    Want,
    database_name_of,
    found_by,
    get,
    hiding,
    is_own_principal,
    named,
    needs,
    put_caller,
)
from metastore.rules.names import normalize
from metastore.service.authorizer import CONNECTOR, OWN, ROLE, Access
from metastore.service.call.context import Call

_ON_TABLES = (HiveObjectType.TABLE, HiveObjectType.PARTITION, HiveObjectType.COLUMN)


def _object(call: Call, ref: Any, privilege: str, *, grant: bool) -> Iterator[Want]:
    """Require a privilege on the object that a reference names."""
    kind = getattr(ref, "objectType", None)
    if kind == HiveObjectType.DATABASE:
        where, name = database_name_of(call, ref.dbName, ref.catName)
        if name is not None:
            yield Want((privilege,), DATABASE, where, name, hide=hiding(ref, "dbName", None), grant=grant)
    elif kind in _ON_TABLES:
        found = named(call, ref.dbName, ref.objectName, ref.catName)
        if found is not None:
            yield Want((privilege,), TABLE, *found, hide=hiding(ref, "dbName", "objectName"), grant=grant)
    elif kind == HiveObjectType.DATACONNECTOR:
        yield Want((privilege,), CONNECTOR, name=normalize(ref.objectName or ""), grant=grant)
    elif privilege != SEE:
        yield Want((ADMINISTER,), SERVER)


def grants_listed(path: str) -> Callable[[Call, Any], Iterator[Want]]:
    def find(call: Call, args: Any) -> Iterator[Want]:
        for each in getattr(get(args, path), "privileges", None) or ():
            info = None if each is None else each.grantInfo
            for privilege in ((info.privilege if info is not None else None) or "").split(","):
                yield from _object(call, each and each.hiveObject, privilege.strip().upper(), grant=True)

    return find


def revokes_listed(path: str) -> Callable[[Call, Any], Iterator[Want]]:
    def find(call: Call, args: Any) -> Iterator[Want]:
        for each in getattr(get(args, path), "privileges", None) or ():
            yield from _object(call, each and each.hiveObject, OWN, grant=False)

    return find


def grant_or_revoke(call: Call, args: Any) -> Iterator[Want]:
    grants = args.request.requestType == GrantRevokeType.GRANT
    yield from (grants_listed if grants else revokes_listed)("request.privileges")(call, args)


def gives_role(path: str) -> Ask:
    """Require the role with the option to grant it."""

    def find(_call: Call, args: Any) -> Iterator[Want]:
        yield Want((CREATE,), ROLE, name=normalize(get(args, path) or ""), grant=True)

    return Ask("the role with the option to grant it, or the role `admin`", find)


def privilege_set(call: Call, args: Any) -> Iterator[Want]:
    """Require any privilege on the object, and the role `admin` to read the privileges of others."""
    client = call.client
    if args.user_name not in (None, client.user) or not set(args.group_names or ()) <= set(client.groups):
        yield Want((ADMINISTER,), SERVER)
    yield from _object(call, args.hiveObject, SEE, grant=False)


def kept_role_names(decision: Decision, _args: Any, value: list[str]) -> list[str]:
    if decision.is_admin:
        return value
    seen = decision.allowed([Access(SEE, ROLE, name=name) for name in value])
    return [name for name, ok in zip(value, seen, strict=True) if ok]


def kept_roles(decision: Decision, args: Any, value: list[Any]) -> list[Any]:
    return value if is_own_principal(decision, args.principal_name, args.principal_type) or decision.is_admin else []


def kept_role_grants(decision: Decision, args: Any, value: Any) -> Any:
    if not is_own_principal(decision, args.request.principal_name, args.request.principal_type) and not decision.is_admin:
        value.principalGrants = []
    return value


def kept_privileges(decision: Decision, _args: Any, value: list[Any]) -> list[Any]:
    """Keep grants to the caller, and grants on objects that are the caller's own."""
    if decision.is_admin:
        return value
    mine: dict[tuple[str, int], bool] = {}
    own: dict[tuple[Any, ...], bool] = {}

    def is_shown(each: Any) -> bool:
        principal = (each.principalName, each.principalType)
        if principal not in mine:
            mine[principal] = is_own_principal(decision, *principal)
        if mine[principal]:
            return True
        ref = each.hiveObject
        thing = (ref.objectType, ref.catName, ref.dbName, ref.objectName)
        if thing not in own:
            wants = list(_object(decision.call, ref, OWN, grant=False))
            own[thing] = bool(wants) and decision.passes(wants)
        return own[thing]

    return [each for each in value if is_shown(each)]


def granted_as(path: str) -> dict[str, Any]:
    """Return the common part of the entries of methods that grant the privileges at a path: the caller is the grantor."""

    def fill(decision: Decision, args: Any) -> None:
        for each in getattr(get(args, path), "privileges", None) or ():
            if each is not None and each.grantInfo is not None:
                put_caller(decision, each.grantInfo, "grantor", "grantorType")

    return {"operation": "GRANT_PRIVILEGE", "renews": True, "fill": fill}


def role_granted_as(path: str = "") -> dict[str, Any]:
    """Return the common part of the entries of methods that grant a role: the caller is the grantor."""

    def fill(decision: Decision, args: Any) -> None:
        holder = get(args, path) if path else args
        if holder is not None:
            put_caller(decision, holder, "grantor", "grantorType")

    return {"operation": "GRANT_ROLE", "renews": True, "fill": fill}


OF_PRINCIPAL = "grants to the caller, its groups and roles"

BY_LOGIN = needs(
    found_by("a login with that right: see the settings `proxy_users` and `delegation_token_store_users`", lambda _call, _args: ())
)
"""The rule of methods that look at the login themselves."""
