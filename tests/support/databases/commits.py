"""Make the commit of a transaction fail in the database itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from metastore.listeners.events import Event
from metastore.store.core.database import Database
from tests.support.databases.databases import execute

Spoil = Callable[[Event, Any], None]


@contextmanager
def failing_commits(database: Database) -> Iterator[Spoil]:
    """Yield the work of a transactional listener after which COMMIT fails and nothing is committed.

    SQLite and PostgreSQL refuse a row that violates a deferred foreign key. MariaDB has no such keys: its connection is killed.
    """
    url = database.url
    if database.driver.name == "mysql":

        def kill(_event: Event, session: Any) -> None:
            session.cursor.execute("SELECT CONNECTION_ID()")
            ((number,),) = session.cursor.fetchall()
            execute(url, f"KILL {number}")

        yield kill
        return
    statements = (
        "CREATE TABLE spoiled_parent (id INTEGER PRIMARY KEY)",
        "CREATE TABLE spoiled (id INTEGER REFERENCES spoiled_parent (id) DEFERRABLE INITIALLY DEFERRED)",
    )
    for statement in statements:
        database.write(lambda session, text=statement: session.cursor.execute(text))  # type: ignore[misc]  # bound now

    def insert(_event: Event, session: Any) -> None:
        session.cursor.execute("INSERT INTO spoiled VALUES (1)")

    yield insert
    for name in ("spoiled", "spoiled_parent"):
        database.write(lambda session, text=f"DROP TABLE {name}": session.cursor.execute(text))  # type: ignore[misc]  # bound now
