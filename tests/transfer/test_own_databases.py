"""Dumps of our own databases, and restores of them: every kind of object, every kind of database, also by processes that are killed."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from metastore import idl
from metastore.client import connect
from metastore.config.settings import by_name
from metastore.errors import InvalidObject, InvalidOperation, MetaError
from metastore.jobs import JOBS
from metastore.service.call.clock import now_ms
from metastore.store.core import leases
from metastore.store.core.database import Database, Session
from metastore.store.drivers.contract import Retry
from metastore.store.schema.model import partitions, server_info, tables
from metastore.transfer.comparing import compare
from metastore.transfer.dumps import DumpReader, DumpWriter
from metastore.transfer.moving import move
from metastore.transfer.opening import reader, writer
from metastore.transfer.own.writer import OwnWriter
from metastore.transfer.records import KINDS, Record, content_hash
from metastore.transfer.selection import EVERYTHING
from tests.support.servers.servers import COMMAND, environment, serving
from tests.support.servers.waiting import until
from tests.transfer.conftest import dump_of

ABSENT = {"type", "location_grant", "credential", "serde", "property", "replicated_transaction", "min_history", "index", "server"}
"""Kinds without an object in the filled metastore. `test_kinds_that_no_call_makes` tests them."""


def restored(source: DumpReader, url: str) -> None:
    target = writer(url)
    moved = move(source, target, EVERYTHING)
    target.close()
    assert moved.skipped == []


def test_the_filled_metastore_has_every_kind(dumped: DumpReader) -> None:
    assert set(KINDS) - set(dumped.check()) == ABSENT


def test_a_restore_has_the_content_of_the_dump(dumped: DumpReader, fresh_database_url: str) -> None:
    restored(dumped, fresh_database_url)
    back = reader(fresh_database_url)
    found = compare(dumped, back, EVERYTHING)
    back.close()
    assert found.differences == []
    assert found.equal


def records_of_every_kind() -> Iterator[Record]:
    table = ("hive", "db", "t")
    storage: dict[str, Any] = {
        "input": None, "output": None, "compressed": False, "buckets": 0, "serde": [None, None, {}, None, None, None, None],
        "bucket_columns": [], "sort_columns": [], "parameters": {}, "skew": [[], [], []], "subdirectories": False,
    }  # fmt: skip
    body = {
        "type": "EXTERNAL_TABLE", "owner": None, "owner_type": None, "create_time": 1, "last_access_time": 0, "retention": 0,
        "location": "s3a://b/t", "view_original_text": None, "view_expanded_text": None, "rewrite_enabled": 0, "write_id": -1,
        "partition_keys": [], "parameters": {}, "creation_metadata": None,
        "columns": [["a", "int", None]], "storage": storage, "statistics": {},
    }  # fmt: skip
    yield Record("server", ("uuid",), {"value": "u"})
    yield Record("catalog", ("hive",), {"description": None, "location": "s3a://b", "create_time": 1})
    database: dict[str, Any] = {
        "description": None, "location": "s3a://b", "managed_location": None, "parameters": {}, "owner_name": None, "owner_type": None,
        "create_time": 1, "type": 1, "connector_name": None, "remote_name": None,
    }  # fmt: skip
    yield Record("database", ("hive", "db"), database)
    yield Record("table", table, body)
    yield Record("table", ("hive", "db", "u"), body)
    yield Record("index", (*table, "i"), {"body": {"class": "c"}, "index_table": ["hive", "db", "u"]})
    yield Record("type", ("st",), {"body": [None, None, [["a", "int", None]]]})
    yield Record("location_grant", (1, "ann", "s3a://b/x"), {})
    yield Record("credential", ("ann", "password", "hash"), {"groups": ["g"], "comment": None, "create_time": 1, "expire_time": None})
    yield Record("serde", ("s",), {"serde": {"name": "s"}})
    yield Record("property", ("map", "name"), {"value": "v"})
    yield Record("position", ("transaction",), {"last": 9})
    yield Record("position", ("notification",), {"last": 7})
    transaction: dict[str, Any] = {
        "state": "o", "type": 0, "user": "ann", "host": None, "agent": None, "started_ms": 1, "ended_ms": None, "commit_id": None,
    }  # fmt: skip
    yield Record("transaction", (9,), transaction)
    yield Record("replicated_transaction", ("policy", 4), {"transaction_id": 9})
    yield Record("write_id_position", table, {"next": 5, "last_transaction": 9, "last_change": 0})
    yield Record("min_history", (9, *table), {"write_id": 4})


def test_kinds_that_no_call_makes(fresh_database_url: str) -> None:
    given = list(records_of_every_kind())
    assert {record.kind for record in given} >= ABSENT
    target = OwnWriter(Database(fresh_database_url))
    target.begin()
    target.write(given)
    target.close()
    back = reader(fresh_database_url)
    found = list(back.records(EVERYTHING))
    back.close()
    assert found == given


def without_jobs() -> list[str]:
    """Return the options of a server that runs no periodic job that can be switched off."""
    off = {job.switch: "false" for job in JOBS if job.switch}
    off |= {job.interval: "0" for job in JOBS if by_name()[job.interval].minimum == 0}
    return [word for name, value in off.items() for word in ("--set", f"{name}={value}")]


@pytest.mark.parametrize("options", [[], without_jobs()], ids=["usual", "without jobs"])
def test_a_database_on_which_a_server_runs_is_no_target(fresh_database_url: str, tmp_path: Path, options: list[str]) -> None:
    """A server caches rows, and its jobs change some. It holds the lease of a job even when all jobs are off that can be."""
    target = OwnWriter(Database(fresh_database_url))
    with serving("--db", fresh_database_url, "--set", f"warehouse={tmp_path / 'w'}", *options, home=tmp_path):
        until(lambda: leased(target), missing="a lease of a job")
        for resume in (False, True):
            with pytest.raises(
                InvalidOperation, match=r"is in use: a server \(.*\) runs its job .*; stop the server, or, if it was killed"
            ):
                target.begin(resume=resume)
    assert target.begin() == frozenset()
    target.close()


def leased(target: OwnWriter) -> object:
    return target.database.read(lambda session: leases.held(session, now_ms()))


@pytest.mark.on_one_database
def test_a_server_goes_on_with_the_restored_content(dumped: DumpReader, fresh_database_url: str, tmp_path: Path) -> None:
    """New rows get numbers that no restored row has. New transactions and events get higher ids."""
    restored(dumped, fresh_database_url)
    with (
        serving("--db", fresh_database_url, "--set", f"warehouse={tmp_path / 'w'}", home=tmp_path) as server,
        connect(server.uri) as client,
    ):
        before = client.get_current_notificationEventId().eventId
        assert before >= dumped_position(dumped, "notification")
        table = client.get_table_req(idl.GetTableRequest(dbName="sales", tblName="orders")).table
        table.tableName, table.sd.location = "fresh", f"file:{tmp_path / 'fresh'}"
        client.create_table(table)
        client.create_database(idl.Database(name="another", locationUri=f"file:{tmp_path / 'another'}"))
        client.add_partitions([idl.Partition(values=["x", "1"], dbName="sales", tableName="fresh", sd=table.sd, parameters={})])
        assert client.open_txns(idl.OpenTxnRequest(1, "u", "h")).txn_ids == [dumped_position(dumped, "transaction") + 1]
        assert client.get_current_notificationEventId().eventId > before
        altered = client.get_table_req(idl.GetTableRequest(dbName="sales", tblName="orders")).table
        altered.parameters = {**altered.parameters, "more": "1"}
        client.alter_table("sales", "orders", altered)
        assert len(client.get_partitions("sales", "orders", -1)) == 13
        assert client.get_table_req(idl.GetTableRequest(dbName="sales", tblName="orders")).table.parameters["more"] == "1"
        acid = client.get_valid_write_ids(idl.GetValidWriteIdsRequest(fullTableNames=["sales.acid"])).tblValidWriteIds[0]
        assert (acid.writeIdHighWaterMark, acid.invalidWriteIds) == (3, [2, 3])


def dumped_position(source: DumpReader, name: str) -> int:
    found = [record.body["last"] for record in source.records(EVERYTHING) if record.kind == "position" and record.key == (name,)]
    return int(found[0])


def test_a_change_meanwhile_is_not_in_a_dump(database: Database) -> None:
    """Later pages are read from the snapshot of the first page."""
    query = select(server_info.c.name)
    with database.reading() as session:
        assert list(session.rows(query)) == []
        database.write(lambda each: each.insert(server_info, name="late", value="x"))
        assert list(session.rows(query)) == []
    assert list(database.read(lambda each: each.rows(query))) == [("late",)]


def test_reading_does_not_write(database: Database) -> None:
    if database.driver.name == "sqlite":
        pytest.skip("SQLite's transactions may all write; the reader has no statement that does")
    with pytest.raises(MetaError, match=r"(?i)read.only"), database.reading() as session:
        session.insert(server_info, name="x", value="y")


def test_tables_are_in_the_way(dumped: DumpReader, fresh_database_url: str) -> None:
    restored(dumped, fresh_database_url)
    target = writer(fresh_database_url)
    with pytest.raises(InvalidOperation, match="has tables: name an empty one"):
        move(dumped, target, EVERYTHING)
    again = move(dumped, target, EVERYTHING, resume=True)
    target.close()
    assert "table" not in again.counts
    back = reader(fresh_database_url)
    assert compare(dumped, back, EVERYTHING).equal
    back.close()


def large(path: Path, number: int, each: int) -> DumpReader:
    """Make a dump with tables of many partitions."""
    given = list(records_of_every_kind())
    pattern = next(record for record in given if record.kind == "table")
    storage = pattern.body["storage"]
    names = [content_hash(pattern.body["columns"]), content_hash(storage)]

    def records() -> Iterator[Record]:
        yield from given[:3]
        for table in range(number):
            key = ("hive", "db", f"t{table:03}")
            yield Record("table", key, {**pattern.body, "partition_keys": [["p", "int", None]]})
            for name, content in zip(names, (pattern.body["columns"], storage), strict=True):
                yield Record("descriptor", (*key, name), {"content": content})
            for part in range(each):
                statistics = {"hive": {"a": ["int", 1, "AA=="]}} if part % 2 else {}
                body = {
                    "values": [f"{part:06}"], "location": f"s3a://b/t/p={part:06}", "columns": names[0], "storage": names[1],
                    "parameters": {"numRows": str(part)}, "create_time": 1, "last_access_time": 0, "write_id": -1, "statistics": statistics,
                }  # fmt: skip
                yield Record("partition", (*key, f"p={part:06}"), body)
        yield from given[5:]

    out = DumpWriter(path)
    out.write(record for record in records() if record.kind != "index")
    return DumpReader(path)


@pytest.mark.slow
@pytest.mark.on_one_database
def test_a_killed_restore_goes_on(fresh_database_url: str, tmp_path: Path) -> None:
    """However often it is killed, the end is the same."""
    source = large(tmp_path / "large", 12, 4000)
    database = Database(fresh_database_url, pool_size=2)
    command = [*COMMAND, "restore", str(source.path), "--resume", "--db", fresh_database_url]
    for kills in range(6):
        process = subprocess.Popen(command, env=environment(tmp_path), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
        while process.poll() is None and (kills == 5 or counted(database, partitions) <= kills * 8000):
            time.sleep(0.005)
        if kills < 5:
            process.send_signal(signal.SIGKILL)
        _, errors = process.communicate(timeout=200)
        if process.returncode == 0:
            break
    assert process.returncode == 0, errors
    database.close()
    back = reader(fresh_database_url)
    assert compare(source, back, EVERYTHING).differences == []
    back.close()


def test_a_table_that_is_half_there_is_not_left_so(fresh_database_url: str, tmp_path: Path) -> None:
    """If a restore is interrupted after a batch of a table's partitions, the next one removes them and begins the table again."""
    source = large(tmp_path / "large", 1, 7000)

    def broken_off() -> Iterator[Record]:
        for number, record in enumerate(source.records(EVERYTHING)):
            if number == 6000:
                raise KeyboardInterrupt
            yield record

    target, database = writer(fresh_database_url), Database(fresh_database_url, pool_size=2)
    target.begin()
    with pytest.raises(KeyboardInterrupt):
        target.write(broken_off())
    assert counted(database, partitions) == 5000
    assert counted(database, tables) == 0
    database.close()
    again = writer(fresh_database_url)
    move(source, again, EVERYTHING, resume=True)
    again.close()
    target.close()
    back = reader(fresh_database_url)
    assert compare(source, back, EVERYTHING).differences == []
    back.close()


def counted(database: Database, table: Any) -> int:
    try:
        return database.read(lambda session: session.number(select(func.count()).select_from(table))) or 0
    except MetaError:
        return 0  # the schema is not made yet


def test_records_out_of_order_are_refused(fresh_database_url: str) -> None:
    given = list(records_of_every_kind())
    target = OwnWriter(Database(fresh_database_url))
    target.begin()
    with pytest.raises(InvalidObject, match=r"table hive\.db\.t: its database does not exist"):
        target.write(record for record in given if record.kind == "table")
    partition = Record("partition", ("hive", "db", "t", "p=1"), {})
    with pytest.raises(InvalidObject, match=r"partition hive.db.t.p=1: the record of its table is not before it"):
        target.write([partition])
    target.close()


@pytest.mark.on_one_database
def test_objects_without_their_table_are_reported_once(fresh_database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each object is reported once, even if a conflict makes the writer repeat its transaction."""
    target = OwnWriter(Database(fresh_database_url))
    target.begin()
    write, attempts = target.database.write, count()

    def conflicting(work: Callable[[Session], Any]) -> Any:
        def again(session: Session) -> Any:
            result = work(session)
            if next(attempts) == 0:
                raise Retry
            return result

        return write(again)

    monkeypatch.setattr(target.database, "write", conflicting)
    target.write(record for record in records_of_every_kind() if record.kind == "index")
    target.close()
    assert next(attempts) > 1
    assert target.skipped == ["index hive.db.t.i: an object that it belongs to or refers to is missing"]


def test_a_table_that_is_excluded_is_left_out_with_its_objects(dumped: DumpReader, fresh_database_url: str) -> None:
    target = writer(fresh_database_url)
    kept = EVERYTHING._replace(exclude=(("*", "sales", "orders"),))
    moved = move(dumped, target, kept)
    target.close()
    assert moved.skipped == []
    assert "partition" not in moved.counts
    back = reader(fresh_database_url)
    assert compare(dumped, back, kept).differences == []
    back.close()


def test_a_dump_of_a_restore_is_the_same(dumped: DumpReader, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'x.db'}"
    restored(dumped, url)
    again = dump_of(url, tmp_path / "again")
    assert sorted(map(repr, again.records(EVERYTHING))) == sorted(map(repr, dumped.records(EVERYTHING)))
