"""New tables and partitions that bring statistics along, as Hive's replication makes them."""

from __future__ import annotations

import orjson
import pytest

from metastore.errors import InvalidObject, MetaError, NoSuchObject
from metastore.idl import (
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsObj,
    NotificationEventRequest,
    Partition,
    SerDeInfo,
    StorageDescriptor,
    Table,
)
from metastore.listeners.notifications.log import message_text
from metastore.service.call.context import Call
from metastore.service.call.names import TableName
from metastore.service.catalog.partitions.add_partitions import add_partitions as add
from metastore.service.catalog.partitions.partitions import get_partition_names
from metastore.service.catalog.statistics import statistics
from metastore.service.catalog.tables.create_table import create_table
from metastore.service.catalog.tables.tables import get_table
from metastore.service.operations import notifications
from tests.support.catalog.catalog import columns_of, make_table
from tests.support.catalog.column_statistics import numbers, of

pytestmark = pytest.mark.on_one_database


@pytest.mark.parametrize("write_id", [None, 3])
@pytest.mark.parametrize("transactional", [False, True])
def test_a_new_table_brings_its_statistics_along(call: Call, transactional: bool, write_id: int | None) -> None:
    """Hive's replication makes such tables. A transactional table's statistics are valid only under the write id of their source."""
    name = TableName("hive", "default", "t")
    new = replicated(name, transactional=transactional, writeId=write_id, colStats=of(name, numbers("a", 1, 2)))
    create_table(call, new)
    found = statistics.get_table(call, name, ["a", "b"]).statsObj
    assert found == ([numbers("a", 1, 2)] if write_id or not transactional else [])
    event = notifications.get_next(call, NotificationEventRequest(lastEvent=0, eventTypeList=["CREATE_TABLE"]))[-1]
    assert "21" not in orjson.loads(orjson.loads(message_text(event))["tableObjJson"])
    if found and transactional:
        assert get_table(call, name).writeId == 3


@pytest.mark.parametrize("transactional", [False, True])
def test_new_partitions_bring_their_statistics_along(call: Call, transactional: bool) -> None:
    name = TableName("hive", "default", "t")
    create_table(call, replicated(name, transactional=transactional, partitionKeys=columns_of(("k", "string"))))
    sd = replicated(name).sd
    sd.location = None  # type: ignore[assignment]

    def part(value: str, low: int) -> Partition:
        brought = of(name, numbers("a", low, 9), partition=f"K={value}")
        return Partition(values=[value], dbName="default", tableName="t", sd=sd, parameters={}, colStats=brought, writeId=low)

    add(call, name, [part("1", 1)])
    add(call, name, [part("1", 5), part("2", 2), part("3", 3)], if_not_exists=True)
    found = statistics.get_partitions(call, name, ["k=1", "k=2", "k=3"], ["a"])
    assert {each: value.statsObj for each, value in found.items()} == {f"k={low}": [numbers("a", low, 9)] for low in (1, 2, 3)}
    events = notifications.get_next(call, NotificationEventRequest(lastEvent=0, eventTypeList=["ADD_PARTITION"]))
    texts = [text for event in events for text in orjson.loads(message_text(event))["partitionListJson"]]
    assert [orjson.loads(text).keys() & {"10", "12"} for text in texts] == [{"10"}] * 3


def test_statistics_of_another_table_are_not_brought_along(call: Call) -> None:
    other, name = make_table(call, "other"), TableName("hive", "default", "t")
    create_table(call, replicated(name, colStats=of(other, numbers("a", 1, 2))))
    assert [statistics.get_table(call, each, ["a"]).statsObj for each in (name, other)] == [[], []]


def test_nothing_is_made_that_brings_wrong_statistics_along(call: Call) -> None:
    name = TableName("hive", "default", "t")
    empty = ColumnStatisticsObj(colName="a", colType="int", statsData=ColumnStatisticsData())
    for wrong, error in ((numbers("z", 1, 2), MetaError), (empty, InvalidObject)):
        with pytest.raises(error, match=r"olumn [az]"):
            create_table(call, replicated(name, colStats=of(name, wrong)))
        with pytest.raises(NoSuchObject):
            get_table(call, name)
    with pytest.raises(MetaError, match="need a statsDesc"):
        create_table(call, replicated(name, colStats=ColumnStatistics(statsObj=[numbers("a", 1, 2)])))
    create_table(call, replicated(name, partitionKeys=columns_of(("k", "string"))))
    sd = replicated(name).sd
    new = [Partition(values=[each], dbName="default", tableName="t", sd=sd, parameters={}) for each in "12"]
    new[1].colStats = of(name, numbers("z", 1, 2), partition="k=2")
    with pytest.raises(MetaError, match="Column z"):
        add(call, name, new)
    assert get_partition_names(call, name) == []


def replicated(name: TableName, *, transactional: bool = False, **fields: object) -> Table:
    sd = StorageDescriptor(
        cols=columns_of(("a", "int"), ("b", "string")), inputFormat="in", outputFormat="out", serdeInfo=SerDeInfo(parameters={})
    )
    parameters = {"transactional": "true", "transactional_properties": "insert_only"} if transactional else {}
    return Table(
        dbName=name.database,
        tableName=name.table,
        tableType="MANAGED_TABLE",
        sd=sd,
        parameters=parameters,
        **fields,  # type: ignore[arg-type]
    )
