"""Add rows to a table, or put them in the place of others: one statement of a transaction."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from metastore.idl import DataOperationType, LockType
from metastore.spark.session.catalog import AcidTableInfo
from metastore.spark.transaction.readers import give_way
from metastore.spark.transaction.spark_transaction import SparkTransaction
from metastore.spark.writing import writing
from metastore.spark.writing.statements import Statement


def insert(
    transaction: SparkTransaction, info: AcidTableInfo, rows: DataFrame, *, overwrite: bool = False, partitions: Sequence[str] = ()
) -> None:
    """Write rows, whose columns are matched by name; missing ones have their defaults.

    An overwrite replaces all rows of the table, or of the partitions of the new rows and of those that `partitions` names, `k=v/..`.
    WrongColumns, DoesNotFit, ConstraintViolated, CanNotKeepConstraint, CanNotChange.
    """
    number = transaction.next_statement(info)
    if overwrite:
        give_way(transaction.spark, transaction.uri, info)
    operation = DataOperationType.UPDATE if overwrite else DataOperationType.INSERT
    transaction.lock(info, LockType.EXCLUSIVE if overwrite else LockType.SHARED_READ, operation)
    names = [info.partition_name(name) for name in partitions]
    with Statement(transaction, info, number) as statement:
        statement.insert(writing.fitted(info, rows, statement.constraints), overwrite=overwrite, partitions=names)
        statement.place()
