"""Make and empty the databases that the tests run on: SQLite files, and databases of a PostgreSQL, a MariaDB and a MySQL server.

The servers' addresses come from METASTORE_TEST_POSTGRESQL, METASTORE_TEST_MYSQL (MariaDB) and METASTORE_TEST_MYSQL8; without them
`.ci/databases start` is run, and its servers stay for the next run (`.ci/databases stop` ends them). It never touches a database
that it did not make.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from functools import cache
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from sqlalchemy.engine import URL, make_url

MYSQL8 = pytest.param("mysql8", marks=pytest.mark.mysql8)
SERVERS = ("postgresql", "mysql", MYSQL8)
KINDS = ("sqlite", *SERVERS)
_NUMBERS = count()


def ci() -> ModuleType:
    """Load `.ci/databases`, which finds the servers' programs and a user who may run them."""
    loader = importlib.machinery.SourceFileLoader("ci_databases", str(Path(__file__).parents[3] / ".ci" / "databases"))
    spec = importlib.util.spec_from_loader("ci_databases", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


@cache
def server(kind: str) -> URL:
    """Return the URL of a database server; a missing one is a failure in CI, and a skip elsewhere."""
    variable = f"METASTORE_TEST_{kind.upper()}"
    if variable not in os.environ:
        script = Path(__file__).parents[3] / ".ci" / "databases"
        command = [sys.executable, str(script), "start", *(["--mysql8"] if kind == "mysql8" else [])]
        started = subprocess.run(command, capture_output=True, text=True, check=False)
        if started.returncode != 0:
            message = f"{variable} is not set and .ci/databases start failed: {started.stderr[-1000:]}"
            pytest.fail(message) if os.environ.get("CI") == "true" else pytest.skip(message)
        os.environ.update(line.split("=", 1) for line in started.stdout.splitlines() if "=" in line)  # type: ignore[misc]
    return make_url(os.environ[variable])


def connect(url: URL) -> Any:
    """Open an autocommit connection to a server's database."""
    if url.get_backend_name() == "postgresql":
        import psycopg

        return psycopg.connect(
            host=url.host, port=url.port or 5432, user=url.username, password=url.password, dbname=url.database,
            autocommit=True,
        )  # fmt: skip
    import pymysql
    from pymysql.constants import CLIENT

    return pymysql.connect(
        host=url.host or "127.0.0.1", port=url.port or 3306, user=url.username, password=url.password or "",
        database=url.database, autocommit=True, client_flag=CLIENT.MULTI_STATEMENTS, ssl_disabled=True,
    )  # fmt: skip


def execute(url: URL, *statements: str) -> list[tuple[Any, ...]]:
    """Run statements on a server and return the rows of the last."""
    with closing(connect(url)) as connection, closing(connection.cursor()) as cursor:
        for statement in statements:
            cursor.execute(statement)
        return list(cursor.fetchall()) if cursor.description else []


def fresh(kind: str, folder: Path) -> Iterator[str]:
    """Make a database with nothing in it, yield its URL, and drop it."""
    name = f"metastore_test_{os.getpid()}_{next(_NUMBERS)}"
    if kind == "sqlite":
        path = folder / f"{name}.db"
        yield f"sqlite:///{path}"
        for suffix in ("", "-wal", "-shm"):
            Path(f"{path}{suffix}").unlink(missing_ok=True)
        return
    url = server(kind)
    execute(url, f"CREATE DATABASE {name}")
    try:
        yield url.set(database=name).render_as_string(hide_password=False)
    finally:
        execute(url, f"DROP DATABASE {name}" + (" WITH (FORCE)" if kind == "postgresql" else ""))


FIRST_ID = 3_141_593
"""The first id of each table's rows on a server, where ids do not begin at 1 for each test. No row has a small id, as tests use them for
missing objects."""


class Migrated:
    """One database of a kind with the current schema; each test gets it, or for SQLite a copy of it, without rows."""

    def __init__(self, kind: str, url: str) -> None:
        from metastore.store.core import migrate
        from metastore.store.core.database import Database

        self.kind = kind
        self.url = url
        database = Database(url)
        migrate.upgrade(database)
        database.close()
        if kind == "sqlite":
            with closing(sqlite3.connect(str(make_url(url).database))) as connection:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        else:
            with closing(connect(make_url(url))) as connection, closing(connection.cursor()) as cursor:
                (_set_ids_postgresql if kind == "postgresql" else _set_ids_mysql)(cursor)

    def take(self, folder: Path) -> Iterator[str]:
        """Yield the URL of an empty database with the schema; on a server the ids continue from the test before."""
        if self.kind == "sqlite":
            path = folder / "metastore.db"
            self.copy_to(path)
            yield f"sqlite:///{path}"
        else:
            yield self.url
            with closing(connect(make_url(self.url))) as connection, closing(connection.cursor()) as cursor:
                (_empty_postgresql if self.kind == "postgresql" else _empty_mysql)(cursor)

    def copy_to(self, path: Path) -> None:
        """Copy the SQLite database to a file."""
        shutil.copy(str(make_url(self.url).database), path)


def _set_ids_postgresql(cursor: Any) -> None:
    cursor.execute("SELECT sequencename FROM pg_sequences WHERE schemaname = current_schema()")
    for (name,) in cursor.fetchall():
        cursor.execute(f"ALTER SEQUENCE {name} RESTART WITH {FIRST_ID}")


def _set_ids_mysql(cursor: Any) -> None:
    cursor.execute("SELECT table_name FROM information_schema.columns WHERE table_schema = DATABASE() AND extra = 'auto_increment'")
    for (name,) in cursor.fetchall():
        cursor.execute(f"ALTER TABLE `{name}` AUTO_INCREMENT = {FIRST_ID}")


def _empty_postgresql(cursor: Any) -> None:
    """Delete the rows and the pages of tables that have pages. TRUNCATE takes twice as long: it makes new files of all indexes."""
    cursor.execute(
        "SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' AND pg_relation_size(oid) > 0"
    )
    if tables := _to_empty(cursor):
        cursor.execute("; ".join(f"DELETE FROM {name}" for name in tables))
        cursor.execute(f"VACUUM {', '.join(tables)}")


def _empty_mysql(cursor: Any) -> None:
    """Delete all rows: TRUNCATE takes fifty times as long."""
    cursor.execute("SHOW TABLES")
    cursor.execute("; ".join(f"DELETE FROM `{name}`" for name in _to_empty(cursor)))
    while cursor.nextset():
        pass


def _to_empty(cursor: Any) -> list[str]:
    """Return the tables in the rows of a cursor. Tables that refer to others are before them."""
    from metastore.store.core.all_tables import metadata

    place = {table.name: number for number, table in enumerate(metadata.sorted_tables)}
    tables = [name for (name,) in cursor.fetchall() if name != "alembic_version"]
    return sorted(tables, key=lambda name: place.get(name, len(place)), reverse=True)
