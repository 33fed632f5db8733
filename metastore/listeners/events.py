"""Events for listeners: one frozen class per kind of change. An event never changes after it was made.

Structs inside an event are the interface's (`metastore.idl`); listeners must not change them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from metastore.idl import (
    Catalog,
    ColumnStatistics,
    Database,
    DataConnector,
    Function,
    InsertEventRequestData,
    ISchema,
    Partition,
    SchemaVersion,
    Table,
    TxnToWriteId,
    WriteNotificationLogRequest,
)


@dataclass(frozen=True, slots=True)
class ClientInfo:
    """The origin of a call: the connection's address, the user for whom it acts, the user's groups, the method, and the kind of login."""

    address: str
    user: str | None
    groups: tuple[str, ...]
    method: str
    mechanism: str = ""
    """"" for a client without a login, whose user is set by `set_ugi`."""
    real_user: str | None = None
    """The user who logged in, where that is not `user`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Base of all events."""

    client: ClientInfo
    environment: Mapping[str, str] = field(default_factory=dict)
    """Properties of the request's environment context."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateCatalog(Event):
    catalog: Catalog


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterCatalog(Event):
    before: Catalog
    after: Catalog


@dataclass(frozen=True, slots=True, kw_only=True)
class DropCatalog(Event):
    catalog: Catalog


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadDatabase(Event):
    database: Database


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateDatabase(Event):
    database: Database


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterDatabase(Event):
    before: Database
    after: Database


@dataclass(frozen=True, slots=True, kw_only=True)
class DropDatabase(Event):
    database: Database


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateDataConnector(Event):
    connector: DataConnector


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterDataConnector(Event):
    before: DataConnector
    after: DataConnector


@dataclass(frozen=True, slots=True, kw_only=True)
class DropDataConnector(Event):
    connector: DataConnector


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadTable(Event):
    table: Table


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTable(Event):
    table: Table


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterTable(Event):
    before: Table
    after: Table
    truncates: bool = False
    """Whether the data is deleted and nothing else is changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DropTable(Event):
    table: Table
    delete_data: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AddPartitions(Event):
    """After a call with `ifNotExists`, a success event holds the added partitions and a failure event the existing ones."""

    table: Table
    partitions: Sequence[Partition]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterPartitions(Event):
    """`before` and `after` have the same order; a rename shows in their values."""

    table: Table
    before: Sequence[Partition]
    after: Sequence[Partition]
    truncates: bool = False
    """Whether the data is deleted and nothing else is changed, as in `AlterTable`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DropPartitions(Event):
    table: Table
    partitions: Sequence[Partition]
    delete_data: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateFunction(Event):
    function: Function


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterFunction(Event):
    before: Function
    after: Function


@dataclass(frozen=True, slots=True, kw_only=True)
class DropFunction(Event):
    function: Function


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSchema(Event):
    schema: ISchema


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterSchema(Event):
    before: ISchema
    after: ISchema


@dataclass(frozen=True, slots=True, kw_only=True)
class DropSchema(Event):
    schema: ISchema


@dataclass(frozen=True, slots=True, kw_only=True)
class AddSchemaVersion(Event):
    version: SchemaVersion


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterSchemaVersion(Event):
    """The state or the SerDe of a schema version was changed."""

    before: SchemaVersion
    after: SchemaVersion


@dataclass(frozen=True, slots=True, kw_only=True)
class DropSchemaVersion(Event):
    version: SchemaVersion


@dataclass(frozen=True, slots=True, kw_only=True)
class AddConstraints(Event):
    """`constraints` are structs such as SQLPrimaryKey, one for each column of each constraint."""

    table: Table
    constraints: Sequence[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class DropConstraint(Event):
    table: Table
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateStatistics(Event):
    """Column statistics were written: of the table, or of the partitions that each `statsDesc` names."""

    table: Table
    statistics: Sequence[ColumnStatistics]
    data: Sequence[Sequence[str]] = ()
    """For each of `statistics` the ColumnStatisticsData of its columns in turn, in Thrift's binary protocol as base64, as they are stored.

    Before the change, it is empty for partitions.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteStatistics(Event):
    """Column statistics were deleted: the table's if `partitions` is empty, and of all columns if `columns` is empty."""

    table: Table
    partitions: Sequence[str]
    columns: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Insert(Event):
    """A client's report that it wrote files into a table or a partition (`fire_listener_event`)."""

    table: Table
    partition: Partition | None
    data: InsertEventRequestData


@dataclass(frozen=True, slots=True, kw_only=True)
class Reload(Event):
    """A client's notice that caches of a table, or of some of its partitions, should be read again (`fire_listener_event`)."""

    table: Table
    """The table, with the parameters of the client's request added to its own."""
    partitions: Sequence[Partition]
    """Empty for the table as a whole."""
    refreshes: bool
    """Whether the client refreshed its cache; otherwise it dropped its cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTransactions(Event):
    """The transactions that one call opened; `type` is a TxnType of the interface."""

    transactions: Sequence[int]
    type: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitTransaction(Event):
    transaction: int
    type: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortTransactions(Event):
    """Aborted transactions, without read-only ones: listeners are not notified of these.

    `databases` are the names of the databases to which a transaction wrote. A transaction without writes may be missing in it.
    """

    transactions: Sequence[int]
    databases: Mapping[int, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocateWriteIds(Event):
    """New write ids of one table, ascending by transaction; existing ones are not notified again."""

    catalog: str
    database: str
    table: str
    transactions: Sequence[int]
    write_ids: Sequence[int]

    @property
    def allocated(self) -> list[TxnToWriteId]:
        """The write ids by transaction, as structs."""
        return [TxnToWriteId(txnId=id_, writeId=number) for id_, number in zip(self.transactions, self.write_ids, strict=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class AcidWrite(Event):
    """A client's report of files that its open transaction wrote into a table or a partition (`add_write_notification_log`)."""

    table: Table
    partition: Partition | None
    request: WriteNotificationLogRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchAcidWrite(Event):
    """A client's report of files that its open transaction wrote into partitions of one table (`add_write_notification_log_in_batch`)."""

    writes: Sequence[AcidWrite]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitCompaction(Event):
    """A compaction's transaction is committed; `type` is a CompactionType of the interface."""

    transaction: int
    compaction: int
    type: int
    catalog: str
    database: str
    table: str
    partition: str | None


@dataclass(frozen=True, slots=True)
class FunctionEnd:
    """The end of a call. `object` names its object as the log does, "" without one."""

    client: ClientInfo
    object: str
    error: Exception | None

    @property
    def success(self) -> bool:
        """Whether the call returned without an error."""
        return self.error is None
