"""Dropped and truncated objects lose their data. No other object does, even if it is made, renamed or moved meanwhile."""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from metastore.errors import MetaError, MetastoreError
from metastore.idl import Database
from metastore.listeners import PostEventListener, TransactionalListener
from metastore.listeners.events import AlterTable, CreateTable, Event
from metastore.service.call.clock import now_ms
from metastore.service.call.context import Call, Metastore
from metastore.service.call.names import TableName
from metastore.service.catalog import databases
from metastore.service.catalog.catalogs import create_startup_objects
from metastore.service.catalog.exchange import exchange_partitions
from metastore.service.catalog.partitions.drop_partitions import drop_partition
from metastore.service.catalog.tables.alter_table import alter_table
from metastore.service.catalog.tables.tables import drop_table, find_table, truncate_table
from metastore.service.changes import deletion
from metastore.store.catalog.places import deletions
from metastore.store.core.database import Database as Store
from metastore.store.drivers.contract import BrokenAtCommit
from metastore.warehouse import Warehouse
from tests.support.catalog.catalog import MetastoreMaker, add_partitions, call_of, make_database, make_table
from tests.support.catalog.shared_directories import table_at

pytestmark = pytest.mark.on_one_database

KEYS = [("k", "string")]


def tree(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def put(call: Call, name: str, text: str) -> None:
    """Write a file into a directory of the warehouse."""
    folder = Path(call.warehouse.root.removeprefix("file:")) / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / text).write_text(text)


def rename(call: Call, old: TableName, new: str) -> None:
    table = find_table(call, old)
    table.tableName = new
    alter_table(call, old, table)


@contextmanager
def while_deleting(monkeypatch: pytest.MonkeyPatch, work: Callable[[], object], deletes: str = "delete_aside") -> Iterator[None]:
    """Run a call in another thread, stop it before it deletes the first file, run the body, and continue the call. Raises its error."""
    reached, go = threading.Event(), threading.Event()
    real = getattr(Warehouse, deletes)

    def waiting(self: Warehouse, *args: Any, **options: Any) -> None:
        reached.set()
        assert go.wait(60)
        real(self, *args, **options)

    with monkeypatch.context() as patched, ThreadPoolExecutor(1) as pool:
        patched.setattr(Warehouse, deletes, waiting)
        running = pool.submit(work)
        assert reached.wait(60), running.exception(0)
        try:
            yield
        finally:
            go.set()
        running.result()


def test_tables_are_swapped_while_one_is_truncated(call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for table in "ab":
        add_partitions(call, make_table(call, table, keys=KEYS), [["1"], ["2"]])
        put(call, f"{table}/k=1", table)
    a, b = TableName("hive", "default", "a"), TableName("hive", "default", "b")
    with while_deleting(monkeypatch, lambda: truncate_table(call, a, None, None)):
        rename(call, a, "a_old")
        rename(call, b, "a")
    assert tree(tmp_path / "warehouse") == {"a", "a/k=1", "a/k=1/b", "a/k=2", "a_old", "a_old/k=1", "a_old/k=2"}


def test_a_table_is_made_again_while_it_is_dropped(call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    name = make_table(call, "t")
    put(call, "t", "old")
    with while_deleting(monkeypatch, lambda: drop_table(call, name, delete_data=True)):
        make_table(call, "t")
        put(call, "t", "new")
    assert tree(tmp_path / "warehouse") == {"t", "t/new"}


def test_a_partition_is_added_again_while_it_is_dropped(call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    name = make_table(call, "t", keys=[("k", "string"), ("l", "string")])
    add_partitions(call, name, [["1", "1"]])
    put(call, "t/k=1/l=1", "old")
    with while_deleting(monkeypatch, lambda: drop_partition(call, name, ["1", "1"], delete_data=True)):
        add_partitions(call, name, [["1", "1"]])
        put(call, "t/k=1/l=1", "new")
    assert tree(tmp_path / "warehouse") == {"t", "t/k=1", "t/k=1/l=1", "t/k=1/l=1/new"}


def test_a_partition_takes_the_place_of_one_that_is_dropped(call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for table in "tu":
        add_partitions(call, make_table(call, table, keys=KEYS), [["1"]])
        put(call, f"{table}/k=1", table)
    t, u = TableName("hive", "default", "t"), TableName("hive", "default", "u")
    with while_deleting(monkeypatch, lambda: drop_partition(call, t, ["1"], delete_data=True)):
        exchange_partitions(call, {"k": "1"}, u, t)
    assert tree(tmp_path / "warehouse") == {"t", "t/k=1", "t/k=1/u", "u"}


@pytest.mark.parametrize("at", [None, "elsewhere/d"])
def test_a_database_is_made_again_while_it_is_dropped(call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, at: str | None) -> None:
    folder = tmp_path / (at or "warehouse/d.db")

    def make() -> None:
        databases.create_database(call, Database(name="d", locationUri=at and f"file:{tmp_path}/{at}"))
        add_partitions(call, make_table(call, "t", database="d", keys=KEYS), [["1"]])

    make()
    (folder / "t" / "k=1" / "old").touch()
    with while_deleting(monkeypatch, lambda: databases.drop_database(call, "hive", "d", delete_data=True, cascade=True)):
        make()
        (folder / "t" / "k=1" / "new").touch()
    assert tree(folder) == {"t", "t/k=1", "t/k=1/new"}
    assert [path for path in tree(tmp_path) if ".deleted" in path] == []


@pytest.mark.parametrize("drop", ["drop_table", "truncate_table"])
def test_objects_that_come_while_those_of_a_table_are_deleted_stay(
    make_metastore: MetastoreMaker,
    s3_options: dict[str, Any],  # the fixture
    bucket: str,
    monkeypatch: pytest.MonkeyPatch,
    drop: str,
) -> None:
    """No directory is renamed on an object store: the listed files are deleted, but not one that was rewritten meanwhile."""
    metastore = make_metastore(warehouse=f"s3a://{bucket}/wh", filesystem_options=s3_options)
    create_startup_objects(metastore)
    call, warehouse = call_of(metastore), metastore.warehouse

    def write(name: str, data: bytes) -> None:
        files, path = warehouse._at(f"{warehouse.root}/t/{name}")
        files.write(path, data)

    def there(name: str) -> bool:
        return warehouse.exists(f"{warehouse.root}/t/{name}")

    name = make_table(call, "t")
    write("old", b"old")
    write("000000_0", b"old")
    with while_deleting(monkeypatch, lambda: DROPS[drop](call, name), "delete_files"):
        if drop == "drop_table":
            make_table(call, "t")
        write("new", b"new")
        write("000000_0", b"new data")
    assert (there("old"), there("new"), there("000000_0")) == (False, True, True)


class Refuse(TransactionalListener):
    """Refuses all changes while `on`: after rows and directories, before the commit."""

    on = False

    def within(self, event: Event, session: Any) -> None:  # noqa: ARG002
        if self.on:
            raise MetaError("refused")


@pytest.fixture
def refusing(make_metastore: MetastoreMaker, metastore: Metastore, monkeypatch: pytest.MonkeyPatch) -> Iterator[Call]:
    yield call_of(make_metastore(transactional_listeners=(f"{__name__}:Refuse",)))
    Refuse.on = False


DROPS: dict[str, Callable[[Call, TableName], object]] = {
    "drop_table": lambda call, name: drop_table(call, name, delete_data=True),
    "truncate_table": lambda call, name: truncate_table(call, name, None, None),
    "truncate_partition": lambda call, name: truncate_table(call, name, ["k=1"], None),
    "drop_partition": lambda call, name: drop_partition(call, name, ["1"], delete_data=True),
    "drop_database": lambda call, name: databases.drop_database(call, *name[:2], delete_data=True, cascade=True),
}


def filled(call: Call, tmp_path: Path) -> tuple[TableName, set[str]]:
    """Make a table with two partitions and files in a database of its own. Return its name, and the paths in the warehouse."""
    make_database(call, "d")
    name = make_table(call, "t", database="d", keys=KEYS)
    add_partitions(call, name, [["1"], ["2"]])
    for place in ("d.db/t", "d.db/t/k=1", "d.db/t/k=2"):
        put(call, place, "file")
    return name, tree(tmp_path / "warehouse")


@pytest.mark.parametrize("drop", DROPS)
def test_a_refused_change_leaves_all_data(refusing: Call, tmp_path: Path, drop: str) -> None:
    name, before = filled(refusing, tmp_path)
    Refuse.on = True
    with pytest.raises(MetaError, match="refused"):
        DROPS[drop](refusing, name)
    assert tree(tmp_path / "warehouse") == before
    Refuse.on = False
    DROPS[drop](refusing, name)
    assert tree(tmp_path / "warehouse") < before


@pytest.mark.parametrize("failing", [1, 2])
def test_a_truncation_that_fails_half_way_leaves_all_data(
    call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, failing: int
) -> None:
    """A truncation renames directories one by one and makes them again. Here one of them can not be made."""
    name, before = filled(call, tmp_path)
    real, calls = Warehouse.make, itertools.count(1)

    def make(self: Warehouse, location: str) -> bool:
        if next(calls) == failing:
            raise RuntimeError("the disk is gone")
        return real(self, location)

    monkeypatch.setattr(Warehouse, "make", make)
    with pytest.raises(Exception, match="the disk is gone"):
        truncate_table(call, name, None, None)
    assert tree(tmp_path / "warehouse") == before


@pytest.mark.parametrize("is_done", [False, True], ids=["not done", "done"])
@pytest.mark.parametrize("drop", DROPS)
def test_a_commit_that_broke_is_settled_by_the_database(
    call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, drop: str, is_done: bool
) -> None:
    name, before = filled(call, tmp_path)
    real = Store._commit

    def broken(self: Store, cursor: Any) -> None:
        monkeypatch.setattr(Store, "_commit", real)
        if is_done:
            real(self, cursor)
        else:
            self.driver.rollback(cursor)
        raise BrokenAtCommit("the connection to the database broke at commit")

    monkeypatch.setattr(Store, "_commit", broken)
    with pytest.raises(MetastoreError, match="broke at commit"):
        DROPS[drop](call, name)
    now = tree(tmp_path / "warehouse")
    assert now == before if not is_done else now < before
    assert [path for path in now if ".deleted" in path] == []


def test_tables_that_share_a_directory_and_are_dropped_together_take_the_data_along(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two drops that see each other's table both leave the data at first. The last one deletes it."""
    names = [table_at(call, name, tmp_path / "shared") for name in ("t", "u")]
    (tmp_path / "shared" / "file").touch()
    real, first = deletion.Deletion.finish, threading.Event()

    def finish(self: deletion.Deletion) -> None:
        if not first.is_set():
            first.set()
            drop_table(call, names[1], delete_data=True)
        real(self)

    monkeypatch.setattr(deletion.Deletion, "finish", finish)
    seen = deletion.occupants  # type: ignore[attr-defined]
    both = call.database.read(lambda session: seen(session, [f"file:{tmp_path}/shared"]))
    monkeypatch.setattr(deletion, "occupants", lambda *args, **options: both if not first.is_set() else seen(*args, **options))
    drop_table(call, names[0], delete_data=True)
    assert not (tmp_path / "shared").exists()


def test_old_notes_of_deletions_go(metastore: Metastore) -> None:
    database = metastore.database
    old, young = "0000000000001-a", f"{now_ms():013d}-a"
    for number in (old, young):
        database.write(lambda session, number=number: deletions.insert(session, number))  # type: ignore[misc]
    deletion.delete_old(metastore)
    assert database.write(lambda session: deletions.was_committed(session, young))
    assert not database.write(lambda session: deletions.was_committed(session, old))


class Fill(TransactionalListener):
    """Writes the file of a new table, named by its id, before anybody else can see the table."""

    def within(self, event: Event, session: Any) -> None:  # noqa: ARG002
        if isinstance(event, CreateTable):
            folder = Path(event.table.sd.location.removeprefix("file:"))
            (folder / str(event.table.id)).touch()


class NoteTruncations(PostEventListener):
    """Notes the id of each truncated table once the truncation is committed: one that conflicts is rolled back."""

    truncated: set[int] = set()  # noqa: RUF012  # the test empties it

    def after(self, event: Event, error: Exception | None) -> None:
        if error is None and isinstance(event, AlterTable) and event.before.tableName == event.after.tableName:
            self.truncated.add(event.before.id)


@pytest.mark.parametrize("seed", range(3))
def test_random_drops_truncations_renames_and_creations_side_by_side(
    make_metastore: MetastoreMaker, metastore: Metastore, tmp_path: Path, seed: int
) -> None:
    """At the end each table has its own file, unless it was truncated. No other file or directory is left."""
    made = make_metastore(transactional_listeners=(f"{__name__}:Fill",), post_event_listeners=(f"{__name__}:NoteTruncations",))
    barrier = threading.Barrier(4)
    NoteTruncations.truncated.clear()

    def client(number: int) -> None:
        call, chance = call_of(made), random.Random(seed * 10 + number)
        barrier.wait(60)
        for _ in range(25):
            name = TableName("hive", "default", chance.choice("abc"))
            try:
                match chance.randrange(4):
                    case 0:
                        drop_table(call, name, delete_data=True)
                    case 1:
                        truncate_table(call, name, None, None)
                    case 2:
                        rename(call, name, chance.choice("abc".replace(name.table, "")))
                    case 3:
                        make_table(call, name.table, parameters={"DO_NOT_UPDATE_STATS": "true"})
            except MetastoreError:
                pass

    with ThreadPoolExecutor(4) as pool:
        for running in [pool.submit(client, number) for number in range(4)]:
            running.result()
    call, expected = call_of(made), set()
    for letter in "abc":
        try:
            table = find_table(call, TableName("hive", "default", letter))
        except MetastoreError:
            continue
        folder = Path(table.sd.location.removeprefix("file:")).relative_to(tmp_path / "warehouse")
        expected.add(str(folder))
        if table.id not in NoteTruncations.truncated:
            expected.add(f"{folder}/{table.id}")
    assert tree(tmp_path / "warehouse") == expected
