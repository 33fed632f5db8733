"""Exchanging partitions: rows, directories and statistics move together, and nothing has moved when it fails."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from metastore.errors import MetaError, MetastoreError
from metastore.idl import (
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    LongColumnStatsData,
    NotificationEventRequest,
)
from metastore.listeners.events import AddPartitions, DropPartitions, Event
from metastore.service.call.context import Call, Metastore
from metastore.service.call.names import TableName
from metastore.service.catalog.databases import alter_database, get_database
from metastore.service.catalog.exchange import exchange_partitions
from metastore.service.catalog.partitions.alter_partitions import alter_partitions
from metastore.service.catalog.partitions.partitions import get_partition, get_partition_names, get_partitions
from metastore.service.catalog.statistics import statistics, write_statistics
from metastore.service.operations import notifications
from metastore.store.drivers.contract import ReferenceViolation, Retry
from tests.support.catalog.catalog import add_partitions, call_of, make_database, make_table
from tests.support.catalog.recording import Before, Remembering, Within, listening
from tests.support.databases.commits import failing_commits

KEYS = (("y", "string"), ("m", "string"))
SOURCE, TARGET = TableName("hive", "default", "source"), TableName("hive", "default", "target")


@pytest.fixture
def base(call: Call, tmp_path: Path) -> Path:
    """A warehouse with two tables; the first has the partitions 1/a, 1/b, 1/b2 and 2/a, each with a file and statistics."""
    make_table(call, "source", [("a", "int")], keys=KEYS)
    make_table(call, "target", [("a", "int")], keys=KEYS)
    add_partitions(call, SOURCE, [["1", "a"], ["1", "b"], ["1", "b2"], ["2", "a"]])
    for name in get_partition_names(call, SOURCE):
        (tmp_path / "warehouse" / "source" / name / "data").write_text(name)
        description = ColumnStatisticsDesc(isTblLevel=False, dbName="default", tableName="source", partName=name, catName="hive")
        data = ColumnStatisticsData(longStats=LongColumnStatsData(numNulls=0, numDVs=1))
        object_ = ColumnStatisticsObj(colName="a", colType="int", statsData=data)
        write_statistics.set_statistics(call, [ColumnStatistics(statsDesc=description, statsObj=[object_])])
    return tmp_path / "warehouse"


def tree(base: Path) -> set[str]:
    return {str(path.relative_to(base)) for path in base.rglob("*")}


def state(call: Call, base: Path) -> tuple[Any, ...]:
    return tree(base), [
        (get_partitions(call, name), statistics.get_partitions(call, name, get_partition_names(call, name), ["a"]))
        for name in (SOURCE, TARGET)
    ]  # fmt: skip


def test_a_partition_moves_with_all_that_belongs_to_it(call: Call, base: Path) -> None:
    before = get_partition(call, SOURCE, ["1", "b"])
    (moved,) = exchange_partitions(call, {"y": "1", "m": "b", "other": "x"}, SOURCE, TARGET)
    assert moved == get_partition(call, TARGET, ["1", "b"])
    wanted = deepcopy(before)
    wanted.tableName, wanted.sd.location = "target", f"file:{base}/target/y=1/m=b"
    assert moved == wanted
    assert (base / "target/y=1/m=b/data").read_text() == "y=1/m=b"
    assert not (base / "source/y=1/m=b").exists()
    assert get_partition_names(call, SOURCE) == ["y=1/m=a", "y=1/m=b2", "y=2/m=a"]
    assert set(statistics.get_partitions(call, TARGET, ["y=1/m=b"], ["a"])) == {"y=1/m=b"}
    assert not statistics.get_partitions(call, SOURCE, ["y=1/m=b"], ["a"])


def test_a_partial_spec_moves_all_below_it_beside_the_targets_partitions(call: Call, base: Path) -> None:
    add_partitions(call, TARGET, [["1", "z"]])
    moved = exchange_partitions(call, {"Y": "1", "m": ""}, SOURCE, TARGET)
    assert [each.values for each in moved] == [["1", "a"], ["1", "b"], ["1", "b2"]]
    assert get_partition_names(call, TARGET) == ["y=1/m=a", "y=1/m=b", "y=1/m=b2", "y=1/m=z"]
    assert get_partition_names(call, SOURCE) == ["y=2/m=a"]
    assert tree(base / "source") == {"y=2", "y=2/m=a", "y=2/m=a/data"}
    assert {str(path.relative_to(base)) for path in base.rglob("data")} == {
        "source/y=2/m=a/data", "target/y=1/m=a/data", "target/y=1/m=b/data", "target/y=1/m=b2/data",
    }  # fmt: skip


def test_there_and_back_again_leaves_everything_as_it_was(call: Call, base: Path) -> None:
    before = state(call, base)
    for _ in range(2):
        exchange_partitions(call, {"y": "1"}, SOURCE, TARGET)
        exchange_partitions(call, {"y": "1"}, TARGET, SOURCE)
    assert state(call, base) == before


def test_the_default_partition_moves(call: Call, base: Path) -> None:
    add_partitions(call, SOURCE, [["", "n"]])
    exchange_partitions(call, {"y": "__HIVE_DEFAULT_PARTITION__"}, SOURCE, TARGET)
    assert get_partition_names(call, TARGET) == ["y=__HIVE_DEFAULT_PARTITION__/m=n"]


def test_tables_of_two_databases_exchange_unless_one_is_replicated(call: Call, base: Path) -> None:
    make_database(call, "d")
    other = make_table(call, "other", [("a", "int")], keys=KEYS, database="d")
    exchange_partitions(call, {"y": "1", "m": "a"}, SOURCE, other)
    assert (base / "d.db/other/y=1/m=a/data").read_text() == "y=1/m=a"
    database = deepcopy(get_database(call, "hive", "d"))
    database.parameters = {"repl.source.for": "1,2"}
    alter_database(call, "hive", "d", database)
    with pytest.raises(MetaError, match=r"Exchange partition not allowed for hive.default.source Dest db : d: d is being replicated"):
        exchange_partitions(call, {"y": "2"}, SOURCE, other)


@pytest.mark.parametrize(
    ("spec", "match"),
    [
        ({"y": "3"}, "No partition is found with the values {'y': '3'} for the table hive.default.source"),
        ({"y": "1", "m": "c"}, "No partition is found"),
        ({}, "gives no values to the leading partition keys of default.source, which are y, m: give a value to the first"),
        ({"m": "a"}, "gives no values to the leading partition keys"),
        ({"other": "1"}, "gives no values to the leading partition keys"),
    ],
)
def test_a_spec_that_selects_nothing_is_refused(call: Call, base: Path, spec: dict[str, str], match: str) -> None:
    before = state(call, base)
    with pytest.raises(MetaError, match=match):
        exchange_partitions(call, spec, SOURCE, TARGET)
    assert state(call, base) == before


@pytest.mark.parametrize(
    ("columns", "keys"),
    [
        ([("a", "string")], KEYS), ([("b", "int")], KEYS), ([("a", "int"), ("b", "int")], KEYS),
        ([("a", "int")], KEYS[:1]), ([("a", "int")], (("y", "string"), ("m", "int"))), ([("a", "int")], (("y", "string"), ("n", "string"))),
    ],
)  # fmt: skip
def test_tables_with_other_columns_or_keys_exchange_nothing(call: Call, base: Path, columns: Any, keys: Any) -> None:
    other = make_table(call, "other", columns, keys=keys)
    before = state(call, base)
    with pytest.raises(MetaError, match=r"The tables have different schemas. Their partitions cannot be exchanged."):
        exchange_partitions(call, {"y": "1", "m": "a"}, SOURCE, other)
    assert state(call, base) == before


def test_tables_that_are_missing_views_transactional_or_in_another_catalog_exchange_nothing(call: Call, base: Path) -> None:
    missing = TableName("hive", "default", "missing")
    with pytest.raises(MetaError, match=r"The destination table hive.default.missing not found"):
        exchange_partitions(call, {"y": "1"}, SOURCE, missing)
    with pytest.raises(MetaError, match=r"The source table hive.default.missing not found"):
        exchange_partitions(call, {"y": "1"}, missing, TARGET)
    view = make_table(call, "view", [("a", "int")], keys=KEYS, kind="VIRTUAL_VIEW")
    with pytest.raises(MetaError, match=r"default.view is a view"):
        exchange_partitions(call, {"y": "1"}, SOURCE, view)
    acid = make_table(
        call, "acid", [("a", "int")], keys=KEYS, parameters={"transactional": "true", "transactional_properties": "insert_only"}
    )
    with pytest.raises(MetaError, match=r"default.acid is transactional: the write ids of its files mean nothing in another table"):
        exchange_partitions(call, {"y": "1"}, SOURCE, acid)
    with pytest.raises(MetaError, match="You cannot move a partition across catalogs"):
        exchange_partitions(call, {"y": "1"}, SOURCE, TableName("other", "default", "target"))


def put_partition(call: Call, base: Path) -> None:
    add_partitions(call, TARGET, [["1", "b"]])


def put_directory(call: Call, base: Path) -> None:
    (base / "target/y=1/m=b").mkdir(parents=True)


def put_file(call: Call, base: Path) -> None:
    (base / "target/y=1").write_text("in the way")


def lose_directory(call: Call, base: Path) -> None:
    (base / "source/y=1/m=b2/data").unlink()
    (base / "source/y=1/m=b2").rmdir()


def lie_elsewhere(call: Call, base: Path) -> None:
    changed = deepcopy(get_partition(call, SOURCE, ["1", "b2"]))
    changed.sd.location = f"file:{base}/elsewhere"
    (base / "elsewhere").mkdir()
    alter_partitions(call, SOURCE, [changed])


@pytest.mark.parametrize(
    ("hinder", "match"),
    [
        (put_partition, "The partition y=1/m=b already exists in the table hive.default.target"),
        (put_directory, "target/y=1/m=b exists already: no partition can move there"),
        (put_file, "target/y=1 is not a directory"),
        (lose_directory, "source/y=1/m=b2 of the partition y=1/m=b2 does not exist"),
        (lie_elsewhere, "y=1/m=b2 of default.source is at file:.*/elsewhere, not at its default place"),
    ],
)
def test_one_hindrance_keeps_all_where_they_are(call: Call, base: Path, hinder: Any, match: str) -> None:
    hinder(call, base)
    before = state(call, base)
    with pytest.raises(MetaError, match=match):
        exchange_partitions(call, {"y": "1"}, SOURCE, TARGET)
    assert state(call, base) == before


def test_a_move_that_fails_in_the_middle_moves_the_others_back(call: Call, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rename = call.warehouse.rename
    moved = []

    def failing(source: str, target: str) -> None:
        if "target/y=1/m=b2" in target:
            moved.append((base / "target/y=1/m=a/data").exists())
            raise MetaError("the disk is full")
        rename(source, target)

    monkeypatch.setattr(call.warehouse, "rename", failing)
    before = state(call, base)
    with pytest.raises(MetaError, match="the disk is full"):
        exchange_partitions(call, {"y": "1"}, SOURCE, TARGET)
    assert moved == [True]
    assert state(call, base) == before


@pytest.mark.parametrize("vetoed", [AddPartitions, DropPartitions])
def test_a_veto_changes_nothing(metastore: Metastore, call: Call, base: Path, vetoed: type[Event]) -> None:
    def veto(event: Event, _session: Any = None) -> None:
        if isinstance(event, vetoed):
            raise MetaError("no")

    before = state(call, base)
    listener = Remembering()
    for vetoing in (Before(veto), Within(veto)):
        with pytest.raises(MetaError, match="no"):
            exchange_partitions(call_of(listening(metastore, vetoing, listener)), {"y": "1"}, SOURCE, TARGET)
        assert state(call, base) == before
    assert [(type(event), str(error)) for event, error in listener.seen] == [(AddPartitions, "no")] * 2


def test_a_commit_that_fails_moves_everything_back(metastore: Metastore, call: Call, base: Path) -> None:
    before = state(call, base)
    with failing_commits(metastore.database) as spoil:

        def once(event: Event, session: Any) -> None:
            if isinstance(event, DropPartitions):
                spoil(event, session)

        failing = call_of(listening(metastore, Within(once)))
        with pytest.raises((MetastoreError, ReferenceViolation)):
            exchange_partitions(failing, {"y": "1"}, SOURCE, TARGET)
    assert state(call, base) == before


def test_a_conflict_is_tried_again_from_the_beginning(metastore: Metastore, call: Call, base: Path) -> None:
    attempts: list[bool] = []

    def conflict(_event: Event, _session: Any) -> None:
        attempts.append((base / "target/y=1/m=a/data").exists())
        if len(attempts) == 1:
            raise Retry("a conflict")

    exchange_partitions(call_of(listening(metastore, Within(conflict))), {"y": "1"}, SOURCE, TARGET)
    assert attempts == [True, True, True]  # the second attempt has two events: added and dropped partitions
    assert get_partition_names(call, TARGET) == ["y=1/m=a", "y=1/m=b", "y=1/m=b2"]
    assert (base / "target/y=1/m=a/data").exists()


def test_listeners_and_the_notification_log_hear_of_both_sides(metastore: Metastore, call: Call, base: Path) -> None:
    listener = Remembering()
    exchange_partitions(call_of(listening(metastore, listener)), {"y": "2"}, SOURCE, TARGET)
    (added, first), (dropped, second) = listener.seen
    assert (first, second) == (None, None)
    assert isinstance(added, AddPartitions)
    assert isinstance(dropped, DropPartitions)
    assert (added.table.tableName, [each.sd.location for each in added.partitions]) == ("target", [f"file:{base}/target/y=2/m=a"])
    assert (dropped.table.tableName, [each.sd.location for each in dropped.partitions]) == ("source", [f"file:{base}/source/y=2/m=a"])
    last = notifications.current_id(call)
    exchange_partitions(call, {"y": "1"}, SOURCE, TARGET)
    events = notifications.get_next(call, NotificationEventRequest(lastEvent=last))
    assert [(event.eventType, event.tableName) for event in events] == [("ADD_PARTITION", "target"), ("DROP_PARTITION", "source")]
