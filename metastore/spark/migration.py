"""Turn a plain table into a transactional one in place, and a transactional one into a plain one. Nobody else may use it meanwhile.

Into a transactional one: the files keep their places; files with names that Hive does not give to buckets get such names, and get their old
ones back when the change of the table fails. Back: the rows are rewritten beside the table, which is then exchanged.
"""

from __future__ import annotations

from contextlib import suppress
from copy import deepcopy

from pyspark.sql import SparkSession

from metastore.acid.buckets import buckets
from metastore.acid.files import FileError
from metastore.acid.folders.table import CAPABILITIES, Folder
from metastore.client import Client
from metastore.hidden import is_hidden
from metastore.idl import (
    CreateTableRequest,
    DataOperationType,
    EnvironmentContext,
    HeartbeatRequest,
    LockType,
    Table,
)
from metastore.spark.session.catalog import AcidTableInfo, table_name
from metastore.spark.table import AcidTable
from metastore.spark.transaction.spark_transaction import SparkTransaction
from metastore.spark.writing import writing
from metastore.spark.writing.faithful import check_bucket, check_plain

ACID = ("transactional", "transactional_properties")


class CanNotConvert(Exception):
    """The table's kind or files do not allow the conversion."""


def to_transactional(spark: SparkSession, name: str, *, insert_only: bool | None = None, uri: str | None = None) -> AcidTable:
    """Make a table transactional in place and return it: full ACID for ORC unless `insert_only`, insert-only for any other format.

    CanNotConvert, LockTimeout, FileError, and the Thrift exceptions of the metastore; then the table is unchanged.
    """
    transaction = SparkTransaction(spark, uri)
    with transaction.txn:
        info = transaction.read(*table_name(spark, name))
        table = info.table
        if (table.parameters.get("transactional") or "").lower() == "true":
            raise CanNotConvert(f"{name} is transactional already; `metastore check` lists the files that Hive refuses")
        if table.tableType not in ("MANAGED_TABLE", "EXTERNAL_TABLE"):
            raise CanNotConvert(f"{name} is a {table.tableType}: only tables with files can be converted")
        is_orc = "orc" in (table.sd.serdeInfo.serializationLib or "").lower()
        plain = insert_only if insert_only is not None else not is_orc
        if not plain and not is_orc:
            raise CanNotConvert(f"{name} is not an ORC table: it can only become insert-only")
        transaction.lock(info, LockType.EXCLUSIVE, DataOperationType.NO_TXN)
        done: list[tuple[str, str]] = []
        try:
            if not plain:
                for folder in transaction.txn.call(info.folders):
                    _rename_files(transaction, info, folder, done)
            changed = deepcopy(table)
            changed.tableType = "MANAGED_TABLE"
            changed.parameters = {key: value for key, value in table.parameters.items() if key != "EXTERNAL"}
            changed.parameters.update({"transactional": "true", "transactional_properties": "insert_only" if plain else "default"})
            context = EnvironmentContext(properties={"DO_NOT_UPDATE_STATS": "true"})
            transaction.txn.call(
                lambda client: client.alter_table_with_environment_context(table.dbName, table.tableName, changed, context)
            )
        except OSError:  # the table may have been altered: names of buckets are right for a plain table too
            raise
        except BaseException:
            for old, new in reversed(done):
                with suppress(FileError):  # a name that can not be given back does not hide why the conversion failed
                    transaction.files.rename(new, old)
            raise
    return AcidTable.forName(spark, f"{table.dbName}.{table.tableName}", uri)


def _rename_files(transaction: SparkTransaction, info: AcidTableInfo, folder: Folder, done: list[tuple[str, str]]) -> None:
    """Give the files of a folder names of bucket 0 and its copies; files of buckets keep theirs."""
    files = [status for status in transaction.files.list(folder.location) if not is_hidden(status.name)]
    if any(status.is_directory for status in files):
        raise CanNotConvert(f"{info.full_name}: {folder.location} holds directories; move the files out of them first")
    if info.buckets and not all(buckets.is_original(status.name) for status in files):
        raise CanNotConvert(f"{info.full_name} is bucketed, and Spark's files are not in Hive's buckets: insert the rows into a new table")
    taken = {status.name for status in files}
    number = 0
    for status in sorted(files):
        if buckets.is_original(status.name):
            continue
        while (name := "000000_0" if number == 0 else f"000000_0_copy_{number}") in taken:
            number += 1
        taken.add(name)
        target = f"{folder.location}/{name}"
        transaction.files.rename(status.path, target)
        done.append((status.path, target))


def to_plain(spark: SparkSession, name: str, *, uri: str | None = None) -> None:
    """Make a transactional table a plain managed one of the same format, by writing its rows again.

    LockTimeout, TableChanged, FileError, CanNotKeep, and the Thrift exceptions of the metastore: then the table is unchanged, and files
    beside it are removed. CanNotConvert when the exchange at the end broke off: its text has the place of the rows.
    """
    transaction = SparkTransaction(spark, uri)
    with transaction.txn:
        info = transaction.load(*table_name(spark, name))
        transaction.lock(info, LockType.EXCLUSIVE, DataOperationType.NO_TXN)
        snapshot = transaction.snapshot(info)
        for selected in transaction.selected(info, snapshot):
            if info.is_insert_only:
                check_plain(spark, info, selected)
            else:
                check_bucket(spark, info, selected, snapshot)
        rows = transaction.rows(info)
        beside = f"{info.name}__plain"
        created = transaction.txn.call(lambda client: _create_beside(client, info, beside))
        try:
            writing.write_plain(transaction, info, rows, created)
            transaction.txn.call(
                lambda client: client.heartbeat(HeartbeatRequest(lockid=0, txnid=transaction.txn.id))
            )  # the lock still holds
            _exchange(transaction, info, beside)
        except CanNotConvert:
            raise
        except BaseException:
            transaction.txn.call(lambda client: client.drop_table(info.database, beside, True))
            raise
        transaction.close()


def _create_beside(client: Client, info: AcidTableInfo, name: str) -> Table:
    table = deepcopy(info.table)
    table.tableName = name
    table.id = table.writeId = None
    table.sd.location = None  # type: ignore[assignment]  # the default place
    table.parameters = {key: value for key, value in info.parameters.items() if key not in ACID}
    client.create_table_req(CreateTableRequest(table=table, processorCapabilities=CAPABILITIES, processorIdentifier="metastore-spark"))
    return client.get_table(info.database, name)  # type: ignore[no-any-return]  # any method of the interface


def _exchange(transaction: SparkTransaction, info: AcidTableInfo, beside: str) -> None:
    """Put the new table into the place of the old one, which the transaction has locked. CanNotConvert when that was interrupted.

    After any other error the old table is still there.
    """
    kept = f"the rows of {info.full_name} are in the plain table {info.database}.{beside}"
    try:
        transaction.txn.call(lambda client: client.drop_table(info.database, info.name, True))
    except BaseException as error:
        has_answered = isinstance(error, Exception) and not isinstance(error, OSError)
        if has_answered and _is_there(transaction, info):
            raise
        raise CanNotConvert(
            f"{kept}, and {info.full_name} may have been dropped ({error}): rename {beside} if it was, drop {beside} if not"
        ) from error
    try:
        renamed = transaction.txn.call(lambda client: client.get_table(info.database, beside))
        renamed.tableName = info.name
        transaction.txn.call(lambda client: client.alter_table(info.database, beside, renamed))
    except BaseException as error:
        raise CanNotConvert(f"{kept}, which could not be renamed to {info.name} ({error}): rename it") from error


def _is_there(transaction: SparkTransaction, info: AcidTableInfo) -> bool:
    """Return whether the metastore answers that a table is there."""
    with suppress(Exception):
        return transaction.read(info.database, info.name).table.id == info.table.id
    return False
