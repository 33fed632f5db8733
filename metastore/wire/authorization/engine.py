"""Entries of the methods of what engines keep here for themselves."""

from __future__ import annotations

from typing import Any

from metastore.wire.authorization.rules import ADMIN, Decision, Rule


def _kept_for_admin(decision: Decision, _args: Any, value: list[str]) -> list[str]:
    return value if decision.is_admin else []


ENTRIES: dict[str, Rule] = {
    **dict.fromkeys(("create_dataconnector_req", "get_dataconnector_req", "alter_dataconnector_req", "drop_dataconnector_req"), ADMIN),
    "get_dataconnectors": Rule(keep=_kept_for_admin, shows="all to the role `admin`, none to others"),
}
