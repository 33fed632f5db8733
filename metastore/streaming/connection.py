"""A stream's view of one transactional table: its columns, partitions and buckets, and batches of transactions on it. This module writes no
file.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any

from metastore.acid.buckets import buckets
from metastore.acid.partitions import found, found_or_added
from metastore.acid.rewriting.bucket_files import event_type
from metastore.acid.rewriting.portions import Divider, Portion
from metastore.acid.storage import Storage
from metastore.acid.transactions import LOCK_PATIENCE, Agent, server_timeout
from metastore.acid.values.constraints import CanNotKeepConstraint, Constraints
from metastore.acid.values.types import UnknownType
from metastore.client import Client, connect
from metastore.idl import ClientCapabilities, ClientCapability, GetTableRequest, Partition, Table
from metastore.rules.values.partition_names import DEFAULT_PARTITION, make_partition_name
from metastore.rules.values.partition_values import hive_name, read_value
from metastore.streaming.batch import TransactionBatch
from metastore.streaming.records import RecordColumns, RecordWriter, Rows

CAPABILITIES = ["HIVEFULLACIDWRITE", "HIVEMANAGEDINSERTWRITE", "HIVEBUCKET2", "EXTWRITE"]


class NotStreamable(Exception):
    """The table is not one that a stream can write into."""


class StreamingConnection:
    """A table into which records of one form are written. For one thread; writers of one table need a connection each.

    `partition` gives the values of all partition columns; without it each record has them. New partitions are added. `zone` is the time
    zone of defaults such as `current_timestamp()`. NoSuchObjectException; NotStreamable for a table that is not a full transactional one in
    ORC, or has a CHECK constraint that is enabled.
    """

    def __init__(
        self,
        uri: str,
        table: str,
        writer: RecordWriter | None = None,
        *,
        partition: Mapping[str, str] | None = None,
        agent: Agent | None = None,
        patience: float = LOCK_PATIENCE,
        zone: str = "UTC",
    ) -> None:
        self.uri = uri
        self.agent = agent or Agent()
        self.patience = patience
        self.client = connect(uri)
        self._writer = writer or Rows()
        database, _, name = table.lower().rpartition(".")
        self._name = (database or "default", name)
        try:
            self._read(partition, zone)
        except BaseException:
            self.close()
            raise

    def _read(self, partition: Mapping[str, str] | None, zone: str) -> None:
        """Read the facts for a stream from the metastore. NoSuchObjectException, NotStreamable."""
        self.table = self.load(self.client)
        self._check()
        self._partitions: dict[str, Partition] = {}
        self.timeout = server_timeout(self.client)
        self.static_partition = self._static(partition)
        self.is_dynamic = bool(self.table.partitionKeys) and self.static_partition is None
        self.data_columns = [(column.name.lower(), column.type) for column in self.table.sd.cols]
        self._zone = zone
        self._read_constraints()
        self._divider = Divider(self.table, fixed=None if self.is_dynamic else self.static_partition or "", zone=zone)
        self.schema = event_type(self.data_columns)
        self.compression = (self.table.parameters or {}).get("orc.compress", "snappy").lower()
        self.storage = Storage(self.table.sd.location)

    def __enter__(self) -> StreamingConnection:  # noqa: PYI034  # Self needs Python 3.11
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection to the metastore. It does not close batches: each has to be closed itself."""
        self.client.close()

    @property
    def full_name(self) -> str:
        """`database.table`."""
        return f"{self.table.dbName}.{self.table.tableName}"

    def _read_constraints(self) -> None:
        """Read the required form of records, with the table's present constraints. NotStreamable."""
        keys = [(key.name, key.type) for key in self.table.partitionKeys or []] if self.is_dynamic else []
        try:
            constraints = Constraints.read(self.client, self.table)
            constraints.refuse_checks("write the rows with AcidTable of metastore.spark")
            self.columns = RecordColumns(self.full_name, [*self.data_columns, *keys], constraints, zone=self._zone)
        except UnknownType as error:
            raise NotStreamable(f"{self.full_name}: {error}") from error
        except CanNotKeepConstraint as error:
            raise NotStreamable(str(error)) from error

    def batch(self, transactions: int = 10) -> TransactionBatch:
        """Open transactions that are used one after the other and write into the same files.

        The table's present constraints apply. MetaException for too many transactions; NotStreamable for a check.
        """
        self._read_constraints()
        return TransactionBatch(self, transactions)

    def load(self, client: Client) -> Table:
        """Read the present table. NoSuchObjectException."""
        database, name = self._name
        request = GetTableRequest(
            dbName=database,
            tblName=name,
            capabilities=ClientCapabilities(values=[ClientCapability.INSERT_ONLY_TABLES]),
            processorCapabilities=CAPABILITIES,
            processorIdentifier="metastore-streaming",
        )
        table: Table = client.get_table_req(request).table
        return table

    def portions(self, records: Any) -> list[Portion]:
        """Return records in the form of the table's columns, divided by partition and bucket. BadRecord when one of them does not fit."""
        return self._divider.divide(self._writer.rows(records, self.columns))

    def location(self, partition: str) -> str:
        """Return the folder of the rows of a partition, as the storage names it; a new partition is added. The exceptions of
        add_partitions.
        """
        descriptor = self._partition(partition).sd if partition else self.table.sd
        return self.storage.path(descriptor.location.rstrip("/"))

    def name_of(self, partition: str) -> str:
        """Return the metastore's name of a partition, which may be another spelling of the given one; "" for a table without partitions."""
        return make_partition_name([key.name for key in self.table.partitionKeys], self._partition(partition).values) if partition else ""

    def _partition(self, name: str) -> Partition:
        if name not in self._partitions:
            self._partitions |= found_or_added(self.client, self.table, [name])
        return self._partitions[name]

    def _check(self) -> None:
        parameters = self.table.parameters or {}
        where = self.full_name
        if (parameters.get("transactional") or "").lower() != "true":
            raise NotStreamable(f"{where} is not transactional: set its property transactional=true")
        if (parameters.get("transactional_properties") or "").lower() == "insert_only":
            raise NotStreamable(f"{where} is insert-only: a stream needs a full transactional table in ORC")
        if "orc" not in (self.table.sd.outputFormat or "").lower():
            raise NotStreamable(f"{where} has the format {self.table.sd.outputFormat}: a stream writes only ORC")
        try:
            buckets.check_count(where, self.table.sd.numBuckets or 0)
        except buckets.TooManyBuckets as error:
            raise NotStreamable(str(error)) from error

    def _static(self, given: Mapping[str, str] | None) -> str | None:
        if given is None:
            return None
        kinds = {key.name.lower(): key.type for key in self.table.partitionKeys or []}
        values = {name.lower(): value for name, value in given.items()}
        if not kinds or values.keys() != kinds.keys():
            raise NotStreamable(f"{self.full_name} is partitioned by {', '.join(kinds) or 'nothing'}, not by {', '.join(values)}")
        for name, kind in kinds.items():
            if values[name] not in ("", DEFAULT_PARTITION) and read_value(kind, values[name]) is None:
                raise NotStreamable(f"{self.full_name}: {values[name]!r} is not a value of partition column {name}, type {kind}")
        name = hive_name(list(kinds.items()), [values[key] for key in kinds])
        self._partitions = found(self.client, self.table, [name])
        return self.name_of(name) if name in self._partitions else name
