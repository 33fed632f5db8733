"""A call that fails leaves the directories unchanged. A killed one leaves entries of its work in the journal."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from metastore.errors import MetaError
from metastore.warehouse import Journal, MadeDirectories, Warehouse
from metastore.warehouse.journal import JournalEntry
from tests.warehouse.conftest import put


def tree(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


@contextmanager
def failing(warehouse: Warehouse) -> Iterator[MadeDirectories]:
    """A call that fails after all its directories are made."""

    def end() -> None:
        raise RuntimeError

    with pytest.raises(RuntimeError), MadeDirectories(warehouse, None, ()) as made:  # noqa: PT012  # the error leaves both
        yield made
        end()


def test_new_directories_go_and_earlier_ones_stay(local: Warehouse, tmp_path: Path) -> None:
    (tmp_path / "wh" / "t" / "p=1").mkdir(parents=True)
    before = tree(tmp_path)
    with failing(local) as made:
        wanted = [f"{local.root}/t/p=1", f"{local.root}/t/p=2/q=1", f"{local.root}/t/p=2/q=2", f"{local.root}/u"]
        assert made.make(wanted) == [False, True, True, True]
    assert tree(tmp_path) == before


def test_a_directory_in_which_another_put_something_stays(local: Warehouse) -> None:
    with failing(local) as made:
        made.make([f"{local.root}/t/p=1"])
        put(local, f"{local.root}/t/p=2/f")
    assert local.exists(f"{local.root}/t/p=2/f")
    assert not local.exists(f"{local.root}/t/p=1")


def test_a_move_and_the_parent_made_for_it_are_taken_back(local: Warehouse, tmp_path: Path) -> None:
    put(local, f"{local.root}/t/f")
    before = tree(tmp_path)
    with failing(local) as made:
        made.move([(f"{local.root}/t", f"{local.root}/new/u")])
        assert local.exists(f"{local.root}/new/u/f")
    assert tree(tmp_path) == before


def test_nothing_is_taken_back_after_success(local: Warehouse) -> None:
    put(local, f"{local.root}/t/f")
    with MadeDirectories(local, None, ()) as made:
        made.make([f"{local.root}/a/b"])
        made.move([(f"{local.root}/t", f"{local.root}/u")])
    assert local.is_directory(f"{local.root}/a/b")
    assert local.exists(f"{local.root}/u/f")


def test_a_parent_that_another_call_takes_back_meanwhile_is_made_again(tmp_path: Path) -> None:
    class Racing(Warehouse):
        taken = False

        def make(self, location: str) -> bool:
            if location.endswith("q=1") and not self.taken:
                self.taken = True
                (tmp_path / "wh" / "p=1").rmdir()
            return super().make(location)

    (tmp_path / "wh" / "p=1").mkdir(parents=True)
    warehouse = Racing(str(tmp_path / "wh"))
    with MadeDirectories(warehouse, None, ()) as made:
        assert made.make([f"{warehouse.root}/p=1/q=1"]) == [True]
    assert (tmp_path / "wh" / "p=1" / "q=1").is_dir()


def test_a_directory_that_another_call_makes_at_this_moment_is_not_in_the_way(
    local: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.path.isdir

    def isdir(path: str) -> bool:
        found = real(path)
        if path.endswith("p=1"):
            Path(path).mkdir(exist_ok=True)
        return found

    monkeypatch.setattr(os.path, "isdir", isdir)
    with MadeDirectories(local, None, ()) as made:
        made.make([f"{local.root}/p=1"])
    assert (tmp_path / "wh" / "p=1").is_dir()


def test_a_journal_is_empty_when_nothing_is_under_way(local: Warehouse, tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    with MadeDirectories(local, journal, ("table", "c", "d", "t")) as made:
        made.make([f"{local.root}/t"])
        (file,) = (tmp_path / "journal").iterdir()
        assert file.stat().st_size > 0
    assert file.stat().st_size == 0
    assert list(Journal(tmp_path / "journal").abandoned()) == []


KILLED = """
import sys
from pathlib import Path
from metastore.warehouse import Journal
journal = Journal(Path(sys.argv[1]))
done = journal.begin(("table", "c", "d", "done"), ["file:/x/done"])
journal.begin(("table", "c", "d", "t"), ["file:/x", "file:/x/t"])
journal.end(done)
journal.begin(("partitions", "c", "d", "t", ["p=1"]), [], [("file:/a", "file:/b")])
print("ready", flush=True)
sys.stdin.read()
"""


def killed(folder: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    assert list(Journal(folder).abandoned()) == [], "its process lives"
    process.send_signal(signal.SIGKILL)
    process.communicate()


@pytest.mark.parametrize("broken", ["rename", "_at"], ids=["a move", "a directory"])
def test_directories_that_can_not_be_removed_stay_in_the_journal(
    local: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    put(local, f"{local.root}/t/f")
    journal = Journal(tmp_path / "journal")

    def refuse(*_arguments: object) -> None:
        raise MetaError("the storage does not answer")

    with pytest.raises(RuntimeError), MadeDirectories(local, journal, ()) as made:  # noqa: PT012  # the error leaves both
        made.make([f"{local.root}/u"])
        if broken == "rename":
            made.move([(f"{local.root}/t", f"{local.root}/v")])
        monkeypatch.setattr(local, broken, refuse)
        raise RuntimeError
    journal.close()
    assert [(each.directories, each.moves) for each in Journal(tmp_path / "journal").abandoned()][-1:] == [([f"{local.root}/u"], [])]


def test_a_directory_that_was_filled_meanwhile_leaves_no_entry(local: Warehouse, tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    with pytest.raises(RuntimeError), MadeDirectories(local, journal, ()) as made:  # noqa: PT012  # the error leaves both
        made.make([f"{local.root}/t"])
        put(local, f"{local.root}/t/f")
        raise RuntimeError
    journal.close()
    assert list((tmp_path / "journal").iterdir()) == []


def test_open_entries_of_a_killed_process_are_found_once_latest_first(tmp_path: Path) -> None:
    killed(tmp_path)
    assert list(Journal(tmp_path).abandoned()) == [
        JournalEntry(("partitions", "c", "d", "t", ["p=1"]), [], [("file:/a", "file:/b")]),
        JournalEntry(("table", "c", "d", "t"), ["file:/x", "file:/x/t"], []),
    ]
    assert list(Journal(tmp_path).abandoned()) == []


def test_entries_that_were_not_worked_off_stay(tmp_path: Path) -> None:
    killed(tmp_path)
    entries = Journal(tmp_path).abandoned()
    next(entries)
    entries.close()
    assert len(list(Journal(tmp_path).abandoned())) == 2


def test_a_line_cut_short_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "1-x.journal").write_bytes(b'[1,["table","c","d","t"],["file:/x"],[]]\n[2,["tab\n[3,["table","c"')
    assert [entry.directories for entry in Journal(tmp_path).abandoned()] == [["file:/x"]]


def test_without_a_note_nothing_is_made(local: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(tmp_path / "journal")
    first = journal.begin(("table", "c", "d", "first"), ["file:/first"])
    (file,) = (tmp_path / "journal").iterdir()
    noted = file.read_bytes()
    real = os.write
    monkeypatch.setattr(os, "write", lambda number, data: real(number, data[:10]))
    with pytest.raises(MetaError, match=r"journal of directories can not be written .*No space left on device; make room there"), \
            MadeDirectories(local, journal, ("table", "c", "d", "t")) as made:  # fmt: skip
        made.make([f"{local.root}/t"])
    assert not local.exists(f"{local.root}/t")
    assert file.read_bytes() == noted
    monkeypatch.undo()
    journal.end(first)
    assert file.read_bytes() == b""


def test_a_journal_that_can_not_be_locked_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(MetaError, match="journal of directories can not be written"):
        Journal(tmp_path).begin((), [])
    assert list(tmp_path.iterdir()) == []


def test_a_closed_journal_leaves_a_file_only_for_open_entries(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.end(journal.begin(("database", "hive", "a"), ["a"]))
    journal.close()
    journal.close()
    assert list(tmp_path.iterdir()) == []
    journal.begin(("database", "hive", "b"), ["b"])
    journal.close()
    assert [entry.directories for entry in Journal(tmp_path).abandoned()] == [["b"]]
    assert list(tmp_path.iterdir()) == []
