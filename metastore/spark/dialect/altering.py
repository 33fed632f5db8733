"""Change the definition of a transactional table: ALTER TABLE, TRUNCATE, DROP TABLE. Each waits for all users of the table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

from metastore import idl
from metastore.acid.partitions import found_or_added
from metastore.client import Client
from metastore.idl import DataOperationType, EnvironmentContext, FieldSchema, LockType, Partition, Table
from metastore.rules.catalog.table_kinds import is_transactional
from metastore.rules.transactions.snapshots import format_table, snapshot
from metastore.rules.values.partition_names import make_partition_name, partition_values
from metastore.spark.definition.constraints import constraints_of
from metastore.spark.dialect.session import Names, SqlSession
from metastore.spark.dialect.showing import partition_text
from metastore.spark.grammar.alterations import (
    AddColumns,
    AddConstraint,
    AddPartitions,
    ChangeColumn,
    DropConstraint,
    DropPartitions,
    Rename,
    RenamePartition,
    SetProperties,
)
from metastore.spark.grammar.columns import Column
from metastore.spark.grammar.statements import DropDatabase, DropTable, OfTable, Spec, Truncate
from metastore.spark.grammar.tokens import WrongStatement
from metastore.spark.session.catalog import AcidTableInfo
from metastore.spark.transaction.readers import give_way
from metastore.spark.transaction.spark_transaction import SparkTransaction

_CASCADES = EnvironmentContext(properties={"CASCADE": "true"})
"""Partitions get the columns of the table, as in Spark's own ALTER; rows are read by the table's columns."""


@contextmanager
def _alone(session: SqlSession, info: AcidTableInfo) -> Iterator[tuple[SparkTransaction, AcidTableInfo]]:
    """Lock a table for a change of its definition, after this program's readers of it are ended; yield the table as it is then."""
    session.outside(f"a change of the definition of {info.full_name}")
    give_way(session.spark, session.uri, info)
    transaction = SparkTransaction(session.spark, session.uri)
    with transaction.txn:
        transaction.lock(info, LockType.EXCLUSIVE, DataOperationType.NO_TXN)
        yield transaction, transaction.load(info.database, info.name)


def alter(session: SqlSession, names: Names, info: AcidTableInfo, statement: OfTable) -> None:
    """Run an ALTER TABLE. WrongStatement, and the Thrift exceptions of the metastore."""
    if isinstance(statement, AddPartitions):
        session.outside("ADD PARTITION")
        _add_partitions(names.client, info, statement)
        return
    with _alone(session, info) as (transaction, there):
        run = _ACTIONS[type(statement)]
        transaction.txn.call(lambda client: run(client, names, there, statement))


def truncate(session: SqlSession, names: Names, info: AcidTableInfo, statement: Truncate) -> None:
    """Remove all rows of a table or of partitions: the metastore writes bases without rows, which are in effect after the commit."""
    partitions = None if statement.partition is None else _named(names.client, info, statement.partition)
    give_way(session.spark, session.uri, info)
    with session.writing() as transaction:
        transaction.lock(info, LockType.EXCLUSIVE, DataOperationType.UPDATE)
        transaction.next_statement(info)
        write_id = transaction.txn.write_id(info.database, info.name)
        seen = transaction.snapshot(info).write_ids
        request = idl.TruncateTableRequest(
            dbName=info.database,
            tableName=info.name,
            partNames=partitions,
            writeId=write_id,
            validWriteIdList=format_table(info.full_name, snapshot(seen.high_watermark, seen.open, seen.aborted)),
        )
        transaction.txn.call(lambda client: client.truncate_table_req(request))
        transaction.overwrote(info)


def drop_table(session: SqlSession, info: AcidTableInfo, statement: DropTable) -> None:
    """Drop a table with its rows."""
    with _alone(session, info) as (transaction, _):
        context = EnvironmentContext(properties={"ifPurge": "TRUE"} if statement.purge else {})
        transaction.txn.call(lambda client: client.drop_table_with_environment_context(info.database, info.name, True, context))


def empty(session: SqlSession, names: Names, statement: DropDatabase) -> None:
    """Drop the transactional tables of a database that Spark is about to drop: Spark can not drop them itself."""
    for info in names.tables(statement.database, "*") or []:
        if is_transactional(info.table):
            drop_table(session, info, DropTable([info.database, info.name]))


def _named(client: Client, info: AcidTableInfo, spec: Spec) -> list[str]:
    """Return the names of the partitions that have some values. WrongStatement where there is none."""
    found = [_name(info, each) for each in _chosen(client, info, [(name, "=", value) for name, value in spec.items()])]
    if not found:
        raise WrongStatement(f"{info.full_name} has no partition {partition_text(spec)}")
    return found


def _name(info: AcidTableInfo, partition: Partition) -> str:
    return make_partition_name(info.partition_columns.names, partition.values)


def _chosen(client: Client, info: AcidTableInfo, terms: Sequence[tuple[str, str, str | None]]) -> list[Partition]:
    """Return the partitions for which all of some comparisons hold. WrongStatement."""
    keys = info.partition_columns.names
    if unknown := [name for name, _, _ in terms if name not in keys]:
        raise WrongStatement(f"{info.full_name} is not partitioned by {', '.join(unknown)}")
    if all(operator == "=" for _, operator, _ in terms):
        whole = {name: value for name, _, value in terms}
        if len(whole) == len(keys):
            wanted = info.partition_name(partition_text({key: whole[key] for key in keys}))
            return [
                each for each in client.get_partitions(info.database, info.name, -1) if info.partition_name(_name(info, each)) == wanted
            ]
    texts = [f"{name} {operator} {_constant(info, name, value)}" for name, operator, value in terms]
    found: list[Partition] = client.get_partitions_by_filter(info.database, info.name, " and ".join(texts), -1)
    return found


def _constant(info: AcidTableInfo, name: str, value: str | None) -> str:
    if value is None:
        raise WrongStatement(f"{info.full_name}: partitions are not compared with NULL")
    if info.kinds[name] in ("tinyint", "smallint", "int", "bigint"):
        return value
    quote = '"' if "'" in value else "'"
    return f"{quote}{value}{quote}"


def _rename(client: Client, names: Names, info: AcidTableInfo, statement: Rename) -> None:
    place = names.place(statement.to)
    if place is None:
        raise WrongStatement(f"{info.full_name} can not be renamed to {'.'.join(statement.to)}, which is in another catalog")
    new = _copy(info)
    new.dbName, new.tableName = place if len(statement.to) > 1 else (info.database, place[1])
    client.alter_table(info.database, info.name, new)


def _copy(info: AcidTableInfo) -> Table:
    return deepcopy(info.table)


def _add_columns(client: Client, _: Names, info: AcidTableInfo, statement: AddColumns) -> None:
    new = _copy(info)
    given = [FieldSchema(name=each.name, type=each.kind, comment=each.comment) for each in statement.columns]
    if statement.replace:
        _check_replaced(info, statement.columns)
        new.sd.cols = given
    else:
        if twice := [each.name for each in given if each.name in info.schema.names]:
            raise WrongStatement(f"{info.full_name} has the column {', '.join(twice)} already")
        new.sd.cols = [*new.sd.cols, *given]
    client.alter_table_with_environment_context(info.database, info.name, new, _CASCADES)


def _check_replaced(info: AcidTableInfo, columns: Sequence[Column]) -> None:
    """Refuse an alter after which the values of one column would be read as another's: columns of ORC files are matched by position."""
    old = info.columns.names
    if [each.name for each in columns[: len(old)]] != old:
        raise WrongStatement(
            f"{info.full_name}: columns can not be removed or moved, as files hold their values by position. REPLACE COLUMNS may give "
            f"other types and further columns behind {', '.join(old)}; CREATE TABLE .. AS makes a table of some columns"
        )


def _change_column(client: Client, _: Names, info: AcidTableInfo, statement: ChangeColumn) -> None:
    new = _copy(info)
    place = next((number for number, each in enumerate(new.sd.cols) if each.name.lower() == statement.name), None)
    if place is None:
        keys = " (a partition column can not be changed)" if statement.name in info.partition_columns.names else ""
        raise WrongStatement(
            f"{info.full_name} has no column {statement.name} that could be changed{keys}; its columns are {', '.join(info.columns.names)}"
        )
    if statement.constraints:
        raise WrongStatement(f"{info.full_name}: write the constraint of {statement.name} as ALTER TABLE .. ADD CONSTRAINT")
    column = new.sd.cols[place]
    before = "" if place == 0 else new.sd.cols[place - 1].name.lower()
    if statement.after not in (None, before):
        raise WrongStatement(f"{info.full_name}: {statement.name} can not be moved, since files hold the values of columns by position")
    changes = (statement.to or column.name) != column.name or (statement.kind or column.type) != column.type
    if changes and column.name.lower() in info.bucket_columns:
        raise WrongStatement(f"{info.full_name} is bucketed by {column.name}: the name and type of a bucket column can not be changed")
    if statement.to not in (None, column.name) and statement.to in info.schema.names:
        raise WrongStatement(f"{info.full_name} has a column {statement.to} already")
    column.name = statement.to or column.name
    column.type = statement.kind or column.type
    column.comment = column.comment if statement.comment is None else statement.comment
    client.alter_table_with_environment_context(info.database, info.name, new, _CASCADES)


def _set_properties(client: Client, _: Names, info: AcidTableInfo, statement: SetProperties) -> None:
    new = _copy(info)
    if (statement.properties.get("transactional", "true") or "false").lower() != "true":
        raise WrongStatement(f"{info.full_name} stays transactional: metastore.spark.migration.to_plain writes its rows into a plain table")
    given = {name: value for name, value in statement.properties.items() if value is not None}
    new.parameters = {name: value for name, value in {**new.parameters, **given}.items() if statement.properties.get(name, "") is not None}
    client.alter_table(info.database, info.name, new)


def _add_partitions(client: Client, info: AcidTableInfo, statement: AddPartitions) -> None:
    keys = info.partition_columns.names
    for spec, location in statement.partitions:
        if sorted(spec) != sorted(keys):
            raise WrongStatement(f"{info.full_name} is partitioned by {', '.join(keys) or 'nothing'}: give a value for each")
        name = info.new_partition_name(partition_text({key: spec[key] for key in keys}))
        there = client.get_partitions_by_names(info.database, info.name, [name])
        if there and statement.if_not_exists:
            continue
        if there:
            raise WrongStatement(f"{info.full_name} has the partition {name} already: ADD IF NOT EXISTS passes over it")
        if location is None:
            found_or_added(client, info.table, [name])
            continue
        sd = deepcopy(info.table.sd)
        sd.location = location
        new = Partition(values=partition_values(name), dbName=info.database, tableName=info.name, sd=sd, parameters={})
        client.add_partitions_req(
            idl.AddPartitionsRequest(dbName=info.database, tblName=info.name, parts=[new], ifNotExists=False, needResult=False)
        )


def _drop_partitions(client: Client, _: Names, info: AcidTableInfo, statement: DropPartitions) -> None:
    chosen: dict[str, None] = {}
    for terms in statement.filters:
        found = [_name(info, each) for each in _chosen(client, info, terms)]
        if not found and not statement.if_exists:
            said = ", ".join(f"{name} {operator} {value}" for name, operator, value in terms)
            raise WrongStatement(f"{info.full_name} has no partition with {said}: DROP IF EXISTS passes over it")
        chosen.update(dict.fromkeys(found))
    if chosen:
        request = idl.DropPartitionsRequest(
            dbName=info.database,
            tblName=info.name,
            parts=idl.RequestPartsSpec(names=list(chosen)),
            deleteData=True,
            ifExists=statement.if_exists,
            needResult=False,
        )
        client.drop_partitions_req(request)


def _rename_partition(client: Client, _: Names, info: AcidTableInfo, statement: RenamePartition) -> None:
    keys = info.partition_columns.names
    old, new = ([spec.get(key) for key in keys] for spec in (statement.partition, statement.to))
    if None in old or None in new:
        raise WrongStatement(f"{info.full_name} is partitioned by {', '.join(keys)}: give a value for each, before and behind RENAME TO")
    (name,) = _named(client, info, statement.partition)
    (partition,) = client.get_partitions_by_names(info.database, info.name, [name])
    values = partition.values
    partition.values = partition_values(info.new_partition_name(partition_text({key: statement.to[key] for key in keys})))
    client.rename_partition(info.database, info.name, values, partition)


def _add_constraint(client: Client, _: Names, info: AcidTableInfo, statement: AddConstraint) -> None:
    each = statement.constraint
    if each.enable and each.kind in ("PRIMARY", "UNIQUE", "FOREIGN"):
        raise WrongStatement(f"{info.full_name}: a key can not be enforced: write DISABLE NOVALIDATE behind it")
    for field, listed in constraints_of(info.database, info.name, [each]).items():
        method, request, argument = _REQUESTS[field]
        client.call(method, request(**{argument: listed}))


_REQUESTS: dict[str, tuple[str, Callable[..., object], str]] = {
    "primaryKeys": ("add_primary_key", idl.AddPrimaryKeyRequest, "primaryKeyCols"),
    "uniqueConstraints": ("add_unique_constraint", idl.AddUniqueConstraintRequest, "uniqueConstraintCols"),
    "foreignKeys": ("add_foreign_key", idl.AddForeignKeyRequest, "foreignKeyCols"),
    "notNullConstraints": ("add_not_null_constraint", idl.AddNotNullConstraintRequest, "notNullConstraintCols"),
    "defaultConstraints": ("add_default_constraint", idl.AddDefaultConstraintRequest, "defaultConstraintCols"),
    "checkConstraints": ("add_check_constraint", idl.AddCheckConstraintRequest, "checkConstraintCols"),
}


def _drop_constraint(client: Client, _: Names, info: AcidTableInfo, statement: DropConstraint) -> None:
    client.drop_constraint(
        idl.DropConstraintRequest(dbname=info.database, tablename=info.name, constraintname=statement.name, catName="hive")
    )


_ACTIONS: dict[type, Callable[[Client, Names, AcidTableInfo, Any], None]] = {
    Rename: _rename,
    AddColumns: _add_columns,
    ChangeColumn: _change_column,
    SetProperties: _set_properties,
    DropPartitions: _drop_partitions,
    RenamePartition: _rename_partition,
    AddConstraint: _add_constraint,
    DropConstraint: _drop_constraint,
}
