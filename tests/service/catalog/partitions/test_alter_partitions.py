"""Altering and renaming partitions: their names, directories and statistics, which a failure leaves unchanged."""

from __future__ import annotations

import errno
import os
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from metastore.errors import InvalidOperation, MetaError
from metastore.idl import (
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    FieldSchema,
    LongColumnStatsData,
    Partition,
    StringColumnStatsData,
)
from metastore.listeners.events import AlterPartitions, Event
from metastore.rules.statistics.statistics_validity import exact_columns
from metastore.service.call.context import Call, Metastore
from metastore.service.call.names import TableName
from metastore.service.catalog.partitions.alter_partitions import alter_partitions, rename_partition
from metastore.service.catalog.partitions.partitions import get_partition, get_partitions
from metastore.service.catalog.statistics import statistics, write_statistics
from metastore.store.drivers.contract import ReferenceViolation, Retry
from tests.support.catalog.catalog import MetastoreMaker, add_partitions, call_of, columns_of, make_table
from tests.support.catalog.recording import Before, Remembering, Within, listening
from tests.support.databases.commits import failing_commits

pytestmark = pytest.mark.on_one_database

NAME = TableName("hive", "default", "t")


@pytest.fixture
def base(call: Call, tmp_path: Path) -> Path:
    """The directory of a managed table with columns a and b and the partitions p=1 and p=2, each with a file and statistics."""
    make_table(call, "t", [("a", "int"), ("b", "int")], keys=[("p", "string")])
    add(call, "1", "2")
    place = tmp_path / "warehouse" / "t"
    for value in "12":
        (place / f"p={value}" / "data").write_text(value)
        description = ColumnStatisticsDesc(isTblLevel=False, dbName="default", tableName="t", partName=f"p={value}", catName="hive")
        data = ColumnStatisticsData(longStats=LongColumnStatsData(numNulls=0, numDVs=1))
        objects = [ColumnStatisticsObj(colName=column, colType="int", statsData=data) for column in "ab"]
        write_statistics.set_statistics(call, [ColumnStatistics(statsDesc=description, statsObj=objects)])
    return place


def add(call: Call, *values: str) -> None:
    from metastore.service.catalog.partitions.add_partitions import append_partition

    for value in values:
        append_partition(call, NAME, [value])


def described(call: Call, *partitions: str) -> dict[str, set[str]]:
    """Return the columns with statistics, by partition."""
    found = statistics.get_partitions(call, NAME, list(partitions), ["a", "b"])
    return {name: {each.colName for each in of.statsObj} for name, of in found.items()}


def changed(call: Call, value: str, **fields: Any) -> Partition:
    found = deepcopy(get_partition(call, NAME, [value]))
    for name, new in fields.items():
        setattr(found, name, new)
    return found


def state(call: Call, base: Path) -> tuple[Any, ...]:
    tree = {str(path.relative_to(base)) for path in base.rglob("*")}
    found = [(each.values, each.sd.location, each.parameters) for each in get_partitions(call, NAME)]
    return tree, found, described(call, *(f"p={value}" for value in "1239"))


def test_a_rename_moves_the_directory_and_the_column_statistics_stay(metastore: Metastore, call: Call, base: Path) -> None:
    listener = Remembering()
    rename_partition(call_of(listening(metastore, listener)), NAME, ["1"], changed(call, "1", values=["a b/c"]))
    found = get_partition(call, NAME, ["a b/c"])
    assert found.sd.location == f"file:{base}/p=a b%2Fc"
    assert (base / "p=a b%2Fc" / "data").read_text() == "1"
    assert not (base / "p=1").exists()
    assert described(call, "p=1", "p=2", "p=a b%2Fc") == {"p=2": {"a", "b"}, "p=a b%2Fc": {"a", "b"}}
    ((event, error),) = listener.seen
    assert isinstance(event, AlterPartitions)
    assert error is None
    assert [each.values for each in (*event.before, *event.after)] == [["1"], ["a b/c"]]


def test_a_rename_keeps_the_statistics_of_columns_that_are_the_same(call: Call, base: Path) -> None:
    data = ColumnStatisticsData(stringStats=StringColumnStatsData(maxColLen=1, avgColLen=1.0, numNulls=0, numDVs=1))
    description = ColumnStatisticsDesc(isTblLevel=False, dbName="default", tableName="t", partName="p=1")
    of_key = ColumnStatisticsObj(colName="p", colType="string", statsData=data)
    write_statistics.set_statistics(call, [ColumnStatistics(statsDesc=description, statsObj=[of_key])])
    new = changed(call, "1", values=["3"])
    assert exact_columns(new.parameters) == {"a", "b", "p"}
    new.sd.cols[1].type = "bigint"
    rename_partition(call, NAME, ["1"], new, environment={"DO_NOT_UPDATE_STATS": "true"})
    found = statistics.get_partitions(call, NAME, ["p=1", "p=3"], ["a", "b", "p"])
    assert [(name, [each.colName for each in of.statsObj]) for name, of in found.items()] == [("p=3", ["a"])]
    assert exact_columns(get_partition(call, NAME, ["3"]).parameters) == {"a"}
    add(call, "1")
    assert described(call, "p=1") == {}


def test_a_rename_of_a_partition_elsewhere_moves_nothing(call: Call, base: Path, tmp_path: Path) -> None:
    alter_partitions(call, NAME, [_at(call, "1", f"file:{tmp_path}/elsewhere")])
    rename_partition(call, NAME, ["1"], changed(call, "1", values=["3"]))
    assert get_partition(call, NAME, ["3"]).sd.location == f"file:{tmp_path}/elsewhere"
    assert (base / "p=1" / "data").exists()


def _at(call: Call, value: str, location: str) -> Partition:
    found = changed(call, value)
    found.sd.location = location
    return found


def test_a_rename_in_an_external_table_moves_nothing(call: Call, tmp_path: Path) -> None:
    make_table(call, "t", keys=[("p", "string")], kind="EXTERNAL_TABLE", parameters={"EXTERNAL": "TRUE"})
    add(call, "1")
    rename_partition(call, NAME, ["1"], changed(call, "1", values=["3"]))
    assert get_partition(call, NAME, ["3"]).sd.location == f"file:{tmp_path}/warehouse/t/p=1"
    assert (tmp_path / "warehouse" / "t" / "p=1").is_dir()


@pytest.mark.parametrize(
    ("old", "new", "error", "match"),
    [
        ("1", ["2"], InvalidOperation, "Partition already exists"),
        ("7", ["3"], InvalidOperation, "Partition p=7 of hive.default.t does not exist"),
        ("1", ["a\0b"], MetaError, "contains a NUL character"),
        ("1", ["3", "4"], MetaError, "Invalid partition key & values"),
        ("1", None, InvalidOperation, "the new partition has no values"),
    ],
)
def test_a_rename_that_is_refused_changes_nothing(
    call: Call, base: Path, old: str, new: list[str] | None, error: type[Exception], match: str
) -> None:
    before = state(call, base)
    with pytest.raises(error, match=match):
        rename_partition(call, NAME, [old], changed(call, "1", values=new))
    assert state(call, base) == before


def test_a_new_name_must_match_the_whitelist_but_an_old_one_need_not(make_metastore: MetastoreMaker, call: Call, base: Path) -> None:
    add(call, "OLD")
    strict = call_of(make_metastore(partition_name_whitelist="[a-z0-9]*"))
    before = state(call, base)
    with pytest.raises(MetaError, match=r"'NEW' contains a character not matched by whitelist pattern"):
        rename_partition(strict, NAME, ["1"], changed(call, "1", values=["NEW"]))
    assert state(call, base) == before
    rename_partition(strict, NAME, ["OLD"], changed(call, "OLD", values=["new"]))
    assert (base / "p=new").is_dir()


@pytest.mark.parametrize("empty", [True, False])
def test_a_target_directory_that_is_there_is_not_touched(call: Call, base: Path, *, empty: bool) -> None:
    (base / "p=3").mkdir()
    if not empty:
        (base / "p=3" / "other").write_text("another's")
    before = state(call, base)
    with pytest.raises(InvalidOperation, match="New location for this partition p=3 already exists"):
        rename_partition(call, NAME, ["1"], changed(call, "1", values=["3"]))
    assert state(call, base) == before


def test_a_target_that_another_makes_at_the_last_moment_is_not_swallowed(call: Call, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = call.warehouse.rename
    before = state(call, base)

    def rename(source: str, target: str) -> None:
        (base / "p=3").mkdir()
        real(source, target)

    monkeypatch.setattr(call.warehouse, "rename", rename)
    with pytest.raises(MetaError, match=r"p=3 exists already"):
        rename_partition(call, NAME, ["1"], changed(call, "1", values=["3"]))
    (base / "p=3").rmdir()
    assert state(call, base) == before


def test_a_move_is_undone_when_the_commit_fails(metastore: Metastore, call: Call, base: Path) -> None:
    before = state(call, base)
    there: list[bool] = []
    with failing_commits(metastore.database) as spoil:

        def work(event: Event, session: Any) -> None:
            there.append((base / "p=3" / "data").exists() and not (base / "p=1").exists())
            spoil(event, session)

        listener = Remembering()
        expected = MetaError if metastore.database.driver.name == "mysql" else ReferenceViolation
        with pytest.raises(expected):
            rename_partition(call_of(listening(metastore, Within(work), listener)), NAME, ["1"], changed(call, "1", values=["3"]))
    assert there == [True]
    assert state(call, base) == before
    ((_, error),) = listener.seen
    assert isinstance(error, expected)


def test_a_move_is_undone_when_a_transactional_listener_fails(metastore: Metastore, call: Call, base: Path) -> None:
    before = state(call, base)

    def refuse(_event: Event, _session: Any) -> None:
        raise InvalidOperation("not now")

    with pytest.raises(InvalidOperation, match="not now"):
        rename_partition(call_of(listening(metastore, Within(refuse))), NAME, ["1"], changed(call, "1", values=["3"]))
    assert state(call, base) == before


def test_a_rename_that_begins_again_after_a_conflict_moves_the_directory_once(metastore: Metastore, call: Call, base: Path) -> None:
    runs: list[int] = []

    def conflict(_event: Event, _session: Any) -> None:
        runs.append(1)
        if len(runs) < 3:
            raise Retry

    rename_partition(call_of(listening(metastore, Within(conflict))), NAME, ["1"], changed(call, "1", values=["3"]))
    assert len(runs) == 3
    assert (base / "p=3" / "data").read_text() == "1"
    assert get_partition(call, NAME, ["3"]).sd.location == f"file:{base}/p=3"


def test_a_move_that_fails_changes_no_row(call: Call, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = state(call, base)

    def rename(_old: str, _new: str) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", rename)
        with pytest.raises(MetaError, match="Read-only file system"):
            rename_partition(call, NAME, ["1"], changed(call, "1", values=["3"]))
    assert state(call, base) == before


def test_a_veto_changes_nothing(metastore: Metastore, call: Call, base: Path) -> None:
    def refuse(event: Event) -> None:
        assert isinstance(event, AlterPartitions)
        raise InvalidOperation("refused")

    before = state(call, base)
    listener = Remembering()
    refusing = call_of(listening(metastore, Before(refuse), listener))
    for change in (
        lambda: rename_partition(refusing, NAME, ["1"], changed(call, "1", values=["3"])),
        lambda: alter_partitions(refusing, NAME, [changed(call, "1", parameters={})]),
    ):
        with pytest.raises(InvalidOperation, match="refused"):
            change()
    assert state(call, base) == before
    assert [type(error) for _, error in listener.seen] == [InvalidOperation] * 2


def test_an_alter_without_changed_columns_keeps_column_statistics(call: Call, base: Path) -> None:
    alter_partitions(call, NAME, [changed(call, "1", parameters={"new": "x"})])
    assert get_partition(call, NAME, ["1"]).parameters["new"] == "x"
    assert described(call, "p=1", "p=2") == {"p=1": {"a", "b"}, "p=2": {"a", "b"}}


@pytest.mark.parametrize(
    ("columns", "left"),
    [
        ((("a", "int"), ("b", "bigint")), {"a"}),
        ((("a", "int"),), {"a"}),
        ((("b", "int"), ("a", "int")), {"a", "b"}),
        ((("a", "int"), ("b", "int"), ("c", "int")), {"a", "b"}),
        ((("x", "int"), ("y", "int")), set()),
    ],
)
def test_statistics_of_columns_that_go_or_change_their_type_are_lost(
    call: Call, base: Path, columns: tuple[tuple[str, str], ...], left: set[str]
) -> None:
    new = changed(call, "1")
    new.sd.cols = columns_of(*columns)
    alter_partitions(call, NAME, [new])
    expected = {"p=1": left, "p=2": {"a", "b"}} if left else {"p=2": {"a", "b"}}
    assert described(call, "p=1", "p=2") == expected
    assert get_partition(call, NAME, ["1"]).sd.cols == new.sd.cols


def test_a_comment_is_no_change_of_a_column(call: Call, base: Path) -> None:
    new = changed(call, "1")
    new.sd.cols = [FieldSchema(name="a", type="int", comment="new"), FieldSchema(name="b", type="int")]
    alter_partitions(call, NAME, [new])
    assert described(call, "p=1") == {"p=1": {"a", "b"}}


def test_basic_statistics_are_updated_unless_the_request_says_not(call: Call, base: Path) -> None:
    (base / "p=1" / "more").write_text("12345")
    kept = changed(call, "1", parameters={"numFiles": "9", "totalSize": "9"})
    alter_partitions(call, NAME, [kept], environment={"DO_NOT_UPDATE_STATS": "true"})
    assert get_partition(call, NAME, ["1"]).parameters["numFiles"] == "9"
    alter_partitions(call, NAME, [changed(call, "1", parameters={})])
    parameters = get_partition(call, NAME, ["1"]).parameters
    assert (parameters["numFiles"], parameters["totalSize"]) == ("2", "6")


@pytest.mark.parametrize(
    ("values", "error", "match"),
    [
        (("1", "7"), InvalidOperation, "alter is not possible: partition p=7 of hive.default.t does not exist"),
        (("1", "1"), MetaError, "Duplicate partitions in the list"),
    ],
)
def test_of_many_altered_partitions_one_that_does_not_fit_fails_all(
    call: Call, base: Path, values: tuple[str, ...], error: type[Exception], match: str
) -> None:
    before = state(call, base)
    new = [changed(call, "1", values=[value], parameters={"new": "x"}) for value in values]
    with pytest.raises(error, match=match):
        alter_partitions(call, NAME, new)
    assert state(call, base) == before


@pytest.mark.parametrize("foreign", [{"catName": "spark"}, {"dbName": "d"}, {"tableName": "u"}, {"dbName": None}])
def test_a_partition_that_names_another_table_or_catalog_is_refused(call: Call, base: Path, foreign: dict[str, str | None]) -> None:
    before = state(call, base)
    for change in (
        lambda: alter_partitions(call, NAME, [changed(call, "1", **foreign)]),
        lambda: rename_partition(call, NAME, ["1"], changed(call, "1", values=["3"], **foreign)),
    ):
        with pytest.raises(MetaError, match=r"Partition does not belong to target table hive\.default\.t"):
            change()
    assert state(call, base) == before


def test_names_in_another_case_are_those_of_the_table(call: Call, base: Path) -> None:
    spelled = {"catName": "Hive", "dbName": "DEFAULT", "tableName": "T"}
    alter_partitions(call, NAME, [changed(call, "1", **spelled), changed(call, "2")])
    rename_partition(call, NAME, ["1"], changed(call, "1", values=["3"], **spelled))
    found = get_partition(call, NAME, ["3"])
    assert (found.catName, found.dbName, found.tableName) == tuple(NAME)


def test_a_missing_table_is_an_invalid_operation(call: Call) -> None:
    missing = TableName("hive", "default", "missing")
    new = Partition(values=["1"], dbName="default", tableName="missing")
    for change in (lambda: alter_partitions(call, missing, [new]), lambda: rename_partition(call, missing, ["0"], new)):
        with pytest.raises(InvalidOperation, match="table or database does not exist"):
            change()


def test_a_rename_to_its_own_name_is_an_alter(call: Call, base: Path) -> None:
    rename_partition(call, NAME, ["1"], changed(call, "1", parameters={"new": "x"}))
    assert get_partition(call, NAME, ["1"]).parameters["new"] == "x"
    assert described(call, "p=1") == {"p=1": {"a", "b"}}
    assert (base / "p=1" / "data").exists()


def test_partitions_of_another_table_are_refused(call: Call, base: Path) -> None:
    make_table(call, "u", keys=[("p", "string")])
    add_partitions(call, TableName("hive", "default", "u"), [])
    with pytest.raises(MetaError, match="Partition does not belong to target table"):
        alter_partitions(call, NAME, [changed(call, "1", tableName="u")])
