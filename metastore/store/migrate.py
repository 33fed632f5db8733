"""Bring a database's schema up to date with Alembic, under a lock, so that several servers may start at once.

The check at start is one query; Alembic itself is loaded only when there is something to do. It fills new columns and else changes no data.
"""

from __future__ import annotations

import fcntl
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from metastore.errors import MetaError, VersionMismatch
from metastore.store.database import Database
from metastore.store.drivers import SQLiteDriver
from metastore.store.drivers.mysql import collation

VERSION = sa.select(sa.table("alembic_version", sa.column("version_num")).c.version_num)
LOCK_NAME = "LEFT(CONCAT('metastore-', DATABASE()), 64)"
"""SQL of the lock's name on MariaDB and MySQL, which takes no longer one."""
PATIENCE = 300
"""Seconds for which one server waits there until another has brought the schema up to date."""
ADVISORY_LOCK = 0x6D657461  # any number that no other program on the database uses


def directory() -> Path:
    """Return the folder of the migrations: inside the wheel, or beside the package in a checkout."""
    packaged = Path(__file__).parent.parent / "_migrations"
    return packaged if packaged.is_dir() else Path(__file__).parent.parent.parent / "migrations"


def revisions() -> list[str]:
    """Return the revisions that this server knows, oldest first: the numbers that the files' names begin with."""
    names = sorted(path.name for path in (directory() / "versions").glob("*.py"))
    return [match[0] for name in names if (match := re.match(r"\d{4}", name))]


def current(database: Database) -> str | None:
    """Return the schema's revision, None for a database without one."""
    try:
        row = database.read(lambda session: session.row(VERSION))
    except Exception as error:
        if "alembic_version" in str(error):
            return None
        raise
    return None if row is None else str(row[0])


def upgrade(database: Database) -> bool:
    """Bring the schema to the newest revision; return whether anything was done.

    Raises VersionMismatch when a newer server has made the schema.
    """
    if not _behind(database):
        return False
    with _exclusive(database) as connection:
        if not _behind(database):
            return False
        from alembic import command
        from alembic.config import Config

        config = Config()
        config.set_main_option("script_location", str(directory()))
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
    return True


def _behind(database: Database) -> bool:
    known = revisions()
    found = current(database)
    if found is not None and found not in known:
        raise VersionMismatch(
            f"the schema of database {database.url.render_as_string()} has revision {found}, this server knows {known[-1]}: "
            "it was made by a newer server; install that version"
        )
    return found != known[-1]


@contextmanager
def _exclusive(database: Database) -> Iterator[Any]:
    """Hold the database's migration lock and yield a SQLAlchemy connection in a transaction."""
    driver = {"sqlite": "sqlite", "postgresql": "postgresql+psycopg", "mysql": "mysql+pymysql"}[database.driver.name]
    engine = sa.create_engine(database.url.set(drivername=driver), poolclass=sa.NullPool)
    try:
        if isinstance(database.driver, SQLiteDriver):
            database.driver.path.parent.mkdir(parents=True, exist_ok=True)
            with Path(f"{database.driver.path}.upgrade").open("wb") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                with engine.begin() as connection:
                    yield connection
        elif database.driver.name == "postgresql":
            with engine.begin() as connection:
                connection.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": ADVISORY_LOCK})
                yield connection
        else:
            with engine.begin() as connection:
                if connection.execute(sa.text(f"SELECT GET_LOCK({LOCK_NAME}, :patience)"), {"patience": PATIENCE}).scalar() != 1:
                    raise MetaError(
                        f"database {database.url.render_as_string()}: another server has been bringing its schema up to date for "
                        f"{PATIENCE} s; wait for it, and start again"
                    )
                _binary_collation(connection)
                yield connection
    finally:
        engine.dispose()


def _binary_collation(connection: Any) -> None:
    """Let new tables compare text by its bytes, spaces at its end included, on MariaDB and MySQL."""
    version, present = connection.execute(sa.text("SELECT version(), @@collation_database")).one()
    connection.execute(sa.text(f"ALTER DATABASE CHARACTER SET utf8mb4 COLLATE {collation(version, present)}"))
