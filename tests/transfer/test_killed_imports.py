"""Imports from Java's metastore, from its database and over Thrift: several kills do not change the result."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa

from metastore.store.core import migrate
from metastore.store.core.database import Database
from metastore.store.schema.model import partitions
from metastore.transfer.comparing import compare
from metastore.transfer.opening import reader
from metastore.transfer.selection import EVERYTHING
from tests.support.databases import databases
from tests.support.engines import large_hive
from tests.support.engines.java_metastore import java_metastore
from tests.support.servers.servers import COMMAND, environment

pytestmark = pytest.mark.slow
TABLES, PARTITIONS, KILLS = 12, 3000, 10
NUMBER = sa.select(sa.func.count()).select_from(partitions)


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The database of a Java metastore, and its server."""
    folder = tmp_path_factory.mktemp("java")
    with contextmanager(databases.fresh)("postgresql", folder) as url, java_metastore(url, folder / "server") as uri:
        large_hive.fill(url, TABLES, PARTITIONS)
        yield {"database": url, "server": uri}


@pytest.mark.parametrize("way", ["database", "server"])
@pytest.mark.parametrize("kind", ["sqlite", "postgresql", "mysql"])
def test_an_import_that_is_killed_ten_times(sources: dict[str, str], way: str, kind: str, tmp_path: Path) -> None:
    """Each import is killed later than the one before, with more in the target; the last one ends with the source's content."""
    source = sources[way]
    with contextmanager(databases.fresh)(kind, tmp_path) as url:
        target = Database(url, pool_size=2)
        migrate.upgrade(target)
        command = [*COMMAND, "import", source, "--resume", "--db", url]
        killed = 0
        for kill in range(KILLS + 1):
            wanted = kill * TABLES * PARTITIONS // (KILLS + 1)
            process = subprocess.Popen(command, env=environment(tmp_path), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
            while process.poll() is None and (kill == KILLS or (target.read(lambda session: session.number(NUMBER)) or 0) <= wanted):
                time.sleep(0.005)
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                killed += 1
            _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
        assert killed >= KILLS // 2
        target.close()
        one, other = reader(source), reader(url)
        found = compare(one, other, EVERYTHING)
        one.close()
        other.close()
        assert found.differences == []
        assert found.counts["partition"] == (TABLES * PARTITIONS,) * 2
