"""Roles' members and privileges of a Java metastore as records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from metastore.idl import HiveObjectType
from metastore.transfer.hive.objects import Databases, table_names
from metastore.transfer.hive.schema import HiveSchema, flag
from metastore.transfer.hive.tables import principal_type
from metastore.transfer.records import Record

_GRANT = ("PRINCIPAL_TYPE", "PRINCIPAL_NAME", "GRANTOR_TYPE", "GRANTOR", "AUTHORIZER", "GRANT_OPTION", "CREATE_TIME")
_OF = {
    "GLOBAL_PRIVS": ("USER_GRANT_ID", "USER_PRIV", None, HiveObjectType.GLOBAL),
    "DB_PRIVS": ("DB_GRANT_ID", "DB_PRIV", "DB_ID", HiveObjectType.DATABASE),
    "TBL_PRIVS": ("TBL_GRANT_ID", "TBL_PRIV", "TBL_ID", HiveObjectType.TABLE),
    "PART_PRIVS": ("PART_GRANT_ID", "PART_PRIV", "PART_ID", HiveObjectType.PARTITION),
    "DC_PRIVS": ("DC_GRANT_ID", "DC_PRIV", "NAME", HiveObjectType.DATACONNECTOR),
    "TBL_COL_PRIVS": ("TBL_COLUMN_GRANT_ID", "TBL_COL_PRIV", "TBL_ID", HiveObjectType.COLUMN),
    "PART_COL_PRIVS": ("PART_COLUMN_GRANT_ID", "PART_COL_PRIV", "PART_ID", HiveObjectType.COLUMN),
}
"""Hive's tables: the number of a row, the privilege, the number or name of the object, and the kind of object."""
Names = tuple[str | None, str | None, str | None, str | None]
"""Catalog, database, table, partition; a data connector is in the place of the table."""


def role_grants(schema: HiveSchema, _: Databases) -> Iterator[Record]:
    """Yield the members of roles."""
    roles = {key: name for key, name in schema.rows("ROLES", "ROLE_ID", "ROLE_NAME")}  # noqa: C416  # their types
    columns = ("ROLE_ID", "PRINCIPAL_TYPE", "PRINCIPAL_NAME", "GRANT_OPTION", "ADD_TIME", "GRANTOR", "GRANTOR_TYPE")
    for role, kind, name, option, time, grantor, grantor_type in schema.rows("ROLE_MAP", *columns):
        body = {"grant_option": int(flag(option)), "grant_time": time, "grantor": grantor, "grantor_type": principal_type(grantor_type)}
        yield Record("role_grant", (roles[role], principal_type(kind), name), body)


def privileges(schema: HiveSchema, databases: Databases) -> Iterator[Record]:
    """Yield the privileges of all objects."""
    for table, (number, privilege, owner, kind) in _OF.items():
        for rows in schema.pages(table, number, owner or number, "COLUMN_NAME", privilege, *_GRANT):
            names = _names(schema, databases, owner, {row[1] for row in rows})
            for _, key, column, granted, principal_kind, principal, grantor_type, grantor, authorizer, option, created in rows:
                where = names.get(key)
                if where is not None:
                    by = (principal_type(grantor_type), grantor, authorizer)
                    whole = (kind, *where, column, principal_type(principal_kind), principal, granted, *by)
                    yield Record("privilege", whole, {"grant_option": int(flag(option)), "create_time": created})


def _names(schema: HiveSchema, databases: Databases, owner: str | None, keys: set[Any]) -> dict[Any, Names]:
    if owner is None:
        return dict.fromkeys(keys, (None, None, None, None))
    if owner == "NAME":
        return {key: (None, None, key, None) for key in keys}
    if owner == "DB_ID":
        return {key: (*databases[key], None, None) for key in keys if key in databases}
    if owner == "TBL_ID":
        return {key: (*names, None) for key, names in table_names(schema, databases, keys).items()}
    rows = list(schema.among("PARTITIONS", "PART_ID", keys, "TBL_ID", "PART_NAME"))
    tables = table_names(schema, databases, {row[1] for row in rows})
    return {key: (*tables[table], name) for key, table, name in rows if table in tables}
