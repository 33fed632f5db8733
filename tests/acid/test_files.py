"""Files through fsspec: each method follows the protocol, and refuses with FileError. They move finished files to their places."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import fsspec
import pytest

from metastore.acid.files import FileError, Files, FsspecFiles, Status
from metastore.acid.folders.placing import place, remove_staged, staging
from metastore.acid.folders.table import TableInfo
from metastore.idl import StorageDescriptor, Table

FILES: Files = FsspecFiles()


@pytest.fixture(params=["path", "file", "memory"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A directory in the form of a table's location."""
    if request.param == "memory":
        fsspec.filesystem("memory").store.clear()
        return "memory://warehouse"
    return f"file:{tmp_path}" if request.param == "file" else str(tmp_path)


def test_each_method(root: str) -> None:
    FILES.make(f"{root}/a/b")
    FILES.make(f"{root}/a/b")
    FILES.write(f"{root}/a/f", b"0123456789")
    assert FILES.read(f"{root}/a/f") == b"0123456789"
    assert FILES.read_end(f"{root}/a/f", 3) == b"789"
    assert FILES.read_end(f"{root}/a/f", 300) == b"0123456789"
    assert sorted(FILES.list(f"{root}/a")) == [Status(f"{root}/a/b", True, 0), Status(f"{root}/a/f", False, 10)]
    FILES.copy(f"{root}/a/f", f"{root}/a/g")
    FILES.rename(f"{root}/a/f", f"{root}/a/b/f")
    assert [each.name for each in FILES.list(f"{root}/a/b")] == ["f"]
    FILES.rename(f"{root}/a/b", f"{root}/c")
    assert FILES.read(f"{root}/c/f") == FILES.read(f"{root}/a/g")
    FILES.sync(f"{root}/c", root)
    FILES.delete(f"{root}/c")
    FILES.delete(f"{root}/c")
    FILES.delete(f"{root}/a/g")
    assert FILES.list(f"{root}/c") == []


REFUSED: dict[str, Callable[[str], object]] = {
    "can not be read": lambda root: FILES.read(f"{root}/none"),
    "none can not be read": lambda root: FILES.read_end(f"{root}/none", 3),
    "f/x can not be listed": lambda root: FILES.list(f"{root}/f/x"),
    "f can not be renamed to .*g: the name is taken": lambda root: FILES.rename(f"{root}/f", f"{root}/g"),
    "none can not be renamed": lambda root: FILES.rename(f"{root}/none", f"{root}/other"),
    "none can not be copied": lambda root: FILES.copy(f"{root}/none", f"{root}/other"),
    "f/x can not be made": lambda root: FILES.make(f"{root}/f/x"),
    "f/x can not be written": lambda root: FILES.write(f"{root}/f/x", b""),
}


@pytest.mark.parametrize("message", REFUSED)
def test_refusals_name_the_file(tmp_path: Path, message: str) -> None:
    for name in "fg":
        (tmp_path / name).write_text(name)
    with pytest.raises(FileError, match=message):
        REFUSED[message](f"file:{tmp_path}")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["f", "g"]
    assert (tmp_path / "g").read_text() == "g"


def plain_table(root: Path) -> TableInfo:
    parameters = {"transactional": "true", "transactional_properties": "insert_only"}
    return TableInfo(Table(dbName="d", tableName="t", sd=StorageDescriptor(location=f"file:{root}"), parameters=parameters))


def test_files_are_placed_and_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = plain_table(tmp_path)
    aside = staging(7, table, "base")
    assert aside == f"file:{tmp_path}/.staging_txn_7_base"
    FILES.make(aside)
    for number in (0, 3):
        FILES.write(f"{aside}/{number}", b"x")
    synced: list[str] = []
    fsync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda number: (synced.append(os.readlink(f"/proc/self/fd/{number}")), fsync(number))[1])
    place(FILES, table, f"{table.location}/base_1_v7", [(f"{aside}/{number}", number) for number in (0, 3)])
    base = tmp_path / "base_1_v7"
    assert sorted(path.name for path in base.iterdir()) == ["000000_0", "000003_0"]
    assert set(synced) == {str(base / "000000_0"), str(base / "000003_0"), str(base), str(tmp_path)}
    remove_staged(FILES, aside)
    assert [path.name for path in tmp_path.iterdir()] == ["base_1_v7"]


def test_two_files_of_one_bucket_are_not_placed(tmp_path: Path) -> None:
    table = plain_table(tmp_path)
    with pytest.raises(FileError, match="several tasks wrote rows of one bucket; nothing was moved"):
        place(FILES, table, f"{table.location}/base_1_v7", [(f"{tmp_path}/a", 1), (f"{tmp_path}/b", 1)])
    assert not list(tmp_path.iterdir())
