"""The metadata with all tables of the schema, which several modules declare. Whoever needs it whole imports it from here."""

from __future__ import annotations

from metastore.store import schema, schema_engine

MODULES = (schema, schema_engine)
"""The modules that declare tables."""
metadata = schema.metadata
