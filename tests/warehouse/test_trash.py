"""Deleted data is moved where Hadoop's TrashPolicyDefault moves it."""

from __future__ import annotations

from getpass import getuser
from pathlib import Path
from typing import Any

import pytest

from metastore.errors import MetaError
from metastore.warehouse import Warehouse
from tests.warehouse.conftest import put


def trash(tmp_path: Path) -> Path:
    return tmp_path / "home" / ".Trash" / "Current"


def delete(warehouse: Warehouse, name: str, data: bytes = b"x") -> str:
    """Write a file below the root and delete its directory; return the directory's path."""
    place = f"{warehouse.root}/{name}"
    put(warehouse, f"{place}/f", data)
    warehouse.delete(place)
    assert not warehouse.exists(place)
    return place.removeprefix("file:")


def test_a_deleted_directory_lies_in_the_trash_at_its_own_path(trashing: Warehouse, tmp_path: Path) -> None:
    path = delete(trashing, "db.db/t", b"data")
    assert Path(f"{trash(tmp_path)}{path}/f").read_bytes() == b"data"
    assert (tmp_path / "home" / ".Trash").stat().st_mode & 0o777 == 0o700


def test_purge_passes_the_trash_by(trashing: Warehouse, tmp_path: Path) -> None:
    put(trashing, f"{trashing.root}/t/f")
    trashing.delete(f"{trashing.root}/t", purge=True)
    assert not trashing.exists(f"{trashing.root}/t")
    assert not trash(tmp_path).exists()


def test_a_taken_name_gets_the_time(trashing: Warehouse, tmp_path: Path) -> None:
    for number in range(3):
        path = delete(trashing, "t", b"%d" % number)
    parent = Path(f"{trash(tmp_path)}{path}").parent
    names = sorted(child.name for child in parent.iterdir())
    assert names[0] == "t"
    assert len(names) == 3
    assert all(name[1:].isdigit() and len(name) >= 14 for name in names[1:])
    assert sorted((parent / name / "f").read_bytes() for name in names) == [b"0", b"1", b"2"]


def test_a_file_where_a_parent_belongs_gets_a_directory_beside_it(trashing: Warehouse, tmp_path: Path) -> None:
    file = Path(f"{trash(tmp_path)}{trashing.root.removeprefix('file:')}/db")
    file.parent.mkdir(parents=True)
    file.write_text("a deleted file")
    delete(trashing, "db/t", b"data")
    (beside,) = (child for child in file.parent.iterdir() if child != file)
    assert beside.name.startswith("db")
    assert beside.name[2:].isdigit()
    assert (beside / "t" / "f").read_bytes() == b"data"
    assert file.read_text() == "a deleted file"


def test_files_in_the_trash_are_deleted_for_good(trashing: Warehouse, tmp_path: Path) -> None:
    path = Path(f"{trash(tmp_path)}{delete(trashing, 't')}")
    trashing.delete(f"file:{path}")
    assert not path.exists()
    assert list(path.parent.iterdir()) == []


def test_a_directory_that_contains_the_trash_is_refused(trashing: Warehouse, tmp_path: Path) -> None:
    delete(trashing, "t")
    with pytest.raises(MetaError, match="can not be moved to the trash, as it contains the trash"):
        trashing.delete(f"file:{tmp_path}/home")
    assert trash(tmp_path).exists()


def test_roots_do_not_go_to_the_trash(trashing: Warehouse) -> None:
    with pytest.raises(MetaError, match="it is never deleted"):
        trashing.delete(trashing.root)
    assert trashing.is_directory(trashing.root)


def test_a_link_goes_to_the_trash_as_a_link(trashing: Warehouse, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "wh" / "link").symlink_to(tmp_path / "data")
    trashing.delete(f"{trashing.root}/link")
    assert (tmp_path / "data").is_dir()
    assert Path(f"{trash(tmp_path)}{tmp_path}/wh/link").is_symlink()


def test_a_trash_that_can_not_be_written_leaves_the_data(unprivileged_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(unprivileged_folder))
    warehouse = Warehouse("memory://m/wh", trash=True)
    with pytest.raises(MetaError, match="can not be deleted: Permission denied"):
        warehouse.delete(f"file:{unprivileged_folder}/inside")
    assert (unprivileged_folder / "inside").is_dir()


def test_an_object_store_has_its_trash_in_the_bucket(s3_options: dict[str, Any], bucket: str) -> None:
    warehouse = Warehouse(f"s3a://{bucket}/wh", trash=True, options=s3_options)
    for _ in range(2):
        put(warehouse, f"s3a://{bucket}/wh/t/f")
        warehouse.delete(f"s3a://{bucket}/wh/t")
    assert not warehouse.exists(f"s3a://{bucket}/wh/t")
    files, path = warehouse._at(f"s3a://{bucket}/user/{getuser()}/.Trash/Current/wh")
    names = sorted(name.rpartition("/")[2] for name in files._system.ls(path, detail=False))  # type: ignore[union-attr]
    assert names[0] == "t"
    assert len(names) == 2
