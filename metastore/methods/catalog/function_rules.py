"""Entries of the methods of functions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from metastore.idl import Function
from metastore.methods.catalog.table_rules import some
from metastore.methods.forms.rules import (
    ALTER,
    CREATE,
    DATABASE,
    FUNCTION,
    SEE,
    Ask,
    Decision,
    Want,
    database_name_of,
    get,
    hiding,
    named,
)
from metastore.service.authorizer import Access, owner_of
from metastore.service.call.context import Call


def _kept_functions(decision: Decision, functions: Sequence[Function], catalog: str | None) -> list[Function]:
    asked = [
        Access(SEE, FUNCTION, each.catName or catalog, each.dbName, each.functionName, owner=owner_of(each.ownerName, each.ownerType))
        for each in functions
    ]
    return [each for each, ok in zip(functions, decision.allowed(asked), strict=True) if ok]


def kept_all_functions(decision: Decision, _args: Any, value: Any) -> Any:
    value.functions = _kept_functions(decision, value.functions, decision.call.config.default_catalog)
    return value


def creates_function(path: str) -> Ask:
    def find(call: Call, args: Any) -> Iterator[Want]:
        new = get(args, path)
        where, name = database_name_of(call, new.dbName, new.catName) if new is not None else (None, None)
        if name is not None:
            places = some(*(each.uri for each in new.resourceUris or () if each is not None))
            yield Want((CREATE,), DATABASE, where, name, hide=hiding(args, f"{path}.dbName", None), locations=places)

    return Ask("CREATE on the database, and the right to the locations of its resources", find)


def alters_function(call: Call, args: Any) -> Iterator[Want]:
    found, new = named(call, args.dbName, args.funcName), args.newFunc
    if found is not None and new is not None:
        owner = (new.ownerName, new.ownerType)
        yield Want((ALTER,), FUNCTION, *found, hide=hiding(args, "dbName", "funcName"), new_owner=owner)
