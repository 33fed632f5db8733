"""Processes beside a server compact its tables: the files that they make, their deaths and ends, and the entries that they put back.

A process is held at a fixed place by a pipe in the place of a small file, which it opens before it reads rows.
"""

from __future__ import annotations

import datetime
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc

from metastore.acid.compaction.compacting import Cancelled, PutBack
from metastore.acid.compaction.memory import resident
from metastore.acid.compaction.watch import Watch
from metastore.acid.transactions import Transaction
from metastore.client import Client, connect
from metastore.idl import (
    AbortCompactionRequest,
    AbortTxnRequest,
    CompactionInfoStruct,
    CompactionRequest,
    CompactionType,
    CreateTableRequest,
    FindNextCompactRequest,
    ShowCompactRequest,
    ShowCompactResponseElement,
    Table,
    TxnState,
)
from metastore.rules.transactions.compactions import SERVERS_OWN
from metastore.streaming import Rows, StreamingConnection
from tests.streaming.conftest import CAPABILITIES
from tests.streaming.reading import rows
from tests.support.acid.acid_tables import definition, stored_table
from tests.support.servers.processes import runs
from tests.support.servers.servers import Server, serving
from tests.support.servers.waiting import until

Row = dict[str, Any]
SETTINGS = ("hive.compactor.initiator.on=false", "hive.compactor.cleaner.run.interval=1s", "compactor_worker_threads=1")


class Cluster:
    """A server with one compaction process, and tables on it."""

    def __init__(self, server: Server, client: Client) -> None:
        self.server = server
        self.client = client

    def make(self, name: str, columns: str = "id int, v string", keys: str = "", **options: Any) -> Table:
        table = definition(name, columns, keys, **options)
        self.client.create_table_req(CreateTableRequest(table=table, processorCapabilities=CAPABILITIES, processorIdentifier="tests"))
        return stored_table(self.client, name)

    def write(self, name: str, *commits: list[Row]) -> None:
        """Write rows, each list in a delta of its own."""
        for records in commits:
            with (
                StreamingConnection(self.server.uri, f"default.{name}", Rows()) as connection,
                connection.batch(1) as batch,
                batch.transaction(),
            ):
                batch.write(records)

    def ask(self, name: str, kind: int = CompactionType.MAJOR, partition: str | None = None) -> int:
        request = CompactionRequest(dbname="default", tablename=name, type=kind, partitionname=partition, initiatorId="tests")
        answer = self.client.compact2(request)
        assert answer.accepted, answer.errormessage
        return int(answer.id)

    def entry(self, key: int) -> ShowCompactResponseElement:
        (found,) = self.client.show_compact(ShowCompactRequest(id=key)).compacts
        return found

    def wait(self, key: int, is_there: Callable[[ShowCompactResponseElement], bool]) -> ShowCompactResponseElement:
        return until(lambda: self.entry(key), is_there)

    def compacted(self, key: int) -> ShowCompactResponseElement:
        return self.wait(key, lambda entry: entry.state in ("ready for cleaning", "succeeded"))

    def opened(self) -> list[int]:
        return [each.id for each in self.client.get_open_txns_info().open_txns if each.state == TxnState.OPEN]


@contextmanager
def running(home: Path, *settings: str, db: str | None = None) -> Iterator[Cluster]:
    options = [part for setting in (*SETTINGS, *settings) for part in ("--set", setting)]
    where = ("--db", db or f"sqlite:///{home}/m.db", "--warehouse", str(home / "warehouse"), "--workers", "1")
    with serving(*where, *options, home=home) as server, connect(server.uri) as client:
        yield Cluster(server, client)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with running(tmp_path) as made:
        yield made


def numbers(first: int, last: int) -> list[Row]:
    return [{"id": number, "v": f"text {number}"} for number in range(first, last)]


def directories(table: Table, partition: str = "") -> list[str]:
    place = Path(table.sd.location.removeprefix("file:")) / partition
    return sorted(path.name for path in place.iterdir() if path.is_dir())


@pytest.mark.on_one_database
def test_tables_become_small_and_keep_their_rows(database_url: str, tmp_path: Path) -> None:
    with running(tmp_path, db=database_url) as cluster:
        table = cluster.make("t", "id int, v string", "p int")
        for first in (0, 10, 20):
            cluster.write("t", [{**row, "p": row["id"] % 2} for row in numbers(first, first + 10)])
        before = [rows(cluster.client, table, f"p={value}") for value in (0, 1)]
        assert [len(each) for each in before] == [15, 15]
        minor = cluster.ask("t", CompactionType.MINOR, "p=0")
        major = cluster.ask("t", CompactionType.MAJOR, "p=1")
        for key in (minor, major):
            assert cluster.compacted(key).workerVersion == SERVERS_OWN
            assert cluster.entry(key).hadoopJobId == "15 of 15 rows"
        until(lambda: directories(table, "p=0") + directories(table, "p=1"), lambda found: len(found) == 2)
        assert [name.partition("_v")[0] for name in directories(table, "p=0")] == ["delta_0000001_0000003"]
        assert [name.partition("_v")[0] for name in directories(table, "p=1")] == ["base_0000003"]
        assert rows(cluster.client, table, "p=0") == before[0]
        assert read_base(table, "p=1") == before[1]


def read_base(table: Table, partition: str = "") -> list[Row]:
    (base,) = (Path(table.sd.location.removeprefix("file:")) / partition).glob("base_*")
    found = [orc.ORCFile(str(path)).read().to_pylist() for path in sorted(base.iterdir()) if path.name[0] in "b0"]
    return [row.get("row", row) for part in found for row in part]


@pytest.mark.parametrize("kind", [CompactionType.MINOR, CompactionType.MAJOR])
def test_directories_that_an_overwrite_has_replaced_are_cleaned(cluster: Cluster, kind: int) -> None:
    """There are no rows to write, but the cleaner has to be called, because no later compaction is requested."""
    table = cluster.make("t")
    cluster.write("t", numbers(0, 10), numbers(10, 20))
    assert transaction_of(cluster, table) == 3
    (Path(table.sd.location.removeprefix("file:")) / "base_0000003").mkdir()
    key = cluster.ask("t", kind)
    cluster.wait(key, lambda entry: entry.state == "succeeded")
    assert directories(table) == ["base_0000003"]
    key = cluster.ask("t", kind)
    assert not cluster.wait(key, lambda entry: entry.state == "succeeded").commitTime  # there was nothing to do


def test_insert_only_tables_in_orc(cluster: Cluster) -> None:
    table = cluster.make("t", "id int, v char(3)", insert_only=True)
    place = Path(table.sd.location.removeprefix("file:"))
    expected = []
    for write_id in (1, 2, 3):
        with_id = transaction_of(cluster, table)
        assert with_id == write_id
        delta = place / f"delta_{write_id:07d}_{write_id:07d}_0000"
        delta.mkdir()
        schema = pa.schema([("id", pa.int32()), ("v", pa.string())])
        orc.write_table(pa.table({"id": [write_id, None], "v": ["a", None]}, schema), str(delta / "000000_0"))
        expected += [{"id": write_id, "v": "a"}, {"id": None, "v": None}]
    cluster.compacted(cluster.ask("t"))
    assert read_base(table) == expected
    (base,) = place.glob("base_*")
    assert [path.name for path in base.iterdir()] == ["000000_0"]


def transaction_of(cluster: Cluster, table: Table) -> int:
    """Commit a transaction that has a write id of a table. Return the write id."""
    with Transaction.begin(cluster.server.uri) as txn:
        return txn.write_id(table.dbName, table.tableName)


def test_no_process_of_the_server_loads_arrow(cluster: Cluster) -> None:
    table = cluster.make("t")
    (own,) = until(cluster.server.compactors, lambda found: len(found) == 1)
    assert not has_arrow(own)
    cluster.write("t", numbers(0, 2), numbers(2, 4))
    cluster.compacted(cluster.ask("t"))
    assert len(read_base(table)) == 4
    assert has_arrow(own)
    server = cluster.server
    assert [pid for pid in (server.process.pid, *server.children()) if has_arrow(pid)] == [own]


def has_arrow(pid: int) -> bool:
    return "libarrow" in Path(f"/proc/{pid}/maps").read_text()


class Held:
    """A table whose compaction is held before it reads rows."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.table = cluster.make("held")
        cluster.write("held", numbers(0, 3), numbers(3, 6))
        (delta,) = Path(self.table.sd.location.removeprefix("file:")).glob("delta_0000002*")
        self._pipe = delta / "bucket_00000_flush_length"
        self._aside = delta.parents[2] / "pipe"
        os.mkfifo(self._pipe)
        os.link(self._pipe, self._aside)
        self.key = cluster.ask("held")
        self.worker = self.wait_for_worker()

    def wait_for_worker(self) -> int:
        """Wait until a process is held, and return it."""
        entry = self.cluster.wait(self.key, lambda entry: entry.state == "working" and bool(entry.txnId))
        return int(entry.workerid.split("-")[-2])

    def let_go(self) -> None:
        """Release the process that is held or soon will be. The file that holds processes is removed, so later ones are not held."""
        self._pipe.unlink()
        for _ in range(200):  # a process that has not opened the file yet will not find it
            with suppress(OSError):  # no process reads
                os.close(os.open(self._aside, os.O_WRONLY | os.O_NONBLOCK))
                return
            time.sleep(0.01)

    def remove_pipe(self) -> None:
        self._pipe.unlink()


@pytest.fixture
def held(cluster: Cluster) -> Held:
    return Held(cluster)


def test_a_process_that_is_killed_is_followed_by_another(held: Held) -> None:
    cluster = held.cluster
    first = cluster.entry(held.key)
    os.kill(held.worker, signal.SIGKILL)
    entry = cluster.wait(held.key, lambda entry: entry.workerid not in (None, first.workerid))
    assert entry.errorMessage == "killed by signal 9 (out of memory?)"
    assert first.txnId not in cluster.opened()
    second = held.wait_for_worker()
    assert second != held.worker
    held.let_go()
    cluster.compacted(held.key)
    assert sorted(row["id"] for row in read_base(held.table)) == list(range(6))
    assert cluster.server.compactors() == [second]


@pytest.mark.slow
def test_the_third_death_is_the_last(held: Held) -> None:
    cluster = held.cluster
    for _ in range(3):
        os.kill(held.wait_for_worker(), signal.SIGKILL)
        killed = cluster.entry(held.key)
        cluster.wait(held.key, lambda entry, killed=killed: entry.workerid != killed.workerid or entry.state == "failed")  # type: ignore[misc]
    entry = cluster.wait(held.key, lambda entry: entry.state == "failed")
    assert entry.errorMessage == "killed by signal 9 (out of memory?)"
    until(cluster.opened, lambda found: not found)
    held.remove_pipe()
    assert len(rows(cluster.client, held.table)) == 6


def test_an_entry_that_is_worked_on_is_aborted(held: Held) -> None:
    cluster = held.cluster
    transaction = cluster.entry(held.key).txnId
    answer = cluster.client.abort_Compactions(AbortCompactionRequest(compactionIds=[held.key])).abortedcompacts[held.key]
    held.let_go()  # at once: a process that is held for longer ends, which the next test shows
    assert answer.status == "Success"
    assert cluster.entry(held.key).state == "aborted"
    assert transaction not in cluster.opened()
    until(lambda: directories(held.table), lambda found: found == ["delta_0000001_0000001", "delta_0000002_0000002"])
    again = cluster.ask("held")
    cluster.compacted(again)
    assert cluster.entry(held.key).state == "aborted"
    assert cluster.server.compactors() == [held.worker]


@pytest.mark.slow
def test_one_that_does_not_hear_ends_with_its_process(held: Held) -> None:
    cluster = held.cluster
    cluster.client.abort_Compactions(AbortCompactionRequest(compactionIds=[held.key]))
    until(cluster.server.compactors, lambda found: bool(found) and held.worker not in found)
    held.remove_pipe()
    cluster.compacted(cluster.ask("held"))


def test_a_server_that_ends_gives_its_work_back(tmp_path: Path) -> None:
    with running(tmp_path) as cluster:
        held = Held(cluster)
        cluster.server.process.terminate()
        assert cluster.server.process.wait(60) == 0
    assert not runs(held.worker)
    _is_free(tmp_path, held)


def test_a_server_that_is_killed_leaves_no_process(tmp_path: Path) -> None:
    with running(tmp_path) as cluster:
        held = Held(cluster)
        cluster.server.process.kill()
        until(lambda: not runs(held.worker), missing="its end")
    _is_free(tmp_path, held)


def _is_free(home: Path, held: Held) -> None:
    """Assert that another server's process does the entry of a killed process."""
    held.remove_pipe()
    with running(home) as again:
        entry = again.compacted(held.key)
        assert entry.errorMessage is None
        until(again.opened, lambda found: not found)
        assert sorted(row["id"] for row in read_base(held.table)) == list(range(6))


def foreign(cluster: Cluster) -> CompactionInfoStruct | None:
    """Take an entry as a worker of another version."""
    found: CompactionInfoStruct | None = cluster.client.find_next_compact2(FindNextCompactRequest("spark", "metastore-spark", None)).ci
    return found


def test_a_table_that_arrow_can_not_copy_waits_for_spark(cluster: Cluster) -> None:
    table = cluster.make("t", "id int, at timestamp")
    cluster.write("t", *([{"id": year, "at": datetime.datetime(year, 1, 1)}] for year in (2024, 9999)))  # noqa: DTZ001  # wall-clock
    key = cluster.ask("t")
    entry = cluster.wait(key, lambda entry: entry.state == "initiated" and bool(entry.errorMessage))
    assert "may have times before 1678 or after 2261" in entry.errorMessage
    assert entry.workerVersion == SERVERS_OWN
    assert directories(table) == ["delta_0000001_0000001", "delta_0000002_0000002"]
    assert not cluster.opened()
    cluster.make("u")
    cluster.write("u", numbers(0, 2), numbers(2, 4))
    cluster.compacted(cluster.ask("u"))
    assert cluster.entry(key).state == "initiated"
    taken = foreign(cluster)
    assert taken is not None
    assert taken.id == key


def test_plain_files_that_are_not_orc_wait_for_spark(cluster: Cluster) -> None:
    table = cluster.make("t", insert_only=True, file_format="text")
    place = Path(table.sd.location.removeprefix("file:"))
    for write_id in (1, 2):
        assert transaction_of(cluster, table) == write_id
        delta = place / f"delta_{write_id:07d}_{write_id:07d}_0000"
        delta.mkdir()
        (delta / "000000_0").write_text("1\x01a\n")
    key = cluster.ask("t")
    entry = cluster.wait(key, lambda entry: bool(entry.errorMessage))
    assert "default.t is insert-only, and in the format of" in entry.errorMessage
    assert not list(place.glob("[.b]*"))


def test_work_that_takes_too_much_memory_waits_for_spark(tmp_path: Path) -> None:
    with running(tmp_path, f"compactor_worker_memory={128 << 20}") as cluster:
        table = cluster.make("t")
        cluster.write("t", numbers(0, 2), numbers(2, 4))
        key = cluster.ask("t")
        entry = cluster.wait(key, lambda entry: bool(entry.errorMessage))
        assert "compactor_worker_memory" in entry.errorMessage
        assert entry.state == "initiated"
        assert directories(table) == ["delta_0000001_0000001", "delta_0000002_0000002"]
        assert not cluster.opened()
        assert foreign(cluster) is not None


def test_work_is_given_up_when_its_memory_is_used_up_or_its_transaction_aborted(cluster: Cluster) -> None:
    cluster.make("t")
    cluster.client.compact2(CompactionRequest(dbname="default", tablename="t", type=CompactionType.MAJOR, poolName="watched"))
    entry = cluster.client.find_next_compact2(FindNextCompactRequest("w", SERVERS_OWN, "watched")).ci
    connected = partial(connect, cluster.server.uri)
    for memory, reason in ((resident() - (1 << 20), PutBack), (1 << 40, Cancelled)):
        with Transaction.begin(connected, compaction=True) as txn:
            watch = Watch(connected, entry, txn, memory, lambda: False)
            watch.expect(7)
            watch.start()
            if reason is Cancelled:
                watch.passed(3)
                cluster.wait(entry.id, lambda found: found.hadoopJobId == "3 of 7 rows")
                cluster.client.abort_txn(AbortTxnRequest(txnid=txn.id))
            assert until(partial(given_up, watch), bool) is reason
            watch.stop()
            txn.abort()


def given_up(watch: Watch) -> type[Exception] | None:
    try:
        watch.check()
    except Exception as error:  # noqa: BLE001  # its kind is asked for
        return type(error)
    return None
