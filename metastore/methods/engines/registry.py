"""Methods of the schema registry."""

from __future__ import annotations

from typing import Any

from metastore.idl import FindSchemasByColsResp
from metastore.methods.engines import engine_rules as rules
from metastore.methods.forms import unpack
from metastore.methods.forms.entry import changes, reads
from metastore.methods.forms.rules import ADMIN, ALTER, CREATE, OPEN, SEE, MethodRule, needs, on_database
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


METHODS = (
    changes(
        "create_ischema",
        lambda call, args: registry.create_schema(call, args.schema),
        needs(on_database(CREATE, "schema.dbName", "schema.catName"), operation="CREATEDATABASE"),
    ),
    changes("alter_ischema", _alter_ischema, needs(on_database(ALTER, "rqst.name.dbName", "rqst.name.catName"))),
    reads("get_ischema", lambda call, args: registry.get_schema(call, args.name), needs(on_database(SEE, "name.dbName", "name.catName"))),
    changes(
        "drop_ischema", lambda call, args: registry.drop_schema(call, args.name), needs(on_database(ALTER, "name.dbName", "name.catName"))
    ),
    changes(
        "add_schema_version",
        lambda call, args: registry.add_version(call, args.schemaVersion),
        needs(on_database(CREATE, "schemaVersion.schema.dbName", "schemaVersion.schema.catName")),
    ),
    reads(
        "get_schema_version",
        lambda call, args: registry.get_version(call, args.schemaVersion),
        needs(on_database(SEE, "schemaVersion.schema.dbName", "schemaVersion.schema.catName")),
    ),
    reads(
        "get_schema_latest_version",
        lambda call, args: registry.get_latest_version(call, args.schemaName),
        needs(on_database(SEE, "schemaName.dbName", "schemaName.catName")),
    ),
    reads(
        "get_schema_all_versions",
        lambda call, args: registry.get_versions(call, args.schemaName),
        needs(on_database(SEE, "schemaName.dbName", "schemaName.catName")),
    ),
    changes(
        "drop_schema_version",
        lambda call, args: registry.drop_version(call, args.schemaVersion),
        needs(on_database(ALTER, "schemaVersion.schema.dbName", "schemaVersion.schema.catName")),
    ),
    reads(
        "get_schemas_by_cols",
        _get_schemas_by_cols,
        MethodRule(keep=rules.kept_versions, shows="versions of schemas in databases that are shown"),
    ),
    changes(
        "map_schema_version_to_serde",
        _map_schema_version_to_serde,
        needs(on_database(ALTER, "rqst.schemaVersion.schema.dbName", "rqst.schemaVersion.schema.catName")),
    ),
    changes(
        "set_schema_version_state",
        _set_schema_version_state,
        needs(on_database(ALTER, "rqst.schemaVersion.schema.dbName", "rqst.schemaVersion.schema.catName")),
    ),
    changes("add_serde", lambda call, args: registry.add_serde(call, args.serde), ADMIN),
    reads("get_serde", lambda call, args: registry.get_serde(call, unpack.required(call, args.rqst, "rqst").serdeName), OPEN),
)
