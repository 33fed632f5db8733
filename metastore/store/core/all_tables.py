"""All tables of the schema, whichever module declares them: `metadata` is whole once this module is imported."""

from __future__ import annotations

from metastore.store.schema import engines as schema_engine
from metastore.store.schema import indexes as schema_indexes
from metastore.store.schema import registry as schema_registry
from metastore.store.schema import workloads as schema_workloads
from metastore.store.schema.model import metadata

__all__ = ["metadata", "schema_engine", "schema_indexes", "schema_registry", "schema_workloads"]
