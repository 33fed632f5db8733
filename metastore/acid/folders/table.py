"""A transactional table as the metastore describes it, and the folders of its rows. Never reads data."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from typing_extensions import Self

from metastore import idl
from metastore.client import Client
from metastore.idl import GetTableRequest, Partition, Table
from metastore.rules.values.partition_names import make_partition_name

CAPABILITIES = [
    "HIVEFULLACIDREAD",
    "HIVEFULLACIDWRITE",
    "HIVEMANAGEDINSERTREAD",
    "HIVEMANAGEDINSERTWRITE",
    "HIVEBUCKET2",
    "EXTREAD",
    "EXTWRITE",
]
T = TypeVar("T", bound="TableInfo")


class NotTransactional(Exception):
    """The table is not one that this module reads or writes."""


@dataclass(frozen=True)
class Folder:
    """A folder of rows: the table's own directory, or a partition's. `name` is "" or `k=v/..`."""

    location: str
    name: str = ""
    values: tuple[str, ...] = ()


@dataclass(frozen=True)
class TableInfo:
    """A transactional table as the metastore describes it."""

    table: Table

    @classmethod
    def read(cls, client: Client, database: str, name: str) -> Self:
        """Read a table of any kind. NoSuchObjectException."""
        request = GetTableRequest(
            dbName=database,
            tblName=name,
            capabilities=idl.ClientCapabilities(values=[idl.ClientCapability.INSERT_ONLY_TABLES]),
            processorCapabilities=CAPABILITIES,
            processorIdentifier="metastore-spark",
        )
        return cls(client.get_table_req(request).table)

    @classmethod
    def load(cls, client: Client, database: str, name: str) -> Self:
        """Read a transactional table. NoSuchObjectException; NotTransactional for any other kind."""
        table = cls.read(client, database, name)
        if (table.parameters.get("transactional") or "").lower() != "true":
            raise NotTransactional(
                f"{database}.{name} is not transactional: read it with spark.table, or set its property transactional=true"
            )
        return table

    @property
    def database(self) -> str:
        return self.table.dbName

    @property
    def name(self) -> str:
        return self.table.tableName

    @property
    def full_name(self) -> str:
        """`database.table`, as the transaction methods name it."""
        return f"{self.database}.{self.name}"

    @property
    def location(self) -> str:
        return self.table.sd.location.rstrip("/")

    @property
    def parameters(self) -> dict[str, str]:
        return self.table.parameters or {}

    @property
    def is_insert_only(self) -> bool:
        """Whether rows can only be added; such a table has ordinary files in its deltas."""
        return (self.parameters.get("transactional_properties") or "").lower() == "insert_only"

    @cached_property
    def kinds(self) -> dict[str, str]:
        """Hive's types of all columns by their names, in lower case."""
        return {column.name.lower(): column.type for column in [*self.table.sd.cols, *(self.table.partitionKeys or [])]}

    @property
    def bucket_columns(self) -> list[str]:
        return [name.lower() for name in self.table.sd.bucketCols or []]

    @property
    def buckets(self) -> int:
        """The number of buckets into which rows are hashed; 0 for a table that is not bucketed."""
        return self.table.sd.numBuckets if self.bucket_columns and (self.table.sd.numBuckets or 0) > 0 else 0

    @property
    def bucketing_version(self) -> int:
        return int(self.parameters.get("bucketing_version") or 1)

    def folder(self, partition: Partition) -> Folder:
        """Return the folder of a partition's rows."""
        keys = [key.name for key in self.table.partitionKeys]
        return Folder(partition.sd.location.rstrip("/"), make_partition_name(keys, partition.values), tuple(partition.values))
