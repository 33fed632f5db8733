"""Entries of the methods of constraints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from metastore.methods.catalog.table_rules import parents
from metastore.methods.forms.rules import ALTER, SEE, TABLE, Ask, Decision, Want, get, hiding, named, needs, on_table
from metastore.service.call.context import Call


def constrained(field: str, foreign: bool = False) -> Ask:
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


def kept_foreign_keys(decision: Decision, _args: Any, value: Any) -> Any:
    """Keep foreign keys between tables that may both be shown."""
    kept, call = [], decision.call
    for key in value.foreignKeys or ():
        ends = [named(call, key.pktable_db, key.pktable_name, key.catName), named(call, key.fktable_db, key.fktable_name, key.catName)]
        if all(end is not None and end.table in decision.tables(end.catalog, end.database, [end.table]) for end in ends):
            kept.append(key)
    value.foreignKeys = kept
    return value


def kept_all_constraints(decision: Decision, args: Any, value: Any) -> Any:
    if value.allTableConstraints is not None and value.allTableConstraints.foreignKeys:
        kept_foreign_keys(decision, args, value.allTableConstraints)
    return value


SEES_CONSTRAINTS = needs(on_table(SEE, "request.db_name", "request.tbl_name", "request.catName"), operation="DESCTABLE")
