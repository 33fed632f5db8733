"""Run UPDATE, DELETE and MERGE on transactional tables by the parts that Spark's parser has made of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import Column, DataFrame

from metastore.idl import DataOperationType, LockType
from metastore.spark.dialect.inserting import is_default
from metastore.spark.dialect.jvm import Doors, Node, items, kind, member, names_of, option
from metastore.spark.dialect.relations import target
from metastore.spark.dialect.session import Names, SqlSession
from metastore.spark.dialect.sources import Sources, in_quotes
from metastore.spark.grammar.tokens import WrongStatement
from metastore.spark.session.catalog import AcidTableInfo
from metastore.spark.table import AcidTable
from metastore.spark.transaction.spark_transaction import CanNotChange, SparkTransaction
from metastore.spark.writing.clauses import Expression
from metastore.spark.writing.merging import MergeBuilder

COUNTS = "num_affected_rows bigint, num_updated_rows bigint, num_deleted_rows bigint, num_inserted_rows bigint"
_OPERATIONS = {"UpdateTable": [DataOperationType.UPDATE], "DeleteFromTable": [DataOperationType.DELETE]}


def change(session: SqlSession, names: Names, text: str, plan: Node) -> DataFrame | None:
    """Run a change and return the numbers of changed rows; None for a change of another table. The errors of AcidTable's operations."""
    found = target(plan)
    info = None if found is None else names.transactional(found[0])
    if found is None or info is None:
        return None
    if member(plan, "withSchemaEvolution"):
        raise WrongStatement("WITH SCHEMA EVOLUTION is not supported on transactional tables: ALTER TABLE .. ADD COLUMNS first")
    with _opened(session, names, text, plan, info) as (transaction, shown):
        table = AcidTable.within(transaction, info.database, info.name).alias(found[1])
        if kind(shown) == "MergeIntoTable":
            return _merge(session, table, shown)
        if kind(shown) == "DeleteFromTable":
            count = table.delete(condition_of(session.doors, shown))
        else:
            count = table.update(condition_of(session.doors, shown), _assigned(session.doors, shown.assignments()))
    return session.spark.createDataFrame([(count,)], "num_affected_rows bigint")


@contextmanager
def _opened(session: SqlSession, names: Names, text: str, plan: Node, info: AcidTableInfo) -> Iterator[tuple[SparkTransaction, Node]]:
    """Lock all tables of a change together and make views of the ones that it reads. Yield the transaction, and the plan over the views."""
    if info.is_insert_only:
        raise CanNotChange(f"{info.full_name} is insert-only: rows can be added and overwritten, not updated, deleted or merged")
    sources = Sources(session, names)
    text = sources.replaced(text, plan)
    with session.writing() as transaction:
        reads = [(each, LockType.SHARED_READ, [DataOperationType.SELECT]) for each in sources.tables if each.full_name != info.full_name]
        transaction.lock_all([(info, LockType.EXCL_WRITE, _OPERATIONS.get(kind(plan)) or _of_merge(plan)), *reads])
        transaction.pin([info, *(each for each in sources.tables if each.full_name != info.full_name)])
        with sources.shown(transaction.rows):
            yield transaction, session.doors.parse(text)


def _of_merge(plan: Node) -> list[int]:
    """Return the operations (DataOperationType) of a merge's clauses."""
    matched = [kind(action) for action in [*items(plan.matchedActions()), *items(plan.notMatchedBySourceActions())]]
    out = {DataOperationType.DELETE if action == "DeleteAction" else DataOperationType.UPDATE for action in matched}
    return sorted(out | ({DataOperationType.INSERT} if plan.notMatchedActions().size() else set())) or [DataOperationType.UPDATE]


def condition_of(doors: Doors, plan: Node) -> Column | None:
    """Return the condition of an UPDATE or DELETE, None where it changes all rows."""
    expression = plan.condition() if kind(plan) == "DeleteFromTable" else option(plan.condition())
    is_all = expression is None or (kind(expression) == "Literal" and str(expression.sql()).lower() == "true")
    return None if is_all else doors.column(expression)


def _assigned(doors: Doors, assignments: Node) -> dict[str, Expression]:
    """Return the new values of columns, by their names in back quotes."""
    out: dict[str, Expression] = {}
    for each in items(assignments):
        name = ".".join(in_quotes(part) for part in names_of(each.key().nameParts()))
        out[name] = "DEFAULT" if is_default(each.value()) else doors.column(each.value())
    return out


def _merge(session: SqlSession, table: AcidTable, plan: Node) -> DataFrame:
    doors = session.doors
    merge = table.merge(doors.frame(plan.sourceTable()), doors.column(plan.mergeCondition()))
    for action in items(plan.matchedActions()):
        merge = _matched(doors, merge, action)
    for action in items(plan.notMatchedActions()):
        condition = _optional(doors, action)
        if kind(action) == "InsertStarAction":
            merge = merge.whenNotMatchedInsertAll(condition)
        else:
            merge = merge.whenNotMatchedInsert(condition, _assigned(doors, action.assignments()))
    for action in items(plan.notMatchedBySourceActions()):
        condition = _optional(doors, action)
        if kind(action) == "DeleteAction":
            merge = merge.whenNotMatchedBySourceDelete(condition)
        else:
            merge = merge.whenNotMatchedBySourceUpdate(condition, _assigned(doors, action.assignments()))
    counts = merge.execute()
    row = (sum(counts.values()), counts["updated"], counts["deleted"], counts["inserted"])
    return session.spark.createDataFrame([row], COUNTS)


def _matched(doors: Doors, merge: MergeBuilder, action: Node) -> MergeBuilder:
    condition = _optional(doors, action)
    if kind(action) == "DeleteAction":
        return merge.whenMatchedDelete(condition)
    if kind(action) == "UpdateStarAction":
        return merge.whenMatchedUpdateAll(condition)
    return merge.whenMatchedUpdate(condition, _assigned(doors, action.assignments()))


def _optional(doors: Doors, action: Node) -> Column | None:
    condition = option(action.condition())
    return None if condition is None else doors.column(condition)
