"""One rule by which all calls read a partition's name: keys in any case and order, values escaped or not."""

from __future__ import annotations

from pathlib import Path

import pytest

from metastore.errors import InvalidObject, MetaError, NoSuchObject
from metastore.idl import (
    AddDynamicPartitions,
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    CompactionRequest,
    CompactionType,
    LockComponent,
    LockLevel,
    LockRequest,
    LockState,
    LockType,
    LongColumnStatsData,
    PartitionEventType,
    ShowCompactRequest,
)
from metastore.service.call.context import Call
from metastore.service.call.names import TableName
from metastore.service.catalog.partitions import partition_marks, partitions
from metastore.service.catalog.partitions.add_partitions import append_partition_by_name
from metastore.service.catalog.partitions.drop_partitions import drop_partition_by_name, drop_partitions
from metastore.service.catalog.statistics import delete_statistics, statistics, write_statistics
from metastore.service.catalog.tables import tables
from metastore.service.catalog.tables.alter_table import alter_table
from metastore.service.catalog.tables.tables import find_table
from metastore.service.compaction import compactions
from metastore.service.transactions import locks, write_ids
from tests.support.acid.txns import begin_one
from tests.support.catalog.catalog import add_partitions, call_of, make_table

pytestmark = pytest.mark.on_one_database

STORED = "at=10%3A00/dt=x"
SPELLINGS = [STORED, "AT=10:00/Dt=x", "dt=x/at=10%3a00", "At=%310:00/DT=x"]
OTHER = "at=10%3A01/dt=X"


@pytest.fixture
def table(call: Call) -> TableName:
    name = make_table(call, "t", keys=[("at", "string"), ("dt", "string")])
    add_partitions(call, name, [["10:00", "x"], ["10:01", "X"]])
    return name


@pytest.mark.parametrize("name", SPELLINGS)
def test_a_partition_is_read_by_any_spelling(call: Call, table: TableName, name: str) -> None:
    assert partitions.get_partition_by_name(call, table, name).values == ["10:00", "x"]
    found = partitions.get_partitions_by_names(call, table, [OTHER, name, name])
    assert [each.values for each in found] == [["10:00", "x"], ["10:01", "X"]]
    for wrong in (name.replace("x", "X"), "at=1", "nonsense"):
        with pytest.raises(NoSuchObject):
            partitions.get_partition_by_name(call, table, wrong)
        assert [each.values for each in partitions.get_partitions_by_names(call, table, [wrong, OTHER])] == [["10:01", "X"]]


@pytest.mark.parametrize("name", SPELLINGS)
def test_a_partition_is_dropped_and_added_by_any_spelling(call: Call, table: TableName, name: str) -> None:
    assert [each.values for each in drop_partitions(call, table, [name, STORED], delete_data=True, if_exists=False)] == [["10:00", "x"]]
    assert append_partition_by_name(call, table, name).values == ["10:00", "x"]
    drop_partition_by_name(call, table, name, delete_data=True)
    assert partitions.get_partition_names(call, table) == [OTHER]
    with pytest.raises(NoSuchObject):
        drop_partitions(call, table, [OTHER, name], delete_data=True, if_exists=False)
    assert drop_partitions(call, table, [name, "nonsense"], delete_data=True, if_exists=True) == []
    assert partitions.get_partition_names(call, table) == [OTHER]


@pytest.mark.parametrize("name", [f"{STORED}/more=1", f"more=1/{STORED}", f"{STORED}/dt=X", f"{STORED}/DT=x"])
def test_a_name_with_a_level_too_much_is_no_partitions(call: Call, table: TableName, name: str) -> None:
    before = partitions.get_partitions(call, table)
    assert partitions.get_partitions_by_names(call, table, [name]) == []
    assert drop_partitions(call, table, [name], delete_data=True, if_exists=True) == []
    for error, refused in (
        (NoSuchObject, lambda: drop_partitions(call, table, [OTHER, name], delete_data=True, if_exists=False)),
        (MetaError, lambda: tables.truncate_table(call, table, [OTHER, name], None)),
        (InvalidObject, lambda: statistics.get_partitions(call, table, [name], ["a"])),
        (InvalidObject, lambda: delete_statistics.from_partitions(call, table, [name], ["a"])),
    ):
        with pytest.raises(error, match=name):
            refused()
    assert partitions.get_partitions(call, table) == before


def test_calls_that_take_one_name_pass_keys_over_that_the_table_lacks(call: Call, table: TableName) -> None:
    assert partitions.get_partition_by_name(call, table, f"{STORED}/more=1").values == ["10:00", "x"]
    assert append_partition_by_name(call, table, "at=1/more=1/dt=2").values == ["1", "2"]
    drop_partition_by_name(call, table, "at=1/dt=2/more=1", delete_data=True)
    with pytest.raises(InvalidObject, match="twice"):
        append_partition_by_name(call, table, "at=1/dt=2/at=3")
    for twice in (f"{STORED}/dt=x", f"{STORED}/At=1"):
        with pytest.raises(NoSuchObject, match="twice"):
            partitions.get_partition_by_name(call, table, twice)
        with pytest.raises(NoSuchObject, match="twice"):
            drop_partition_by_name(call, table, twice, delete_data=True)
    assert partitions.get_partition_names(call, table) == [STORED, OTHER]


@pytest.mark.parametrize("name", SPELLINGS)
def test_a_partition_is_truncated_by_any_spelling(call: Call, table: TableName, name: str) -> None:
    places = [partitions.get_partition_by_name(call, table, each).sd.location for each in (STORED, OTHER)]
    files = [Path(place.removeprefix("file:"), "data") for place in places]
    for file in files:
        file.write_text("x")
    tables.truncate_table(call, table, [name], None)
    assert [file.exists() for file in files] == [False, True]
    with pytest.raises(MetaError, match="doesn't exist"):
        tables.truncate_table(call, table, [OTHER, name.replace("x", "X")], None)
    assert files[1].exists()


@pytest.mark.parametrize("name", SPELLINGS)
def test_statistics_are_of_any_spelling(call: Call, table: TableName, name: str) -> None:
    data = ColumnStatisticsData(longStats=LongColumnStatsData(numNulls=0, numDVs=1))
    struct = ColumnStatisticsObj(colName="a", colType="int", statsData=data)
    description = ColumnStatisticsDesc(isTblLevel=False, dbName="default", tableName="t", partName=name)
    write_statistics.set_statistics(call, [ColumnStatistics(statsDesc=description, statsObj=[struct], engine="hive")])
    for other in SPELLINGS:
        assert list(statistics.get_partitions(call, table, [other], ["a"])) == [STORED]
        assert statistics.get_aggregated(call, table, [other], ["a"]).partsFound == 1
        assert statistics.get_partition(call, table, other, "a").statsObj == [struct]
    delete_statistics.from_partitions(call, table, [name], ["a"])
    assert statistics.get_partitions(call, table, SPELLINGS, ["a"]) == {}
    with pytest.raises(InvalidObject, match="missing dt"):
        statistics.get_partitions(call, table, ["at=10:00"], ["a"])


@pytest.mark.parametrize("name", ["AT=10:00/Dt=x", "At=%310:00/DT=x", "at=10%3a00/dt=x"])
def test_locks_and_compactions_of_one_partition_meet_in_any_spelling(call: Call, table: TableName, name: str) -> None:
    def ask(spelled: str) -> int:
        component = LockComponent(
            type=LockType.EXCLUSIVE, level=LockLevel.PARTITION, dbname="default", tablename="t", partitionname=spelled
        )
        state: int = locks.lock(call, LockRequest(component=[component], user="alice", hostname="here")).state
        return state

    assert [ask(STORED), ask(name), ask(OTHER)] == [LockState.ACQUIRED, LockState.WAITING, LockState.ACQUIRED]
    assert {each.partname for each in locks.show_locks(call, "default", "t", name)} == {STORED}
    transactional = find_table(call, table)
    transactional.parameters = {**transactional.parameters, "transactional": "true", "transactional_properties": "insert_only"}
    alter_table(call, table, transactional)
    for spelled, accepted in ((STORED, True), (name, False)):
        request = CompactionRequest(dbname="default", tablename="t", partitionname=spelled, type=CompactionType.MAJOR)
        assert compactions.compact(call, request).accepted is accepted
    found = compactions.show(call, ShowCompactRequest(dbName="default", tbName="t", partName=name))
    assert [each.partitionname for each in found] == [STORED]


def test_marks_know_keys_in_any_case(call: Call, table: TableName) -> None:
    done = PartitionEventType.LOAD_DONE
    partition_marks.mark(call, table, {"AT": "10:00", "dt": "x"}, done)
    assert partition_marks.is_marked(call_of(call.metastore), table, {"at": "10:00", "DT": "x"}, done)
    assert not partition_marks.is_marked(call, table, {"at": "10:00", "dt": "X"}, done)


def test_dynamic_partitions_are_noted_as_they_are_stored(call: Call, table: TableName) -> None:
    transaction = begin_one(call)
    write_ids.add_dynamic_partitions(
        call, AddDynamicPartitions(txnid=transaction, writeid=1, dbname="default", tablename="t", partitionnames=["AT=10:00/Dt=x", STORED])
    )
    assert [intent.partition for intent in call.client.hints.of(transaction).intents] == [STORED]
