from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy.engine import make_url

from metastore.store import migrate
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
