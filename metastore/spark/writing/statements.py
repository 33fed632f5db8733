"""One statement of a transaction leaves all of its files in the table, or none: a failure that is caught does not reach the commit.

    with Statement(transaction, table, number) as statement:
        statement.insert(rows)
        statement.delete(gone, DataOperationType.UPDATE)
        statement.place()

All files are computed aside before the first gets its place. Placed files are taken back when a later one can not be placed; where even
that fails, the transaction can no longer be committed. Write ids, locks and new partitions stay: they show no row to anyone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from pyspark.sql import DataFrame

from metastore.acid import statistics
from metastore.acid.files import FileError
from metastore.acid.folders.placing import remove_staged, staging
from metastore.acid.values.constraints import Constraints
from metastore.idl import DataOperationType
from metastore.spark.session.catalog import AcidTableInfo
from metastore.spark.transaction.spark_transaction import SparkTransaction
from metastore.spark.writing import writing
from metastore.spark.writing.constraints import kept


class NotTakenBack(Exception):
    """Files of a failed statement are in the table, and could not be removed."""


class Statement:
    """The files of one statement: a context, whose end removes staged files."""

    def __init__(self, transaction: SparkTransaction, table: AcidTableInfo, number: int) -> None:
        self._transaction = transaction
        self._table = table
        self._number = number
        self._parts: list[str] = []
        self._staged: list[tuple[writing.StagedFiles, int]] = []

    def __enter__(self) -> Statement:  # noqa: PYI034  # Self needs Python 3.11
        return self

    def __exit__(self, *_: object) -> None:
        for part in self._parts:
            remove_staged(self._transaction.files, staging(self._transaction.txn.id, self._table, part))

    @cached_property
    def constraints(self) -> Constraints:
        """The constraints of the table, as they are once it is locked."""
        return self._transaction.constraints(self._table)

    def insert(self, rows: DataFrame, *, overwrite: bool = False, partitions: Sequence[str] = ()) -> None:
        """Compute rows (`writing.fitted`) and write them aside. ConstraintViolated, FileError and Spark's errors.

        An overwrite empties `partitions`, by Hive's names, if they get no row.
        """
        staged = writing.insert(
            self._transaction,
            self._table,
            kept(self._table, self.constraints, rows),
            self._part("insert"),
            statement=self._number,
            overwrite=overwrite,
        )
        staged = replace(staged, emptied=tuple(partitions))
        self._staged.append((staged, DataOperationType.INSERT))

    def delete(self, gone: DataFrame, operation: int) -> None:
        """Write delete events for rows (ids and `__metastore_folder`) aside; `operation` is a DataOperationType. FileError."""
        staged = writing.delete(self._transaction, self._table, gone, self._part("delete"), statement=self._number)
        self._staged.append((staged, operation))

    def _part(self, kind: str) -> str:
        """Return the name of a staging folder, which the end of the statement removes."""
        self._parts.append(f"{self._number}_{kind}")
        return self._parts[-1]

    def place(self) -> None:
        """Give all files their places and report the partitions to the metastore. FileError, the metastore's own exceptions."""
        if not self._staged:
            return
        made: list[str] = []
        try:
            self._report([(writing.move(self._transaction, self._table, staged, made), operation) for staged, operation in self._staged])
        except BaseException as error:
            self._take_back(made, error)
            raise
        if any(staged.overwrite for staged, _ in self._staged):
            self._transaction.overwrote(self._table)

    def _report(self, reached: list[tuple[list[str], int]]) -> None:
        """Report each written partition once, with its update or delete if it has one: conflicts are found by these, not by inserts."""
        operations: dict[str, int] = {}
        for names, operation in reached:
            operations |= {name: operation for name in names if operation != DataOperationType.INSERT or name not in operations}
        table, txn = self._table, self._transaction.txn
        statistics.forget(txn, table.table, sorted(operations))
        for operation in sorted(set(operations.values())):
            names = sorted(name for name in operations if operations[name] == operation)
            txn.wrote_partitions(table.database, table.name, names, operation)

    def _take_back(self, made: list[str], error: BaseException) -> None:
        for directory in made:
            try:
                self._transaction.files.delete(directory)
            except FileError as left:
                reason = NotTakenBack(
                    f"a statement on {self._table.full_name} failed ({error}), and its files in {directory} can not be removed "
                    f"({left}); the transaction can not be committed, begin it again"
                )
                self._transaction.txn.spoil(reason)
