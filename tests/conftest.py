"""Fixtures for all tests; databases and servers are made by `tests/support`."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from metastore.store.database import Database
from tests.support import databases

settings.register_profile("busy machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy machine")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what runs on MySQL 8 unless it is asked for by its marker."""
    if "mysql8" in config.option.markexpr:
        return
    left_out = [item for item in items if item.get_closest_marker("mysql8")]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if not item.get_closest_marker("mysql8")]


@pytest.fixture(scope="session", params=databases.KINDS)
def database_kind(request: pytest.FixtureRequest) -> str:
    """Each kind of database in turn: sqlite, postgresql, mysql (MariaDB), and with the marker of that name mysql8."""
    return str(request.param)


@pytest.fixture
def fresh_database_url(database_kind: str, tmp_path: Path) -> Iterator[str]:
    """URL of a database with nothing in it, not even the schema."""
    yield from databases.fresh(database_kind, tmp_path)


@pytest.fixture(scope="session")
def migrated_database(database_kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[databases.Migrated]:
    with contextmanager(databases.fresh)(database_kind, tmp_path_factory.mktemp("databases")) as url:
        yield databases.Migrated(database_kind, url)


@pytest.fixture
def database_url(migrated_database: databases.Migrated, tmp_path: Path) -> Iterator[str]:
    """URL of a database with the current schema and no rows, on each kind of database; emptied after the test."""
    yield from migrated_database.take(tmp_path)


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """A `Database` on `database_url`."""
    opened = Database(database_url)
    yield opened
    opened.close()
