"""Keep the files of a DataFrame from the cleaner by a transaction, for as long as somebody may read them. This module reads no row.

A reader ends at the first of these events:

    its owner closes it                  `AcidTable.close`, or the end of the program
    nothing can compute its rows         the JVM has collected the DataFrame and all that were made from it
    it has been idle for `lease` seconds no job of Spark has run in this program meanwhile
    the same program overwrites or drops its table, and no job runs

One thread checks all readers of a program. The last event also ends those of the format `hive_acid`, which other processes began for it.
"""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession

from metastore import idl
from metastore.acid.transactions import Agent
from metastore.client import connect
from metastore.idl import AbortTxnRequest, ShowLocksRequest, TxnType
from metastore.spark.session.java import java_class
from metastore.spark.transaction.spark_transaction import SparkTransaction

if TYPE_CHECKING:
    from metastore.spark.session.catalog import AcidTableInfo

LEASE = 120.0
"""Seconds without a job of Spark after which a reader ends, unless the caller gives another time."""
LOOK = 1.0
"""Seconds between looks at the readers."""
_OF_LEAVES = {"LogicalRelation": "relation", "LogicalRDD": "rdd", "LocalRelation": "data"}
"""The attribute of a plan's leaf that all plans made from it share, by the leaf's class."""


class Reader:
    """A read-only transaction with shared locks on some tables and one snapshot of them, for the DataFrames of one query."""

    def __init__(self, spark: SparkSession, uri: str | None, names: Sequence[tuple[str, str]], lease: float) -> None:
        """`names` are the tables as (database, name)."""
        self._spark = spark
        self._lease = float(lease)  # a value that is not a number fails here, and not in the thread that checks all readers
        self._transaction = SparkTransaction(spark, uri, read_only=True)
        self._leaves: list[list[Any]] = []
        self.used = time.monotonic()
        self.tables: list[AcidTableInfo] = []
        try:
            self.tables = [self._transaction.load(*name) for name in names]
            self._transaction.lock_to_read(self.tables)
            self._transaction.pin(self.tables)
        except BaseException:
            self.close()
            raise

    def rows(self, table: AcidTableInfo, *, row_id: bool = False, partition_filter: str | None = None) -> DataFrame:
        """Return the rows of one of the tables, whose files the reader keeps from now on. FileError, NotEnoughHistory."""
        try:
            frame = self._transaction.rows(table, row_id=row_id, partition_filter=partition_filter)
            self._leaves.append(_weak_leaves(self._spark, frame))
        except BaseException:
            self.close()
            raise
        _watch(self)
        return frame

    def is_needed(self, *, busy: bool) -> bool:
        """Return whether somebody may read its files; `busy` is whether Spark runs jobs. Py4JError once Spark has ended."""
        if busy:
            self.used = time.monotonic()
        if self._leaves and all(self._leaves) and all(leaf.get() is None for leaves in self._leaves for leaf in leaves):
            return False
        return time.monotonic() < self.used + self._lease

    def close(self) -> None:
        """End the transaction, unless that is done."""
        with _GUARD:
            _OPEN.discard(self)
        self._transaction.close()


_GUARD = threading.Lock()
_OPEN: set[Reader] = set()
_watcher: threading.Thread | None = None


def agent_of_format(spark: SparkSession) -> Agent:
    """Return the owner of the transactions by which the format `hive_acid` reads for this program."""
    return Agent(user=spark.sparkContext.sparkUser(), name=f"hive_acid ({spark.sparkContext.applicationId})")


def give_way(spark: SparkSession, uri: str, table: AcidTableInfo) -> None:
    """End this program's own readers of a table that it is about to lock for itself alone, unless Spark runs jobs, which may be theirs.

    `uri` is the table's metastore. OSError where it does not answer.
    """
    if _is_busy(spark):
        return
    for reader in _open():
        if any(each.full_name == table.full_name for each in reader.tables):
            reader.close()
    name = agent_of_format(spark).name
    with connect(uri) as client:
        for lock in client.show_locks(ShowLocksRequest(dbname=table.database, tablename=table.name)).locks:
            if lock.agentInfo == name:
                with suppress(idl.NoSuchTxnException, idl.TxnAbortedException):  # it has ended meanwhile
                    client.abort_txn(AbortTxnRequest(txnid=lock.txnid, txn_type=TxnType.READ_ONLY))


def _watch(reader: Reader) -> None:
    global _watcher  # noqa: PLW0603  # one thread for all readers
    with _GUARD:
        _OPEN.add(reader)
        if _watcher is None:
            _watcher = threading.Thread(target=_look_after, args=(reader._spark,), name="acid-readers", daemon=True)  # noqa: SLF001
            _watcher.start()


def _look_after(spark: SparkSession) -> None:
    """Look at the readers until there are none."""
    global _watcher  # noqa: PLW0603  # see above
    while True:
        time.sleep(LOOK)
        try:
            busy = _is_busy(spark)
            ended = [reader for reader in _open() if not reader.is_needed(busy=busy)]
        except (Py4JError, OSError, AttributeError):  # Spark has ended, and with it all that could read
            ended = _open()
        for reader in ended:
            reader.close()
        with _GUARD:
            if not _OPEN:
                _watcher = None
                return


def _is_busy(spark: SparkSession) -> bool:
    return bool(spark.sparkContext.statusTracker().getActiveJobsIds())


def _open() -> list[Reader]:
    with _GUARD:
        return list(_OPEN)


def _weak_leaves(spark: SparkSession, frame: DataFrame) -> list[Any]:
    """Return weak references of the JVM to objects that only the frame, and plans that are made from it, hold; none where these are not
    known.
    """
    leaves = frame._jdf.queryExecution().analyzed().collectLeaves()  # noqa: SLF001 # PySpark has no public name for plans
    found = []
    for place in range(leaves.size()):
        leaf = leaves.apply(place)
        name = _OF_LEAVES.get(leaf.getClass().getSimpleName())
        if name is None:
            return []
        found.append(java_class(spark, "java.lang.ref.WeakReference")(getattr(leaf, name)()))
    return found


@atexit.register
def close_all() -> None:
    """End all readers of the program: nobody computes their frames any more."""
    for reader in _open():
        reader.close()
