"""Data that is taken away can be put back until it is deleted. Neither touches any other data."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from metastore.errors import MetaError
from metastore.warehouse import DELETION, Journal, JournalEntry, TakenAway, Warehouse
from tests.warehouse.conftest import put

NUMBER = "0001700000000-abc"


def tree(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


@pytest.fixture
def filled(any_warehouse: Warehouse) -> Warehouse:
    for name in ("t/a/f", "t/g", "u/h"):
        put(any_warehouse, f"{any_warehouse.root}/{name}")
    return any_warehouse


def there(warehouse: Warehouse, *names: str) -> list[str]:
    return [name for name in names if warehouse.exists(f"{warehouse.root}/{name}")]


def test_earlier_files_are_deleted_and_later_ones_stay(filled: Warehouse) -> None:
    taken = TakenAway(filled, None, NUMBER)
    root = filled.root
    assert taken.take([f"{root}/t", f"{root}/missing"], purge=False) == {}
    put(filled, f"{root}/t/a/new")
    put(filled, f"{root}/t/g", b"another file of the same name")
    assert taken.delete() == {}
    assert there(filled, "t/a/f", "t/g", "t/a/new", "u/h") == ["t/g", "t/a/new", "u/h"]
    assert not filled.exists(f"{root}/.deleted-{NUMBER}-0")


def test_restored_objects_are_unchanged(filled: Warehouse) -> None:
    taken = TakenAway(filled, None, NUMBER)
    taken.take([f"{filled.root}/t", f"{filled.root}/u"], purge=False)
    taken.put_back()
    assert there(filled, "t/a/f", "t/g", "u/h") == ["t/a/f", "t/g", "u/h"]
    assert not filled.exists(f"{filled.root}/.deleted-{NUMBER}-0")
    assert taken.delete() == {}
    assert there(filled, "t/a/f", "t/g", "u/h") == ["t/a/f", "t/g", "u/h"]


def test_directories_made_meanwhile_stay_beside_the_restored_ones(filled: Warehouse) -> None:
    taken = TakenAway(filled, None, NUMBER)
    taken.take([f"{filled.root}/t"], purge=False, empties=True)
    put(filled, f"{filled.root}/t/a/new")
    taken.put_back()
    assert there(filled, "t/a/f", "t/g", "t/a/new") == ["t/a/f", "t/g", "t/a/new"]


def test_an_emptied_directory_stays(filled: Warehouse) -> None:
    taken = TakenAway(filled, None, NUMBER)
    taken.take([f"{filled.root}/t"], purge=False, empties=True)
    taken.delete()
    assert filled.is_empty(f"{filled.root}/t")
    assert filled.is_directory(f"{filled.root}/t") == filled.can_rename(f"{filled.root}/t")


def test_a_directory_inside_another_one_goes_and_comes_back_with_it(filled: Warehouse) -> None:
    for places in (["t", "t/a"], ["t/a", "t"]):
        taken = TakenAway(filled, None, NUMBER)
        assert taken.take([f"{filled.root}/{place}" for place in places], purge=False) == {}
        taken.put_back()
        assert there(filled, "t/a/f", "t/g") == ["t/a/f", "t/g"]


def test_a_root_is_refused_and_the_rest_goes(filled: Warehouse) -> None:
    taken = TakenAway(filled, None, NUMBER)
    assert list(taken.take([filled.root, f"{filled.root}/u"], purge=False)) == [filled.root]
    taken.delete()
    assert there(filled, "t/a/f", "t/g", "u/h") == ["t/a/f", "t/g"]


def test_partitions_lie_beside_their_table_meanwhile_so_that_it_can_be_renamed(local: Warehouse, tmp_path: Path) -> None:
    put(local, f"{local.root}/t/k=1/f")
    taken = TakenAway(local, None, NUMBER)
    taken.take([f"{local.root}/t/k=1"], purge=False, below=f"{local.root}/t")
    local.rename(f"{local.root}/t", f"{local.root}/renamed")
    assert taken.delete() == {}
    assert tree(tmp_path / "wh") == {"renamed"}


def test_data_goes_to_the_trash_under_its_own_name(trashing: Warehouse, tmp_path: Path) -> None:
    put(trashing, f"{trashing.root}/t/f")
    put(trashing, f"{trashing.root}/u/f")
    taken = TakenAway(trashing, None, NUMBER)
    taken.take([f"{trashing.root}/t"], purge=False)
    taken.take([f"{trashing.root}/u"], purge=True)
    taken.delete()
    trash = tmp_path / "home" / ".Trash" / "Current"
    assert (trash / str(tmp_path / "wh" / "t" / "f").lstrip("/")).exists()
    assert [path for path in tree(trash) if path.endswith("u")] == []
    assert tree(tmp_path / "wh") == set()


def test_data_of_a_bucket_goes_to_its_trash(s3_options: dict[str, Any], bucket: str) -> None:
    s3 = Warehouse(f"s3a://{bucket}/wh", trash=True, options=s3_options)
    put(s3, f"{s3.root}/t/a/f")
    taken = TakenAway(s3, None, NUMBER)
    taken.take([f"{s3.root}/t"], purge=False)
    taken.delete()
    assert not s3.exists(f"{s3.root}/t")
    files, path = s3._at(f"s3a://{bucket}/user")
    assert [name.rpartition("/")[2] for name in files._system.find(path)] == ["f"]


def not_renamed(monkeypatch: pytest.MonkeyPatch, error: int) -> None:
    """Let the system refuse to rename directories, as it does for mount points and for layers of images."""
    rename = os.rename

    def refuse(old: str, new: str) -> None:
        if os.path.isdir(old):
            raise OSError(error, os.strerror(error), old)
        rename(old, new)

    monkeypatch.setattr(os, "rename", refuse)


@pytest.mark.parametrize("error", [errno.EXDEV, errno.EBUSY])
def test_where_nothing_is_renamed_the_files_are_listed(
    local: Warehouse, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: int
) -> None:
    for name in ("t/a/f", "t/g", "u/h"):
        put(local, f"{local.root}/{name}")
    (tmp_path / "wh" / "t" / "link").symlink_to(tmp_path / "wh" / "u")
    not_renamed(monkeypatch, error)
    taken = TakenAway(local, None, NUMBER)
    assert taken.take([f"{local.root}/t"], purge=True) == {}
    put(local, f"{local.root}/t/new")
    assert taken.delete() == {}
    assert tree(tmp_path / "wh") == {"t", "t/new", "u", "u/h"}
    taken = TakenAway(local, None, NUMBER)
    taken.take([f"{local.root}/u"], purge=True, empties=True)
    taken.delete()
    assert tree(tmp_path / "wh") == {"t", "t/new", "u"}


def test_where_the_system_refuses_the_data_stays(unprivileged_folder: Path) -> None:
    warehouse = Warehouse(f"file:{unprivileged_folder}")
    inside = f"file:{unprivileged_folder}/inside"
    taken = TakenAway(warehouse, None, NUMBER)
    assert "Permission denied" in str(taken.take([inside], purge=True)[inside])
    assert not taken.has_data
    assert tree(unprivileged_folder) == {"inside"}


def test_the_journal_lists_taken_directories_until_they_are_deleted(local: Warehouse, tmp_path: Path) -> None:
    put(local, f"{local.root}/t/f")
    journal = Journal(tmp_path / "journal")
    taken = TakenAway(local, journal, NUMBER)
    taken.take([f"{local.root}/t"], purge=True)
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "1-a.journal").write_bytes(next((tmp_path / "journal").iterdir()).read_bytes())
    assert list(Journal(copy).abandoned()) == [
        JournalEntry((DELETION, NUMBER, "purge"), [], [(f"{local.root}/t", f"{local.root}/.deleted-{NUMBER}-0")])
    ]
    taken.delete()
    journal.close()
    assert list(Journal(tmp_path / "journal").abandoned()) == []


def test_directories_that_can_not_be_deleted_stay_in_the_journal_and_go_the_next_time(
    local: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(local, f"{local.root}/t/f")
    journal = Journal(tmp_path / "journal")
    taken = TakenAway(local, journal, NUMBER)
    taken.take([f"{local.root}/t"], purge=True)
    with monkeypatch.context() as broken:
        broken.setattr(os, "unlink", lambda *_, **__: (_ for _ in ()).throw(PermissionError(errno.EPERM, "no")))
        assert isinstance(taken.delete()[f"{local.root}/t"], MetaError)
    journal.close()
    (entry,) = Journal(tmp_path / "journal").abandoned()
    assert TakenAway.of_entry(local, entry).delete() == {}
    assert tree(tmp_path / "wh") == set()
