"""Named types, and marks on partitions: they are kept until a drop or their time is over, and wrong ones are refused."""

from __future__ import annotations

import pytest

from metastore.errors import AlreadyExists, InvalidObject, InvalidPartition, MetaError, NoSuchObject, UnknownTable
from metastore.idl import FieldSchema, PartitionEventType, Type
from metastore.service.call.clock import now_ms
from metastore.service.call.context import Call
from metastore.service.call.names import TableName
from metastore.service.catalog import types
from metastore.service.catalog.partitions import partition_marks
from tests.support.catalog.catalog import MetastoreMaker, make_table

pytestmark = pytest.mark.on_one_database

NAME = TableName("hive", "default", "t")
DONE = PartitionEventType.LOAD_DONE


def test_a_type_comes_back_as_it_was_made_until_it_is_dropped(call: Call) -> None:
    person = Type(name="Person", fields=[FieldSchema("name", "string", ""), FieldSchema("age", "int", None)])
    simple = Type(name="list_of_int", type1="list", type2="int", fields=[])
    for each in (person, simple):
        types.create_type(call, each)
        assert types.get_type(call, each.name) == each
    with pytest.raises(AlreadyExists, match="Type Person already exists"):
        types.create_type(call, person)
    types.drop_type(call, "Person")
    with pytest.raises(NoSuchObject, match='Type "Person" not found'):
        types.get_type(call, "Person")
    types.drop_type(call, "Person")
    assert types.get_type(call, "list_of_int") == simple


@pytest.mark.parametrize("name", [None, "", "a-b", "a b", "é"])
def test_a_type_needs_a_name(call: Call, name: str | None) -> None:
    with pytest.raises(InvalidObject, match="Invalid type name"):
        types.create_type(call, Type(name=name))


@pytest.fixture
def table(call: Call) -> TableName:
    return make_table(call, "t", keys=[("ds", "string"), ("n", "int")])


def test_a_mark_is_set_on_values_whether_the_partition_is_there_or_not(call: Call, table: TableName) -> None:
    values = {"ds": "a/b", "n": "1"}
    assert not partition_marks.is_marked(call, table, values, DONE)
    for _ in range(2):
        partition_marks.mark(call, table, values, DONE)
        assert partition_marks.is_marked(call, table, {"n": "1", "ds": "a/b"}, DONE)
    assert not partition_marks.is_marked(call, table, {"ds": "a/b", "n": "2"}, DONE)
    other = make_table(call, "u", keys=[("ds", "string"), ("n", "int")])
    assert not partition_marks.is_marked(call, other, values, DONE)


def test_marks_are_forgotten_when_they_are_old(
    call: Call, make_metastore: MetastoreMaker, table: TableName, monkeypatch: pytest.MonkeyPatch
) -> None:
    metastore = make_metastore(event_expiry=2.0)
    values, begin = {"ds": "a", "n": "1"}, now_ms()
    for later, marked in ((0, True), (1999, True), (2001, False)):
        monkeypatch.setattr(partition_marks, "now_ms", lambda: begin)
        partition_marks.mark(call, table, values, DONE)
        monkeypatch.setattr(partition_marks, "now_ms", lambda later=later: begin + later)
        partition_marks.delete_old(metastore)
        assert partition_marks.is_marked(call, table, values, DONE) == marked


def test_marks_that_fit_no_partition_are_refused(call: Call, table: TableName) -> None:
    for use in (partition_marks.mark, partition_marks.is_marked):
        with pytest.raises(UnknownTable, match=r"Table: hive\.default\.no is not found"):
            use(call, TableName("hive", "default", "no"), {"ds": "a", "n": "1"}, DONE)
        with pytest.raises(InvalidPartition, match=r"Number of partition columns in table: 2 doesn't match .*: 1"):
            use(call, table, {"ds": "a"}, DONE)
        with pytest.raises(InvalidPartition, match="No value found for partition column: n"):
            use(call, table, {"ds": "a", "m": "1"}, DONE)
        with pytest.raises(MetaError, match="there is no mark of type 7; the only one is LOAD_DONE, 1"):
            use(call, table, {"ds": "a", "n": "1"}, 7)
