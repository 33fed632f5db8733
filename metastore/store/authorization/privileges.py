"""Rows of privileges: one for each privilege of a principal on an object. Objects are referred to by key, so a rename shows at once.

Writers take their turn by locking the role `public` first, since rows with absent keys can not be unique.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import orjson
import sqlalchemy as sa

from metastore.idl import HiveObjectPrivilege, HiveObjectRef, HiveObjectType, PrivilegeGrantInfo
from metastore.store.core import authorization_changes
from metastore.store.core.clauses import Among, constant
from metastore.store.core.database import Session
from metastore.store.drivers.contract import Row
from metastore.store.schema.model import databases, partitions, privileges, tables


class PrivilegeObject(NamedTuple):
    """The object of a privilege: its type, and the keys of its rows. Keys that do not belong to the type are None."""

    object_type: int
    database_id: int | None = None
    table_id: int | None = None
    partition_id: int | None = None
    column_name: str | None = None
    connector_name: str | None = None


PRIVILEGE = privileges.c
DATABASE, TABLE_DATABASE = databases.alias("own_database"), databases.alias("table_database")
COLUMNS = {
    "object_type": PRIVILEGE.object_type,
    "catalog": sa.func.coalesce(DATABASE.c.catalog, TABLE_DATABASE.c.catalog),
    "database": sa.func.coalesce(DATABASE.c.name, TABLE_DATABASE.c.name),
    "name": sa.func.coalesce(tables.c.name, PRIVILEGE.connector_name),
    "partition_values": partitions.c.partition_values,
    "column_name": PRIVILEGE.column_name,
    "principal_name": PRIVILEGE.principal_name,
    "principal_type": PRIVILEGE.principal_type,
    "privilege": PRIVILEGE.privilege,
    "create_time": PRIVILEGE.create_time,
    "grantor": PRIVILEGE.grantor,
    "grantor_type": PRIVILEGE.grantor_type,
    "grant_option": PRIVILEGE.grant_option,
    "authorizer": PRIVILEGE.authorizer,
    "id": PRIVILEGE.id,
}
"""The columns to read of a privilege."""
JOINED = (
    privileges.outerjoin(DATABASE, PRIVILEGE.database_id == DATABASE.c.id)
    .outerjoin(tables, PRIVILEGE.table_id == tables.c.id)
    .outerjoin(TABLE_DATABASE, tables.c.database_id == TABLE_DATABASE.c.id)
    .outerjoin(partitions, PRIVILEGE.partition_id == partitions.c.id)
)
FILTERS = {**PRIVILEGE, **COLUMNS}
VALUES = tuple(PRIVILEGE.keys())[1:]
"""All columns but the key, in the order of `insert`."""
DELETE = sa.delete(privileges).where(Among(PRIVILEGE.id, "keys"))
DELETE_OF_CONNECTOR = sa.delete(privileges).where(PRIVILEGE.connector_name == sa.bindparam("key"))
TAKE_OPTION = sa.update(privileges).where(Among(PRIVILEGE.id, "keys")).values(grant_option=constant(0))


class StoredPrivilege(NamedTuple):
    """A stored privilege and its key."""

    key: int
    privilege: HiveObjectPrivilege


def _granted(row: Row) -> StoredPrivilege:
    kind, catalog, database, thing, values, column, name, principal, privilege, created, grantor, grantor_type, option, by, key = row
    return StoredPrivilege(
        key,
        HiveObjectPrivilege(
            hiveObject=HiveObjectRef(
                objectType=kind,
                dbName=database,
                objectName=thing,
                partValues=orjson.loads(values) if values else None,
                columnName=column,
                catName=catalog,
            ),
            principalName=name,
            principalType=principal,
            authorizer=by,
            grantInfo=PrivilegeGrantInfo(
                privilege=privilege, createTime=created, grantor=grantor, grantorType=grantor_type, grantOption=bool(option)
            ),
        ),
    )


@cache
def _listing(equal: tuple[str, ...], absent: tuple[str, ...]) -> sa.Select[Any]:
    conditions = [FILTERS[name] == sa.bindparam(f"{name}_key") for name in equal]
    return (
        sa.select(*COLUMNS.values())
        .select_from(JOINED)
        .where(*conditions, *(FILTERS[name].is_(None) for name in absent))
        .order_by(PRIVILEGE.id)
    )


def find(session: Session, **filters: Any) -> list[StoredPrivilege]:
    """Return the privileges whose columns equal the filters (see `FILTERS`) that are not None, in the order of their grants."""
    return _find(session, filters, ())


def on(session: Session, thing: PrivilegeObject, **filters: Any) -> list[StoredPrivilege]:
    """Return the privileges on exactly one object whose columns equal further filters, as in `find`."""
    own = thing._asdict()
    return _find(session, {**filters, **own}, tuple(name for name, value in own.items() if value is None))


def _find(session: Session, filters: Mapping[str, Any], absent: tuple[str, ...]) -> list[StoredPrivilege]:
    equal = {name: value for name, value in filters.items() if value is not None}
    rows = session.rows(_listing(tuple(sorted(equal)), absent), **{f"{name}_key": value for name, value in equal.items()})
    return [_granted(row) for row in rows]


def insert(session: Session, new: Iterable[tuple[PrivilegeObject, HiveObjectPrivilege]]) -> None:
    """Add privileges on objects; each `grantInfo` names one privilege."""
    authorization_changes.note(session)
    session.insert_many(
        privileges,
        VALUES,
        [
            (
                *thing,
                each.principalName,
                each.principalType,
                each.grantInfo.privilege,
                int(bool(each.grantInfo.grantOption)),
                each.grantInfo.createTime or 0,
                each.grantInfo.grantor,
                each.grantInfo.grantorType,
                each.authorizer,
            )
            for thing, each in new
        ],
    )


def delete(session: Session, keys: Sequence[int]) -> None:
    """Remove privileges."""
    authorization_changes.note(session)
    session.execute(DELETE, keys=list(keys))


def delete_of_connector(session: Session, name: str) -> None:
    """Remove the privileges on a data connector."""
    if session.execute(DELETE_OF_CONNECTOR, key=name):
        authorization_changes.note(session)


def take_option(session: Session, keys: Sequence[int]) -> None:
    """Take the grant option from privileges."""
    authorization_changes.note(session)
    session.execute(TAKE_OPTION, keys=list(keys))


GLOBAL = PrivilegeObject(HiveObjectType.GLOBAL)
