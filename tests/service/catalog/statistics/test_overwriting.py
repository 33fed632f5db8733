"""Statistics that are overwritten unread: the result is as if the call had read the rows first. The log has one event for each."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
import sqlalchemy as sa

from metastore.errors import NoSuchObject
from metastore.idl import ColumnStatisticsObj
from metastore.rules.statistics import statistics_validity
from metastore.service.call.context import Call, Metastore
from metastore.service.call.names import TableName
from metastore.service.catalog.partitions.alter_partitions import alter_partitions, rename_partition
from metastore.service.catalog.partitions.drop_partitions import drop_partitions
from metastore.service.catalog.partitions.partitions import get_partition
from metastore.service.catalog.statistics import delete_statistics, statistics, write_statistics
from metastore.store.schema import model as schema
from tests.service.changes.test_races import during, other, rows
from tests.support.catalog.catalog import add_partitions, call_of, make_table
from tests.support.catalog.column_statistics import numbers, of, texts
from tests.support.catalog.recording import Within, listening
from tests.support.databases.statement_counts import StatementCounts

__all__ = ["other"]
NAME = TableName("hive", "default", "t")
EVENTS = sa.select(sa.func.coalesce(sa.func.sum(schema.notifications.c.events), 0)).where(
    schema.notifications.c.type == "UPDATE_PARTITION_COLUMN_STAT"
)


@pytest.fixture
def write(call: Call) -> Callable[..., bool]:
    """Writes statistics of partitions, of which 1 already has statistics of a, 2 of b, 3 of both, and 4 none."""
    make_table(call, "t", keys=[("p", "int")])
    add_partitions(call, NAME, [[str(number)] for number in range(1, 5)], {"k": "v"})

    def work(call: Call, *columns: ColumnStatisticsObj, among: str = "1234") -> bool:
        return write_statistics.set_statistics(call, [of(NAME, *columns, partition=f"p={number}") for number in among])

    work(call, numbers("a", 1, 2), among="13")
    work(call, texts("b", 3, 1.5), among="23")
    return work


def stored(call: Call) -> dict[str, list[ColumnStatisticsObj]]:
    found = statistics.get_partitions(call, NAME, [f"p={number}" for number in range(1, 5)], ["a", "b"])
    return {name: each.statsObj for name, each in found.items()}


def exact(call: Call, value: str) -> set[str]:
    parameters = get_partition(call, NAME, [value]).parameters
    assert parameters["k"].startswith("v")
    return statistics_validity.exact_columns(parameters)


def events(call: Call) -> int:
    return call.database.read(lambda session: int(session.rows(EVENTS)[0][0]))


def test_every_partition_keeps_its_statistics_of_other_columns(call: Call, write: Callable[..., bool]) -> None:
    before = events(call)
    new, had = numbers("a", 5, 6), texts("b", 3, 1.5)
    for _ in range(2):
        assert write(call, new)
        assert stored(call) == {"p=1": [new], "p=2": [new, had], "p=3": [new, had], "p=4": [new]}
        assert [exact(call, value) for value in "1234"] == [{"a"}, {"a", "b"}, {"a", "b"}, {"a"}]
    assert events(call) - before == 8


def test_the_same_columns_again(call: Call, write: Callable[..., bool], counts: StatementCounts) -> None:
    write(call, numbers("a", 5, 6), among="14")
    counts("the same columns", lambda: write(call, numbers("a", 7, 8), among="14"))
    counts("another column", lambda: write(call, numbers("a", 7, 8), texts("b", 1, 1.0), among="4"))


@pytest.mark.parametrize("number", [1, 100])
def test_statistics_that_are_not_written_are_not_logged(call: Call, write: Callable[..., bool], number: int) -> None:
    before = events(call), stored(call)
    with pytest.raises(NoSuchObject, match=r"Partition p=10 of hive\.default\.t doesn't exist"):
        write_statistics.set_statistics(
            call, [of(NAME, numbers("a", 7, 8), partition=f"p={value}") for value in (1, 2, *range(10, 10 + number))]
        )
    assert (events(call), stored(call)) == before


def test_other_listeners_are_called_when_all_is_written(call: Call, write: Callable[..., bool]) -> None:
    seen = []

    def look(_event: Any, session: Any) -> None:
        query = sa.select(sa.func.count()).where(schema.partitions.c.parameters.like('%COLUMN_STATS_ACCURATE%"a%"b%'))
        seen.append(session.rows(query)[0][0])

    write(call_of(listening(call.metastore, Within(look))), numbers("a", 5, 6))
    assert seen == [2]


def change_of(value: str, **parameters: str) -> Callable[[Call], None]:
    def work(call: Call) -> None:
        changed = deepcopy(get_partition(call, NAME, [value]))
        changed.parameters = {"k": "v", **parameters}
        alter_partitions(call, NAME, [changed], environment={"DO_NOT_UPDATE_STATS": "true"})

    return work


def renamed(call: Call) -> None:
    changed = deepcopy(get_partition(call, NAME, ["1"]))
    changed.values = ["9"]
    rename_partition(call, NAME, ["1"], changed)


new, theirs = numbers("a", 5, 6), numbers("a", 8, 9)
both = [new, texts("b", 4, 2.5)]


@pytest.mark.parametrize(
    ("meanwhile", "columns", "marks"),
    [
        (lambda call: write_statistics.set_statistics(call, [of(NAME, theirs, partition="p=1")]), [new], {"a"}),
        (lambda call: write_statistics.set_statistics(call, [of(NAME, texts("b", 4, 2.5), partition="p=1")]), both, {"a", "b"}),
        (lambda call: delete_statistics.delete(call, NAME, ["p=1"], ["a"]), [new], {"a"}),
        (change_of("1", l="w"), [new], {"a"}),
        (change_of("1", COLUMN_STATS_ACCURATE='{"BASIC_STATS":"true"}'), [new], {"a"}),
        (renamed, None, set()),
        (lambda call: drop_partitions(call, NAME, ["p=1"], delete_data=True, if_exists=False), None, set()),
    ],
)
def test_changes_of_others_in_the_meantime_are_seen(
    call: Call, metastore: Metastore, other: Metastore, write: Callable[..., bool], meanwhile: Callable[[Call], None],
    columns: list[ColumnStatisticsObj] | None, marks: set[str],
) -> None:  # fmt: skip
    write(call_of(other), new, among="1")  # both servers know the table
    before = events(call)
    held, error = during(metastore, other, meanwhile, lambda late: write(late, new, among="1"))
    assert held is None
    if columns is None:
        assert isinstance(error, NoSuchObject)
        assert events(call) == before
        assert "p=1" not in stored(call)
        assert rows(metastore, schema.partition_statistics) == (3 if meanwhile is renamed else 2), "of a renamed one they are kept"
        return
    assert error is None
    assert stored(call)["p=1"] == columns
    assert exact(call, "1") == marks


def test_each_partition_gets_its_own(call: Call) -> None:
    """Each partition gets its own statistics, also if names are not in the order of the keys, or not ASCII."""
    make_table(call, "t", keys=[("p", "string")])
    values = ["b", "ä", "a", "Z", "10", "9", "\U0001f600", "zz", "\uff5a"]
    add_partitions(call, NAME, [[value] for value in values])
    for shift in (0, 100):
        new = [of(NAME, numbers("a", shift + n, shift + n), partition=f"p={value}") for n, value in enumerate(values)]
        write_statistics.set_statistics(call, new)
        found = statistics.get_partitions(call, NAME, [f"p={value}" for value in values], ["a"])
        assert {name: each.statsObj for name, each in found.items()} == {
            f"p={value}": [numbers("a", shift + n, shift + n)] for n, value in enumerate(values)
        }
