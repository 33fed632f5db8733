"""Entries of the methods of roles, privileges and the server itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from metastore.idl import GrantRevokeType, HiveObjectType
from metastore.methods.engines import resource_plans
from metastore.methods.forms.rules import (
    ADMIN,
    ADMINISTER,
    CREATE,
    DATABASE,
    OPEN,
    SEE,
    SERVER,
    TABLE,
    Ask,
    Decision,
    MethodRule,
    Want,
    database_name_of,
    found_by,
    get,
    hiding,
    is_own_principal,
    named,
    needs,
    put_caller,
    server,
)
from metastore.rules.names import normalize
from metastore.service.authorizer import OWN, ROLE, Access
from metastore.service.call.context import Call

_ON_TABLES = (HiveObjectType.TABLE, HiveObjectType.PARTITION, HiveObjectType.COLUMN)


def _object(call: Call, ref: Any, privilege: str, *, grant: bool) -> Iterator[Want]:
    """Want a privilege on what a reference names."""
    kind = getattr(ref, "objectType", None)
    if kind == HiveObjectType.DATABASE:
        where, name = database_name_of(call, ref.dbName, ref.catName)
        if name is not None:
            yield Want((privilege,), DATABASE, where, name, hide=hiding(ref, "dbName", None), grant=grant)
    elif kind in _ON_TABLES:
        found = named(call, ref.dbName, ref.objectName, ref.catName)
        if found is not None:
            yield Want((privilege,), TABLE, *found, hide=hiding(ref, "dbName", "objectName"), grant=grant)
    elif privilege != SEE:
        yield Want((ADMINISTER,), SERVER)


def _granted(path: str) -> Callable[[Call, Any], Iterator[Want]]:
    def find(call: Call, args: Any) -> Iterator[Want]:
        for each in getattr(get(args, path), "privileges", None) or ():
            info = None if each is None else each.grantInfo
            for privilege in ((info.privilege if info is not None else None) or "").split(","):
                yield from _object(call, each and each.hiveObject, privilege.strip().upper(), grant=True)

    return find


def _revoked(path: str) -> Callable[[Call, Any], Iterator[Want]]:
    def find(call: Call, args: Any) -> Iterator[Want]:
        for each in getattr(get(args, path), "privileges", None) or ():
            yield from _object(call, each and each.hiveObject, OWN, grant=False)

    return find


def _grant_or_revoke(call: Call, args: Any) -> Iterator[Want]:
    grants = args.request.requestType == GrantRevokeType.GRANT
    yield from (_granted if grants else _revoked)("request.privileges")(call, args)


def _role(path: str) -> Ask:
    """Want to give a role away."""

    def find(_call: Call, args: Any) -> Iterator[Want]:
        yield Want((CREATE,), ROLE, name=normalize(get(args, path) or ""), grant=True)

    return Ask("the role with the option to grant it, or the role `admin`", find)


def _privilege_set(call: Call, args: Any) -> Iterator[Want]:
    """Want to know one's own privileges on an object, or as an admin those of others."""
    client = call.client
    if args.user_name not in (None, client.user) or not set(args.group_names or ()) <= set(client.groups):
        yield Want((ADMINISTER,), SERVER)
    yield from _object(call, args.hiveObject, SEE, grant=False)


def _kept_role_names(decision: Decision, _args: Any, value: list[str]) -> list[str]:
    if decision.is_admin:
        return value
    seen = decision.allowed([Access(SEE, ROLE, name=name) for name in value])
    return [name for name, ok in zip(value, seen, strict=True) if ok]


def _kept_roles(decision: Decision, args: Any, value: list[Any]) -> list[Any]:
    return value if is_own_principal(decision, args.principal_name, args.principal_type) or decision.is_admin else []


def _kept_role_grants(decision: Decision, args: Any, value: Any) -> Any:
    if not is_own_principal(decision, args.request.principal_name, args.request.principal_type) and not decision.is_admin:
        value.principalGrants = []
    return value


def _kept_privileges(decision: Decision, _args: Any, value: list[Any]) -> list[Any]:
    """Keep what was granted to the caller, and what was granted on objects that are the caller's own."""
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


def _grants(path: str) -> dict[str, Any]:
    """Return what the entries of methods that grant the privileges at a path have in common: the caller is who grants them."""

    def fill(decision: Decision, args: Any) -> None:
        for each in getattr(get(args, path), "privileges", None) or ():
            if each is not None and each.grantInfo is not None:
                put_caller(decision, each.grantInfo, "grantor", "grantorType")

    return {"operation": "GRANT_PRIVILEGE", "renews": True, "fill": fill}


def _roles(path: str = "") -> dict[str, Any]:
    """Return what the entries of methods that grant a role have in common: the caller is who grants it."""

    def fill(decision: Decision, args: Any) -> None:
        holder = get(args, path) if path else args
        if holder is not None:
            put_caller(decision, holder, "grantor", "grantorType")

    return {"operation": "GRANT_ROLE", "renews": True, "fill": fill}


_OF_PRINCIPAL = "what the caller, its groups and roles hold"

_BY_LOGIN = needs(found_by("a login that may: see the settings `proxy_users` and `delegation_token_store_users`", lambda _call, _args: ()))
"""Of methods that look at the login themselves."""

ENTRIES: dict[str, MethodRule] = {
    "create_role": needs(server(CREATE), operation="CREATEROLE", renews=True),
    "drop_role": needs(server(), operation="DROPROLE", renews=True),
    "get_role_names": MethodRule(keep=_kept_role_names, shows="roles that the caller holds"),
    "list_roles": MethodRule(keep=_kept_roles, shows=_OF_PRINCIPAL),
    "grant_role": needs(_role("role_name"), **_roles()),
    "revoke_role": needs(_role("role_name"), operation="REVOKE_ROLE", renews=True),
    "grant_revoke_role": needs(_role("request.roleName"), **_roles("request")),
    "get_principals_in_role": needs(_role("request.roleName"), operation="SHOW_ROLE_PRINCIPALS"),
    "get_role_grants_for_principal": MethodRule(keep=_kept_role_grants, shows=_OF_PRINCIPAL),
    "grant_privileges": needs(
        found_by("ownership, or the privilege with the option to grant it", _granted("privileges")), **_grants("privileges")
    ),
    "revoke_privileges": needs(found_by("ownership of the object", _revoked("privileges")), operation="REVOKE_PRIVILEGE", renews=True),
    "grant_revoke_privileges": needs(
        found_by("to grant: ownership, or the privilege with the option to grant it; to revoke: ownership", _grant_or_revoke),
        **_grants("request.privileges"),
    ),
    "refresh_privileges": needs(server(), operation="GRANT_PRIVILEGE", renews=True),
    "list_privileges": MethodRule(keep=_kept_privileges, shows=f"{_OF_PRINCIPAL}, and what anybody holds on an object of the caller's"),
    "get_privilege_set": needs(found_by("any privilege on the object, the role `admin` for another user", _privilege_set)),
    "create_type": ADMIN,
    "drop_type": ADMIN,
    **dict.fromkeys(resource_plans.METHODS, ADMIN),
    **dict.fromkeys(
        (
            "set_ugi",
            "get_config_value",
            "getMetaConf",
            "setMetaConf",
            "get_metastore_db_uuid",
            "flushCache",
            "cm_recycle",
            "get_file_metadata",
            "get_file_metadata_by_expr",
            "put_file_metadata",
            "clear_file_metadata",
            "cache_file_metadata",
            "aliveSince",
            "getCounter",
            "getCounters",
            "getCpuProfile",
            "getName",
            "getOption",
            "getOptions",
            "getStatus",
            "getStatusDetails",
            "getVersion",
            "reinitialize",
            "shutdown",
        ),
        OPEN,
    ),
    "setOption": ADMIN,
    **dict.fromkeys(
        (
            "get_delegation_token",
            "renew_delegation_token",
            "cancel_delegation_token",
            "add_token",
            "get_token",
            "remove_token",
            "get_all_token_identifiers",
            "add_master_key",
            "update_master_key",
            "remove_master_key",
            "get_master_keys",
        ),
        _BY_LOGIN,
    ),
}
