"""Following a source that still changes: all its changes arrive, by its notification log or by comparison."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from metastore import idl
from metastore.client import Client, connect
from metastore.errors import InvalidOperation
from metastore.transfer.comparing import compare
from metastore.transfer.contract import Reader
from metastore.transfer.following import follow
from metastore.transfer.moving import move
from metastore.transfer.opening import reader, writer
from metastore.transfer.own.writer import OwnWriter
from metastore.transfer.records import Key, Record
from metastore.transfer.selection import EVERYTHING, Selection
from tests.support.catalog.full_catalog import Filler, columns, storage
from tests.support.servers.servers import serving
from tests.transfer.test_dumps import run


class Going(NamedTuple):
    """A source on which a server runs, and a target that was filled from it."""

    client: Client
    filler: Filler
    source: Reader
    target: OwnWriter
    url: str


@pytest.fixture(params=["thrift", "database"])
def going(request: pytest.FixtureRequest, fresh_database_url: str, tmp_path: Path) -> Iterator[Going]:
    url = f"sqlite:///{tmp_path / 'source.db'}"
    options = ("--db", url, "--set", f"warehouse={tmp_path / 'w'}", "--set", "compactor_cleaner=false")
    with serving(*options, home=tmp_path) as server, connect(server.uri) as client:
        filler = Filler(client, f"file:{tmp_path / 'data'}")
        filler.everything()
        source = reader(server.uri if request.param == "thrift" else url)
        target = writer(fresh_database_url)
        assert isinstance(target, OwnWriter)
        move(source, target, EVERYTHING)
        yield Going(client, filler, source, target, fresh_database_url)
        source.close()
        target.close()


WITH_A_LOG = pytest.mark.parametrize("going", ["thrift"], indirect=True)
"""From a source whose log is read. One without is compared each time."""


def same(going: Going) -> list[str]:
    """Return the differences between the two sides."""
    back = reader(going.url)
    found = compare(going.source, back, EVERYTHING)
    back.close()
    return [f"{each.record}: {each.words}" for each in found.differences]


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
    client.drop_function("sales", "f")  # the last one
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
    """A reader whose source is changed between its log and its records."""

    def __init__(self, going: Going) -> None:
        self._going = going
        self.skipped: list[str] = []
        self.name, self.kinds, self.seen = "meanwhile", going.source.kinds, going.source.seen

    def close(self) -> None: ...

    def partitions(self) -> int:
        return 0

    def tables(self, selection: Selection) -> set[Key]:
        return self._going.source.tables(selection)

    def changes(self, after: int) -> object:
        found = self._going.source.changes(after)
        self._going.client.drop_partition_by_name("sales", "orders", "ds=2026-01-01/hr=1", False)
        return found

    def records(self, selection: Selection) -> Iterator[Record]:
        return self._going.source.records(selection)


@pytest.mark.on_one_database
@WITH_A_LOG
def test_changes_during_a_round_come_with_the_next(going: Going) -> None:
    follow(Meanwhile(going), going.target, EVERYTHING)  # type: ignore[arg-type]
    assert same(going) != []
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
@WITH_A_LOG
def test_the_command(going: Going, tmp_path: Path) -> None:
    change(going)
    done = run("follow", going.source.name, "--once", "--json", "--db", going.url, home=tmp_path)
    assert json.loads(done.stdout)["removed"] == 2, done.stderr
    assert same(going) == []
