"""Ask an Open Policy Agent: the rules of Bosch's authorizer for Hive, and one more that answers many questions together.

`database_allow`, `table_allow` and `user_allow` below the URL get `identity`, `resources` and `privileges` as that authorizer sends them,
and return true or false. `batch_allow`, if the policy has it, gets `identity` and a list of such questions as `asked`. It returns the
positions of the allowed ones. Each question also has `access`, its form in the metastore's own words.
"""

from __future__ import annotations

import time
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

BATCH = "batch_allow"
LOOK_AGAIN = 60.0
"""Seconds after which a policy that has no rule for batches is asked for it again."""
PRIVILEGES = {
    SEE: "SELECT", SELECT: "SELECT", INSERT: "INSERT", UPDATE: "ALTER_DATA", DELETE: "DELETE", CREATE: "CREATE", ALTER: "ALTER_METADATA",
    DROP: "DROP",
}  # fmt: skip
"""Hive's words for the kinds of access; ALL where it has none."""
PATHS = {TABLE: "table_allow", DATABASE: "database_allow", FUNCTION: "database_allow"}


def _input(who: Who, access: Access) -> dict[str, Any]:
    return {"identity": _identity(who), **_question(access)}


def _identity(who: Who) -> dict[str, Any]:
    return {"username": who.user, "groups": list(who.groups)}


def _question(access: Access) -> dict[str, Any]:
    owner = access.owner.name if access.owner is not None else None
    database = table = None
    if access.kind == TABLE:
        table = {"catName": access.catalog, "dbName": access.database, "tableName": access.name, "owner": owner}
    elif access.kind in (DATABASE, FUNCTION):
        database = {"catalogName": access.catalog, "name": access.database, "ownerName": owner}
    wanted = [{"priv": PRIVILEGES.get(access.privilege, "ALL")}]
    reads = access.privilege in (SEE, SELECT) and not access.grant
    return {
        "resources": {"database": database, "table": table, "partition": None, "columns": list(access.columns) or None},
        "privileges": {
            "readRequiredPriv": wanted if reads else [],
            "writeRequiredPriv": [] if reads else wanted,
            "inputs": None,
            "outputs": [{"type": "DFS_URI", "name": access.location}] if access.kind == LOCATION else None,
        },
        "access": {
            "privilege": access.privilege, "kind": access.kind, "catalog": access.catalog, "database": access.database, "name": access.name,
            "owner": owner, "location": access.location, "grant": access.grant,
        },
    }  # fmt: skip


class Opa(Asking):
    """Asks the rules below the setting `authorization_url`, such as `http://opa:8181/v1/data/hms`."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self._single_until = 0.0

    def ask(self, who: Who, asked: Sequence[Access]) -> list[bool]:
        """Ask about several accesses together if the policy has the rule for it, else about each. MetaError."""
        if len(asked) > 1 and time.monotonic() >= self._single_until:
            value = self.post(BATCH, {"input": {"identity": _identity(who), "asked": [_question(each) for each in asked]}})
            if "result" in value:
                return self._batch(value["result"], len(asked))
            self._single_until = time.monotonic() + LOOK_AGAIN
        return [self._one(who, each) for each in asked]

    def _one(self, who: Who, access: Access) -> bool:
        path = PATHS.get(access.kind, "user_allow")
        # A rule that is not defined for an input allows nothing, as in Rego itself.
        return self.post(path, {"input": _input(who, access)}).get("result") is True

    def _batch(self, allowed: Any, number: int) -> list[bool]:
        if not isinstance(allowed, list) or not all(type(each) is int and 0 <= each < number for each in allowed):
            raise self.unanswered(BATCH, f"has to return the positions of the allowed accesses, and returned {str(allowed)[:200]}")
        chosen = set(allowed)
        return [place in chosen for place in range(number)]
