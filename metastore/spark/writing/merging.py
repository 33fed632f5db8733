"""Merge rows into a transactional table: the clauses, and how matched and other rows become events of one statement."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial, reduce
from typing import NamedTuple

from pyspark import StorageLevel
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the name that everyone gives it

from metastore.idl import DataOperationType
from metastore.spark.reading.reading import FOLDER, row_id_name
from metastore.spark.session.catalog import AcidTableInfo
from metastore.spark.transaction.spark_transaction import SparkTransaction
from metastore.spark.writing import writing
from metastore.spark.writing.clauses import (
    Default,
    Expression,
    all_columns,
    chosen,
    column,
    field,
    first_that_holds,
    fitting,
    inserted_columns,
    judged_by_spark,
    quoted,
    set_columns,
    wholly_set,
)
from metastore.spark.writing.constraints import default
from metastore.spark.writing.faithful import check_kept
from metastore.spark.writing.statements import Statement

SOURCE = "source"
"""The name by which expressions may call the new rows, beside their alias."""
_SOURCE = re.compile(rf"\b{SOURCE}\b", re.IGNORECASE)
ALL = "*"
"""The sign for all columns in a clause."""
SOURCE_ROW, ACTION = "__metastore_source_row", "__metastore_action"


Counts = dict[str, int]
Run = Callable[[Callable[[SparkTransaction, AcidTableInfo], Counts]], Counts]


class SeveralMatches(Exception):
    """A row of the table is matched by several rows of the source: which of them should win is undefined."""


@dataclass(frozen=True)
class Clause:
    """One clause: the change of the rows for which `condition` holds and no earlier clause did. `values` None: a delete."""

    condition: Expression | None
    values: Mapping[str, Expression] | None = None


class _Target(NamedTuple):
    """The target of a merge: the table, its rows with their ids and folders, and the values of columns that an insert does not give."""

    info: AcidTableInfo
    rows: DataFrame
    default: Default


class _Plan(NamedTuple):
    """The plan of a merge: one row for each match, computed once; the columns that each update gives as a whole; the rows to insert."""

    matched: DataFrame
    given: set[str]
    inserted: DataFrame | None


class MergeBuilder:
    """A merge by clauses, which are tried in the order in which they are given; `execute` does the merge in one transaction."""

    def __init__(self, run: Run, source: DataFrame, condition: Expression, alias: str) -> None:
        """`run` does an operation on the table in a transaction."""
        self._run = run
        self._source = source
        self._condition = condition
        self._alias = alias
        self._matched: list[Clause] = []
        self._missing: list[Clause] = []
        self._left: list[Clause] = []

    def whenMatchedUpdate(  # noqa: N802  # as DeltaTable names it
        self,
        condition: Expression | None = None,
        set: Mapping[str, Expression] | None = None,  # noqa: A002  # see above
    ) -> MergeBuilder:
        """Change columns of rows that are matched."""
        self._matched.append(Clause(condition, dict(set or {})))
        return self

    def whenMatchedUpdateAll(self, condition: Expression | None = None) -> MergeBuilder:  # noqa: N802
        """Give rows that are matched the source's values in all columns; a row with another partition or bucket is moved there."""
        self._matched.append(Clause(condition, {ALL: ALL}))
        return self

    def whenMatchedDelete(self, condition: Expression | None = None) -> MergeBuilder:  # noqa: N802
        """Remove rows that are matched."""
        self._matched.append(Clause(condition))
        return self

    def whenNotMatchedInsert(  # noqa: N802
        self, condition: Expression | None = None, values: Mapping[str, Expression] | None = None
    ) -> MergeBuilder:
        """Insert a row for each row of the source that matches none; columns that are not given have their defaults, or are null."""
        self._missing.append(Clause(condition, dict(values or {})))
        return self

    def whenNotMatchedInsertAll(self, condition: Expression | None = None) -> MergeBuilder:  # noqa: N802
        """Insert each row of the source that matches none unchanged."""
        self._missing.append(Clause(condition, {ALL: ALL}))
        return self

    def whenNotMatchedBySourceUpdate(  # noqa: N802  # as DeltaTable names it
        self,
        condition: Expression | None = None,
        set: Mapping[str, Expression] | None = None,  # noqa: A002  # see above
    ) -> MergeBuilder:
        """Change columns of rows of the table that no row of the source matches."""
        self._left.append(Clause(condition, dict(set or {})))
        return self

    def whenNotMatchedBySourceDelete(self, condition: Expression | None = None) -> MergeBuilder:  # noqa: N802
        """Remove rows of the table that no row of the source matches."""
        self._left.append(Clause(condition))
        return self

    def execute(self) -> dict[str, int]:
        """Do the merge; return the numbers of rows that were updated, deleted and inserted.

        SeveralMatches, CanNotChange, WrongColumns, DoesNotFit, ConstraintViolated, CanNotKeepConstraint.
        """
        return self._run(self._execute)

    def _execute(self, transaction: SparkTransaction, info: AcidTableInfo) -> dict[str, int]:
        with judged_by_spark(transaction.spark, self._expressions()):
            number = writing.lock_to_change(transaction, info, *self._operations())
            with Statement(transaction, info, number) as statement:
                return self._done(transaction, info, statement)

    def _done(self, transaction: SparkTransaction, info: AcidTableInfo, statement: Statement) -> dict[str, int]:
        new = self._source.withColumn(SOURCE_ROW, F.monotonically_increasing_id()).persist(StorageLevel.MEMORY_AND_DISK)
        try:
            rows = transaction.rows(info, row_id=True, folder=True)
            plan = self._planned(_Target(info, rows, partial(default, transaction.spark, info, statement.constraints)), new)
            try:
                return self._write(transaction, info, plan, statement)
            finally:
                plan.matched.unpersist()
        finally:
            new.unpersist()

    def _operations(self) -> list[int]:
        """Return the operations (DataOperationType) of the clauses. A merge without any does nothing, and needs the same as an update."""
        changes = {DataOperationType.DELETE if clause.values is None else DataOperationType.UPDATE for clause in self._changes}
        return sorted(changes | ({DataOperationType.INSERT} if self._missing else set())) or [DataOperationType.UPDATE]

    def _planned(self, target: _Target, new: DataFrame) -> _Plan:
        """Return the plan of the merge.

        Expressions name the source by its own alias (for a view its name) or by `source`. The likelier of the two is tried first: PySpark
        writes each failure to its log.
        """
        own = _alias_of(self._source) or SOURCE
        if own != SOURCE and any(_SOURCE.search(str(each)) for each in self._expressions()):
            with suppress(AnalysisException):
                return self._planned_as(SOURCE, target, new)
        try:
            return self._planned_as(own, target, new)
        except AnalysisException:
            with suppress(AnalysisException):  # Spark shortens the text of a long column, which may have hidden the word
                return self._planned_as(SOURCE, target, new)
            raise

    def _planned_as(self, source: str, target: _Target, new: DataFrame) -> _Plan:
        info = target.info
        joined = target.rows.alias(self._alias).join(new.alias(source), column(self._condition), "inner")
        sets = [self._set(target, clause, source) for clause in self._changes]
        wholly = [
            set(values) if ALL in clause.values else wholly_set(info, clause.values, self._alias)
            for values, clause in zip(sets, self._changes, strict=True)
            if clause.values is not None
        ]
        given = set(info.columns.names).intersection(*wholly)
        count = len(self._matched)
        decided = self._decided(info, joined, field(source, SOURCE_ROW), self._matched, sets[:count])
        if self._left:
            left = target.rows.alias(self._alias).join(new.alias(source), column(self._condition), "left_anti").alias(self._alias)
            of_left = self._decided(info, left, F.lit(None).cast("bigint"), self._left, sets[count:])
            number = F.col(ACTION)
            decided = decided.unionByName(of_left.withColumn(ACTION, F.when(number >= 0, number + count).otherwise(number)))
        matched = decided.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            return _Plan(matched, given, self._inserted(target, matched, new, source) if self._missing else None)
        except BaseException:
            matched.unpersist()
            raise

    @property
    def _changes(self) -> list[Clause]:
        """The clauses that change rows of the table; their places are the numbers of the actions."""
        return [*self._matched, *self._left]

    def _decided(
        self, info: AcidTableInfo, rows: DataFrame, source_row: Column, clauses: Sequence[Clause], sets: Sequence[dict[str, Column]]
    ) -> DataFrame:
        """Return one row for each given row, such as a match: the action, the row's id and partition, and its new values."""
        action = first_that_holds([clause.condition for clause in clauses])
        row_id = row_id_name(info)
        values = [
            chosen(action, [given.get(name) for given in sets], field(self._alias, name), fitting(info, name, rows)).alias(name)
            for name in info.schema.names
        ]
        return rows.select(
            action.alias(ACTION),
            source_row.alias(SOURCE_ROW),
            field(self._alias, row_id).alias(row_id),
            field(self._alias, FOLDER).alias(FOLDER),
            *values,
        )

    def _set(self, target: _Target, clause: Clause, source: str) -> dict[str, Column]:
        """Return the columns that a clause sets in rows of the table."""
        if clause.values is None:
            return {}
        if ALL in clause.values:
            return all_columns(target.info, self._source, source, self._expressions(), insert=False)
        return set_columns(target.info, clause.values, self._alias, target.default)

    def _inserted(self, target: _Target, matched: DataFrame, new: DataFrame, source: str) -> DataFrame:
        """Return the rows that are to be inserted."""
        info = target.info
        rest = new.join(matched.select(SOURCE_ROW).distinct(), SOURCE_ROW, "left_anti").alias(source)
        action = first_that_holds([clause.condition for clause in self._missing])
        gives = [
            all_columns(info, self._source, source, self._expressions(), insert=True)
            if ALL in (clause.values or {})
            else inserted_columns(info, clause.values or {}, self._alias, target.default)
            for clause in self._missing
        ]
        values = [
            chosen(action, [given.get(name) for given in gives], F.lit(None), fitting(info, name, rest)).alias(name)
            for name in info.schema.names
        ]
        return rest.where(action >= 0).select(*values)

    def _expressions(self) -> list[Expression]:
        """Return all expressions of the merge."""
        clauses = [*self._changes, *self._missing]
        conditions = [clause.condition for clause in clauses if clause.condition is not None]
        return [self._condition, *conditions, *(value for clause in clauses for value in (clause.values or {}).values())]

    def _write(self, transaction: SparkTransaction, info: AcidTableInfo, plan: _Plan, statement: Statement) -> dict[str, int]:
        matched = plan.matched
        _check_single(info, matched)
        updates = [number for number, clause in enumerate(self._changes) if clause.values is not None]
        counts = {row[ACTION]: row["count"] for row in matched.groupBy(ACTION).count().collect()}
        updated = sum(count for number, count in counts.items() if number in updates)
        deleted = sum(count for number, count in counts.items() if number >= 0) - updated
        if updated:
            check_kept(transaction, info, matched.where(F.col(ACTION).isin(updates)), plan.given)
        inserted = plan.inserted.count() if plan.inserted is not None else 0
        fresh = [matched.where(F.col(ACTION).isin(updates)).select(*quoted(info.schema.names))] if updated else []
        fresh += [plan.inserted] if plan.inserted is not None and inserted else []
        if fresh:
            statement.insert(reduce(lambda left, right: left.unionByName(right), fresh))
        if updated or deleted:
            statement.delete(matched.where(F.col(ACTION) >= 0).select(row_id_name(info), FOLDER), DataOperationType.UPDATE)
        statement.place()
        return {"updated": updated, "deleted": deleted, "inserted": inserted}


def _check_single(info: AcidTableInfo, matched: DataFrame) -> None:
    twice = matched.where(F.col(ACTION) >= 0).groupBy(row_id_name(info), FOLDER).count().where("count > 1").limit(1).collect()
    if twice:
        row = twice[0].asDict(recursive=True)
        raise SeveralMatches(f"{info.full_name}: several rows of the source match the row {row}; make the source unique")


def _alias_of(source: DataFrame) -> str | None:
    """Return the one alias of the source's columns, also below a filter or a projection; None without an alias, or with several."""
    plan = source._jdf.queryExecution().analyzed()  # noqa: SLF001 # PySpark has no public name for an alias
    if plan.getClass().getSimpleName() == "SubqueryAlias":
        return str(plan.alias())
    columns = plan.output()
    qualifiers = [columns.apply(place).qualifier() for place in range(columns.size())]
    names = {str(qualifier.last()) for qualifier in qualifiers if not qualifier.isEmpty()}
    return names.pop() if len(names) == 1 else None
