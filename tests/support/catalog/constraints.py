"""Constraints of a table, declared as Hive declares them."""

from __future__ import annotations

from collections.abc import Mapping

from metastore.client import Client
from metastore.idl import (
    AddCheckConstraintRequest,
    AddDefaultConstraintRequest,
    AddNotNullConstraintRequest,
    SQLCheckConstraint,
    SQLDefaultConstraint,
    SQLNotNullConstraint,
)


def constrain(
    client: Client,
    table: str,
    *,
    not_null: Mapping[str, str] | None = None,
    checks: Mapping[str, str] | None = None,
    defaults: Mapping[str, str] | None = None,
    enable: bool = True,
) -> None:
    """Declare constraints of `database.table`: columns by constraint, expressions by constraint, defaults by column."""
    database, name = table.split(".")
    common = {"catName": "hive", "table_db": database, "table_name": name, "enable_cstr": enable, "validate_cstr": False, "rely_cstr": True}
    if not_null:
        columns = [SQLNotNullConstraint(column_name=column, nn_name=key, **common) for key, column in not_null.items()]
        client.add_not_null_constraint(AddNotNullConstraintRequest(notNullConstraintCols=columns))
    if checks:
        held = [SQLCheckConstraint(check_expression=text, dc_name=key, **common) for key, text in checks.items()]
        client.add_check_constraint(AddCheckConstraintRequest(checkConstraintCols=held))
    if defaults:
        given = [
            SQLDefaultConstraint(column_name=column, default_value=text, dc_name=f"of_{column}", **common)
            for column, text in defaults.items()
        ]
        client.add_default_constraint(AddDefaultConstraintRequest(defaultConstraintCols=given))
