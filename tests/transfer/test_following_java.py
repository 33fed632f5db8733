"""Following Java's 3.1.3, which writes a notification log, while a client changes it: after the cut-over nothing differs."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from metastore import idl
from metastore.client import Client, connect
from tests.support.catalog.full_catalog import TRANSACTIONAL, Filler, columns, storage
from tests.support.databases import databases
from tests.support.engines.java_metastore import LISTENER, java_metastore
from tests.support.servers.servers import COMMAND, environment
from tests.transfer.test_dumps import run

pytestmark = pytest.mark.slow
ROUNDS_WITH_EVENTS = 4
"""Rounds of `follow` that find something, before the writer ends."""


@pytest.fixture(scope="module")
def java(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """URI and database of Java's metastore with every kind of object."""
    folder = tmp_path_factory.mktemp("java")
    with (
        contextmanager(databases.fresh)("postgresql", folder) as url,
        java_metastore(url, folder / "server", "3.1.3", LISTENER) as uri,
        connect(uri) as client,
    ):
        Filler(client, f"file:{folder / 'data'}").everything()
        yield uri, url


def write(client: Client, root: str, number: int) -> None:
    """Make, change, rename and drop objects of all kinds that have events. Each round keeps some of them."""
    filler = Filler(client, root)
    database, table = f"w{number % 3}", f"t{number}"
    if database not in client.get_all_databases():
        client.create_database(idl.Database(name=database, locationUri=f"{root}/{database}", parameters={}))
    place = f"{root}/{database}/{table}"
    filler.table(database, table, storage(place, ("id", "int")), columns(("ds", "string")))
    client.add_partitions([partition(database, table, place, day) for day in range(4)])
    client.drop_partition_by_name(database, table, "ds=1", False)
    changed = client.get_partition_by_name(database, table, "ds=2")
    changed.parameters["note"] = str(number)
    client.alter_partition(database, table, changed)
    moved = client.get_partition_by_name(database, table, "ds=3")
    moved.values = ["moved"]
    client.rename_partition(database, table, ["3"], moved)
    if number % 2:
        renamed = client.get_table(database, table)
        renamed.tableName = f"renamed_{table}"
        client.alter_table(database, table, renamed)
    else:  # Java 3.1.3 can not drop a table that was renamed with statistics of its partitions
        described = idl.ColumnStatisticsDesc(isTblLevel=False, dbName=database, tableName=table, partName="ds=0", catName="hive")
        data = idl.ColumnStatisticsData(longStats=idl.LongColumnStatsData(lowValue=1, highValue=number, numNulls=0, numDVs=1))
        found = [idl.ColumnStatisticsObj(colName="id", colType="int", statsData=data)]
        client.update_partition_column_statistics(idl.ColumnStatistics(described, found, engine="hive"))
    if number % 5 == 4:
        client.drop_database(database, False, True)
    filler.table("sales", f"acid{number}", storage(None, ("id", "int")), kind="MANAGED_TABLE", parameters=TRANSACTIONAL)
    kept, dropped = client.open_txns(idl.OpenTxnRequest(2, "ann", "host1", "agent")).txn_ids
    given = idl.AllocateTableWriteIdsRequest(dbName="sales", tableName=f"acid{number}", txnIds=[kept, dropped])
    client.allocate_table_write_ids(given)
    client.commit_txn(idl.CommitTxnRequest(txnid=kept))
    client.abort_txn(idl.AbortTxnRequest(txnid=dropped))
    client.create_role(idl.Role(f"role{number}", 0, "admin"))
    filler.grant(idl.HiveObjectRef(objectType=idl.HiveObjectType.TABLE, dbName="sales", objectName=f"acid{number}", catName="hive"))


def partition(database: str, table: str, place: str, day: int) -> Any:
    sd = storage(f"{place}/ds={day}", ("id", "int"))
    return idl.Partition(values=[str(day)], dbName=database, tableName=table, parameters={}, sd=sd)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("way", [0, 1], ids=["thrift", "database"])
def test_nothing_differs_after_the_cut_over(java: tuple[str, str], way: int, tmp_path: Path) -> None:
    """The command is ended in the middle of a round, wherever it is."""
    uri, source, own = java[0], java[way], f"sqlite:///{tmp_path / 'own.db'}"
    done = run("import", source, "--db", own, home=tmp_path)
    assert done.returncode == 0, done.stderr
    stop = threading.Event()
    failed: list[Exception] = []

    def keep_writing() -> None:
        try:
            with connect(uri) as client:
                for number in count(way * 1000):
                    write(client, f"file:{tmp_path / 'data'}", number)
                    if stop.is_set():
                        return
        except Exception as error:  # noqa: BLE001  # the test raises it
            failed.append(error)

    writer = threading.Thread(target=keep_writing)
    with subprocess.Popen(
        [*COMMAND, "follow", source, "--pause", "0", "--json", "--db", own], env=environment(tmp_path), stdout=subprocess.PIPE, text=True
    ) as following:
        assert following.stdout is not None
        writer.start()
        try:
            found = 0
            while found < ROUNDS_WITH_EVENTS and not failed:
                found += bool(json.loads(following.stdout.readline())["events"])
        finally:
            stop.set()
            writer.join()
            following.terminate()
    assert failed == []
    last = run("follow", source, "--once", "--json", "--db", own, home=tmp_path)
    assert last.returncode == 0, last.stderr
    assert json.loads(last.stdout)["events"] is not None
    equal = run("verify", source, own, home=tmp_path)
    assert equal.returncode == 0, equal.stdout
    again = run("follow", source, "--once", "--json", "--db", own, home=tmp_path)
    found = json.loads(again.stdout)
    assert (found["changed"], found["written"], found["removed"], found["events"]) == (0, 0, 0, 0)
