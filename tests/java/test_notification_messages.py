"""Hive's own deserializers of two releases read every event of a running server's notification log."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from metastore import idl
from metastore.client import Client, connect
from metastore.idl import (
    CompactionType,
    FieldSchema,
    NotificationEvent,
    NotificationEventRequest,
    Partition,
    SerDeInfo,
    StorageDescriptor,
    Table,
    TxnType,
)
from tests.support.engines.jars import classpath, jars_of
from tests.support.servers.servers import serving

pytestmark = pytest.mark.slow

JAVA = Path(__file__).with_name("ReadMessages.java")
HIVE_3 = ("org.apache.hive:hive-standalone-metastore:3.1.3", "org.apache.hadoop:hadoop-common:3.1.0")
UNREADABLE = {"CREATE_CATALOG", "ALTER_CATALOG", "DROP_CATALOG", "RELOAD"}
"""Event types for which Hive has messages, but which its deserializers do not support."""
UNKNOWN_TO_3 = {
    "ADD_DEFAULTCONSTRAINT",
    "ADD_CHECKCONSTRAINT",
    "UPDATE_TABLE_COLUMN_STAT",
    "DELETE_TABLE_COLUMN_STAT",
    "UPDATE_PARTITION_COLUMN_STAT",
    "DELETE_PARTITION_COLUMN_STAT",
    "COMMIT_COMPACTION",
}
"""Event types that Hive 3 does not have. Its deserializer refuses them."""


def storage(location: str | None = None) -> StorageDescriptor:
    return StorageDescriptor(
        cols=[FieldSchema(name="a", type="int", comment='"quoted" é'), FieldSchema(name="b", type="string")],
        location=location,
        inputFormat="org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
        outputFormat="org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat",
        serdeInfo=SerDeInfo(serializationLib="org.apache.hadoop.hive.ql.io.orc.OrcSerde", parameters={"field.delim": "\u0001"}),
        parameters={},
    )


def column(name: str) -> idl.ColumnStatisticsObj:
    data = idl.LongColumnStatsData(lowValue=1, highValue=2, numNulls=0, numDVs=2, bitVectors=b"HL\x00\xff")
    return idl.ColumnStatisticsObj(colName=name, colType="int", statsData=idl.ColumnStatisticsData(longStats=data))


def change_everything(client: Client, warehouse: Path) -> None:
    """Make changes that have an event of every type."""
    place = f"file:{warehouse}/c"
    client.create_catalog(idl.CreateCatalogRequest(catalog=idl.Catalog(name="c", locationUri=place)))
    client.alter_catalog(idl.AlterCatalogRequest(name="c", newCat=idl.Catalog(name="c", description="x", locationUri=place)))
    client.drop_catalog(idl.DropCatalogRequest(name="c"))
    client.create_database(idl.Database(name="d", parameters={}))
    client.alter_database("d", idl.Database(name="d", description="x", parameters={}))
    client.create_table(Table(
        dbName="d", tableName="t", sd=storage(), parameters={"transactional": "true"}, tableType="MANAGED_TABLE",
        partitionKeys=[FieldSchema(name="k", type="string")],
    ))  # fmt: skip
    client.create_table(Table(dbName="d", tableName="u", sd=storage(), parameters={}, tableType="MANAGED_TABLE", partitionKeys=[]))
    _alter_tables(client)
    _constrain(client)
    client.create_function(idl.Function(functionName="f", dbName="d", className="F", functionType=1, ownerType=1, ownerName="o"))
    client.drop_function("d", "f")
    _measure(client)
    _transact(client)
    client.fire_listener_event(idl.FireEventRequest(
        successful=True, dbName="d", tableName="t", partitionVals=["1"], data=idl.FireEventRequestData(
            insertData=idl.InsertEventRequestData(filesAdded=["file:/f"], replace=True),
        ),
    ))  # fmt: skip
    refreshed = idl.FireEventRequestData(refreshEvent=True)
    client.fire_listener_event(idl.FireEventRequest(successful=True, dbName="d", tableName="t", data=refreshed))
    client.drop_partition("d", "t", ["1"], True)
    client.drop_table("d", "t", True)
    client.drop_database("d", True, True)


def _alter_tables(client: Client) -> None:
    client.add_partitions(
        [Partition(values=[value], dbName="d", tableName="t", sd=storage(), parameters={"p": value}) for value in ("1", "2")]
    )
    table = client.get_table("d", "u")
    table.parameters["x"] = "y"
    client.alter_table("d", "u", table)
    partition = client.get_partition("d", "t", ["2"])
    partition.values = ["3"]
    client.rename_partition("d", "t", ["2"], partition)


def _constrain(client: Client) -> None:
    named = {"table_db": "d", "table_name": "u"}
    flags = {"enable_cstr": False, "validate_cstr": False, "rely_cstr": True}
    key = idl.SQLPrimaryKey(**named, column_name="a", key_seq=1, pk_name="pk", **flags)
    client.add_primary_key(idl.AddPrimaryKeyRequest(primaryKeyCols=[key]))
    client.add_foreign_key(idl.AddForeignKeyRequest(foreignKeyCols=[idl.SQLForeignKey(
        pktable_db="d", pktable_name="u", pkcolumn_name="a", fktable_db="d", fktable_name="t", fkcolumn_name="a", key_seq=1, fk_name="fk",
        pk_name="pk", update_rule=0, delete_rule=0, **flags,
    )]))  # fmt: skip
    client.add_unique_constraint(
        idl.AddUniqueConstraintRequest(
            uniqueConstraintCols=[
                idl.SQLUniqueConstraint(**named, column_name="b", key_seq=1, uk_name="uk", catName="hive", **flags),
            ]
        )
    )
    client.add_not_null_constraint(
        idl.AddNotNullConstraintRequest(
            notNullConstraintCols=[
                idl.SQLNotNullConstraint(**named, column_name="b", nn_name="nn", catName="hive", **flags),
            ]
        )
    )
    client.add_default_constraint(
        idl.AddDefaultConstraintRequest(
            defaultConstraintCols=[
                idl.SQLDefaultConstraint(**named, column_name="b", default_value="'x'", dc_name="dc", catName="hive", **flags),
            ]
        )
    )
    client.add_check_constraint(
        idl.AddCheckConstraintRequest(
            checkConstraintCols=[
                idl.SQLCheckConstraint(**named, column_name="a", check_expression="a > 0", dc_name="cc", catName="hive", **flags),
            ]
        )
    )
    client.drop_constraint(idl.DropConstraintRequest(dbname="d", tablename="u", constraintname="cc"))


def _measure(client: Client) -> None:
    about = {"dbName": "d", "catName": "hive"}
    for description in (
        idl.ColumnStatisticsDesc(isTblLevel=True, tableName="u", **about),
        idl.ColumnStatisticsDesc(isTblLevel=False, tableName="t", partName="k=1", **about),
    ):
        new = idl.ColumnStatistics(statsDesc=description, statsObj=[column("a")])
        client.set_aggr_stats_for(idl.SetPartitionsStatsRequest(colStats=[new], engine="hive"))
    client.delete_table_column_statistics("d", "u", "a", "hive")
    client.delete_partition_column_statistics("d", "t", "k=1", "a", "hive")


def _transact(client: Client) -> None:
    who = {"user": "u", "hostname": "h"}
    first, second = client.open_txns(idl.OpenTxnRequest(num_txns=2, **who)).txn_ids
    client.allocate_table_write_ids(idl.AllocateTableWriteIdsRequest(dbName="d", tableName="t", txnIds=[first, second]))
    client.commit_txn(idl.CommitTxnRequest(txnid=first))
    client.abort_txn(idl.AbortTxnRequest(txnid=second))
    client.compact2(idl.CompactionRequest(dbname="d", tablename="t", partitionname="k=1", type=CompactionType.MAJOR))
    found = client.find_next_compact("worker").ci
    (compactor,) = client.open_txns(idl.OpenTxnRequest(num_txns=1, txn_type=TxnType.COMPACTION, **who)).txn_ids
    found.highestWriteId = 1
    client.update_compactor_state(found, compactor)
    client.mark_compacted(found)
    client.commit_txn(idl.CommitTxnRequest(txnid=compactor, txn_type=TxnType.COMPACTION))


def read(release: str, events: list[NotificationEvent]) -> Iterator[Mapping[str, str]]:
    """Yield for each event's message the values of its getters by their names; "error" is the exception if one was thrown."""
    jars = classpath() if release == "4.0.1" else jars_of("hive-metastore-3.1.3", HIVE_3)
    given = b"".join(
        _utf(event.eventType) + _utf(event.messageFormat or "") + struct.pack("!i", len(event.message.encode())) + event.message.encode()
        for event in events
    )
    run = subprocess.run(["java", "-cp", jars, str(JAVA)], input=given + _utf(""), stdout=subprocess.PIPE, check=True)
    data = memoryview(run.stdout)

    def take(form: str) -> Any:
        nonlocal data
        size = struct.calcsize(form)
        found, data = data[:size], data[size:]
        return struct.unpack(form, found)[0]

    for _ in events:
        lines = [str(take(f"!{take('!H')}s"), "utf-8") for _ in range(take("!i"))]
        yield dict(line.split("=", 1) if not line.startswith("error") else ("error", line) for line in lines)  # type: ignore[misc]
    assert len(data) == 0


def _utf(text: str) -> bytes:
    return struct.pack("!H", len(text.encode())) + text.encode()


@pytest.mark.parametrize(("release", "format_"), [("3.1.3", "json-0.2"), ("4.0.1", "json-0.2"), ("4.0.1", "gzip(json-2.0)")])
def test_every_type_is_read(release: str, format_: str, tmp_path: Path) -> None:
    options = ("--set", f"event_message_format={format_}", "--warehouse", str(tmp_path / "warehouse"), "--workers", "1")
    with serving(*options, home=tmp_path) as server, connect(server.uri) as client:
        change_everything(client, tmp_path)
        events = client.get_next_notification(NotificationEventRequest(lastEvent=0)).events
    assert {event.messageFormat for event in events} == {format_}
    got: dict[str, Mapping[str, str]] = {}
    for event, values in zip(events, read(release, events), strict=True):
        got.setdefault(event.eventType, values)
    unreadable = {kind: values["error"] for kind, values in got.items() if "error" in values}
    assert set(unreadable) == UNREADABLE | (UNKNOWN_TO_3 if release == "3.1.3" else set()), unreadable
    for kind, fields in EXPECTED.items():
        for getter, text in fields.items():
            if kind not in unreadable and getter in got[kind]:
                assert text in got[kind][getter], (kind, getter)
    assert set(got) == TYPES


TYPES = {
    "CREATE_CATALOG", "ALTER_CATALOG", "DROP_CATALOG", "CREATE_DATABASE", "ALTER_DATABASE", "DROP_DATABASE", "CREATE_TABLE", "ALTER_TABLE",
    "DROP_TABLE", "ADD_PARTITION", "ALTER_PARTITION", "DROP_PARTITION", "ADD_PRIMARYKEY", "ADD_FOREIGNKEY", "ADD_UNIQUECONSTRAINT",
    "ADD_NOTNULLCONSTRAINT", "ADD_DEFAULTCONSTRAINT", "ADD_CHECKCONSTRAINT", "DROP_CONSTRAINT", "CREATE_FUNCTION", "DROP_FUNCTION",
    "UPDATE_TABLE_COLUMN_STAT", "UPDATE_PARTITION_COLUMN_STAT", "DELETE_TABLE_COLUMN_STAT", "DELETE_PARTITION_COLUMN_STAT", "OPEN_TXN",
    "COMMIT_TXN", "ABORT_TXN", "ALLOC_WRITE_ID", "COMMIT_COMPACTION", "INSERT", "RELOAD",
}  # fmt: skip
EXPECTED: dict[str, dict[str, str]] = {
    "CREATE_DATABASE": {"getDB": "d", "getDatabaseObject": "name:d"},
    "ALTER_DATABASE": {"getDbObjAfter": "description:x"},
    "CREATE_TABLE": {"getTable": "t", "getTableType": "MANAGED_TABLE", "getTableObj": 'comment:"quoted" é'},
    "ALTER_TABLE": {"getTableObjAfter": "x=y", "getIsTruncateOp": "false"},
    "ADD_PARTITION": {"getPartitions": "[{k=1}, {k=2}]", "getPartitionObjs": "Partition(values:[2]", "getTableObj": "tableName:t"},
    "ALTER_PARTITION": {"getKeyValues": "{k=2}", "getPtnObjBefore": "values:[2]", "getPtnObjAfter": "values:[3]"},
    "DROP_PARTITION": {"getPartitions": "[{k=1}]"},
    "DROP_TABLE": {"getTable": "t"},
    "CREATE_FUNCTION": {"getFunctionObj": "functionName:f"},
    "DROP_FUNCTION": {"getFunctionName": "f"},
    "ADD_PRIMARYKEY": {"getPrimaryKeys": "pk_name:pk"},
    "ADD_FOREIGNKEY": {"getForeignKeys": "fktable_name:t"},
    "ADD_UNIQUECONSTRAINT": {"getUniqueConstraints": "uk_name:uk"},
    "ADD_NOTNULLCONSTRAINT": {"getNotNullConstraints": "nn_name:nn"},
    "ADD_DEFAULTCONSTRAINT": {"getDefaultConstraints": "default_value:'x'"},
    "ADD_CHECKCONSTRAINT": {"getCheckConstraints": "check_expression:a > 0"},
    "DROP_CONSTRAINT": {"getConstraint": "cc", "getTable": "u"},
    "UPDATE_TABLE_COLUMN_STAT": {"getColumnStatistics": "numDVs:2", "getTableObject": "tableName:u"},
    "UPDATE_PARTITION_COLUMN_STAT": {"getPartVals": "[1]", "getColumnStatistics": "partName:k=1"},
    "DELETE_TABLE_COLUMN_STAT": {"getColName": "a"},
    "DELETE_PARTITION_COLUMN_STAT": {"getPartName": "k=1", "getPartValues": "[1]"},
    "OPEN_TXN": {"getTxnIds": "[1, 2]"},
    "COMMIT_TXN": {"getTxnId": "1"},
    "ABORT_TXN": {"getTxnId": "2"},
    "ALLOC_WRITE_ID": {"getTableName": "t", "getTxnToWriteIdList": "TxnToWriteId(txnId:1, writeId:1), TxnToWriteId(txnId:2, writeId:2)"},
    "COMMIT_COMPACTION": {"getTxnId": "3", "getType": "MAJOR", "getPartName": "k=1", "getTableName": "t"},
    "INSERT": {"getFiles": "[file:/f###]", "isReplace": "true", "getPtnObj": "values:[1]"},
}
