"""Numbers of SQL statements of each operation on transactions, write ids and locks: they do not grow with the request.

The numbers are in statement_counts.json (`tests/support/databases/statement_counts.py`). BEGIN and COMMIT are not counted. A count of 1 is
a statement that commits by itself, except where a comment says otherwise. On PostgreSQL one statement does the most frequent change, and
counts as one more where it finds more to do. On MariaDB the statements of such a change are sent together, with a guard among them, and
count in addition where the guard refuses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
import sqlalchemy as sa

from metastore.idl import AddDynamicPartitions, LockComponent
from metastore.service.call.context import Call, Client, Metastore
from metastore.service.transactions import house_keeping, locks, transactions, write_ids
from metastore.store.compaction import compaction_sources
from metastore.store.core.database import Session
from metastore.store.drivers.contract import Row
from metastore.store.schema import model as schema
from metastore.store.transactions import components
from metastore.store.transactions import transactions as transaction_rows
from metastore.store.transactions import write_ids as write_id_rows
from metastore.store.transactions.write_id_snapshots import snapshot_query
from tests.support.acid.txns import (
    INSERT,
    READ,
    SELECT,
    UPDATE,
    WRITE,
    abort,
    allocate,
    ask,
    begin,
    begin_one,
    commit,
    component,
)
from tests.support.catalog.catalog import MetastoreMaker
from tests.support.databases.statement_counts import StatementCounts

SIZES = [1, 20, 40]
"""Sizes of a request. One is the most frequent and has its own numbers. The numbers of twenty and of forty are the same."""


def sized(size: int) -> str:
    """Return the end of the name of a counted operation."""
    return "one" if size == 1 else "many"


@pytest.fixture
def metastore(make_metastore: MetastoreMaker) -> Metastore:
    """A server without the notification log, which adds a statement to each change."""
    return make_metastore(notification_log=False)


def parts(size: int, operation: int = SELECT, kind: int = READ, **options: bool) -> list[LockComponent]:
    return [component(kind, f"t{number % 7}", f"p={number}", operation=operation, **options) for number in range(size)]


@pytest.mark.parametrize("size", SIZES)
def test_opening_and_ending_without_writes(call: Call, counts: StatementCounts, size: int) -> None:
    begin_one(call)
    of = sized(size)
    opened = counts(f"open, {of}", lambda: begin(call, size))
    counts(f"commit, {of}", lambda: commit(call, opened[0]))
    fresh = begin_one(call)
    counts(f"abort, {of}", lambda: abort(call, fresh))
    counts(f"abort several, {of}", lambda: transactions.abort_transactions(call, opened))  # one is committed
    counts(f"get open transactions, {of}", lambda: transactions.get_open_transactions(call))
    counts(f"get open transactions with their users, {of}", lambda: transactions.get_open_transactions_info(call))


def test_heartbeats(call: Call, counts: StatementCounts) -> None:
    keys = begin(call, 40)
    held, _ = ask(call, component(READ))
    counts("of a transaction", lambda: locks.heartbeat(call, 0, keys[0]))
    counts("of a lock", lambda: locks.heartbeat(call, held, 0))
    counts("of both", lambda: locks.heartbeat(call, held, keys[0]))
    counts("of a range", lambda: transactions.heartbeat_range(call, keys[0], keys[-1]))
    counts("of a range that lacks some", lambda: transactions.heartbeat_range(call, keys[0], keys[-1] + 1))


@pytest.mark.parametrize("size", SIZES)
def test_locks(call: Call, counts: StatementCounts, size: int) -> None:
    first, second, writer = begin(call, 3)
    of = sized(size)
    ask(call, component(READ))
    counts(f"read, {of}", lambda: ask(call, *parts(size)))
    counts(f"read in a transaction, {of}", lambda: ask(call, *parts(size), transaction=first))  # nothing was met before
    counts(f"update, {of}", lambda: ask(call, *parts(size, UPDATE, WRITE), transaction=writer))
    held, _ = ask(call, *parts(size, kind=WRITE), transaction=second)
    counts(f"check, {of}", lambda: locks.check_lock(call, held))
    asked, _ = ask(call, component(READ))
    counts(f"unlock, {of}", lambda: locks.unlock(call, asked))
    counts(f"show, {of}", lambda: locks.show_locks(call))
    counts(f"commit, {of}", lambda: commit(call, first))  # two statements find that it has locks, and no intents
    counts(f"abort, {of}", lambda: abort(call, second))


@pytest.mark.parametrize("size", SIZES)
def test_write_ids(call: Call, counts: StatementCounts, size: int) -> None:
    for table in "tu":  # the counter of a table is made on the portable way
        allocate(call, [begin_one(call)], table)
    keys, of = begin(call, size), sized(size)
    counts(f"allocate, {of}", lambda: allocate(call, keys))
    counts(f"allocate again, {of}", lambda: allocate(call, keys))  # the same write ids are returned
    counts(f"allocate in another table, {of}", lambda: allocate(call, keys, "u"))
    names = [f"db.{'tu'[number % 2]}{number // 2 or ''}" for number in range(size)]
    counts(f"get, {of}", lambda: write_ids.get_valid_write_ids(call, names))  # three: open transactions, counters, unseen write ids
    counts(f"get of an old snapshot, {of}", lambda: write_ids.get_valid_write_ids(call, names, "5:5:1,2:"))
    counts(f"get of a snapshot with holes, {of}", lambda: write_ids.get_valid_write_ids(call, names, "100000:5:1,2:5-99999"))
    counts(f"get of a whole snapshot, {of}", lambda: write_ids.get_valid_write_ids(call, names, "100000:100001::"))
    counts(f"get of a whole snapshot again, {of}", lambda: write_ids.get_valid_write_ids(call, names, "100000:100001::"))
    request = AddDynamicPartitions(
        txnid=keys[0], writeid=1, dbname="db", tablename="t", partitionnames=[f"p={number}" for number in range(size)]
    )
    counts(f"add dynamic partitions, {of}", lambda: write_ids.add_dynamic_partitions(call, request))
    counts(f"add to the history, {of}", lambda: write_ids.add_to_history(call, keys[0], dict.fromkeys(names, 1)))


@pytest.mark.parametrize("size", SIZES)
def test_commits_of_writes(call: Call, counts: StatementCounts, size: int) -> None:
    inserts, changes, loser = begin(call, 3)
    of = sized(size)
    for key, operation, kind in ((inserts, INSERT, READ), (changes, UPDATE, WRITE), (loser, UPDATE, WRITE)):
        for table in range(7):
            allocate(call, [key], f"t{table}")
        ask(call, *parts(size, operation, kind), transaction=key)
    counts(f"inserts, {of}", lambda: commit(call, inserts))
    counts(f"updates, {of}", lambda: commit(call, changes))

    def lose() -> None:
        with pytest.raises(Exception, match="write conflict"):
            commit(call, loser)

    counts(f"updates that lose, {of}", lose)  # changes of one object are judged in one round trip, where the database can do that


@pytest.mark.parametrize("size", SIZES)
def test_with_the_notification_log(make_metastore: MetastoreMaker, counts: StatementCounts, size: int) -> None:
    """An event is a row that the same statement adds, or one statement more."""
    call = Call(make_metastore(), Client("127.0.0.1:1", user="alice"), "test")
    counts.database = call.database
    of = sized(size)
    begin_one(call)
    keys = counts(f"open, {of}", lambda: begin(call, max(4, size)))
    counts(f"commit, {of}", lambda: commit(call, keys[0]))
    counts(f"abort, {of}", lambda: abort(call, keys[1]))
    allocate(call, [keys[3]])
    counts(f"allocate, {of}", lambda: allocate(call, [keys[2]]))  # one statement checks whether the transaction is within a range
    ask(call, *parts(size, INSERT), transaction=keys[2])
    counts(f"commit inserts, {of}", lambda: commit(call, keys[2]))
    counts(f"abort some that have ended, {of}", lambda: transactions.abort_transactions(call, keys))
    batch, holed = begin(call, size + 1), begin(call, 5)[::2]
    counts(f"abort a batch, {of}", lambda: transactions.abort_transactions(call, batch))
    counts(f"abort a batch with holes, {of}", lambda: transactions.abort_transactions(call, holed))


@pytest.fixture
def trips(call: Call, monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], int]:
    """Counts the waits of a call for its database."""
    sent: list[object] = []

    def counting(function: Callable[..., object]) -> Callable[..., object]:
        def count(cursor: object, *args: object) -> object:
            sent.append(cursor)
            return function(cursor, *args)

        return count

    kind = call.database.driver.name
    if kind == "sqlite":
        pytest.skip("SQLite is not a round trip away")
    elif kind == "mysql":
        from metastore.store.drivers.mysql_connection import MySQLConnection

        monkeypatch.setattr(MySQLConnection, "ask", counting(MySQLConnection.ask))  # each packet goes through it
    else:
        from metastore.store.drivers.postgresql_cursor import PostgreSQLCursor

        plain, gathered = PostgreSQLCursor.execute, counting(PostgreSQLCursor._answers)  # statements that are sent together have one answer
        monkeypatch.setattr(PostgreSQLCursor, "_answers", gathered)
        alone = counting(plain)

        def execute(cursor: PostgreSQLCursor, *args: object) -> object:
            waits = cursor._waiting or cursor._pipeline is not None  # then it is sent with them
            return (plain if waits else alone)(cursor, *args)  # type: ignore[operator]  # the same signature

        monkeypatch.setattr(PostgreSQLCursor, "execute", execute)

    def count(work: Callable[[], object]) -> int:
        sent.clear()
        work()
        return len(sent)

    return count


def test_round_trips(make_metastore: MetastoreMaker, trips: Callable[[Callable[[], object]], int], counts: StatementCounts) -> None:
    """The round trips include BEGIN, COMMIT and the log. They are of the second call of each kind, after its counters and queues exist."""
    call = Call(make_metastore(), Client("127.0.0.1:1", user="alice"), "test")
    for known in (False, True):
        reader, inserter, changer = begin(call, 3)
        for key in (inserter, changer):
            allocate(call, [key])
        batch = begin(call, 40)
        asked: dict[str, Callable[[], object]] = {
            "lock": lambda: ask(call, component(READ)),
            "lock in a transaction": partial(ask, call, component(READ), transaction=reader),
            "lock to insert": partial(ask, call, component(READ, operation=INSERT), transaction=inserter),
            "lock to update": partial(ask, call, component(WRITE, operation=UPDATE), transaction=changer),
            "commit an insert": partial(commit, call, inserter),
            "commit an update": partial(commit, call, changer),
            "allocate": partial(allocate, call, batch),
        }
        found = {operation: trips(work) for operation, work in asked.items()}
        if known:
            for operation, number in found.items():
                counts.note(operation, number, [])


@pytest.mark.parametrize("size", SIZES)
def test_giving_up(call: Call, counts: StatementCounts, size: int) -> None:
    for key in begin(call, size):
        ask(call, component(READ), transaction=key)
    metastore = call.metastore
    call.database.write(lambda session: session.cursor.execute("UPDATE transactions SET heartbeat_ms = 0"))
    counts("abort transactions", lambda: house_keeping.abort_timed_out(metastore))
    for _ in range(size):
        ask(call, component(READ))
    call.database.write(lambda session: session.cursor.execute("UPDATE locks SET heartbeat_ms = 0"))
    counts("expire locks", lambda: house_keeping.expire_locks(metastore))
    counts("forget what has ended", lambda: house_keeping.delete_ended(metastore))


def test_a_list_of_keys_is_found_by_the_index(call: Call) -> None:
    if call.database.driver.name != "sqlite":
        pytest.skip("SQLite shows its plans without rows")
    text, *_ = call.database.compiled[transaction_rows.LOCK_MANY]
    plan = call.database.read(lambda session: session.cursor.execute(f"EXPLAIN QUERY PLAN {text}", {"keys": "[1]"}).fetchall())
    assert "SEARCH transactions USING INTEGER PRIMARY KEY" in plan[0][3]


@pytest.mark.parametrize(
    "clause", [components.INTENTS, components.COMPLETE, components.DELETE_DYNAMIC, compaction_sources.DELETE_TRANSACTIONS]
)
def test_writes_of_a_transaction_are_found_by_it_and_not_by_the_table(call: Call, clause: sa.ClauseElement) -> None:
    rows = [(key, "hive", "db", "t", f"p={key}", "u", key, 1, key) for key in range(1, 3000)]
    columns = (*components.COLUMNS, "committed_ms", "commit_id")
    call.database.write(lambda session: session.insert_many(schema.transaction_components, columns, rows))
    text, literals, _ = call.database.compiled[clause]
    convert = call.database.driver.convert
    values = {
        "key": 7,
        "keys": convert([7]),
        "kept": convert([-1]),
        "row_changes": convert(["u"]),
        "number": 1,
        "now": 1,
        "catalog_key": "hive",
        "database_key": "db",
        "table_key": "t",
        "partition_key": None,
    }
    explain = "EXPLAIN QUERY PLAN" if call.database.driver.name == "sqlite" else "EXPLAIN"

    def work(session: Session) -> Sequence[Row]:
        session.cursor.execute(f"{explain} {text}", {**literals, **values})
        found: Sequence[Row] = session.cursor.fetchall()
        return found

    plan = " ".join(str(value) for line in call.database.read(work) for value in line)
    assert "ix_transaction_components_transaction_id" in plan.partition("ix_transaction_components_database")[0], plan


@pytest.mark.parametrize("one", [True, False])
def test_writes_outside_a_snapshot_are_found_by_transactions_in_a_table_without_statistics(call: Call, one: bool) -> None:
    if call.database.driver.name != "postgresql":
        pytest.skip("the others do not plan by the size of tables that were never analysed")
    allocate(call, begin(call, 3000)[::2])
    text, *_ = call.database.compiled[snapshot_query(one=one, excepts=True)]
    values = {
        "mark": 3000,
        "settled": 6,
        "exceptions": "{7}",
        "catalogs": "{hive}",
        "databases": "{db}",
        "tables": "{t0}",
        "catalog_key": "hive",
        "database_key": "db",
        "table_key": "t0",
    }
    plan = call.database.read(lambda session: [line for (line,) in session.cursor.execute(f"EXPLAIN {text}", values).fetchall()])
    scans = [line for line in plan if "Scan" in line and "write_ids" in line]
    assert len([line for line in scans if "on pk_write_ids" in line or "using pk_write_ids" in line]) == 2, plan


@pytest.mark.parametrize(
    "statement",
    [
        write_id_rows.LOCK_COUNTERS,
        write_id_rows.LOCK_COUNTER,
        *(snapshot_query(one=one, excepts=excepts) for one in (True, False) for excepts in (True, False)),
    ],
)
def test_counters_of_tables_are_found_by_their_keys_however_many_tables_there_are(call: Call, statement: sa.Select[Any]) -> None:
    rows = [("hive", f"db{number % 7}", f"t{number}", 1) for number in range(3000)]
    call.database.write(lambda session: session.insert_many(schema.write_id_counters, ("catalog", "database", "table", "next"), rows))
    text, literals, _ = call.database.compiled[statement]
    convert = call.database.driver.convert
    lists = {name: convert([value]) for name, value in {"catalogs": "hive", "databases": "db1", "tables": "t1", "exceptions": 7}.items()}
    names = {"catalog_key": "hive", "database_key": "db1", "table_key": "t1"}
    kind = call.database.driver.name
    explain = {"sqlite": "EXPLAIN QUERY PLAN", "postgresql": "EXPLAIN", "mysql": "EXPLAIN"}[kind]

    def work(session: Session) -> Sequence[Row]:
        session.cursor.execute(f"{explain} {text}", {"mark": 3000, "settled": 6, **literals, **lists, **names})
        found: Sequence[Row] = session.cursor.fetchall()
        return found

    plan = [" ".join(map(str, line)) for line in call.database.read(work)]
    wanted = {
        "sqlite": "SEARCH write_id_counters USING .*catalog=. AND database=. AND table=.",
        "postgresql": r"Index Cond: .*catalog = .*\"table\" = ",
        "mysql": r"write_id_counters'? (None )?(range|eq_ref|const) ",
    }
    assert any(re.search(wanted[kind], line) for line in plan), plan
