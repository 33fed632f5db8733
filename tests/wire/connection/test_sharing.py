"""Parts that repeat in the partitions of one message, or in their statistics, are one object. Each struct has its own copy of all else."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metastore.binary import to_bytes
from metastore.idl import (
    AddPartitionsRequest,
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    EnvironmentContext,
    FieldSchema,
    GetTablesResult,
    LongColumnStatsData,
    Order,
    Partition,
    SerDeInfo,
    SetPartitionsStatsRequest,
    SkewedInfo,
    StorageDescriptor,
    Table,
    service,
)
from metastore.wire import codec
from metastore.wire.messages.protocol import Dialect, Message, read_message, write_message
from metastore.wire.sockets.settings import WireSettings
from metastore.wire.sockets.transport import Feed

DIALECT = Dialect("binary", framed=False)
COLUMNS = [
    [FieldSchema(f"{letter}{number}", "string", None) for number in range(count)]
    for letter, count in (("a", 5), ("b", 5), ("c", 1), ("d", 0))
]
SERDES = [SerDeInfo(name="n", serializationLib=library, parameters={"k": "v"}) for library in ("first", "second")]
PARAMETERS = [{}, {"a": "b"}, {"some key": "a value of some length"}]


def received(method: str, piece: int, **fields: Any) -> Any:
    """Send arguments in pieces of so many bytes; return the arguments as the server reads them."""
    cls = getattr(service, f"{method}_args")
    return read(write_message(DIALECT, method, 1, 7, cls(**fields)), cls, piece).body


def read(data: bytes, cls: Any, piece: int = 100_000) -> Message:
    pieces = iter([data[at : at + piece] for at in range(0, len(data), piece)])
    return read_message(Feed(lambda _: next(pieces, b"")), DIALECT, WireSettings(), lambda *_: cls)


def storage() -> st.SearchStrategy[StorageDescriptor | None]:
    return st.none() | st.builds(
        StorageDescriptor,
        cols=st.none() | st.sampled_from(COLUMNS),
        location=st.sampled_from(("x", "file:///a/b")),
        inputFormat=st.just("in"),
        serdeInfo=st.none() | st.sampled_from(SERDES),
        bucketCols=st.sampled_from(([], ["a"], ["a long name", "b"])),
        sortCols=st.sampled_from(([], [Order(col="a long name", order=1)])),
        parameters=st.sampled_from(PARAMETERS),
        skewedInfo=st.sampled_from((None, SkewedInfo(["a"], [["1"]], {}))),
    )


def partitions() -> st.SearchStrategy[list[Partition]]:
    return st.lists(st.builds(Partition, values=st.sampled_from((["1"], ["2", "x"])), sd=storage(), parameters=st.sampled_from(PARAMETERS)))


@given(partitions(), st.sampled_from((7, 100, 100_000)))
def test_the_partitions_are_those_that_were_sent(sent: list[Partition], piece: int) -> None:
    assert received("add_partitions", piece, new_parts=sent).new_parts == sent
    request = AddPartitionsRequest(dbName="d", tblName="t", parts=sent, ifNotExists=True)
    assert received("add_partitions_req", piece, request=request).request == request
    context = EnvironmentContext({"a": "b"})
    args = received(
        "alter_partitions_with_environment_context", piece, db_name="d", tbl_name="t", new_parts=sent, environment_context=context
    )
    assert (args.new_parts, args.environment_context) == (sent, context)


def partition(number: int, **fields: Any) -> Partition:
    sd = StorageDescriptor(cols=COLUMNS[0], location=f"l{number}", serdeInfo=SERDES[0], parameters={"a": "b"})
    return Partition(**{"values": [str(number)], "dbName": "d", "sd": sd, "parameters": {"x": "y"}, **fields})


def test_equal_parts_are_one_object() -> None:
    sent = [partition(number) for number in range(6)]
    for each in sent[3:]:
        each.sd.cols = COLUMNS[1]
    first, second, third, *rest = received("add_partitions", 100_000, new_parts=sent).new_parts
    assert first.sd.cols is second.sd.cols is third.sd.cols
    assert {id(each.sd.cols) for each in rest} == {id(rest[0].sd.cols)} != {id(first.sd.cols)}
    assert rest[-1].sd.serdeInfo is first.sd.serdeInfo


def test_partitions_share_nothing_but_parts_of_their_storage() -> None:
    first, *rest = received("add_partitions", 100_000, new_parts=[partition(number) for number in range(50)]).new_parts
    for each in rest:
        each.values.append("more")
        each.parameters["more"] = "z"
        each.sd.location = "elsewhere"
        each.dbName = "other"
    assert first == partition(0)


def test_changes_of_partitions_are_not_seen_in_the_next_message() -> None:
    for _ in range(3):
        found = received("add_partitions", 100_000, new_parts=[partition(number) for number in range(5)]).new_parts
        assert found == [partition(number) for number in range(5)]
        for each in found:
            each.sd.cols.append("more")


def test_partitions_without_a_place_of_their_own_have_storage_of_their_own() -> None:
    sent = [partition(number, sd=StorageDescriptor(cols=COLUMNS[0])) for number in range(10)]
    found = received("add_partitions", 100_000, new_parts=sent).new_parts
    found[3].sd.location = "here"
    assert [each.sd.location for each in found] == [None] * 3 + ["here"] + [None] * 6


def test_tables_share_nothing() -> None:
    tables = [Table(tableName="t", sd=StorageDescriptor(cols=COLUMNS[0], serdeInfo=SERDES[0])) for _ in range(3)]
    cls = service.get_table_objects_by_name_req_result
    data = write_message(DIALECT, "get_table_objects_by_name_req", 2, 7, cls(success=GetTablesResult(tables=tables)))
    found = read(data, cls).body.success.tables
    assert found == tables
    assert len({id(each.sd.cols) for each in found}) == len({id(each.sd.serdeInfo) for each in found}) == 3


def statistics(number: int, value: int) -> ColumnStatistics:
    data = ColumnStatisticsData(longStats=LongColumnStatsData(lowValue=value, highValue=7, numNulls=0, numDVs=7))
    description = ColumnStatisticsDesc(False, "d", "t", f"k={number}", 5 + number)
    return ColumnStatistics(statsDesc=description, statsObj=[ColumnStatisticsObj("a", "bigint", data)], engine="hive")


@pytest.mark.skipif(codec.IMPLEMENTATION == "pure", reason="the pure codec shares parts of partitions alone")
def test_equal_statistics_of_partitions_are_one_object() -> None:
    sent = [statistics(0, 1), statistics(1, 1), statistics(2, 2)]
    found = received("set_aggr_stats_for", 100_000, request=SetPartitionsStatsRequest(colStats=sent)).request.colStats
    assert found == sent
    assert found[0].statsObj is found[1].statsObj is not found[2].statsObj
    assert len({id(each.statsDesc) for each in found}) == 3


def test_text_that_is_no_utf_8_is_noted_each_time() -> None:
    sent = [partition(number, sd=StorageDescriptor(cols=[FieldSchema("column", "t", "c")])) for number in range(3)]
    data = write_message(DIALECT, "add_partitions", 1, 7, service.add_partitions_args(new_parts=sent))
    for _ in range(2):
        message = read(data.replace(b"column", b"col\xff\xfen"), service.add_partitions_args)
        assert message.invalid_text == "FieldSchema.name"
        assert [each.sd.cols[0].name for each in message.body.new_parts] == ["col\ufffd\ufffdn"] * 3


def test_a_second_list_replaces_the_first() -> None:
    cls = service.add_partitions_args
    head = write_message(DIALECT, "add_partitions", 1, 7, cls())[:-1]
    first, second = (to_bytes(cls(new_parts=[partition(number) for number in numbers])) for numbers in (range(5), range(9, 11)))
    assert read(head + first[:-1] + second, cls).body.new_parts == [partition(9), partition(10)]


def test_of_two_descriptors_in_a_partition_the_second_counts() -> None:
    cls = service.add_partitions_args
    head = write_message(DIALECT, "add_partitions", 1, 7, cls(new_parts=[Partition()] * 10))
    begin = head.index(b"\0" * 10)
    twice = [to_bytes(partition(number))[:-1] + to_bytes(Partition(sd=partition(number + 100).sd)) for number in range(10)]
    found = read(head[:begin] + b"".join(twice) + head[begin + 10 :], cls).body.new_parts
    assert found == [partition(number, sd=partition(number + 100).sd) for number in range(10)]
