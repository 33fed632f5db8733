"""The notification log: its events of each change, and how events are numbered, filtered, counted and removed."""

from __future__ import annotations

import time
from copy import deepcopy
from typing import Any

import orjson
import pytest

from metastore import idl
from metastore.errors import InvalidOperation
from metastore.idl import (
    Catalog,
    FieldSchema,
    Function,
    NotificationEventsCountRequest,
    SQLNotNullConstraint,
    SQLPrimaryKey,
)
from metastore.listeners import TransactionalListener
from metastore.listeners.events import (
    AbortTransactions,
    AllocateWriteIds,
    CommitCompaction,
    CommitTransaction,
    Event,
    OpenTransactions,
)
from metastore.service.call.context import Call, Metastore
from metastore.service.call.names import TableName
from metastore.service.catalog import catalogs, constraints, databases, functions
from metastore.service.catalog.partitions import partitions
from metastore.service.catalog.partitions.add_partitions import add_partitions as add
from metastore.service.catalog.partitions.alter_partitions import alter_partitions, rename_partition
from metastore.service.catalog.partitions.drop_partitions import drop_partitions
from metastore.service.catalog.statistics import delete_statistics, write_statistics
from metastore.service.catalog.tables import tables
from metastore.service.catalog.tables.alter_table import alter_table
from metastore.service.operations import notifications
from metastore.service.transactions import transactions
from metastore.service.transactions.commit import commit_transaction
from metastore.store.operations import notifications as rows
from tests.support.catalog.catalog import MetastoreMaker, call_of, make_database, make_table
from tests.support.catalog.event_log import events, fire, message, newest, partitioned, types, written
from tests.support.databases.statement_counts import StatementCounts


def test_an_empty_log(call: Call) -> None:
    last = notifications.current_id(call)
    assert events(call, last) == []
    assert notifications.count(call, NotificationEventsCountRequest(fromEventId=last, dbName="*")) == 0


def test_changes_of_a_table(call: Call) -> None:
    name = make_table(call, "t")
    kind, body = newest(call)
    assert (kind, body["db"], body["table"], body["tableType"], body["files"]) == ("CREATE_TABLE", "default", "t", "MANAGED_TABLE", [])
    assert orjson.loads(body["tableObjJson"])["1"] == {"str": "t"}
    table = deepcopy(tables.get_table(call, name))
    table.tableName = "u"
    alter_table(call, name, table)
    kind, body = newest(call)
    assert (kind, body["table"], body["isTruncateOp"]) == ("ALTER_TABLE", "t", "false")
    assert [orjson.loads(body[f"tableObj{when}Json"])["1"]["str"] for when in ("Before", "After")] == ["t", "u"]
    renamed = TableName("hive", "default", "u")
    tables.truncate_table(call_of(call.metastore, "truncate_table"), renamed, None, None)
    assert newest(call)[1]["isTruncateOp"] == "true"
    tables.drop_table(call, renamed, delete_data=True)
    last = events(call)[-1]
    assert (last.eventType, last.catName, last.dbName, last.tableName) == ("DROP_TABLE", "hive", "default", "u")


def test_a_table_that_is_made_with_constraints_logs_them_too(call: Call) -> None:
    key = SQLPrimaryKey(table_db="default", table_name="t", column_name="a", key_seq=1, pk_name="p", catName="hive")
    filled = SQLNotNullConstraint(table_db="default", table_name="t", column_name="b", nn_name="n", catName="hive")
    last = notifications.current_id(call)
    make_table(call, "t", constraints=[key, filled])
    assert types(call, last) == ["CREATE_TABLE", "ADD_PRIMARYKEY", "ADD_NOTNULLCONSTRAINT"]
    assert orjson.loads(newest(call)[1]["notNullConstraintListJson"][0])["4"] == {"str": "b"}
    constraints.drop(call, TableName("hive", "default", "t"), "p")
    kind, body = newest(call)
    assert (kind, body["dbName"], body["tableName"], body["constraintName"]) == ("DROP_CONSTRAINT", "default", "t", "p")


def test_changes_of_partitions(call: Call) -> None:
    name = partitioned(call, "1", "2")
    kind, body = newest(call)
    assert (kind, body["partitions"]) == ("ADD_PARTITION", [{"k": "1"}, {"k": "2"}])
    assert [orjson.loads(each)["1"] for each in body["partitionListJson"]] == [{"lst": ["str", 1, "1"]}, {"lst": ["str", 1, "2"]}]
    last = notifications.current_id(call)
    alter_partitions(call, name, deepcopy(partitions.get_partitions(call, name)))
    keys = [message(event)["keyValues"] for event in events(call, last)]
    assert keys == [{"k": "1"}, {"k": "2"}]
    moved = deepcopy(partitions.get_partition(call, name, ["2"]))
    moved.values = ["3"]
    rename_partition(call, name, ["2"], moved)
    kind, body = newest(call)
    assert (kind, body["keyValues"], body["isTruncateOp"]) == ("ALTER_PARTITION", {"k": "2"}, "false")
    assert orjson.loads(body["partitionObjAfterJson"])["1"]["lst"][2:] == ["3"]
    tables.truncate_table(call_of(call.metastore, "truncate_table"), name, ["k=1"], None)
    kind, body = newest(call)
    assert (kind, body["keyValues"], body["isTruncateOp"]) == ("ALTER_PARTITION", {"k": "1"}, "true")
    drop_partitions(call, name, ["k=1", "k=3"], delete_data=True, if_exists=False)
    kind, body = newest(call)
    assert (kind, body["partitions"]) == ("DROP_PARTITION", [{"k": "1"}, {"k": "3"}])


def test_nothing_added_logs_nothing(call: Call) -> None:
    name = partitioned(call, "1")
    last = notifications.current_id(call)
    add(call, name, deepcopy(partitions.get_partitions(call, name)), if_not_exists=True)
    assert notifications.current_id(call) == last


def test_databases_catalogs_and_functions(call: Call, tmp_path: Any) -> None:
    last = notifications.current_id(call)
    catalogs.create_catalog(call, Catalog(name="c", locationUri=f"file:{tmp_path}/c"))
    catalogs.alter_catalog(call, "c", Catalog(name="c", description="x", locationUri=f"file:{tmp_path}/c"))
    make_database(call, "d")
    databases.alter_database(call, "hive", "d", idl.Database(name="d", description="x"))
    functions.create_function(call, Function(functionName="f", dbName="d", className="F", functionType=1, ownerType=1))
    functions.drop_function(call, "d", "f")
    databases.drop_database(call, "hive", "d", delete_data=True, cascade=False)
    assert types(call, last) == [
        "CREATE_CATALOG",
        "ALTER_CATALOG",
        "CREATE_DATABASE",
        "ALTER_DATABASE",
        "CREATE_FUNCTION",
        "DROP_FUNCTION",
        "DROP_DATABASE",
    ]


def test_a_dropped_database_logs_its_tables_first(call: Call) -> None:
    make_database(call, "d")
    for name in ("t1", "t2"):
        make_table(call, name, database="d")
    last = notifications.current_id(call)
    databases.drop_database(call, "hive", "d", delete_data=True, cascade=True)
    assert types(call, last) == ["DROP_TABLE", "DROP_TABLE", "DROP_DATABASE"]


def column(name: str) -> idl.ColumnStatisticsObj:
    data = idl.ColumnStatisticsData(longStats=idl.LongColumnStatsData(lowValue=1, highValue=2, numNulls=0, numDVs=2))
    return idl.ColumnStatisticsObj(colName=name, colType="int", statsData=data)


def test_statistics(call: Call) -> None:
    name = partitioned(call, "1", "2")
    last = notifications.current_id(call)
    description = idl.ColumnStatisticsDesc(isTblLevel=True, dbName="default", tableName="t", catName="hive")
    write_statistics.set_statistics(call, [idl.ColumnStatistics(statsDesc=description, statsObj=[column("a")])])
    write_statistics.set_statistics(
        call,
        [
            idl.ColumnStatistics(
                statsDesc=idl.ColumnStatisticsDesc(isTblLevel=False, dbName="default", tableName="t", partName=f"K={value}"),
                statsObj=[column("a")],
            )
            for value in ("1", "2")
        ],
    )
    delete_statistics.delete(call, name, None, ["a"])
    delete_statistics.delete(call, name, ["k=1", "k=2"], ["a"])
    found = events(call, last)
    assert [event.eventType for event in found] == [
        "UPDATE_TABLE_COLUMN_STAT",
        *["UPDATE_PARTITION_COLUMN_STAT"] * 2,
        "DELETE_TABLE_COLUMN_STAT",
        *["DELETE_PARTITION_COLUMN_STAT"] * 2,
    ]
    assert [message(event)["partVals"] for event in found[1:3]] == [["1"], ["2"]]
    assert [(message(event)["partName"], message(event)["colName"]) for event in found[4:]] == [("k=1", "a"), ("k=2", "a")]


def notify(call: Call, *changes: Event) -> None:
    call.database.write(lambda session: call.listeners.within(changes, session))


def test_transactions(call: Call) -> None:
    last = notifications.current_id(call)
    info = call.info
    notify(call, OpenTransactions(client=info, transactions=[5, 6], type=idl.TxnType.DEFAULT))
    notify(call, OpenTransactions(client=info, transactions=[7], type=idl.TxnType.READ_ONLY))
    notify(call, CommitTransaction(client=info, transaction=5, type=idl.TxnType.DEFAULT))
    notify(call, CommitTransaction(client=info, transaction=7, type=idl.TxnType.READ_ONLY))
    notify(call, AbortTransactions(client=info, transactions=[6, 8], databases={6: ["d"]}))
    notify(call, AllocateWriteIds(client=info, catalog="hive", database="d", table="t", transactions=[5], write_ids=[1]))
    notify(
        call,
        CommitCompaction(
            client=info,
            transaction=9,
            compaction=3,
            type=idl.CompactionType.MAJOR,
            catalog="hive",
            database="d",
            table="t",
            partition="k=1",
        ),
    )
    found = [(event.eventType, message(event)) for event in events(call, last)]
    assert [kind for kind, _ in found] == ["OPEN_TXN", "COMMIT_TXN", "ABORT_TXN", "ABORT_TXN", "ALLOC_WRITE_ID", "COMMIT_COMPACTION"]
    messages = [each for _, each in found]
    assert (messages[0]["fromTxnId"], messages[0]["toTxnId"], messages[0]["txnIds"]) == (5, 6, [5, 6])
    assert [each["txnid"] for each in messages[1:4]] == [5, 6, 8]
    assert [each["dbsUpdated"] for each in messages[2:4]] == [["d"], []]
    assert (messages[4]["txnIdList"], messages[4]["writeIdList"]) == ([5], [1])
    assert (messages[5]["type"], messages[5]["compactionId"], messages[5]["partName"]) == ("MAJOR", 3, "k=1")


def test_a_transaction_logs_its_begin_and_its_end(call: Call) -> None:
    last = notifications.current_id(call)
    who = {"user": "u", "hostname": "h"}
    writing = transactions.open_transactions(call, idl.OpenTxnRequest(num_txns=3, **who))
    reading = transactions.open_transactions(call, idl.OpenTxnRequest(num_txns=2, txn_type=idl.TxnType.READ_ONLY, **who))
    commit_transaction(call, idl.CommitTxnRequest(txnid=writing[0]))
    commit_transaction(call, idl.CommitTxnRequest(txnid=reading[0]))
    transactions.abort_transactions(call, [writing[1], reading[1]])
    messages = [(event.eventType, message(event)) for event in events(call, last)]
    assert [(kind, each.get("txnid", each.get("txnIds"))) for kind, each in messages] == [
        ("OPEN_TXN", writing),
        ("COMMIT_TXN", writing[0]),
        ("ABORT_TXN", writing[1]),
    ]


def test_events_are_chosen(call: Call) -> None:
    make_database(call, "d")
    start = notifications.current_id(call)
    make_table(call, "a", database="d")
    make_table(call, "b", database="d")
    make_table(call, "a")
    notify(call, CommitTransaction(client=call.info, transaction=5, type=idl.TxnType.DEFAULT))

    def chosen(**wanted: Any) -> list[int]:
        return [event.eventId - start for event in events(call, start, **wanted)]

    assert chosen() == [1, 2, 3, 4]
    assert chosen(maxEvents=2) == [1, 2]
    assert chosen(maxEvents=0) == [1, 2, 3, 4]
    assert chosen(dbName="D") == [1, 2]
    assert chosen(catName="hive", dbName="d", tableNames=["B", "c"]) == [2]
    assert chosen(catName="other") == []
    assert chosen(eventTypeSkipList=["CREATE_TABLE"]) == [4]
    assert chosen(eventTypeList=["COMMIT_TXN", "DROP_TABLE"]) == [4]

    def counted(database: str, **wanted: Any) -> int:
        return notifications.count(call, NotificationEventsCountRequest(fromEventId=start, dbName=database, **wanted))

    assert counted("*") == 4
    assert counted("d") == 3, "those without database count for each"
    assert counted("d", toEventId=start + 1) == 1
    assert counted("*", limit=2) == 2
    assert counted("*", tableNames=["a"]) == 2
    assert counted("*", catName="other") == 1


def test_the_settings_bound_an_answer(make_metastore: MetastoreMaker, call: Call) -> None:
    for number in range(5):
        make_table(call, f"t{number}")
    bounded = call_of(make_metastore(max_event_response=3))
    assert len(events(bounded)) == 3
    assert len(events(bounded, maxEvents=10)) == 3


def test_plain_messages_and_no_log(make_metastore: MetastoreMaker, call: Call) -> None:
    plain = call_of(make_metastore(event_message_format="json-0.2"))
    name = make_table(plain, "t")
    event = events(call)[-1]
    assert (event.messageFormat, orjson.loads(event.message)["table"]) == ("json-0.2", "t")
    silent = call_of(make_metastore(notification_log=False))
    tables.drop_table(silent, name, delete_data=True)
    assert notifications.current_id(call) == event.eventId


class Failing(TransactionalListener):
    """Raises after all other listeners were called."""

    def within(self, event: Event, session: Any) -> None:  # noqa: ARG002
        raise InvalidOperation("no more of this")


def test_a_failing_listener_leaves_no_event(metastore: Metastore, call: Call) -> None:
    last = notifications.current_id(call)
    listeners = metastore.listeners
    before = listeners.transactional
    listeners.transactional = (*before, Failing(metastore.config))
    with pytest.raises(InvalidOperation):
        make_table(call, "t")
    listeners.transactional = before
    make_table(call, "u")
    assert notifications.current_id(call) == last + 1
    assert [event.tableName for event in events(call, last)] == ["u"]


def test_ids_go_on_where_events_were_forgotten(make_metastore: MetastoreMaker, call: Call) -> None:
    for number in range(4):
        make_table(call, f"t{number}")
    notifications.delete_old(call.metastore)
    last = notifications.current_id(call)
    assert len(events(call)) == last, "nothing is old yet"
    notifications.delete_old(make_metastore(event_count_to_keep=2))
    assert [event.eventId for event in events(call)] == [last - 1, last]
    make_table(call, "unread")
    notifications.delete_old(make_metastore(event_count_to_keep=1))
    assert [event.eventId for event in events(call)] == [last + 1], "it got its id before it could be forgotten"


def test_old_entries_go_and_no_others(call: Call) -> None:
    name = partitioned(call, "1")
    now = int(time.time())
    old = rows.NewWrite(6, "hive", "default", "t", "", 1, 1, '{"table": "", "partition": null, "files": ["f"]}')
    call.database.write(lambda session: rows.insert_writes(session, [old, old._replace(transaction_id=7, time=now)]))
    notifications.delete_old(call.metastore)
    assert [len(notifications.writes(call, transaction, None, None)) for transaction in (6, 7)] == [0, 1]
    assert types(call)[-1] == "ADD_PARTITION"
    assert name.table in {event.tableName for event in events(call)}


def test_more_events_than_one_statement_numbers_or_removes(make_metastore: MetastoreMaker, call: Call) -> None:
    start = notifications.current_id(call)
    new = [rows.LogRow(1, "COMMIT_TXN", None, None, None, str(number), "json-0.2") for number in range(rows.BATCH * 2 + 3)]
    call.database.write(lambda session: rows.insert(session, new))
    found = events(call, start)
    assert [event.eventId - start for event in found] == list(range(1, len(new) + 1))
    assert [int(event.message) for event in found] == sorted(int(event.message) for event in found)
    notifications.delete_old(make_metastore(event_time_to_live=86400))
    assert events(call, start) == []
    assert notifications.current_id(call) == start + len(new)


def test_events_that_share_a_row(call: Call) -> None:
    name = partitioned(call, *(f"{number:03d}" for number in range(250)))
    start = notifications.current_id(call)
    alter_partitions(call, name, deepcopy(partitions.get_partitions(call, name)))
    make_table(call, "last")
    end = start + 251
    ids, taken = start, []
    while found := events(call, ids, maxEvents=60):
        assert [event.eventId for event in found] == list(range(ids + 1, ids + 1 + len(found)))
        taken += found
        ids = found[-1].eventId
    assert [message(event)["keyValues"]["k"] for event in taken[:-1]] == [f"{number:03d}" for number in range(250)]
    assert (taken[-1].eventType, ids, notifications.current_id(call)) == ("CREATE_TABLE", end, end)
    assert {(event.dbName, event.tableName, event.eventTime) for event in taken[:-1]} == {("default", "t", taken[0].eventTime)}

    def counted(first: int, last: int | None) -> int:
        upto = None if last is None else start + last
        return notifications.count(call, NotificationEventsCountRequest(fromEventId=start + first, dbName="default", toEventId=upto))

    spans = [(0, None), (0, 1), (0, 250), (1, 99), (99, 100), (99, 101), (100, 200), (50, 249), (150, 300), (250, 251), (251, None)]
    assert [counted(*span) for span in spans] == [251, 1, 250, 98, 1, 2, 100, 199, 101, 1, 0]


def test_statements(call: Call, counts: StatementCounts) -> None:
    name = partitioned(call, "1", "2")
    notifications.current_id(call)
    counts("read", lambda: events(call))
    counts("current id", lambda: notifications.current_id(call))
    make_table(call, "u")
    counts("read and number", lambda: events(call))
    counts("fire", lambda: notifications.fire_listener_event(call, name, fire(["1"])))
    counts("fire for many", lambda: notifications.fire_listener_event(call, name, fire(None, ["1"], ["2"])))
    files = [written(7, "file:/a", values=["1"]), written(7, "file:/b", values=["2"])]
    counts("write", lambda: notifications.add_writes(call, name, files))


def test_the_new_column_of_a_table_is_logged(call: Call) -> None:
    name = make_table(call, "t")
    table = deepcopy(tables.get_table(call, name))
    table.sd.cols.append(FieldSchema(name="new", type="int"))
    alter_table(call, name, table)
    _, body = newest(call)
    columns = [orjson.loads(body[f"tableObj{when}Json"])["7"]["rec"]["1"]["lst"][2:] for when in ("Before", "After")]
    assert [len(each) for each in columns] == [2, 3]
