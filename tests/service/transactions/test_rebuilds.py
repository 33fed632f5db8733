import json
from typing import Any

import pytest

from metastore.errors import MetaError, NoSuchTransaction
from metastore.idl import (
    CompactionRequest,
    CompactionType,
    CreationMetadata,
    FieldSchema,
    LockState,
    Materialization,
    SerDeInfo,
    SourceTable,
    StorageDescriptor,
    Table,
    TxnType,
    UpdateTransactionalStatsRequest,
)
from metastore.rules.transactions.snapshots import TableSnapshots, format_transactions, of_reply, of_table_reply
from metastore.service.call.clock import now_ms
from metastore.service.call.context import Call
from metastore.service.call.names import TableName
from metastore.service.catalog.tables.alter_table import alter_table
from metastore.service.catalog.tables.create_table import create_table
from metastore.service.catalog.tables.tables import drop_table, get_table, update_creation_metadata
from metastore.service.compaction import compactions
from metastore.service.transactions import rebuilds, transactions, write_ids
from metastore.store.schema import model as schema
from tests.support.acid.snapshots import format_write_ids
from tests.support.acid.txns import INSERT, UPDATE, abort, begin, begin_one, commit, rows, write
from tests.support.catalog.catalog import make_database, make_table
from tests.support.databases.statement_counts import StatementCounts


def rebuild(call: Call, transaction: int, table: str = "v") -> int:
    return rebuilds.lock_rebuild(call, "DB", table, transaction).state


def test_one_transaction_at_a_time_rebuilds_a_view(call: Call) -> None:
    first, second, third = begin(call, 3, txn_type=TxnType.MATER_VIEW_REBUILD)
    assert rebuild(call, first) == LockState.ACQUIRED
    assert rebuild(call, second) == LockState.NOT_ACQUIRED
    assert rebuild(call, second, "w") == LockState.ACQUIRED
    assert rebuilds.heartbeat_rebuild(call, "db", "V", first)
    assert not rebuilds.heartbeat_rebuild(call, "db", "v", second)
    commit(call, first)
    assert not rebuilds.heartbeat_rebuild(call, "db", "v", first)
    assert rebuild(call, third) == LockState.ACQUIRED
    abort(call, third)
    abort(call, second)
    assert rows(call, schema.materialization_rebuilds, "table") == []
    for key in (first, third, 99):
        with pytest.raises(MetaError, match=f"txnid:{key}"):
            rebuild(call, key)


def made_now(call: Call, *tables: str, as_json: bool = False) -> CreationMetadata:
    """Return the creation metadata that a view keeps if it is made now from these tables."""
    seen = {reply.fullTableName: of_table_reply(reply) for reply in write_ids.get_valid_write_ids(call, tables)}
    text = format_write_ids(TableSnapshots(7, seen))
    if as_json:
        text = json.dumps({"validTxnList": text, "tableSnapshots": {}})
    return CreationMetadata(catName="hive", dbName="db", tblName="v", tablesUsed=list(tables), validTxnList=text)


def since(call: Call, made: CreationMetadata) -> Materialization | None:
    now = format_transactions(of_reply(transactions.get_open_transactions(call)))
    return rebuilds.invalidation_info(call, made, now)


def run(call: Call, operation: int, table: str = "t") -> None:
    key = begin_one(call)
    write(call, key, operation, table)
    commit(call, key)


@pytest.mark.parametrize("as_json", [False, True])
def test_changes_of_source_tables_are_reported_and_inserts_are_not(call: Call, as_json: bool) -> None:
    run(call, UPDATE)
    made = made_now(call, "db.t", "db.u", as_json=as_json)
    nothing = Materialization(sourceTablesUpdateDeleteModified=False, sourceTablesCompacted=False)
    assert since(call, made) == nothing
    run(call, INSERT)
    run(call, UPDATE, "other")
    assert since(call, made) == nothing
    run(call, UPDATE, "u")
    changed = since(call, made)
    assert changed is not None
    assert (changed.sourceTablesUpdateDeleteModified, changed.sourceTablesCompacted) == (True, False)


def test_a_compaction_of_a_source_is_reported(call: Call) -> None:
    run(call, INSERT)
    made = made_now(call, "db.t")
    compactions.compact(call, CompactionRequest(dbname="db", tablename="t", type=CompactionType.MAJOR))
    changes = since(call, made)
    assert changes is not None
    assert (changes.sourceTablesUpdateDeleteModified, changes.sourceTablesCompacted) == (False, True)


def test_there_is_no_answer_where_changes_can_not_be_known(call: Call) -> None:
    run(call, INSERT)
    made = made_now(call, "db.t")
    for text in (None, "", json.dumps({"tableSnapshots": {"db.t": {}}}), "7$db.other:1:9223372036854775807::"):
        unknown = CreationMetadata(catName="hive", dbName="db", tblName="v", tablesUsed=["db.t"], validTxnList=text)
        assert since(call, unknown) is None
    assert since(call, CreationMetadata(catName="hive", dbName="db", tblName="v", tablesUsed=[], validTxnList=made.validTxnList)) is None
    write(call, begin_one(call), INSERT)
    assert since(call, made) is None


@pytest.mark.parametrize("text", ["{", "x$db.t:1:2::", "7$db.t", "7$db.t:x"])
def test_a_view_s_text_that_can_not_be_read_is_refused(call: Call, text: str) -> None:
    made = CreationMetadata(catName="hive", dbName="db", tblName="v", tablesUsed=["db.t"], validTxnList=text)
    with pytest.raises(MetaError):
        since(call, made)


def test_a_commit_does_not_need_the_rebuild_to_be_locked(call: Call) -> None:
    key = begin_one(call, txn_type=TxnType.MATER_VIEW_REBUILD)
    commit(call, key)
    with pytest.raises(NoSuchTransaction):
        abort(call, key)


@pytest.mark.parametrize("written", ["default.S", "hive.default.s"])
def test_a_view_follows_the_new_name_of_a_table_that_it_is_made_from(call: Call, written: str) -> None:
    make_database(call, "d")
    source, view = make_table(call, "s"), make_table(call, "v", kind="MATERIALIZED_VIEW")
    make_table(call, "w", kind="MATERIALIZED_VIEW")  # its sources are not known
    update_creation_metadata(
        call,
        view,
        CreationMetadata(
            catName="hive",
            dbName="default",
            tblName="v",
            tablesUsed=[written, "s"],
        ),
    )
    rebuilds.add_changed_rows(call, UpdateTransactionalStatsRequest(get_table(call, source).id, 1, 2, 3))
    table = get_table(call, source)
    table.dbName, table.tableName = "d", "s2"
    alter_table(call, source, table)
    made = get_table(call, view).creationMetadata
    assert made.tablesUsed == ["d.s2", "s"]
    (found,) = made.sourceTables  # type: ignore[misc]
    assert (found.table.dbName, found.table.tableName, found.insertedCount, found.updatedCount, found.deletedCount) == ("d", "s2", 1, 2, 3)
    with pytest.raises(MetaError, match=r"materialized views \['default.v'\]"):
        drop_table(call, source._replace(database="d", table="s2"), delete_data=True)


def test_of_the_two_lists_of_a_views_sources_each_has_all(call: Call) -> None:
    """Each list is made from the other, as in 4.0.1. Clients before Hive 4 send and read only `tablesUsed`."""
    source, other, view = make_table(call, "s"), make_table(call, "o"), make_table(call, "v", kind="MATERIALIZED_VIEW")
    made = CreationMetadata(catName="hive", dbName="default", tblName="v", tablesUsed=["default.S", "hive.default.o"])
    update_creation_metadata(call, view, made)
    assert sources_of(call, view) == [("hive", "default", "s", 0, 0, 0), ("hive", "default", "o", 0, 0, 0)]
    made.sourceTables = [SourceTable(get_table(call, other), 1, 2, 3)]
    update_creation_metadata(call, view, made)
    assert sources_of(call, view) == [("hive", "default", "o", 1, 2, 3)]
    assert get_table(call, view).creationMetadata.tablesUsed == ["default.o"]
    drop_table(call, source, delete_data=True)
    with pytest.raises(MetaError, match=r"materialized views \['default.v'\]"):
        drop_table(call, other, delete_data=True)


def sources_of(call: Call, view: TableName) -> list[tuple[Any, ...]]:
    return [
        (each.table.catName, each.table.dbName, each.table.tableName, each.insertedCount, each.updatedCount, each.deletedCount)
        for each in get_table(call, view).creationMetadata.sourceTables or ()
    ]


def test_changed_rows_are_noted_in_the_views_made_from_a_table(call: Call) -> None:
    source, other = make_table(call, "s"), make_table(call, "o")
    view = make_table(call, "v", kind="MATERIALIZED_VIEW")
    found = [get_table(call, name) for name in (source, other)]
    update_creation_metadata(
        call,
        view,
        CreationMetadata(
            catName="hive",
            dbName="default",
            tblName="v",
            tablesUsed=["hive.default.s", "hive.default.o"],
            sourceTables=[SourceTable(each, 1, 0, 0) for each in found],
        ),
    )
    for _ in range(2):
        rebuilds.add_changed_rows(call, UpdateTransactionalStatsRequest(found[0].id, 3, 2, 1))
    rebuilds.add_changed_rows(call, UpdateTransactionalStatsRequest(12345, 3, 2, 1))
    sources = get_table(call, view).creationMetadata.sourceTables
    assert [(each.table.tableName, each.insertedCount, each.updatedCount, each.deletedCount) for each in sources] == [
        ("s", 7, 4, 2),
        ("o", 1, 0, 0),
    ]


def test_changed_rows_cost_little_where_there_are_no_views(call: Call, counts: StatementCounts) -> None:
    counts("add changed rows", lambda: rebuilds.add_changed_rows(call, UpdateTransactionalStatsRequest(1, 3, 0, 0)))
    counts("add none", lambda: rebuilds.add_changed_rows(call, UpdateTransactionalStatsRequest(1, 0, 0, 0)))


def made_at(call: Call, view: TableName) -> int:
    made = get_table(call, view).creationMetadata
    assert made is not None
    return made.materializationTime or 0


def test_a_view_shows_when_it_was_made_last(call: Call) -> None:
    """Hive answers from a view that lags behind as long as that is within its window (`rewriting.time.window`)."""
    made = CreationMetadata(catName="hive", dbName="default", tblName="v", tablesUsed=["default.s"], materializationTime=7)
    begun = now_ms()
    sd = StorageDescriptor(cols=[FieldSchema("a", "int")], serdeInfo=SerDeInfo(parameters={}))
    create_table(call, Table(tableName="v", dbName="default", tableType="MATERIALIZED_VIEW", sd=sd, creationMetadata=made))
    view = TableName("hive", "default", "v")
    first = made_at(call, view)
    assert begun <= first <= now_ms()
    table = get_table(call, view)
    table.rewriteEnabled = False
    alter_table(call, view, table)
    assert made_at(call, view) == first
    made.materializationTime = None
    update_creation_metadata(call, view, made)
    assert first <= made_at(call, view) <= now_ms()
