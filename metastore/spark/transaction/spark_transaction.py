"""A transaction in a session of Spark: locks, snapshots and statement numbers of tables. This module has no operation on a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyspark.sql import DataFrame, SparkSession

from metastore import log
from metastore.acid.folders.selecting import Selected, select
from metastore.acid.rewriting.unchanged import check_unchanged
from metastore.acid.transactions import Agent, TableSnapshot, Transaction, component
from metastore.acid.values.constraints import Constraints
from metastore.idl import DataOperationType, LockType
from metastore.spark.reading.reading import rows
from metastore.spark.session.catalog import AcidTableInfo, metastore_uri
from metastore.spark.session.hadoop import HadoopFiles

_STRENGTH = (LockType.SHARED_READ, LockType.SHARED_WRITE, LockType.EXCL_WRITE, LockType.EXCLUSIVE)
"""The locks from the weakest to the strongest; each holds back all that the weaker ones hold back."""


class CanNotChange(Exception):
    """The operation does not fit the kind of table, or an earlier operation of its transaction."""


class SparkTransaction:
    """A transaction in a session of Spark. Operations of one transaction run one after the other."""

    def __init__(self, spark: SparkSession, uri: str | None = None, *, read_only: bool = False, compaction: bool = False) -> None:
        self.spark = spark
        self.files = HadoopFiles(spark)
        self.uri = uri or metastore_uri(spark)
        context = spark.sparkContext
        agent = Agent(user=context.sparkUser(), name=f"{context.appName} ({context.applicationId})")
        self._overwritten: set[str] = set()
        self._held: list[tuple[str, int, int]] = []
        self._pinned: dict[tuple[str, str], TableSnapshot] = {}
        self.txn = Transaction.begin(self.uri, agent=agent, read_only=read_only, compaction=compaction)

    def load(self, database: str, table: str) -> AcidTableInfo:
        """Read the metastore's definition of a table. NoSuchObjectException, NotTransactional; TransactionLost."""
        self.txn.check()
        return self.txn.call(lambda client: AcidTableInfo.load(client, database, table))

    def read(self, database: str, table: str) -> AcidTableInfo:
        """Read the metastore's definition of a table of any kind. NoSuchObjectException."""
        return self.txn.call(lambda client: AcidTableInfo.read(client, database, table))

    def constraints(self, table: AcidTableInfo) -> Constraints:
        """Return the constraints of a table that its writers keep. MetaException."""
        return self.txn.call(lambda client: Constraints.read(client, table.table))

    def next_statement(self, table: AcidTableInfo) -> int:
        """Return the number of the next statement that writes to a table. CanNotChange after an overwrite of the table.

        A base of a write id hides all other files of this write id, and a transaction has one write id for each table.
        """
        if table.full_name in self._overwritten:
            raise CanNotChange(
                f"{table.full_name}: this transaction has overwritten it, and nothing else that it writes there would be seen; "
                "commit first, or write all rows by one overwrite"
            )
        return self.txn.next_statement(table.database, table.name)

    def overwrote(self, table: AcidTableInfo) -> None:
        """Note that the transaction has overwritten a table."""
        self._overwritten.add(table.full_name)

    def lock(self, table: AcidTableInfo, kind: int, *operations: int, patience: float | None = None) -> None:
        """Lock a table for operations (DataOperationType) until the transaction ends. LockTimeout, TableChanged."""
        self.lock_all([(table, kind, operations)], patience=patience)

    def lock_all(self, wanted: Iterable[tuple[AcidTableInfo, int, Sequence[int]]], *, patience: float | None = None) -> None:
        """Lock tables together, as `lock` does each: nobody holds some of them while waiting for others. LockTimeout, TableChanged.

        Held locks are not asked for again: they would wait for others that wait for this transaction.
        """
        listed = list(wanted)
        missing = [(table, kind, each) for table, kind, operations in listed for each in operations if not self._holds(table, kind, each)]
        components = [
            component(table.database, table.name, kind, each, dynamic=bool(table.table.partitionKeys) and each != DataOperationType.SELECT)
            for table, kind, each in missing
        ]
        if components:
            self.txn.lock(components, **({} if patience is None else {"patience": patience}))
        self._held += [(table.full_name, kind, each) for table, kind, each in missing]
        for table in {table.full_name: table for table, _, _ in listed}.values():
            check_unchanged(table.table, self.read(table.database, table.name).table)

    def _holds(self, table: AcidTableInfo, kind: int, operation: int) -> bool:
        """Return whether a lock is held that is as strong, for the same operation; any lock is enough to read."""
        return any(
            name == table.full_name and _STRENGTH.index(held) >= _STRENGTH.index(kind) and operation in (there, DataOperationType.SELECT)
            for name, held, there in self._held
        )

    def pin(self, tables: Sequence[AcidTableInfo]) -> None:
        """Read these tables from now on in their present state, all at one moment. Without tables: read each in its state at that time."""
        self._pinned = self.txn.snapshots([(table.database, table.name) for table in tables]) if tables else {}

    def snapshot(self, table: AcidTableInfo) -> TableSnapshot:
        """Return the snapshot, with this transaction's own writes: of now, or of when the table was pinned."""
        key = (table.database, table.name)
        return self._pinned.get(key) or self.txn.snapshots([key])[key]

    def selected(self, table: AcidTableInfo, snapshot: TableSnapshot, partition_filter: str | None = None) -> list[Selected]:
        """Choose the files that a snapshot reads. FileError, NotEnoughHistory."""
        folders = self.txn.call(lambda client: table.folders(client, partition_filter))
        return select(self.files, folders, snapshot, insert_only=table.is_insert_only)

    def rows(self, table: AcidTableInfo, *, row_id: bool = False, folder: bool = False, partition_filter: str | None = None) -> DataFrame:
        """Return the table's rows as they are now, with `row_id` and `folder` as `reading.rows`. FileError, NotEnoughHistory."""
        snapshot = self.snapshot(table)
        return rows(self.spark, table, self.selected(table, snapshot, partition_filter), snapshot, row_id=row_id, folder=folder)

    def lock_to_read(self, tables: Sequence[AcidTableInfo]) -> None:
        """Take shared locks, which hold back a drop of the tables. LockTimeout, TableChanged."""
        self.lock_all((table, LockType.SHARED_READ, [DataOperationType.SELECT]) for table in tables)

    def close(self) -> None:
        """End a transaction that only read."""
        if self.txn.is_open:
            try:
                self.txn.commit()
            except Exception as error:  # noqa: BLE001 # nothing was written: an error of the server no longer matters
                log.get("metastore.spark").warning("reader could not end its transaction", transaction=self.txn.id, reason=str(error))
