"""All tables of the schema, whichever module declares them: `metadata` is whole once this module is imported."""

from __future__ import annotations

from metastore.store import schema_engine, schema_indexes, schema_registry, schema_workloads
from metastore.store.schema import metadata

__all__ = ["metadata", "schema_engine", "schema_indexes", "schema_registry", "schema_workloads"]
