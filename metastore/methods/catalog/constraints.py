"""Methods of constraints."""

from __future__ import annotations

from typing import Any

from metastore.idl import (
    AllTableConstraintsResponse,
    CheckConstraintsResponse,
    DefaultConstraintsResponse,
    ForeignKeysResponse,
    NotNullConstraintsResponse,
    PrimaryKeysResponse,
    UniqueConstraintsResponse,
)
from metastore.methods.catalog import constraint_rules as rules
from metastore.methods.forms import unpack
from metastore.methods.forms.entry import changes, reads
from metastore.methods.forms.rules import ALTER, SEE, Handler, needs, on_table
from metastore.methods.forms.undeclared import undeclared
from metastore.rules.names import normalize
from metastore.service.call.context import Call
from metastore.service.catalog import constraints


def _add(field: str) -> Handler:
    return undeclared(lambda call, args: constraints.add(call, getattr(args.req, field) or []))


def _get(kind: str, response: type[Any], field: str) -> Handler:
    def answer(call: Call, args: Any) -> Any:
        request = args.request
        name = unpack.table(call, request.db_name, request.tbl_name, request.catName)
        return response(**{field: constraints.get(call, name, kind)})

    return answer


def _get_foreign_keys(call: Call, args: Any) -> ForeignKeysResponse:
    request = args.request
    catalog, parent = unpack.database(call, request.parent_db_name, request.catName)
    foreign_catalog, foreign = unpack.database(call, request.foreign_db_name, request.catName)
    tables = [None if name is None else normalize(name) for name in (request.parent_tbl_name, request.foreign_tbl_name)]
    found = constraints.get_foreign_keys(
        call, foreign_catalog if foreign is not None else catalog, (parent, tables[0]), (foreign, tables[1])
    )
    return ForeignKeysResponse(foreignKeys=found)


def _get_all(call: Call, args: Any) -> AllTableConstraintsResponse:
    request = args.request
    found = constraints.get_all(call, unpack.table(call, request.dbName, request.tblName, request.catName))
    return AllTableConstraintsResponse(allTableConstraints=found)


def _drop(call: Call, args: Any) -> None:
    request = args.req
    constraints.drop(call, unpack.table(call, request.dbname, request.tablename, request.catName), request.constraintname)


METHODS = (
    changes("add_primary_key", _add("primaryKeyCols"), needs(rules.constrained("primaryKeyCols"), operation="ALTERTABLE_ADDCONSTRAINT")),
    changes(
        "add_foreign_key",
        _add("foreignKeyCols"),
        needs(rules.constrained("foreignKeyCols", foreign=True), operation="ALTERTABLE_ADDCONSTRAINT"),
    ),
    changes(
        "add_unique_constraint",
        _add("uniqueConstraintCols"),
        needs(rules.constrained("uniqueConstraintCols"), operation="ALTERTABLE_ADDCONSTRAINT"),
    ),
    changes(
        "add_not_null_constraint",
        _add("notNullConstraintCols"),
        needs(rules.constrained("notNullConstraintCols"), operation="ALTERTABLE_ADDCONSTRAINT"),
    ),
    changes(
        "add_default_constraint",
        _add("defaultConstraintCols"),
        needs(rules.constrained("defaultConstraintCols"), operation="ALTERTABLE_ADDCONSTRAINT"),
    ),
    changes(
        "add_check_constraint",
        _add("checkConstraintCols"),
        needs(rules.constrained("checkConstraintCols"), operation="ALTERTABLE_ADDCONSTRAINT"),
    ),
    changes(
        "drop_constraint",
        undeclared(_drop),
        needs(on_table(ALTER, "req.dbname", "req.tablename", "req.catName"), operation="ALTERTABLE_DROPCONSTRAINT"),
    ),
    reads("get_primary_keys", _get(constraints.PRIMARY, PrimaryKeysResponse, "primaryKeys"), rules.SEES_CONSTRAINTS, replica=True),
    reads(
        "get_foreign_keys",
        _get_foreign_keys,
        needs(
            on_table(SEE, "request.parent_db_name", "request.parent_tbl_name", "request.catName"),
            on_table(SEE, "request.foreign_db_name", "request.foreign_tbl_name", "request.catName"),
            operation="DESCTABLE",
            keep=rules.kept_foreign_keys,
            shows="keys between tables that are both shown",
        ),
        replica=True,
    ),
    reads(
        "get_unique_constraints",
        _get(constraints.UNIQUE, UniqueConstraintsResponse, "uniqueConstraints"),
        rules.SEES_CONSTRAINTS,
        replica=True,
    ),
    reads(
        "get_not_null_constraints",
        _get(constraints.NOT_NULL, NotNullConstraintsResponse, "notNullConstraints"),
        rules.SEES_CONSTRAINTS,
        replica=True,
    ),
    reads(
        "get_default_constraints",
        _get(constraints.DEFAULT, DefaultConstraintsResponse, "defaultConstraints"),
        rules.SEES_CONSTRAINTS,
        replica=True,
    ),
    reads(
        "get_check_constraints", _get(constraints.CHECK, CheckConstraintsResponse, "checkConstraints"), rules.SEES_CONSTRAINTS, replica=True
    ),
    reads(
        "get_all_table_constraints",
        _get_all,
        needs(
            on_table(SEE, "request.dbName", "request.tblName", "request.catName"), operation="DESCTABLE", keep=rules.kept_all_constraints
        ),
        replica=True,
    ),
)
