"""Statistics are valid for the data of which they were gathered: not after it was removed or moved. Only a counted number is exact."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path

import pytest

from metastore.rules.statistics.statistics_validity import StatisticsWriter
from metastore.rules.transactions.snapshots import snapshot
from metastore.service.call.context import Call
from metastore.service.call.names import TableName
from metastore.service.catalog.partitions.alter_partitions import alter_partitions
from metastore.service.catalog.partitions.partitions import get_partition, get_partitions
from metastore.service.catalog.statistics import write_statistics
from metastore.service.catalog.tables.alter_table import alter_table
from metastore.service.catalog.tables.tables import get_table, truncate_table
from tests.support.catalog.catalog import add_partitions, make_table
from tests.support.catalog.column_statistics import numbers, of, with_statistics

pytestmark = pytest.mark.on_one_database

GATHERED = {"DO_NOT_UPDATE_STATS": "true"}
EXACT = '{"BASIC_STATS":"true"}'


@pytest.mark.parametrize("transactional", [True, False])
@pytest.mark.parametrize(
    ("before", "after", "stays"),
    [
        ({"numRows": "4"}, {"numRows": "4", "COLUMN_STATS_ACCURATE": EXACT}, False),
        ({}, {"COLUMN_STATS_ACCURATE": EXACT}, False),
        ({"numRows": "4"}, {"numRows": "37", "COLUMN_STATS_ACCURATE": EXACT}, True),
        ({}, {"numRows": "0", "COLUMN_STATS_ACCURATE": EXACT}, True),
        ({"numRows": "4", "COLUMN_STATS_ACCURATE": EXACT}, {"numRows": "4", "COLUMN_STATS_ACCURATE": EXACT, "k": "v"}, True),
        ({"numRows": "4"}, {"numRows": "4", "COLUMN_STATS_ACCURATE": '{"COLUMN_STATS":{"a":"true"}}'}, True),
    ],
)
def test_no_number_of_rows_becomes_exact_without_being_counted(
    call: Call, before: dict[str, str], after: dict[str, str], stays: bool, transactional: bool
) -> None:
    kind = {"transactional": "true", "transactional_properties": "insert_only"} if transactional else {}
    name = make_table(call, "t", keys=[("p", "string")], parameters=kind)
    add_partitions(call, name, [["1"]])
    for write_id, parameters in enumerate((before, after), 1):
        by = StatisticsWriter(write_id, snapshot(write_id, (), ()))
        partition = get_partition(call, name, ["1"])
        partition.parameters = dict(parameters)
        alter_partitions(call, name, [partition], environment=GATHERED, by=by)
        table = get_table(call, name)
        table.parameters = {**kind, **parameters}
        alter_table(call, name, table, environment=GATHERED, by=by)
    for found in (get_partition(call, name, ["1"]).parameters, get_table(call, name).parameters):
        assert ("COLUMN_STATS_ACCURATE" in found) == (stays or not transactional)
        assert found.get("numRows") == after.get("numRows")


def analyzed(call: Call, name: TableName, *names: str) -> None:
    """Give a table, or partitions of it, statistics of a column."""
    write_statistics.set_statistics(call, [of(name, numbers("a", 1, 9), partition=each) for each in names or (None,)])


COUNTED = {
    "numRows": "77",
    "rawDataSize": "9",
    "numFiles": "5",
    "totalSize": "6",
    "COLUMN_STATS_ACCURATE": EXACT,
    "spark.sql.statistics.numRows": "77",
    "spark.sql.statistics.colStats.a.max": "9",
}


def set_parameters(call: Call, name: TableName, *values: str) -> None:
    if not values:
        table = deepcopy(get_table(call, name))
        table.parameters |= COUNTED
        alter_table(call, name, table, environment=GATHERED)
    for value in values:
        partition = deepcopy(get_partition(call, name, [value]))
        partition.parameters |= COUNTED
        alter_partitions(call, name, [partition], environment=GATHERED)


def counted(parameters: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in parameters.items() if key in COUNTED}


def test_a_truncated_table_is_known_to_be_empty(call: Call) -> None:
    name = make_table(call, "t")
    analyzed(call, name)
    set_parameters(call, name)
    truncate_table(call, name, None, None)
    assert with_statistics(call, name) == []
    assert counted(get_table(call, name).parameters) == {"numRows": "0", "rawDataSize": "0", "numFiles": "0", "totalSize": "0"}


@pytest.mark.parametrize(("truncated", "kept"), [(["k=1"], ["k=2"]), (["K=1", "k=2"], []), (None, []), ([], [])])
def test_truncated_partitions_are_known_to_be_empty_and_others_are_not(call: Call, truncated: list[str] | None, kept: list[str]) -> None:
    name = make_table(call, "t", keys=[("k", "int")])
    add_partitions(call, name, [["1"], ["2"]])
    analyzed(call, name, "k=1", "k=2")
    set_parameters(call, name, "1", "2")
    truncate_table(call, name, truncated, None)
    assert with_statistics(call, name, "k=1", "k=2") == kept
    rows = {f"k={each.values[0]}": each.parameters["numRows"] for each in get_partitions(call, name)}
    assert rows == {each: "77" if each in kept else "0" for each in ("k=1", "k=2")}


@pytest.mark.parametrize("environment", [{}, GATHERED])
@pytest.mark.parametrize("kind", ["MANAGED_TABLE", "EXTERNAL_TABLE"])
def test_nothing_is_known_of_the_data_at_a_new_location(call: Call, tmp_path: Path, kind: str, environment: dict[str, str]) -> None:
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "data").write_text("four")
    name = make_table(call, "t", kind=kind, parameters={"EXTERNAL": "TRUE"} if kind == "EXTERNAL_TABLE" else {})
    analyzed(call, name)
    set_parameters(call, name)
    table = deepcopy(get_table(call, name))
    table.sd.location = f"file://{table.sd.location.removeprefix('file:')}/"
    alter_table(call, name, table, environment=GATHERED)
    assert with_statistics(call, name) == ["a"], "that is not another place"
    assert counted(get_table(call, name).parameters) == COUNTED
    table.sd.location = f"file:{tmp_path}/new"
    alter_table(call, name, table, environment=environment)
    assert with_statistics(call, name) == []
    assert counted(get_table(call, name).parameters) == ({} if environment else {"numFiles": "1", "totalSize": "4"})


@pytest.mark.parametrize("kind", ["MANAGED_TABLE", "EXTERNAL_TABLE"])
def test_a_rename_that_moves_no_directory_counts_its_files(call: Call, kind: str) -> None:
    """Hive does the same. The counts of a table that moves do not change."""
    name = make_table(call, "t", kind=kind, parameters={"EXTERNAL": "TRUE"} if kind == "EXTERNAL_TABLE" else {})
    table = deepcopy(get_table(call, name))
    Path(table.sd.location.removeprefix("file:"), "data").write_text("four")
    table.tableName = "u"
    alter_table(call, name, table)
    found = counted(get_table(call, name._replace(table="u")).parameters)
    assert found == ({"numFiles": "1", "totalSize": "4"} if kind == "EXTERNAL_TABLE" else {})


@pytest.mark.parametrize("environment", [{}, GATHERED])
def test_nothing_is_known_of_the_data_at_a_partition_s_new_location(call: Call, tmp_path: Path, environment: dict[str, str]) -> None:
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "data").write_text("four")
    name = make_table(call, "t", keys=[("k", "int")])
    add_partitions(call, name, [["1"], ["2"]])
    analyzed(call, name, "k=1", "k=2")
    set_parameters(call, name, "1", "2")
    one, two = deepcopy(get_partitions(call, name))
    one.sd.location = f"file:{tmp_path}/new"
    alter_partitions(call, name, [one, two], environment=environment)
    assert with_statistics(call, name, "k=1", "k=2") == ["k=2"]
    one, two = get_partitions(call, name)
    assert counted(one.parameters) == ({} if environment else {"numFiles": "1", "totalSize": "4"})
    assert two.parameters["numRows"] == "77"


def test_statistics_that_come_with_a_new_location_are_of_its_data(call: Call, tmp_path: Path) -> None:
    name = make_table(call, "t", keys=[("k", "int")])
    plain = make_table(call, "plain")
    add_partitions(call, name, [["1"]])
    set_parameters(call, name, "1")
    set_parameters(call, plain)
    partition, table = deepcopy(get_partition(call, name, ["1"])), deepcopy(get_table(call, plain))
    for each in (partition, table):
        each.sd.location = f"file:{tmp_path}/new"
    alter_partitions(call, name, [partition], environment={"STATS_GENERATED": "TASK"})
    table.parameters["numRows"] = "5"
    alter_table(call, plain, table)
    assert get_partition(call, name, ["1"]).parameters["numRows"] == "77"
    assert get_table(call, plain).parameters["numRows"] == "5"
    assert "rawDataSize" not in get_table(call, plain).parameters


@pytest.mark.parametrize(("who", "stays"), [("TASK", True), ("USER", False)])
def test_a_number_of_rows_that_a_user_writes_down_is_not_called_exact(call: Call, who: str, stays: bool) -> None:
    """Hive would answer count(*) from a user's number. A task has counted the rows."""
    exact = {"COLUMN_STATS_ACCURATE": EXACT, "numRows": "5"}
    name, plain = make_table(call, "t", keys=[("k", "int")]), make_table(call, "plain")
    add_partitions(call, name, [["1"]])
    partition, table = deepcopy(get_partition(call, name, ["1"])), deepcopy(get_table(call, plain))
    for each in (partition, table):
        each.parameters.update(exact)
    alter_partitions(call, name, [partition], environment={"STATS_GENERATED": who})
    alter_table(call, plain, table, environment={"STATS_GENERATED": who})
    for found in (get_partition(call, name, ["1"]), get_table(call, plain)):
        assert found.parameters["numRows"] == "5"
        assert ("COLUMN_STATS_ACCURATE" in found.parameters) is stays


def test_a_new_location_of_a_partitioned_or_an_iceberg_table_is_of_the_same_data(call: Call, tmp_path: Path) -> None:
    for name in (make_table(call, "t", keys=[("k", "int")]), make_table(call, "i", parameters={"table_type": "ICEBERG"})):
        analyzed(call, name)
        set_parameters(call, name)
        table = deepcopy(get_table(call, name))
        table.sd.location = f"file:{tmp_path}/{name.table}"
        alter_table(call, name, table, environment=GATHERED)
        assert with_statistics(call, name) == ["a"]
        assert counted(get_table(call, name).parameters) == COUNTED
