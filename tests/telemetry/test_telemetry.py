"""Slow calls and connected clients of all workers: their facts, and the users who see them."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from metastore import idl
from metastore.call_time import PARTS
from metastore.client import connect
from metastore.methods.forms.entry import ALL
from metastore.methods.interface.query_ids import find
from metastore.methods.interface.signatures import signature
from metastore.service.call.context import Client
from metastore.service.operations.watched import SlowCall
from metastore.telemetry import clients, records
from metastore.telemetry.records import Records
from metastore.telemetry.slow_calls import KEPT, SlowCalls, elements, shortened
from metastore.telemetry.telemetry import Telemetry
from tests.support.servers.servers import Server, serving
from tests.support.servers.stub_server import Start, Stub
from tests.support.servers.waiting import until
from tests.wire.http.test_pages import get

STORAGE = idl.StorageDescriptor(cols=[idl.FieldSchema("a", "int", "")], serdeInfo=idl.SerDeInfo(parameters={}), parameters={})
EVERY_CALL = ("--set", "slow_call_threshold=0.000001")


def asked(server: Server, path: str) -> list[dict[str, Any]]:
    """Return the elements of a page's list."""
    status, text = get(server.uri, path)
    assert status == 200, text
    (found,) = json.loads(text).values()
    return list(found)


@pytest.mark.on_one_database
def test_slow_calls_of_all_workers_are_listed(database_url: str, tmp_path: Path) -> None:
    with serving("--db", database_url, "--workers", "3", *EVERY_CALL, home=tmp_path) as server:
        names: list[str] = []

        def one_more() -> list[dict[str, Any]]:
            names.append(f"d{len(names)}")
            with connect(server.uri, timeout=20) as client:
                client.set_ugi("ann", [])
                client.create_database(idl.Database(name=names[-1]))
            return [each for each in asked(server, "/api/v1/slow-calls") if each["method"] == "create_database"]

        calls = until(one_more, lambda calls: len(calls) >= 12 and len({each["worker"] for each in calls}) > 1)
        assert sorted(each["object"] for each in calls) == sorted(names)
        assert [each["began"] for each in calls] == sorted((each["began"] for each in calls), reverse=True)
        for each in calls:
            assert each["user"] == "ann"
            assert each["address"].startswith("127.0.0.1:")
            assert each["outcome"] == "ok"
            assert each["statements"] >= 2
            assert each["received"] > 10
            assert each["sent"] > 10
            assert 0 < each["sql_seconds"] < each["seconds"] < 60
            assert f"name='{each['object']}'" in each["arguments"]
        with connect(server.uri, timeout=20) as client:
            assert len(client.get_databases("d*")) == len(names) + 1
            (listed,) = [each for each in asked(server, "/api/v1/slow-calls") if each["method"] == "get_databases"]
            assert listed["elements"] == len(names) + 1
        lines = server.logged(event="slow call")
        assert {line["level"] for line in lines} == {"warning"}
        assert {line["object"] for line in lines} >= {*names}


def test_only_calls_that_take_long_are_kept(start: Start, stub: Stub) -> None:
    server = start(slow_call_threshold=0.2)
    telemetry: Telemetry = server._worker._telemetry
    with connect(server.uri) as client:
        client.getName()
        late = threading.Timer(0.3, stub.release.set)
        late.start()
        assert client.get_all_databases() == ["waited"]
        late.join()
        (kept,) = telemetry.slow_calls()
        assert (kept.method, kept.elements, kept.statements) == ("get_all_databases", 1, 0)
        assert kept.seconds >= 0.2


def test_none_is_kept_without_a_threshold(start: Start, stub: Stub) -> None:
    stub.release.set()
    server = start(slow_call_threshold=0)
    with connect(server.uri) as client:
        client.get_all_databases()
    assert server._worker._telemetry.slow_calls() == []


def slow(number: int, **values: Any) -> SlowCall:
    fields = {
        "began": float(number), "seconds": 1.0, "method": "get_table", "object": "d.t", "arguments": "", "user": None, "real_user": None,
        "address": "", "query": "", "outcome": "ok", "elements": 1, "received": 1, "sent": 1, "statements": 1, "worker": 1,
        **{f"{part}_seconds": 0.0 for part in PARTS},
    }  # fmt: skip
    return SlowCall(**{**fields, **values})


def test_the_newest_are_kept_and_long_ones_too() -> None:
    kept = SlowCalls()
    for number in range(KEPT + 50):
        kept.add(slow(number, arguments="ü" * 1200, object="\0" * 300))
    assert [each.began for each in kept.all()] == list(range(KEPT + 49, 49, -1))


def test_arguments_are_short_and_without_secrets() -> None:
    table = idl.Table(
        tableName="t",
        parameters={"fs.s3a.secret.key": "hunter2", "jdbc.password": "hunter2", "k": "v" * 1000},
        sd=idl.StorageDescriptor(
            location="s3a://key:hunter2@bucket/t", cols=[idl.FieldSchema(f"c{number}", "int", "") for number in range(1000)]
        ),
    )
    text = shortened("create_table", signature("create_table").args(tbl=table))  # type: ignore[call-arg]
    assert "hunter2" not in text
    assert "tableName='t'" in text
    assert "... 1000 in all" in text
    assert len(text) < 1300
    for method, values in (
        ("add_token", {"token_identifier": "a", "delegation_token": "hunter2"}),
        ("renew_delegation_token", {"token_str_form": "hunter2"}),
        ("setMetaConf", {"key": "javax.jdo.option.ConnectionPassword", "value": "hunter2"}),
        ("setOption", {"key": "secret", "value": "hunter2"}),
    ):
        assert "hunter2" not in shortened(method, signature(method).args(**values)), method
    assert shortened("setMetaConf", signature("setMetaConf").args(key="k", value="v")) == "key='k', value='v'"  # type: ignore[call-arg]
    assert shortened("get_databases", signature("get_databases").args(pattern="a" * 500)) == f"pattern='{'a' * 100}...'"  # type: ignore[call-arg]
    assert shortened(
        "get_partitions_by_expr",
        signature("get_partitions_by_expr").args(req=idl.PartitionsByExprRequest(expr=b"x" * 9)),  # type: ignore[call-arg]
    ) == ("req={expr=<9 bytes>}")


def test_arguments_of_every_method_can_be_shown() -> None:
    for method in ALL:
        assert isinstance(shortened(method, signature(method).args()), str)


def test_elements_are_counted() -> None:
    assert elements(None) == 0
    assert elements(True) == 1
    assert elements([1, 2]) == 2
    assert elements({"a": 1}) == 1
    assert elements(idl.Table(tableName="t")) == 1
    assert elements(idl.PartitionsByExprResult(partitions=[1, 2, 3])) == 3


QUERIES = {
    "environment context": ("drop_table_with_environment_context", {"environment_context": idl.EnvironmentContext({"query.id": "q"})}),
    "request's context": (
        "drop_partitions_req",
        {"req": idl.DropPartitionsRequest(environmentContext=idl.EnvironmentContext({"queryId": "q"}))},
    ),
    "lock": ("lock", {"rqst": idl.LockRequest(agentInfo="q")}),
    "Trino's table": ("create_table", {"tbl": idl.Table(parameters={"trino_query_id": "q"})}),
    "Trino's partitions": ("add_partitions", {"new_parts": [idl.Partition(parameters={"trino_query_id": "q"})]}),
}


@pytest.mark.parametrize("case", QUERIES)
def test_the_query_is_found(case: str) -> None:
    method, values = QUERIES[case]
    called = signature(method)
    assert find(called.queries, called.args(**values)) == "q"
    assert find(called.queries, called.args()) == ""


def test_an_agent_without_a_name_is_no_query() -> None:
    called = signature("lock")
    assert find(called.queries, called.args(rqst=idl.LockRequest(agentInfo="Unknown"))) == ""  # type: ignore[call-arg]
    assert signature("get_table_req").queries == (), "most reads cost nothing"


def test_the_query_stands_in_log_and_audit_and_slow_calls(tmp_path: Path) -> None:
    audit = tmp_path / "audit.log"
    with serving("--workers", "1", *EVERY_CALL, "--set", f"audit_log={audit}", home=tmp_path) as server:
        with connect(server.uri) as client:
            client.create_database(idl.Database(name="d"))
            table = idl.Table("t", "d", parameters={"trino_query_id": "20260101_1"}, sd=STORAGE)
            client.create_table(table)
        (kept,) = [each for each in asked(server, "/api/v1/slow-calls") if each["method"] == "create_table"]
        assert kept["query"] == "20260101_1"
    lines = [json.loads(line) for file in (server.log, audit) for line in file.read_text().splitlines()]
    assert sum(line.get("query") == "20260101_1" for line in lines) == 3


def test_clients_of_all_workers_are_listed(tmp_path: Path) -> None:
    with serving("--workers", "3", home=tmp_path) as server:
        open_clients: list[Any] = []

        def one_more() -> list[dict[str, Any]]:
            client = connect(server.uri, timeout=20)
            client.set_ugi(f"u{len(open_clients)}", [])
            client.get_all_databases()
            open_clients.append(client)
            return until(all_listed)

        def all_listed() -> list[dict[str, Any]]:
            listed = [each for each in asked(server, "/api/v1/clients") if each["calls"] == 2]
            return listed if len(listed) == len(open_clients) else []

        found = until(one_more, lambda found: len(found) >= 9 and len({each["worker"] for each in found}) > 1)
        assert sorted(each["user"] for each in found) == sorted(f"u{number}" for number in range(len(open_clients)))
        for each in found:
            assert (each["last_method"], each["transport"], each["mechanism"]) == ("get_all_databases", "plain", "")
            assert each["real_user"] is None
            assert time.time() - 60 < each["since"] <= each["last_call"] <= time.time() + 1
            assert each["address"].startswith("127.0.0.1:")
        for client in open_clients:
            client.close()
        until(lambda: not [each for each in asked(server, "/api/v1/clients") if each["transport"] == "plain"])
        assert [each["transport"] for each in asked(server, "/api/v1/clients")][-1:] == ["http"], "who asks is a client too"


def test_clients_of_a_worker_that_died_are_gone() -> None:
    known = Telemetry(2)
    known.take(1)
    client = Client("10.0.0.1:7", user="ann")
    assert known.clients.enter(client, "plain") is not None
    client.user, client.calls, client.last_method, client.last_call = "bob", 1, "get_table", time.perf_counter()
    (found,) = known.connected_clients()
    assert (found.user, found.calls, found.last_method) == ("bob", 1, "get_table")
    known.died(1)
    known.take(1)
    assert known.connected_clients() == []


def test_more_clients_than_places_are_served_all_the_same(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "PLACES", 1)
    server = start()
    with connect(server.uri) as first, connect(server.uri) as second:
        assert first.getName() == second.getName()
        assert len(server._worker._telemetry.connected_clients()) == 1


def test_places_of_clients_that_left_are_used_again() -> None:
    known = clients.Clients()
    for number in range(20_000):
        presence = known.enter(Client(f"10.0.0.1:{number}"), "plain")
        assert presence is not None
        known.leave(presence)
    assert known.all() == []


def test_a_record_that_is_written_meanwhile_is_whole() -> None:
    """A reader sees the record before the change or after it, never parts of both."""
    shared = Records(1, 1, 10_000)
    shared.write(0, ["a"] * 1000)
    done = threading.Event()

    def write() -> None:
        while not done.is_set():
            for letter in ("a", "b"):
                shared.write(0, [letter] * 1000)

    writing = threading.Thread(target=write)
    writing.start()
    seen = set[str]()

    def look() -> bool:
        for value in (each for _ in range(1000) for each in shared.read()):
            assert value in (["a"] * 1000, ["b"] * 1000)
            seen.add(value[0])
        return seen == {"a", "b"}

    try:
        until(look)
    finally:
        done.set()
        writing.join()
    records._HEAD.pack_into(shared._cells, 0, 7, 10)
    assert list(shared.read()) == [], "a process that died while it wrote leaves nothing"


def test_only_administrators_see_others(tmp_path: Path) -> None:
    options = ("--set", "authorization=grants", "--set", "admin_users=root")
    with serving("--workers", "1", *options, home=tmp_path) as server:
        for path in ("/api/v1/slow-calls", "/api/v1/clients"):
            assert get(server.uri, path)[0] == 403
            status, text = get(server.uri, path, {"x-actor-username": "bob"})
            assert status == 403
            assert "for administrators" in text
            assert get(server.uri, path, {"x-actor-username": "root"})[0] == 200
    with serving("--workers", "1", "--set", "authentication=users", home=tmp_path / "users") as server:
        assert get(server.uri, "/api/v1/clients")[0] == 401
