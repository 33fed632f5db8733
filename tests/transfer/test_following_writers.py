"""Following a source in which clients make and drop the same few objects at random: no round fails, and the last one brings all."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import pytest
from thriftpy2.thrift import TException

from metastore import idl
from metastore.client import Client, connect
from metastore.transfer.comparing import compare
from metastore.transfer.following import follow
from metastore.transfer.moving import move
from metastore.transfer.opening import reader, writer
from metastore.transfer.own.writer import OwnWriter
from metastore.transfer.selection import EVERYTHING
from tests.support.catalog.full_catalog import Filler, columns, storage
from tests.support.servers.servers import serving

pytestmark = pytest.mark.slow
WRITERS, SECONDS, SEED = 3, 15, 51
KINDS_OF_CALLS = 12
"""The least number of different calls that have to succeed: half of `calls`, which the slowest machine reaches too."""


def calls(client: Client, root: str, choose: random.Random) -> Sequence[Callable[[], object]]:
    """Return calls that make, change or drop objects whose names are chosen at random; many are refused."""
    filler = Filler(client, root)
    database, table, role = (f"{kind}{choose.randrange(2)}" for kind in "dtr")
    place, day = f"{root}/{database}/{table}", str(choose.randrange(2))

    def rename() -> None:
        found = client.get_table_req(idl.GetTableRequest(dbName=database, tblName=table)).table
        found.tableName = f"t{choose.randrange(2)}"
        client.alter_table(database, table, found)

    def add_partition() -> None:
        sd = storage(f"{place}/ds={day}", ("id", "int"))
        client.add_partitions([idl.Partition(values=[day], dbName=database, tableName=table, sd=sd, parameters={})])

    def grant(**named: object) -> None:
        filler.grant(idl.HiveObjectRef(dbName=database, objectName=table, catName="hive", **named))

    def begin() -> int:
        return int(client.open_txns(idl.OpenTxnRequest(1, "ann", "host1", "agent")).txn_ids[0])

    return (
        lambda: client.create_database(idl.Database(name=database, locationUri=f"{root}/{database}")),
        lambda: client.drop_database(database, True, True),
        lambda: filler.table(database, table, storage(place, ("id", "int")), columns(("ds", "string"))),
        lambda: client.drop_table(database, table, True),
        rename,
        add_partition,
        lambda: client.drop_partition_by_name(database, table, f"ds={day}", False),
        lambda: grant(objectType=idl.HiveObjectType.TABLE),
        lambda: grant(objectType=idl.HiveObjectType.PARTITION, partValues=[day]),
        lambda: client.create_function(idl.Function("f", database, "a.B", "ann", 1, 1, 1, [])),
        lambda: client.drop_function(database, "f"),
        lambda: client.create_stored_procedure(idl.StoredProcedure(name="p", dbName=database, catName="hive", ownerName="ann", source="s")),
        lambda: client.drop_stored_procedure(idl.StoredProcedureRequest("hive", database, "p")),
        lambda: client.create_role(idl.Role(role, 0, "admin")),
        lambda: client.grant_role(role, "bob", 1, "admin", 1, False),
        lambda: client.drop_role(role),
        lambda: client.create_catalog(idl.CreateCatalogRequest(catalog=idl.Catalog(name="lake", locationUri=f"{root}/lake"))),
        lambda: client.create_database(idl.Database(name="deep", catalogName="lake", locationUri=f"{root}/lake/deep")),
        lambda: client.drop_database("@lake#deep", True, True),
        lambda: client.drop_catalog(idl.DropCatalogRequest("lake")),
        lambda: client.create_resource_plan(idl.WMCreateResourcePlanRequest(idl.WMResourcePlan("plan", queryParallelism=4, ns="default"))),
        lambda: client.drop_resource_plan(idl.WMDropResourcePlanRequest("plan", "default")),
        lambda: client.commit_txn(idl.CommitTxnRequest(txnid=begin())),
        lambda: client.abort_txn(idl.AbortTxnRequest(txnid=begin())),
    )


@pytest.mark.parametrize("way", ["thrift", "database"])
def test_no_round_fails(way: str, fresh_database_url: str, tmp_path: Path) -> None:
    url, root, stop = f"sqlite:///{tmp_path / 'source.db'}", f"file:{tmp_path / 'data'}", threading.Event()
    options = ("--db", url, "--set", f"warehouse={tmp_path / 'w'}", "--set", "compactor_cleaner=false")

    def keep_writing(number: int, uri: str) -> set[int]:
        """Return the indexes in `calls` of the calls that succeeded."""
        choose, done = random.Random(SEED + number), set[int]()
        with connect(uri) as client:
            while not stop.is_set():
                found = calls(client, root, choose)
                at = choose.randrange(len(found))
                with suppress(TException):
                    found[at]()
                    done.add(at)
        return done

    with serving(*options, home=tmp_path) as server, closing(writer(fresh_database_url)) as target:
        assert isinstance(target, OwnWriter)
        with connect(server.uri) as client:
            Filler(client, root).databases()
            Filler(client, root).tables()
        with closing(reader(server.uri if way == "thrift" else url)) as source, ThreadPoolExecutor(WRITERS) as threads:
            move(source, target, EVERYTHING)
            writing = [threads.submit(keep_writing, number, server.uri) for number in range(WRITERS)]
            try:
                end = time.monotonic() + SECONDS
                while time.monotonic() < end:
                    follow(source, target, EVERYTHING)
            finally:
                stop.set()
            assert len(set.union(*(each.result(60) for each in writing))) > KINDS_OF_CALLS
            follow(source, target, EVERYTHING)
            with closing(reader(fresh_database_url)) as back:
                assert compare(source, back, EVERYTHING).differences == []
