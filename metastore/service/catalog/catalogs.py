"""Catalogs: create, read, alter, drop, list; and the objects that a new database of the server begins with."""

from __future__ import annotations

import time

from metastore.errors import AlreadyExists, InvalidObject, InvalidOperation, MetaError, NoSuchObject
from metastore.idl import Catalog, Database, PrincipalType
from metastore.listeners.events import AlterCatalog, CreateCatalog, DropCatalog
from metastore.rules.names import normalize, validate_catalog_name
from metastore.service.call.context import Call, Metastore
from metastore.service.catalog.translation import DEFAULT_DATABASE
from metastore.service.changes.change import change
from metastore.service.changes.deletion import Doomed
from metastore.store.accounts import roles
from metastore.store.catalog import catalogs, databases
from metastore.store.core.database import Session
from metastore.store.drivers.contract import ReferenceViolation


def create_startup_objects(metastore: Metastore) -> None:
    """Make the default catalog, its database `default` and the roles `admin` and `public` where they are missing."""
    catalog, warehouse = metastore.config.default_catalog, metastore.warehouse
    now = int(time.time())

    def missing(session: Session) -> bool:
        return (
            catalogs.find(session, catalog) is None
            or databases.find(session, catalog, DEFAULT_DATABASE) is None
            or roles.missing_startup_roles(session, metastore.config.admin_users)
        )

    def work(session: Session) -> None:
        if catalogs.find(session, catalog) is None:
            catalogs.insert(
                session, Catalog(name=catalog, description="Default catalog, for Hive", locationUri=warehouse.root, createTime=now)
            )
        if databases.find(session, catalog, DEFAULT_DATABASE) is None:
            databases.insert(
                session,
                Database(
                    catalogName=catalog,
                    name=DEFAULT_DATABASE,
                    description="Default Hive database",
                    locationUri=warehouse.external_root or warehouse.root,
                    parameters={},
                    ownerName="public",
                    ownerType=PrincipalType.ROLE,
                    createTime=now,
                ),
            )
        roles.create_startup_roles(session, metastore.config.admin_users, now)

    if metastore.database.read(missing):
        metastore.database.write(work)


def create_catalog(call: Call, catalog: Catalog) -> None:
    """Make a catalog and its database `default`. AlreadyExists, InvalidObject, MetaError."""
    if not catalog.name or not catalog.locationUri:
        raise InvalidObject("a catalog needs a name and a location: set name and locationUri")
    given = catalog.name
    catalog.name = normalize(catalog.name)
    validate_catalog_name(catalog.name)
    catalog.createTime = int(time.time())
    with change(call, CreateCatalog(client=call.info, catalog=catalog), ("catalog", catalog.name)) as current:

        def work(session: Session) -> None:
            if catalogs.find(session, catalog.name) is not None:
                raise AlreadyExists(f"Catalog {catalog.name} already exists")
            catalogs.insert(session, catalog)
            place = call.warehouse.qualified(catalog.locationUri)
            databases.insert(
                session,
                Database(
                    catalogName=catalog.name,
                    name=DEFAULT_DATABASE,
                    description=f"Default database for catalog {given}",
                    locationUri=place,
                    parameters={},
                    createTime=catalog.createTime,
                    ownerName=call.caller,
                    ownerType=PrincipalType.USER,
                ),
            )
            current.make_directories([place])

        current.write(work)


def get_catalog(call: Call, name: str | None) -> Catalog:
    """Return a catalog. NoSuchObject."""
    wanted = normalize(name or "")
    found = call.database.read(lambda session: catalogs.find(session, wanted))
    if found is None:
        raise NoSuchObject(f"No catalog {wanted}")
    return found


def get_catalogs(call: Call) -> list[str]:
    """Return the names of all catalogs."""
    return call.database.read(catalogs.names)


def alter_catalog(call: Call, name: str | None, new: Catalog) -> None:
    """Change location and description. NoSuchObject; InvalidOperation for another name."""
    wanted = normalize(name or "")
    before = get_catalog(call, wanted)
    if new.name is not None and normalize(new.name) != wanted:
        raise InvalidOperation(f"Catalog {wanted} can not be renamed to {new.name}")
    if not new.locationUri:
        raise InvalidOperation(f"Catalog {wanted} needs a location")
    with change(call, AlterCatalog(client=call.info, before=before, after=new)) as current:
        current.write(lambda session: catalogs.update(session, wanted, new))


def drop_catalog(call: Call, name: str | None) -> None:
    """Remove a catalog that holds nothing but an empty database `default`. NoSuchObject, InvalidOperation, MetaError."""
    wanted = normalize(name or "")
    if wanted == call.config.default_catalog:
        raise MetaError(f"Can not drop {wanted} catalog")
    catalog = get_catalog(call, wanted)
    default = call.database.read(lambda session: databases.find(session, wanted, DEFAULT_DATABASE))
    with change(call, DropCatalog(client=call.info, catalog=catalog)) as current:

        def work(session: Session) -> None:
            for database in databases.names(session, wanted):
                key = databases.lock(session, wanted, database)
                if key is None:
                    continue
                if database != DEFAULT_DATABASE or databases.contents(session, key):
                    raise InvalidOperation(f"There are non-default databases or tables in the catalog {wanted}: drop them first")
                databases.delete(session, key)
            catalogs.delete(session, wanted)
            locations = [default.locationUri if default is not None else None, catalog.locationUri]
            places = [call.warehouse.qualified(location) for location in locations if location]
            current.deletion.take(session, Doomed(f"catalog {wanted}", [(places, False)]))

        try:
            current.write(work)
        except ReferenceViolation as error:
            raise InvalidOperation(f"A database was made in the catalog {wanted} meanwhile: drop it first") from error
