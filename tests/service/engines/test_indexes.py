"""Indexes of Hive 2.3: they are stored, follow their two tables through renames and drops, and wrong ones are refused."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from functools import partial
from pathlib import Path

import pytest

from metastore.errors import AlreadyExists, InvalidObject, InvalidOperation, MetaError, MetastoreError, NoSuchObject
from metastore.idl import FieldSchema, Index, NotificationEventRequest, Order, SerDeInfo, StorageDescriptor, Table
from metastore.service.call.context import Call
from metastore.service.call.names import TableName
from metastore.service.catalog import databases
from metastore.service.catalog.tables import tables
from metastore.service.catalog.tables.alter_table import alter_table
from metastore.service.catalog.tables.create_table import create_table
from metastore.service.engines import indexes
from metastore.service.operations import notifications
from metastore.store.core.database import Session
from metastore.store.schema.indexes import indexes as rows
from tests.support.catalog.catalog import make_database, make_table
from tests.support.databases.statement_counts import StatementCounts

pytestmark = pytest.mark.on_one_database

NAME = TableName("hive", "default", "t")


def storage(*columns: str) -> StorageDescriptor:
    return StorageDescriptor(
        cols=[FieldSchema(each, "string", "") for each in columns], inputFormat="in", outputFormat="out", compressed=False, numBuckets=0,
        serdeInfo=SerDeInfo(name=None, serializationLib="lib", parameters={}), bucketCols=[], sortCols=[Order("a", 1)], parameters={},
    )  # fmt: skip


def index(name: str = "i", table: str = "t", index_table: str | None = "t_i", database: str = "default") -> Index:
    return Index(
        indexName=name, indexHandlerClass="org.example.Compact", dbName=database, origTableName=table, indexTableName=index_table,
        sd=storage("a"), parameters={"p": "q"}, deferredRebuild=True, lastAccessTime=7,
    )  # fmt: skip


def index_table(name: str = "t_i", database: str = "default", keys: tuple[str, ...] = (), kind: str = "INDEX_TABLE") -> Table:
    return Table(
        tableName=name, dbName=database, owner="alice", tableType=kind, sd=storage("a", "_bucketname", "_offsets"), parameters={},
        partitionKeys=[FieldSchema(key, "string", "") for key in keys],
    )  # fmt: skip


def names(call: Call, database: str = "default") -> list[str]:
    return tables.get_tables(call, "hive", database, "*")


@pytest.fixture
def base(call: Call) -> TableName:
    return make_table(call, "t")


@pytest.mark.usefixtures("base")
def test_an_index_comes_back_as_it_was_made(call: Call) -> None:
    sent = index("I_1", "T", "T_i", "DEFAULT")
    made = indexes.add_index(call, sent, index_table())
    assert made == indexes.get_index(call, NAME, "i_1")
    assert made.createTime > 0
    assert made.parameters == {"p": "q", "transient_lastDdlTime": str(made.createTime)}
    expected = index("i_1")
    expected.createTime, expected.parameters = made.createTime, made.parameters
    for each in (expected.sd, made.sd):
        each.skewedInfo = each.storedAsSubDirectories = None
    assert made.sd.serdeInfo.serializationLib == "lib"
    made.sd.serdeInfo = expected.sd.serdeInfo
    assert made == expected
    stored = tables.get_table(call, TableName("hive", "default", "t_i"))
    assert (stored.tableType, [column.name for column in stored.sd.cols]) == ("INDEX_TABLE", ["a", "_bucketname", "_offsets"])


@pytest.mark.usefixtures("base")
def test_indexes_are_listed_by_name_up_to_a_limit(call: Call) -> None:
    make_table(call, "other")
    for name in ("b", "c", "a"):
        indexes.add_index(call, index(name, index_table=f"x_{name}"), index_table(f"x_{name}"))
    for limit, expected in ((-1, ["a", "b", "c"]), (None, ["a", "b", "c"]), (2, ["a", "b"]), (0, [])):
        assert [each.indexName for each in indexes.get_indexes(call, NAME, limit)] == expected
    for table in ("other", "none"):
        assert indexes.get_indexes(call, TableName("hive", "default", table), -1) == []
    with pytest.raises(NoSuchObject, match=r"default\.t index=none not found"):
        indexes.get_index(call, NAME, "none")


@pytest.mark.usefixtures("base")
def test_only_parameters_of_an_index_change(call: Call) -> None:
    made = indexes.add_index(call, index(), index_table())
    new = deepcopy(made)
    new.parameters = {"base_timestamp": "1"}
    new.indexHandlerClass = new.indexName = "other"
    indexes.alter_index(call, NAME, "I", new)
    found = indexes.get_index(call, NAME, "i")
    assert (found.indexHandlerClass, found.parameters["base_timestamp"]) == ("org.example.Compact", "1")
    assert set(found.parameters) == {"base_timestamp", "transient_lastDdlTime"}
    with pytest.raises(MetaError, match="index none doesn't exist"):
        indexes.alter_index(call, NAME, "none", new)
    with pytest.raises(InvalidOperation, match="new index is invalid"):
        indexes.alter_index(call, NAME, "i", None)


def test_the_index_table_may_stand_elsewhere_and_may_be_there(call: Call, base: TableName) -> None:
    make_database(call, "d")
    create_table(call, index_table("there", "d"))
    made = indexes.add_index(call, index(index_table="D.there"), None)
    assert made.indexTableName == "d.there"
    indexes.drop_index(call, base, "i", delete_data=True)
    assert names(call, "d") == []


def test_impossible_indexes_are_refused(call: Call, base: TableName) -> None:
    make_table(call, "plain")
    indexes.add_index(call, index("there", index_table="x"), index_table("x"))
    without_sd = index("i")
    without_sd.sd = None  # type: ignore[assignment]  # a client may leave it out
    refused: list[tuple[type[MetastoreError], str, Callable[[], object]]] = [
        (AlreadyExists, "Index already exists: hive.default.t.there", lambda: indexes.add_index(call, index("There"), index_table())),
        (
            AlreadyExists,
            "Index already exists: hive.default.t.there",
            lambda: indexes.add_index(call, index("there", index_table="x"), None),
        ),
        (InvalidObject, "the orginal table do not exist", lambda: indexes.add_index(call, index(table="none"), index_table())),
        (InvalidObject, "the orginal table do not exist", lambda: indexes.add_index(call, index(table="none"), None)),
        (InvalidObject, "index table already exists", lambda: indexes.add_index(call, index(index_table="plain"), index_table("plain"))),
        (InvalidObject, "Underlying index table does not exist", lambda: indexes.add_index(call, index(), None)),
        (InvalidObject, "Underlying index table does not exist", lambda: indexes.add_index(call, index(), index_table("another"))),
        (InvalidObject, "can not hold an index", lambda: indexes.add_index(call, index(index_table="plain"), None)),
        (InvalidObject, r"belongs to index default\.t\.there", lambda: indexes.add_index(call, index(index_table="x"), None)),
        (InvalidObject, "Storage descriptor is not defined", lambda: indexes.add_index(call, without_sd, index_table())),
        (InvalidObject, "name is missing", lambda: indexes.add_index(call, None, index_table())),
        (MetaError, "Table name cannot be null", lambda: indexes.add_index(call, index(index_table=None), None)),
        (NoSuchObject, "default.t index=none not found", lambda: indexes.drop_index(call, base, "none", delete_data=True)),
    ]
    for kind, text, work in refused:
        with pytest.raises(kind, match=text):
            work()
    assert [each.indexName for each in indexes.get_indexes(call, base, -1)] == ["there"]
    assert sorted(names(call)) == ["another", "plain", "t", "x"]


def test_a_table_that_was_made_for_an_index_goes_if_that_can_not_be_added(
    call: Call, base: TableName, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise MetaError("no room")

    monkeypatch.setattr("metastore.service.engines.indexes.indexes.insert", refuse)
    with pytest.raises(MetaError, match="no room"):
        indexes.add_index(call, index(), index_table())
    assert (names(call), indexes.get_indexes(call, base, -1)) == (["t"], [])


def test_an_index_goes_with_its_table_and_data(call: Call, base: TableName) -> None:
    indexes.add_index(call, index(), index_table(keys=("k",)))
    table = tables.get_table(call, TableName("hive", "default", "t_i"))
    place = Path(table.sd.location.removeprefix("file:"))
    assert place.is_dir()
    with pytest.raises(MetaError, match=r"t_i is an index table\. Please do drop index instead\."):
        tables.drop_table(call, TableName("hive", "default", "t_i"), delete_data=True)
    indexes.drop_index(call, base, "I", delete_data=True)
    assert (names(call), indexes.get_indexes(call, base, -1), place.exists()) == (["t"], [], False)


def test_a_table_takes_its_indexes_and_their_tables_along(call: Call, base: TableName) -> None:
    places = []
    for name in ("i", "j"):
        indexes.add_index(call, index(name, index_table=f"x_{name}"), index_table(f"x_{name}"))
        places.append(Path(tables.get_table(call, TableName("hive", "default", f"x_{name}")).sd.location.removeprefix("file:")))
    before = notifications.current_id(call)
    tables.drop_table(call, base, delete_data=False)
    assert names(call) == []
    assert [place.exists() for place in places] == [False, False]
    events = notifications.get_next(call, NotificationEventRequest(lastEvent=before))
    assert sorted((event.eventType, event.tableName) for event in events) == [("DROP_TABLE", name) for name in ("t", "x_i", "x_j")]


def test_an_index_follows_both_of_its_tables(call: Call, base: TableName) -> None:
    indexes.add_index(call, index(), index_table())
    for name, new in ((base, "moved"), (TableName("hive", "default", "t_i"), "moved_i")):
        table = deepcopy(tables.get_table(call, name))
        table.tableName = new
        alter_table(call, name, table)
    assert indexes.get_indexes(call, base, -1) == []
    found = indexes.get_index(call, TableName("hive", "default", "moved"), "i")
    assert (found.origTableName, found.indexTableName) == ("moved", "moved_i")


def test_a_database_goes_with_the_indexes_in_it(call: Call) -> None:
    make_database(call, "d")
    make_table(call, "t", database="d")
    indexes.add_index(call, index(database="d"), index_table(database="d"))
    with pytest.raises(InvalidOperation, match="is not empty"):
        databases.drop_database(call, "hive", "d", delete_data=True, cascade=False)
    databases.drop_database(call, "hive", "d", delete_data=True, cascade=True)
    assert call.database.read(lambda session: session.rows(rows.select())) == []


def test_an_index_that_somebody_else_dropped_meanwhile_is_not_there(call: Call, base: TableName, monkeypatch: pytest.MonkeyPatch) -> None:
    indexes.add_index(call, index(), index_table())

    def late(session: Session, *_: object) -> bool:
        return False

    monkeypatch.setattr("metastore.service.engines.indexes.indexes.delete", late)
    with pytest.raises(NoSuchObject, match=r"default\.t index=i not found"):
        indexes.drop_index(call, base, "i", delete_data=True)
    assert sorted(names(call)) == ["t", "t_i"]


def outcomes(*works: Callable[[], object]) -> list[str]:
    """Run functions at the same time. Return their outcomes, sorted: "done", or the name of the error."""

    def run(work: Callable[[], object]) -> str:
        try:
            work()
        except MetastoreError as error:
            return type(error).__name__
        return "done"

    with ThreadPoolExecutor(len(works)) as threads:
        return sorted(threads.map(run, works))


def test_of_several_who_add_an_index_one_does(call: Call, base: TableName) -> None:
    for number in range(10):
        added = [index(f"i{number}", index_table=f"x{number}_{each}") for each in range(3)]
        found = outcomes(*(partial(indexes.add_index, call, each, index_table(each.indexTableName)) for each in added))
        assert found == ["AlreadyExists", "AlreadyExists", "done"]
    kept = [each.indexTableName for each in indexes.get_indexes(call, base, -1)]
    assert (len(kept), sorted(names(call))) == (10, sorted(["t", *kept]))


def test_an_index_and_its_table_are_dropped_by_two_at_once(call: Call) -> None:
    for _ in range(10):
        base = make_table(call, "t")
        indexes.add_index(call, index(), index_table())
        found = outcomes(
            partial(tables.drop_table, call, base, delete_data=True), partial(indexes.drop_index, call, base, "i", delete_data=True)
        )
        assert found in (["NoSuchObject", "done"], ["done", "done"])
        assert names(call) == []


@pytest.mark.parametrize("size", [1, 5])
def test_statement_counts(call: Call, counts: StatementCounts, base: TableName, size: int) -> None:
    for number in range(size):
        indexes.add_index(call, index(f"i{number}", index_table=f"x{number}"), index_table(f"x{number}"))
    counts("add", lambda: indexes.add_index(call, index(), index_table()))
    counts("read", lambda: indexes.get_index(call, base, "i"))
    counts("list", lambda: indexes.get_indexes(call, base, -1))
    counts("alter", lambda: indexes.alter_index(call, base, "i", index()))
    counts("drop", lambda: indexes.drop_index(call, base, "i", delete_data=True))
