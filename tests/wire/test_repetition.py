"""What partitions of one message repeat is decoded once, and the structs are the same as if each had been decoded alone."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metastore import idl
from metastore.idl import (
    AddPartitionsRequest,
    EnvironmentContext,
    FieldSchema,
    Order,
    Partition,
    SerDeInfo,
    SkewedInfo,
    StorageDescriptor,
    Table,
)
from metastore.wire.protocol import Dialect, read_message, write_message
from metastore.wire.repetition import list_path
from metastore.wire.settings import WireSettings
from metastore.wire.transport import Feed

SETTINGS = WireSettings()
DIALECT = Dialect("binary", framed=False)
COLUMNS = [
    [FieldSchema(f"{letter}{number}", "string", None) for number in range(count)]
    for letter, count in (("a", 5), ("b", 5), ("c", 1), ("d", 0))
]
SERDES = [SerDeInfo(name="n", serializationLib=library, parameters={"k": "v"}) for library in ("first", "second")]
PARAMETERS = [{}, {"a": "b"}, {"some key": "a value of some length"}]


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


def received(method: str, piece: int, **fields: Any) -> Any:
    """Send the arguments in pieces of so many bytes and return what is read."""
    cls = getattr(idl.service, f"{method}_args")
    data = write_message(DIALECT, method, 1, 7, cls(**fields))
    pieces = iter([data[at : at + piece] for at in range(0, len(data), piece)])
    return read_message(Feed(lambda _: next(pieces, b"")), DIALECT, SETTINGS, lambda *_: cls).body


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


def test_equal_parts_are_one_object() -> None:
    sent = [
        Partition(values=[str(number)], sd=StorageDescriptor(cols=COLUMNS[number // 3], serdeInfo=SERDES[0], location=f"l{number}"))
        for number in range(6)
    ]
    first, second, third, *rest = received("add_partitions", 100_000, new_parts=sent).new_parts
    assert first.sd.cols is second.sd.cols is third.sd.cols
    assert {id(each.sd.cols) for each in rest} == {id(rest[0].sd.cols)} != {id(first.sd.cols)}
    assert rest[-1].sd.serdeInfo is first.sd.serdeInfo


@pytest.mark.parametrize("method", ["create_table", "alter_table"])
def test_other_messages_are_decoded_whole(method: str) -> None:
    assert list_path(getattr(idl.service, f"{method}_args")) is None


def test_a_table_is_read_as_it_is() -> None:
    table = Table(dbName="d", tableName="t", sd=StorageDescriptor(cols=COLUMNS[0], serdeInfo=SERDES[0]))
    args = received("create_table", 100_000, tbl=table)
    assert args.tbl == table
