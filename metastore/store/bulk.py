"""Remove everything in a database with a fixed number of statements. Never touches the database's own row."""

from __future__ import annotations

import sqlalchemy as sa

from metastore.store.database import Session
from metastore.store.schema import (
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
STATEMENTS = (
    *(
        sa.delete(table).where(table.c.table_id.in_(_TABLES))
        for table in (partition_statistics, partitions, table_statistics, privileges, descriptors)
    ),
    sa.delete(constraints).where(sa.or_(constraints.c.table_id.in_(_TABLES), constraints.c.parent_table_id.in_(_TABLES))),
    sa.delete(tables).where(tables.c.database_id == sa.bindparam("key")),
    sa.delete(functions).where(functions.c.database_id == sa.bindparam("key")),
)


def delete_contents(session: Session, database_id: int) -> None:
    """Remove a database's tables and functions with all that hangs on them."""
    for statement in STATEMENTS:
        session.execute(statement, key=database_id)
