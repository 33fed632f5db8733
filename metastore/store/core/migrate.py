"""Bring a database's schema up to date with Alembic, under a lock, so that several servers may start at once.

The check at start is one query; Alembic itself is loaded only when there is something to do. An upgrade fills new columns and else changes
no data.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import sqlalchemy as sa

from metastore.errors import VersionMismatch
from metastore.store.core.database import Database
from metastore.store.drivers.contract import NoSuchTable

VERSION = sa.select(sa.table("alembic_version", sa.column("version_num")).c.version_num)


def directory() -> Path:
    """Return the folder of the migrations: inside the wheel, or beside the package in a checkout."""
    packaged = Path(__file__).parents[2] / "_migrations"
    return packaged if packaged.is_dir() else Path(__file__).parents[3] / "migrations"


def revisions() -> list[str]:
    """Return the revisions that this server knows, oldest first: the numbers that the files' names begin with."""
    names = sorted(path.name for path in (directory() / "versions").glob("*.py"))
    return [match[0] for name in names if (match := re.match(r"\d{4}", name))]


def current(database: Database) -> str | None:
    """Return the schema's revision, None for a database without one. MetaError when the database refuses."""
    try:
        with database.explained():
            row = database.read(lambda session: session.row(VERSION))
    except NoSuchTable:
        return None
    return None if row is None else str(row[0])


def upgrade(database: Database, progress: Callable[[str], None] = lambda _: None) -> bool:
    """Bring the schema to the newest revision; return whether anything was done. `progress` is called with each revision that was reached.

    Raises VersionMismatch when a newer server has made the schema, MetaError when the database refuses.
    """
    if not _behind(database):
        return False
    with database.explained(), database.driver.migrating(database.url) as connection:
        if not _behind(database):
            return False
        from alembic import command
        from alembic.config import Config

        config = Config()
        config.set_main_option("script_location", str(directory()))
        config.attributes.update(connection=connection, reached=lambda step, **_: progress(step.up_revision_id))
        command.upgrade(config, "head")
    return True


def missing(database: Database) -> int:
    """Return the number of revisions that the schema lacks. Raises VersionMismatch as `upgrade` does."""
    found, known = current(database), revisions()
    return (len(known) - (known.index(found) + 1 if found is not None else 0)) if _behind(database) else 0


def _behind(database: Database) -> bool:
    known = revisions()
    found = current(database)
    if found is not None and found not in known:
        raise VersionMismatch(
            f"the schema of database {database.url.render_as_string()} has revision {found}, this server knows {known[-1]}: "
            "it was made by a newer server; install that version"
        )
    return found != known[-1]
