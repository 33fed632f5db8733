"""Fixtures for all tests; databases and servers are made by `tests/support`."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fsspec
import pytest
from hypothesis import HealthCheck, settings

from metastore.store.core.database import Database
from tests.support.databases import databases, one_database
from tests.support.databases.services import call, counts, logged, make_metastore, metastore, statements  # noqa: F401  # fixtures
from tests.support.servers.stub_server import raw, server, start, stub  # noqa: F401  # fixtures

if TYPE_CHECKING:
    from tests.support.logins.kdc import Kdc

MAX_PROCESSES = 4
"""The limit of `-n auto`: each process may start a Java process of Spark, which takes a gigabyte."""
PATIENCE = 1800
"""The timeout, in seconds, of a slow test without one of its own."""

settings.register_profile("busy machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy machine")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--on-all-databases", action="store_true", help="run tests of rules on every database too")
    parser.addoption("--update-statement-counts", action="store_true", help="rewrite tests/support/databases/statement_counts.json")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests on MySQL 8 unless their marker is requested. With `-n`, Spark's tests are first, since they take longest.

    Slow tests get a long timeout, since they take longer beside other suites. The timeout of a Spark test makes later tests fail too.
    """
    for item in items:
        if item.get_closest_marker("slow") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(PATIENCE))
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: not item.nodeid.startswith("tests/spark/"))
    if "mysql8" in config.option.markexpr:
        return
    left_out = {item for item in items if item.get_closest_marker("mysql8")}
    if not config.option.on_all_databases:
        left_out |= set(one_database.left_out(items, ["sqlite", "postgresql", "mysql"]))
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = [item for item in items if item not in left_out]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Spread the tests over the processes of `-n` by file."""
    from tests.support.servers.parallel import ByFile

    return ByFile(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Choose the processes of `-n auto`: two more than there are cores, since tests wait too.

    Slow tests get none: they have engines and races of their own.
    """
    takes_minutes = re.search(r"(?<!not )\bslow\b", config.option.markexpr)
    return 0 if takes_minutes else min((os.cpu_count() or 1) + 2, MAX_PROCESSES)


@pytest.fixture(scope="session", params=databases.KINDS)
def database_kind(request: pytest.FixtureRequest) -> str:
    """Each kind of database in turn: sqlite, postgresql, mysql (MariaDB), and with the marker of that name mysql8."""
    return str(request.param)


@pytest.fixture
def fresh_database_url(database_kind: str, tmp_path: Path) -> Iterator[str]:
    """URL of a database with nothing in it, not even the schema."""
    yield from databases.fresh(database_kind, tmp_path)


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], databases.Migrated]]:
    """Return a function that returns the database with the current schema of a kind. The first call for a kind makes it."""
    with ExitStack() as made:

        @cache
        def of_kind(kind: str) -> databases.Migrated:
            url = made.enter_context(contextmanager(databases.fresh)(kind, tmp_path_factory.mktemp("databases")))
            return databases.Migrated(kind, url)

        yield of_kind


@pytest.fixture
def database_url(database_kind: str, migrated: Callable[[str], databases.Migrated], tmp_path: Path) -> Iterator[str]:
    """URL of a database with the current schema and no rows, on each kind of database; emptied after the test."""
    yield from migrated(database_kind).take(tmp_path)


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """A `Database` on `database_url`."""
    opened = Database(database_url)
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def s3_server() -> Iterator[dict[str, Any]]:
    """Options of fsspec's driver for one S3 server for all tests of a process."""
    from tests.support.servers.object_store import serving_s3

    with serving_s3() as options:
        yield options


@pytest.fixture
def s3_options(s3_server: dict[str, Any]) -> dict[str, Any]:
    """The setting `filesystem_options` for the S3 server."""
    return {"s3": s3_server}


@pytest.fixture(scope="session")
def bucket_names() -> Iterator[str]:
    """Names that no bucket has yet."""
    return (f"bucket{number}" for number in count())


@pytest.fixture
def bucket(s3_server: dict[str, Any], bucket_names: Iterator[str]) -> str:
    """Name of an empty bucket."""
    name = next(bucket_names)
    fsspec.filesystem("s3", **s3_server).mkdir(name)
    return name


@pytest.fixture(scope="session")
def running_kdc() -> Iterator[Kdc]:
    """One Kerberos realm for all tests of a process."""
    from tests.support.logins.kdc import realm

    pytest.importorskip("gssapi", reason="built with libkrb5-dev: pip install '.[kerberos]'")
    with realm() as started:
        yield started


@pytest.fixture
def kdc(running_kdc: Kdc, monkeypatch: pytest.MonkeyPatch) -> Kdc:
    """The realm, with this process in it."""
    for name, value in running_kdc.variables.items():
        monkeypatch.setenv(name, value)
    return running_kdc
