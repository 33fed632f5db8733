"""The schema registry: schemas that belong to databases, their versions, and serdes. Source: Hive's HMSHandler and ObjectStore.

A schema's fields on compatibility and validation are kept for its clients: no version is compared with another here, as in Java.
"""

from __future__ import annotations

from copy import copy

from metastore.errors import AlreadyExists, InvalidOperation, MetaError, MissingArgument, NoSuchObject
from metastore.idl import ISchema, ISchemaName, SchemaVersion, SchemaVersionDescriptor, SerDeInfo
from metastore.listeners.events import (
    AddSchemaVersion,
    AlterSchema,
    AlterSchemaVersion,
    CreateSchema,
    DropSchema,
    DropSchemaVersion,
    Event,
)
from metastore.rules.names import normalize
from metastore.service.call.context import Call
from metastore.service.call.names import database_name
from metastore.service.changes.change import change
from metastore.store.catalog import databases
from metastore.store.core.database import Session
from metastore.store.engines import registry
from metastore.store.engines.registry import SchemaName, StoredVersion

LONGEST_NAME = 256
LONGEST_COLUMN_NAME = 766
"""The longest name that MySQL can index."""


def _name(call: Call, catalog: str | None, database: str | None, schema: str | None) -> SchemaName:
    found, normalized = database_name(database, catalog, call.config.default_catalog)
    if normalized is None or schema is None:
        raise MissingArgument(f"A schema needs the names of its database and itself; got {database} and {schema}")
    return SchemaName(found, normalized, normalize(schema))


def schema_name(call: Call, name: ISchemaName | None) -> SchemaName:
    """Return the full name of a schema, normalised. MissingArgument when a part is absent."""
    if name is None:
        raise MissingArgument("The name of the schema is null")
    return _name(call, name.catName, name.dbName, name.schemaName)


def _described(call: Call, version: SchemaVersionDescriptor | None) -> tuple[SchemaName, int]:
    if version is None or version.version is None:
        raise MissingArgument("The schema version or its number is null")
    return schema_name(call, version.schema), version.version


def _no_schema(name: SchemaName) -> NoSuchObject:
    return NoSuchObject(f"The schema {name} does not exist")


def _no_version(name: SchemaName, number: int) -> NoSuchObject:
    return NoSuchObject(f"The schema {name} has no version {number}")


def _locked(session: Session, name: SchemaName) -> tuple[int, ISchema]:
    """Lock a schema; return its key and itself. NoSuchObject."""
    key = registry.lock(session, name)
    found = None if key is None else registry.find(session, name)
    if key is None or found is None:
        raise _no_schema(name)
    return key, found


def create_schema(call: Call, schema: ISchema | None) -> None:
    """Add a schema. NoSuchObject for the database, AlreadyExists, MetaError for the name, MissingArgument."""
    if schema is None:
        raise MissingArgument("The schema is null")
    name = _name(call, schema.catName, schema.dbName, schema.name)
    if not 0 < len(name.schema) <= LONGEST_NAME:
        raise MetaError(f"{schema.name!r} can not name a schema: give it 1 to {LONGEST_NAME} characters")
    stored = copy(schema)
    stored.catName, stored.dbName, stored.name = name
    with change(call, CreateSchema(client=call.info, schema=stored)) as current:

        def work(session: Session) -> None:
            key = databases.share(session, name.catalog, name.database)
            if key is None:
                raise NoSuchObject(f"The database {name.catalog}.{name.database} does not exist")
            if registry.find(session, name) is not None:
                raise AlreadyExists(f"The schema {name} already exists")
            registry.insert(session, key, name.schema, stored)

        current.write(work)


def get_schema(call: Call, name: ISchemaName | None) -> ISchema:
    """Return a schema. NoSuchObject, MissingArgument."""
    where = schema_name(call, name)
    found = call.database.read(lambda session: registry.find(session, where))
    if found is None:
        raise _no_schema(where)
    return found


def alter_schema(call: Call, name: ISchemaName | None, new: ISchema | None) -> None:
    """Change all but name and type; group and description stay where they are absent. NoSuchObject, MissingArgument."""
    where = schema_name(call, name)
    if new is None:
        raise MissingArgument(f"The new schema of {where} is null")
    before = get_schema(call, name)
    with change(call, AlterSchema(client=call.info, before=before, after=_altered(before, new))) as current:

        def work(session: Session) -> None:
            key, locked = _locked(session, where)
            after = _altered(locked, new)
            current.event = AlterSchema(client=call.info, before=locked, after=after)
            registry.update(session, key, after)

        current.write(work)


def _altered(schema: ISchema, new: ISchema) -> ISchema:
    out = copy(schema)
    out.compatibility, out.validationLevel, out.canEvolve = new.compatibility, new.validationLevel, new.canEvolve
    if new.schemaGroup is not None:
        out.schemaGroup = new.schemaGroup
    if new.description is not None:
        out.description = new.description
    return out


def drop_schema(call: Call, name: ISchemaName | None) -> None:
    """Remove a schema without versions. NoSuchObject, InvalidOperation while it has versions, MissingArgument."""
    where = schema_name(call, name)
    with change(call, DropSchema(client=call.info, schema=get_schema(call, name))) as current:

        def work(session: Session) -> None:
            key, locked = _locked(session, where)
            if registry.latest(session, where) is not None:
                raise InvalidOperation(f"The schema {where} can not be dropped: it has versions; drop them first")
            current.event = DropSchema(client=call.info, schema=locked)
            registry.delete(session, key)

        current.write(work)


def add_version(call: Call, version: SchemaVersion | None) -> None:
    """Add a version to a schema. NoSuchObject for the schema, AlreadyExists, MissingArgument."""
    if version is None or version.version is None:
        raise MissingArgument("The schema version or its number is null")
    name = schema_name(call, version.schema)
    stored = _checked(name, version)
    get_schema(call, version.schema)
    with change(call, AddSchemaVersion(client=call.info, version=stored)) as current:

        def work(session: Session) -> None:
            key, _ = _locked(session, name)
            if registry.version(session, name, stored.version) is not None:
                raise AlreadyExists(f"The schema {name} already has a version {stored.version}")
            registry.insert_version(session, key, stored)

        current.write(work)


def _checked(name: SchemaName, version: SchemaVersion) -> SchemaVersion:
    """Return a version as it will be stored: names of columns in lower case. MetaError for the name of a column."""
    stored = copy(version)
    stored.schema = ISchemaName(*name)
    stored.createdAt = version.createdAt or 0
    stored.cols = [copy(column) for column in version.cols or ()]
    for column in stored.cols:
        if column is None or not 0 < len(column.name or "") <= LONGEST_COLUMN_NAME:
            raise MetaError(
                f"Version {version.version} of the schema {name}: the name of each column needs 1 to {LONGEST_COLUMN_NAME} characters"
            )
        column.name = column.name.lower()
    return stored


def get_version(call: Call, version: SchemaVersionDescriptor | None) -> SchemaVersion:
    """Return a version of a schema. NoSuchObject, MissingArgument."""
    return _stored(call, *_described(call, version)).version


def _stored(call: Call, name: SchemaName, number: int) -> StoredVersion:
    found = call.database.read(lambda session: registry.version(session, name, number))
    if found is None:
        raise _no_version(name, number)
    return found


def get_latest_version(call: Call, name: ISchemaName | None) -> SchemaVersion:
    """Return the highest version of a schema. NoSuchObject also for a schema without versions; MissingArgument."""
    where = schema_name(call, name)
    found = call.database.read(lambda session: registry.latest(session, where))
    if found is None:
        raise NoSuchObject(f"There are no versions of a schema {where}")
    return found


def get_versions(call: Call, name: ISchemaName | None) -> list[SchemaVersion]:
    """Return all versions of a schema, the highest first. NoSuchObject also for a schema without versions; MissingArgument."""
    where = schema_name(call, name)
    found = call.database.read(lambda session: registry.versions(session, where))
    if not found:
        raise NoSuchObject(f"There are no versions of a schema {where}")
    return found


def drop_version(call: Call, version: SchemaVersionDescriptor | None) -> None:
    """Remove a version of a schema. NoSuchObject, MissingArgument."""
    where = _described(call, version)
    with change(call, DropSchemaVersion(client=call.info, version=_stored(call, *where).version)) as current:

        def work(session: Session) -> None:
            found = _locked_version(session, *where)
            current.event = DropSchemaVersion(client=call.info, version=found.version)
            registry.delete_version(session, found.key)

        current.write(work)


def _locked_version(session: Session, name: SchemaName, number: int) -> StoredVersion:
    found = registry.version(session, name, number) if registry.lock(session, name) is not None else None
    if found is None:
        raise _no_version(name, number)
    return found


def set_version_state(call: Call, version: SchemaVersionDescriptor | None, state: int | None) -> None:
    """Change the state of a version; any state may follow any other. NoSuchObject, MissingArgument."""
    where = _described(call, version)
    if state is None:
        raise MissingArgument(f"The new state of version {where[1]} of the schema {where[0]} is null")
    with change(call, _altered_version(call, _stored(call, *where).version, state=state)) as current:

        def work(session: Session) -> None:
            found = _locked_version(session, *where)
            current.event = _altered_version(call, found.version, state=state)
            registry.set_state(session, found.key, state)

        current.write(work)


def map_version_to_serde(call: Call, version: SchemaVersionDescriptor | None, serde_name: str | None) -> None:
    """Let a serde read a version. NoSuchObject for the version and the serde, MissingArgument."""
    where = _described(call, version)
    before = _stored(call, *where).version
    serde = get_serde(call, serde_name)
    with change(call, _altered_version(call, before, serde=serde)) as current:

        def work(session: Session) -> None:
            found = _locked_version(session, *where)
            current.event = _altered_version(call, found.version, serde=serde)
            registry.set_serde(session, found.key, serde)

        current.write(work)


def _altered_version(call: Call, before: SchemaVersion, *, state: int | None = None, serde: SerDeInfo | None = None) -> Event:
    after = copy(before)
    after.state = before.state if state is None else state
    after.serDe = before.serDe if serde is None else serde
    return AlterSchemaVersion(client=call.info, before=before, after=after)


def find_versions(call: Call, column: str | None, namespace: str | None, type_: str | None) -> list[SchemaVersionDescriptor]:
    """Return the versions with a column of a name, namespace and type, as far as they are given. MetaError without name and namespace."""
    if column is None and namespace is None:
        raise MetaError("Schemas are found by the name of a column or its namespace: give one of them")
    filters = {
        "name": None if column is None else normalize(column),
        "comment": namespace,
        "type": None if type_ is None else normalize(type_),
    }
    given = {field: value for field, value in filters.items() if value is not None}
    return call.database.read(lambda session: registry.with_column(session, given))


def add_serde(call: Call, serde: SerDeInfo | None) -> None:
    """Add a serde under its name. AlreadyExists, MissingArgument."""
    if serde is None or serde.name is None:
        raise MissingArgument("A serde needs a name: set SerDeInfo.name")

    def work(session: Session) -> None:
        if registry.find_serde(session, serde.name) is not None:
            raise AlreadyExists(f"A serde {serde.name} already exists")
        registry.insert_serde(session, serde)

    call.database.write(work)


def get_serde(call: Call, name: str | None) -> SerDeInfo:
    """Return the serde that was added under a name. NoSuchObject, MissingArgument."""
    if name is None:
        raise MissingArgument("The name of the serde is null")
    found = call.database.read(lambda session: registry.find_serde(session, name))
    if found is None:
        raise NoSuchObject(f"There is no serde {name}")
    return found
