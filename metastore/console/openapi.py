"""Describe `/api/v1` as OpenAPI 3.1, from the functions of the pages and actions and the dataclasses that they return."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import Any, Literal, get_args, get_origin, get_type_hints

from metastore.console.actions import ACTIONS, ActionResult
from metastore.console.pages.table import PAGES
from metastore.console.parameters import Parameter, declared, is_optional

_SIMPLE = {str: "string", int: "integer", float: "number", bool: "boolean"}
_ERROR = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}


def describe(version: str) -> dict[str, Any]:
    """Return the description."""
    schemas: dict[str, Any] = {"Error": _ERROR}
    paths: dict[str, Any] = {}
    for page in PAGES:
        path = re.sub(r":\w+}", "}", page.twin)
        parameters = [_parameter(each, path) for each in declared(page.look)]
        paths[path] = {"get": _operation(page.look, schemas, parameters=parameters, operationId=page.look.__name__)}
    for action in ACTIONS.values():
        body = {"required": True, "content": {"application/json": {"schema": _body(action.run)}}}
        operation = _operation(action.run, schemas, requestBody=body, operationId=action.name.replace("-", "_"), summary=action.button)
        paths[f"/actions/{action.name}"] = {"post": operation}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "metastore",
            "version": version,
            "description": "The pages of the web console as JSON, with the rights of the caller. "
            "Times are milliseconds since 1970 unless a field's description names another unit.",
        },
        "servers": [{"url": "/api/v1"}],
        "security": [{}, {"basic": []}, {"bearer": []}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"basic": {"type": "http", "scheme": "basic"}, "bearer": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(function: Callable[..., Any], schemas: dict[str, Any], **more: Any) -> dict[str, Any]:
    hint = get_type_hints(function)["return"]
    problem = {"description": "Why not", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}}
    return {
        "summary": (function.__doc__ or "").strip(),
        "responses": {
            "200": {"description": _summary(hint), "content": {"application/json": {"schema": _schema(hint, schemas)}}},
            "default": problem,
        },
        **more,
    }


def _summary(hint: Any) -> str:
    return (hint.__doc__ or "").strip().splitlines()[0] if hint is not ActionResult else "The result of the action"


def _parameter(each: Parameter, path: str) -> dict[str, Any]:
    in_path = f"{{{each.name}}}" in path
    return {"name": each.name, "in": "path" if in_path else "query", "required": in_path or each.required, "schema": _of_parameter(each)}


def _of_parameter(each: Parameter) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": _SIMPLE[each.type]}
    if each.choices:
        schema["enum"] = list(each.choices)
    if not each.required and each.default not in ("", 0):
        schema["default"] = each.default
    return schema


def _body(function: Callable[..., Any]) -> dict[str, Any]:
    found = declared(function)
    return {
        "type": "object",
        "properties": {each.name: _of_parameter(each) for each in found},
        "required": [each.name for each in found if each.required],
    }


def _schema(hint: Any, schemas: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a type; schemas of dataclasses are put into `schemas`, under their names."""
    if hint in _SIMPLE:
        return {"type": _SIMPLE[hint]}
    if is_optional(hint):
        return {"anyOf": [*(_schema(each, schemas) for each in get_args(hint) if each is not type(None)), {"type": "null"}]}
    origin = get_origin(hint)
    if origin is Literal:
        return {"enum": list(get_args(hint))}
    if origin is list:
        return {"type": "array", "items": _schema(get_args(hint)[0], schemas)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _schema(get_args(hint)[1], schemas)}
    if not dataclasses.is_dataclass(hint):
        raise TypeError(f"{hint} of a page has no schema: use a dataclass, a list, a dict by text, or a simple type")
    name, text = hint.__name__, (hint.__doc__ or "").strip()  # type: ignore[union-attr]  # a class
    if name in schemas and schemas[name].get("description") != text:
        raise TypeError(f"two dataclasses of pages are called {name}: give one another name")
    if name not in schemas:
        schemas[name] = {"description": text}
        hints = get_type_hints(hint)
        names = [each.name for each in dataclasses.fields(hint)]
        schemas[name] = {
            "type": "object",
            "description": text,
            "properties": {each: _schema(hints[each], schemas) for each in names},
            "required": names,
        }
    return {"$ref": f"#/components/schemas/{name}"}
