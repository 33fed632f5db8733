"""Constraints as the metastore is asked for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from metastore import idl
from metastore.spark.grammar.columns import Constraint


def constraints_of(database: str, table: str, constraints: Sequence[Constraint]) -> dict[str, list[object]]:
    """Return the constraints of a table by their fields of CreateTableRequest."""
    out: dict[str, list[object]] = {}
    for each in constraints:
        options: dict[str, Any] = {"enable_cstr": each.enable, "validate_cstr": each.validate, "rely_cstr": each.rely}
        place: dict[str, Any] = {"catName": "hive", "table_db": database, "table_name": table}
        column = each.columns[0] if each.columns else None
        if each.kind == "NOT NULL":
            out.setdefault("notNullConstraints", []).append(
                idl.SQLNotNullConstraint(column_name=column, nn_name=each.name, **place, **options)
            )
        elif each.kind == "DEFAULT":
            made = idl.SQLDefaultConstraint(column_name=column, default_value=each.text, dc_name=each.name, **place, **options)
            out.setdefault("defaultConstraints", []).append(made)
        elif each.kind == "CHECK":
            checks = idl.SQLCheckConstraint(column_name=column, check_expression=each.text, dc_name=each.name, **place, **options)
            out.setdefault("checkConstraints", []).append(checks)
        elif each.kind == "PRIMARY":
            out.setdefault("primaryKeys", []).extend(
                idl.SQLPrimaryKey(column_name=name, key_seq=number, pk_name=each.name, **place, **options)
                for number, name in enumerate(each.columns, 1)
            )
        elif each.kind == "UNIQUE":
            out.setdefault("uniqueConstraints", []).extend(
                idl.SQLUniqueConstraint(column_name=name, key_seq=number, uk_name=each.name, **place, **options)
                for number, name in enumerate(each.columns, 1)
            )
        else:
            out.setdefault("foreignKeys", []).extend(_foreign_keys(each, database, table, options))
    return out


def _foreign_keys(each: Constraint, database: str, table: str, options: dict[str, Any]) -> list[object]:
    there, columns_there = each.references
    return [
        idl.SQLForeignKey(
            catName="hive",
            pktable_db=there[-2] if len(there) > 1 else database,
            pktable_name=there[-1],
            pkcolumn_name=other,
            fktable_db=database,
            fktable_name=table,
            fkcolumn_name=name,
            key_seq=number,
            update_rule=0,
            delete_rule=0,
            fk_name=each.name,
            **options,
        )
        for number, (name, other) in enumerate(zip(each.columns, columns_there, strict=False), 1)
    ]
