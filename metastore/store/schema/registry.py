"""Declare the tables of the schema registry: schemas of a database, their versions, serdes. Never runs a statement."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Integer, UniqueConstraint

from metastore.store.schema.model import ID, JSON_TEXT, LONG_NAME, NAME, table

registry_schemas = table(
    "registry_schemas",
    Column("id", ID, primary_key=True),
    Column("database_id", ID, nullable=False),
    Column("name", NAME, nullable=False),
    Column("type", Integer, comment="SchemaType of the interface"),
    Column("compatibility", Integer, comment="SchemaCompatibility of the interface"),
    Column("validation_level", Integer, comment="SchemaValidation of the interface"),
    Column("can_evolve", Integer),
    Column("schema_group", JSON_TEXT),
    Column("description", JSON_TEXT),
    UniqueConstraint("database_id", "name"),
)

registry_versions = table(
    "registry_versions",
    Column("id", ID, primary_key=True),
    Column("schema_id", ID, nullable=False),
    Column("version", Integer, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("state", Integer, comment="SchemaVersionState of the interface"),
    Column("description", JSON_TEXT),
    Column("schema_text", JSON_TEXT),
    Column("fingerprint", JSON_TEXT),
    Column("name", JSON_TEXT),
    Column("serde", JSON_TEXT, comment="SerDeInfo as JSON"),
    UniqueConstraint("schema_id", "version"),
)

registry_columns = table(
    "registry_columns",
    Column("version_id", ID, primary_key=True, autoincrement=False),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("name", LONG_NAME, nullable=False),
    Column("type", JSON_TEXT),
    Column("comment", JSON_TEXT, comment="the column's namespace"),
    Index(None, "name"),
)

serdes = table(
    "serdes",
    Column("name", NAME, primary_key=True),
    Column("serde", JSON_TEXT, nullable=False, comment="SerDeInfo as JSON"),
)
