"""Ask a database for its release and time, and whether it takes changes. Leaves nothing in it."""

from __future__ import annotations

import time
from typing import NamedTuple
from uuid import uuid4

import sqlalchemy as sa

from metastore.store.core.database import Database, Session
from metastore.store.schema.model import counters

_QUESTIONS = {
    "sqlite": "SELECT sqlite_version(), NULL",
    "postgresql": "SELECT current_setting('server_version'), extract(epoch FROM clock_timestamp())",
    "mysql": "SELECT version(), UNIX_TIMESTAMP()",
}
_REMOVE = sa.delete(counters).where(counters.c.name == sa.bindparam("name"))


class Probe(NamedTuple):
    """The answer of a database."""

    release: str
    seconds: float
    """The seconds of the round trip."""
    ahead: float | None
    """Seconds by which the clock of the database's machine is ahead of this one's, to a second; None where the database is a file."""


def probe(database: Database) -> Probe:
    """Return the answer of a database. Raises MetaError for one that does not answer, or whose pooler loses sessions."""
    with database.explained():
        database.driver.check()
        database.read(lambda session: session.row(sa.text("SELECT 1")))  # connects
        began, at = time.monotonic(), time.time()
        row = database.read(lambda session: session.row(sa.text(_QUESTIONS[database.driver.name])))
        took = time.monotonic() - began
    assert row is not None  # an expression has one row
    release, clock = row
    return Probe(str(release), took, None if clock is None else float(clock) - at - took / 2)


def change_nothing(database: Database) -> None:
    """Commit a row and its removal in one transaction, which the database has to write. Raises MetaError as any change does."""
    name = f"probe {uuid4().hex}"

    def work(session: Session) -> None:
        session.insert(counters, name=name, value=0)
        session.execute(_REMOVE, name=name)

    database.write(work)
