"""Rows of stored procedures and packages of HPL/SQL. One function per statement."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from metastore.idl import Package, StoredProcedure
from metastore.store.core.clauses import bound
from metastore.store.core.database import Session
from metastore.store.schema.engines import packages, procedures
from metastore.store.schema.model import databases


class _Statements:
    """The statements of one of the two tables."""

    def __init__(self, table: sa.Table) -> None:
        joined = table.join(databases, table.c.database_id == databases.c.id)
        in_catalog = databases.c.catalog == sa.bindparam("catalog_key")
        in_database = sa.and_(in_catalog, databases.c.name == sa.bindparam("database_key"))
        named = table.c.name == sa.bindparam("name_key")
        contents = [column for column in table.c if column.name not in ("id", "database_id")]
        self.table = table
        self.find = sa.select(databases.c.catalog, databases.c.name, *contents).select_from(joined).where(in_database, named)
        self.key = sa.select(table.c.id).where(table.c.database_id == sa.bindparam("database_id"), named).with_for_update()
        self.key_by_names = sa.select(table.c.id).select_from(joined).where(in_database, named)
        self.names = sa.select(table.c.name).select_from(joined).where(in_database).order_by(table.c.name)
        self.all_names = sa.select(table.c.name).select_from(joined).where(in_catalog).order_by(databases.c.name, table.c.name)
        changed = (column.name for column in contents if column.name != "name")
        self.update = sa.update(table).where(table.c.id == sa.bindparam("key")).values(bound(changed))
        self.delete = sa.delete(table).where(table.c.id == sa.bindparam("key"))


_OF = {StoredProcedure: _Statements(procedures), Package: _Statements(packages)}
Kind = type[StoredProcedure] | type[Package]


def _values(found: StoredProcedure | Package) -> dict[str, Any]:
    if isinstance(found, Package):
        return {"owner_name": found.ownerName, "header": found.header, "body": found.body}
    return {"owner_name": found.ownerName, "source": found.source}


def find_procedure(session: Session, catalog: str, database: str, name: str) -> StoredProcedure | None:
    """Return a procedure, or None."""
    row = session.row(_OF[StoredProcedure].find, catalog_key=catalog, database_key=database, name_key=name)
    if row is None:
        return None
    catalog, database, name, owner, source = row
    return StoredProcedure(name=name, dbName=database, catName=catalog, ownerName=owner, source=source)


def find_package(session: Session, catalog: str, database: str, name: str) -> Package | None:
    """Return a package, or None."""
    row = session.row(_OF[Package].find, catalog_key=catalog, database_key=database, name_key=name)
    if row is None:
        return None
    catalog, database, name, owner, header, body = row
    return Package(catName=catalog, dbName=database, packageName=name, ownerName=owner, header=header, body=body)


def names(session: Session, kind: Kind, catalog: str, database: str | None) -> list[str]:
    """Return the names of the procedures, or packages, of a database, or of all of a catalog, ascending by database and name."""
    if database is None:
        return session.column(_OF[kind].all_names, catalog_key=catalog)
    return session.column(_OF[kind].names, catalog_key=catalog, database_key=database)


def put(session: Session, database_id: int, name: str, new: StoredProcedure | Package) -> None:
    """Add a procedure or package, or replace the one of its name."""
    statements = _OF[type(new)]
    key = session.number(statements.key, database_id=database_id, name_key=name)
    if key is None:
        session.insert(statements.table, database_id=database_id, name=name, **_values(new))
    else:
        session.execute(statements.update, key=key, **_values(new))


def delete(session: Session, kind: Kind, catalog: str, database: str, name: str) -> None:
    """Remove a procedure or package if it exists."""
    key = session.number(_OF[kind].key_by_names, catalog_key=catalog, database_key=database, name_key=name)
    if key is not None:
        session.execute(_OF[kind].delete, key=key)
