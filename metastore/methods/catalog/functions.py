"""Methods of functions."""

from __future__ import annotations

from typing import Any

from metastore.idl import GetAllFunctionsResponse, GetFunctionsResponse
from metastore.methods.catalog import function_rules as rules
from metastore.methods.catalog.table_rules import owned
from metastore.methods.forms.entry import changes, reads
from metastore.methods.forms.rules import DROP, SEE, MethodRule, found_by, needs, on_database, on_function
from metastore.methods.forms.undeclared import undeclared
from metastore.service.call.context import Call
from metastore.service.call.releases import Sign
from metastore.service.catalog import functions


def _get_functions(call: Call, args: Any) -> list[str]:
    return [function.functionName for function in functions.get_functions(call, args.dbName, args.pattern)]


def _get_functions_req(call: Call, args: Any) -> GetFunctionsResponse:
    request = args.request
    found = functions.get_functions(call, request.dbName, request.pattern, request.catalogName)
    if request.returnNames is not False:
        return GetFunctionsResponse(function_names=[function.functionName for function in found])
    return GetFunctionsResponse(functions=found)


METHODS = (
    changes(
        "create_function",
        lambda call, args: functions.create_function(call, args.func),
        needs(rules.creates_function("func"), operation="CREATEFUNCTION", fill=owned("func")),
    ),
    reads(
        "get_function",
        lambda call, args: functions.get_function(call, args.dbName, args.funcName),
        needs(on_function(SEE, "dbName", "funcName"), operation="DESCFUNCTION"),
        replica=True,
    ),
    reads(
        "get_functions",
        _get_functions,
        needs(on_database(SEE, "dbName"), operation="SHOWFUNCTIONS", shows="functions of a database that is shown"),
        replica=True,
    ),
    reads(
        "get_functions_req",
        _get_functions_req,
        needs(
            on_database(SEE, "request.dbName", "request.catalogName"),
            operation="SHOWFUNCTIONS",
            shows="functions of a database that is shown",
        ),
        replica=True,
        sign=Sign.SINCE_4,
    ),
    reads(
        "get_all_functions",
        lambda call, args: GetAllFunctionsResponse(functions=functions.get_all_functions(call)),
        MethodRule(operation="SHOWFUNCTIONS", keep=rules.kept_all_functions, shows="functions of databases that are shown"),
        replica=True,
    ),
    changes(
        "alter_function",
        undeclared(lambda call, args: functions.alter_function(call, args.dbName, args.funcName, args.newFunc), to_hive_3=True),
        needs(
            found_by("ownership or ALTER on the function, ownership for a new owner", rules.alters_function),
            rules.creates_function("newFunc"),
            operation="CREATEFUNCTION",
        ),
    ),
    changes(
        "drop_function",
        lambda call, args: functions.drop_function(call, args.dbName, args.funcName),
        needs(on_function(DROP, "dbName", "funcName"), operation="DROPFUNCTION"),
    ),
)
