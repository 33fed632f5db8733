"""Note the last committed batch of a stream in a table, by the commit itself, so that a repeated batch is skipped.

The number is in the table's parameter `_meta.stream.ID`, where ID is the query's id in its checkpoint. Two runs of one query are held apart
by a lock on that name.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from metastore import log
from metastore.acid.files import FileError
from metastore.acid.transactions import Transaction, component
from metastore.idl import DataOperationType, LockType
from metastore.spark.session.catalog import AcidTableInfo

PARAMETER = "_meta.stream."


class NoQuery(Exception):
    """The checkpoint does not hold the query's id."""


class NoTableId(Exception):
    """The metastore is older than Hive 4: a commit can not note its batch."""


def parameter_of(read: Callable[[str], bytes], checkpoint: str) -> str:
    """Return the name of the parameter for the query of a checkpoint; `read` returns a file of it. NoQuery."""
    path = f"{checkpoint.rstrip('/')}/metadata"
    try:
        return PARAMETER + str(json.loads(read(path))["id"])
    except (FileError, ValueError, KeyError) as error:
        raise NoQuery(f"{path} does not contain the query's id: {error}") from error


def add_parameter(txn: Transaction, database: str, table: str, parameter: str) -> None:
    """Give a table a parameter, which a commit can then change. Nobody commits into the table until `txn` ends, which is for this alone."""
    if parameter in _load(txn, database, table).parameters:
        return
    txn.lock([component(database, table, LockType.EXCLUSIVE, DataOperationType.NO_TXN, dynamic=False)])
    info = _load(txn, database, table)
    if parameter not in info.parameters:
        info.table.parameters[parameter] = "-1"
        txn.call(lambda client: client.alter_table(database, table, info.table))


def is_new(txn: Transaction, database: str, table: str, parameter: str, number: int) -> bool:
    """Hold back other runs of the query until the transaction ends; return whether a batch is newer than the committed one."""
    txn.lock([component(database, f"{table}.{parameter}", LockType.EXCLUSIVE, DataOperationType.NO_TXN, transactional=False)])
    info = _load(txn, database, table)
    if number <= int(info.parameters[parameter]):
        log.get("metastore.spark").info("batch is there already", table=info.full_name, batch=number, parameter=parameter)
        return False
    return True


def note(info: AcidTableInfo, parameter: str, number: int) -> tuple[int, str, str]:
    """Return the changes of the table's parameters by a commit. NoTableId."""
    if info.table.id is None:
        raise NoTableId(
            f"{info.full_name}: the metastore returns no ids of tables, which a commit needs to note its batch; use this server or Hive 4's"
        )
    return info.table.id, parameter, str(number)


def _load(txn: Transaction, database: str, table: str) -> AcidTableInfo:
    return txn.call(lambda client: AcidTableInfo.load(client, database, table))
