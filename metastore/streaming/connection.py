"""A stream's view of one transactional table: its columns, partitions and buckets, and batches of transactions on it. It writes no file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from metastore.acid.hashing import buckets_of
from metastore.acid.partitions import found_or_added
from metastore.acid.transactions import LOCK_PATIENCE, Agent, server_timeout
from metastore.acid.types import UnknownType
from metastore.client import Client, connect
from metastore.idl import ClientCapabilities, ClientCapability, GetTableRequest, Table
from metastore.rules.partition_names import DEFAULT_PARTITION, make_partition_name
from metastore.streaming.batch import TransactionBatch
from metastore.streaming.files import Storage, event_type
from metastore.streaming.records import Columns, RecordWriter, Rows

CAPABILITIES = ["HIVEFULLACIDWRITE", "HIVEMANAGEDINSERTWRITE", "HIVEBUCKET2", "EXTWRITE"]


class NotStreamable(Exception):
    """The table is not one that a stream can write into."""


class Portion(NamedTuple):
    """Rows of one partition ("" in a table without) and bucket."""

    partition: str
    bucket: int
    rows: pa.RecordBatch


class StreamingConnection:
    """A table into which records of one form are written. For one thread; writers of one table need a connection each.

    `partition` gives the values of all partition columns; without it each record has them, and partitions are added as they come.
    NoSuchObjectException; NotStreamable for a table that is not a full transactional one in ORC.
    """

    def __init__(
        self, uri: str, table: str, writer: RecordWriter | None = None, *, partition: Mapping[str, str] | None = None,
        agent: Agent | None = None, patience: float = LOCK_PATIENCE, zone: str = "UTC",
    ) -> None:
        self.uri = uri
        self.agent = agent or Agent()
        self.patience = patience
        self.client = connect(uri)
        self._writer = writer or Rows()
        self._zone = zone
        database, _, name = table.lower().rpartition(".")
        self._name = (database or "default", name)
        self.table = self.load(self.client)
        self._check()
        self.timeout = server_timeout(self.client)
        self.static_partition = self._static(partition)
        self.is_dynamic = bool(self.table.partitionKeys) and self.static_partition is None
        self.data_columns = [(column.name.lower(), column.type) for column in self.table.sd.cols]
        self._keys = [key.name.lower() for key in self.table.partitionKeys or []] if self.is_dynamic else []
        keys = [(key.name, key.type) for key in self.table.partitionKeys or []] if self.is_dynamic else []
        try:
            self.columns = Columns(self.full_name, [*self.data_columns, *keys])
        except UnknownType as error:
            raise NotStreamable(f"{self.full_name}: {error}") from error
        self.schema = event_type(self.data_columns)
        self.compression = (self.table.parameters or {}).get("orc.compress", "snappy").lower()
        self.storage = Storage(self.table.sd.location)
        self._locations: dict[str, str] = {"": self.table.sd.location.rstrip("/")}

    def __enter__(self) -> StreamingConnection:  # noqa: PYI034  # Self needs Python 3.11
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection to the metastore; batches are closed by themselves."""
        self.client.close()

    @property
    def full_name(self) -> str:
        """`database.table`."""
        return f"{self.table.dbName}.{self.table.tableName}"

    def batch(self, transactions: int = 10) -> TransactionBatch:
        """Open transactions that are used one after the other and write into the same files. MetaException for too many."""
        return TransactionBatch(self, transactions)

    def load(self, client: Client) -> Table:
        """Read the table as it is now. NoSuchObjectException."""
        database, name = self._name
        request = GetTableRequest(
            dbName=database, tblName=name, capabilities=ClientCapabilities(values=[ClientCapability.INSERT_ONLY_TABLES]),
            processorCapabilities=CAPABILITIES, processorIdentifier="metastore-streaming",
        )
        table: Table = client.get_table_req(request).table
        return table

    def portions(self, records: Any) -> list[Portion]:
        """Return records in the form of the table's columns, divided by partition and bucket. BadRecord when one of them does not fit."""
        rows = self._writer.rows(records, self.columns)
        if not len(rows):
            return []
        partitions, names = self._partitions_of(rows)
        numbers = self._buckets_of(rows)
        data = rows.select(range(len(self.data_columns)))
        places, inverse = np.unique(numbers.astype(np.int64) * len(names) + partitions, return_inverse=True)
        if len(places) == 1:
            return [Portion(names[places[0] % len(names)], int(places[0]) // len(names), data)]
        return [
            Portion(names[place % len(names)], int(place) // len(names), data.take(pa.array(np.flatnonzero(inverse == number))))
            for number, place in enumerate(places)
        ]

    def location(self, partition: str) -> str:
        """Return where the rows of a partition lie, as the storage names it; a new partition is added. The exceptions of add_partitions."""
        if partition not in self._locations:
            found = found_or_added(self.client, self.table, [partition])
            self._locations[partition] = found[partition].sd.location.rstrip("/")
        return self.storage.path(self._locations[partition])

    def _check(self) -> None:
        parameters = self.table.parameters or {}
        where = self.full_name
        if (parameters.get("transactional") or "").lower() != "true":
            raise NotStreamable(f"{where} is not transactional: set its property transactional=true")
        if (parameters.get("transactional_properties") or "").lower() == "insert_only":
            raise NotStreamable(f"{where} is insert-only: a stream needs a full transactional table in ORC")
        if "orc" not in (self.table.sd.outputFormat or "").lower():
            raise NotStreamable(f"{where} is kept as {self.table.sd.outputFormat}: a stream writes ORC alone")

    def _static(self, given: Mapping[str, str] | None) -> str | None:
        if given is None:
            return None
        keys = [key.name.lower() for key in self.table.partitionKeys or []]
        values = {name.lower(): value for name, value in given.items()}
        if not keys or values.keys() != set(keys):
            raise NotStreamable(f"{self.full_name} is partitioned by {', '.join(keys) or 'nothing'}, not by {', '.join(values)}")
        return make_partition_name(keys, [values[key] for key in keys])

    def _partitions_of(self, rows: pa.RecordBatch) -> tuple[Any, Sequence[str]]:
        """Return the place of each row's partition in a list of names."""
        if not self._keys:
            return 0, [self.static_partition or ""]
        texts = [rows.column(name).cast(pa.string()).fill_null(DEFAULT_PARTITION).dictionary_encode() for name in self._keys]
        joined = np.zeros(len(rows), np.int64)
        for text in texts:
            joined = joined * len(text.dictionary) + np.asarray(text.indices)
        _, first, inverse = np.unique(joined, return_index=True, return_inverse=True)
        values = (text.dictionary.take(text.indices.take(pa.array(first))).to_pylist() for text in texts)
        return inverse, [make_partition_name(self._keys, row) for row in zip(*values, strict=True)]

    def _buckets_of(self, rows: pa.RecordBatch) -> Any:
        sd = self.table.sd
        if not sd.bucketCols or (sd.numBuckets or 0) <= 0:
            return np.zeros(len(rows), np.int64)
        columns = [(rows.column(name.lower()), self.columns.kinds[name.lower()]) for name in sd.bucketCols]
        version = int((self.table.parameters or {}).get("bucketing_version") or 1)
        return buckets_of(columns, sd.numBuckets, version, zone=self._zone)
