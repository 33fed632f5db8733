from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from sqlalchemy.engine import make_url

from metastore.store import migrate, schema
from metastore.store.database import Database
from tests import databases


def test_a_fresh_database_has_no_schema(fresh_database_url: str) -> None:
    database = Database(fresh_database_url)
    assert migrate.current(database) is None
    database.close()


def test_a_test_gets_the_current_schema(database: Database) -> None:
    assert migrate.current(database) == migrate.revisions()[-1]


def test_the_servers_collate_and_encode_as_in_production(database_kind: str) -> None:
    if database_kind == "postgresql":
        assert databases.execute(databases.server("postgresql"), "SELECT 'a' < 'B'") == [(True,)]
    elif database_kind == "mysql":
        assert databases.execute(databases.server("mysql"), "SELECT 'a' = 'A'") == [(1,)]


@pytest.mark.parametrize("kind", ["postgresql", "mysql"])
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


def test_the_migrations_make_what_the_model_declares(database: Database) -> None:
    with connected(database) as connection:
        assert compare_metadata(MigrationContext.configure(connection), schema.metadata) == []


def test_every_migration_can_be_undone(fresh_database_url: str) -> None:
    database = Database(fresh_database_url)
    assert migrate.upgrade(database)
    for revision in reversed(migrate.revisions()[:-1]):
        with connected(database) as connection:
            config = Config()
            config.set_main_option("script_location", str(migrate.directory()))
            config.attributes["connection"] = connection
            command.downgrade(config, revision)
        assert migrate.current(database) == revision
    assert migrate.upgrade(database)
    with connected(database) as connection:
        assert compare_metadata(MigrationContext.configure(connection), schema.metadata) == []
    database.close()
