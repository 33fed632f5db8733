"""A database with a full disk takes no change in part, is reported as taking none, and is used again once there is room."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import sqlalchemy as sa
import structlog

from metastore.errors import MetaError
from metastore.service.call.context import Metastore
from metastore.service.operations import health
from metastore.store.core import contact, migrate
from metastore.store.core.database import Database, Session
from metastore.store.core.probe import change_nothing
from metastore.store.schema.model import counters
from tests.support.databases.replicas import alone

Room = Callable[[], None]
"""Makes room again."""


@contextmanager
def small_sqlite(folder: Path) -> Iterator[tuple[Database, Callable[[], Room]]]:
    """A file that may not grow: SQLite's own limit, which it takes for a full disk."""
    database = Database(f"sqlite:///{folder}/m.db", pool_size=1)
    migrate.upgrade(database)

    def limit(pages: int) -> None:
        connection = database.pool.take()
        connection.execute(f"PRAGMA max_page_count = {pages}")
        database.pool.give(connection)

    def fill() -> Room:
        limit(1)  # SQLite raises it to the pages in use
        return lambda: limit(1 << 30)

    yield database, fill
    database.close()


@contextmanager
def small_postgresql(folder: Path) -> Iterator[tuple[Database, Callable[[], Room]]]:
    """A database in a tablespace on a file system of 64 MB."""
    place = Path(tempfile.mkdtemp())  # another user can not enter pytest's own directory
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "none", str(place)], capture_output=True, check=False).returncode:
        place.rmdir()
        pytest.skip("a file system can not be mounted here")
    try:
        with alone() as server:
            shutil.chown(place, *_owner())
            server.run("primary", f"CREATE TABLESPACE small LOCATION '{place}'", "CREATE DATABASE m TABLESPACE small")
            database = Database(server.address("primary").rpartition("/")[0] + "/m", pool_size=1)
            migrate.upgrade(database)
            ballast = place / "ballast"

            def fill() -> Room:
                with ballast.open("wb", buffering=0) as file, suppress(OSError):
                    while file.write(bytes(1 << 20)) == 1 << 20:
                        pass
                return ballast.unlink

            yield database, fill
            database.close()
    finally:
        subprocess.run(["umount", str(place)], check=True)
        place.rmdir()
        assert folder.exists()


def _owner() -> tuple[int, int]:
    import pwd

    account = pwd.getpwnam("postgres") if os.getuid() == 0 else pwd.getpwuid(os.getuid())
    return account.pw_uid, account.pw_gid


def many(session: Session) -> None:
    """Write more than there is room for."""
    session.insert_many(counters, ("name", "value"), ((f"row {number:050}", number) for number in range(50_000)))


def names(database: Database) -> int | None:
    return database.read(lambda session: session.number(sa.select(sa.func.count()).select_from(counters)))


@pytest.mark.parametrize("small", [small_sqlite, small_postgresql])
def test_a_full_disk_leaves_nothing_by_half(small: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contact, "CALM", 0.0)
    with small(tmp_path) as (database, fill):  # type: ignore[attr-defined]
        before = names(database)
        make_room = fill()
        with structlog.testing.capture_logs() as said:
            for _ in range(2):
                with pytest.raises(MetaError, match=r"(?s)takes no changes: .*(full|No space left).*nothing was changed"):
                    database.write(many)
                assert names(database) == before, "reads go on, and see nothing of it"
            assert database.contact.refusal
            make_room()
            change_nothing(database)
            assert database.contact.refusal == ""
            assert names(database) == before, "the probe leaves nothing"
            database.write(many)
        assert names(database) == (before or 0) + 50_000
    assert [line["event"] for line in said] == ["database takes no changes", "database takes changes again"]


def test_a_change_soon_after_a_refusal_shows_nothing(tmp_path: Path) -> None:
    with small_sqlite(tmp_path) as (database, fill):
        make_room = fill()
        with pytest.raises(MetaError):
            database.write(many)
        make_room()
        change_nothing(database)
        assert database.contact.refusal, "a small change may find room on a full disk"


def test_a_lock_file_that_can_not_be_opened_is_named(tmp_path: Path) -> None:
    with small_sqlite(tmp_path) as (database, _):
        lock = Path(f"{database.driver.path}.lock")  # type: ignore[attr-defined]
        lock.unlink(missing_ok=True)
        lock.mkdir()
        with pytest.raises(MetaError, match=rf"its lock file {lock} can not be opened: Is a directory; nothing was changed"):
            database.write(many)
        lock.rmdir()
        database.write(many)


def test_a_lost_connection_stays_noted_when_changes_are_taken_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lost connection and refused changes end independently of each other, each with a line of its own in the log."""
    monkeypatch.setattr(contact, "CALM", 0.0)
    known = contact.Contact("sqlite:///m.db")
    with known.noted():
        pass
    with structlog.testing.capture_logs() as said:
        for _ in range(2):
            with pytest.raises(OSError, match="refused"), known.noted():
                raise OSError("refused")
            known.refuse("the disk is full")
        known.accept()
        assert (known.loss, known.refusal) == ("refused", "")
        for _ in range(2):
            with known.noted():
                pass
    assert [line["event"] for line in said] == [
        "database lost", "database takes no changes", "database takes changes again", "database is back"
    ]  # fmt: skip


def test_probes_that_come_often_change_the_database_seldom(metastore: Metastore, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    metastore.database.observer = lambda text: written.append(text) if "INSERT" in text else None
    monkeypatch.setattr(health, "WRITES_APART", 3600.0)
    readiness = health.Readiness(metastore, lambda: False)
    assert [readiness.problem() for _ in range(20)] == [""] * 20
    assert len(written) == 1
