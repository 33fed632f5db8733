"""Entries of the methods of constraints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from metastore.methods.catalog.table_rules import parents
from metastore.methods.forms.rules import ALTER, SEE, TABLE, Ask, Decision, MethodRule, Want, get, hiding, named, needs, table
from metastore.service.call.context import Call


def _constrained(field: str, foreign: bool = False) -> Ask:
    def find(call: Call, args: Any) -> Iterator[Want]:
        paths = ("fktable_db", "fktable_name") if foreign else ("table_db", "table_name")
        structs = get(args, f"req.{field}") or ()
        for each in structs:
            found = named(call, getattr(each, paths[0]), getattr(each, paths[1]), each.catName)
            if found is not None:
                yield Want((ALTER,), TABLE, *found, hide=hiding(each, *paths))
                if foreign:
                    yield from parents(call, [each], found.catalog)

    return Ask("ownership or ALTER on the table" + (", any privilege on the one it refers to" if foreign else ""), find)


def _kept_foreign_keys(decision: Decision, _args: Any, value: Any) -> Any:
    """Keep keys between tables that may both be shown."""
    kept, call = [], decision.call
    for key in value.foreignKeys or ():
        ends = [named(call, key.pktable_db, key.pktable_name, key.catName), named(call, key.fktable_db, key.fktable_name, key.catName)]
        if all(end is not None and end.table in decision.tables(end.catalog, end.database, [end.table]) for end in ends):
            kept.append(key)
    value.foreignKeys = kept
    return value


def _kept_all_constraints(decision: Decision, args: Any, value: Any) -> Any:
    if value.allTableConstraints is not None and value.allTableConstraints.foreignKeys:
        _kept_foreign_keys(decision, args, value.allTableConstraints)
    return value


ENTRIES: dict[str, MethodRule] = {
    "add_primary_key": needs(_constrained("primaryKeyCols"), operation="ALTERTABLE_ADDCONSTRAINT"),
    "add_foreign_key": needs(_constrained("foreignKeyCols", foreign=True), operation="ALTERTABLE_ADDCONSTRAINT"),
    "add_unique_constraint": needs(_constrained("uniqueConstraintCols"), operation="ALTERTABLE_ADDCONSTRAINT"),
    "add_not_null_constraint": needs(_constrained("notNullConstraintCols"), operation="ALTERTABLE_ADDCONSTRAINT"),
    "add_default_constraint": needs(_constrained("defaultConstraintCols"), operation="ALTERTABLE_ADDCONSTRAINT"),
    "add_check_constraint": needs(_constrained("checkConstraintCols"), operation="ALTERTABLE_ADDCONSTRAINT"),
    "drop_constraint": needs(table(ALTER, "req.dbname", "req.tablename", "req.catName"), operation="ALTERTABLE_DROPCONSTRAINT"),
    **dict.fromkeys(
        (
            "get_primary_keys",
            "get_unique_constraints",
            "get_not_null_constraints",
            "get_default_constraints",
            "get_check_constraints",
        ),
        needs(table(SEE, "request.db_name", "request.tbl_name", "request.catName"), operation="DESCTABLE"),
    ),
    "get_foreign_keys": needs(
        table(SEE, "request.parent_db_name", "request.parent_tbl_name", "request.catName"),
        table(SEE, "request.foreign_db_name", "request.foreign_tbl_name", "request.catName"),
        operation="DESCTABLE",
        keep=_kept_foreign_keys,
        shows="keys between tables that are both shown",
    ),
    "get_all_table_constraints": needs(
        table(SEE, "request.dbName", "request.tblName", "request.catName"), operation="DESCTABLE", keep=_kept_all_constraints
    ),
}
