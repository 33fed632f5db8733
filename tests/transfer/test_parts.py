"""Moves of a part: the rest of the target stays, and readers see the same rows of transactional tables as at the source."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from metastore import idl
from metastore.client import Client, connect
from metastore.errors import InvalidInput, InvalidOperation
from metastore.store.core.database import Database
from metastore.store.transactions import house_keeping
from metastore.transfer.comparing import compare
from metastore.transfer.following import follow
from metastore.transfer.moving import move
from metastore.transfer.opening import reader, writer
from metastore.transfer.own import writer as own_writer
from metastore.transfer.records import Record
from metastore.transfer.selection import EVERYTHING, TOGETHER, Selection, selection
from metastore.transfer.thrift.calls import Calls
from tests.support.catalog.full_catalog import storage
from tests.support.databases import databases
from tests.support.engines.java_metastore import java_metastore
from tests.support.servers.servers import serving
from tests.transfer.conftest import Going, same
from tests.transfer.test_export import invisible

QUIET = ("--set", "compactor_cleaner=false")
FROM_A_SERVER = pytest.mark.parametrize("going", ["thrift"], indirect=True)
FROM_A_DATABASE = pytest.mark.parametrize("going", ["database"], indirect=True)
WHOLE_DATABASES = selection(["*"])._replace(with_transactions=True)
PATHS = {"default": "default.more", "@lake#deep": "lake.deep.more"}
"""Patterns that select the table `more`, by the name of its database."""
PARTS = (["sales.acid"], ["sales.o*"], ["sales.*"], ["empty", "default", "lake.*.*"])


def transactional(client: Client, database: str) -> None:
    """Make a table `more` with write ids of a committed transaction, two aborted ones, and a committed one."""
    table = idl.Table(
        tableName="more", dbName=database, sd=storage(None, ("id", "int")), partitionKeys=[], tableType="MANAGED_TABLE",
        parameters={"transactional": "true", "transactional_properties": "insert_only"},
    )  # fmt: skip
    client.create_table_req(idl.CreateTableRequest(table=table, processorCapabilities=["HIVEMANAGEDINSERTWRITE"]))
    ids = client.open_txns(idl.OpenTxnRequest(4, "ann", "host1", "agent")).txn_ids
    client.allocate_table_write_ids(idl.AllocateTableWriteIdsRequest(dbName=database, tableName="more", txnIds=ids))
    for each in ids:
        component = idl.LockComponent(
            type=idl.LockType.SHARED_WRITE, level=idl.LockLevel.TABLE, dbname=database, tablename="more",
            operationType=idl.DataOperationType.INSERT, isTransactional=True,
        )  # fmt: skip
        client.lock(idl.LockRequest(component=[component], txnid=each, user="ann", hostname="host1", agentInfo="agent"))
    for number, each in enumerate(ids):
        if number in (1, 2):
            client.abort_txn(idl.AbortTxnRequest(txnid=each))
        else:
            client.commit_txn(idl.CommitTxnRequest(txnid=each))


def seen_in_more(client: Client, database: str = "default") -> tuple[int, list[int]]:
    """Return the last write id that a reader sees of that table, and the invalid ones."""
    found = client.get_valid_write_ids(idl.GetValidWriteIdsRequest(fullTableNames=[f"{database}.more"])).tblValidWriteIds[0]
    return found.writeIdHighWaterMark, found.invalidWriteIds


@pytest.mark.on_one_database
def test_parts_make_a_whole(going: Going, tmp_path: Path) -> None:
    """Each part is moved twice. Objects of other parts stay, such as constraints, privileges, schemas and write ids."""
    transactional(going.client, "default")
    for url in databases.fresh("sqlite", tmp_path):
        with closing(writer(url)) as target:
            for part in [*PARTS, *PARTS]:
                move(going.source, target, selection(part), resume=True)
        with closing(reader(url)) as back:
            found = compare(going.source, back, WHOLE_DATABASES)
            assert [each.record for each in found.differences] == []
            assert {"constraint", "privilege", "function", "write_id_position"} <= {*found.counts}


def test_a_round_for_a_part_leaves_the_rest_alone(going: Going) -> None:
    for part in PARTS:
        follow(going.source, going.target, selection(part))
        assert same(going) == []
    going.client.create_function(
        idl.Function(functionName="late", dbName="default", className="c", ownerName="ann", ownerType=1, functionType=1, resourceUris=[])
    )
    going.client.drop_function("sales", "f")
    follow(going.source, going.target, selection(["default"]))
    assert [text.split(":")[0] for text in same(going)] == ["function hive.sales.f"]
    follow(going.source, going.target, selection(["sales"]))
    assert same(going) == []


@pytest.mark.on_one_database
@pytest.mark.parametrize("database", ["default", "@lake#deep"])
def test_readers_see_the_same_rows_of_a_table_that_came_alone(going: Going, database: str, tmp_path: Path) -> None:
    """New transactions of the target have ids above those of the source: their commits do not make rows of aborted ones visible."""
    transactional(going.client, database)
    url = f"sqlite:///{tmp_path / 'part.db'}"
    with closing(writer(url)) as target:
        move(going.source, target, selection(["sales.acid", PATHS[database]]))
    with serving("--db", url, *QUIET, home=tmp_path / "part") as server, connect(server.uri) as client:
        assert seen_in_more(client, database) == (4, [2, 3])
        ids = client.open_txns(idl.OpenTxnRequest(9, "u", "h")).txn_ids
        assert ids[0] == 9
        for each in ids:
            client.commit_txn(idl.CommitTxnRequest(txnid=each))
        assert invisible(client) == [2, 3]


@pytest.mark.on_one_database
@pytest.mark.parametrize("database", ["default", "@lake#deep"])
def test_readers_see_the_same_rows_of_a_table_that_was_exported_alone(going: Going, database: str, tmp_path: Path) -> None:
    transactional(going.client, database)
    url = f"sqlite:///{tmp_path / 'part.db'}"
    options = ("--db", url, "--set", f"warehouse={tmp_path / 'part'}", *QUIET)
    with serving(*options, home=tmp_path / "part") as server, connect(server.uri) as client:
        with closing(writer(server.uri)) as target:
            move(going.source, target, selection(["sales.acid", PATHS[database]]))
        assert invisible(client) == [2, 3]
        assert seen_in_more(client, database) == (4, [2, 3])


@pytest.mark.on_one_database
@FROM_A_SERVER
def test_transactions_that_begin_during_an_import_are_not_part_of_it(going: Going, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All data of transactions is read at one moment, so that no write id belongs to a transaction that is not imported."""
    ask = Calls.ask

    def slow(self: Calls, method: str, *arguments: Any, **more: Any) -> Any:
        answer = ask(self, method, *arguments, **more)
        if method == "get_open_txns_info":
            ids = going.client.open_txns(idl.OpenTxnRequest(3, "ann", "host1", "agent")).txn_ids
            going.client.allocate_table_write_ids(idl.AllocateTableWriteIdsRequest(dbName="sales", tableName="acid", txnIds=ids))
        return answer

    monkeypatch.setattr(Calls, "ask", slow)
    url = f"sqlite:///{tmp_path / 'whole.db'}"
    with closing(writer(url)) as target:
        move(going.source, target, EVERYTHING)
    with serving("--db", url, *QUIET, home=tmp_path / "whole") as server, connect(server.uri) as client:
        assert invisible(client) == [2, 3]
        assert client.get_open_txns().txn_high_water_mark == 5


@pytest.mark.slow
@pytest.mark.on_one_database
@FROM_A_DATABASE
def test_readers_of_java_see_the_same_rows(going: Going, tmp_path: Path) -> None:
    """Java's server gets a further write id, without rows. Otherwise it would show no rows above the lowest aborted write id."""
    transactional(going.client, "default")
    for url in databases.fresh("postgresql", tmp_path):
        with java_metastore(url, tmp_path / "java") as uri, closing(writer(uri)) as target, connect(uri) as client:
            move(going.source, target, selection(["default.more"]))
            assert seen_in_more(client) == (5, [2, 3])


@pytest.mark.on_one_database
def test_rows_stay_unseen_when_another_part_follows_later(going: Going, tmp_path: Path) -> None:
    """The source forgets aborted transactions of a dropped table, and commits an open one that an import over Thrift counted as aborted."""
    transactional(going.client, "default")
    url = f"sqlite:///{tmp_path / 'part.db'}"
    with closing(writer(url)) as target:
        move(going.source, target, selection(["default"]))
        going.client.drop_table("default", "more", True)
        going.client.commit_txn(idl.CommitTxnRequest(txnid=3))
        with closing(Database(f"sqlite:///{tmp_path / 'source.db'}")) as database:
            forgotten = database.read(lambda session: house_keeping.empty_aborted(session, 2**62, 9))
            assert forgotten == [6, 7]
            database.write(lambda session: house_keeping.delete_transactions(session, forgotten))
        move(going.source, target, selection(["sales"]), resume=True)
    with serving("--db", url, *QUIET, home=tmp_path / "part") as server, connect(server.uri) as client:
        assert seen_in_more(client) == (4, [2, 3])
        assert invisible(client) == [2]


def used(client: Client, _: Path) -> None:
    client.open_txns(idl.OpenTxnRequest(1, "ann", "host1", "agent"))


def changed(client: Client, folder: Path) -> None:
    client.create_database(idl.Database(name="own", locationUri=f"file:{folder}/own"))


@pytest.mark.on_one_database
@FROM_A_DATABASE
@pytest.mark.parametrize("use", [used, changed])
def test_a_target_that_was_in_use_is_refused(going: Going, use: Callable[[Client, Path], None], tmp_path: Path) -> None:
    """A target that changed used ids of transactions and events that are others' at the source. A server that only answered did no harm."""
    options = ("--db", going.url, *QUIET, "--set", f"warehouse={tmp_path / 'target'}")
    with serving(*options, home=tmp_path / "target") as server, connect(server.uri) as client:
        client.get_all_databases()
    follow(going.source, going.target, EVERYTHING)
    with serving(*options, home=tmp_path / "target") as server, connect(server.uri) as client:
        use(client, tmp_path)
    with closing(reader(going.url)) as back:
        before = list(back.records(EVERYTHING))
        for run in (
            partial(follow, going.source, going.target, EVERYTHING),
            partial(move, going.source, going.target, selection(["sales"]), resume=True),
        ):
            with pytest.raises(
                InvalidOperation, match=r"was in use by a server after it was filled \((transaction|notification) ids up to"
            ):
                run()
        assert list(back.records(EVERYTHING)) == before


@pytest.mark.on_one_database
@FROM_A_DATABASE
def test_an_interrupted_import_goes_on_in_a_database_that_a_server_had_used(going: Going, tmp_path: Path) -> None:
    """Ids that a target used before its first table is imported are not a reason to refuse it. All its own events precede the source's."""

    def interrupted(record: Record) -> Record:
        if record.kind == "position":
            raise OSError(9, "the power is gone")
        return record

    url = f"sqlite:///{tmp_path / 'used.db'}"
    options = ("--db", url, *QUIET, "--set", f"warehouse={tmp_path / 'used'}")
    with serving(*options, home=tmp_path / "used") as server, connect(server.uri) as client:
        used(client, tmp_path)
        changed(client, tmp_path)
        client.drop_database("own", False, False)
    with closing(writer(url)) as target:
        with pytest.raises(OSError, match="the power is gone"):
            move(going.source, target, EVERYTHING, adjust=interrupted)
        with pytest.raises(InvalidOperation, match="has tables"):
            move(going.source, target, EVERYTHING)
        move(going.source, target, EVERYTHING, resume=True)
    with closing(reader(url)) as back:
        assert compare(going.source, back, EVERYTHING).differences == []


@pytest.mark.on_one_database
@FROM_A_DATABASE
@pytest.mark.parametrize("kinds", TOGETHER)
def test_kinds_that_refer_to_each_other_come_together(kinds: frozenset[str], going: Going) -> None:
    for kind in kinds:
        for part in (selection(kinds=[kind, "table"]), selection(without=[kind])):
            with pytest.raises(InvalidInput, match="choose all of them or none"):
                move(going.source, going.target, part, resume=True)
            with pytest.raises(InvalidInput, match="choose all of them or none"):
                follow(going.source, going.target, part)
    assert same(going) == []
    move(going.source, going.target, selection(without=[*kinds]), resume=True)
    assert same(going) == []


@pytest.mark.on_one_database
@FROM_A_DATABASE
@pytest.mark.parametrize(
    ("table", "part", "lost"),
    [
        ("orders", selection(kinds=["table", "descriptor", "partition"]), r"(constraint|privilege) .*sales\.orders.* would be lost"),
        (
            "bucketed",
            selection(["sales.bucketed"]),
            r"constraint hive\.sales\.orders\.fk1 would be lost, since table hive\.sales\.bucketed",
        ),
    ],
)
def test_a_table_is_not_rewritten_without_objects_that_go_with_it(going: Going, table: str, part: Selection, lost: str) -> None:
    altered = going.client.get_table_req(idl.GetTableRequest(dbName="sales", tblName=table)).table
    altered.owner = "other"
    going.client.alter_table("sales", table, altered)
    before = same(going)
    with pytest.raises(InvalidOperation, match=lost):
        follow(going.source, going.target, part)
    assert same(going) == before
    follow(going.source, going.target, EVERYTHING)
    assert same(going) == []


@pytest.mark.on_one_database
@FROM_A_DATABASE
def test_versions_of_schemas_without_columns_have_ids_of_their_own(going: Going, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each batch begins above the last version that was written, with columns or without."""
    monkeypatch.setattr(own_writer, "BATCH", 1)
    name = idl.ISchemaName(catName="hive", dbName="default", schemaName="bare")
    going.client.create_ischema(
        idl.ISchema(schemaType=1, name="bare", catName="hive", dbName="default", compatibility=1, validationLevel=1)
    )
    for number in (1, 2, 3):
        version = idl.SchemaVersion(
            schema=name, version=number, createdAt=number, cols=[], state=1, schemaText="text", fingerprint=str(number)
        )
        going.client.add_schema_version(version)
    follow(going.source, going.target, EVERYTHING)
    assert same(going) == []
