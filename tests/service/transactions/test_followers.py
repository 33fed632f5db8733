"""The dependents of tables and partitions: rows of transactions, locks and compactions follow a rename and are removed by a drop."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy

import pytest
import sqlalchemy as sa

from metastore.idl import CompactionRequest, CompactionType
from metastore.service.call.context import Call
from metastore.service.call.names import TableName
from metastore.service.catalog import databases
from metastore.service.catalog.partitions import partitions
from metastore.service.catalog.partitions.alter_partitions import rename_partition
from metastore.service.catalog.partitions.drop_partitions import drop_partitions
from metastore.service.catalog.tables import tables
from metastore.service.catalog.tables.alter_table import alter_table
from metastore.service.compaction import compactions
from metastore.service.transactions import write_ids
from metastore.store.catalog import dependents
from metastore.store.catalog.dependents import ORDER
from metastore.store.core.database import Session
from metastore.store.schema.model import (
    compaction_metrics,
    lock_components,
    materialization_rebuilds,
    transaction_components,
    write_id_counters,
    write_notifications,
)
from metastore.store.transactions import write_ids as write_id_rows
from metastore.store.transactions.write_ids import TableKey
from tests.support.acid.txns import INSERT, UPDATE, allocate, begin, begin_one, commit, count, rows, valid, write
from tests.support.catalog.catalog import add_partitions, make_database, make_table
from tests.support.servers.waiting import beside

KEYS = [("k", "string")]
TABLES = (*ORDER, lock_components)
WRITTEN = TableKey("hive", "db", "t")


def transactional(call: Call, name: str, database: str, **options: object) -> TableName:
    made = make_table(
        call,
        name,
        database=database,
        keys=KEYS,
        parameters={"transactional": "true", "transactional_properties": "insert_only"},
        **options,  # type: ignore[arg-type]
    )
    add_partitions(call, made, [["1"], ["2"]])
    return made


def use(call: Call, name: TableName) -> int:
    """Leave rows of a table in every place; return the transaction that stays open."""
    _, table = name.database, name.table
    committed, opened, *others = begin(call, 4)
    allocate(call, others, table, name.database)
    for key in others:
        commit(call, key)
    for key in (committed, opened):
        write(call, key, UPDATE, table, "k=1", name.database)
        write(call, key, INSERT, table, "k=2", name.database)
    commit(call, committed)
    write_ids.add_to_history(call, opened, {f"{name.database}.{table}": 1})
    compactions.compact(call, CompactionRequest(dbname=name.database, tablename=table, partitionname="k=1", type=CompactionType.MAJOR))

    def extra(session: object) -> None:
        insert = session.insert_many  # type: ignore[attr-defined]
        where = {"database": name.database, "table": table}
        insert(
            write_notifications,
            ("transaction_id", "catalog", *where, "partition", "write_id", "time", "body"),
            [
                (opened, name.catalog, *where.values(), "k=1", 2, 0, "{}"),
            ],
        )
        insert(compaction_metrics, (*where, "partition", "type", "value", "version"), [(*where.values(), "k=1", "NUM_DELTAS", 3, 1)])
        insert(materialization_rebuilds, (*where, "transaction_id", "heartbeat_ms"), [(*where.values(), opened, 0)])

    call.database.write(extra)
    return opened


def named(call: Call, table: sa.Table, database: str, name: str) -> int:
    return len(rows(call, table, *(column.name for column in table.primary_key.columns), database=database, table=name))


@pytest.fixture
def two(call: Call) -> tuple[TableName, TableName]:
    """Two tables of one name in two databases, both in use."""
    made = []
    for database in ("one", "two"):
        make_database(call, database)
        made.append(transactional(call, "t", database))
        use(call, made[-1])
    assert all(named(call, table, database, "t") > 0 for table in TABLES for database in ("one", "two"))
    return made[0], made[1]


def test_a_renamed_table_takes_everything_along(call: Call, two: tuple[TableName, TableName]) -> None:
    name, _ = two
    before = {table.name: (named(call, table, "one", "t"), named(call, table, "two", "t")) for table in TABLES}
    new = deepcopy(tables.get_table(call, name))
    new.tableName, new.dbName = "u", "two"
    alter_table(call, name, new)
    after = {table.name: (named(call, table, "two", "u"), named(call, table, "two", "t")) for table in TABLES}
    assert after == before
    assert sum(named(call, table, "one", "t") for table in TABLES) == 0
    assert valid(call, "two.u") == (4, [4], set(), 4)
    assert write_ids.max_allocated_write_id(call, "two", "u") == 4


def test_a_rename_onto_a_name_with_leftovers_succeeds(call: Call, two: tuple[TableName, TableName]) -> None:
    name, _ = two
    left = begin_one(call)
    write(call, left, INSERT, "u", database="one")
    new = deepcopy(tables.get_table(call, name))
    new.tableName = "u"
    alter_table(call, name, new)
    assert rows(call, write_id_counters, "next", database="one", table="u") == [(5,)]


def test_a_renamed_partition_takes_its_rows_along(call: Call, two: tuple[TableName, TableName]) -> None:
    name, _ = two
    part = deepcopy(partitions.get_partition(call, name, ["1"]))
    part.values = ["9"]
    held = [table for table in TABLES if "partition" in table.c]
    before = {table.name: len(rows(call, table, "partition", database="one", partition="k=1")) for table in held}
    rename_partition(call, name, ["1"], part)
    assert {table.name: len(rows(call, table, "partition", database="one", partition="k=9")) for table in held} == before
    assert all(before.values())
    assert sum(len(rows(call, table, "partition", database="two", partition="k=9")) for table in held) == 0


def test_a_dropped_table_takes_everything_but_locks(call: Call, two: tuple[TableName, TableName]) -> None:
    name, other = two
    kept = {table.name: named(call, table, "two", "t") for table in ORDER}
    tables.drop_table(call, name, delete_data=True)
    assert {table.name: named(call, table, "one", "t") for table in ORDER} == {table.name: 0 for table in ORDER}
    assert {table.name: named(call, table, other.database, "t") for table in ORDER} == kept
    transactional(call, "t", "one")
    assert write(call, begin_one(call), INSERT, "t", "k=1", "one") == 1


def test_dropped_partitions_take_their_rows_and_leave_the_write_ids(call: Call, two: tuple[TableName, TableName]) -> None:
    name, _ = two
    drop_partitions(call, name, ["k=1"], delete_data=True, if_exists=False)
    for table in ORDER:
        if "partition" in table.c:
            assert rows(call, table, "partition", database="one", partition="k=1") == []
            assert rows(call, table, "partition", database="two", partition="k=1") != []
    assert rows(call, transaction_components, "partition", database="one") == [("k=2",), ("k=2",)]
    assert valid(call, "one.t") == (4, [4], set(), 4)


def test_a_dropped_database_takes_everything(call: Call, two: tuple[TableName, TableName]) -> None:
    kept = {table.name: named(call, table, "two", "t") for table in ORDER}
    databases.drop_database(call, "hive", "one", delete_data=True, cascade=True)
    assert {table.name: named(call, table, "one", "t") for table in ORDER} == {table.name: 0 for table in ORDER}
    assert {table.name: named(call, table, "two", "t") for table in ORDER} == kept


def test_a_table_without_transactions_costs_no_statements(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    name = make_table(call, "plain", keys=KEYS)
    followed: list[str] = []
    for change in ("rename_table", "delete_table"):
        monkeypatch.setattr(dependents, change, lambda *_, change=change: followed.append(change))
    new = deepcopy(tables.get_table(call, name))
    new.tableName = "renamed"
    alter_table(call, name, new)
    tables.drop_table(call, TableName("hive", "default", "renamed"), delete_data=True)
    assert followed == []
    assert count(call, ORDER) == {table.name: 0 for table in ORDER}


@pytest.mark.parametrize(
    "follow",
    [
        lambda session: dependents.rename_table(session, WRITTEN, WRITTEN._replace(table="u")),
        lambda session: dependents.delete_table(session, WRITTEN),
        lambda session: dependents.delete_database(session, WRITTEN.catalog, WRITTEN.database),
    ],
    ids=["rename", "drop", "drop of a database"],
)
def test_a_wait_for_a_counter_holds_nothing_that_a_commit_takes_after_it(call: Call, follow: Callable[[Session], None]) -> None:
    write(call, begin_one(call), UPDATE)
    taken = sa.select(transaction_components.c.id).with_for_update(nowait=True)
    beside(
        call,
        lambda session: None if write_id_rows.lock_counters(session, [WRITTEN]).rows else pytest.fail("no counter"),
        lambda: call.database.write(follow),
        lambda session: session.rows(taken),
    )
    assert rows(call, transaction_components, "id", table=WRITTEN.table) == []
