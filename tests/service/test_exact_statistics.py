"""Statistics of transactional tables hold only for queries that see the write which made them."""

from __future__ import annotations

import pytest

from metastore.errors import MetaError
from metastore.idl import ColumnStatisticsObj
from metastore.rules.accuracy import ACCURATE, NOBODY, Writer, writer
from metastore.rules.snapshots import Snapshot, snapshot
from metastore.service import statistics
from metastore.service.context import Call
from metastore.service.names import TableName
from metastore.service.partitions import get_partition
from metastore.service.tables import get_table
from tests.service.conftest import Statements, add_partitions, make_table
from tests.service.test_statistics import numbers, of

KIND = {"transactional": "true", "transactional_properties": "insert_only"}
EXACT = '{"BASIC_STATS":"true","COLUMN_STATS":{"a":"true"}}'
ONE, TWO = numbers("a", 1, 5), numbers("a", -4, 2)
BOTH = numbers("a", -4, 5)


def up_to(mark: int, *unseen: int, aborted: tuple[int, ...] = ()) -> Snapshot:
    return snapshot(mark, unseen, aborted)


def made(call: Call, partition: bool, parameters: dict[str, str] | None = None) -> tuple[TableName, str | None]:
    """Return a transactional table of which all statistics are exact, and its partition or None."""
    told = {ACCURATE: EXACT} if parameters is None else parameters
    name = make_table(call, "t", keys=[("p", "string")] if partition else [], parameters=KIND if partition else {**KIND, **told})
    if partition:
        add_partitions(call, name, [["1"]], parameters=told)
    return name, "p=1" if partition else None


def write(call: Call, where: tuple[TableName, str | None], new: ColumnStatisticsObj, by: Writer = NOBODY, *, merged: bool = False) -> bool:
    return statistics.set_statistics(call, [of(where[0], new, partition=where[1])], by=by, merged=merged)


def read(call: Call, where: tuple[TableName, str | None], seen: Snapshot | None = None) -> list[ColumnStatisticsObj]:
    name, partition = where
    if partition is None:
        return list(statistics.get_table(call, name, ["a"], seen=seen).statsObj)
    found = statistics.get_partitions(call, name, [partition], ["a"], seen=seen)
    stored = statistics.get_stored(call, name, [partition], ["a"], seen=seen)
    joined = statistics.get_aggregated(call, name, [partition], ["a"], seen=seen)
    assert bool(found) == bool(stored) == bool(joined.colStats) == bool(joined.partsFound)
    return list(found[partition].statsObj) if found else []


def state(call: Call, where: tuple[TableName, str | None]) -> tuple[str | None, int]:
    name, partition = where
    found = get_table(call, name) if partition is None else get_partition(call, name, [partition.removeprefix("p=")])
    return found.parameters.get(ACCURATE), found.writeId


partitioned = pytest.mark.parametrize("partition", [False, True])


@partitioned
def test_statistics_are_for_queries_that_see_the_write(call: Call, partition: bool) -> None:
    where = made(call, partition)
    assert write(call, where, ONE, Writer(3, up_to(3)))
    assert state(call, where) == (EXACT, 3)
    assert read(call, where) == read(call, where, up_to(3)) == read(call, where, up_to(7, 5)) == [ONE]
    assert read(call, where, up_to(2)) == read(call, where, up_to(4, 3)) == read(call, where, up_to(4, aborted=(3,))) == []


@partitioned
def test_statistics_beside_a_number_of_rows_that_is_not_exact_are_for_nobody_with_a_snapshot(call: Call, partition: bool) -> None:
    where = made(call, partition, {})
    write(call, where, ONE, Writer(3, up_to(3)))
    assert read(call, where) == [ONE]
    assert read(call, where, up_to(3)) == []


@partitioned
def test_who_does_not_see_the_last_write_leaves_nothing_exact(call: Call, partition: bool) -> None:
    where = made(call, partition)
    write(call, where, ONE, Writer(3, up_to(3)))
    assert write(call, where, TWO, Writer(4, up_to(4, 3)))
    assert state(call, where) == (None, 4)
    assert read(call, where, up_to(4)) == []


@partitioned
def test_what_an_aborted_writer_left_may_be_replaced(call: Call, partition: bool) -> None:
    where = made(call, partition)
    write(call, where, ONE, Writer(3, up_to(3)))
    write(call, where, TWO, Writer(4, up_to(4, aborted=(3,))))
    assert state(call, where) == (EXACT, 4)
    assert read(call, where, up_to(4)) == [TWO]


@partitioned
def test_a_merge_joins_what_the_writer_sees(call: Call, partition: bool) -> None:
    where = made(call, partition)
    write(call, where, ONE, Writer(3, up_to(3)))
    assert write(call, where, TWO, Writer(4, up_to(4)), merged=True)
    assert read(call, where, up_to(4)) == [BOTH]
    assert state(call, where) == (EXACT, 4)


@partitioned
def test_a_merge_with_what_the_writer_does_not_see_leaves_nothing_exact(call: Call, partition: bool) -> None:
    where = made(call, partition)
    write(call, where, ONE, Writer(3, up_to(3)))
    assert not write(call, where, TWO, Writer(4, up_to(4, 3)), merged=True)
    assert state(call, where) == (None, 4)
    assert read(call, where) == [ONE]


@partitioned
@pytest.mark.parametrize("transactional", [False, True])
def test_a_part_is_not_merged_into_statistics_that_are_not_exact(call: Call, partition: bool, transactional: bool) -> None:
    name = make_table(call, "t", keys=[("p", "string")] if partition else [], parameters=KIND if transactional else {})
    if partition:
        add_partitions(call, name, [["1"]])
    where = (name, "p=1" if partition else None)
    assert write(call, where, TWO, merged=True)
    assert read(call, where) == []
    assert state(call, where)[0] is None


@partitioned
def test_without_a_transaction_no_statistics_become_exact(call: Call, partition: bool) -> None:
    where = made(call, partition)
    with pytest.raises(MetaError, match=r"Cannot change stats state for a transactional table .*default\.t"):
        write(call, where, ONE)
    write(call, where, ONE, Writer(3, up_to(3)))
    with pytest.raises(MetaError, match="send writeId and validWriteIdList"):
        write(call, where, TWO)
    assert read(call, where) == [ONE]


def test_without_a_transaction_statistics_are_stored_where_no_number_of_rows_is_exact(call: Call) -> None:
    where = made(call, False, {})
    write(call, where, ONE)
    assert read(call, where) == [ONE]
    assert state(call, where) == ('{"COLUMN_STATS":{"a":"true"}}', -1)
    write(call, where, ONE, Writer(3, up_to(3)))
    write(call, where, TWO)
    assert state(call, where) == (None, 3)


@pytest.mark.parametrize("kind", [{}, {"transactional": "false"}])
def test_other_tables_have_no_write_ids(call: Call, kind: dict[str, str]) -> None:
    name = make_table(call, "t", parameters={**kind, ACCURATE: EXACT})
    write(call, (name, None), ONE, Writer(3, up_to(3)))
    assert state(call, (name, None))[1] == -1
    assert read(call, (name, None), up_to(1)) == [ONE]


def test_snapshots_cost_no_statement(call: Call, statements: Statements) -> None:
    name, _ = made(call, partition=True)
    statistics.set_statistics(call, [of(name, ONE, partition="p=1")], by=Writer(3, up_to(3)))
    for seen in (None, up_to(3)):
        with statements() as reading:
            statistics.get_stored(call, name, ["p=1"], ["a"], seen=seen)
            statistics.get_table(call, name, ["a"], seen=seen)
            statistics.get_aggregated(call, name, ["p=1"], ["a"], seen=seen)
        assert len(reading) == 6, reading


def test_a_text_that_is_no_snapshot_is_refused() -> None:
    assert writer(3, "db.t:7:5:5:6") == Writer(3, up_to(7, 5, aborted=(6,)))
    assert writer(None, None) == NOBODY
    with pytest.raises(MetaError, match="no high water mark"):
        writer(3, "db.t")
