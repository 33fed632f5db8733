"""Recovery after a server is killed: its unfinished calls leave no row and no directory, and its committed changes stay."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest

from metastore import idl
from metastore.client import Client, connect
from metastore.idl import Database, FieldSchema, Partition, SerDeInfo, StorageDescriptor, Table
from metastore.service.call.clock import now_ms
from metastore.service.call.context import Call, Metastore
from metastore.service.catalog.databases import create_database
from metastore.service.catalog.partitions.partitions import get_partition_names
from metastore.service.catalog.tables.alter_table import alter_table
from metastore.service.catalog.tables.tables import find_table
from metastore.service.changes.recovery import recover, recover_before_serving, take_back
from metastore.store.catalog import databases
from metastore.store.catalog.places import deletions
from metastore.store.catalog.tables import tables
from metastore.warehouse import DELETION, Journal
from tests.support.catalog.catalog import MetastoreMaker, add_partitions, call_of, make_database, make_table
from tests.support.servers.hooks import FOLDER, pipes
from tests.support.servers.servers import Server, serving


def descriptor() -> StorageDescriptor:
    return StorageDescriptor(
        cols=[FieldSchema(name="a", type="int")], inputFormat="in", outputFormat="out",
        serdeInfo=SerDeInfo(serializationLib="lib", parameters={}), parameters={},
    )  # fmt: skip


def table(name: str, **fields: Any) -> Table:
    return Table(dbName="default", tableName=name, sd=descriptor(), parameters={}, tableType="MANAGED_TABLE", **fields)


def partition(value: str, **parameters: str) -> Partition:
    return Partition(values=[value], dbName="default", tableName="t", sd=descriptor(), parameters=parameters)


def tree(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


class Victim:
    """A server with one worker process whose calls stop at a listener, until the worker is killed there."""

    def __init__(self, home: Path, options: tuple[str, ...], folder: Path) -> None:
        self.home = home
        self.options = options
        self.folder = folder
        self.warehouse = home / "warehouse"

    @contextmanager
    def serving(self) -> Iterator[Server]:
        with serving(*self.options, home=self.home, variables={FOLDER: str(self.folder)}) as server:
            yield server

    def killed_in(self, server: Server, work: Callable[[Client], object]) -> int:
        """Run a call and kill the worker when it has reached the listener; return the worker's id."""
        with ThreadPoolExecutor(1) as pool, connect(server.uri) as client:
            running = pool.submit(work, client)
            pid = int((self.folder / "reached").read_text())
            assert not running.done()
            os.kill(pid, signal.SIGKILL)
            with pytest.raises(ConnectionError):
                running.result()
        return pid


@pytest.fixture
def victim(request: pytest.FixtureRequest, database_url: str, tmp_path: Path) -> Victim:
    setting = getattr(request, "param", "transactional_listeners=tests.support.servers.hooks:StopWithin")
    folder = tmp_path / "pipes"
    folder.mkdir()
    pipes(folder)
    home = tmp_path / "home"
    return Victim(home, ("--db", database_url, "--workers", "1", "--warehouse", str(home / "warehouse"), "--set", setting), folder)


def test_nothing_of_killed_calls_remains_and_all_of_before_does(victim: Victim) -> None:
    with victim.serving() as server:
        with connect(server.uri) as client:
            client.create_table(table("t", partitionKeys=[FieldSchema(name="p", type="string")]))
            client.add_partitions([partition("0")])
            (victim.warehouse / "t" / "p=0" / "data").write_text("precious")
            client.create_table(table("old"))
            (victim.warehouse / "old" / "data").write_text("precious")
            renamed = client.get_table("default", "old")
        before = tree(victim.warehouse)
        renamed.tableName = "victim_renamed"
        calls: list[Callable[[Client], object]] = [
            lambda client: client.add_partitions_req(idl.AddPartitionsRequest(
                dbName="default", tblName="t", ifNotExists=True, parts=[partition(str(number), victim="") for number in range(50)],
            )),
            lambda client: client.create_table(table("victim_table")),
            lambda client: client.create_database(Database(name="victim_database")),
            lambda client: client.alter_table("default", "old", renamed),
            lambda client: client.rename_partition("default", "t", ["0"], partition("9", victim="")),
        ]  # fmt: skip
        for call in calls:
            victim.killed_in(server, call)
            with connect(server.uri) as client:
                assert client.getStatus() == 2, "another worker serves"
                assert tree(victim.warehouse) == before
                assert client.get_partition_names("default", "t", -1) == ["p=0"]
                assert sorted(client.get_all_tables("default")) == ["old", "t"]
                assert client.get_all_databases() == ["default"]
        with connect(server.uri) as client:
            client.add_partitions([partition("1")])
            client.create_table(table("next"))
        assert tree(victim.warehouse) == before | {"t/p=1", "next"}


def test_a_server_that_was_killed_as_a_whole_recovers_at_its_start(victim: Victim) -> None:
    with victim.serving() as server:
        with connect(server.uri) as client:
            client.create_table(table("t"))
        before = tree(victim.warehouse)
        os.kill(server.process.pid, signal.SIGSTOP)  # so that it can not replace its worker
        victim.killed_in(server, lambda client: client.create_table(table("victim_table")))
        assert tree(victim.warehouse) == before | {"victim_table"}
        os.kill(server.process.pid, signal.SIGKILL)
        server.process.wait()
    with victim.serving() as server, connect(server.uri) as client:
        assert tree(victim.warehouse) == before
        assert client.get_all_tables("default") == ["t"]


@pytest.mark.on_one_database
@pytest.mark.parametrize("victim", ["post_event_listeners=tests.support.servers.hooks:StopAfter"], indirect=True)
def test_commits_before_the_kill_stay(victim: Victim) -> None:
    with victim.serving() as server:
        victim.killed_in(server, lambda client: client.create_table(table("victim_table")))
        with connect(server.uri) as client:
            assert client.get_all_tables("default") == ["victim_table"]
        assert tree(victim.warehouse) == {"victim_table"}


DELETIONS: dict[str, Callable[[Client], object]] = {
    "drop_table": lambda client: client.drop_table("doomed_d", "doomed_t", True),
    "truncate_table": lambda client: client.truncate_table("doomed_d", "doomed_t", []),
    "truncate_partition": lambda client: client.truncate_table("doomed_d", "doomed_t", ["p=1"]),
    "drop_partition": lambda client: client.drop_partition("doomed_d", "doomed_t", ["1"], True),
    "drop_database": lambda client: client.drop_database("doomed_d", True, True),
}


def fill(client: Client, warehouse: Path) -> set[str]:
    """Make a database with two tables and their data; return the paths in the warehouse."""
    client.create_database(Database(name="doomed_d"))
    for name, keys in (("doomed_t", [FieldSchema(name="p", type="string")]), ("other", [])):
        made = table(name, partitionKeys=keys)
        made.dbName = "doomed_d"
        client.create_table(made)
    added = partition("1", doomed="")
    added.dbName, added.tableName = "doomed_d", "doomed_t"
    client.add_partitions([added])
    for place in ("doomed_t", "doomed_t/p=1", "other"):
        (warehouse / "doomed_d.db" / place / "data").write_text("precious")
    return tree(warehouse)


@pytest.mark.on_one_database
@pytest.mark.parametrize("victim", ["transactional_listeners=tests.support.servers.hooks:StopWithin"], indirect=True)
@pytest.mark.parametrize("drop", DELETIONS)
def test_data_that_a_killed_call_was_deleting_is_put_back(victim: Victim, drop: str) -> None:
    with victim.serving() as server:
        with connect(server.uri) as client:
            before = fill(client, victim.warehouse)
        victim.killed_in(server, DELETIONS[drop])
        with connect(server.uri) as client:
            assert client.getStatus() == 2, "another worker serves"
            assert tree(victim.warehouse) == before
            assert client.get_partition_names("doomed_d", "doomed_t", -1) == ["p=1"]


@pytest.mark.on_one_database
@pytest.mark.parametrize("victim", ["post_event_listeners=tests.support.servers.hooks:StopAfter"], indirect=True)
@pytest.mark.parametrize("drop", DELETIONS)
def test_data_that_a_killed_call_was_deleting_goes_once_it_is_committed(victim: Victim, drop: str) -> None:
    with victim.serving() as server:
        with connect(server.uri) as client:
            before = fill(client, victim.warehouse)
        victim.killed_in(server, DELETIONS[drop])
        with connect(server.uri) as client:
            assert client.getStatus() == 2, "another worker serves"
            now = tree(victim.warehouse)
            assert now < before
            assert "doomed_d.db/doomed_t/p=1/data" not in now


def abandon(metastore: Metastore, subject: list[Any], directories: list[Path | str], moves: list[tuple[str, str]] | None = None) -> Path:
    """Write the journal of a process that is dead, and make the directories that it noted."""
    folder = Path(metastore.config.data_directory) / "journal"
    folder.mkdir(parents=True, exist_ok=True)
    for directory in directories:
        if isinstance(directory, Path):
            directory.mkdir(parents=True, exist_ok=True)
    path = folder / f"1-{os.urandom(4).hex()}.journal"
    texts = [f"file:{each}" if isinstance(each, Path) else each for each in directories]
    path.write_bytes(orjson.dumps([1, subject, texts, moves or []]) + b"\n")
    return path


def test_empty_directories_go_innermost_first_and_full_ones_stay(metastore: Metastore, tmp_path: Path) -> None:
    root = tmp_path / "lake"
    abandon(metastore, ["table", "hive", "default", "t"], [root / "a", root / "a" / "b", root / "c"])
    (root / "c" / "file").write_text("")
    assert recover(metastore) == 2
    assert tree(root) == {"c", "c/file"}
    assert recover(metastore) == 0


def test_a_directory_that_a_row_names_stays_however_it_is_spelled(metastore: Metastore, call: Call, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    make_database(call, "d")
    name = make_table(call, "t", keys=[("p", "string")])
    add_partitions(call, name, [["1"]])
    for spelling, number in (("file://{}", 2), ("file://localhost{}/", 3), ("{}", 4), ("file:{}", 5)):
        from metastore.service.catalog.partitions.add_partitions import add_partitions as add

        sd = descriptor()
        sd.location = spelling.format(lake / f"p_{number}")
        add(call, name, [Partition(values=[str(number)], dbName="default", tableName="t", sd=sd, parameters={})])
    create_database(call, Database(name="e", locationUri=f"file://{lake}/e", managedLocationUri=f"file://{lake}/managed"))
    warehouse = tmp_path / "warehouse"
    own = [warehouse / "d.db", warehouse / "t", warehouse / "t" / "p=1"]
    used = [*own, lake / "e", lake / "managed", *(lake / f"p_{number}" for number in (2, 3, 4, 5))]
    before = tree(tmp_path)
    abandon(metastore, ["partitions", "hive", "default", "t", ["p=1"]], [*used, warehouse / "t" / "p=9", lake / "pX2"])
    assert recover(metastore) == 2
    assert tree(warehouse) | tree(lake) == {
        path.removeprefix("warehouse/").removeprefix("lake/") for path in before if path.startswith(("warehouse/", "lake/"))
    }


def test_a_move_goes_back_only_if_the_row_is_at_the_old_place(metastore: Metastore, call: Call, tmp_path: Path) -> None:
    warehouse = tmp_path / "warehouse"
    make_table(call, "t")
    (warehouse / "t" / "f").write_text("")
    (warehouse / "t").rename(warehouse / "u")
    move = [(f"file:{warehouse}/t", f"file://{warehouse}/u")]
    abandon(metastore, ["table", "hive", "default", "u"], [], move)
    assert recover(metastore) == 1
    assert (warehouse / "t" / "f").exists()
    renamed = find_table(call, make_name("t"))
    renamed.tableName = "u"
    alter_table(call, make_name("t"), renamed)
    assert (warehouse / "u" / "f").exists()
    abandon(metastore, ["table", "hive", "default", "u"], [], move)
    assert recover(metastore) == 0
    assert (warehouse / "u" / "f").exists()


def make_name(table: str) -> Any:
    from metastore.service.call.names import TableName

    return TableName("hive", "default", table)


def test_the_claim_of_a_move_that_did_not_happen_goes(metastore: Metastore, call: Call, tmp_path: Path) -> None:
    make_table(call, "t")
    (tmp_path / "warehouse" / "u").mkdir()
    abandon(metastore, ["table", "hive", "default", "u"], [], [(f"file:{tmp_path}/warehouse/t", f"file:{tmp_path}/warehouse/u")])
    assert recover(metastore) == 1
    assert tree(tmp_path / "warehouse") == {"t"}


def test_a_directory_that_another_call_is_about_to_use_stays(metastore: Metastore, call: Call, tmp_path: Path) -> None:
    """A client that tries again at once finds the directory of the killed call, and recovery waits for it."""
    place = tmp_path / "warehouse" / "again"
    place.mkdir(parents=True)
    inserted, go = threading.Event(), threading.Event()
    template = find_table(call, make_table(call, "template"))

    def slow(session: Any) -> None:
        key = databases.share(session, "hive", "default")
        assert key is not None
        again = Table(**template.__dict__)
        again.tableName, again.sd = "again", descriptor()
        again.sd.location = f"file:{place}"
        tables.insert(session, key, again)
        inserted.set()
        assert go.wait(60)

    with ThreadPoolExecutor(2) as pool:
        writing = pool.submit(metastore.database.write, slow)
        assert inserted.wait(60)
        recovering = pool.submit(take_back, metastore, ("table", "hive", "default", "again"), [f"file:{place}"])
        go.set()
        writing.result()
        assert recovering.result() == 0
    assert place.is_dir()


def test_a_change_that_can_not_be_looked_up_stays_for_the_next_time(
    make_metastore: MetastoreMaker, metastore: Metastore, tmp_path: Path
) -> None:
    abandon(metastore, ["table", "hive", "default", "t"], [tmp_path / "lake"])
    unreachable = make_metastore(db="postgresql://nobody@127.0.0.1:9/none")
    assert recover(unreachable) == 0
    assert (tmp_path / "lake").is_dir()
    assert recover(metastore) == 1
    assert not (tmp_path / "lake").exists()


def test_the_journal_of_a_living_process_is_left_alone(metastore: Metastore, tmp_path: Path) -> None:
    place = tmp_path / "lake"
    place.mkdir()
    journal = Journal(Path(metastore.config.data_directory) / "journal")
    number = journal.begin(("table", "hive", "default", "t"), [f"file:{place}"])
    assert recover(metastore) == 0
    assert place.is_dir()
    journal.end(number)


def test_objects_whose_owner_is_gone_do_not_stop_recovery(metastore: Metastore, tmp_path: Path) -> None:
    call = call_of(metastore)
    make_table(call, "t")
    for number, subject in enumerate((
        ["partitions", "hive", "no", "such", ["p=1"]], ["table", "no", "such", "t"], ["database", "no", "d"], ["catalog", "c"], [],
    )):  # fmt: skip
        abandon(metastore, subject, [tmp_path / "lake" / str(number)])
    assert recover(metastore) == 5
    assert get_partition_names(call, make_name("t")) == []


def test_recovery_waits_for_the_transaction_of_a_killed_call_that_may_still_be_committed(
    metastore: Metastore, call: Call, tmp_path: Path
) -> None:
    """The database may not have noticed yet that its client is gone, or may still be committing its last statement."""
    warehouse = tmp_path / "warehouse"
    make_table(call, "t")
    (warehouse / "t" / "f").touch()
    number = f"{now_ms():013d}-a"
    (warehouse / "t").rename(warehouse / f".deleted-{number}-0")
    abandon(metastore, [DELETION, number, "purge"], [], [(f"file:{warehouse}/t", f"file:{warehouse}/.deleted-{number}-0")])
    inserted, go = threading.Event(), threading.Event()

    def slow(session: Any) -> None:
        deletions.insert(session, number)
        databases.find(session, "hive", "default")
        inserted.set()
        assert go.wait(60)

    with ThreadPoolExecutor(2) as pool:
        writing = pool.submit(metastore.database.write, slow)
        assert inserted.wait(60)
        recovering = pool.submit(recover, metastore)
        go.set()
        writing.result()
        recovering.result()
    assert tree(warehouse) == set()


def test_data_whose_note_may_be_gone_is_left_where_it_is(metastore: Metastore, tmp_path: Path) -> None:
    aside = tmp_path / "warehouse" / ".deleted-0000000000001-a-0"
    aside.mkdir(parents=True)
    abandon(metastore, [DELETION, "0000000000001-a", "purge"], [], [(f"file:{tmp_path}/warehouse/t", f"file:{aside}")])
    recover(metastore)
    assert aside.is_dir()


def test_a_start_waits_for_a_process_that_is_being_killed(metastore: Metastore, tmp_path: Path) -> None:
    """A killed process may hold its journal for a while: until it has given back its memory, or the disk has answered."""
    path = abandon(metastore, ["table", "hive", "default", "t"], [tmp_path / "lake"])
    holder = subprocess.Popen(
        [sys.executable, "-c", "import fcntl, sys; f = open(sys.argv[1]); fcntl.flock(f, 2); print(flush=True); sys.stdin.read()", path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdin is not None
    assert holder.stdout is not None
    holder.stdout.readline()
    named = path.with_name(f"{holder.pid}-a.journal")
    path.rename(named)
    assert recover(metastore) == 0
    assert named.exists(), "its process lives"
    named.rename(path.with_name("999999999-a.journal"))  # no process has that number any more
    with ThreadPoolExecutor(1) as pool:
        starting = pool.submit(recover_before_serving, metastore)
        holder.stdin.close()
        starting.result()
    holder.wait()
    assert not (tmp_path / "lake").exists()


def test_recovery_waits_for_a_rename_that_may_still_be_committed(metastore: Metastore, call: Call, tmp_path: Path) -> None:
    """If the data was moved back too early, it would be where no table is."""
    warehouse = tmp_path / "warehouse"
    found = find_table(call, make_table(call, "t"))
    assert found.id is not None
    (warehouse / "t" / "f").touch()
    (warehouse / "t").rename(warehouse / "u")
    abandon(metastore, ["table", "hive", "default", "u"], [], [(f"file:{warehouse}/t", f"file:{warehouse}/u")])
    renamed = Table(**found.__dict__)
    renamed.tableName, renamed.sd.location = "u", f"file:{warehouse}/u"
    changed, go = threading.Event(), threading.Event()

    def slow(session: Any) -> None:
        key = databases.share(session, "hive", "default")
        assert key is not None
        tables.update(session, found.id, key, renamed, found)  # type: ignore[arg-type]
        changed.set()
        assert go.wait(60)

    with ThreadPoolExecutor(2) as pool:
        renaming = pool.submit(metastore.database.write, slow)
        assert changed.wait(60)
        recovering = pool.submit(recover, metastore)
        go.set()
        renaming.result()
        assert recovering.result() == 0
    assert tree(warehouse) == {"u", "u/f"}
