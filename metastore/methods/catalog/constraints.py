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
from metastore.methods.forms import unpack
from metastore.methods.forms.entry import Handler
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


METHODS: dict[str, Handler] = {
    "add_primary_key": _add("primaryKeyCols"),
    "add_foreign_key": _add("foreignKeyCols"),
    "add_unique_constraint": _add("uniqueConstraintCols"),
    "add_not_null_constraint": _add("notNullConstraintCols"),
    "add_default_constraint": _add("defaultConstraintCols"),
    "add_check_constraint": _add("checkConstraintCols"),
    "drop_constraint": undeclared(_drop),
    "get_primary_keys": _get(constraints.PRIMARY, PrimaryKeysResponse, "primaryKeys"),
    "get_foreign_keys": _get_foreign_keys,
    "get_unique_constraints": _get(constraints.UNIQUE, UniqueConstraintsResponse, "uniqueConstraints"),
    "get_not_null_constraints": _get(constraints.NOT_NULL, NotNullConstraintsResponse, "notNullConstraints"),
    "get_default_constraints": _get(constraints.DEFAULT, DefaultConstraintsResponse, "defaultConstraints"),
    "get_check_constraints": _get(constraints.CHECK, CheckConstraintsResponse, "checkConstraints"),
    "get_all_table_constraints": _get_all,
}
