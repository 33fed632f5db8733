"""Two servers change one database at a time, in a chosen order: one call is in its open transaction when the other begins."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import make_url

from metastore.errors import InvalidObject, InvalidOperation, MetaError, MetastoreError, NoSuchObject
from metastore.idl import (
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    Database,
    LongColumnStatsData,
    Partition,
    Table,
)
from metastore.listeners.events import Event
from metastore.service.call.context import Call, Metastore
from metastore.service.call.names import TableName
from metastore.service.catalog import databases
from metastore.service.catalog.partitions import partitions
from metastore.service.catalog.partitions.add_partitions import add_partitions as add
from metastore.service.catalog.partitions.alter_partitions import alter_partitions, rename_partition
from metastore.service.catalog.partitions.drop_partitions import drop_partitions
from metastore.service.catalog.statistics import write_statistics
from metastore.service.catalog.tables import tables
from metastore.service.catalog.tables.alter_table import alter_table
from metastore.store.core.database import Session
from metastore.store.drivers.contract import Row
from metastore.store.schema import model as schema
from metastore.warehouse.locations import parse
from tests.support.catalog.catalog import MetastoreMaker, add_partitions, call_of, make_database, make_table
from tests.support.catalog.recording import Before, Remembering, Within, listening
from tests.support.databases.databases import execute

Work = Callable[[Call], object]
WAITING = {
    "postgresql": "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()",
    "mysql": "SELECT 1 FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'",
}
REFRESH = 0.12
"""Seconds between two queries: InnoDB returns the same rows again to a query within 0.1 s."""


def during(first: Metastore, second: Metastore, holds: Work, comes: Work) -> tuple[MetastoreError | None, MetastoreError | None]:
    """Begin `comes` on the second server when `holds` on the first has made all its changes, but not committed. Return both errors.

    The first commits when the second waits for it, or has ended. Writers of SQLite wait before they begin.
    """
    futures: list[Future[object]] = []
    with ThreadPoolExecutor(1) as pool:

        def begin(_event: Event, _session: Any) -> None:
            if not futures:
                futures.append(pool.submit(comes, call_of(second)))
                url = make_url(first.config.db)
                query = WAITING.get(url.get_backend_name())
                while query and not wait(futures, timeout=REFRESH).done and not execute(url, query):
                    pass

        held = _error(lambda: holds(call_of(listening(first, Within(begin)))))
        assert futures, "the first call never reached its transaction"
        return held, _error(futures[0].result)


def between(second: Metastore, late: Work, early: Callable[[], object]) -> MetastoreError | None:
    """Run `early` after the reads of `late` and before its transaction; return the error of `late`."""
    ran: list[bool] = []

    def run(_event: Event) -> None:
        if not ran:
            ran.append(True)
            early()

    error = _error(lambda: late(call_of(listening(second, Before(run)))))
    assert ran, "the late call asked no listener"
    return error


def _error(work: Callable[[], object]) -> MetastoreError | None:
    try:
        work()
    except MetastoreError as error:
        return error
    return None


@pytest.fixture
def other(metastore: Metastore, make_metastore: MetastoreMaker) -> Metastore:
    """A second server on the same database."""
    return make_metastore()


def rows(metastore: Metastore, table: sa.Table) -> int:
    found = metastore.database.read(lambda session: session.row(sa.select(sa.func.count()).select_from(table)))
    assert found is not None
    return int(found[0])


def assert_nothing_hangs(metastore: Metastore) -> None:
    """No row refers to a table that is not there."""
    for table in (schema.partitions, schema.descriptors, schema.table_statistics, schema.partition_statistics, schema.constraints):
        assert not metastore.database.read(partial(_lost, table)), table.name


def _lost(table: sa.Table, session: Session) -> Sequence[Row]:
    return session.rows(sa.select(table).where(table.c.table_id.not_in(sa.select(schema.tables.c.id))))


def altered(call: Call, name: TableName, **changes: Any) -> Table:
    table = deepcopy(tables.find_table(call, name))
    for field, value in changes.items():
        setattr(table, field, value)
    return table


def rename(call: Call, name: TableName, database: str, table: str) -> None:
    alter_table(call, name, altered(call, name, dbName=database, tableName=table))


def stats_of(name: TableName, partition: str | None = None) -> ColumnStatistics:
    return ColumnStatistics(
        statsDesc=ColumnStatisticsDesc(isTblLevel=partition is None, dbName=name.database, tableName=name.table, partName=partition),
        statsObj=[ColumnStatisticsObj(
            colName="a", colType="int", statsData=ColumnStatisticsData(longStats=LongColumnStatsData(numNulls=0, numDVs=1)),
        )],
    )  # fmt: skip


KEYS = [("k", "string")]


def test_a_table_dropped_while_partitions_are_added(call: Call, metastore: Metastore, other: Metastore) -> None:
    name = make_table(call, "t", keys=KEYS)
    adds, drops = during(
        metastore, other, lambda call: add_partitions(call, name, [["1"]]), lambda call: tables.drop_table(call, name, delete_data=True)
    )
    assert (adds, drops) == (None, None)
    assert_nothing_hangs(metastore)


def test_partitions_added_while_the_table_is_dropped(call: Call, metastore: Metastore, other: Metastore, tmp_path: Path) -> None:
    name = make_table(call, "t", keys=KEYS)
    drops, adds = during(
        metastore, other, lambda call: tables.drop_table(call, name, delete_data=True), lambda call: add_partitions(call, name, [["1"]])
    )
    assert drops is None
    assert isinstance(adds, InvalidObject | NoSuchObject)
    assert_nothing_hangs(metastore)
    assert not (tmp_path / "warehouse" / "t").exists()


@pytest.mark.parametrize("change", ["add", "alter", "rename", "statistics", "table statistics"])
def test_a_database_dropped_while_its_partitions_change(call: Call, metastore: Metastore, other: Metastore, change: str) -> None:
    make_database(call, "d")
    name = make_table(call, "t", keys=KEYS, database="d")
    add_partitions(call, name, [["0"]])
    stored = partitions.get_partition(call, name, ["0"])
    renamed = deepcopy(stored)
    renamed.values = ["2"]
    changes: dict[str, Work] = {
        "add": lambda call: add_partitions(call, name, [["1"]]),
        "alter": lambda call: alter_partitions(call, name, [deepcopy(stored)]),
        "rename": lambda call: rename_partition(call, name, ["0"], renamed),
        "statistics": lambda call: write_statistics.update_partitions(call, name, [stats_of(name, "k=0")]),
        "table statistics": lambda call: write_statistics.update_table(call, name, stats_of(name)),
    }
    held, drops = during(
        metastore, other, changes[change], lambda call: databases.drop_database(call, "hive", "d", delete_data=True, cascade=True)
    )
    assert (held, drops) == (None, None)
    assert_nothing_hangs(metastore)
    assert rows(metastore, schema.partitions) == 0


@pytest.mark.parametrize("change", ["statistics", "table statistics", "alter", "drop"])
def test_changes_of_a_table_that_is_being_dropped_fail(call: Call, metastore: Metastore, other: Metastore, change: str) -> None:
    name = make_table(call, "t", keys=KEYS)
    add_partitions(call, name, [["0"]])
    stored = partitions.get_partition(call, name, ["0"])
    changes: dict[str, Work] = {
        "alter": lambda call: alter_partitions(call, name, [deepcopy(stored)]),
        "statistics": lambda call: write_statistics.update_partitions(call, name, [stats_of(name, "k=0")]),
        "table statistics": lambda call: write_statistics.update_table(call, name, stats_of(name)),
        "drop": lambda call: drop_partitions(call, name, ["k=0"], delete_data=True, if_exists=True),
    }
    drops, late = during(metastore, other, lambda call: tables.drop_table(call, name, delete_data=True), changes[change])
    assert drops is None
    assert isinstance(late, NoSuchObject | InvalidOperation), late
    assert_nothing_hangs(metastore)


def test_a_table_that_leaves_a_database_while_that_is_dropped_is_dropped_or_whole(
    call: Call, metastore: Metastore, other: Metastore
) -> None:
    make_database(call, "d")
    name = make_table(call, "t", keys=KEYS, database="d")
    add_partitions(call, name, [["1"]])
    during(
        metastore,
        other,
        lambda call: rename(call, name, "default", "u"),
        lambda call: databases.drop_database(call, "hive", "d", delete_data=True, cascade=True),
    )
    assert_nothing_hangs(metastore)
    moved = TableName("hive", "default", "u")
    assert [column.name for column in tables.get_table(call, moved).sd.cols] == ["a", "b"]
    assert partitions.get_partition_names(call, moved) == ["k=1"]
    place = partitions.get_partition(call, moved, ["1"]).sd.location
    assert Path(parse(place).path).is_dir()


def test_a_table_made_while_its_database_is_dropped(call: Call, metastore: Metastore, other: Metastore, tmp_path: Path) -> None:
    make_database(call, "d")
    drops, creates = during(
        metastore,
        other,
        lambda call: databases.drop_database(call, "hive", "d", delete_data=True, cascade=True),
        lambda call: make_table(call, "t", database="d"),
    )
    assert drops is None
    assert isinstance(creates, NoSuchObject)
    assert rows(metastore, schema.tables) == 0
    assert not (tmp_path / "warehouse" / "d.db").exists()


def test_a_database_dropped_while_a_table_is_made_in_it(call: Call, metastore: Metastore, other: Metastore) -> None:
    make_database(call, "d")
    creates, drops = during(
        metastore,
        other,
        lambda call: make_table(call, "t", database="d"),
        lambda call: databases.drop_database(call, "hive", "d", delete_data=True, cascade=False),
    )
    assert creates is None
    assert isinstance(drops, InvalidOperation)
    assert tables.get_table(call, TableName("hive", "d", "t")).tableName == "t"


@pytest.mark.parametrize("change", ["add", "alter", "drop"])
def test_partitions_of_a_table_that_is_being_renamed(call: Call, metastore: Metastore, other: Metastore, change: str) -> None:
    name = make_table(call, "t", keys=KEYS)
    add_partitions(call, name, [["1"]])
    stored = partitions.get_partition(call, name, ["1"])
    changes: dict[str, Work] = {
        "add": lambda call: add_partitions(call, name, [["2"]]),
        "alter": lambda call: alter_partitions(call, name, [deepcopy(stored)]),
        "drop": lambda call: drop_partitions(call, name, ["k=1"], delete_data=True, if_exists=True),
    }
    renames, late = during(metastore, other, lambda call: rename(call, name, "default", "u"), changes[change])
    assert renames is None
    assert isinstance(late, NoSuchObject | InvalidObject | InvalidOperation)
    (found,) = partitions.get_partitions(call, TableName("hive", "default", "u"))
    assert found.sd.location.endswith("/u/k=1")
    assert Path(parse(found.sd.location).path).is_dir()


def test_reading_partitions_of_a_table_that_is_dropped_meanwhile(call: Call, make_metastore: MetastoreMaker) -> None:
    name = make_table(call, "t", keys=KEYS)
    add_partitions(call, name, [["1"]])
    reader = make_metastore()

    def drop(text: str) -> None:
        if "FROM partitions" in text:
            reader.database.caches.columns.clear()
            reader.database.caches.storage_formats.clear()
        elif "FROM descriptors" in text:
            reader.database.observer = None
            tables.drop_table(call, name, delete_data=True)

    reader.database.observer = drop
    with pytest.raises(NoSuchObject):
        partitions.get_partitions(call_of(reader), name)


def test_a_drop_takes_only_the_table_that_it_has_read(call: Call, other: Metastore) -> None:
    name = make_table(call, "t")

    def replace() -> None:
        tables.drop_table(call, name, delete_data=True)
        make_table(call, "t", keys=KEYS)
        add_partitions(call, name, [["1"]])

    error = between(other, lambda call: tables.drop_table(call, name, delete_data=True), replace)
    assert_nothing_hangs(other)
    if error is not None:
        assert isinstance(error, NoSuchObject)
        assert partitions.get_partition_names(call, name) == ["k=1"]


def test_a_drop_keeps_the_data_of_a_table_that_became_external_meanwhile(call: Call, other: Metastore) -> None:
    name = make_table(call, "t")
    place = Path(parse(tables.get_table(call, name).sd.location).path)
    (place / "data").write_text("x")

    def protect() -> None:
        alter_table(call, name, altered(call, name, parameters={"EXTERNAL": "TRUE"}, tableType="EXTERNAL_TABLE"))

    assert between(other, lambda call: tables.drop_table(call, name, delete_data=True), protect) is None
    assert (place / "data").exists()


def test_a_truncation_keeps_parameters_set_meanwhile(call: Call, other: Metastore) -> None:
    name = make_table(call, "t")

    def commit() -> None:
        alter_table(call, name, altered(call, name, parameters={"metadata_location": "v2"}))

    assert between(other, lambda call: tables.truncate_table(call, name, None, None), commit) is None
    assert tables.get_table(call, name).parameters["metadata_location"] == "v2"


@pytest.mark.parametrize("change", ["add", "rename"])
def test_partitions_get_directories_below_the_table_s_newest_location(call: Call, other: Metastore, tmp_path: Path, change: str) -> None:
    name = make_table(call, "t", keys=KEYS)
    add_partitions(call, name, [["1"]])
    renamed = deepcopy(partitions.get_partition(call, name, ["1"]))
    renamed.values = ["2"]
    new = new_partitions(call, name, ["2"])
    works: dict[str, Work] = {
        "add": lambda call: add(call, name, new),
        "rename": lambda call: rename_partition(call, name, ["1"], renamed),
    }

    def relocate() -> None:
        table = altered(call, name)
        table.sd.location = f"file:{tmp_path}/elsewhere"
        alter_table(call, name, table)

    assert between(other, works[change], relocate) is None
    for partition in partitions.get_partitions(call, name):
        assert Path(parse(partition.sd.location).path).is_dir(), partition.sd.location


def test_altering_a_database_keeps_changes_of_another_server(call: Call, other: Metastore) -> None:
    make_database(call, "d")
    error = between(
        other,
        lambda call: databases.alter_database(call, "hive", "d", Database(name="d", parameters={"a": "b"})),
        lambda: databases.alter_database(call, "hive", "d", Database(name="d", description="new", parameters={})),
    )
    assert error is None
    found = databases.get_database(call, "hive", "d")
    assert (found.description, found.parameters) == ("new", {"a": "b"})


def together(*works: Callable[[], object]) -> list[MetastoreError | None]:
    """Start all at one moment, each in a thread of its own; return their errors."""
    start = threading.Barrier(len(works))

    def one(work: Callable[[], object]) -> MetastoreError | None:
        start.wait()
        return _error(work)

    with ThreadPoolExecutor(len(works)) as pool:
        return list(pool.map(one, works))


def test_one_of_many_compare_and_swaps_wins(call: Call, metastore: Metastore, other: Metastore) -> None:
    name = make_table(call, "t", parameters={"version": "0"})
    for number in range(20):
        expected = {"expected_parameter_key": "version", "expected_parameter_value": str(number)}
        new = altered(call, name, parameters={"version": str(number + 1)})

        def swap(server: Metastore, new: Table = new, expected: dict[str, str] = expected) -> None:
            alter_table(call_of(server), name, deepcopy(new), environment=expected)

        errors = together(*(lambda server=server: swap(server) for server in [metastore, other] * 4))
        assert errors.count(None) == 1, errors
        assert all(isinstance(error, MetaError) and "has been modified" in error.message for error in errors if error), errors


def new_partitions(call: Call, name: TableName, values: list[str]) -> list[Partition]:
    sd = deepcopy(tables.get_table(call, name).sd)
    sd.location = None  # type: ignore[assignment]  # the default place
    return [Partition(values=[value], dbName=name.database, tableName=name.table, parameters={}, sd=deepcopy(sd)) for value in values]


def _add(name: TableName, new: list[Partition], call: Call, step: int) -> None:
    add(call, name, deepcopy(new)[::step])


def _alter(name: TableName, stored: list[Partition], call: Call, step: int) -> None:
    alter_partitions(call, name, deepcopy(stored)[::step])


def _drop(name: TableName, names: list[str], call: Call, step: int) -> None:
    drop_partitions(call, name, names[::step], delete_data=True, if_exists=True)


def test_lists_in_opposite_order_end_in_one_success_and_each_call_is_reported_once(
    call: Call, metastore: Metastore, other: Metastore
) -> None:
    listeners = [Remembering(), Remembering()]
    servers = [call_of(listening(server, memory)) for server, memory in zip((metastore, other), listeners, strict=True)]
    values = [str(value) for value in range(60)]

    def both(work: Callable[[Call, int], object]) -> list[MetastoreError | None]:
        return together(lambda: work(servers[0], 1), lambda: work(servers[1], -1))

    for number in range(5):
        name = make_table(call, f"t{number}", keys=KEYS)
        new = new_partitions(call, name, values)
        adds = both(partial(_add, name, new))
        assert adds.count(None) == 1, adds
        assert both(partial(_alter, name, partitions.get_partitions(call, name))) == [None, None]
        assert both(partial(_drop, name, [f"k={value}" for value in values])) == [None, None]
    assert [len(memory.seen) for memory in listeners] == [15, 15]
