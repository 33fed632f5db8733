"""Constraints of tables over Thrift: a constraint is one struct for each of its columns, which are joined into the body of a record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from metastore import idl
from metastore.transfer.records import Record
from metastore.transfer.thrift.calls import Calls

_METHODS = (
    ("primary", "get_primary_keys", "PrimaryKeysRequest", "primaryKeys", "pk_name"),
    ("foreign", "get_foreign_keys", "ForeignKeysRequest", "foreignKeys", "fk_name"),
    ("unique", "get_unique_constraints", "UniqueConstraintsRequest", "uniqueConstraints", "uk_name"),
    ("notnull", "get_not_null_constraints", "NotNullConstraintsRequest", "notNullConstraints", "nn_name"),
    ("default", "get_default_constraints", "DefaultConstraintsRequest", "defaultConstraints", "dc_name"),
    ("check", "get_check_constraints", "CheckConstraintsRequest", "checkConstraints", "dc_name"),
)
_VALUES = {"default": "default_value", "check": "check_expression"}
Names = tuple[str, str, str]


def of_table(calls: Calls, names: Names) -> list[Record]:
    """Return the constraints of a table."""
    catalog, database, table = names
    found: list[Record] = []
    for kind, method, request, field, name in _METHODS:
        if kind == "foreign":
            asked: Any = idl.ForeignKeysRequest(foreign_db_name=database, foreign_tbl_name=table, catName=catalog)
        elif kind == "primary":
            asked = idl.PrimaryKeysRequest(db_name=database, tbl_name=table, catName=catalog)
        else:
            asked = getattr(idl, request)(catName=catalog, db_name=database, tbl_name=table)
        reply = calls.find(method, asked)
        found += _records(kind, names, getattr(reply, field, None) or (), name)
    return found


def _records(kind: str, names: Names, structs: Any, field: str) -> Iterator[Record]:
    grouped: dict[str, list[Any]] = {}
    for struct in sorted(structs, key=lambda each: getattr(each, "key_seq", 0) or 0):
        grouped.setdefault(getattr(struct, field), []).append(struct)
    for name, group in grouped.items():
        first = group[0]
        body: dict[str, Any] = {
            "columns": [(each.fkcolumn_name if kind == "foreign" else each.column_name) for each in group],
            "enable": bool(first.enable_cstr),
            "validate": bool(first.validate_cstr),
            "rely": bool(first.rely_cstr),
        }
        parent = None
        if kind in _VALUES:
            body["value"] = getattr(first, _VALUES[kind])
        if kind == "foreign":
            body |= {"update_rule": first.update_rule or 0, "delete_rule": first.delete_rule or 0, "parent_key": first.pk_name}
            body["parent_columns"] = [each.pkcolumn_name for each in group]
            parent = [names[0], first.pktable_db, first.pktable_name]
        yield Record("constraint", (*names, name), {"kind": kind, "body": body, "parent_table": parent})
