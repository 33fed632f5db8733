"""A server on each kind of database with Hive's engine on it. Every story has a database and a session of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from time import monotonic
from typing import NamedTuple

import pytest

from metastore.client import Client, connect
from tests.support.databases import databases
from tests.support.engines.hive import PATIENCE, Hive, Rows, hive
from tests.support.servers.servers import serving

OPTIONS = (
    "--set", "compactor_initiator=true", "--set", "compactor_check_interval=1s", "--set", "compactor_cleaner_interval=1s",
)  # fmt: skip
_NUMBERS = count(1)


class Place(NamedTuple):
    """The address of a running server, and the folder of its tables' files."""

    uri: str
    warehouse: Path


@pytest.fixture(scope="session")
def place(database_kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A server with an empty database of each kind."""
    folder = tmp_path_factory.mktemp("server")
    with contextmanager(databases.fresh)(database_kind, folder) as url:
        options = ("--db", url, "--warehouse", str(folder / "warehouse"), "--workers", "2", *OPTIONS)
        with serving(*options, home=folder) as server:
            yield Place(server.uri, folder / "warehouse")


@pytest.fixture(scope="session")
def engine(place: Place, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hive]:
    """Hive's engine on that server, with a compaction worker."""
    with hive(place.uri, tmp_path_factory.mktemp("hive"), place.warehouse) as started:
        started.worker()
        yield started


class Story:
    """A database of its own and statements in it."""

    def __init__(self, engine: Hive, place: Place, client: Client, name: str) -> None:
        self.engine = engine
        self.place = place
        self.client = client
        self.name = name

    def sql(self, statement: str, session: str = "") -> Rows:
        """Run a statement in the story's session, or in a further one that `session` names."""
        return self.engine.sql(statement, self.name + session)

    def further(self, session: str, *statements: str) -> None:
        """Begin a further session with statements of its own."""
        for statement in (f"USE {self.name}", *statements):
            self.sql(statement, session)

    def directories(self, table: str, partition: str = "") -> list[str]:
        """Return the names of a table's directories, ascending, hidden ones left out."""
        folder = self.place.warehouse / f"{self.name}.db" / table / partition
        return sorted(path.name for path in folder.iterdir() if path.is_dir() and path.name[0] not in "._")

    def compactions(self, table: str) -> list[tuple[str, str]]:
        """Return (type, state) of a table's compactions, the oldest first."""
        rows = [row for row in self.sql("SHOW COMPACTIONS") if row[1:3] == (self.name, table)]
        return [(row[4], row[5]) for row in sorted(rows, key=lambda row: int(row[0]))]

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition holds; query Hive in between."""
        end = monotonic() + PATIENCE
        while not condition():
            assert monotonic() < end, f"it never came: {self.sql('SHOW COMPACTIONS')}, {self.sql('SHOW TRANSACTIONS')}"


@pytest.fixture
def story(engine: Hive, place: Place) -> Iterator[Story]:
    """An empty database and a session in it."""
    name = f"story{next(_NUMBERS)}"
    with connect(place.uri) as client:
        made = Story(engine, place, client, name)
        made.sql(f"CREATE DATABASE {name}")
        made.sql(f"USE {name}")
        yield made
