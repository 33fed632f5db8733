import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from metastore import idl
from metastore.cli import app
from metastore.cli.transactions.compactions import duration, reason
from metastore.client import Client, connect
from metastore.rules.transactions.compactions import INITIATED, SERVERS_OWN
from tests.support.servers.servers import serving


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["compactions", *arguments])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    off = ("--set", "compactor_cleaner=false", "--set", "compactor_initiator=false")
    with serving("--workers", "1", *off, home=tmp_path_factory.mktemp("server")) as found:
        with connect(found.uri) as client:
            client.create_database(idl.Database(name="db"))
            storage = idl.StorageDescriptor(
                cols=[idl.FieldSchema(name="a", type="int")],
                inputFormat="org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
                outputFormat="org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat",
                serdeInfo=idl.SerDeInfo(serializationLib="org.apache.hadoop.hive.ql.io.orc.OrcSerde"),
            )
            keys, parameters = [idl.FieldSchema(name="p", type="string")], {"transactional": "true"}
            client.create_table(
                idl.Table(dbName="db", tableName="t", sd=storage, partitionKeys=keys, parameters=parameters, tableType="MANAGED_TABLE")
            )
            client.append_partition("db", "t", ["1"])
        yield found.uri


@pytest.fixture
def client(server: str) -> Iterator[Client]:
    with connect(server) as found:
        yield found


def listed(uri: str, *arguments: str) -> list[dict[str, Any]]:
    shown = run("list", *arguments, "--uri", uri, "--json")
    assert shown.exit_code == 0, shown.output
    found: list[dict[str, Any]] = json.loads(shown.output)
    return found


def test_compactions_are_queued_listed_and_taken_off(server: str) -> None:
    queued = run("queue", "db.t", "p=1", "--type", "minor", "--pool", "night", "--uri", server, "--json")
    key = json.loads(queued.output)["id"]
    assert json.loads(queued.output)["state"] == "initiated"
    (row,) = listed(server, "db.t")
    assert (row["id"], row["table"], row["partition"], row["type"], row["pool"]) == (key, "db.t", "p=1", "minor", "night")
    assert (row["state"], row["reason"]) == ("initiated", "waits for a worker of pool night")
    again = run("queue", "db.t", "p=1", "--uri", server)
    assert again.exit_code == 1
    assert f"Compaction is already scheduled with state='initiated' and id={key}" in again.output
    text = run("list", "--uri", server).output.split("\n")[0].split("\t")
    assert text[:4] == [str(key), "db.t p=1", "minor", "initiated"]
    gone = run("abort", str(key), "999", "--uri", server)
    assert (gone.exit_code, "Successfully aborted" in gone.output, "No Such Compaction" in gone.output) == (1, True, True)
    assert listed(server, "db.t") == []
    assert [each["state"] for each in listed(server, "db.t", "--all")] == ["aborted"]


def test_failed_compactions_are_tried_again(server: str, client: Client) -> None:
    key = client.compact2(idl.CompactionRequest(dbname="db", tablename="again", type=idl.CompactionType.MAJOR)).id
    refused = run("retry", str(key), "--uri", server)
    assert (refused.exit_code, "only one that has ended can be tried again" in refused.output) == (1, True)
    info = client.find_next_compact("w1").ci
    (row,) = listed(server, "db.again")
    assert (row["worker"], row["reason"].startswith("worked on for")) == ("w1", True)
    info.errorMessage = "no memory"
    client.mark_failed(info)
    assert listed(server, "db.again", "--state", "failed")[0]["reason"] == "no memory"
    shown = run("retry", str(key), "--uri", server)
    assert (shown.exit_code, "is initiated" in shown.output) == (0, True)
    assert [each["state"] for each in listed(server, "db.again", "--all")] == ["failed", "initiated"]
    missing = run("retry", "999", "--uri", server)
    assert (missing.exit_code, "no compaction 999" in missing.output) == (1, True)


def test_an_entry_that_waits_for_a_reader_names_the_reader(server: str, client: Client) -> None:
    reader = client.open_txns(idl.OpenTxnRequest(num_txns=1, user="alice", hostname="here")).txn_ids[0]
    client.compact2(idl.CompactionRequest(dbname="db", tablename="read", type=idl.CompactionType.MAJOR))
    info = client.find_next_compact("w1").ci
    while info.tablename != "read":
        client.mark_refused(info)
        info = client.find_next_compact("w1").ci
    worker = client.open_txns(idl.OpenTxnRequest(num_txns=1, user="w", hostname="here", txn_type=idl.TxnType.COMPACTION)).txn_ids[0]
    info.highestWriteId = 1
    client.update_compactor_state(info, worker)
    client.mark_compacted(info)
    (row,) = listed(server, "db.read")
    assert row["reason"] == f"waits for its worker to commit transaction {worker}"
    client.commit_txn(idl.CommitTxnRequest(txnid=worker))
    entry = client.show_compact(idl.ShowCompactRequest(tbName="read")).compacts[0]
    entry.nextTxnId = worker + 1
    opened = {each.id: each for each in client.get_open_txns_info().open_txns}
    assert reason(entry, opened, opened[reader].startedTime + 300_000) == f"waits for transaction {reader} of alice, open for 5 min"
    assert reason(entry, {}, 0) == "waits for the cleaner"
    entry.errorMessage = "the disk is full"
    assert reason(entry, {}, 0) == "is tried again after a failure: the disk is full"


@pytest.mark.parametrize(
    "arguments",
    [("queue", "db.nosuch"), ("queue", "nosuch.t"), ("queue", "db.t", "p=9"), ("list", "db.nosuch"), ("list", "nosuch", "--all")],
)
def test_missing_objects_are_named(server: str, arguments: tuple[str, ...]) -> None:
    ended = run(*arguments, "--uri", server)
    assert (ended.exit_code, ended.stdout) == (1, "")
    assert next(each for each in reversed(arguments) if not each.startswith("-")).partition(".")[2] in ended.stderr
    assert "NoSuchObjectException" in ended.stderr
    assert not [each for each in listed(server, "--all") if "nosuch" in each["table"] or each["partition"] == "p=9"]


@pytest.mark.parametrize(("seconds", "text"), [(0, "0 s"), (59, "59 s"), (60, "1 min"), (7200, "2 h"), (200_000, "2 d"), (-5, "0 s")])
def test_durations_are_written_as_people_do(seconds: int, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize("arguments", [("queue", "t"), ("queue", "db.t", "--type", "huge"), ("list", "--state", "asleep"), ("abort",)])
def test_a_command_line_that_does_not_fit_is_refused(arguments: tuple[str, ...]) -> None:
    assert run(*arguments, "--uri", "thrift://127.0.0.1:1").exit_code == 2


def test_every_command_explains_itself_and_a_missing_server_ends_it_with_status_1(tmp_path: Path) -> None:
    for command in ("list", "queue", "retry", "abort"):
        assert "Usage" in run(command, "--help").output
    assert run("list", "--uri", "thrift://127.0.0.1:1").exit_code == 1


def test_it_says_for_which_worker_an_entry_waits_and_how_far_a_servers_own_is(server: str, client: Client) -> None:
    key = client.compact2(idl.CompactionRequest(dbname="db", tablename="own", type=idl.CompactionType.MAJOR, poolName="own")).id
    info = client.find_next_compact2(idl.FindNextCompactRequest("w", SERVERS_OWN, "own")).ci
    client.set_hadoop_jobid("3 of 4 rows", key)
    assert listed(server, "db.own")[0]["reason"].endswith(" s, 3 of 4 rows")
    info.state, info.errorMessage = INITIATED, "times before 1678"
    client.update_compactor_state(info, 0)
    expected = f"waits for a worker of pool own other than {SERVERS_OWN}, such as `metastore compactor`: times before 1678"
    assert listed(server, "db.own")[0]["reason"] == expected
    assert run("abort", str(key), "--uri", server).exit_code == 0
