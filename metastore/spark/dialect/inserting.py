"""Run INSERT into transactional tables: values, queries, several targets of one FROM; all of a statement is one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the name that everyone gives it

from metastore.acid import partitions
from metastore.acid.values.constraints import Constraints
from metastore.idl import DataOperationType, LockType
from metastore.rules.values.partition_names import DEFAULT_PARTITION, make_partition_name
from metastore.spark.dialect.jvm import Doors, Node, items, kind, member, names_of, option, pairs, span
from metastore.spark.dialect.relations import target
from metastore.spark.dialect.session import Names, SqlSession
from metastore.spark.dialect.sources import Edit, Sources, edited
from metastore.spark.grammar.tokens import WrongStatement
from metastore.spark.session.catalog import AcidTableInfo, WrongColumns
from metastore.spark.table import AcidTable
from metastore.spark.transaction.readers import give_way
from metastore.spark.transaction.spark_transaction import SparkTransaction
from metastore.spark.writing.constraints import spelled_for_spark

_WHERE = "OverwriteByExpression"
INSERTS = ("InsertIntoStatement", _WHERE)


def insert(session: SqlSession, names: Names, text: str, plan: Node) -> DataFrame | None:
    """Run an INSERT; None for one into other tables. WrongStatement, WrongColumns, and the errors of `AcidTable.insert`."""
    into = [names.transactional(found[0]) if (found := target(each)) is not None else None for each in inserts(plan)]
    if all(info is None for info in into):
        return None
    if any(info is None for info in into):
        raise WrongStatement("transactional and other tables are not written together: write a statement for each")
    tables = [info for info in into if info is not None]
    text = _with_defaults(session, names, text, plan, tables)
    sources = Sources(session, names)
    text = sources.replaced(text, session.doors.parse(text))
    with session.writing(steps=sum(1 if replaces_where(each) is None else 2 for each in inserts(plan))) as transaction:
        _lock(session, transaction, [(each, info) for each, info in zip(inserts(plan), tables, strict=True)], sources.tables)
        transaction.pin(sources.tables)
        with sources.shown(transaction.rows):
            plan = session.doors.parse(text)
            for each, info in zip(inserts(plan), tables, strict=True):
                child = each.query()
                rows = session.doors.frame(session.doors.inner_query(plan, child) if kind(plan) == "UnresolvedWith" else child)
                _insert(session.doors, transaction, each, info, rows)
    return session.nothing()


def inserts(plan: Node) -> list[Node]:
    """Return the inserts of a statement: itself, or several of one FROM, perhaps below a WITH."""
    inner = plan.child() if kind(plan) == "UnresolvedWith" else plan
    return items(inner.children()) if kind(inner) == "Union" else [inner]


def is_insert(plan: Node) -> bool:
    """Return whether a statement inserts."""
    return all(kind(each) in INSERTS for each in inserts(plan))


def replaces_where(node: Node) -> Node | None:
    """Return the condition of an INSERT .. REPLACE WHERE on rows to delete first, None for any other INSERT. WrongStatement for missing
    names.
    """
    if member(node, "withSchemaEvolution"):
        raise WrongStatement("WITH SCHEMA EVOLUTION is not supported on transactional tables: ALTER TABLE .. ADD COLUMNS first")
    if kind(node) == _WHERE:
        return node.deleteExpr()
    found = member(node, "replaceCriteriaOpt")  # in later releases of Spark
    criteria = None if found is None else option(found)
    if criteria is not None and kind(criteria) != "InsertReplaceWhere":
        raise WrongStatement("INSERT .. REPLACE needs a condition on transactional tables: write REPLACE WHERE, or a MERGE")
    return None if criteria is None else criteria.cond()


def _lock(
    session: SqlSession, transaction: SparkTransaction, into: Sequence[tuple[Node, AcidTableInfo]], sources: Sequence[AcidTableInfo]
) -> None:
    wanted: list[tuple[AcidTableInfo, int, Sequence[int]]] = []
    for node, info in into:
        if replaces_where(node) is not None:
            wanted.append((info, LockType.EXCL_WRITE, [DataOperationType.DELETE, DataOperationType.INSERT]))
        elif node.overwrite():
            give_way(session.spark, session.uri, info)
            wanted.append((info, LockType.EXCLUSIVE, [DataOperationType.UPDATE]))
        else:
            wanted.append((info, LockType.SHARED_READ, [DataOperationType.INSERT]))
    wanted += [(info, LockType.SHARED_READ, [DataOperationType.SELECT]) for info in sources]
    transaction.lock_all(wanted)


def _insert(doors: Doors, transaction: SparkTransaction, node: Node, info: AcidTableInfo, rows: DataFrame) -> None:
    table = AcidTable.within(transaction, info.database, info.name)
    if (gone := replaces_where(node)) is not None:
        by_name = node.isByName() if kind(node) == _WHERE else node.byName()
        table.delete(doors.column(gone))
        table.insert(rows if by_name else _by_position(info, rows, info.schema.names))
        return
    given = {str(key).lower(): value for key, value in pairs(node.partitionSpec())}
    if unknown := [key for key in given if key not in info.partition_columns.names]:
        raise WrongColumns(f"{info.full_name} is not partitioned by {', '.join(unknown)}")
    static = {key: option(value) for key, value in given.items() if value.isDefined()}
    if not node.byName():
        named = [name.lower() for name in names_of(node.userSpecifiedCols())]
        rows = _by_position(info, rows, named or [name for name in info.schema.names if name not in static])
    for key, value in static.items():
        rows = rows.withColumn(key, F.lit(value))
    if not node.overwrite():
        table.insert(rows)
        return
    whole = _partition(info, static) if info.partition_columns.names and len(static) == len(info.partition_columns) else None
    if (
        whole is not None
        and node.ifPartitionNotExists()
        and transaction.txn.call(lambda client: partitions.found(client, info.table, [whole]))
    ):
        return
    table.insert_overwrite(rows, partitions=[] if whole is None else [whole])


def _by_position(info: AcidTableInfo, rows: DataFrame, names: Sequence[str]) -> DataFrame:
    if unknown := [name for name in names if name not in info.schema.names]:
        raise WrongColumns(f"{info.full_name} has no column {', '.join(unknown)}; its columns are {', '.join(info.schema.names)}")
    if len(names) != len(rows.columns):
        raise WrongColumns(
            f"{info.full_name}: {len(rows.columns)} values are given for {len(names)} columns, {', '.join(names)}; name those given, "
            "as in INSERT INTO t (a, b), or give all"
        )
    return rows.toDF(*names)


def _partition(info: AcidTableInfo, values: Mapping[str, str | None]) -> str:
    """Return Hive's name of the partition of static values."""
    keys = info.partition_columns.names
    return info.partition_name(make_partition_name(keys, [DEFAULT_PARTITION if values[key] is None else str(values[key]) for key in keys]))


def _with_defaults(session: SqlSession, names: Names, text: str, plan: Node, tables: Sequence[AcidTableInfo]) -> str:
    """Return a text in which each word DEFAULT among VALUES is replaced by the default of its column, or null."""
    edits: list[Edit] = []
    for node, info in zip(inserts(plan), tables, strict=True):
        if kind(node) == _WHERE or kind(node.query()) != "UnresolvedInlineTable":
            continue
        static = {str(key).lower() for key, value in pairs(node.partitionSpec()) if value.isDefined()}
        columns = [name.lower() for name in names_of(node.userSpecifiedCols())] or [
            name for name in info.schema.names if name not in static
        ]
        places = [
            (column, cell)
            for row in items(node.query().rows())
            for column, cell in zip(columns, items(row), strict=False)
            if is_default(cell)
        ]
        if places:
            defaults = Constraints.read(names.client, info.table).defaults
            edits += [
                (*span(cell), f"({spelled_for_spark(session.spark, defaults[column].text)})" if column in defaults else "NULL")
                for column, cell in places
            ]
    return edited(text, edits)


def is_default(expression: Node) -> bool:
    """Return whether an expression is the word DEFAULT."""
    return kind(expression) == "UnresolvedAttribute" and [name.upper() for name in names_of(expression.nameParts())] == ["DEFAULT"]
