"""A metastore with every kind of object, filled over Thrift by a server that still runs on it, and a target that was filled from it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from metastore.client import Client, connect
from metastore.transfer.comparing import compare
from metastore.transfer.contract import Reader
from metastore.transfer.dumps import DumpReader, DumpWriter
from metastore.transfer.moving import move
from metastore.transfer.opening import reader, writer
from metastore.transfer.own.writer import OwnWriter
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


class Going(NamedTuple):
    """A source on which a server runs, and a target that was filled from it."""

    client: Client
    filler: Filler
    source: Reader
    target: OwnWriter
    url: str


@pytest.fixture(params=["thrift", "database"])
def going(request: pytest.FixtureRequest, fresh_database_url: str, tmp_path: Path) -> Iterator[Going]:
    url = f"sqlite:///{tmp_path / 'source.db'}"
    options = ("--db", url, "--set", f"warehouse={tmp_path / 'w'}", "--set", "compactor_cleaner=false")
    with serving(*options, home=tmp_path) as server, connect(server.uri) as client:
        filler = Filler(client, f"file:{tmp_path / 'data'}")
        filler.everything()
        source = reader(server.uri if request.param == "thrift" else url)
        target = writer(fresh_database_url)
        assert isinstance(target, OwnWriter)
        move(source, target, EVERYTHING)
        yield Going(client, filler, source, target, fresh_database_url)
        source.close()
        target.close()


def same(going: Going) -> list[str]:
    """Return the differences between the two sides."""
    back = reader(going.url)
    found = compare(going.source, back, EVERYTHING)
    back.close()
    return [f"{each.record}: {each.words}" for each in found.differences]
