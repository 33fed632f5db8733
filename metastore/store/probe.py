"""Find out whether the database takes changes. Leaves nothing in it."""

from __future__ import annotations

from uuid import uuid4

import sqlalchemy as sa

from metastore.store.database import Database, Session
from metastore.store.schema import counters

_REMOVE = sa.delete(counters).where(counters.c.name == sa.bindparam("name"))


def change_nothing(database: Database) -> None:
    """Commit a row and its removal in one transaction, which the database has to write. Raises MetaError as any change does."""
    name = f"probe {uuid4().hex}"

    def work(session: Session) -> None:
        session.insert(counters, name=name, value=0)
        session.execute(_REMOVE, name=name)

    database.write(work)
