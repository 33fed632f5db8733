"""A metastore on each database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from metastore.app import build, close
from metastore.config import Config
from metastore.service.call.context import Call, Metastore
from metastore.service.catalog.catalogs import create_startup_objects
from tests.support.catalog.catalog import MetastoreMaker, Statements, call_of
from tests.support.databases.statement_counts import StatementCounts, counting


@pytest.fixture
def make_metastore(database_url: str, tmp_path: Path) -> Iterator[MetastoreMaker]:
    """Make further servers on one database; options are settings."""
    made: list[Metastore] = []

    def make(**settings: object) -> Metastore:
        config = Config(
            **{
                "db": database_url,
                "warehouse": str(tmp_path / "warehouse"),
                "data_directory": str(tmp_path / "data"),
                **settings,
            }
        )  # type: ignore[arg-type]  # names of settings
        made.append(build(config))
        return made[-1]

    yield make
    for metastore in made:
        close(metastore)


@pytest.fixture
def metastore(make_metastore: MetastoreMaker) -> Metastore:
    """A metastore with its startup objects and nothing else; its warehouse is in tmp_path."""
    made = make_metastore()
    create_startup_objects(made)
    return made


@pytest.fixture
def call(metastore: Metastore) -> Call:
    """A call of the user alice."""
    return call_of(metastore)


@pytest.fixture
def logged(make_metastore: MetastoreMaker) -> Call:
    """A call to a server whose messages of the notification log are plain."""
    return call_of(make_metastore(event_message_format="json-0.2"))


@pytest.fixture
def statements(metastore: Metastore) -> Statements:
    """Make a context in which the texts of all statements are collected in a list."""

    @contextmanager
    def collect() -> Iterator[list[str]]:
        seen: list[str] = []
        metastore.database.observer = seen.append
        try:
            yield seen
        finally:
            metastore.database.observer = None

    return collect


@pytest.fixture
def counts(call: Call, request: pytest.FixtureRequest) -> Iterator[StatementCounts]:
    """Counts the statements of operations: `counts("drop", lambda: ...)`. The numbers have to equal statement_counts.json."""
    with counting(request, call.database) as counted:
        yield counted
