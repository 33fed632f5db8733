"""The pipeline and its heartbeats log in with the environment's variables."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark.sql import DataFrame, SparkSession

pytest.importorskip("gssapi", reason="built with libkrb5-dev: pip install '.[kerberos]'")
pytest.importorskip("k5test", reason="for a KDC")

from metastore import idl
from metastore.acid.folders.table import CAPABILITIES
from metastore.client import Client
from metastore.client_login import LoginError
from metastore.idl import CreateTableRequest
from metastore.spark import AcidTable
from metastore.spark.compaction.compactor import Compactor
from tests.support.acid.acid_tables import definition, stored_table
from tests.support.logins.kdc import Kdc
from tests.support.logins.secured import Secured, grant


def test_a_table_is_changed_with_a_token(spark: SparkSession, kdc: Kdc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secured = Secured(kdc, tmp_path / "home")
    with secured.serve(warehouse=f"{tmp_path}/warehouse"):
        with secured.kerberos() as client:
            made = definition("t", "id int, name string")
            client.create_table_req(CreateTableRequest(table=made, processorCapabilities=CAPABILITIES, processorIdentifier="tests"))
            token = client.get_delegation_token("alice", "alice")
        monkeypatch.setenv("METASTORE_CLIENT_LOGIN", "token")
        monkeypatch.setenv("METASTORE_CLIENT_TOKEN", token)
        table = AcidTable.forName(spark, "default.t", secured.uri)
        table.insert(spark.createDataFrame([(1, "a"), (2, "b")], "id int, name string"))
        table.update("id = 2", {"name": "'changed'"})
        table.delete("id = 1")
        assert [tuple(row) for row in table.toDF().collect()] == [(2, "changed")]
        table.close()
        monkeypatch.setenv("METASTORE_CLIENT_LOGIN", "none")
        with pytest.raises(Exception, match="This server asks for a login"):
            AcidTable.forName(spark, "default.t", secured.uri)
        monkeypatch.setenv("METASTORE_CLIENT_LOGIN", "token")
        monkeypatch.setenv("METASTORE_CLIENT_TOKEN", "AAAA")
        with pytest.raises(LoginError, match="not a delegation token"):
            AcidTable.forName(spark, "default.t", secured.uri)


TABLE = "ruled"
PRIVILEGES = {"ingrid": "INSERT", "sam": "SELECT", "ute": "UPDATE", "dora": "DELETE"}
DOES: dict[str, Callable[[AcidTable, DataFrame], Any]] = {
    "insert": lambda table, rows: table.insert(rows),
    "merge that inserts": lambda table, rows: table.merge(rows, "target.id = source.id").whenNotMatchedInsertAll().execute(),
    "update": lambda table, _: table.update("id = 1", {"name": "'u'"}),
    "delete": lambda table, _: table.delete("id = 2"),
    "overwrite": lambda table, rows: table.insert_overwrite(rows),
    "compact": lambda table, _: table.compact(),
}
REFUSED = {
    "ingrid": {"update": "UPDATE", "delete": "DELETE", "overwrite": "UPDATE", "compact": "OBJECT OWNERSHIP"},
    "sam": {
        "insert": "INSERT", "merge that inserts": "INSERT", "update": "UPDATE", "delete": "DELETE", "overwrite": "UPDATE",
        "compact": "OBJECT OWNERSHIP",
    },
    "ute": {"insert": "INSERT", "merge that inserts": "INSERT", "delete": "DELETE", "compact": "OBJECT OWNERSHIP"},
    "dora": {"insert": "INSERT", "merge that inserts": "INSERT", "compact": "OBJECT OWNERSHIP"},
}  # fmt: skip
"""The refused operations by user, each with the missing privilege. A user with DELETE may declare an update: Hive declares an overwrite so,
and Trino a delete."""


class Ruled:
    """A server on which each of `PRIVILEGES` holds one privilege on a partitioned table of alice, who is an admin."""

    def __init__(self, secured: Secured, admin: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        self.uri, self.admin = secured.uri, admin
        self._secured, self._monkeypatch = secured, monkeypatch
        made = definition(TABLE, "id int, name string", "k string")
        admin.create_table_req(CreateTableRequest(table=made, processorCapabilities=CAPABILITIES, processorIdentifier="tests"))
        grant(admin, TABLE, PRIVILEGES)
        self.folder = Path(stored_table(admin, TABLE).sd.location.removeprefix("file:"))

    def become(self, user: str) -> None:
        self._monkeypatch.setenv("METASTORE_CLIENT_TOKEN", self._secured.token_of(user))

    def left(self) -> list[Any]:
        """Return the state that refused writers must not change: open transactions, locks, compactions, files."""
        open_ones = [each.id for each in self.admin.get_open_txns_info().open_txns if each.state == idl.TxnState.OPEN]
        locks = self.admin.show_locks(idl.ShowLocksRequest()).locks
        compactions = self.admin.show_compact(idl.ShowCompactRequest()).compacts
        return [open_ones, locks, [each.id for each in compactions], sorted(str(path) for path in self.folder.rglob("*"))]


@pytest.fixture(params=["grants", "file"])
def ruled(request: pytest.FixtureRequest, kdc: Kdc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ruled]:
    secured = Secured(kdc, tmp_path / "home")
    monkeypatch.setenv("METASTORE_CLIENT_LOGIN", "token")
    more = {"warehouse": f"{tmp_path}/warehouse", "compactor_initiator": "false", **secured.rights(request.param, TABLE, PRIVILEGES)}
    with secured.serve(**more), secured.kerberos() as admin:
        yield Ruled(secured, admin, monkeypatch)


def refusal(user: str, privilege: str) -> str:
    return rf"name={user}, type=USER\].*\[{privilege}\] on Object \[type=TABLE_OR_VIEW, name=default.{TABLE}\]"


@pytest.mark.slow
def test_each_operation_asks_for_its_privilege_before_it_writes(spark: SparkSession, ruled: Ruled) -> None:
    rows = spark.createDataFrame([(1, "a", "p"), (2, "b", "p")], "id int, name string, k string")
    ruled.become("alice")
    with AcidTable.forName(spark, f"default.{TABLE}", ruled.uri) as table:
        table.insert(rows)
    for user, refused in REFUSED.items():
        ruled.become(user)
        for name, do in DOES.items():
            before = ruled.left()
            with AcidTable.forName(spark, f"default.{TABLE}", ruled.uri) as table:
                if name in refused:
                    with pytest.raises(Exception, match=refusal(user, refused[name])):
                        do(table, rows)
                    assert ruled.left() == before, (user, name)
                else:
                    do(table, rows)
    ruled.become("nobody")
    with pytest.raises(idl.NoSuchObjectException, match=f"{TABLE} table not found"):
        AcidTable.forName(spark, f"default.{TABLE}", ruled.uri)


@pytest.mark.slow
def test_a_compaction_worker_is_an_admin(spark: SparkSession, ruled: Ruled) -> None:
    ruled.become("alice")
    with AcidTable.forName(spark, f"default.{TABLE}", ruled.uri) as table:
        for each in (1, 2):
            table.insert(spark.createDataFrame([(each, "a", "p")], "id int, name string, k string"))
        table.compact(partition="k=p")
    before = ruled.left()
    ruled.become("ingrid")
    with pytest.raises(Exception, match=r"name=ingrid, type=USER\].*\[ADMIN PRIVILEGE\] on Object \[type=GLOBAL"):
        Compactor(spark, ruled.uri).run_once()
    assert ruled.left() == before
    ruled.become("alice")
    done = Compactor(spark, ruled.uri).run_once()
    assert done is not None
    assert done.state == "compacted"


@pytest.mark.slow
@pytest.mark.skipif(pyspark.__version__ < "4", reason="Python data sources came with Spark 4")
def test_the_data_source_asks_before_it_writes(spark: SparkSession, ruled: Ruled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from metastore.spark.data_source import register

    def become(user: str) -> None:
        """Log in as a user, here and in Spark's workers, as `spark.executorEnv` does at the start of a session."""
        ruled.become(user)
        for variable in ("METASTORE_CLIENT_LOGIN", "METASTORE_CLIENT_TOKEN"):
            monkeypatch.setitem(spark.sparkContext.environment, variable, os.environ[variable])
        register(spark)

    rows = spark.createDataFrame([(1, "a", "p")], "id int, name string, k string").coalesce(1)
    (tmp_path / "new").mkdir()
    name = f"default.{TABLE}"

    def write() -> None:
        rows.write.format("hive_acid").option("uri", ruled.uri).option("table", name).mode("append").save()

    def stream() -> None:
        rows.write.mode("append").parquet(f"{tmp_path}/new")
        source = spark.readStream.schema(rows.schema).parquet(f"{tmp_path}/new").coalesce(1)
        options = {"uri": ruled.uri, "table": name, "checkpointLocation": f"{tmp_path}/checkpoint-{user}"}
        source.writeStream.format("hive_acid").options(**options).trigger(availableNow=True).start().awaitTermination()

    for user in ("sam", "ingrid"):
        become(user)
        for do in (write, stream):
            before = ruled.left()
            if user == "sam":
                with pytest.raises(Exception, match=refusal("sam", "INSERT")):
                    do()
                assert ruled.left() == before
            else:
                do()
    read = spark.read.format("hive_acid").option("uri", ruled.uri).option("table", name).load()
    assert read.count() == 3
    become("nobody")
    with pytest.raises(Exception, match=f"{TABLE} table not found"):
        write()
