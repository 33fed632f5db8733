"""A metastore with every kind of object, filled over Thrift by a server that still runs on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from metastore.client import connect
from metastore.transfer.dumps import DumpReader, DumpWriter
from metastore.transfer.moving import move
from metastore.transfer.opening import reader
from metastore.transfer.selection import EVERYTHING
from tests.support.catalog.full_catalog import Filler
from tests.support.servers.servers import serving


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of a SQLite database on which a server runs, and that holds every kind of object."""
    home = tmp_path_factory.mktemp("filled")
    url = f"sqlite:///{home / 'metastore.db'}"
    with serving("--db", url, "--set", f"warehouse={home / 'warehouse'}", home=home) as server:
        with connect(server.uri) as client:
            Filler(client, f"file:{home / 'data'}").everything()
        yield url


@pytest.fixture(scope="session")
def dumped(filled: str, tmp_path_factory: pytest.TempPathFactory) -> DumpReader:
    """A dump of it."""
    return dump_of(filled, tmp_path_factory.mktemp("dumps") / "whole")


def dump_of(url: str, path: Path) -> DumpReader:
    source = reader(url)
    move(source, DumpWriter(path), EVERYTHING)
    source.close()
    return DumpReader(path)
