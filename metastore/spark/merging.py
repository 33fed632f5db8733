"""Merge rows into a transactional table: the clauses, and how matched and other rows become events of one statement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the name that everyone gives it

from metastore.idl import DataOperationType
from metastore.spark import writing
from metastore.spark.assignment import type_of
from metastore.spark.catalog import AcidTableInfo
from metastore.spark.faithful import check_kept
from metastore.spark.reading import ROW_ID
from metastore.spark.work import Work

if TYPE_CHECKING:
    from metastore.spark.table import AcidTable, Expression

TARGET, SOURCE = "target", "source"
"""The names by which conditions may call the table and the new rows unless they have aliases of their own."""
SOURCE_ROW, ACTION = "__source_row", "__action"


class SeveralMatches(Exception):
    """A row of the table is matched by several rows of the source: which of them should win is not said."""


@dataclass(frozen=True)
class Clause:
    """What happens to the rows for which `condition` holds and no earlier clause did. `values` None: a delete."""

    condition: Expression | None
    values: Mapping[str, Expression] | None = field(default=None)


class MergeBuilder:
    """Clauses are looked at in the order in which they are given; `execute` does the merge in one transaction."""

    def __init__(self, table: AcidTable, source: DataFrame, condition: Expression, alias: str | None) -> None:
        self._table = table
        self._source = source
        self._condition = condition
        self._alias = alias or TARGET
        self._matched: list[Clause] = []
        self._missing: list[Clause] = []

    def whenMatchedUpdate(  # noqa: N802  # as DeltaTable names it
        self, condition: Expression | None = None, set: Mapping[str, Expression] | None = None  # noqa: A002  # see above
    ) -> MergeBuilder:
        """Change columns of rows that are matched."""
        self._matched.append(Clause(condition, dict(set or {})))
        return self

    def whenMatchedUpdateAll(self, condition: Expression | None = None) -> MergeBuilder:  # noqa: N802
        """Give rows that are matched the source's values in all columns that it has, the table's own partition and bucket columns aside."""
        self._matched.append(Clause(condition, {"*": "*"}))
        return self

    def whenMatchedDelete(self, condition: Expression | None = None) -> MergeBuilder:  # noqa: N802
        """Remove rows that are matched."""
        self._matched.append(Clause(condition))
        return self

    def whenNotMatchedInsert(  # noqa: N802
        self, condition: Expression | None = None, values: Mapping[str, Expression] | None = None
    ) -> MergeBuilder:
        """Insert a row for each row of the source that matches none."""
        self._missing.append(Clause(condition, dict(values or {})))
        return self

    def whenNotMatchedInsertAll(self, condition: Expression | None = None) -> MergeBuilder:  # noqa: N802
        """Insert each row of the source that matches none as it is."""
        self._missing.append(Clause(condition, {"*": "*"}))
        return self

    def execute(self) -> dict[str, int]:
        """Do it; return how many rows were updated, deleted and inserted. SeveralMatches, CanNotChange, WrongColumns."""
        return self._table._run(self._execute)  # noqa: SLF001  # the builder is a part of the table

    def _execute(self, work: Work, info: AcidTableInfo) -> dict[str, int]:
        from metastore.spark.table import lock_to_change

        lock_to_change(work, info)
        source = _alias_of(self._source)
        new = self._source.withColumn(SOURCE_ROW, F.monotonically_increasing_id()).persist(StorageLevel.MEMORY_AND_DISK)
        try:
            joined = work.rows(info, row_id=True).alias(self._alias).join(new.alias(source), _column(self._condition), "inner")
            matched = self._decided(info, joined, source).persist(StorageLevel.MEMORY_AND_DISK)
            try:
                return self._write(work, info, matched, new, source)
            finally:
                matched.unpersist()
        finally:
            new.unpersist()

    def _decided(self, info: AcidTableInfo, joined: DataFrame, source: str) -> DataFrame:
        """Return one row for each match: what is to be done, the row's id and partition, and its new values."""
        action = reduce(
            lambda rest, numbered: F.when(_holds(numbered[1].condition), F.lit(numbered[0])).otherwise(rest),
            reversed(list(enumerate(self._matched))), F.lit(-1),
        )
        values = []
        for name in info.schema.names:
            value = F.col(f"{self._alias}.{name}")
            for number, clause in reversed(list(enumerate(self._matched))):
                changed = self._value(info, clause, name, source)
                if changed is not None:
                    value = F.when(action == number, writing.stored(info, name, changed, type_of(joined, changed))).otherwise(value)
            values.append(value.alias(name))
        return joined.select(
            action.alias(ACTION), F.col(f"{source}.{SOURCE_ROW}").alias(SOURCE_ROW), F.col(f"{self._alias}.{ROW_ID}").alias(ROW_ID), *values
        )

    def _value(self, info: AcidTableInfo, clause: Clause, name: str, source: str) -> Column | None:
        """Return a column's new value in an update, None where it stays."""
        if clause.values is None:
            return None
        if "*" in clause.values:
            fixed = name in info.partition_columns.names or name in info.bucket_columns
            return F.col(f"{source}.{name}") if name in _lowered(self._source) and not fixed else None
        return _column(clause.values[name]) if name in clause.values else None

    def _write(self, work: Work, info: AcidTableInfo, matched: DataFrame, new: DataFrame, source: str) -> dict[str, int]:
        from metastore.spark.table import _check_settable, _tell

        for clause in self._matched:
            if clause.values is not None and "*" not in clause.values:
                _check_settable(info, clause.values)
        _check_single(info, matched)
        updates = [number for number, clause in enumerate(self._matched) if clause.values is not None]
        counts = {row[ACTION]: row["count"] for row in matched.groupBy(ACTION).count().collect()}
        updated = sum(count for number, count in counts.items() if number in updates)
        deleted = sum(count for number, count in counts.items() if number >= 0) - updated
        if updated:
            check_kept(work, info, matched.where(F.col(ACTION).isin(updates)), self._given(info))
        changed = matched.where(F.col(ACTION).isin(updates)).select(*info.schema.names) if updated else None
        inserted, rows = self._inserted(info, matched, new, source)
        statement = work.txn.next_statement(info.database, info.name)
        if updated or deleted:
            gone = matched.where(F.col(ACTION) >= 0).select(ROW_ID, *info.partition_columns.names)
            _tell(work, info, writing.delete(work, info, gone, statement=statement), DataOperationType.UPDATE)
        fresh = [part for part in (changed, rows) if part is not None]
        if fresh:
            reached = writing.insert(work, info, reduce(lambda left, right: left.unionByName(right), fresh), statement=statement)
            _tell(work, info, reached, DataOperationType.INSERT)
        return {"updated": updated, "deleted": deleted, "inserted": inserted}

    def _given(self, info: AcidTableInfo) -> list[str]:
        """Return the columns to which each update gives a value."""
        updates = [clause for clause in self._matched if clause.values is not None]
        return [name for name in info.columns.names if all(self._value(info, each, name, SOURCE) is not None for each in updates)]

    def _inserted(self, info: AcidTableInfo, matched: DataFrame, new: DataFrame, source: str) -> tuple[int, DataFrame | None]:
        """Return how many rows of the source are to be inserted, and the rows."""
        if not self._missing:
            return 0, None
        rest = new.join(matched.select(SOURCE_ROW).distinct(), SOURCE_ROW, "left_anti").alias(source)
        action = reduce(
            lambda other, numbered: F.when(_holds(numbered[1].condition), F.lit(numbered[0])).otherwise(other),
            reversed(list(enumerate(self._missing))), F.lit(-1),
        )
        values = []
        for name in info.schema.names:
            value = F.lit(None).cast(info.schema[name].dataType)
            for number, clause in reversed(list(enumerate(self._missing))):
                given = clause.values or {}
                found = (
                    F.col(f"{source}.{name}") if "*" in given and name in _lowered(self._source)
                    else _column(given[name]) if name in given else None
                )
                if found is not None:
                    value = F.when(action == number, writing.stored(info, name, found, type_of(rest, found))).otherwise(value)
            values.append(value.alias(name))
        for clause in self._missing:
            if unknown := [name for name in clause.values or {} if name != "*" and name not in info.schema.names]:
                raise writing.WrongColumns(f"{info.full_name} has no column {', '.join(unknown)}")
        rows = rest.where(action >= 0).select(*values)
        return (count, rows) if (count := rows.count()) else (0, None)


def _check_single(info: AcidTableInfo, matched: DataFrame) -> None:
    twice = matched.where(F.col(ACTION) >= 0).groupBy(ROW_ID, *info.partition_columns.names).count().where("count > 1").limit(1).collect()
    if twice:
        row = twice[0].asDict(recursive=True)
        raise SeveralMatches(f"{info.full_name}: several rows of the source match the row {row}; make the source unique")


def _alias_of(source: DataFrame) -> str:
    """Return the alias that the source has, else the usual name."""
    plan = source._jdf.queryExecution().analyzed()  # noqa: SLF001  # PySpark tells an alias nowhere else
    return str(plan.alias()) if plan.getClass().getSimpleName() == "SubqueryAlias" else SOURCE


def _lowered(source: DataFrame) -> set[str]:
    return {name.lower() for name in source.columns}


def _holds(condition: Expression | None) -> Column:
    return F.lit(True) if condition is None else F.coalesce(_column(condition), F.lit(False))


def _column(value: Expression) -> Column:
    return F.expr(value) if isinstance(value, str) else value
