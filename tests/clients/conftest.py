"""A server process with two workers on each kind of database."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.servers.servers import Server, serving


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    """The folder of managed tables; the folder itself is made by the server."""
    return tmp_path / "warehouse"


@pytest.fixture
def server(database_url: str, warehouse: Path, tmp_path: Path) -> Iterator[Server]:
    options = ("--db", database_url, "--warehouse", f"file:{warehouse}", "--workers", "2")
    with serving(*options, home=tmp_path / "server") as started:
        yield started
