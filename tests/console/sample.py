"""One of each object that the console shows: tables of each kind, partitions, waiting locks, compactions in each state, events."""

from __future__ import annotations

from metastore.client import Client
from metastore.idl import (
    AddPrimaryKeyRequest,
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    CompactionInfoStruct,
    CompactionRequest,
    CompactionType,
    Database,
    DataOperationType,
    FieldSchema,
    LockComponent,
    LockLevel,
    LockRequest,
    LockType,
    LongColumnStatsData,
    OpenTxnRequest,
    Partition,
    SerDeInfo,
    SQLPrimaryKey,
    StorageDescriptor,
    StringColumnStatsData,
    Table,
)

EVIL = "<script>alert(1)</script>"


def descriptor(location: str | None = None) -> StorageDescriptor:
    return StorageDescriptor(
        cols=[FieldSchema(name="id", type="bigint", comment="the key"), FieldSchema(name="amount", type="decimal(10,2)")],
        location=location,
        inputFormat="org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
        outputFormat="org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat",
        serdeInfo=SerDeInfo(serializationLib="org.apache.hadoop.hive.ql.io.orc.OrcSerde", parameters={"serialization.format": "1"}),
        parameters={},
    )


def table(database: str, name: str, kind: str = "MANAGED_TABLE", keys: list[FieldSchema] | None = None, **parameters: str) -> Table:
    return Table(
        dbName=database, tableName=name, owner="alice", sd=descriptor(), partitionKeys=keys or [], parameters=parameters, tableType=kind
    )  # fmt: skip


def lock_on(client: Client, name: str, kind: int, transaction: int, user: str = "bob") -> int:
    """Ask for a lock on a table of the database `sales`; return its id."""
    writes = kind != LockType.SHARED_READ
    component = LockComponent(
        type=kind, level=LockLevel.TABLE, dbname="sales", tablename=name, isTransactional=True,
        operationType=DataOperationType.UPDATE if writes else DataOperationType.SELECT,
    )  # fmt: skip
    request = LockRequest(
        component=[component], txnid=transaction, user=user, hostname=f"{user}.example.org", agentInfo="a query", zeroWaitReadEnabled=False
    )
    return client.lock(request).lockid


def open_transaction(client: Client, user: str = "bob") -> int:
    request = OpenTxnRequest(num_txns=1, user=user, hostname=f"{user}.example.org", agentInfo="a query")
    return client.open_txns(request).txn_ids[0]


def fill(client: Client) -> None:
    """Make all objects of the sample."""
    client.create_database(Database(name="sales", description="What was sold", ownerName="alice"))
    client.create_database(Database(name="evil", description=EVIL))
    client.create_table(table("sales", "orders", transactional="true", comment="Every order"))
    client.create_table(table("sales", "customers"))
    client.create_table(table("sales", "days", keys=[FieldSchema(name="ds", type="string"), FieldSchema(name="hr", type="int")]))
    client.create_table(
        table(
            "sales", "lake", "EXTERNAL_TABLE", EXTERNAL="TRUE", table_type="ICEBERG", metadata_location="file:/x/v2.metadata.json",
            **{"current-snapshot-id": "42", "snapshot-count": "7"},
        )
    )  # fmt: skip
    view = Table(
        dbName="sales", tableName="big_orders", owner="alice", tableType="VIRTUAL_VIEW", viewOriginalText="select 1", parameters={}
    )
    client.create_table(view)
    evil = table("evil", "evil", comment=EVIL, **{EVIL: EVIL})
    evil.sd.cols[0].comment = EVIL
    evil.owner = "zoe"
    client.create_table(evil)
    days = [
        Partition(values=[f"2026-01-{day:02}", str(hour)], dbName="sales", tableName="days", sd=descriptor(), parameters={"numRows": "5"})
        for day in range(1, 8)
        for hour in range(24)
    ]
    for each in days:
        each.sd.location = None  # type: ignore[assignment]
    client.add_partitions(days)
    _statistics(client)
    key = SQLPrimaryKey(table_db="sales", table_name="customers", column_name="id", key_seq=1, pk_name="pk", enable_cstr=True)
    client.add_primary_key(AddPrimaryKeyRequest(primaryKeyCols=[key]))
    _compactions(client)
    _locks(client)


def _statistics(client: Client) -> None:
    numbers = LongColumnStatsData(lowValue=1, highValue=1000, numNulls=3, numDVs=900)
    texts = StringColumnStatsData(maxColLen=9, avgColLen=4.5, numNulls=0, numDVs=12)
    found = [
        ColumnStatisticsObj(colName="id", colType="bigint", statsData=ColumnStatisticsData(longStats=numbers)),
        ColumnStatisticsObj(colName="amount", colType="string", statsData=ColumnStatisticsData(stringStats=texts)),
    ]
    whole = ColumnStatisticsDesc(isTblLevel=True, dbName="sales", tableName="customers")
    client.update_table_column_statistics(ColumnStatistics(statsDesc=whole, statsObj=found, engine="hive"))
    part = ColumnStatisticsDesc(isTblLevel=False, dbName="sales", tableName="days", partName="ds=2026-01-01/hr=1")
    client.update_partition_column_statistics(ColumnStatistics(statsDesc=part, statsObj=found[:1], engine="hive"))


def _compactions(client: Client) -> None:
    """Leave a failed compaction and a waiting one."""
    for name, partition in (("orders", None), ("days", "ds=2025-12-31/hr=1")):
        request = CompactionRequest(dbname="sales", tablename=name, partitionname=partition, type=CompactionType.MAJOR, initiatorId="test")
        client.compact2(request)
    taken: CompactionInfoStruct = client.find_next_compact("worker-1").ci
    taken.errorMessage = f"disk full {EVIL}"
    client.mark_failed(taken)


def _locks(client: Client) -> None:
    """Let a transaction of bob block carol and dave, and carol's block eve. A lock without a transaction blocks nobody."""
    blocker, carol, dave, eve = (open_transaction(client, user) for user in ("bob", "carol", "dave", "eve"))
    lock_on(client, "orders", LockType.EXCLUSIVE, blocker, "bob")
    lock_on(client, "customers", LockType.EXCLUSIVE, carol, "carol")
    lock_on(client, "orders", LockType.SHARED_READ, carol, "carol")
    lock_on(client, "orders", LockType.SHARED_READ, dave, "dave")
    lock_on(client, "customers", LockType.SHARED_READ, eve, "eve")
    lock_on(client, "days", LockType.SHARED_READ, 0, "frank")
