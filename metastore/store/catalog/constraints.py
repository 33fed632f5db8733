"""Rows of constraints: one for each constraint, its columns as JSON. Tables are referred to by key, so a rename shows at once.

Rules for columns and keys are not checked here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

import orjson
import sqlalchemy as sa

from metastore.store.core.clauses import Among
from metastore.store.core.database import Session
from metastore.store.drivers.contract import Row
from metastore.store.schema.model import constraints, databases, tables

CONSTRAINT = constraints.c
CHILD, CHILD_DATABASE = tables.alias("child"), databases.alias("child_database")
PARENT, PARENT_DATABASE = tables.alias("parent"), databases.alias("parent_database")
COLUMNS = {
    "kind": CONSTRAINT.kind,
    "name": CONSTRAINT.name,
    "body": CONSTRAINT.body,
    "catalog": CHILD_DATABASE.c.catalog,
    "database": CHILD_DATABASE.c.name,
    "table": CHILD.c.name,
    "parent_database": PARENT_DATABASE.c.name,
    "parent_table": PARENT.c.name,
}
"""The columns by the fields of `Constraint`."""
JOINED = (
    constraints.join(CHILD, CONSTRAINT.table_id == CHILD.c.id)
    .join(CHILD_DATABASE, CHILD.c.database_id == CHILD_DATABASE.c.id)
    .outerjoin(PARENT, CONSTRAINT.parent_table_id == PARENT.c.id)
    .outerjoin(PARENT_DATABASE, PARENT.c.database_id == PARENT_DATABASE.c.id)
)
DELETE = sa.delete(constraints).where(CONSTRAINT.table_id == sa.bindparam("key"), CONSTRAINT.name == sa.bindparam("name_key"))
REFERRING = sa.select(
    CONSTRAINT.id, CONSTRAINT.table_id, CONSTRAINT.kind, CONSTRAINT.name, CONSTRAINT.parent_table_id, CONSTRAINT.body
).where(sa.or_(CONSTRAINT.table_id == sa.bindparam("key"), CONSTRAINT.parent_table_id == sa.bindparam("key")))
DELETE_KEYED = sa.delete(constraints).where(Among(CONSTRAINT.id, "keys"))
INSERTED = ("table_id", "kind", "name", "parent_table_id", "body")


class Constraint(NamedTuple):
    """A constraint with the present names of its tables; `kind` as in the rows, `body` as the service made it."""

    kind: str
    name: str
    body: dict[str, Any]
    catalog: str = ""
    database: str = ""
    table: str = ""
    parent_database: str | None = None
    parent_table: str | None = None


@cache
def _listing(filters: tuple[str, ...]) -> sa.Select[Any]:
    conditions = [{**COLUMNS, "table_id": CONSTRAINT.table_id}[name] == sa.bindparam(f"{name}_key") for name in filters]
    return sa.select(*COLUMNS.values()).select_from(JOINED).where(*conditions).order_by(CONSTRAINT.id)


def find(session: Session, **filters: str | int | None) -> list[Constraint]:
    """Return the constraints whose fields (or `table_id`) equal the filters that are not None, in the order of their addition."""
    given = {name: value for name, value in filters.items() if value is not None}
    rows = session.rows(_listing(tuple(sorted(given))), **{f"{name}_key": value for name, value in given.items()})
    return [Constraint(kind, name, orjson.loads(body), *names) for kind, name, body, *names in rows]


def insert(session: Session, table_id: int, new: Iterable[tuple[Constraint, int | None]]) -> None:
    """Add constraints (constraint, key of the parent table) to a table."""
    rows: Sequence[Row] = [
        (table_id, constraint.kind, constraint.name, parent, orjson.dumps(constraint.body).decode()) for constraint, parent in new
    ]
    session.insert_many(constraints, INSERTED, rows)


def delete(session: Session, table_id: int, name: str) -> bool:
    """Remove a constraint; return whether it existed."""
    return session.execute(DELETE, key=table_id, name_key=name) > 0


class StoredConstraint(NamedTuple):
    """The row of a constraint of the table `table_id`. A foreign key refers to the table `parent_table_id`."""

    id: int
    table_id: int
    kind: str
    name: str
    parent_table_id: int | None
    body: str

    def decoded(self) -> dict[str, Any]:
        """Return the body."""
        return dict(orjson.loads(self.body))

    def changed(self, body: dict[str, Any]) -> StoredConstraint:
        """Return the row with another body."""
        return self._replace(body=orjson.dumps(body).decode())


def referring(session: Session, table_id: int) -> list[StoredConstraint]:
    """Return the rows of a table's constraints, and of those that refer to it."""
    return [StoredConstraint(*row) for row in session.rows(REFERRING, key=table_id)]


def replace(session: Session, changed: Sequence[StoredConstraint], gone: Sequence[int]) -> None:
    """Write changed rows in their places, and remove others by key."""
    session.enqueue_upsert(constraints, StoredConstraint._fields, changed)
    if gone:
        session.enqueue(DELETE_KEYED, keys=list(gone))
