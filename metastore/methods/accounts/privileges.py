"""Methods of roles and privileges."""

from __future__ import annotations

from typing import Any

from metastore.errors import MetaError
from metastore.idl import (
    GetPrincipalsInRoleResponse,
    GetRoleGrantsForPrincipalResponse,
    GrantRevokePrivilegeResponse,
    GrantRevokeRoleResponse,
    GrantRevokeType,
)
from metastore.methods.accounts import privilege_rules as rules
from metastore.methods.forms.entry import changes, reads
from metastore.methods.forms.rules import CREATE, MethodRule, found_by, needs, on_server
from metastore.service.accounts import roles
from metastore.service.call.context import Call
from metastore.service.catalog import privileges


def _create_role(call: Call, args: Any) -> bool:
    roles.create_role(call, args.role)
    return True


def _drop_role(call: Call, args: Any) -> bool:
    roles.drop_role(call, args.role_name)
    return True


def _grant_role(call: Call, args: Any) -> bool:
    roles.grant_role(
        call, args.role_name, args.principal_name, args.principal_type, args.grantor, args.grantorType, option=bool(args.grant_option)
    )
    return True


def _revoke_role(call: Call, args: Any) -> bool:
    roles.revoke_role(call, args.role_name, args.principal_name, args.principal_type)
    return True


def _grants(request: Any) -> bool:
    """Return whether a request grants, False if it revokes. MetaError for anything else."""
    if request.requestType not in (GrantRevokeType.GRANT, GrantRevokeType.REVOKE):
        raise MetaError(f"Unknown request type {request.requestType}: send GRANT or REVOKE")
    return bool(request.requestType == GrantRevokeType.GRANT)


def _grant_revoke_role(call: Call, args: Any) -> GrantRevokeRoleResponse:
    request = args.request
    if _grants(request):
        roles.grant_role(
            call,
            request.roleName,
            request.principalName,
            request.principalType,
            request.grantor,
            request.grantorType,
            option=bool(request.grantOption),
        )
    else:
        roles.revoke_role(call, request.roleName, request.principalName, request.principalType, option_only=bool(request.grantOption))
    return GrantRevokeRoleResponse(success=True)


def _get_principals_in_role(call: Call, args: Any) -> GetPrincipalsInRoleResponse:
    return GetPrincipalsInRoleResponse(principalGrants=roles.get_principals(call, args.request.roleName))


def _get_role_grants_for_principal(call: Call, args: Any) -> GetRoleGrantsForPrincipalResponse:
    request = args.request
    found = roles.get_role_grants(call, request.principal_name, request.principal_type)
    return GetRoleGrantsForPrincipalResponse(principalGrants=found)


def _grant_privileges(call: Call, args: Any) -> bool:
    privileges.grant(call, args.privileges)
    return True


def _revoke_privileges(call: Call, args: Any) -> bool:
    privileges.revoke(call, args.privileges)
    return True


def _grant_revoke_privileges(call: Call, args: Any) -> GrantRevokePrivilegeResponse:
    request = args.request
    if _grants(request):
        privileges.grant(call, request.privileges)
    else:
        privileges.revoke(call, request.privileges, option_only=bool(request.revokeGrantOption))
    return GrantRevokePrivilegeResponse(success=True)


def _refresh_privileges(call: Call, args: Any) -> GrantRevokePrivilegeResponse:
    bag = args.grantRequest.privileges if args.grantRequest is not None else None
    privileges.refresh(call, args.objToRefresh, args.authorizer, bag)
    return GrantRevokePrivilegeResponse(success=True)


METHODS = (
    changes("create_role", _create_role, needs(on_server(CREATE), operation="CREATEROLE", renews=True)),
    changes("drop_role", _drop_role, needs(on_server(), operation="DROPROLE", renews=True)),
    reads(
        "get_role_names",
        lambda call, args: roles.get_role_names(call),
        MethodRule(keep=rules.kept_role_names, shows="roles that the caller holds"),
    ),
    reads(
        "list_roles",
        lambda call, args: roles.list_roles(call, args.principal_name, args.principal_type),
        MethodRule(keep=rules.kept_roles, shows=rules.OF_PRINCIPAL),
    ),
    changes("grant_role", _grant_role, needs(rules.gives_role("role_name"), **rules.role_granted_as())),
    changes("revoke_role", _revoke_role, needs(rules.gives_role("role_name"), operation="REVOKE_ROLE", renews=True)),
    changes("grant_revoke_role", _grant_revoke_role, needs(rules.gives_role("request.roleName"), **rules.role_granted_as("request"))),
    reads("get_principals_in_role", _get_principals_in_role, needs(rules.gives_role("request.roleName"), operation="SHOW_ROLE_PRINCIPALS")),
    reads(
        "get_role_grants_for_principal", _get_role_grants_for_principal, MethodRule(keep=rules.kept_role_grants, shows=rules.OF_PRINCIPAL)
    ),
    changes(
        "grant_privileges",
        _grant_privileges,
        needs(
            found_by("ownership, or the privilege with the option to grant it", rules.grants_listed("privileges")),
            **rules.granted_as("privileges"),
        ),
    ),
    changes(
        "revoke_privileges",
        _revoke_privileges,
        needs(found_by("ownership of the object", rules.revokes_listed("privileges")), operation="REVOKE_PRIVILEGE", renews=True),
    ),
    changes(
        "grant_revoke_privileges",
        _grant_revoke_privileges,
        needs(
            found_by("to grant: ownership, or the privilege with the option to grant it; to revoke: ownership", rules.grant_or_revoke),
            **rules.granted_as("request.privileges"),
        ),
    ),
    changes("refresh_privileges", _refresh_privileges, needs(on_server(), operation="GRANT_PRIVILEGE", renews=True)),
    reads(
        "list_privileges",
        lambda call, args: privileges.list_privileges(call, args.principal_name, args.principal_type, args.hiveObject),
        MethodRule(keep=rules.kept_privileges, shows=f"{rules.OF_PRINCIPAL}, and anybody's grants on an object of the caller's"),
    ),
    reads(
        "get_privilege_set",
        lambda call, args: privileges.get_privilege_set(call, args.hiveObject, args.user_name, args.group_names),
        needs(found_by("any privilege on the object, the role `admin` for another user", rules.privilege_set)),
    ),
)
