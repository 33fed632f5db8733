"""Remove everything in a database with a fixed number of statements. Never touches the database's own row."""

from __future__ import annotations

from collections.abc import Iterable

import sqlalchemy as sa

from metastore.store.core.database import Session
from metastore.store.engines import registry
from metastore.store.schema.engines import packages, procedures
from metastore.store.schema.model import (
    constraints,
    descriptors,
    functions,
    partition_statistics,
    partitions,
    privileges,
    table_statistics,
    tables,
)

_TABLES = sa.select(tables.c.id).where(tables.c.database_id == sa.bindparam("key"))
STATEMENTS: dict[str, tuple[sa.Delete, ...]] = {
    "tables": (
        *(
            sa.delete(table).where(table.c.table_id.in_(_TABLES))
            for table in (partition_statistics, partitions, table_statistics, privileges, descriptors)
        ),
        sa.delete(constraints).where(sa.or_(constraints.c.table_id.in_(_TABLES), constraints.c.parent_table_id.in_(_TABLES))),
        sa.delete(tables).where(tables.c.database_id == sa.bindparam("key")),
    ),
    "functions": (sa.delete(functions).where(functions.c.database_id == sa.bindparam("key")),),
    "schemas": registry.DELETE_OF_DATABASE,
    "stored procedures": (sa.delete(procedures).where(procedures.c.database_id == sa.bindparam("key")),),
    "packages": (sa.delete(packages).where(packages.c.database_id == sa.bindparam("key")),),
}
"""The statements that remove all objects of a kind, by the kinds of `databases.contents`."""


def delete_contents(session: Session, database_id: int, kinds: Iterable[str]) -> None:
    """Remove a database's objects of these kinds, with all rows that depend on them."""
    for kind in kinds:
        for statement in STATEMENTS[kind]:
            session.enqueue(statement, key=database_id)
