"""No call reads a whole table of the database, according to SQLite's planner, which does not know the number of rows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest
from sqlalchemy.sql import ClauseElement

from metastore.idl import HiveObjectRef, HiveObjectType
from metastore.service.call.context import Call
from metastore.service.catalog import databases
from metastore.service.catalog.exchange import exchange_partitions
from metastore.service.catalog.partitions import partitions
from metastore.service.catalog.partitions.add_partitions import add_partitions as add
from metastore.service.catalog.partitions.alter_partitions import alter_partitions, rename_partition
from metastore.service.catalog.partitions.drop_partitions import drop_partitions
from metastore.service.catalog.privileges import list_privileges
from metastore.service.catalog.statistics import statistics, write_statistics
from metastore.service.catalog.tables import tables
from metastore.service.catalog.tables.alter_table import alter_table
from metastore.service.transactions import locks, transactions, write_ids
from metastore.store.core.database import Session
from metastore.store.operations import notifications as log
from metastore.store.transactions import locks as lock_rows
from tests.support.acid.txns import (
    EXCLUSIVE,
    INSERT,
    READ,
    UPDATE,
    WRITE,
    abort,
    allocate,
    ask,
    begin,
    begin_one,
    commit,
    component,
    valid,
)
from tests.support.catalog.catalog import add_partitions, make_database, make_table
from tests.support.catalog.column_statistics import numbers, of

FEW_ROWS = ("catalogs", "json_each")
"""Tables with few rows. The second one is a list that is sent with the call."""
KEYS = [("k", "string"), ("l", "string")]


@pytest.fixture
def plans(call: Call) -> Iterator[dict[str, list[str]]]:
    """Gathers the statements of all calls, and at the end the plan of each."""
    if call.database.driver.name != "sqlite":
        pytest.skip("the others plan by how many rows they believe there are")
    seen: dict[str, list[str]] = {}
    call.database.observer = lambda text: seen.setdefault(text, [])  # type: ignore[assignment]
    yield seen
    call.database.observer = None


def work_on_partitions(call: Call) -> None:
    name = make_table(call, "t", keys=KEYS)
    other = make_table(call, "other", keys=KEYS)
    add_partitions(call, name, [["1", str(number)] for number in range(4)])
    stored = partitions.get_partitions(call, name)
    alter_partitions(call, name, deepcopy(stored))
    rename_partition(call, name, ["1", "3"], partitions.get_partition(call, name, ["1", "3"]))
    partitions.get_partitions_by_names(call, name, ["k=1/l=0"])
    partitions.get_partitions(call, name, partitions.by_filter("k = '1' and l > '2'"))
    partitions.get_partitions(call, name, partitions.by_values(["1"]))
    partitions.get_partition_names(call, name)
    write_statistics.set_statistics(call, [of(name, numbers("a", 1, 2), partition=f"k=1/l={number}") for number in (1, 2)])
    drop_partitions(call, name, ["k=1/l=0"], delete_data=True, if_exists=False)
    exchange_partitions(call, {"k": "1", "l": "1"}, name, other)
    add(call, name, [])


def work_on_tables(call: Call) -> None:
    make_database(call, "db2")
    name = make_table(call, "u", keys=KEYS)
    table = tables.get_table(call, name)
    changed = deepcopy(table)
    changed.tableName = "v"
    alter_table(call, name, changed)
    renamed = name._replace(table="v")
    tables.get_table_meta(call, "hive", "default", "*", [])
    tables.get_tables(call, "hive", "default", "*")
    tables.get_table_objects_by_name(call, "hive", "default", ["v"])
    statistics.get_partitions(call, renamed, ["k=1/l=1"], ["a"])
    list_privileges(call, None, None, HiveObjectRef(HiveObjectType.TABLE, dbName="default", objectName="v", catName="hive"))
    tables.drop_table(call, renamed, delete_data=True)
    databases.drop_database(call, "hive", "db2", delete_data=True, cascade=True)


def work_in_transactions(call: Call) -> None:
    inserter, changer, loser, *batch = begin(call, 8)
    for _ in range(2):
        allocate(call, batch)
    for key, operation, kind in ((inserter, INSERT, READ), (changer, UPDATE, WRITE), (loser, UPDATE, WRITE)):
        allocate(call, [key])
        ask(call, component(kind, operation=operation), transaction=key)
    held, _ = ask(call, component(READ))
    locks.check_lock(call, held)
    locks.heartbeat(call, held, batch[0])
    locks.unlock(call, held)
    valid(call)
    commit(call, inserter)
    commit(call, changer)
    with pytest.raises(Exception, match="write conflict"):
        commit(call, loser)
    abort(call, batch[0])
    transactions.abort_transactions(call, batch)
    transactions.get_open_transactions(call)
    write_ids.add_to_history(call, begin_one(call), {"db.t": 1})


def test_no_call_reads_a_whole_table(call: Call, plans: dict[str, list[str]]) -> None:
    for work in (work_on_partitions, work_on_tables, work_in_transactions):
        work(call)
    call.database.observer = None

    def ask_sqlite(text: str, values: dict[str, None] | list[None]) -> list[tuple[Any, ...]]:
        return call.database.read(lambda session: session.cursor.execute(text, values).fetchall())  # type: ignore[no-any-return]

    def explain(text: str) -> list[str]:
        values = dict.fromkeys(re.findall(r"(?<!:):(\w+)", text))
        return [row[3] for row in ask_sqlite(f"EXPLAIN QUERY PLAN {text}", values or [None] * text.count("?"))]

    found = {text: [step for step in explain(text) if re.match(r"SCAN \w+", step)] for text in plans}
    stored = {row[0] for row in ask_sqlite("SELECT name FROM sqlite_master WHERE type = 'table'", {})}
    whole = {
        text: steps for text, steps in found.items() if any((of := step.split()[1]) in stored and of not in FEW_ROWS for step in steps)
    }
    assert len(found) > 60
    assert whole == {}


def test_postgresql_compares_no_list_with_each_row(call: Call) -> None:
    """PostgreSQL would compare lists of names and ids by row while it assumes few rows: 84 ms, not 2, for a thousand of ten thousand."""
    if call.database.driver.name != "postgresql":
        pytest.skip("the others look for each in an index")
    seen: dict[str, list[str]] = {}
    call.database.observer = lambda text: seen.setdefault(text, [])  # type: ignore[assignment]
    for work in (work_on_partitions, work_on_tables, work_in_transactions):
        work(call)
    call.database.observer = None

    def explain(session: Session) -> None:
        for text in seen:
            if "%(" not in text or text.startswith("DELETE FROM privileges"):  # few partitions have privileges of their own
                continue
            names = list(dict.fromkeys(re.findall(r"%\((\w+)\)s", text)))
            cursor = session.cursor
            cursor.execute(f"PREPARE asked AS {text % {name: f'${number}' for number, name in enumerate(names, 1)}}")
            cursor.execute(f"EXPLAIN EXECUTE asked({', '.join(['NULL'] * len(names))})")
            seen[text] = [row[0].strip() for row in cursor.fetchall()]
            cursor.execute("DEALLOCATE asked")

    call.database.read(explain)
    looked_up = [text for text, plan in seen.items() if any(re.match(r"Index Cond: .*name = given.item", line) for line in plan)]
    compares = re.compile(r"(Join )?Filter: .*((id|name) = ANY|given)|Index Cond: \(engine = |Seq Scan on ")
    compared = {text: plan for text, plan in seen.items() if any(map(compares.match, plan))}
    assert len(looked_up) >= 5
    assert compared == {}


def test_postgresql_looks_for_events_without_ids_in_the_index(call: Call) -> None:
    """The index is used even if the last statistics counted half of the log as events without ids."""
    if call.database.driver.name != "postgresql":
        pytest.skip("the others do not guess how many there are")
    new = [log.LogRow(1, "COMMIT_TXN", None, None, None, "", "json-0.2") for _ in range(log.BATCH * 2)]
    for _ in range(2):
        call.database.write(log.number)
        call.database.write(lambda session: log.insert(session, new))
    call.database.write(lambda session: session.cursor.execute("ANALYZE notifications"))
    call.database.write(log.number)

    def explain(session: Session, statement: ClauseElement) -> str:
        text, literals, _ = call.database.compiled[statement]
        session.cursor.execute(f"EXPLAIN {text}", {**literals, "key": ""})
        return str(session.cursor.fetchall())

    for statement in (log.PENDING, log.HAS_PENDING, log.LAST):
        assert "Index Cond: (id IS NULL)" in call.database.read(lambda session, statement=statement: explain(session, statement))  # type: ignore[misc]


def test_mariadb_makes_no_table_to_read_locks(call: Call) -> None:
    """MariaDB makes no temporary table to sort locks: it has crashed on one."""
    if call.database.driver.name != "mysql":
        pytest.skip("the others do not")
    for number in range(200):
        ask(call, component(READ, f"t{number % 5}"))
    waiting, _ = ask(call, component(EXCLUSIVE, "t1"))

    def explain(statement: ClauseElement) -> str:
        text, literals, _ = call.database.compiled[statement]
        values = {**literals, "key": waiting, "databases": ("db",), "tables": ("t1",), "types": (READ, EXCLUSIVE)}

        def work(session: Session) -> object:
            session.cursor.execute(f"EXPLAIN {text}", values)
            return session.cursor.fetchall()

        return str(call.database.read(work))

    wide = (lock_rows.ALL, lock_rows.IN_DATABASES, lock_rows.BEFORE_IN_DATABASES)
    for statement in (*wide, lock_rows.OF, lock_rows.ON_TABLES, lock_rows.BEFORE_ON_TABLES):
        assert "temporary" not in explain(statement)
