import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from metastore import idl
from metastore.cli import app
from metastore.cli.transactions.txns import age
from metastore.client import Client, connect
from tests.support.servers.servers import serving


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


@pytest.fixture(scope="module")
def server_uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving("--workers", "1", home=tmp_path_factory.mktemp("server")) as server:
        with connect(server.uri) as client:
            client.create_database(idl.Database(name="taxi"))
            storage = idl.StorageDescriptor(cols=[idl.FieldSchema(name="a", type="int")], serdeInfo=idl.SerDeInfo())
            client.create_table(idl.Table(dbName="taxi", tableName="trips", sd=storage, tableType="MANAGED_TABLE"))
        yield server.uri


@pytest.fixture
def client(server_uri: str) -> Iterator[Client]:
    with connect(server_uri) as made:
        yield made
        made.abort_txns(idl.AbortTxnsRequest(txn_ids=[each.id for each in made.get_open_txns_info().open_txns]))
        for each in made.show_locks(idl.ShowLocksRequest()).locks:
            made.unlock(idl.UnlockRequest(lockid=each.lockid))


def begin(client: Client, count: int = 1) -> list[int]:
    ids: list[int] = client.open_txns(idl.OpenTxnRequest(num_txns=count, user="alice", hostname="here", agentInfo="nightly")).txn_ids
    return ids


def ask(client: Client, kind: int, transaction: int = 0) -> int:
    component = idl.LockComponent(
        type=kind,
        level=idl.LockLevel.TABLE,
        dbname="taxi",
        tablename="trips",
        operationType=idl.DataOperationType.SELECT,
    )
    request = idl.LockRequest(component=[component], user="alice", hostname="here", txnid=transaction or None)
    key: int = client.lock(request).lockid
    return key


def test_transactions_are_listed_and_aborted(server_uri: str, client: Client) -> None:
    first, second = begin(client, 2)
    listed = run("txns", "list", "--uri", server_uri, "--json")
    assert listed.exit_code == 0
    found = {each["id"]: each for each in json.loads(listed.stdout)}
    assert {key: found[first][key] for key in ("state", "user", "host", "agent")} == {
        "state": "open",
        "user": "alice",
        "host": "here",
        "agent": "nightly",
    }
    assert found[first]["started_ms"] <= found[first]["heartbeat_ms"]
    aborted = run("txns", "abort", str(first), "--uri", server_uri)
    assert (aborted.exit_code, aborted.stdout) == (0, f"aborted {first}\n")
    rows = [line.split("\t") for line in run("txns", "list", "--uri", server_uri).stdout.splitlines()]
    assert [row[:5] for row in rows] == [[str(second), "open", "alice", "here", "nightly"]]
    rows = [line.split("\t") for line in run("txns", "list", "--aborted", "--uri", server_uri).stdout.splitlines()]
    assert [row[0:2] for row in rows if row[0] in {str(first), str(second)}] == [[str(first), "aborted"], [str(second), "open"]]


def test_a_transaction_that_is_not_there_is_named_and_the_others_aborted(server_uri: str, client: Client) -> None:
    (key,) = begin(client)
    ended = run("txns", "abort", "999999", str(key), "--uri", server_uri)
    assert ended.exit_code == 1
    assert ended.stdout == f"aborted {key}\n"
    assert "No such transaction txnid:999999" in ended.stderr


def test_locks_are_listed_with_the_locks_before_them(server_uri: str, client: Client) -> None:
    (key,) = begin(client)
    held = ask(client, idl.LockType.EXCLUSIVE, key)
    waiting = ask(client, idl.LockType.SHARED_READ)
    found = {each["id"]: each for each in json.loads(run("locks", "list", "--uri", server_uri, "--json").stdout)}
    assert (found[held]["transaction"], found[held]["state"], found[held]["type"]) == (key, "acquired", "exclusive")
    assert (found[waiting]["waits_for"], found[waiting]["state"], found[waiting]["object"]) == (held, "waiting", "taxi.trips")
    rows = [line.split("\t") for line in run("locks", "list", "taxi.trips", "--uri", server_uri).stdout.splitlines()]
    assert re.fullmatch(r"\d+s", rows[1][8])  # waits for
    assert found[waiting]["waiting_ms"] > 1_700_000_000_000
    assert found[held]["waiting_ms"] is None
    assert [row[:6] for row in rows] == [
        [str(held), str(key), "taxi.trips", "exclusive", "acquired", ""],
        [str(waiting), "", "taxi.trips", "shared_read", "waiting", str(held)],
    ]
    assert run("locks", "list", "default", "--uri", server_uri).stdout == ""
    for name in ("other", "default.other"):
        missing = run("locks", "list", name, "--uri", server_uri)
        assert (missing.exit_code, missing.stdout, "NoSuchObjectException" in missing.stderr) == (1, "", True)
    only = json.loads(run("locks", "list", "--txn", str(key), "--uri", server_uri, "--json").stdout)
    assert [each["id"] for each in only] == [held]
    assert run("locks", "list", "taxi.trips", "--partition", "p=1", "--uri", server_uri).stdout == ""


def test_a_lock_is_released_unless_a_transaction_has_it(server_uri: str, client: Client) -> None:
    (key,) = begin(client)
    held, plain = ask(client, idl.LockType.SHARED_READ, key), ask(client, idl.LockType.SHARED_READ)
    released = run("locks", "unlock", str(plain), "--uri", server_uri)
    assert (released.exit_code, released.stdout) == (0, f"released {plain}\n")
    refused = run("locks", "unlock", str(held), "--uri", server_uri)
    assert refused.exit_code == 1
    assert "belongs to an open transaction" in refused.stderr


def test_a_lock_that_is_not_there_is_named_and_the_others_are_released(server_uri: str, client: Client) -> None:
    plain = ask(client, idl.LockType.SHARED_READ)
    ended = run("locks", "unlock", "999999", str(plain), "--uri", server_uri, "--json")
    assert (ended.exit_code, json.loads(ended.stdout)) == (1, {"released": [plain], "errors": ["there is no lock 999999"]})
    assert "there is no lock 999999" in ended.stderr
    assert client.show_locks(idl.ShowLocksRequest()).locks == []


@pytest.mark.parametrize("command", [["txns", "list"], ["txns", "abort", "1"], ["locks", "list"], ["locks", "unlock", "1"]])
def test_a_server_that_is_not_there_ends_with_status_1(command: list[str]) -> None:
    ended = run(*command, "--uri", "thrift://127.0.0.1:1")
    assert ended.exit_code == 1
    assert "127.0.0.1:1" in ended.stderr


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "0s"),
        (59_999, "59s"),
        (61_000, "1m 1s"),
        (3_600_000 * 5 + 60_000, "5h 1m"),
        (86_400_000 * 2 + 3_600_000, "2d 1h"),
        (-5, "0s"),
    ],
)
def test_an_age_has_its_two_largest_units(milliseconds: int, text: str) -> None:
    assert age(10**13 - milliseconds, 10**13) == text


def test_no_time_has_no_age() -> None:
    assert age(None, 5) == age(0, 5) == ""


def test_the_home_is_not_touched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    run("txns", "list", "--uri", "thrift://127.0.0.1:1")
    assert list(tmp_path.iterdir()) == []
