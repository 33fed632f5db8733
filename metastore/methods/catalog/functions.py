"""Methods of functions."""

from __future__ import annotations

from typing import Any

from metastore.idl import GetAllFunctionsResponse, GetFunctionsResponse
from metastore.methods.forms.entry import Handler
from metastore.methods.forms.undeclared import undeclared
from metastore.service.call.context import Call
from metastore.service.catalog import functions


def _get_functions(call: Call, args: Any) -> list[str]:
    return [function.functionName for function in functions.get_functions(call, args.dbName, args.pattern)]


def _get_functions_req(call: Call, args: Any) -> GetFunctionsResponse:
    request = args.request
    found = functions.get_functions(call, request.dbName, request.pattern, request.catalogName)
    if request.returnNames is not False:
        return GetFunctionsResponse(function_names=[function.functionName for function in found])
    return GetFunctionsResponse(functions=found)


METHODS: dict[str, Handler] = {
    "create_function": lambda call, args: functions.create_function(call, args.func),
    "get_function": lambda call, args: functions.get_function(call, args.dbName, args.funcName),
    "get_functions": _get_functions,
    "get_functions_req": _get_functions_req,
    "get_all_functions": lambda call, args: GetAllFunctionsResponse(functions=functions.get_all_functions(call)),
    "alter_function": undeclared(
        lambda call, args: functions.alter_function(call, args.dbName, args.funcName, args.newFunc), to_hive_3=True
    ),
    "drop_function": lambda call, args: functions.drop_function(call, args.dbName, args.funcName),
}
