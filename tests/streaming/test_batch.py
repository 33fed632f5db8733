"""Readers see exactly the committed rows of a stream, in each state of its batch. Its files are as Hive's streaming ingest writes them."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyorc
import pytest

from metastore.acid.buckets import buckets
from metastore.acid.buckets.hashing import buckets_of
from metastore.acid.rewriting.unchanged import TableChanged
from metastore.acid.transactions import Transaction, TransactionLost, component
from metastore.client import Client
from metastore.idl import (
    AbortTxnsRequest,
    DataOperationType,
    FieldSchema,
    LockType,
    NoSuchObjectException,
    OpenTxnRequest,
    ShowLocksRequest,
    Table,
    TxnAbortedException,
    TxnState,
)
from metastore.rules.transactions.acid_directories import base_name
from metastore.streaming import (
    BadRecord,
    BatchEnded,
    CanNotWrite,
    NotStreamable,
    Overtaken,
    StreamingConnection,
    TransactionBatch,
)
from tests.streaming.conftest import TableMaker, folder
from tests.streaming.reading import events, rows
from tests.support.acid.acid_tables import stored_table
from tests.support.servers.servers import ROOT, Server
from tests.support.servers.waiting import until

Connect = Callable[..., StreamingConnection]


@pytest.fixture
def stream(server: Server, request: pytest.FixtureRequest) -> Connect:
    def make(table: Table, *arguments: object, **options: object) -> StreamingConnection:
        connection = StreamingConnection(server.uri, f"default.{table.tableName}", *arguments, **options)  # type: ignore[arg-type]
        request.addfinalizer(connection.close)
        return connection

    return make


def ids(client: Client, table: Table, partition: str = "") -> list[int]:
    return [row["id"] for row in rows(client, table, partition)]


def files(table: Table) -> list[str]:
    return sorted(str(path.relative_to(folder(table))) for path in folder(table).rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda table: table.sd.cols.append(FieldSchema("late", "int", None)), "columns"),
        (lambda table: setattr(table.sd, "location", f"{table.sd.location}_moved"), "location"),
        (lambda table: setattr(table, "tableName", f"{table.tableName}_renamed"), "not"),
        (lambda table: table.parameters.update(comment="new"), None),
    ],
    ids=["columns", "location", "name", "a comment"],
)
def test_a_transaction_does_not_begin_on_a_table_that_changed(
    client: Client, make_table: TableMaker, stream: Connect, change: Callable[[Table], None], reason: str | None
) -> None:
    """After a rename or a change of the location, no reader would find the transaction's rows."""
    table = make_table("id int")
    name = table.tableName
    with suppress(CanNotWrite), stream(table).batch() as batch:  # the batch can not end its file, which a renamed table no longer has
        with batch.transaction():
            batch.write({"id": 1})
        change(table)
        client.alter_table("default", name, table)
        if reason is None:
            with batch.transaction():
                batch.write({"id": 2})
        else:
            for _ in range(2):
                with pytest.raises((TableChanged, NoSuchObjectException), match=reason):
                    batch.begin_next()


def write_both(batch: TransactionBatch, *records: dict[str, object]) -> None:
    for record in records:
        batch.write(record)


def test_rows_are_seen_when_they_are_committed(client: Client, make_table: TableMaker, stream: Connect) -> None:
    table = make_table("id int, name string")
    with stream(table).batch(4) as batch:
        assert list(batch.write_ids.values()) == [1, 2, 3, 4]
        assert batch.begin_next() == 1
        assert batch.write([{"id": 1, "name": "a"}, {"ID": 2}]) == 2
        assert rows(client, table) == []
        batch.commit()
        assert rows(client, table) == [{"id": 1, "name": "a"}, {"id": 2, "name": None}]
        batch.begin_next()
        batch.write({"id": 3, "name": "taken back"})
        batch.abort()
        assert ids(client, table) == [1, 2]
        with batch.transaction() as write_id:
            assert write_id == 3
            batch.write([{"id": 4}])
            batch.write([{"id": 5}])
            assert ids(client, table) == [1, 2]
        assert ids(client, table) == [1, 2, 4, 5]
        assert batch.remaining == 1
        assert files(table) == [
            "delta_0000001_0000004/_orc_acid_version",
            "delta_0000001_0000004/bucket_00000",
            "delta_0000001_0000004/bucket_00000_flush_length",
        ]
    assert ids(client, table) == [1, 2, 4, 5]
    assert files(table) == ["delta_0000001_0000004/_orc_acid_version", "delta_0000001_0000004/bucket_00000"]
    assert client.show_locks(ShowLocksRequest(dbname="default", tablename=table.tableName)).locks == []
    assert batch.write_ids.keys().isdisjoint(_open(client))


def _open(client: Client) -> set[int]:
    return {each.id for each in client.get_open_txns_info().open_txns if each.state == TxnState.OPEN}


def test_the_file_is_one_that_hive_writes(client: Client, make_table: TableMaker, stream: Connect) -> None:
    table = make_table("id int")
    with stream(table).batch(3) as batch:
        for number in range(3):
            with batch.transaction():
                batch.write([{"id": 10 * number + place} for place in range(number + 1)])
    place = folder(table) / "delta_0000001_0000003"
    assert (place / "_orc_acid_version").read_bytes() == b"2"
    number = buckets.encode(0)
    found = [
        (each["operation"], each["originalTransaction"], each["bucket"], each["rowId"], each["currentTransaction"], each["row"]["id"])
        for each in events(client, table)
    ]
    assert found == [
        (0, 1, number, 0, 1, 0),
        (0, 2, number, 0, 2, 10),
        (0, 2, number, 1, 2, 11),
        (0, 3, number, 0, 3, 20),
        (0, 3, number, 1, 3, 21),
        (0, 3, number, 2, 3, 22),
    ]
    with (place / "bucket_00000").open("rb") as file:
        reader = pyorc.Reader(file)
        assert reader.user_metadata == {
            "hive.acid.key.index": f"1,{number},0;2,{number},1;3,{number},2;".encode(),
            "hive.acid.stats": b"6,0,0",
            "hive.acid.version": b"2",
        }
        assert [len(stripe) for stripe in reader.iter_stripes()] == [1, 2, 3]


def test_partitions_come_with_the_records(client: Client, make_table: TableMaker, stream: Connect) -> None:
    table = make_table("id int", "day date, kind string")
    with stream(table).batch(2) as batch:
        with batch.transaction():
            batch.write([
                {"id": 1, "day": "2024-05-01", "kind": "a/b"}, {"id": 2, "day": "2024-05-02", "kind": None},
                {"id": 3, "day": "2024-05-01", "kind": "a/b"},
            ])  # fmt: skip
        with batch.transaction():
            batch.write({"id": 4, "day": "2024-05-02", "kind": ""})
    names = sorted(client.get_partition_names("default", table.tableName, -1))
    assert names == ["day=2024-05-01/kind=a%2Fb", "day=2024-05-02/kind=__HIVE_DEFAULT_PARTITION__"]
    assert [ids(client, table, name) for name in names] == [[1, 3], [2, 4]]
    assert [event["rowId"] for event in events(client, table, names[1])] == [0, 0]


def test_a_static_partition(client: Client, make_table: TableMaker, stream: Connect) -> None:
    table = make_table("id int", "day string")
    connection = stream(table, partition={"Day": "monday"})
    with connection.batch(1) as batch, batch.transaction():
        batch.write({"id": 1})
        (held,) = client.show_locks(ShowLocksRequest(dbname="default", tablename=table.tableName)).locks
        assert (held.partname, held.type) == ("day=monday", LockType.SHARED_READ)
        with pytest.raises(BadRecord, match="has no column day"):
            batch.write({"id": 1, "day": "tuesday"})
    assert ids(client, table, "day=monday") == [1]
    with pytest.raises(NotStreamable, match="is partitioned by day, not by week"):
        stream(table, partition={"week": "1"})


@pytest.mark.parametrize("version", ["1", "2"])
def test_rows_go_into_their_buckets(client: Client, make_table: TableMaker, stream: Connect, version: str) -> None:
    table = make_table("id bigint, name string", buckets=4, bucketed_by=["id"], parameters={"bucketing_version": version})
    with stream(table).batch(2) as batch:
        for start in (0, 100):
            with batch.transaction():
                batch.write(pa.table({"id": range(start, start + 100), "name": ["x"] * 100}))
    found = events(client, table)
    assert sorted(event["row"]["id"] for event in found) == list(range(200))
    wanted = buckets_of([(pa.array([event["row"]["id"] for event in found], pa.int64()), "bigint")], 4, int(version)).tolist()
    assert [buckets.decode(event["bucket"]) for event in found] == wanted
    assert set(wanted) == {0, 1, 2, 3}
    for name in range(4):
        mine = [(event["originalTransaction"], event["rowId"]) for event in found if buckets.decode(event["bucket"]) == name]
        assert mine == [(write_id, row) for write_id in (1, 2) for row in range(sum(each[0] == write_id for each in mine))]


def test_a_bad_record_leaves_the_batch_as_it_was(client: Client, make_table: TableMaker, stream: Connect) -> None:
    table = make_table("id int, name string")
    with stream(table).batch(2) as batch:
        with batch.transaction():
            batch.write({"id": 1})
            for bad in ({"id": "x"}, {"id": 1.5}, {"id": 2**40}, {"id": 1, "nme": "y"}, [{"id": 7}, {"id": 8, "name": 5}]):
                with pytest.raises(BadRecord, match=table.tableName):
                    batch.write(bad)
            batch.write({"id": 2})
        with pytest.raises(BadRecord), batch.transaction():
            write_both(batch, {"id": 3}, {"id": []})
    assert ids(client, table) == [1, 2]


def test_the_order_of_calls(make_table: TableMaker, stream: Connect) -> None:
    connection = stream(make_table("id int"))
    batch = connection.batch(1)
    for early in (batch.commit, batch.abort, lambda: batch.write({"id": 1})):
        with pytest.raises(BatchEnded, match="no transaction has begun"):
            early()
    batch.begin_next()
    with pytest.raises(BatchEnded, match="has begun already"):
        batch.begin_next()
    batch.commit()
    with pytest.raises(BatchEnded, match="no transaction left"):
        batch.begin_next()
    batch.close()
    batch.close()
    with pytest.raises(BatchEnded, match="closed"):
        batch.begin_next()
    with pytest.raises(ValueError, match="at least 1"):
        connection.batch(0)


def test_transactions_live_as_long_as_the_batch(client: Client, make_table: TableMaker, stream: Connect) -> None:
    """The server aborts silent transactions after 3 seconds: another client's silent transaction marks that time."""
    table = make_table("id int")
    with stream(table).batch(3) as batch:
        with batch.transaction():
            batch.write({"id": 1})
        (silent,) = client.open_txns(OpenTxnRequest(num_txns=1, user="u", hostname="h")).txn_ids
        until(lambda: silent not in _open(client))
        assert len(batch.write_ids.keys() & _open(client)) == 2
        with batch.transaction():
            batch.write({"id": 2})
    assert ids(client, table) == [1, 2]


def test_a_transaction_that_someone_aborts(client: Client, make_table: TableMaker, stream: Connect) -> None:
    table = make_table("id int")
    with stream(table).batch(3) as batch:
        with batch.transaction():
            batch.write({"id": 1})
        client.abort_txns(AbortTxnsRequest(txn_ids=[sorted(batch.write_ids)[1]]))
        batch.heartbeat()
        with pytest.raises(TransactionLost, match="aborted by the server"):
            batch.begin_next()
    assert ids(client, table) == [1]


def test_a_lost_transaction_is_not_committed(client: Client, make_table: TableMaker, stream: Connect) -> None:
    table = make_table("id int")
    with stream(table).batch(2) as batch:
        batch.begin_next()
        batch.write({"id": 1})
        client.abort_txns(AbortTxnsRequest(txn_ids=list(batch.write_ids)))
        batch.heartbeat()
        with pytest.raises(TransactionLost):
            batch.commit()
    assert ids(client, table) == []


@pytest.mark.parametrize("grows", [True, False])
def test_a_commit_that_is_refused_does_not_stop_the_batch(client: Client, make_table: TableMaker, stream: Connect, *, grows: bool) -> None:
    table = make_table("id int")
    connection = stream(table)
    connection.storage.grows = grows
    with connection.batch(2) as batch:
        batch.begin_next()
        batch.write({"id": 1})
        client.abort_txns(AbortTxnsRequest(txn_ids=[min(batch.write_ids)]))
        with pytest.raises(TxnAbortedException):
            batch.commit()
        batch.abort()
        with batch.transaction():
            batch.write({"id": 2})
    assert ids(client, table) == [2]


@pytest.mark.parametrize("keys", ["", "day string"])
def test_statistics_are_no_longer_exact(client: Client, make_table: TableMaker, stream: Connect, keys: str) -> None:
    """A stream marks statistics as outdated. Otherwise Hive would answer `count(*)` from them."""
    accurate = {"COLUMN_STATS_ACCURATE": '{"BASIC_STATS":"true"}'}
    table = make_table("id int", keys, parameters={**accurate, "kept": "yes"})
    partition = {"day": "monday"} if keys else {}
    with stream(table).batch(2) as batch:
        with batch.transaction():
            batch.write({"id": 1, **partition})
        if keys:
            found = client.get_partition("default", table.tableName, ["monday"])
            found.parameters = {**(found.parameters or {}), **accurate}
            client.alter_partition("default", table.tableName, found)
    with stream(table).batch(1) as batch, batch.transaction():
        batch.write({"id": 2, **partition})
    after = stored_table(client, table.tableName).parameters
    assert "COLUMN_STATS_ACCURATE" not in after
    assert after["kept"] == "yes"
    if keys:
        assert "COLUMN_STATS_ACCURATE" not in client.get_partition("default", table.tableName, ["monday"]).parameters


def test_a_stream_waits_for_who_changes_the_table(server: Server, make_table: TableMaker, stream: Connect) -> None:
    table = make_table("id int")
    with Transaction.begin(server.uri) as other, stream(table, patience=0.1).batch(1) as batch:
        other.lock([component("default", table.tableName, LockType.EXCLUSIVE, DataOperationType.NO_TXN)])
        with pytest.raises(Exception, match="locked by others"):
            batch.begin_next()
        other.commit()
        with batch.transaction():
            batch.write({"id": 1})


def test_a_warehouse_that_can_not_be_written(client: Client, make_table: TableMaker, stream: Connect) -> None:
    table = make_table("id int")
    folder(table).parent.mkdir(parents=True, exist_ok=True)
    if folder(table).exists():
        folder(table).rmdir()
    folder(table).write_text("a file where the table's folder should be")
    with stream(table).batch(2) as batch:
        with pytest.raises(CanNotWrite, match="needs the right to write"), batch.transaction():
            batch.write({"id": 1})
        with pytest.raises(BatchEnded, match="can not continue"):
            batch.begin_next()
    assert batch.write_ids.keys().isdisjoint(_open(client))


def test_tables_that_can_not_be_streamed_into(
    server: Server, make_table: TableMaker, stream: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[Client] = []
    close = Client.close
    monkeypatch.setattr(Client, "close", lambda self: (closed.append(self), close(self)))
    with pytest.raises(NotStreamable, match="insert-only"):
        stream(make_table("id int", suffix="1", parameters={"transactional_properties": "insert_only"}))
    with pytest.raises(NotStreamable, match="uniontype"):
        stream(make_table("id int, u uniontype<int,string>", suffix="2"))
    assert len(closed) == 2, "neither connection stays open"


WRITER = """
import sys, time
from metastore.streaming import StreamingConnection
from tests.support.servers.waiting import until
batch = StreamingConnection(sys.argv[1], sys.argv[2]).batch(5)
for number in range(2):
    with batch.transaction():
        batch.write([{"id": 10 * number + place} for place in range(3)])
batch.begin_next()
batch.write([{"id": 100 + place} for place in range(5000)])
print("written", flush=True)
time.sleep(600)
"""


def test_a_killed_writer_leaves_its_committed_rows(server: Server, client: Client, make_table: TableMaker) -> None:
    table = make_table("id int")
    command = [sys.executable, "-c", WRITER, server.uri, f"default.{table.tableName}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "written\n"
        opened = _open(client)
        process.send_signal(signal.SIGKILL)
    wanted = [0, 1, 2, 10, 11, 12]
    assert ids(client, table) == wanted
    until(lambda: not opened & _open(client))
    assert ids(client, table) == wanted
    assert client.show_locks(ShowLocksRequest(dbname="default", tablename=table.tableName)).locks == []


def test_a_store_that_shows_whole_files_only(client: Client, make_table: TableMaker, stream: Connect) -> None:
    """An object store needs this: each transaction has a directory, and its file is whole before the commit."""
    table = make_table("id int")
    connection = stream(table)
    connection.storage.grows = False
    with connection.batch(3) as batch:
        with batch.transaction():
            batch.write({"id": 1})
        batch.begin_next()
        batch.write({"id": 2})
        batch.abort()
        with batch.transaction():
            batch.write({"id": 3})
        assert ids(client, table) == [1, 3]
        assert [name for name in files(table) if "bucket" in name] == [
            "delta_0000001_0000001/bucket_00000",
            "delta_0000003_0000003/bucket_00000",
        ]


def test_many_stripes_in_one_transaction(client: Client, make_table: TableMaker, stream: Connect, tmp_path: Path) -> None:
    table = make_table("id bigint")
    with stream(table).batch(2) as batch:
        for start in (0, 50_000):
            with batch.transaction():
                for first in range(start, start + 50_000, 10_000):
                    batch.write(pa.table({"id": range(first, first + 10_000)}))
    assert ids(client, table) == list(range(100_000))
    assert events(client, table)[-1]["rowId"] == 49_999


@pytest.mark.parametrize("keys", ["", "p string"])
def test_a_batch_learns_that_an_overwrite_has_passed_its_write_ids(
    server: Server, make_table: TableMaker, client: Client, stream: Connect, keys: str
) -> None:
    table = make_table("id int", keys)
    part = {"p": "x"} if keys else {}
    with stream(table).batch(3) as batch:
        with batch.transaction():
            batch.write({"id": 1, **part})
        with Transaction.begin(server.uri) as overwrite:
            overwrite.lock([component("default", table.tableName, LockType.EXCLUSIVE, DataOperationType.UPDATE)])
            base = folder(table) / ("p=x" if keys else "") / base_name(overwrite.write_id("default", table.tableName))
            base.mkdir()
        with pytest.raises(Overtaken, match=base.name), batch.transaction():
            batch.write({"id": 2, **part})
        if keys:
            with batch.transaction():
                batch.write({"id": 3, "p": "y"})
    assert ids(client, table, "p=x" if keys else "") == []
    assert not keys or ids(client, table, "p=y") == [3]


def test_an_overwrite_that_was_aborted_has_passed_nothing(server: Server, make_table: TableMaker, client: Client, stream: Connect) -> None:
    table = make_table("id int")
    with stream(table).batch(1) as batch:
        overwrite = Transaction.begin(server.uri)
        (folder(table) / base_name(overwrite.write_id("default", table.tableName))).mkdir()
        overwrite.abort()
        with batch.transaction():
            batch.write({"id": 1})
    assert ids(client, table) == [1]
