"""Connections to the database are too few, or end: no call fails for that reason, and no call is half done."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import make_url

from metastore.errors import MetaError
from metastore.listeners.events import Event
from metastore.service.call.context import Call, Metastore
from metastore.service.catalog.partitions import partitions
from metastore.service.catalog.tables import tables
from metastore.service.transactions import locks
from metastore.store.core.database import Session
from metastore.store.schema import model as schema
from metastore.warehouse.locations import parse
from tests.service.changes.test_races import KEYS, together
from tests.support.acid.txns import INSERT, READ, allocate, ask, begin, component, rows, valid
from tests.support.catalog.catalog import MetastoreMaker, add_partitions, call_of, make_table
from tests.support.catalog.recording import Remembering, Within, listening
from tests.support.databases.databases import execute


def test_more_threads_than_connections(make_metastore: MetastoreMaker, metastore: Metastore, call: Call) -> None:
    small = make_metastore(database_pool_size=2)
    name = make_table(call, "t", keys=KEYS)

    def work(number: int) -> None:
        add_partitions(call_of(small), name, [[str(number)]])
        partitions.get_partitions(call_of(small), name)

    errors = together(*(lambda n=n: work(n) for n in range(16)))
    assert Counter(errors) == {None: 16}
    assert len(partitions.get_partition_names(call, name)) == 16


def end_connections(metastore: Metastore) -> None:
    """End all connections of all servers to the database, as its restart does."""
    url = make_url(metastore.config.db)
    if url.get_backend_name() == "postgresql":
        others = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        execute(url, f"SELECT pg_terminate_backend(pid, 5000) {others}")
    elif url.get_backend_name() == "mysql":
        others = "FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()"
        for (number,) in execute(url, f"SELECT id {others}"):
            with suppress(Exception):
                execute(url, f"KILL {number}")


def fill_pool(metastore: Metastore) -> None:
    """Let a server open all its connections."""
    size = metastore.config.database_pool_size
    start = threading.Barrier(size)
    waited: set[int] = set()

    def hold(session: Any) -> None:
        session.rows(sa.select(schema.catalogs.c.name))
        if threading.get_ident() not in waited:
            waited.add(threading.get_ident())
            start.wait(30)

    with ThreadPoolExecutor(size) as pool:
        list(pool.map(lambda _: metastore.database.read(hold), range(size)))


def test_nobody_sees_that_all_connections_ended_between_calls(call: Call, metastore: Metastore) -> None:
    name = make_table(call, "t", keys=KEYS)
    fill_pool(metastore)
    end_connections(metastore)
    assert tables.get_table(call, name).tableName == "t"
    fill_pool(metastore)
    end_connections(metastore)
    add_partitions(call, name, [["1"]])
    assert partitions.get_partition_names(call, name) == ["k=1"]


def test_connections_that_end_within_a_change_leave_all_of_it_once(call: Call, metastore: Metastore) -> None:
    name = make_table(call, "t", keys=KEYS)
    memory = Remembering()
    ended: list[bool] = []

    def end(_event: Event, _session: Any) -> None:
        if not ended:
            ended.append(True)
            end_connections(metastore)

    broken = call_of(listening(metastore, Within(end), memory))
    with suppress(MetaError):  # the connection breaks at COMMIT: the error asks the client to check the outcome
        add_partitions(broken, name, [["1"], ["2"]])
    assert len(memory.seen) == 1
    found = partitions.get_partitions(call, name)
    assert len(found) in (0, 2)
    directories = Path(parse(tables.get_table(call, name).sd.location).path).iterdir()
    assert sorted(path.name for path in directories) == sorted(f"k={partition.values[0]}" for partition in found)


def test_values_read_before_connections_ended_are_looked_up_again(call: Call, metastore: Metastore) -> None:
    """After its loss the database may be a standby without the last changes. The test deletes these while nobody is connected."""
    if metastore.database.driver.name == "sqlite":
        pytest.skip("SQLite has no connections that end")
    for _ in range(3):
        locks.unlock(call, ask(call, component(READ))[0])
    lost = begin(call, 2)
    for key in lost:
        allocate(call, [key])
    text = f"{lost[1]}:{lost[0]}:{lost[0]}:"
    assert valid(call, valid_transactions=text) == (2, [1], set(), 1)
    assert len(metastore.database.caches.lock_queues) == (metastore.database.driver.name == "mysql")
    end_connections(metastore)
    url = make_url(metastore.config.db)
    execute(url, "DELETE FROM write_ids", "UPDATE write_id_counters SET next = 1, last_transaction = 0")
    assert valid(call, valid_transactions=text)[:2] == (0, [])
    ask(call, component(READ, operation=INSERT), transaction=lost[1])
    assert rows(call, schema.transaction_components, "write_id") == [(None,)]
    assert allocate(call, begin(call, 1)).popitem()[1] == 1
    assert valid(call, valid_transactions="100:101::") == (1, [], set(), None)


def test_connections_that_end_within_a_read_are_replaced(call: Call, metastore: Metastore) -> None:
    name = make_table(call, "t", keys=KEYS)
    add_partitions(call, name, [["1"]])
    fill_pool(metastore)
    ended: list[str] = []

    def end(text: str) -> None:
        if "FROM partitions" in text and not ended:
            ended.append(text)
            end_connections(metastore)

    metastore.database.observer = end
    assert len(partitions.get_partitions(call, name)) == 1
    assert ended


def test_a_table_that_another_makes_at_the_same_time_is_no_error(metastore: Metastore) -> None:
    """Even IF NOT EXISTS fails on the type of a table of an open transaction, which is not visible yet. The test makes the type alone."""
    database = metastore.database
    if database.driver.name != "postgresql":
        pytest.skip("a table is not a type there")
    attempts = list[Any]()

    def work(session: Session) -> None:
        if attempts:
            execute(database.url, "DROP TYPE watched")
        attempts.append(1)
        session.cursor.execute("CREATE TABLE IF NOT EXISTS watched (a int)")

    execute(database.url, "CREATE TYPE watched AS ENUM ()")
    database.write(work)
    assert len(attempts) == 2
    execute(database.url, "DROP TABLE watched")
