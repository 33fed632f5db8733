"""Methods of the schema registry."""

from __future__ import annotations

from typing import Any

from metastore.idl import FindSchemasByColsResp
from metastore.methods.forms import unpack
from metastore.methods.forms.entry import Handler
from metastore.service.call.context import Call
from metastore.service.engines import registry


def _alter_ischema(call: Call, args: Any) -> None:
    request = unpack.required(call, args.rqst, "rqst")
    registry.alter_schema(call, request.name, request.newSchema)


def _get_schemas_by_cols(call: Call, args: Any) -> FindSchemasByColsResp:
    request = unpack.required(call, args.rqst, "rqst")
    return FindSchemasByColsResp(schemaVersions=registry.find_versions(call, request.colName, request.colNamespace, request.type))


def _map_schema_version_to_serde(call: Call, args: Any) -> None:
    request = unpack.required(call, args.rqst, "rqst")
    registry.map_version_to_serde(call, request.schemaVersion, request.serdeName)


def _set_schema_version_state(call: Call, args: Any) -> None:
    request = unpack.required(call, args.rqst, "rqst")
    registry.set_version_state(call, request.schemaVersion, request.state)


METHODS: dict[str, Handler] = {
    "create_ischema": lambda call, args: registry.create_schema(call, args.schema),
    "alter_ischema": _alter_ischema,
    "get_ischema": lambda call, args: registry.get_schema(call, args.name),
    "drop_ischema": lambda call, args: registry.drop_schema(call, args.name),
    "add_schema_version": lambda call, args: registry.add_version(call, args.schemaVersion),
    "get_schema_version": lambda call, args: registry.get_version(call, args.schemaVersion),
    "get_schema_latest_version": lambda call, args: registry.get_latest_version(call, args.schemaName),
    "get_schema_all_versions": lambda call, args: registry.get_versions(call, args.schemaName),
    "drop_schema_version": lambda call, args: registry.drop_version(call, args.schemaVersion),
    "get_schemas_by_cols": _get_schemas_by_cols,
    "map_schema_version_to_serde": _map_schema_version_to_serde,
    "set_schema_version_state": _set_schema_version_state,
    "add_serde": lambda call, args: registry.add_serde(call, args.serde),
    "get_serde": lambda call, args: registry.get_serde(call, unpack.required(call, args.rqst, "rqst").serdeName),
}
