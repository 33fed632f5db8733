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

from metastore.store import migrate, schema, transactions, write_ids
from metastore.store.database import Database, Session
from metastore.store.write_ids import Key, Range
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


def downgrade(database: Database, revision: str) -> None:
    with connected(database) as connection:
        config = Config()
        config.set_main_option("script_location", str(migrate.directory()))
        config.attributes["connection"] = connection
        command.downgrade(config, revision)
    assert migrate.current(database) == revision


def test_every_migration_can_be_undone(fresh_database_url: str) -> None:
    database = Database(fresh_database_url)
    assert migrate.upgrade(database)
    for revision in reversed(migrate.revisions()[:-1]):
        downgrade(database, revision)
    assert migrate.upgrade(database)
    with connected(database) as connection:
        assert compare_metadata(MigrationContext.configure(connection), schema.metadata) == []
    database.close()


def test_write_ids_of_a_batch_are_rows_before_there_are_ranges(fresh_database_url: str) -> None:
    database = Database(fresh_database_url)
    migrate.upgrade(database)
    table = Key("hive", "db", "t")

    def fill(session: Session) -> None:
        ids = transactions.taken_ids(transactions.take_ids(session, 4), 4)
        transactions.insert(session, ids, transactions.OPEN, 0, (None, None, None), 0)
        write_ids.take(session, table, ids[:3])
        write_ids.insert_ranges(session, table, [Range(ids[0], ids[1], 1), Range(ids[2], ids[2], 3)])

    def query(text: str) -> list[tuple[object, ...]]:
        def work(session: Session) -> list[tuple[object, ...]]:
            session.cursor.execute(text)
            return list(session.cursor.fetchall())

        return database.read(work)

    database.write(fill)
    assert query("SELECT next, last_transaction, last_change FROM write_id_counters") == [(4, 3, 0)]
    downgrade(database, "0006")
    assert query("SELECT transaction_id, write_id FROM write_ids ORDER BY transaction_id") == [(1, 1), (2, 2), (3, 3)]
    assert query("SELECT id, holds FROM transactions ORDER BY id") == [(1, 8), (2, 8), (3, 8), (4, 0)]
    assert migrate.upgrade(database)
    assert query("SELECT next, last_transaction, last_change FROM write_id_counters") == [(4, 4, 4)]
    database.close()
