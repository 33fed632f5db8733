"""Stored procedures and packages of HPL/SQL: put, read, list, drop. Source: Hive's HMSHandler and ObjectStore.

Nothing here runs them. Databases and catalogs are normalised; the names of procedures and packages are kept as they are sent, in their
case. A new one replaces the one of the same name. The drop of a missing one is not an error. Listeners are not notified, as in Hive.
"""

from __future__ import annotations

from metastore.errors import MetaError, NoSuchObject
from metastore.idl import DatabaseType, Package, StoredProcedure
from metastore.service.call.context import Call
from metastore.service.call.names import database_name
from metastore.store.catalog import databases
from metastore.store.core.database import Session
from metastore.store.engines import procedures
from metastore.store.engines.procedures import Kind

__all__ = ["Kind", "drop", "get_package", "get_procedure", "names", "put"]

_WORDS: dict[Kind, str] = {StoredProcedure: "stored procedure", Package: "package"}


def _where(call: Call, kind: Kind, catalog: str | None, database: str | None, name: str | None) -> tuple[str, str, str]:
    """Return catalog, database and name. MetaError when one is absent."""
    found, normalized = database_name(database, catalog, call.config.default_catalog)
    if normalized is None or not name:
        raise MetaError(f"A {_WORDS[kind]} needs the names of its database and itself; got {database} and {name}")
    return found, normalized, name


def put(call: Call, new: StoredProcedure | Package | None, kind: Kind) -> None:
    """Add a procedure or package, or replace the one of its name. NoSuchObject for the database, MetaError."""
    if new is None:
        raise MetaError(f"The {_WORDS[kind]} is null: send one")
    catalog, database, name = _where(call, kind, new.catName, new.dbName, new.packageName if isinstance(new, Package) else new.name)
    texts = (new.header, new.body) if isinstance(new, Package) else (new.source,)
    if None in texts:
        raise MetaError(
            f"{_WORDS[kind].capitalize()} {database}.{name} has no text: set {'header and body' if kind is Package else 'source'}"
        )
    new.ownerName = call.caller if new.ownerName is None else new.ownerName

    def work(session: Session) -> None:
        key = databases.share(session, catalog, database)
        found = databases.find(session, catalog, database) if key is not None else None
        if key is None or found is None:
            raise NoSuchObject(f"There is no database {catalog}.{database}")
        if found.type == DatabaseType.REMOTE:
            raise MetaError(f"Operation {call.method} not supported for REMOTE database {database}")
        procedures.put(session, key, name, new)

    call.database.write(work)


def get_procedure(call: Call, catalog: str | None, database: str | None, name: str | None) -> StoredProcedure:
    """Return a procedure. NoSuchObject, MetaError."""
    where = _where(call, StoredProcedure, catalog, database, name)
    found = call.database.read(lambda session: procedures.find_procedure(session, *where))
    if found is None:
        raise NoSuchObject(f"HPL/SQL StoredProcedure {where[1]}.{where[2]} does not exist")
    return found


def get_package(call: Call, catalog: str | None, database: str | None, name: str | None) -> Package:
    """Return a package. NoSuchObject, MetaError."""
    where = _where(call, Package, catalog, database, name)
    found = call.database.read(lambda session: procedures.find_package(session, *where))
    if found is None:
        raise NoSuchObject(f"HPL/SQL package {where[1]}.{where[2]} does not exist")
    return found


def names(call: Call, kind: Kind, catalog: str | None, database: str | None) -> list[str]:
    """Return the names of the procedures, or packages, of a database, ascending; of all of the catalog without one."""
    where = database_name(database, catalog, call.config.default_catalog)
    return call.database.read(lambda session: procedures.names(session, kind, *where))


def drop(call: Call, kind: Kind, catalog: str | None, database: str | None, name: str | None) -> None:
    """Remove a procedure or package if it is there. MetaError."""
    where = _where(call, kind, catalog, database, name)
    call.database.write(lambda session: procedures.delete(session, kind, *where))
