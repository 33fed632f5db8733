"""Messages of the notification log by kind of change: the type, the object and the fields, as in Hive's messages of that type.

Fields that only Hive 4 has are always included: Hive 3 ignores them. `files` of new tables and partitions stay empty, since nothing is
listed while rows are locked. A changed function has no type of event in any release, so it gets none. Data connectors have types, but no
release has messages of them or writes any, so they get none either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from metastore import idl
from metastore.idl import CompactionType, FieldSchema, InsertEventRequestData, Partition, Table, TxnType
from metastore.listeners import events
from metastore.listeners.notifications.thrift_json import StructWriter
from metastore.rules.values.partition_names import partition_spec

Fields = Mapping[str, Any]


class Notification(NamedTuple):
    """One message and its object."""

    type: str
    catalog: str | None
    database: str | None
    table: str | None
    fields: Fields


def of(event: events.Event) -> Iterator[Notification]:
    """Yield the messages of a change; none for one that Hive does not notify either."""
    make = MESSAGES.get(type(event))
    return iter(()) if make is None else make(event, StructWriter())


def _create_catalog(event: events.CreateCatalog, _: StructWriter) -> Iterator[Notification]:
    yield Notification("CREATE_CATALOG", event.catalog.name, None, None, {"catalog": event.catalog.name})


def _alter_catalog(event: events.AlterCatalog, write: StructWriter) -> Iterator[Notification]:
    yield Notification(
        "ALTER_CATALOG",
        event.before.name,
        None,
        None,
        {
            "catObjBeforeJson": write.text(event.before),
            "catObjAfterJson": write.text(event.after),
        },
    )


def _drop_catalog(event: events.DropCatalog, _: StructWriter) -> Iterator[Notification]:
    yield Notification("DROP_CATALOG", event.catalog.name, None, None, {"catalog": event.catalog.name})


def _create_database(event: events.CreateDatabase, write: StructWriter) -> Iterator[Notification]:
    database = event.database
    yield Notification(
        "CREATE_DATABASE",
        database.catalogName,
        database.name,
        None,
        {
            "db": database.name,
            "dbJson": write.text(database),
        },
    )


def _alter_database(event: events.AlterDatabase, write: StructWriter) -> Iterator[Notification]:
    before = event.before
    yield Notification(
        "ALTER_DATABASE",
        before.catalogName,
        before.name,
        None,
        {
            "db": before.name,
            "dbObjBeforeJson": write.text(before),
            "dbObjAfterJson": write.text(event.after),
        },
    )


def _drop_database(event: events.DropDatabase, write: StructWriter) -> Iterator[Notification]:
    database = event.database
    yield Notification(
        "DROP_DATABASE",
        database.catalogName,
        database.name,
        None,
        {
            "db": database.name,
            "dbJson": write.text(database),
        },
    )


def _on(kind: str, table: Table, fields: Fields) -> Notification:
    """Return a message about a table or its partitions."""
    named = {"db": table.dbName, "table": table.tableName, "tableType": table.tableType}
    return Notification(kind, table.catName, table.dbName, table.tableName, {**named, **fields})


def _create_table(event: events.CreateTable, write: StructWriter) -> Iterator[Notification]:
    yield _on("CREATE_TABLE", event.table, {"tableObjJson": write.text(event.table), "files": []})


def _alter_table(event: events.AlterTable, write: StructWriter) -> Iterator[Notification]:
    before, after = event.before, event.after
    packed = _on(
        "ALTER_TABLE",
        before,
        {
            "tableObjBeforeJson": write.text(before),
            "tableObjAfterJson": write.text(after),
            "isTruncateOp": _truncates(event),
            "writeId": _write_id(after.writeId),
        },
    )
    yield packed._replace(database=after.dbName, table=after.tableName)


def _drop_table(event: events.DropTable, write: StructWriter) -> Iterator[Notification]:
    yield _on("DROP_TABLE", event.table, {"tableObjJson": write.text(event.table)})


def _truncates(event: events.AlterTable | events.AlterPartitions) -> str:
    return "true" if event.truncates else "false"


def _write_id(value: int | None) -> int:
    return -1 if value is None else value


def _add_partitions(event: events.AddPartitions, write: StructWriter) -> Iterator[Notification]:
    if event.partitions:
        keys = event.table.partitionKeys
        yield _on(
            "ADD_PARTITION",
            event.table,
            {
                "tableObjJson": write.text(event.table),
                "partitions": [_values(keys, partition) for partition in event.partitions],
                "partitionListJson": [write.partition(partition) for partition in event.partitions],
                "partitionFiles": [],
            },
        )


def _alter_partitions(event: events.AlterPartitions, write: StructWriter) -> Iterator[Notification]:
    keys, table, truncates = event.table.partitionKeys, write.text(event.table), _truncates(event)
    old, new = StructWriter(), StructWriter()
    for before, after in zip(event.before, event.after, strict=True):
        yield _on(
            "ALTER_PARTITION",
            event.table,
            {
                "tableObjJson": table,
                "isTruncateOp": truncates,
                "writeId": _write_id(after.writeId),
                "keyValues": _values(keys, before),
                "partitionObjBeforeJson": old.partition(before),
                "partitionObjAfterJson": new.partition(after),
            },
        )


def _drop_partitions(event: events.DropPartitions, write: StructWriter) -> Iterator[Notification]:
    if event.partitions:
        keys = event.table.partitionKeys
        yield _on(
            "DROP_PARTITION",
            event.table,
            {
                "tableObjJson": write.text(event.table),
                "partitions": [_values(keys, partition) for partition in event.partitions],
            },
        )


def _values(keys: Sequence[FieldSchema], partition: Partition) -> dict[str, str]:
    return {key.name: value for key, value in zip(keys, partition.values, strict=True)}


def _create_function(event: events.CreateFunction, write: StructWriter) -> Iterator[Notification]:
    function = event.function
    yield Notification(
        "CREATE_FUNCTION",
        function.catName,
        function.dbName,
        None,
        {
            "db": function.dbName,
            "functionObjJson": write.text(function),
        },
    )


def _drop_function(event: events.DropFunction, _: StructWriter) -> Iterator[Notification]:
    function = event.function
    yield Notification(
        "DROP_FUNCTION",
        function.catName,
        function.dbName,
        None,
        {
            "db": function.dbName,
            "functionName": function.functionName,
        },
    )


CONSTRAINTS: dict[type[Any], tuple[str, str]] = {
    idl.SQLPrimaryKey: ("ADD_PRIMARYKEY", "primaryKeyListJson"),
    idl.SQLForeignKey: ("ADD_FOREIGNKEY", "foreignKeyListJson"),
    idl.SQLUniqueConstraint: ("ADD_UNIQUECONSTRAINT", "uniqueConstraintListJson"),
    idl.SQLNotNullConstraint: ("ADD_NOTNULLCONSTRAINT", "notNullConstraintListJson"),
    idl.SQLDefaultConstraint: ("ADD_DEFAULTCONSTRAINT", "defaultConstraintListJson"),
    idl.SQLCheckConstraint: ("ADD_CHECKCONSTRAINT", "checkConstraintListJson"),
}


def _add_constraints(event: events.AddConstraints, write: StructWriter) -> Iterator[Notification]:
    table = event.table
    for struct, (kind, field) in CONSTRAINTS.items():
        found = [write.text(each) for each in event.constraints if isinstance(each, struct)]
        if found:
            yield Notification(kind, table.catName, table.dbName, table.tableName, {field: found})


def _drop_constraint(event: events.DropConstraint, _: StructWriter) -> Iterator[Notification]:
    table = event.table
    yield Notification(
        "DROP_CONSTRAINT",
        table.catName,
        table.dbName,
        table.tableName,
        {
            "dbName": table.dbName,
            "tableName": table.tableName,
            "constraintName": event.name,
        },
    )


def _update_statistics(event: events.UpdateStatistics, write: StructWriter) -> Iterator[Notification]:
    table = event.table
    shared = {"database": table.dbName, "tableObjJson": write.text(table), "writeId": _write_id(table.writeId)}
    keys = [key.name for key in table.partitionKeys or ()]
    for each in event.statistics:
        fields = {**shared, "colStatsJson": write.text(each)}
        partition = each.statsDesc.partName
        if partition is None:
            yield _about("UPDATE_TABLE_COLUMN_STAT", table, {**fields, "parameters": table.parameters})
        else:
            yield _about(
                "UPDATE_PARTITION_COLUMN_STAT",
                table,
                {
                    **fields,
                    "parameters": {},
                    "partVals": _named_values(keys, partition),
                },
            )


def _delete_statistics(event: events.DeleteStatistics, _: StructWriter) -> Iterator[Notification]:
    table = event.table
    keys = [key.name for key in table.partitionKeys or ()]
    for column in event.columns or (None,):
        fields = {"database": table.dbName, "colName": column}
        if not event.partitions:
            yield _about("DELETE_TABLE_COLUMN_STAT", table, fields)
        for partition in event.partitions:
            yield _about(
                "DELETE_PARTITION_COLUMN_STAT",
                table,
                {
                    **fields,
                    "partName": partition,
                    "partValues": _named_values(keys, partition),
                },
            )


def _named_values(keys: Sequence[str], partition: str) -> list[str | None]:
    """Return the values in a client's name of a partition, whose keys may be in any case."""
    spec = {key.lower(): value for key, value in partition_spec(partition).items()}
    return [spec.get(key) for key in keys]


def _about(kind: str, table: Table, fields: Fields) -> Notification:
    return Notification(kind, table.catName, table.dbName, table.tableName, fields)


def _insert(event: events.Insert, write: StructWriter) -> Iterator[Notification]:
    yield _on(
        "INSERT",
        event.table,
        {
            "tableObjJson": write.text(event.table),
            "ptnObjJson": None if event.partition is None else write.partition(event.partition),
            "replace": "true" if event.data.replace else "false",
            "files": files(event.data),
        },
    )


def _reload(event: events.Reload, write: StructWriter) -> Iterator[Notification]:
    table, partitions = event.table, [write.partition(partition) for partition in event.partitions]
    yield _about(
        "RELOAD",
        table,
        {
            "db": table.dbName,
            "table": table.tableName,
            "tableObjJson": write.text(table),
            "ptnObjJson": partitions[0] if len(partitions) == 1 else None,
            "partitionListJson": partitions if len(partitions) > 1 else None,
            "refreshEvent": "true" if event.refreshes else "false",
        },
    )


def files(data: InsertEventRequestData) -> list[str]:
    """Return a write's files in the form of Hive without a change manager: `uri###directory below the table's`."""
    added = data.filesAdded or []
    below = data.subDirectoryList or [""] * len(added)
    return [f"{uri}###{directory or ''}" for uri, directory in zip(added, below, strict=False)]


def _open_transactions(event: events.OpenTransactions, _: StructWriter) -> Iterator[Notification]:
    if event.transactions and event.type != TxnType.READ_ONLY:
        ids = list(event.transactions)
        yield Notification("OPEN_TXN", None, None, None, {"txnIds": ids, "fromTxnId": ids[0], "toTxnId": ids[-1]})


def _commit_transaction(event: events.CommitTransaction, _: StructWriter) -> Iterator[Notification]:
    if event.type != TxnType.READ_ONLY:
        yield Notification("COMMIT_TXN", None, None, None, {"txnid": event.transaction})


def _abort_transactions(event: events.AbortTransactions, _: StructWriter) -> Iterator[Notification]:
    for transaction in event.transactions:
        databases = list(event.databases.get(transaction, ()))
        yield Notification("ABORT_TXN", None, None, None, {"txnid": transaction, "dbsUpdated": databases})


def _allocate_write_ids(event: events.AllocateWriteIds, _: StructWriter) -> Iterator[Notification]:
    yield Notification(
        "ALLOC_WRITE_ID",
        event.catalog,
        event.database,
        event.table,
        {
            "dbName": event.database,
            "tableName": event.table,
            "txnIdList": list(event.transactions),
            "writeIdList": list(event.write_ids),
        },
    )


def _commit_compaction(event: events.CommitCompaction, _: StructWriter) -> Iterator[Notification]:
    yield Notification(
        "COMMIT_COMPACTION",
        event.catalog,
        event.database,
        event.table,
        {
            "txnid": event.transaction,
            "compactionId": event.compaction,
            "type": CompactionType._VALUES_TO_NAMES[event.type],  # noqa: SLF001
            "dbname": event.database,
            "tableName": event.table,
            "partName": event.partition,
        },
    )


MESSAGES: dict[type[events.Event], Callable[[Any, StructWriter], Iterator[Notification]]] = {
    events.CreateCatalog: _create_catalog,
    events.AlterCatalog: _alter_catalog,
    events.DropCatalog: _drop_catalog,
    events.CreateDatabase: _create_database,
    events.AlterDatabase: _alter_database,
    events.DropDatabase: _drop_database,
    events.CreateTable: _create_table,
    events.AlterTable: _alter_table,
    events.DropTable: _drop_table,
    events.AddPartitions: _add_partitions,
    events.AlterPartitions: _alter_partitions,
    events.DropPartitions: _drop_partitions,
    events.CreateFunction: _create_function,
    events.DropFunction: _drop_function,
    events.AddConstraints: _add_constraints,
    events.DropConstraint: _drop_constraint,
    events.UpdateStatistics: _update_statistics,
    events.DeleteStatistics: _delete_statistics,
    events.Insert: _insert,
    events.Reload: _reload,
    events.OpenTransactions: _open_transactions,
    events.CommitTransaction: _commit_transaction,
    events.AbortTransactions: _abort_transactions,
    events.AllocateWriteIds: _allocate_write_ids,
    events.CommitCompaction: _commit_compaction,
}
