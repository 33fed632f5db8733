"""Warehouses on local files, in memory and on an S3 server."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from metastore.warehouse import Warehouse

_NUMBERS = count()


@pytest.fixture
def local(tmp_path: Path) -> Warehouse:
    (tmp_path / "wh").mkdir()
    return Warehouse(str(tmp_path / "wh"))


@pytest.fixture
def trashing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Warehouse:
    """A warehouse with a trash in a home of its own."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "wh").mkdir()
    return Warehouse(str(tmp_path / "wh"), trash=True)


@pytest.fixture
def s3(s3_options: dict[str, Any], bucket: str) -> Warehouse:
    return Warehouse(f"s3a://{bucket}/wh", options=s3_options)


@pytest.fixture(params=["file", "memory", "s3"])
def any_warehouse(request: pytest.FixtureRequest, tmp_path: Path) -> Warehouse:
    """A warehouse on each kind of file system."""
    if request.param == "file":
        return Warehouse(f"file://{tmp_path}/wh")
    if request.param == "memory":
        return Warehouse(f"memory://{tmp_path.name}{next(_NUMBERS)}/wh")
    made: Warehouse = request.getfixturevalue("s3")
    return made


def put(warehouse: Warehouse, location: str, data: bytes = b"data") -> None:
    """Write a file, as a client's job would."""
    files, path = warehouse._at(location)
    if files.is_remote:
        with files._system.open(path, "wb") as file:
            file.write(data)
    else:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_bytes(data)


@pytest.fixture
def unprivileged_folder() -> Iterator[Path]:
    """A folder in which this process may not write: it is not root during the test."""
    base = Path(tempfile.mkdtemp(prefix="metastore-"))
    folder = base / "closed"
    folder.mkdir()
    (folder / "inside").mkdir()
    base.chmod(0o755)
    folder.chmod(0o555)
    was_root = os.geteuid() == 0
    if was_root:
        os.seteuid(65534)
    yield folder
    if was_root:
        os.seteuid(0)
    folder.chmod(0o755)
    shutil.rmtree(base)
