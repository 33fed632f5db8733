"""Ask Apache Ranger's policy decision point (PDP), which evaluates the policies of a Hive service and writes its own audit.

Source: Ranger's `pdp` (RangerPdpREST, `POST /authz/v1/authorizeMulti`) and the service definition of Hive.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from metastore.config import Config
from metastore.service.authorization.asking import Asking
from metastore.service.authorizer import (
    ALTER,
    CREATE,
    DATABASE,
    DELETE,
    DROP,
    FUNCTION,
    INSERT,
    LOCATION,
    SEE,
    SELECT,
    TABLE,
    UPDATE,
    Access,
    Who,
)

PERMISSIONS = {
    SEE: "_any", SELECT: "select", INSERT: "update", UPDATE: "update", DELETE: "update", CREATE: "create", ALTER: "alter", DROP: "drop",
}  # fmt: skip
"""Ranger's words for the kinds of access; `all` where it has none."""
PATH = "authz/v1/authorizeMulti"


def _resource(access: Access) -> dict[str, Any]:
    """Return the resource as Ranger names it. Backslashes escape there; names of tables and databases have none, and no slash."""
    names = {
        TABLE: f"table:{access.database}/{access.name}",
        DATABASE: f"database:{access.database}",
        FUNCTION: f"udf:{access.database}/{access.name}",
        LOCATION: "url:" + (access.location or "").replace("\\", "\\\\"),
    }
    resource: dict[str, Any] = {"name": names.get(access.kind, "global:*")}
    if access.owner is not None:
        resource["attributes"] = {"OWNER": access.owner.name}
    return resource


def _access(access: Access) -> dict[str, Any]:
    wanted = "write" if access.kind == LOCATION else "all" if access.grant else PERMISSIONS.get(access.privilege, "all")
    return {"resource": _resource(access), "permissions": [wanted]}


class Ranger(Asking):
    """Asks the PDP at the setting `authorization_url`, such as `http://ranger-pdp:6500`, by the policies of `ranger_service`."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self._context = {"serviceType": "hive", "serviceName": config.ranger_service}

    def ask(self, who: Who, asked: Sequence[Access]) -> list[bool]:
        """Ask for all together. MetaError."""
        user = {"name": who.user or "", "groups": list(who.groups)}
        value = self.post(PATH, {"user": user, "accesses": [_access(each) for each in asked], "context": self._context})
        found = value.get("accesses")
        if not isinstance(found, list) or len(found) != len(asked):
            raise self.unanswered(PATH, f"was asked {len(asked)} questions and answered {str(value)[:200]}")
        return [isinstance(each, dict) and each.get("decision") == "ALLOW" for each in found]
