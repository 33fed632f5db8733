"""Rows of the schema registry: schemas, their versions with columns, serdes. One function per statement or two."""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from typing import Any, NamedTuple

import orjson
import sqlalchemy as sa

from metastore.idl import FieldSchema, ISchema, ISchemaName, SchemaVersion, SchemaVersionDescriptor, SerDeInfo
from metastore.store.core.clauses import Among, bound, constant
from metastore.store.core.database import Session
from metastore.store.drivers.contract import Row
from metastore.store.schema.model import databases
from metastore.store.schema.registry import registry_columns, registry_schemas, registry_versions, serdes

REGISTRY_SCHEMA, REGISTRY_VERSION, REGISTRY_COLUMN, DATABASE = registry_schemas.c, registry_versions.c, registry_columns.c, databases.c
HERE = sa.and_(
    DATABASE.catalog == sa.bindparam("catalog_key"),
    DATABASE.name == sa.bindparam("database_key"),
    REGISTRY_SCHEMA.name == sa.bindparam("schema_key"),
)
OF_DATABASE = registry_schemas.join(databases, REGISTRY_SCHEMA.database_id == DATABASE.id)
OF_SCHEMA = registry_versions.join(registry_schemas, REGISTRY_VERSION.schema_id == REGISTRY_SCHEMA.id).join(
    databases, REGISTRY_SCHEMA.database_id == DATABASE.id
)
FIND = (
    sa.select(
        REGISTRY_SCHEMA.id,
        DATABASE.catalog,
        DATABASE.name,
        REGISTRY_SCHEMA.name,
        REGISTRY_SCHEMA.type,
        REGISTRY_SCHEMA.compatibility,
        REGISTRY_SCHEMA.validation_level,
        REGISTRY_SCHEMA.can_evolve,
        REGISTRY_SCHEMA.schema_group,
        REGISTRY_SCHEMA.description,
    )
    .select_from(OF_DATABASE)
    .where(HERE)
)
DATABASE_KEY = (
    sa.select(DATABASE.id)
    .where(DATABASE.catalog == sa.bindparam("catalog_key"), DATABASE.name == sa.bindparam("database_key"))
    .scalar_subquery()
)
LOCK = (
    sa.select(REGISTRY_SCHEMA.id)
    .where(REGISTRY_SCHEMA.database_id == DATABASE_KEY, REGISTRY_SCHEMA.name == sa.bindparam("schema_key"))
    .with_for_update()
)
UPDATE = (
    sa.update(registry_schemas)
    .where(REGISTRY_SCHEMA.id == sa.bindparam("key"))
    .values(bound(REGISTRY_SCHEMA.keys(), but={"id", "database_id", "name"}))
)
DELETE = sa.delete(registry_schemas).where(REGISTRY_SCHEMA.id == sa.bindparam("key"))
VERSIONS = (
    sa.select(
        REGISTRY_VERSION.id,
        DATABASE.catalog,
        DATABASE.name,
        REGISTRY_SCHEMA.name,
        REGISTRY_VERSION.version,
        REGISTRY_VERSION.created_at,
        REGISTRY_VERSION.state,
        REGISTRY_VERSION.description,
        REGISTRY_VERSION.schema_text,
        REGISTRY_VERSION.fingerprint,
        REGISTRY_VERSION.name,
        REGISTRY_VERSION.serde,
    )
    .select_from(OF_SCHEMA)
    .where(HERE)
    .order_by(REGISTRY_VERSION.version.desc())
)
VERSION = VERSIONS.where(REGISTRY_VERSION.version == sa.bindparam("version_key"))
LATEST = VERSIONS.limit(constant(1))
COLUMNS = (
    sa.select(REGISTRY_COLUMN.version_id, REGISTRY_COLUMN.name, REGISTRY_COLUMN.type, REGISTRY_COLUMN.comment)
    .where(Among(REGISTRY_COLUMN.version_id, "keys"))
    .order_by(REGISTRY_COLUMN.version_id, REGISTRY_COLUMN.position)
)
SET_STATE = sa.update(registry_versions).where(REGISTRY_VERSION.id == sa.bindparam("key")).values(state=sa.bindparam("state_value"))
SET_SERDE = sa.update(registry_versions).where(REGISTRY_VERSION.id == sa.bindparam("key")).values(serde=sa.bindparam("serde_value"))
DELETE_VERSION = sa.delete(registry_versions).where(REGISTRY_VERSION.id == sa.bindparam("key"))
DELETE_COLUMNS = sa.delete(registry_columns).where(REGISTRY_COLUMN.version_id == sa.bindparam("key"))
FIND_SERDE = sa.select(serdes.c.serde).where(serdes.c.name == sa.bindparam("name_key"))
_SCHEMAS = sa.select(REGISTRY_SCHEMA.id).where(REGISTRY_SCHEMA.database_id == sa.bindparam("key"))
_VERSIONS = sa.select(REGISTRY_VERSION.id).where(REGISTRY_VERSION.schema_id.in_(_SCHEMAS))
DELETE_OF_DATABASE = (
    sa.delete(registry_columns).where(REGISTRY_COLUMN.version_id.in_(_VERSIONS)),
    sa.delete(registry_versions).where(REGISTRY_VERSION.schema_id.in_(_SCHEMAS)),
    sa.delete(registry_schemas).where(REGISTRY_SCHEMA.database_id == sa.bindparam("key")),
)
"""Removes all schemas of a database, whose key is bound as `key`."""
SERDE_FIELDS = ("name", "serializationLib", "parameters", "description", "serializerClass", "deserializerClass", "serdeType")


class SchemaName(NamedTuple):
    """The full name of a schema, trimmed and in lower case."""

    catalog: str
    database: str
    schema: str

    def __str__(self) -> str:
        return f"{self.catalog}.{self.database}.{self.schema}"


def _keys(name: SchemaName) -> dict[str, str]:
    return {"catalog_key": name.catalog, "database_key": name.database, "schema_key": name.schema}


def _values(schema: ISchema) -> dict[str, Any]:
    return {
        "type": schema.schemaType,
        "compatibility": schema.compatibility,
        "validation_level": schema.validationLevel,
        "can_evolve": None if schema.canEvolve is None else int(schema.canEvolve),
        "schema_group": schema.schemaGroup,
        "description": schema.description,
    }


def _serde(text: str | None) -> SerDeInfo | None:
    return None if text is None else SerDeInfo(**orjson.loads(text))


def _serde_text(serde: SerDeInfo | None) -> str | None:
    return None if serde is None else orjson.dumps({name: getattr(serde, name) for name in SERDE_FIELDS}).decode()


def find(session: Session, name: SchemaName) -> ISchema | None:
    """Return a schema, or None."""
    row = session.row(FIND, **_keys(name))
    if row is None:
        return None
    _, catalog, database, schema, kind, compatibility, validation, can_evolve, group, description = row
    return ISchema(
        schemaType=kind,
        name=schema,
        catName=catalog,
        dbName=database,
        compatibility=compatibility,
        validationLevel=validation,
        canEvolve=None if can_evolve is None else bool(can_evolve),
        schemaGroup=group,
        description=description,
    )


def lock(session: Session, name: SchemaName) -> int | None:
    """Lock a schema against other changes of it and of its versions; return its key, or None."""
    return session.number(LOCK, **_keys(name))


def insert(session: Session, database_id: int, name: str, schema: ISchema) -> None:
    """Add a schema."""
    session.insert(registry_schemas, database_id=database_id, name=name, **_values(schema))


def update(session: Session, key: int, schema: ISchema) -> None:
    """Change everything but the name."""
    session.execute(UPDATE, key=key, **_values(schema))


def delete(session: Session, key: int) -> None:
    """Remove a schema that has no versions."""
    session.execute(DELETE, key=key)


class StoredVersion(NamedTuple):
    """A stored version, and its key."""

    key: int
    version: SchemaVersion


def versions(session: Session, name: SchemaName) -> list[SchemaVersion]:
    """Return the versions of a schema, the highest first."""
    return [each.version for each in _stored(session, list(session.rows(VERSIONS, **_keys(name))))]


def latest(session: Session, name: SchemaName) -> SchemaVersion | None:
    """Return the highest version of a schema, or None."""
    found = _stored(session, list(session.rows(LATEST, **_keys(name))))
    return found[0].version if found else None


def version(session: Session, name: SchemaName, number: int) -> StoredVersion | None:
    """Return a version of a schema, or None."""
    found = _stored(session, list(session.rows(VERSION, **_keys(name), version_key=number)))
    return found[0] if found else None


def _stored(session: Session, rows: list[Row]) -> list[StoredVersion]:
    columns: dict[int, list[FieldSchema]] = defaultdict(list)
    if rows:
        for key, *column in session.rows(COLUMNS, keys=[row[0] for row in rows]):
            columns[key].append(FieldSchema(*column))
    return [
        StoredVersion(
            key,
            SchemaVersion(
                schema=ISchemaName(catName=catalog, dbName=database, schemaName=schema),
                version=number,
                createdAt=created,
                cols=columns[key],
                state=state,
                description=description,
                schemaText=text,
                fingerprint=fingerprint,
                name=name,
                serDe=_serde(serde),
            ),
        )
        for key, catalog, database, schema, number, created, state, description, text, fingerprint, name, serde in rows
    ]


def insert_version(session: Session, schema_key: int, new: SchemaVersion) -> None:
    """Add a version with its columns."""
    key = session.insert_keyed(
        registry_versions,
        schema_id=schema_key,
        version=new.version,
        created_at=new.createdAt,
        state=new.state,
        description=new.description,
        schema_text=new.schemaText,
        fingerprint=new.fingerprint,
        name=new.name,
        serde=_serde_text(new.serDe),
    ).key
    rows = [(key, position, column.name, column.type, column.comment) for position, column in enumerate(new.cols)]
    session.insert_many(registry_columns, tuple(REGISTRY_COLUMN.keys()), rows)


def set_state(session: Session, key: int, state: int) -> None:
    """Change the state of a version."""
    session.execute(SET_STATE, key=key, state_value=state)


def set_serde(session: Session, key: int, serde: SerDeInfo) -> None:
    """Set the SerDe that reads a version."""
    session.execute(SET_SERDE, key=key, serde_value=_serde_text(serde))


def delete_version(session: Session, key: int) -> None:
    """Remove a version with its columns."""
    session.execute(DELETE_COLUMNS, key=key)
    session.execute(DELETE_VERSION, key=key)


@cache
def _with_column(fields: frozenset[str]) -> sa.Select[Any]:
    conditions = (REGISTRY_COLUMN[field] == sa.bindparam(f"{field}_key", type_=sa.String()) for field in sorted(fields))
    holding = sa.select(REGISTRY_COLUMN.version_id).where(*conditions)
    order = (DATABASE.catalog, DATABASE.name, REGISTRY_SCHEMA.name, REGISTRY_VERSION.version)
    return sa.select(*order).select_from(OF_SCHEMA).where(REGISTRY_VERSION.id.in_(holding)).order_by(*order)


def with_column(session: Session, filters: dict[str, str]) -> list[SchemaVersionDescriptor]:
    """Return the versions with a column that has the given `name`, `comment` and `type`. The filters may lack some of these."""
    rows = session.rows(_with_column(frozenset(filters)), **{f"{field}_key": value for field, value in filters.items()})
    return [
        SchemaVersionDescriptor(schema=ISchemaName(catName=catalog, dbName=database, schemaName=schema), version=number)
        for catalog, database, schema, number in rows
    ]


def find_serde(session: Session, name: str) -> SerDeInfo | None:
    """Return a serde, or None."""
    row = session.row(FIND_SERDE, name_key=name)
    return None if row is None else _serde(row[0])


def insert_serde(session: Session, serde: SerDeInfo) -> None:
    """Add a serde."""
    session.insert(serdes, name=serde.name, serde=_serde_text(serde))
