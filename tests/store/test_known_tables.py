"""A remembered table is not used after another server has changed it."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy

import pytest

from metastore.errors import InvalidOperation, MetaError, NoSuchObject
from metastore.idl import Partition
from metastore.listeners.events import Event
from metastore.listeners.notifications.packing import unpack
from metastore.service.call.context import Call
from metastore.service.call.names import TableName
from metastore.service.catalog.partitions.alter_partitions import alter_partitions
from metastore.service.catalog.partitions.partitions import get_partition
from metastore.service.catalog.statistics import statistics, write_statistics
from metastore.service.catalog.tables.alter_table import alter_table
from metastore.service.catalog.tables.tables import drop_table, find_table, on_cached_table
from metastore.store.catalog.partitions.partitions import Locking
from metastore.store.catalog.tables import tables
from metastore.store.catalog.tables.tables import Known
from metastore.store.core.database import Session
from metastore.store.drivers.contract import BrokenAtCommit, Retry
from tests.support.catalog.catalog import MetastoreMaker, add_partitions, call_of, columns_of, make_table
from tests.support.catalog.column_statistics import numbers, of, texts
from tests.support.catalog.recording import Before, listening
from tests.support.databases.statement_counts import StatementCounts

NAME = TableName("hive", "default", "t")


@pytest.fixture
def other(make_metastore: MetastoreMaker) -> Call:
    """A call to another server on the same database."""
    return call_of(make_metastore())


@pytest.fixture
def part(call: Call) -> Partition:
    """A partition of a table that the server remembers."""
    make_table(call, "t", keys=[("p", "string")])
    add_partitions(call, NAME, [["1"], ["2"]])
    part = get_partition(call, NAME, ["1"])
    alter_partitions(call, NAME, [part])
    assert tables.cached(call.database, *NAME) is not None
    return part


def parameters(part: Partition, **values: str) -> Partition:
    changed = deepcopy(part)
    changed.parameters |= values
    return changed


def change_columns(call: Call, *columns: tuple[str, str]) -> None:
    table = deepcopy(find_table(call, NAME))
    table.sd.cols = columns_of(*columns)
    alter_table(call, NAME, table)


def test_it_is_not_read_again(call: Call, part: Partition, counts: StatementCounts) -> None:
    counts("alter a partition of a known table", lambda: alter_partitions(call, NAME, [parameters(part, a="b")]))
    call.database.caches.tables.clear()
    counts("alter a partition of a table that is read", lambda: alter_partitions(call, NAME, [parameters(part, a="b")]))
    assert get_partition(call, NAME, ["1"]).parameters["a"] == "b"


def test_a_table_of_the_same_name_with_other_keys_is_seen(call: Call, other: Call, part: Partition) -> None:
    drop_table(other, NAME, delete_data=True)
    make_table(other, "t", keys=[("p", "string"), ("q", "string")])
    add_partitions(other, NAME, [["1", "x"]])
    new = get_partition(other, NAME, ["1", "x"])
    alter_partitions(call, NAME, [parameters(new, a="b")])
    assert get_partition(other, NAME, ["1", "x"]).parameters["a"] == "b"
    write_statistics.set_statistics(call, [of(NAME, numbers("a", 1, 2), partition="p=1/q=x")])
    assert statistics.get_partitions(other, NAME, ["p=1/q=x"], ["a"])["p=1/q=x"].statsObj == [numbers("a", 1, 2)]
    with pytest.raises(MetaError):
        alter_partitions(call, NAME, [part])


def test_a_table_that_is_gone_is_missed(call: Call, other: Call, part: Partition) -> None:
    drop_table(other, NAME, delete_data=True)
    with pytest.raises(InvalidOperation, match="table or database does not exist"):
        alter_partitions(call, NAME, [part])
    with pytest.raises(NoSuchObject, match="table not found"):
        write_statistics.set_statistics(call, [of(NAME, numbers("a", 1, 2), partition="p=1")])


def test_statistics_are_of_the_columns_that_the_table_has_by_now(call: Call, other: Call, part: Partition) -> None:
    change_columns(other, ("a", "int"), ("c", "string"))
    with pytest.raises(MetaError, match="Column b doesn't exist"):
        write_statistics.set_statistics(call, [of(NAME, texts("b", 1, 1.0), partition="p=1")])
    change_columns(other, ("a", "int"), ("d", "string"))
    write_statistics.set_statistics(call, [of(NAME, texts("d", 1, 1.0), partition="p=1")])
    assert statistics.get_partitions(call, NAME, ["p=1"], ["b", "d"])["p=1"].statsObj == [texts("d", 1, 1.0)]


def test_an_event_holds_the_current_table(call: Call, other: Call, part: Partition) -> None:
    alter_partitions(call, NAME, [part])
    change_columns(other, ("a", "int"), ("e", "string"))
    both = [parameters(get_partition(call, NAME, [value]), a="b") for value in "12"]
    alter_partitions(call, NAME, both)
    (message,) = call.database.read(_messages)
    event = unpack("ALTER_PARTITION", message)
    assert [column.name for column in event.table.sd.cols] == ["a", "e"]  # type: ignore[attr-defined]  # it is of a table


def _messages(session: Session) -> list[str]:
    session.cursor.execute("SELECT message, events FROM notifications WHERE type = 'ALTER_PARTITION'")
    return [message for message, count in session.cursor.fetchall() if count > 1]


def test_listeners_are_asked_about_the_table_as_it_is(call: Call, other: Call, part: Partition) -> None:
    change_columns(other, ("a", "int"), ("e", "string"))
    seen: list[Event] = []
    alter_partitions(call_of(listening(call.metastore, Before(seen.append))), NAME, [parameters(part, a="c")])
    (event,) = seen
    assert [column.name for column in event.table.sd.cols] == ["a", "e"]  # type: ignore[attr-defined]  # it is of a table


def test_a_change_whose_commit_is_in_doubt_is_not_made_again(call: Call, part: Partition) -> None:
    asked: list[bool] = []

    def broken(known: Known) -> None:
        asked.append(known.state is None)
        known.is_current = True
        raise BrokenAtCommit("the connection broke")

    with pytest.raises(BrokenAtCommit):
        on_cached_table(call, NAME, broken)
    assert asked == [False]


@pytest.mark.parametrize("is_current", [False, True])
def test_a_change_that_fails_on_the_unchanged_table_fails_once(call: Call, part: Partition, is_current: bool) -> None:
    asked: list[bool] = []

    def refuse(known: Known) -> None:
        asked.append(known.state is None)
        known.is_current = is_current
        raise MetaError("no")

    with pytest.raises(MetaError, match="no"):
        on_cached_table(call, NAME, refuse)
    assert asked == ([False] if is_current else [False, True])


def test_a_refusal_costs_as_much_as_the_lock(call: Call, part: Partition, counts: StatementCounts) -> None:
    """A refused call reads nothing again and sends no statement again: the row that it used was locked."""
    missing = deepcopy(part)
    missing.values = ["9"]
    narrower = deepcopy(part)
    narrower.sd.cols = columns_of(("a", "array<int>"), ("b", "string"))

    def refused(error: type[Exception], work: Callable[[], object]) -> Callable[[], None]:
        def run() -> None:
            with pytest.raises(error):
                work()

        return run

    counts("alter a partition that is missing", refused(InvalidOperation, lambda: alter_partitions(call, NAME, [missing])))
    counts("alter a partition to what its data is not", refused(InvalidOperation, lambda: alter_partitions(call, NAME, [narrower])))
    new = [of(NAME, numbers("a", 1, 2), partition="p=9")]
    counts("write statistics of a missing partition", refused(NoSuchObject, lambda: write_statistics.set_statistics(call, new)))


def test_reads_before_a_conflict_do_not_count_after_it(call: Call, part: Partition) -> None:
    seen: list[bool] = []

    def conflicting(known: Known) -> None:
        def work(session: Session) -> None:
            locking = Locking(session, known.table, ["p=1"], known)
            seen.append(known.is_current)
            locking.rows()
            seen.append(known.is_current)
            if len(seen) == 2:
                raise Retry("first")

        call.database.write(work)

    on_cached_table(call, NAME, conflicting)
    assert seen == [False, True, False, True]


def test_few_tables_are_cached(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = call.database.caches.tables
    monkeypatch.setattr(cache, "limit", 2)
    for number in range(4):
        name = make_table(call, f"t{number}")
        assert on_cached_table(call, name, lambda known: known.table.tableName) == f"t{number}"
        assert len(cache) <= 2
    assert tables.cached(call.database, *name) is not None


def test_a_cached_table_is_not_changed_through_a_returned_one(call: Call, part: Partition) -> None:
    def spoil(known: Known) -> None:
        known.table.parameters["a"] = "spoilt"
        known.table.partitionKeys.clear()

    on_cached_table(call, NAME, spoil)
    cached = tables.cached(call.database, *NAME)
    assert cached is not None
    assert cached.table == find_table(call, NAME)
