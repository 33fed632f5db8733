"""Structs that are alike but for texts and numbers are made from one that was decoded; they are what decoding each would have made."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metastore.binary import to_bytes
from metastore.idl import (
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    DoubleColumnStatsData,
    FieldSchema,
    LongColumnStatsData,
    Partition,
    PrincipalPrivilegeSet,
    PrivilegeGrantInfo,
    SerDeInfo,
    SetPartitionsStatsRequest,
    StorageDescriptor,
    service,
)
from metastore.wire import protocol, repetition, templates
from metastore.wire.memory import Memory
from metastore.wire.protocol import Dialect, read_message, write_message
from metastore.wire.settings import WireSettings
from metastore.wire.transport import Feed

DIALECT = Dialect("binary", framed=False)
ARGUMENTS = service.alter_partitions_args
COLUMNS = [FieldSchema(f"column {number}", "string", "a comment") for number in range(3)]


def partition(number: int, **fields: Any) -> Partition:
    sd = StorageDescriptor(cols=COLUMNS, location=f"file:/t/k={number}", serdeInfo=SerDeInfo("s", "library", {"f": "1"}), parameters={})
    named = {"dbName": "d", "tableName": "t", "createTime": 5, "parameters": {"numFiles": str(number // 7), "x": "y"}}
    return Partition(**{"values": [str(number), "v"], "sd": sd, **named, **fields})


def read(data: bytes, memory: Memory | None = None) -> list[Partition]:
    pieces = iter([data])
    feed = Feed(lambda _: next(pieces, b""))
    parts: list[Partition] = read_message(feed, DIALECT, WireSettings(), lambda *_: ARGUMENTS, memory).body.new_parts
    return parts


def received(sent: list[Partition], memory: Memory | None = None) -> list[Partition]:
    """Send partitions and return what is read, on a connection whose earlier messages left a memory."""
    return read(write_message(DIALECT, "alter_partitions", 1, 7, ARGUMENTS(db_name="d", tbl_name="t", new_parts=sent)), memory)


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of what is decoded."""
    sizes: list[int] = []
    real = protocol._decoded

    def noted(cls: type[Any], data: bytes) -> Any:
        sizes.append(len(data))
        return real(cls, data)

    monkeypatch.setattr(protocol, "_decoded", noted)
    return sizes


@pytest.fixture(autouse=True, scope="module")
def few_are_worth_it() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(repetition, "WORTH", 2)
        yield


TEXT = st.text(max_size=5)
ODD = st.fixed_dictionaries({}, optional={"sd": st.none(), "parameters": st.dictionaries(TEXT, TEXT, max_size=2), "createTime": st.none()})
ALIKE = st.fixed_dictionaries({}, optional={
    "values": st.lists(TEXT, min_size=2, max_size=2), "parameters": st.fixed_dictionaries({"numFiles": TEXT, "x": TEXT}), "dbName": TEXT,
    "createTime": st.integers(-(2**31), 2**31 - 1), "writeId": st.integers(-1, 2**63 - 1),
    "privileges": st.builds(lambda name: PrincipalPrivilegeSet({name: [PrivilegeGrantInfo("SELECT")]}, {}, {}), TEXT),
})  # fmt: skip


@given(st.lists(ALIKE | ALIKE | ALIKE | ODD, max_size=12))
def test_the_partitions_are_those_that_were_sent(many: list[dict[str, Any]]) -> None:
    sent = [partition(number, **fields) for number, fields in enumerate(many)]
    assert received(sent) == sent


MESSAGES = st.lists(st.lists(ALIKE | ALIKE | ALIKE | ODD, max_size=8), min_size=2, max_size=4)


@given(MESSAGES)
def test_so_are_those_of_each_message_of_a_connection(messages: list[list[dict[str, Any]]]) -> None:
    memory = Memory()
    read_all = []
    for many in messages:
        sent = [partition(number, **fields) for number, fields in enumerate(many)]
        read_all.append((received(sent, memory), sent))
    for found, sent in read_all:
        assert found == sent


def test_a_connection_remembers_what_its_last_partitions_had_in_common(decoded: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    memory = Memory()
    received([partition(number) for number in range(100)], memory)
    made: list[int] = []
    template = repetition.template
    monkeypatch.setattr(repetition, "template", lambda *of: made.append(1) or template(*of))
    for changed, anew in (({}, 0), ({"createTime": 6}, 1), ({"createTime": 7}, 0)):
        decoded.clear()
        made.clear()
        sent = [partition(number, **changed) for number in range(200, 300)]
        assert received(sent, memory) == sent
        assert (len(made), sum(decoded) < 2 * len(to_bytes(sent[0]))) == (anew, True)


def test_partitions_of_another_table_are_read_anew(decoded: list[int]) -> None:
    memory = Memory()
    received([partition(number) for number in range(100)], memory)
    columns = [FieldSchema(f"other {number}", "int", None) for number in range(5)]
    for _ in range(2):
        sent = [partition(number) for number in range(100)]
        for each in sent:
            each.sd.cols = columns
        decoded.clear()
        assert received(sent, memory) == sent
    assert sum(decoded) < 2 * len(to_bytes(sent[0]))


def test_what_is_done_to_partitions_is_not_seen_in_the_next_message() -> None:
    memory = Memory()
    for _ in range(3):
        found = received([partition(number) for number in range(20)], memory)
        assert found == [partition(number) for number in range(20)]
        for each in found:
            each.values.append("more")
            each.parameters["x"] = "z"
            each.sd.location = "elsewhere"
            each.sd = None  # type: ignore[assignment]  # gone


def test_few_partitions_after_many_are_made_in_the_same_way(decoded: list[int]) -> None:
    memory = Memory()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(repetition, "WORTH", 50)
        received([partition(number) for number in range(100)], memory)
        decoded.clear()
        sent = [partition(number) for number in range(5)]
        assert received(sent, memory) == sent
    assert sum(decoded) < len(to_bytes(sent[0]))


def test_partitions_with_very_many_texts_of_their_own_are_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templates, "MOST", 3)
    memory = Memory()
    received([partition(number) for number in range(50)], memory)
    assert memory.alike
    sent = [partition(number, parameters={"numFiles": str(number), "x": str(-number)}, createTime=number) for number in range(50)]
    for _ in range(2):
        assert received(sent, memory) == sent
        assert not memory.alike


def test_alike_partitions_are_decoded_once(decoded: list[int]) -> None:
    sent = [partition(number) for number in range(1000)]
    assert received(sent) == sent
    assert sum(decoded) < 20 * len(to_bytes(sent[0]))


def test_they_share_nothing_but_what_stands_in_storage() -> None:
    first, *rest = received([partition(number) for number in range(50)])
    for each in rest:
        assert each.sd.cols is first.sd.cols
        assert each.sd.serdeInfo is first.sd.serdeInfo
        each.values.append("more")
        each.parameters["more"] = "z"
        each.sd.location = "elsewhere"
        each.dbName = "other"
    assert first == partition(0)


def test_partitions_without_a_place_of_their_own_have_storage_of_their_own() -> None:
    sent = [partition(number, sd=StorageDescriptor(cols=COLUMNS)) for number in range(10)]
    found = received(sent)
    found[3].sd.location = "here"
    assert [each.sd.location for each in found] == [None] * 3 + ["here"] + [None] * 6


def test_parameters_with_names_of_their_own_are_decoded_each(decoded: list[int]) -> None:
    sent = [partition(number, parameters={f"p{number}": "x"}) for number in range(100)]
    assert received(sent) == sent
    assert sum(decoded) > 100 * len(to_bytes(Partition(values=["1", "v"])))


def test_partitions_with_very_many_texts_of_their_own_are_decoded_each(decoded: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    sent = [partition(number, parameters={f"p{place}": f"{number}.{place}" for place in range(20)}) for number in range(50)]
    assert received(sent) == sent
    assert sum(decoded) < 10 * len(to_bytes(sent[0]))
    decoded.clear()
    monkeypatch.setattr(templates, "MOST", 20)
    assert received(sent) == sent
    assert sum(decoded) > 25 * len(to_bytes(sent[0]))


@pytest.mark.parametrize("name", ["'", '"', "\\", "\n", "}", "{}", "{0}", "make", "data", "', exec('", "\u2028"])
def test_what_a_client_sends_is_no_part_of_a_function(name: str) -> None:
    sent = [partition(number, catName=name, parameters={name: str(number), name + "x": name}) for number in range(50)]
    assert received(sent) == sent


def test_text_that_is_no_utf_8_is_seen() -> None:
    sent = [partition(number) for number in range(20)]
    data = write_message(DIALECT, "alter_partitions", 1, 7, ARGUMENTS(db_name="d", tbl_name="t", new_parts=sent))
    pieces = iter([data.replace(b"k=13", b"k=\xff\xfe")])
    message = read_message(Feed(lambda _: next(pieces, b"")), DIALECT, WireSettings(), lambda *_: ARGUMENTS)
    assert message.invalid_text
    assert len(message.body.new_parts) == 20


@pytest.mark.parametrize("second", [0, 1, 2, 10])
def test_a_second_list_replaces_the_first(second: int) -> None:
    def arguments(*numbers: int) -> bytes:
        return to_bytes(ARGUMENTS(new_parts=[partition(number) for number in numbers]))

    head = write_message(DIALECT, "alter_partitions", 1, 7, ARGUMENTS())[:-1]
    others = range(100, 100 + second)
    assert read(head + arguments(*range(10))[:-1] + arguments(*others)) == [partition(number) for number in others]


@pytest.mark.parametrize("second", [0, 1, 2, 10])
def test_a_second_list_of_statistics_replaces_the_first(second: int) -> None:
    cls = service.set_aggr_stats_for_args

    def request(*numbers: int) -> bytes:
        return to_bytes(SetPartitionsStatsRequest(colStats=[statistics(number, (number, None), 0.5, wide=True) for number in numbers]))

    others = range(100, 100 + second)
    head = write_message(DIALECT, "set_aggr_stats_for", 1, 7, cls(request=SetPartitionsStatsRequest(colStats=[])))
    assert head.endswith(request()[-2:] + b"\0")
    begin = head.index(request())
    pieces = iter([head[:begin] + request(*range(10))[:-1] + request(*others) + b"\0"])
    found = read_message(Feed(lambda _: next(pieces, b"")), DIALECT, WireSettings(), lambda *_: cls).body.request.colStats
    assert found == [statistics(number, (number, None), 0.5, wide=True) for number in others]


def test_of_two_descriptors_in_a_partition_the_second_counts() -> None:
    head = write_message(DIALECT, "alter_partitions", 1, 7, ARGUMENTS(new_parts=[Partition()] * 10))
    begin = head.index(b"\0" * 10)
    twice = [to_bytes(partition(number))[:-1] + to_bytes(Partition(sd=partition(number + 100).sd)) for number in range(10)]
    found = read(head[:begin] + b"".join(twice) + head[begin + 10 :])
    assert found == [partition(number, sd=partition(number + 100).sd) for number in range(10)]


def test_a_mark_that_a_client_sends_is_text(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = count()
    monkeypatch.setattr("metastore.wire.templates.secrets.token_hex", lambda _: f"the mark number {next(numbers)}")
    sent = [partition(number, tableName="the mark number 0") for number in range(20)]
    assert received(sent) == sent
    assert next(numbers) > 2


def test_a_mark_that_a_client_sends_is_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("metastore.wire.templates.secrets.token_bytes", bytes)
    sent = [partition(number, createTime=number, writeId=0x3F << 56, lastAccessTime=0x3F << 24) for number in range(20)]
    assert received(sent) == sent


def statistics(number: int, longs: tuple[int, bytes | None], double: float, *, wide: bool) -> ColumnStatistics:
    long = LongColumnStatsData(lowValue=-5, highValue=longs[0], numNulls=0, numDVs=7, bitVectors=longs[1])
    columns = [ColumnStatisticsObj("a", "bigint", ColumnStatisticsData(longStats=long))]
    if wide:
        data = DoubleColumnStatsData(lowValue=double, highValue=1.5, numNulls=longs[0], numDVs=7)
        columns.append(ColumnStatisticsObj("b", "double", ColumnStatisticsData(doubleStats=data)))
    return ColumnStatistics(statsDesc=ColumnStatisticsDesc(False, "d", "t", f"k={number}", 5 + number), statsObj=columns, engine="hive")


def received_statistics(sent: list[ColumnStatistics]) -> list[ColumnStatistics]:
    cls = service.set_aggr_stats_for_args
    arguments = cls(request=SetPartitionsStatsRequest(colStats=sent, engine="hive"))
    pieces = iter([write_message(DIALECT, "set_aggr_stats_for", 1, 7, arguments)])
    request = read_message(Feed(lambda _: next(pieces, b"")), DIALECT, WireSettings(), lambda *_: cls).body.request
    assert request.engine == "hive"
    found: list[ColumnStatistics] = request.colStats
    return found


LONGS = st.tuples(st.integers(-(2**63), 2**63 - 1), st.none() | st.binary(max_size=4))
OF_PARTITION = st.tuples(LONGS, st.floats(allow_nan=False), st.sampled_from((True, True, True, False)))


@given(st.lists(OF_PARTITION, max_size=12))
def test_statistics_are_those_that_were_sent(many: list[tuple[tuple[int, bytes | None], float, bool]]) -> None:
    sent = [statistics(number, longs, double, wide=wide) for number, (longs, double, wide) in enumerate(many)]
    assert received_statistics(sent) == sent


def test_alike_statistics_are_decoded_once(decoded: list[int]) -> None:
    sent = [statistics(number, (number, bytes([number % 7])), number / 3, wide=True) for number in range(1000)]
    assert received_statistics(sent) == sent
    assert sum(decoded) < 20 * len(to_bytes(sent[0]))


def test_so_are_statistics_of_which_two_columns_are_the_same(decoded: list[int]) -> None:
    sent = []
    for number in range(1000):
        sent.append(statistics(number, (number, None), 0.5, wide=False))
        (column,) = sent[-1].statsObj
        sent[-1].statsObj = [column, ColumnStatisticsObj("other", column.colType, column.statsData)]
    assert received_statistics(sent) == sent
    assert sum(decoded) < 20 * len(to_bytes(sent[0]))


def test_a_few_are_decoded(decoded: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repetition, "WORTH", 11)
    sent = [partition(number) for number in range(10)]
    assert received(sent) == sent
    assert len(decoded) == 1


@pytest.mark.parametrize("length", [1, 3, 4, 5])
def test_short_lists(length: int) -> None:
    assert received([partition(number) for number in range(length)]) == [partition(number) for number in range(length)]


def test_only_lists_of_partitions_are_made_so() -> None:
    assert repetition.list_path(service.create_table_args) is None
