"""A file system that does not answer costs its callers a bounded time, and nobody else anything."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from metastore.errors import MetaError
from metastore.idl import Database, Partition, Table
from metastore.service.call.context import Call, Metastore
from metastore.service.call.names import TableName
from metastore.service.catalog.databases import create_database, drop_database
from metastore.service.catalog.partitions.add_partitions import add_partitions
from metastore.service.catalog.partitions.drop_partitions import drop_partition
from metastore.service.catalog.partitions.partitions import get_partition_names
from metastore.service.catalog.tables.create_table import create_table
from metastore.service.catalog.tables.tables import drop_table, find_table, get_tables, truncate_table
from tests.support.catalog.catalog import MetastoreMaker, call_of, make_table
from tests.support.servers.stalling import Stalling, stalling

pytestmark = pytest.mark.on_one_database

KEYS = [("k", "string")]
PURGED = {"EXTERNAL": "TRUE", "external.table.purge": "TRUE"}
THERE, MANAGED = TableName("hive", "default", "there"), TableName("hive", "default", "managed")


@pytest.fixture(scope="module")
def hanging_store() -> Iterator[Stalling]:
    with stalling() as made:
        yield made


@pytest.fixture
def store(hanging_store: Stalling) -> Iterator[Stalling]:
    """The store, which closes the connections of the test at its end. Making a client of S3 takes a second."""
    hanging_store.reached.clear()
    yield hanging_store
    hanging_store.go.set()
    hanging_store.go = threading.Event()


@pytest.fixture
def waiting(make_metastore: MetastoreMaker, metastore: Metastore, store: Stalling) -> Callable[[float], Call]:
    """Makes a server that waits the given seconds for the store, and returns a call to it."""
    return lambda timeout: call_of(make_metastore(filesystem_options=store.s3, warehouse_timeout=timeout))


@pytest.fixture
def call(waiting: Callable[[float], Call]) -> Call:
    """A call to a server that waits one second for the store. It has a database and a table with a partition there, and a managed table."""
    made = waiting(1.0)
    create_database(made, Database(name="d", locationUri="s3://bucket/d"))
    make_table(made, "managed", keys=KEYS)
    create_table(made, at_store(made, "there", tableType="EXTERNAL_TABLE", parameters=dict(PURGED)))
    add_partitions(made, THERE, [partition(made, THERE)])
    return made


def at_store(call: Call, name: str, **fields: object) -> Table:
    table = Table(**find_table(call, MANAGED).__dict__)
    table.id, table.tableName, table.sd.location = None, name, f"s3://bucket/{name}"
    for key, value in fields.items():
        setattr(table, key, value)
    return table


def partition(call: Call, name: TableName) -> Partition:
    sd = find_table(call, MANAGED).sd
    sd.location = f"s3://bucket/{name.table}/k=1"
    return Partition(values=["1"], dbName=name.database, tableName=name.table, sd=sd, parameters={})


CALLS: dict[str, Callable[[Call], object]] = {
    "create_table": lambda call: create_table(call, at_store(call, "new", partitionKeys=[])),
    "add_partitions": lambda call: add_partitions(call, MANAGED, [partition(call, MANAGED)]),
    "drop_table": lambda call: drop_table(call, THERE, delete_data=True),
    "drop_partition": lambda call: drop_partition(call, THERE, ["1"], delete_data=True),
    "truncate_table": lambda call: truncate_table(call, THERE, None, None),
    "drop_database": lambda call: drop_database(call, "hive", "d", delete_data=True, cascade=True),
}
REFUSED = {"create_table", "add_partitions", "truncate_table"}
"""The calls that fail without the store. A drop succeeds without it."""


@pytest.mark.parametrize("method", CALLS)
def test_others_do_not_wait(call: Call, waiting: Callable[[float], Call], store: Stalling, method: str) -> None:
    store.reached.clear()
    with ThreadPoolExecutor(1) as pool:
        hanging = pool.submit(CALLS[method], waiting(600.0))
        try:
            assert store.reached.wait(60), hanging.exception(0)
            other = make_table(call, "other")
            drop_table(call, other, delete_data=True)
            assert not hanging.done()
        finally:
            store.go.set()
        with suppress(MetaError):
            hanging.result()


@pytest.mark.parametrize("method", CALLS)
def test_a_call_ends_and_calls_on_the_lost_store_change_nothing(call: Call, waiting: Callable[[float], Call], method: str) -> None:
    tables, names = get_tables(call, "hive", "default", "*"), get_partition_names(call, MANAGED)
    slow = waiting(1.0)
    if method in REFUSED:
        with pytest.raises(MetaError, match=r"bucket.*warehouse_timeout"):
            CALLS[method](slow)
        assert get_tables(call, "hive", "default", "*") == tables
        assert get_partition_names(call, MANAGED) == names
        assert get_partition_names(call, THERE) == ["k=1"]
    else:
        CALLS[method](slow)


def test_one_that_did_not_answer_is_not_asked_again_at_once(waiting: Callable[[float], Call], store: Stalling) -> None:
    slow = waiting(1.0)
    with pytest.raises(MetaError, match="no answer within"):
        slow.warehouse.exists("s3://bucket/x")
    assert store.reached.wait(60)  # a busy machine takes longer than the time limit to make a client of S3
    store.reached.clear()
    for location in ("s3://bucket/x", "s3a://bucket/y"):
        with pytest.raises(MetaError, match="a moment ago"):
            slow.warehouse.exists(location)
    assert not store.reached.is_set()
