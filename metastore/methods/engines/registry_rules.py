"""Entries of the methods of the schema registry: a schema belongs to its database and has no owner of its own."""

from __future__ import annotations

from typing import Any

from metastore.methods.forms.rules import ADMIN, ALTER, CREATE, OPEN, SEE, Decision, MethodRule, database, needs


def _kept_versions(decision: Decision, _args: Any, value: Any) -> Any:
    seen = decision.databases((each.schema.catName, each.schema.dbName) for each in value.schemaVersions)
    value.schemaVersions = [each for each in value.schemaVersions if (each.schema.catName, each.schema.dbName) in seen]
    return value


ENTRIES: dict[str, MethodRule] = {
    "create_ischema": needs(database(CREATE, "schema.dbName", "schema.catName"), operation="CREATEDATABASE"),
    "get_ischema": needs(database(SEE, "name.dbName", "name.catName")),
    "alter_ischema": needs(database(ALTER, "rqst.name.dbName", "rqst.name.catName")),
    "drop_ischema": needs(database(ALTER, "name.dbName", "name.catName")),
    "add_schema_version": needs(database(CREATE, "schemaVersion.schema.dbName", "schemaVersion.schema.catName")),
    "drop_schema_version": needs(database(ALTER, "schemaVersion.schema.dbName", "schemaVersion.schema.catName")),
    "get_schema_version": needs(database(SEE, "schemaVersion.schema.dbName", "schemaVersion.schema.catName")),
    "get_schema_latest_version": needs(database(SEE, "schemaName.dbName", "schemaName.catName")),
    "get_schema_all_versions": needs(database(SEE, "schemaName.dbName", "schemaName.catName")),
    "get_schemas_by_cols": MethodRule(keep=_kept_versions, shows="versions of schemas in databases that are shown"),
    "set_schema_version_state": needs(database(ALTER, "rqst.schemaVersion.schema.dbName", "rqst.schemaVersion.schema.catName")),
    "map_schema_version_to_serde": needs(database(ALTER, "rqst.schemaVersion.schema.dbName", "rqst.schemaVersion.schema.catName")),
    "add_serde": ADMIN,
    "get_serde": OPEN,
}
