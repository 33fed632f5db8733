"""Make a transactional table, empty or of the rows of a frame, or put it in the place of one that is there."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from metastore import idl, log
from metastore.client import connect
from metastore.spark.definition.tables import Definition, WrongDefinition, check_replaceable, create, replaced
from metastore.spark.session.catalog import AcidTableInfo
from metastore.spark.session.hadoop import HadoopFiles
from metastore.spark.transaction.spark_transaction import SparkTransaction
from metastore.spark.writing.inserting import insert


def make(spark: SparkSession, uri: str, definition: Definition, *, if_not_exists: bool = False, replace: bool = False) -> None:
    """Make an empty table.

    AlreadyExistsException; WrongDefinition where `replace` would need another table than the one that is there; NotTransactional where that
    is of another kind.
    """
    if (if_not_exists or replace) and (there := _there(uri, definition)) is not None:
        if replace:
            _replace(spark, uri, definition, there, None)
        return
    _create(spark, uri, definition)


def make_from(
    spark: SparkSession, uri: str, definition: Definition, rows: DataFrame, *, if_not_exists: bool = False, replace: bool = False
) -> None:
    """Make a table of rows. A failure leaves no new table. The errors of `make` and of an insert, FileError."""
    if (if_not_exists or replace) and (there := _there(uri, definition)) is not None:
        if replace:
            _replace(spark, uri, definition, there, rows)
        return
    if definition.location is not None:
        _check_empty(spark, definition, definition.location)
    _create(spark, uri, definition)
    made = _there(uri, definition)
    try:
        transaction = SparkTransaction(spark, uri)
        with transaction.txn:
            insert(transaction, transaction.load(definition.database, definition.name), rows)
    except BaseException:
        if made is not None:
            _drop(uri, made)
        raise


def _create(spark: SparkSession, uri: str, definition: Definition) -> None:
    with connect(uri) as client:
        create(client, definition, spark.sparkContext.sparkUser())


def _there(uri: str, definition: Definition) -> AcidTableInfo | None:
    """Return the table of that name, None without one. NotTransactional for one of another kind."""
    with connect(uri) as client:
        try:
            return AcidTableInfo.load(client, definition.database, definition.name)
        except idl.NoSuchObjectException:
            return None


def _replace(spark: SparkSession, uri: str, definition: Definition, there: AcidTableInfo, rows: DataFrame | None) -> None:
    """Overwrite a table in one transaction, and give it the properties of the definition last."""
    check_replaceable(definition, there)
    transaction = SparkTransaction(spark, uri)
    with transaction.txn:
        info = transaction.load(there.database, there.name)
        frame = spark.createDataFrame([], info.schema) if rows is None else rows
        insert(
            transaction,
            info,
            frame,
            overwrite=True,
            partitions=[folder.name for folder in transaction.txn.call(info.folders) if folder.name],
        )
        changed = replaced(definition, transaction.load(there.database, there.name))
        transaction.txn.call(lambda client: client.alter_table(info.database, info.name, changed))


def _check_empty(spark: SparkSession, definition: Definition, location: str) -> None:
    """Raise WrongDefinition for a directory that is not empty: its files would be rows of the table, and be deleted if the insert fails."""
    if HadoopFiles(spark).list(location):
        raise WrongDefinition(
            f"{definition.full_name}: {location} holds files already: a table that is made from rows needs an empty directory"
        )


def _drop(uri: str, made: AcidTableInfo) -> None:
    """Drop the table that was made, unless another table has its name by now."""
    try:
        with connect(uri) as client:
            there = AcidTableInfo.load(client, made.database, made.name).table
            if (there.id, there.createTime) == (made.table.id, made.table.createTime):
                client.drop_table(made.database, made.name, True)
    except Exception as error:  # noqa: BLE001 # the error is the reason why the table could not be filled
        log.get("metastore.spark").warning("an empty table is left: drop it", table=made.full_name, reason=str(error))
