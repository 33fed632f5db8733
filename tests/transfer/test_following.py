"""Following a source that still changes: all its changes arrive, by its notification log or by comparison."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from itertools import islice, takewhile
from pathlib import Path

import pytest

from metastore import idl
from metastore.client import Client, connect
from metastore.errors import InvalidOperation
from metastore.transfer.comparing import compare
from metastore.transfer.following import follow
from metastore.transfer.moving import move
from metastore.transfer.opening import reader, writer
from metastore.transfer.own.writer import OwnWriter
from metastore.transfer.records import Key, Record
from metastore.transfer.selection import EVERYTHING, Selection, selection
from metastore.transfer.thrift.calls import Calls
from tests.support.catalog.full_catalog import Filler, columns, storage
from tests.support.servers.servers import COMMAND, environment, serving
from tests.transfer.conftest import Going, same
from tests.transfer.test_dumps import run

WITH_A_LOG = pytest.mark.parametrize("going", ["thrift"], indirect=True)
"""Runs a test only with a source whose log is read. A source without a log is compared in each round."""


def change(going: Going) -> None:
    """Add, change, rename and drop tables, partitions, catalogs, databases, functions, roles and grants."""
    client, filler = going.client, going.filler
    root = f"{filler.root}/sales"
    filler.table("sales", "new", storage(f"{root}/new", ("id", "int")), columns(("ds", "string")))
    client.add_partitions(
        [idl.Partition(values=["x"], dbName="sales", tableName="new", sd=storage(f"{root}/new/ds=x", ("id", "int")), parameters={})]
    )
    client.drop_table("sales", "kinds", False)
    renamed = client.get_table_req(idl.GetTableRequest(dbName="sales", tblName="empty_keys")).table
    renamed.tableName = "with_keys"
    client.alter_table("sales", "empty_keys", renamed)
    client.drop_partition_by_name("sales", "orders", "ds=2026-01-01/hr=0", False)
    client.create_database(idl.Database(name="later", locationUri=f"{filler.root}/later"))
    client.create_role(idl.Role("fresh", 0, "admin"))
    client.grant_role("fresh", "bob", 1, "admin", 1, False)
    client.drop_function("sales", "f")  # the last function
    client.drop_role("lead")
    client.drop_database("empty", True, False)
    client.drop_database("@lake#deep", True, False)
    client.drop_catalog(idl.DropCatalogRequest("lake"))


def test_a_round_brings_all_that_was_changed(going: Going) -> None:
    assert same(going) == []
    change(going)
    assert same(going) != []
    done = follow(going.source, going.target, EVERYTHING)
    assert same(going) == []
    assert done.removed == 2
    by_log = not going.source.name.startswith("sqlite")
    assert (done.events is not None) is by_log
    again = follow(going.source, going.target, EVERYTHING)
    assert (again.changed, again.written, again.removed) == (0, 0, 0)
    assert again.events == (0 if by_log else None)


@pytest.mark.on_one_database
@WITH_A_LOG
def test_by_comparison(going: Going) -> None:
    change(going)
    assert follow(going.source, going.target, EVERYTHING, by_comparison=True).events is None
    assert same(going) == []


class Meanwhile:
    """A reader whose source is changed once within a round: after its log was read, or after its tables were listed."""

    def __init__(self, going: Going, change: Callable[[], None], after: str) -> None:
        self._source, self._change, self._after = going.source, change, after
        self.skipped: list[str] = []
        self.name, self.kinds, self.seen = "meanwhile", going.source.kinds, going.source.seen

    def close(self) -> None: ...

    def partitions(self) -> int:
        return 0

    def tables(self, selection: Selection) -> set[Key]:
        found = self._source.tables(selection)
        if self._after == "tables":
            self._change()
        return found

    def changes(self, after: int) -> object:
        found = self._source.changes(after)
        if self._after == "log":
            self._change()
        return found

    def records(self, selection: Selection) -> Iterator[Record]:
        return self._source.records(selection)


@pytest.mark.on_one_database
@WITH_A_LOG
def test_changes_during_a_round_come_with_the_next(going: Going) -> None:
    def drop() -> None:
        going.client.drop_partition_by_name("sales", "orders", "ds=2026-01-01/hr=1", False)

    follow(Meanwhile(going, drop, "log"), going.target, EVERYTHING)  # type: ignore[arg-type]
    assert same(going) != []
    follow(going.source, going.target, EVERYTHING)
    assert same(going) == []


def drop_the_database(going: Going) -> None:
    """Drop `more` with its two tables."""
    going.client.drop_database("more", True, True)


@pytest.fixture
def with_more(going: Going) -> Going:
    """A source and its target with a database of tables only."""
    client, root = going.client, f"{going.filler.root}/more"
    client.create_database(idl.Database(name="more", locationUri=root))
    going.filler.table("more", "plain", storage(f"{root}/plain", ("id", "int")))
    going.filler.table("more", "days", storage(f"{root}/days", ("id", "int")), columns(("ds", "string")))
    day = idl.Partition(values=["x"], dbName="more", tableName="days", sd=storage(f"{root}/days/ds=x", ("id", "int")), parameters={})
    client.add_partitions([day])
    going.filler.grant(idl.HiveObjectRef(objectType=idl.HiveObjectType.TABLE, dbName="more", objectName="plain", catName="hive"))
    going.filler.grant(idl.HiveObjectRef(objectType=idl.HiveObjectType.DATABASE, dbName="more", catName="hive"))
    follow(going.source, going.target, EVERYTHING)
    assert same(going) == []
    return going


def test_a_database_that_is_dropped_after_its_tables_were_listed(with_more: Going) -> None:
    follow(Meanwhile(with_more, partial(drop_the_database, with_more), "tables"), with_more.target, EVERYTHING)  # type: ignore[arg-type]
    assert [each for each in same(with_more) if not each.startswith("position notification")] == []
    follow(with_more.source, with_more.target, EVERYTHING)
    assert same(with_more) == []


@pytest.mark.on_one_database
def test_a_dropped_database_stays_with_tables_that_are_not_followed(with_more: Going) -> None:
    drop_the_database(with_more)
    follow(with_more.source, with_more.target, selection(include=["more.days"]))
    assert [each for each in same(with_more) if "days" in each] == []
    with closing(reader(with_more.url)) as back:
        assert {key for key in back.tables(EVERYTHING) if key[1] == "more"} == {("hive", "more", "plain")}


@pytest.mark.on_one_database
def test_a_dropped_catalog_stays_with_such_a_database(going: Going) -> None:
    root = f"{going.filler.root}/lake/deep"
    for name in ("plain", "days"):
        going.filler.table("deep", name, storage(f"{root}/{name}", ("id", "int")), catName="lake")
    follow(going.source, going.target, EVERYTHING)
    going.client.drop_database("@lake#deep", True, True)
    going.client.drop_catalog(idl.DropCatalogRequest("lake"))
    follow(going.source, going.target, selection(include=["lake.deep.days"]))
    with closing(reader(going.url)) as back:
        assert {key for key in back.tables(EVERYTHING) if key[0] == "lake"} == {("lake", "deep", "plain")}
    follow(going.source, going.target, EVERYTHING)
    assert same(going) == []


def drop_lake(client: Client) -> None:
    """Drop the catalog `lake` with its only database."""
    client.drop_database("@lake#deep", True, False)
    client.drop_catalog(idl.DropCatalogRequest("lake"))


DROPS: dict[str, Callable[[Client], object]] = {
    "get_databases": drop_lake,
    "get_catalog": drop_lake,
    "get_database": lambda client: client.drop_database("empty", True, False),
    "get_all_tables": lambda client: client.drop_database("empty", True, False),
    "get_functions": lambda client: client.drop_database("empty", True, False),
    "get_function": lambda client: client.drop_function("sales", "f"),
    "get_all_stored_procedures": lambda client: client.drop_database("empty", True, False),
    "get_stored_procedure": lambda client: client.drop_stored_procedure(idl.StoredProcedureRequest("hive", "sales", "p1")),
    "get_all_packages": lambda client: client.drop_database("empty", True, False),
    "find_package": lambda client: client.drop_package(idl.DropPackageRequest("hive", "sales", "pk1")),
    "get_dataconnector_req": lambda client: client.drop_dataconnector_req(idl.DropDataConnectorRequest("pg")),
    "get_resource_plan": lambda client: client.drop_resource_plan(idl.WMDropResourcePlanRequest("plan", "default")),
    "get_principals_in_role": lambda client: client.drop_role("lead"),
    "list_roles": lambda client: client.drop_role("lead"),
    "get_table_req": lambda client: client.drop_table("sales", "orders", False),
    "get_table_statistics_req": lambda client: client.drop_table("sales", "bucketed", False),
    "get_partition_names": lambda client: client.drop_table("sales", "orders", False),
    "get_partitions_by_names": lambda client: client.drop_table("sales", "orders", False),
    "get_partitions_statistics_req": lambda client: client.drop_table("sales", "orders", False),
    "get_primary_keys": lambda client: client.drop_table("sales", "bucketed", False),
    "list_privileges": lambda client: client.drop_table("sales", "orders", False),
    "get_valid_write_ids": lambda client: client.drop_table("sales", "acid", False),
}
"""Functions that drop an object, by the method of the reader: each runs before the method's first call, which reads the object."""
QUICK = {"get_catalog", "get_database", "get_function", "get_resource_plan", "get_partition_names"}
"""Methods that the quick tests run."""


@pytest.mark.on_one_database
@WITH_A_LOG
@pytest.mark.parametrize("method", [each if each in QUICK else pytest.param(each, marks=pytest.mark.slow) for each in DROPS])
def test_an_object_that_is_dropped_while_a_round_reads_it_is_left_out(going: Going, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The round reads two tables again, a partitioned one among them."""
    for name in ("orders", "bucketed"):
        changed = going.client.get_table_req(idl.GetTableRequest(dbName="sales", tblName=name)).table
        changed.parameters["changed"] = "yes"
        going.client.alter_table("sales", name, changed)
    ask, first = Calls.ask, threading.Lock()

    def after_the_drop(calls: Calls, called: str, *arguments: object, **options: object) -> object:
        if called == method and first.acquire(blocking=False):
            DROPS[method](going.client)
        return ask(calls, called, *arguments, **options)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(Calls, "ask", after_the_drop)
        follow(going.source, going.target, EVERYTHING)
        assert first.locked()
    follow(going.source, going.target, EVERYTHING)
    assert same(going) == []


@pytest.mark.on_one_database
@WITH_A_LOG
def test_an_empty_target_is_refused(going: Going, tmp_path: Path) -> None:
    target = writer(f"sqlite:///{tmp_path / 'empty.db'}")
    assert isinstance(target, OwnWriter)
    with pytest.raises(InvalidOperation, match="was not filled yet: run `metastore import` first"):
        follow(going.source, target, EVERYTHING)
    target.close()


@pytest.mark.on_one_database
@pytest.mark.parametrize("way", ["thrift", "database"])
def test_a_source_that_is_still_empty(way: str, fresh_database_url: str, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'source.db'}"
    with (
        serving("--db", url, home=tmp_path) as server,
        closing(reader(server.uri if way == "thrift" else url)) as source,
        closing(writer(fresh_database_url)) as target,
    ):
        assert isinstance(target, OwnWriter)
        move(source, target, EVERYTHING)
        assert follow(source, target, EVERYTHING).written == 0
        with connect(server.uri) as client:
            Filler(client, f"file:{tmp_path / 'data'}").databases()
            Filler(client, f"file:{tmp_path / 'data'}").tables()
        follow(source, target, EVERYTHING)
        with closing(reader(fresh_database_url)) as back:
            assert compare(source, back, EVERYTHING).differences == []


@pytest.mark.on_one_database
@WITH_A_LOG
def test_the_command(going: Going, tmp_path: Path) -> None:
    change(going)
    done = run("follow", going.source.name, "--once", "--json", "--db", going.url, home=tmp_path)
    assert json.loads(done.stdout)["removed"] == 2, done.stderr
    assert same(going) == []


@pytest.mark.on_one_database
@WITH_A_LOG
def test_the_command_names_each_skipped_object_once(going: Going, tmp_path: Path) -> None:
    """Later rounds skip the same objects without a line; `--json` lists the skipped objects of each round."""
    arguments = [*COMMAND, "follow", going.source.name, "--pause", "0", "--db", going.url]
    with subprocess.Popen(arguments, env=environment(tmp_path), stdout=subprocess.PIPE, text=True) as following:
        assert following.stdout is not None
        lines = (line.rstrip() for line in following.stdout)
        try:
            first = list(islice(lines, 4))
            opened = going.client.open_txns(idl.OpenTxnRequest(num_txns=1, user="anna", hostname="h")).txn_ids[0]
            until = list(takewhile(lambda line: f"{opened})" not in line, lines))
            after = list(islice(lines, 3))
        finally:
            following.terminate()
    assert ["not moved" in line for line in first] == [False, True, True, True], first
    assert not [line for line in [*until, *after] if "not moved" in line]
    last = json.loads(run("follow", going.source.name, "--once", "--json", "--db", going.url, home=tmp_path).stdout)
    assert [f"{opened})" in text for text in last["skipped"]] == [False, False, True]
