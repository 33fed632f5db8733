"""Events that share a row have the messages that each would have had in a row of its own."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import orjson
import pytest

from metastore.binary import to_bytes
from metastore.config import Config
from metastore.idl import (
    BooleanColumnStatsData,
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    FieldSchema,
    LongColumnStatsData,
    NotificationEvent,
    Partition,
    PrincipalPrivilegeSet,
    SerDeInfo,
    SkewedInfo,
    StorageDescriptor,
    Table,
    TxnType,
)
from metastore.listeners.events import (
    AbortTransactions,
    AddPartitions,
    AllocateWriteIds,
    AlterPartitions,
    ClientInfo,
    Event,
    OpenTransactions,
    UpdateStatistics,
)
from metastore.listeners.notifications import NotificationLog, events_of
from metastore.listeners.notifications.log import GZIP, PLAIN
from metastore.listeners.notifications.messages import of
from metastore.listeners.notifications.packing import EVENTS, ONE, compressed, pack, subject, unpack

TABLE = Table(
    catName="hive",
    dbName="d",
    tableName="t",
    tableType="MANAGED_TABLE",
    sd=StorageDescriptor(cols=[FieldSchema("a", "int", None)]),
    partitionKeys=[FieldSchema("k", "string", None)],
    parameters={"x": "ü"},
    writeId=4,
)


def partition(value: str, sd: StorageDescriptor | None, **fields: Any) -> Partition:
    named = {"catName": "hive", "dbName": "d", "tableName": "t", "createTime": 3, "lastAccessTime": 0, "parameters": {"p": value}}
    return Partition(**{"values": [value], "sd": sd, **named, **fields})


def storage(location: str | None, **fields: Any) -> StorageDescriptor:
    columns = [FieldSchema("a", "int", "é\"'")]
    return StorageDescriptor(cols=columns, location=location, serdeInfo=SerDeInfo("s", "lib", {"f": "1"}), **fields)


NOT_SKEWED = SkewedInfo(skewedColNames=["a"], skewedColValues=[["1"]], skewedColValueLocationMaps={})
SKEWED = SkewedInfo(skewedColNames=["a"], skewedColValues=[["1"]], skewedColValueLocationMaps={("1",): "file:/s"})
BEFORE = [
    partition("1", storage("file:/t/k=1")),
    partition("ü/2", None, writeId=7, parameters=None),
    partition("3", storage(None, compressed=True)),
    partition("4", storage("file:/t/k=4", skewedInfo=NOT_SKEWED, bucketCols=["a"], numBuckets=2), createTime=None),
]


def alteration(before: list[Partition], after: list[Partition], *, truncates: bool = False) -> AlterPartitions:
    client = ClientInfo("host", "u", ("g",), "alter_partitions")
    return AlterPartitions(client=client, table=TABLE, before=before, after=after, truncates=truncates)


def addition(partitions: list[Partition]) -> AddPartitions:
    return AddPartitions(client=ClientInfo("host", "u", ("g",), "add_partitions_req"), table=TABLE, partitions=partitions)


def statistics(count: int) -> UpdateStatistics:
    values = [
        ColumnStatisticsData(booleanStats=BooleanColumnStatsData(numTrues=1, numFalses=2, numNulls=0, bitVectors=b"\xff\x00")),
        ColumnStatisticsData(longStats=LongColumnStatsData(lowValue=-1, highValue=2**60, numNulls=0, numDVs=5)),
    ]
    shared = [ColumnStatisticsObj(f"c{column}", "boolean", data) for column, data in enumerate(values)]
    each = [
        ColumnStatistics(
            statsDesc=ColumnStatisticsDesc(isTblLevel=False, dbName="d", tableName="t", partName=f"k={number}", lastAnalyzed=9),
            statsObj=[of if number % 2 else ColumnStatisticsObj(f"n{number}", of.colType, of.statsData) for of in shared[: number % 3]],
            engine="hive",
            isStatsCompliant=True,
        )
        for number in range(count)
    ]
    data = [[b64encode(to_bytes(column.statsData)).decode() for column in one.statsObj] for one in each]
    return UpdateStatistics(client=ClientInfo("host", None, (), "set_aggr_stats_for"), table=TABLE, statistics=each, data=data)


def aborts(count: int) -> AbortTransactions:
    client = ClientInfo("host", None, (), "abort_txns")
    return AbortTransactions(client=client, transactions=range(5, 5 + count), databases={6: ["ü", "d"], 5 + count: ["other"]})


def opened(ids: Sequence[int], kind: int = TxnType.DEFAULT) -> OpenTransactions:
    return OpenTransactions(client=ClientInfo("host", None, (), "open_txns"), transactions=ids, type=kind)


def allocated(ids: Sequence[int], numbers: Sequence[int]) -> AllocateWriteIds:
    client = ClientInfo("host", None, (), "allocate_table_write_ids")
    return AllocateWriteIds(client=client, catalog="hive", database="d", table='"ü', transactions=ids, write_ids=numbers)


NUMBERS: list[Event] = [
    opened([5, 6]),
    opened(range(2**40, 2**40 + 300)),
    opened([5, 6], TxnType.COMPACTION),
    allocated([5, 6], [1, 2]),
    allocated(range(5, 305), range(2**40, 2**40 + 300)),
    allocated([5, 7, 8], [1, 2, 3]),
]
"""Events with ids that are packed as the first and last of a range."""


def notifications_of(event: Event) -> list[tuple[Any, ...]]:
    return [(*notification[:-1], orjson.dumps(notification.fields)) for notification in of(event)]


@pytest.mark.parametrize("event", [
    alteration(BEFORE, [partition(f"{number}", storage(f"file:/n/{number}"), writeId=8) for number in range(4)]),
    alteration(BEFORE * 60, deepcopy(BEFORE) * 60, truncates=True),
    statistics(2), statistics(EVENTS), statistics(EVENTS * 2 + 1), aborts(2), aborts(EVENTS + 1),
])  # fmt: skip
def test_packed_events_have_the_same_messages(event: Event) -> None:
    wanted = notifications_of(event)
    packed = pack(event)
    assert len(packed) == -(-len(wanted) // EVENTS)
    assert all(1 < count <= EVENTS for count, _ in packed), "a row of one event holds its message"
    assert subject(event)[:-1] == wanted[0][:-1]
    assert [each for _, payload in packed for each in notifications_of(unpack(wanted[0][0], payload))] == wanted
    assert [count for count, _ in packed] == [len(notifications_of(unpack(wanted[0][0], payload))) for _, payload in packed]


@pytest.mark.parametrize("number", [1, 60])
def test_an_addition_in_one_row_holds_the_same_events(number: int) -> None:
    event = addition(BEFORE * number)
    ((count, payload),) = pack(event)
    assert (count, payload.startswith(ONE)) == (1, True)
    assert subject(event)[:-1] == notifications_of(event)[0][:-1]
    assert notifications_of(unpack("ADD_PARTITION", payload)) == notifications_of(event)


@pytest.mark.parametrize("event", NUMBERS)
def test_numbers_that_follow_each_other_have_the_same_messages_by_their_ends(event: Event) -> None:
    ((count, payload),) = pack(event)
    assert (count, payload[: len(ONE) + 1]) == (1, ONE + "{")
    ((kind, *_),) = wanted = notifications_of(event)
    assert subject(event)[:-1] == wanted[0][:-1]
    assert notifications_of(unpack(kind, payload)) == wanted
    assert len(payload) < 200


@pytest.mark.parametrize("format_", [PLAIN, GZIP])
@pytest.mark.parametrize("event", NUMBERS)
def test_a_row_of_numbers_reads_like_one_that_holds_its_message(event: Event, format_: str) -> None:
    row = NotificationLog(Config(event_message_format=format_)).plain_row(event)
    ((kind, catalog, database, table, fields),) = of(event)
    text = orjson.dumps({"server": "", "servicePrincipal": "", "timestamp": row.time, **fields})
    wanted = NotificationEvent(
        eventId=7,
        eventTime=row.time,
        eventType=kind,
        catName=catalog,
        dbName=database,
        tableName=table,
        messageFormat=format_,
        message=text.decode() if format_ == PLAIN else compressed(text),
    )
    assert row.message.startswith(ONE)
    for message in (row.message, text.decode(), wanted.message):  # the present form, and the forms of older rows
        assert list(events_of(7, row._replace(message=message))) == [wanted]


def test_equal_storage_is_packed_once() -> None:
    shared = storage(None)
    many = []
    for number in range(EVENTS):
        each = partition(str(number), deepcopy(shared))
        each.sd.cols, each.sd.serdeInfo = shared.cols, shared.serdeInfo
        each.sd.location = f"file:/t/k={number}"
        many.append(each)
    (few,), (one,) = pack(alteration(many[:2], many[:2])), pack(alteration(many, many))
    assert len(one[1]) < 20 * len(few[1])


def test_events_that_can_not_be_packed_have_a_row_each() -> None:
    granted = partition("1", storage("file:/t/k=1"), privileges=PrincipalPrivilegeSet({}, {}, {}))
    assert pack(alteration(BEFORE[:2], [granted, BEFORE[1]])) == []
    skewed = partition("1", storage("file:/t/k=1", skewedInfo=SKEWED))
    assert pack(alteration([skewed, BEFORE[1]], BEFORE[:2])) == []
    assert pack(alteration(BEFORE[:1], BEFORE[:1])) == []
    assert pack(addition([granted, BEFORE[1]])) == []
    assert pack(addition([skewed, BEFORE[1]])) == []
    assert pack(addition(BEFORE[:1])) == []
    assert pack(statistics(1)) == []
    assert pack(aborts(1)) == []
    assert pack(opened([5])) == pack(opened([])) == []
    assert pack(opened([5, 6], TxnType.READ_ONLY)) == []
    assert pack(allocated([5], [1])) == pack(allocated([], [])) == []


@pytest.mark.parametrize("ids", [[5, 7], [5, 7, 6, 8], [6, 5], [5, 5], [5, 5, 7]])
def test_ids_with_gaps_or_in_another_order_are_listed_one_by_one(ids: list[int]) -> None:
    assert pack(opened(ids)) == []
    assert pack(allocated(range(len(ids)), ids)) == []
    event = allocated(ids, range(len(ids)))
    ((_, payload),) = pack(event)
    assert notifications_of(unpack("ALLOC_WRITE_ID", payload)) == notifications_of(event)
