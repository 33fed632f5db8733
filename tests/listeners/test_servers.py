"""Listeners of each kind in real servers: the moments of their calls, and the effects of their errors on a call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from thriftpy2.thrift import TException

from metastore import idl
from metastore.client import connect
from metastore.idl import Database, FieldSchema, Partition, SerDeInfo, StorageDescriptor, Table
from tests.listeners.hooks import SEEN
from tests.support.servers.servers import ROOT, run_command, serving
from tests.support.servers.waiting import until

HOOKS = "tests.listeners.hooks"
KINDS = ("init", "pre_event", "transactional", "post_event", "end_function")


def settings(listener: str, *kinds: str) -> list[str]:
    return [part for kind in kinds for part in ("--set", f"{kind}_listeners={HOOKS}:{listener}")]


def table(name: str) -> Table:
    sd = StorageDescriptor(
        cols=[FieldSchema(name="a", type="int")], inputFormat="in", outputFormat="out",
        serdeInfo=SerDeInfo(serializationLib="lib", parameters={}), parameters={},
    )  # fmt: skip
    return Table(dbName="default", tableName=name, sd=sd, parameters={}, partitionKeys=[FieldSchema(name="p", type="string")])


def partition(value: str) -> Partition:
    return Partition(values=[value], dbName="default", tableName="t", sd=table("t").sd, parameters={})


def test_every_kind_is_called_in_its_turn(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    with serving("--workers", "1", *settings("All", *KINDS), home=tmp_path, variables={SEEN: str(seen)}) as server:
        first = seen.read_text().splitlines()
        made, started = (line.split() for line in first)
        assert (made[0], started[0]) == ("made", "started")
        assert made[1] == started[1], "one object, in the worker"
        assert int(made[1]) != server.process.pid
        with connect(server.uri) as client:
            client.set_ugi("alice", ["staff"])
            context = idl.EnvironmentContext(properties={"k": "v"})
            client.create_table_with_environment_context(table("t"), context)
            with pytest.raises(idl.AlreadyExistsException):
                client.create_table(table("t"))
            client.add_partitions([partition("1")])
            client.add_partitions_req(
                idl.AddPartitionsRequest(
                    dbName="default",
                    tblName="t",
                    ifNotExists=True,
                    parts=[partition("1"), partition("2")],
                )
            )
            client.get_table("default", "t")
            with pytest.raises(idl.NoSuchObjectException):
                client.get_table("default", "missing")
    assert seen.read_text().splitlines()[2:] == [
        "ended set_ugi  True NoneType",
        "before CreateTable", "within CreateTable",
        "after CreateTable NoneType alice create_table_with_environment_context {'k': 'v'}",
        "ended create_table_with_environment_context default.t True NoneType",
        "before CreateTable", "after CreateTable AlreadyExists alice create_table {}", "ended create_table default.t False AlreadyExists",
        "before AddPartitions", "within AddPartitions", "after AddPartitions NoneType alice add_partitions {}",
        "ended add_partitions  True NoneType",
        "before AddPartitions", "within AddPartitions", "after AddPartitions NoneType alice add_partitions_req {}",
        "after AddPartitions AlreadyExists alice add_partitions_req {}", "ended add_partitions_req default.t True NoneType",
        "before ReadTable", "ended get_table default.t True NoneType",
        "ended get_table default.missing False NoSuchObject",
    ]  # fmt: skip


@pytest.mark.parametrize(("name", "on_table", "on_database"), [
    ("already_exists", idl.AlreadyExistsException, idl.AlreadyExistsException),
    ("invalid_object", idl.InvalidObjectException, idl.InvalidObjectException),
    ("invalid_operation", idl.MetaException, idl.MetaException),
    ("no_such_object", idl.InvalidObjectException, idl.MetaException),  # as Java's create_table for a missing database
    ("meta", idl.MetaException, idl.MetaException),
    ("other", idl.MetaException, idl.MetaException),
])  # fmt: skip
def test_a_veto_reaches_the_client_as_its_method_declares_it(
    vetoing: Any, name: str, on_table: type[TException], on_database: type[TException]
) -> None:
    with pytest.raises(on_table, match="vetoed"):
        vetoing.create_table(table(f"veto_{name}"))
    with pytest.raises(on_database, match="vetoed"):
        vetoing.create_database(Database(name=f"veto_{name}"))
    assert vetoing.get_all_tables("default") == []
    assert vetoing.get_all_databases() == ["default"]


@pytest.fixture(scope="module")
def vetoing(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with serving("--workers", "1", *settings("Veto", "pre_event"), home=tmp_path_factory.mktemp("vetoing")) as server, \
            connect(server.uri) as client:  # fmt: skip
        yield client


def test_errors_after_the_fact_are_logged_and_fail_no_call(tmp_path: Path) -> None:
    with serving("--workers", "1", *settings("Failing", "post_event", "end_function"), home=tmp_path) as server:
        with connect(server.uri) as client:
            client.create_table(table("t"))
            assert client.get_all_tables("default") == ["t"]
            with pytest.raises(idl.AlreadyExistsException):
                client.create_table(table("t"))
        until(lambda: len(server.logged(event="listener failed")) == 5, missing="five failures")
    failed = server.logged(event="listener failed")
    assert {line["listener"] for line in failed} == {"Failing"}
    assert [line["exception"].splitlines()[-1] for line in failed] == [
        "RuntimeError: post-event listener is broken", "RuntimeError: end-function listener is broken",
        "RuntimeError: end-function listener is broken",
        "RuntimeError: post-event listener is broken", "RuntimeError: end-function listener is broken",
    ]  # fmt: skip


@pytest.mark.parametrize(("setting", "said"), [
    (f"init_listeners={HOOKS}:NotStarting", "init listener says no"),
    (f"init_listeners={HOOKS}:NotMade", "can not be made: ValueError: no 0"),
    (f"pre_event_listeners={HOOKS}:NotMade", "is not a PreEventListener: derive it from metastore.listeners.PreEventListener"),
    (f"pre_event_listeners={HOOKS}:function", "is not a PreEventListener"),
    (f"pre_event_listeners={HOOKS}:Missing", "can not be loaded: AttributeError"),
    ("pre_event_listeners=no.such.module:X", "can not be loaded: ModuleNotFoundError"),
    ("pre_event_listeners=org.example.Listener", "does not name a class of Python's: write package.module:Class"),
])  # fmt: skip
def test_a_listener_that_does_not_fit_stops_the_start(tmp_path: Path, setting: str, said: str) -> None:
    ended = run_command("serve", "--port", "0", "--workers", "1", "--set", setting, home=tmp_path)
    assert ended.returncode == 1
    assert said in " ".join(ended.stderr.replace("\\n", " ").split())


def blocks(language: str) -> list[str]:
    text = (ROOT / "docs" / "listeners.md").read_text()
    return [part.split("```", 1)[0] for part in text.split(f"```{language}\n")[1:]]


@pytest.mark.on_one_database
def test_the_example_of_the_documentation_works(fresh_database_url: str, tmp_path: Path) -> None:
    (python,) = blocks("python")
    (toml,) = blocks("toml")
    (tmp_path / "watch.py").write_text(python)
    (tmp_path / "watch.toml").write_text(toml)
    options = ("--workers", "2", "--db", fresh_database_url, "--config", "watch.toml")
    path = {"PYTHONPATH": f"{ROOT}:{tmp_path}"}
    with serving(*options, home=tmp_path / "home", variables=path, cwd=tmp_path) as server, connect(server.uri) as client:
        client.set_ugi("o'neil", [])
        kept = table("t")
        kept.parameters = {"watch.keep": "true"}
        client.create_table(kept)
        client.add_partitions([partition("1"), partition("2")])
        with pytest.raises(idl.AlreadyExistsException):
            client.add_partitions([partition("3"), partition("2")])
        with pytest.raises(idl.MetaException, match=r"t is kept: unset its property watch\.keep"):
            client.drop_table("default", "t", True)
    from metastore.store.core.database import Database as Store

    store = Store(fresh_database_url)

    def added(session: Any) -> list[tuple[Any, ...]]:
        session.cursor.execute("SELECT table_name, client, added FROM watch_added")
        return [tuple(row) for row in session.cursor.fetchall()]

    assert store.read(added) == [("default.t", "o'neil", 2)]
    store.close()
    failures = (tmp_path / "failures.txt").read_text().splitlines()
    assert [line.partition(": ")[2].partition(":")[0] for line in failures] == ["AddPartitions failed", "DropTable failed"]
