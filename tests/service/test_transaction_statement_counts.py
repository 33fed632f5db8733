"""How many SQL statements each operation on transactions, write ids and locks runs, whatever the size of the request.

BEGIN and COMMIT are not counted; a count of 1 is a statement that commits by itself, but where the comment says otherwise. On PostgreSQL
one statement does what is done most often, and where it finds more to do it is one too many. On MariaDB the statements of such a change
go together, with a guard among them, and where that refuses they were too many.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
import sqlalchemy as sa

from metastore.idl import AddDynamicPartitions, LockComponent
from metastore.service import house_keeping, locks, transactions, write_ids
from metastore.service.context import Call, Client, Metastore
from metastore.store import compaction_sources, components, schema
from metastore.store import transactions as transaction_rows
from metastore.store import write_ids as write_id_rows
from metastore.store.database import Session
from metastore.store.drivers import Row
from metastore.store.write_id_snapshots import snapshot_query
from tests.support.catalog import MetastoreMaker, Statements
from tests.support.txns import (
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

SIZES = [1, 40]


@pytest.fixture
def metastore(make_metastore: MetastoreMaker) -> Metastore:
    """A server without the notification log, which adds a statement to each change."""
    return make_metastore(notification_log=False)


@pytest.fixture
def counted(call: Call, statements: Statements) -> Callable[[Callable[[], object]], int]:
    def count(work: Callable[[], object]) -> int:
        with statements() as seen:
            work()
        return len(seen)

    return count


def parts(size: int, operation: int = SELECT, kind: int = READ, **options: bool) -> list[LockComponent]:
    return [component(kind, f"t{number % 7}", f"p={number}", operation=operation, **options) for number in range(size)]


Counted = Callable[[Callable[[], object]], int]
Each = Callable[[int, int, int], int]


@pytest.fixture
def each(call: Call) -> Callable[[int, int, int], int]:
    """Chooses the count of this database."""
    return lambda sqlite, postgresql, mysql: {"sqlite": sqlite, "postgresql": postgresql, "mysql": mysql}[call.database.driver.name]


@pytest.mark.parametrize("size", SIZES)
def test_opening_and_ending_without_writes(call: Call, counted: Counted, size: int, each: Each) -> None:
    begin_one(call)
    opened: list[int] = []
    assert counted(lambda: opened.extend(begin(call, size))) == each(3, 1, 2 if size == 1 else 3)
    assert counted(lambda: commit(call, opened[0])) == each(3, 1, 2)
    assert counted(lambda: abort(call, begin_one(call))) == each(5, 2, 4)  # with the opening
    many = size > 1
    assert counted(lambda: transactions.abort_transactions(call, opened)) == each(1 + many, 2 + many, 2 if many else 4)  # one is committed
    assert counted(lambda: transactions.get_open_transactions(call)) == 1
    assert counted(lambda: transactions.get_open_transactions_info(call)) == 1


def test_heartbeats(call: Call, counted: Counted) -> None:
    keys = begin(call, 40)
    held, _ = ask(call, component(READ))
    assert counted(lambda: locks.heartbeat(call, 0, keys[0])) == 1
    assert counted(lambda: locks.heartbeat(call, held, 0)) == 1
    assert counted(lambda: locks.heartbeat(call, held, keys[0])) == 2
    assert counted(lambda: transactions.heartbeat_range(call, keys[0], keys[-1])) == 1
    assert counted(lambda: transactions.heartbeat_range(call, keys[0], keys[-1] + 1)) == 2


@pytest.mark.parametrize("size", SIZES)
def test_locks(call: Call, counted: Counted, size: int, each: Each) -> None:
    first, second, writer = begin(call, 3)
    ask(call, component(READ))
    assert counted(lambda: ask(call, *parts(size))) == each(4, 2, 4)
    assert counted(lambda: ask(call, *parts(size), transaction=first)) == each(5, 3, 4)  # nothing was met before
    assert counted(lambda: ask(call, *parts(size, UPDATE, WRITE), transaction=writer)) == each(7, 3, 6 if size == 1 else 7)
    held, _ = ask(call, *parts(size, kind=WRITE), transaction=second)
    assert counted(lambda: locks.check_lock(call, held)) == 1
    assert counted(lambda: locks.unlock(call, ask(call, component(READ))[0])) == each(5, 3, 5)  # with the asking
    assert counted(lambda: locks.show_locks(call)) == 1
    assert counted(lambda: commit(call, first)) == each(4, 1, 3)  # two that find that it holds locks, and no intents
    assert counted(lambda: abort(call, second)) == each(3, 1, 3)


@pytest.mark.parametrize("size", SIZES)
def test_write_ids(call: Call, counted: Counted, size: int, each: Each) -> None:
    for table in "tu":  # the counter of a table is made on the long way
        allocate(call, [begin_one(call)], table)
    keys, many = begin(call, size), size > 1
    assert counted(lambda: allocate(call, keys)) == each(4, 1, 3 - many)
    assert counted(lambda: allocate(call, keys)) == each(4, 4 + many, 4 + 2 * many)  # those that were taken are given back
    assert counted(lambda: allocate(call, keys, "u")) == each(4, 4 - 3 * many, 4 - 2 * many)
    names = [f"db.{'tu'[number % 2]}{number // 2 or ''}" for number in range(size)]
    assert counted(lambda: write_ids.get_valid_write_ids(call, names)) == 3  # what is open, the counters, and what is not seen
    for text in ("5:5:1,2:", "100000:5:1,2:5-99999"):
        assert counted(lambda text=text: write_ids.get_valid_write_ids(call, names, text)) == 2  # type: ignore[misc]  # bound now
    for _ in range(2):
        assert counted(lambda: write_ids.get_valid_write_ids(call, names, "100000:100001::")) == 1
    request = AddDynamicPartitions(
        txnid=keys[0], writeid=1, dbname="db", tablename="t", partitionnames=[f"p={number}" for number in range(size)]
    )
    assert counted(lambda: write_ids.add_dynamic_partitions(call, request)) == 3
    assert counted(lambda: write_ids.add_to_history(call, keys[0], dict.fromkeys(names, 1))) == 2


@pytest.mark.parametrize("size", SIZES)
def test_commits_of_writes(call: Call, counted: Counted, size: int, each: Each) -> None:
    inserts, changes, loser = begin(call, 3)
    for key, operation, kind in ((inserts, INSERT, READ), (changes, UPDATE, WRITE), (loser, UPDATE, WRITE)):
        for table in range(7):
            allocate(call, [key], f"t{table}")
        ask(call, *parts(size, operation, kind), transaction=key)
    assert counted(lambda: commit(call, inserts)) == each(5, 1, 4 if size == 1 else 5)
    assert counted(lambda: commit(call, changes)) == each(8, 8, 5 if size == 1 else 8)

    def lose() -> None:
        with pytest.raises(Exception, match="write conflict"):
            commit(call, loser)

    assert counted(lose) == each(7, 7, 12 if size == 1 else 7)  # one object is tried in one round trip, where that judges


@pytest.mark.parametrize("size", SIZES)
def test_with_the_notification_log(make_metastore: MetastoreMaker, size: int, each: Each) -> None:
    """The log is a row of the same statement, or one statement more."""
    call = Call(make_metastore(), Client("127.0.0.1:1", user="alice"), "test")

    def counted(work: Callable[[], object]) -> int:
        seen: list[str] = []
        call.database.observer = seen.append
        work()
        call.database.observer = None
        return len(seen)

    begin_one(call)
    keys: list[int] = []
    assert counted(lambda: keys.extend(begin(call, max(4, size)))) == each(4, 1, 4)
    assert counted(lambda: commit(call, keys[0])) == each(4, 1, 2)
    assert counted(lambda: abort(call, keys[1])) == each(3, 1, 2)
    allocate(call, [keys[3]])
    assert counted(lambda: allocate(call, [keys[2]])) == each(6, 1, 5)  # one looks whether it is within a range
    ask(call, *parts(size, INSERT), transaction=keys[2])
    assert counted(lambda: commit(call, keys[2])) == each(6, 1, 4 if size == 1 else 6)
    assert counted(lambda: transactions.abort_transactions(call, keys)) == each(3, 4, 3)  # some of them have ended
    assert counted(lambda: transactions.abort_transactions(call, begin(call, size + 1))) == each(7, 2, 7)  # with the opening
    assert counted(lambda: transactions.abort_transactions(call, begin(call, 5)[::2])) == each(7, 2, 7)


@pytest.fixture
def trips(call: Call, monkeypatch: pytest.MonkeyPatch) -> Counted:
    """Counts how often a call waits for its database."""
    sent: list[object] = []

    def counting(function: Callable[..., object]) -> Callable[..., object]:
        def count(cursor: object, *args: object) -> object:
            sent.append(cursor)
            return function(cursor, *args)

        return count

    kind = call.database.driver.name
    if kind == "sqlite":
        pytest.skip("SQLite is no round trip away")
    elif kind == "mysql":
        from metastore.store.drivers.mysql_connection import Connection

        monkeypatch.setattr(Connection, "ask", counting(Connection.ask))  # each packet goes through it
    else:
        from metastore.store.drivers.postgresql_cursor import Cursor

        plain, gathered = Cursor.execute, counting(Cursor._answers)  # what went out together is answered together
        monkeypatch.setattr(Cursor, "_answers", gathered)
        alone = counting(plain)

        def execute(cursor: Cursor, *args: object) -> object:
            waits = cursor._waiting or cursor._pipeline is not None  # then it goes with them
            return (plain if waits else alone)(cursor, *args)  # type: ignore[operator]  # the same signature

        monkeypatch.setattr(Cursor, "execute", execute)

    def count(work: Callable[[], object]) -> int:
        sent.clear()
        work()
        return len(sent)

    return count


def test_round_trips(make_metastore: MetastoreMaker, trips: Counted) -> None:
    """With the notification log, BEGIN and COMMIT; for the second call of each kind, when its tables have their counters and queues."""
    call = Call(make_metastore(), Client("127.0.0.1:1", user="alice"), "test")
    for known in (False, True):
        reader, inserter, changer = begin(call, 3)
        for key in (inserter, changer):
            allocate(call, [key])
        batch = begin(call, 40)
        counts = [
            trips(lambda: ask(call, component(READ))),
            trips(lambda key=reader: ask(call, component(READ), transaction=key)),  # type: ignore[misc]  # bound now
            trips(lambda key=inserter: ask(call, component(READ, operation=INSERT), transaction=key)),  # type: ignore[misc]
            trips(lambda key=changer: ask(call, component(WRITE, operation=UPDATE), transaction=key)),  # type: ignore[misc]
            trips(lambda key=inserter: commit(call, key)),  # type: ignore[misc]
            trips(lambda key=changer: commit(call, key)),  # type: ignore[misc]
            trips(lambda keys=batch: allocate(call, keys)),  # type: ignore[misc]
        ]
        if known:
            assert counts == [1, 1, 1, 1, 1, 1 if call.database.driver.name == "mysql" else 2, 1]


@pytest.mark.parametrize("size", SIZES)
def test_giving_up(call: Call, counted: Counted, size: int) -> None:
    for key in begin(call, size):
        ask(call, component(READ), transaction=key)
    metastore = call.metastore
    call.database.write(lambda session: session.cursor.execute("UPDATE transactions SET heartbeat_ms = 0"))
    assert counted(lambda: house_keeping.abort_timed_out(metastore)) == 5
    for _ in range(size):
        ask(call, component(READ))
    call.database.write(lambda session: session.cursor.execute("UPDATE locks SET heartbeat_ms = 0"))
    assert counted(lambda: house_keeping.expire_locks(metastore)) == 5
    assert counted(lambda: house_keeping.forget_ended(metastore)) <= 10


def test_a_list_of_keys_is_found_by_the_index(call: Call) -> None:
    if call.database.driver.name != "sqlite":
        pytest.skip("SQLite shows its plans without rows")
    text, _ = call.database.compiled[transaction_rows.LOCK_MANY]
    plan = call.database.read(lambda session: session.cursor.execute(f"EXPLAIN QUERY PLAN {text}", {"keys": "[1]"}).fetchall())
    assert "SEARCH transactions USING INTEGER PRIMARY KEY" in plan[0][3]


@pytest.mark.parametrize(
    "clause", [components.INTENTS, components.COMPLETE, components.DELETE_DYNAMIC, compaction_sources.FORGET_TRANSACTIONS]
)
def test_what_a_transaction_writes_is_found_by_it_and_not_by_its_table(call: Call, clause: sa.ClauseElement) -> None:
    rows = [(key, "hive", "db", "t", f"p={key}", "u", key, 1, key) for key in range(1, 3000)]
    columns = (*components.COLUMNS, "committed_ms", "commit_id")
    call.database.write(lambda session: session.insert_many(schema.transaction_components, columns, rows))
    text, literals = call.database.compiled[clause]
    convert = call.database.driver.convert
    values = {
        "key": 7,
        "keys": convert([7]),
        "kept": convert([-1]),
        "changes": convert(["u"]),
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
def test_what_a_snapshot_does_not_see_is_found_by_transactions_in_a_table_without_statistics(call: Call, one: bool) -> None:
    if call.database.driver.name != "postgresql":
        pytest.skip("the others do not plan by the size of tables that were never analysed")
    allocate(call, begin(call, 3000)[::2])
    text, _ = call.database.compiled[snapshot_query("postgresql", one=one, excepts=True)]
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
    "statement_of",
    [
        lambda _: write_id_rows.HOLD,
        lambda _: write_id_rows.HOLD_ONE,
        *(partial(snapshot_query, one=one, excepts=excepts) for one in (True, False) for excepts in (True, False)),
    ],
)
def test_counters_of_tables_are_found_by_their_keys_however_many_tables_there_are(
    call: Call, statement_of: Callable[[str], sa.Select[Any]]
) -> None:
    rows = [("hive", f"db{number % 7}", f"t{number}", 1) for number in range(3000)]
    call.database.write(lambda session: session.insert_many(schema.write_id_counters, ("catalog", "database", "table", "next"), rows))
    text, literals = call.database.compiled[statement_of(call.database.driver.name)]
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
