import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from sqlalchemy.engine import make_url

from metastore.errors import MetaError
from metastore.store.core import migrate
from metastore.store.core.all_tables import metadata
from metastore.store.core.database import Database, Session
from metastore.store.drivers import mysql
from metastore.store.transactions import transactions, write_ids
from metastore.store.transactions.write_ids import Range, TableKey
from tests.support.databases import databases

CHANGES_ROWS = re.compile(r"\s*(INSERT|UPDATE|DELETE)")
CHANGES_SCHEMA = re.compile(r"\s*(ALTER|CREATE|DROP) (TABLE|INDEX|UNIQUE INDEX)")


def test_a_fresh_database_has_no_schema(fresh_database_url: str) -> None:
    database = Database(fresh_database_url)
    assert migrate.current(database) is None
    database.close()


def test_a_test_gets_the_current_schema(database: Database) -> None:
    assert migrate.current(database) == migrate.revisions()[-1]


def test_the_servers_collate_and_encode_as_in_production(database_kind: str) -> None:
    if database_kind == "postgresql":
        assert databases.execute(databases.server("postgresql"), "SELECT 'a' < 'B'") == [(True,)]
    elif database_kind != "sqlite":
        assert databases.execute(databases.server(database_kind), "SELECT 'a' = 'A'") == [(1,)]


@pytest.mark.parametrize("kind", databases.SERVERS)
def test_rows_of_one_test_are_gone_in_the_next(kind: str, tmp_path: Path) -> None:
    with contextmanager(databases.fresh)(kind, tmp_path) as url:
        migrated = databases.Migrated(kind, url)
        databases.execute(make_url(url), "CREATE TABLE probe (name VARCHAR(10))")
        for _ in range(2):
            for taken in migrated.take(tmp_path):
                assert databases.execute(make_url(taken), "SELECT count(*) FROM probe") == [(0,)]
                databases.execute(make_url(taken), "INSERT INTO probe (name) VALUES ('x')")


@contextmanager
def connected(database: Database) -> Iterator[sa.Connection]:
    driver = {"sqlite": "sqlite", "postgresql": "postgresql+psycopg", "mysql": "mysql+pymysql"}[database.driver.name]
    engine = sa.create_engine(database.url.set(drivername=driver), poolclass=sa.NullPool)
    with engine.begin() as connection:
        yield connection
    engine.dispose()


def test_the_migrations_make_the_schema_of_the_model(database: Database) -> None:
    with connected(database) as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []


@pytest.mark.parametrize("kind", databases.SERVERS)
def test_a_database_s_name_may_be_as_long_as_the_server_allows(kind: str) -> None:
    name = f"metastore_test_{os.getpid()}_"
    url = databases.server(kind).set(database=name.ljust(63 if kind == "postgresql" else 64, "m"))
    databases.execute(databases.server(kind), f"CREATE DATABASE {url.database}")
    try:
        database = Database(url.render_as_string(hide_password=False))
        assert migrate.upgrade(database)
        database.close()
    finally:
        databases.execute(databases.server(kind), f"DROP DATABASE {url.database}")


def test_a_schema_that_may_not_be_read_is_no_missing_one(tmp_path: Path) -> None:
    with contextmanager(databases.fresh)("postgresql", tmp_path) as url, contextmanager(opened)(url) as database:
        migrate.upgrade(database)
        nobody = f"nobody_{os.getpid()}"
        databases.execute(database.url, f"CREATE ROLE {nobody} LOGIN")
        try:
            with contextmanager(opened)(database.url.set(username=nobody).render_as_string(hide_password=False)) as theirs:
                for call in (migrate.current, migrate.upgrade):
                    with pytest.raises(MetaError, match=f"database postgresql://{nobody}@.*permission denied for table alembic_version"):
                        call(theirs)
        finally:
            databases.execute(database.url, f"DROP ROLE {nobody}")


class BrokenOff(Exception):
    """The simulated interruption of a migration."""


@pytest.mark.parametrize("kind", ["mysql", databases.MYSQL8])
def test_a_server_that_waits_in_vain_for_another_one_s_migration_changes_nothing(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mysql, "MIGRATION_PATIENCE", 0)
    with contextmanager(databases.fresh)(kind, tmp_path) as url, contextmanager(opened)(url) as database:
        with connected(database) as other:
            assert other.execute(sa.text(f"SELECT GET_LOCK({mysql.MIGRATION_LOCK}, 0)")).scalar() == 1
            with pytest.raises(MetaError, match="another server"):
                migrate.upgrade(database)
        assert migrate.current(database) is None
        assert migrate.upgrade(database)


def opened(url: str) -> Iterator[Database]:
    database = Database(url)
    yield database
    database.close()


def breaking_off(database: Database, work: Callable[[], object]) -> int:
    """Run work that changes the schema, again and again until no statement is interrupted; return the number of interruptions.

    MariaDB and MySQL commit with each change of the schema. There the work is interrupted once after each change, and once before each that
    follows on changes of rows, when these are committed already.
    """
    broken: set[tuple[str, str]] = set()
    changed = [False]

    def break_off(when: str, statement: str) -> None:
        if (when, statement) not in broken:
            broken.add((when, statement))
            raise BrokenOff

    def before(_connection: object, cursor: Any, statement: str, *_: object) -> None:
        if CHANGES_SCHEMA.match(statement) and changed[0]:
            cursor.execute("COMMIT")
            break_off("before", statement)
        changed[0] = CHANGES_ROWS.match(statement) is not None or (changed[0] and not CHANGES_SCHEMA.match(statement))

    def after(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if CHANGES_SCHEMA.match(statement):
            break_off("after", statement)

    if database.driver.name != "mysql":
        work()
        return 0
    sa.event.listen(sa.Engine, "before_cursor_execute", before)
    sa.event.listen(sa.Engine, "after_cursor_execute", after)
    try:
        while True:
            changed[0] = False
            with suppress(BrokenOff):
                work()
                return len(broken)
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", before)
        sa.event.remove(sa.Engine, "after_cursor_execute", after)


def upgrade(database: Database) -> int:
    """Bring the schema to the newest revision, see `breaking_off`."""
    done = breaking_off(database, lambda: migrate.upgrade(database))
    with connected(database) as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    return done


def downgrade(database: Database, revision: str) -> None:
    """Bring the schema back to a revision, see `breaking_off`."""

    def work() -> None:
        with database.driver.migrating(database.url) as connection:
            config = Config()
            config.set_main_option("script_location", str(migrate.directory()))
            config.attributes["connection"] = connection
            command.downgrade(config, revision)

    breaking_off(database, work)
    assert migrate.current(database) == revision


def test_a_migration_that_breaks_off_is_run_again(fresh_database_url: str) -> None:
    database = Database(fresh_database_url)
    assert upgrade(database) >= (len(metadata.tables) if database.driver.name == "mysql" else 0)
    database.close()


def test_every_migration_can_be_undone(fresh_database_url: str) -> None:
    database = Database(fresh_database_url)
    assert migrate.upgrade(database)
    for revision in reversed(migrate.revisions()[:-1]):
        downgrade(database, revision)
    upgrade(database)
    database.close()


of_an_earlier_migration = pytest.mark.parametrize(
    "database_kind",
    [
        "sqlite",
        *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("postgresql", "mysql")),
        pytest.param("mysql8", marks=[pytest.mark.mysql8, pytest.mark.slow]),
    ],
    scope="session",
)
"""Runs a test on SQLite, and on the other databases as a slow test. A migration never changes after a later one exists."""


def asking(database: Database, text: str) -> list[tuple[object, ...]]:
    """Run a statement; return its rows."""

    def work(session: Session) -> list[tuple[object, ...]]:
        session.cursor.execute(text)
        return [] if text.startswith("INSERT") else list(session.cursor.fetchall())

    return database.write(work)


@of_an_earlier_migration
def test_written_values_stay_through_the_migration_that_keeps_them_as_one_row(fresh_database_url: str) -> None:
    database = Database(fresh_database_url)
    migrate.upgrade(database)
    downgrade(database, "0009")
    quote = "`" if database.driver.name == "mysql" else '"'
    where = ", ".join(f"{quote}{name}{quote}" for name in ("catalog", "database", "table", "partition"))
    inserted = [
        f"transaction_components (transaction_id, {where}, operation, write_id) VALUES (9, 'hive', 'db', 't', NULL, 'u', 9)",
        (
            f"completed_components (transaction_id, {where}, write_id, updates, time_ms) VALUES (1, 'hive', 'db', 't', 'p=1', 1, 0, 10),"
            " (1, 'hive', 'db', 't', 'p=1', 1, 1, 10), (2, 'hive', 'db', 't', NULL, 2, 1, 20), (3, 'hive', 'db', 't', NULL, 3, 1, 30)"
        ),
        (
            f"write_set ({where}, transaction_id, commit_id, operation) VALUES ('hive', 'db', 't', 'p=1', 1, 4, 'd'),"
            " ('hive', 'db', 't', NULL, 2, 5, 'u'), ('hive', 'db', 't', 'p=7', 2, 5, 'u')"
        ),
    ]
    for each in inserted:
        asking(database, f"INSERT INTO {each}")
    upgrade(database)
    columns = f"transaction_id, {quote}partition{quote}, operation, write_id, committed_ms, commit_id"
    found = asking(database, f"SELECT {columns} FROM transaction_components")
    assert sorted(found, key=str) == sorted(
        [
            (9, None, "u", 9, None, None),
            (1, "p=1", "i", 1, 10, None),
            (1, "p=1", "d", 1, 10, 4),
            (2, None, "u", 2, 20, 5),
            (2, "p=7", "u", 0, 0, 5),
            (3, None, "u", 3, 30, None),
        ],
        key=str,
    )
    downgrade(database, "0009")
    written = asking(database, f"SELECT transaction_id, {quote}partition{quote}, commit_id, operation FROM write_set")
    assert sorted(written, key=str) == sorted([(1, "p=1", 4, "d"), (2, None, 5, "u"), (2, "p=7", 5, "u")], key=str)
    done = asking(database, f"SELECT transaction_id, {quote}partition{quote}, write_id, updates, time_ms FROM completed_components")
    assert sorted(done, key=str) == sorted(
        [(1, "p=1", 1, 0, 10), (1, "p=1", 1, 1, 10), (2, None, 2, 1, 20), (2, "p=7", 0, 1, 0), (3, None, 3, 1, 30)], key=str
    )
    assert asking(database, "SELECT transaction_id FROM transaction_components") == [(9,)]
    database.close()


@of_an_earlier_migration
def test_write_ids_of_a_batch_are_rows_before_there_are_ranges(fresh_database_url: str) -> None:
    database = Database(fresh_database_url)
    migrate.upgrade(database)
    table = TableKey("hive", "db", "t")

    def fill(session: Session) -> None:
        ids = transactions.take_ids(session, 4)()
        transactions.insert(session, ids, transactions.OPEN, 0, (None, None, None), 0)
        write_ids.take(session, table, ids[:3])
        write_ids.insert_ranges(session, table, [Range(ids[0], ids[1], 1), Range(ids[2], ids[2], 3)])

    def query(text: str) -> list[tuple[object, ...]]:
        return asking(database, text)

    database.write(fill)
    assert query("SELECT next, last_transaction, last_change FROM write_id_counters") == [(4, 3, 0)]
    downgrade(database, "0006")
    assert query("SELECT transaction_id, write_id FROM write_ids ORDER BY transaction_id") == [(1, 1), (2, 2), (3, 3)]
    assert query("SELECT id, holds FROM transactions ORDER BY id") == [(1, 8), (2, 8), (3, 8), (4, 0)]
    upgrade(database)
    assert query("SELECT next, last_transaction, last_change FROM write_id_counters") == [(4, 4, 4)]
    database.close()


@of_an_earlier_migration
def test_places_are_kept_for_earlier_objects_too(fresh_database_url: str) -> None:
    database = Database(fresh_database_url)
    migrate.upgrade(database)
    downgrade(database, "0010")
    quote, long = "`" if database.driver.name == "mysql" else '"', "d" * 600
    inserted = [
        "catalogs (name, location, create_time) VALUES ('hive', '/wh', 0)",
        (
            f"{quote}databases{quote} (id, catalog, name, location, managed_location, parameters, create_time) "
            "VALUES (1, 'hive', 'd', 'file:///wh//d.db/', 's3a://b/d', '{}', 0)"
        ),
        *(
            "tables (id, database_id, name, type, create_time, last_access_time, retention, location, partition_keys, parameters, "
            f"rewrite_enabled) VALUES ({key}, 1, 't{key}', 'MANAGED_TABLE', 0, 0, 0, {location}, '[]', '{{}}', 0)"
            for key, location in ((1, "'file:///wh/t'"), (2, "NULL"), (3, "'nowhere'"), (4, f"'/{long}'"))
        ),
        *(
            "partitions (id, table_id, name, partition_values, location, parameters, create_time, last_access_time) "
            f"VALUES ({key}, 1, '{name}', '[]', {location}, '{{}}', 0, 0)"
            for key, name, location in (
                (1, "k=1", "'./k=1'"),
                (2, "k=2", "'./odd//x'"),
                (3, "k=3", "'s3n://b/x/'"),
                (4, "k=4", "NULL"),
                (5, "k=5", "'nowhere'"),
            )
        ),
    ]
    for each in inserted:
        asking(database, f"INSERT INTO {each}")
    upgrade(database)
    assert asking(database, f"SELECT place, managed_place FROM {quote}databases{quote}") == [("file:///wh/d.db", "s3://b/d")]
    assert asking(database, "SELECT place FROM tables ORDER BY id") == [("file:///wh/t",), (None,), (None,), (f"file:///{long}"[:512],)]
    assert asking(database, "SELECT place FROM partitions ORDER BY id") == [(None,), ("file:///wh/t/odd/x",), ("s3://b/x",), (None,), ("",)]
    database.close()
