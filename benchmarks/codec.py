"""Measure the codec beside thriftpy2's own protocol, which checks nothing: CPU microseconds for a message, the median of many rounds.

The times of the pure codec are printed with their ratio to thriftpy2's, which is independent of the machine and its load.

python -m benchmarks.codec
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from typing import Any

from thriftpy2.protocol import TCyBinaryProtocol
from thriftpy2.transport import TCyMemoryBuffer

from metastore.idl import (
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    CommitTxnRequest,
    FieldSchema,
    GetTableRequest,
    LockComponent,
    LockRequest,
    LongColumnStatsData,
    Partition,
    SerDeInfo,
    SetPartitionsStatsRequest,
    SkewedInfo,
    StorageDescriptor,
    StringColumnStatsData,
    Table,
    service,
)
from metastore.wire import codec
from metastore.wire.codec import pure_binary, pure_encoder
from metastore.wire.messages.protocol import Dialect, write_message
from metastore.wire.sockets.transport import CHUNK, Feed

DIALECT = Dialect("binary", framed=False)
COLUMNS = [FieldSchema(f"column_{number}", "string" if number % 2 else "bigint", "a comment on it") for number in range(20)]
LIMIT = 2**31 - 1
TARGET_SECONDS = 0.02
"""Length of one round; a short message is read many times in it."""
ROUNDS = 20


def partition(number: int) -> Partition:
    """Return a partition as Spark sends it."""
    sd = StorageDescriptor(
        cols=COLUMNS,
        location=f"file:/warehouse/db/t/day=2024-01-{number:04d}",
        inputFormat="org.apache.hadoop.mapred.TextInputFormat",
        outputFormat="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
        compressed=False,
        numBuckets=-1,
        serdeInfo=SerDeInfo(
            name="s", serializationLib="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe", parameters={"serialization.format": "1"}
        ),
        bucketCols=[],
        sortCols=[],
        parameters={},
        skewedInfo=SkewedInfo(skewedColNames=[], skewedColValues=[], skewedColValueLocationMaps={}),
        storedAsSubDirectories=False,
    )
    return Partition(
        values=[f"2024-01-{number:04d}"],
        dbName="db",
        tableName="t",
        createTime=1700000000,
        lastAccessTime=0,
        sd=sd,
        parameters={"numFiles": str(number % 7), "totalSize": str(number * 31), "transient_lastDdlTime": "1700000000"},
        catName="hive",
        writeId=-1,
    )


def of_column(column: FieldSchema, number: int) -> ColumnStatisticsData:
    """Return statistics that no other partition has."""
    if column.type == "bigint":
        return ColumnStatisticsData(longStats=LongColumnStatsData(lowValue=number % 100, highValue=number, numNulls=number, numDVs=number))
    return ColumnStatisticsData(stringStats=StringColumnStatsData(maxColLen=number % 60, avgColLen=number / 3, numNulls=3, numDVs=number))


def of_partition(number: int, columns: int) -> ColumnStatistics:
    """Return the statistics of the first columns of a partition."""
    found = [ColumnStatisticsObj(colName=each.name, colType=each.type, statsData=of_column(each, number)) for each in COLUMNS[:columns]]
    description = ColumnStatisticsDesc(isTblLevel=False, dbName="db", tableName="t", partName=f"day=2024-01-{number:04d}", catName="hive")
    return ColumnStatistics(statsDesc=description, statsObj=found)


TABLE = Table(
    tableName="t",
    dbName="db",
    owner="a",
    createTime=0,
    lastAccessTime=0,
    retention=0,
    sd=partition(1).sd,
    partitionKeys=[FieldSchema("day", "string")],
    parameters={"a": "b"},
    tableType="MANAGED_TABLE",
)
LOCKED = LockComponent(type=3, level=2, dbname="d", tablename="t", operationType=1, isTransactional=True)


def messages() -> dict[str, tuple[str, Any]]:
    """Return messages by their descriptions, each as (method, its arguments or result)."""
    found: dict[str, tuple[str, Any]] = {}
    for count in (10, 100, 1000):
        arguments = service.alter_partitions_args(db_name="db", tbl_name="t", new_parts=[partition(number) for number in range(count)])
        found[f"alter_partitions, 20 columns x {count}"] = "alter_partitions", arguments
    for columns in (1, 20):
        request = SetPartitionsStatsRequest(colStats=[of_partition(number, columns) for number in range(100)])
        found[f"set_aggr_stats_for, {columns} columns x 100"] = "set_aggr_stats_for", service.set_aggr_stats_for_args(request=request)
    found["create_table, 20 columns"] = "create_table", service.create_table_args(tbl=TABLE)
    request = GetTableRequest(dbName="db", tblName="t", catName="hive")
    found["get_table_req"] = "get_table_req", service.get_table_req_args(req=request)
    request = LockRequest(component=[LOCKED], txnid=7, user="u", hostname="h", agentInfo="x")
    found["lock"] = "lock", service.lock_args(rqst=request)
    found["get_table's reply"] = "get_table", service.get_table_result(success=TABLE)
    replied = service.get_partitions_result(success=[partition(number) for number in range(100)])
    found["get_partitions' reply, 20 columns x 100"] = "get_partitions", replied
    found["commit_txn"] = "commit_txn", service.commit_txn_args(rqst=CommitTxnRequest(txnid=7))
    return found


def decoded(data: bytes, cls: type[Any], decoder: Any) -> Any:
    """Read a message as a connection does, in pieces like those from a socket."""
    pieces = iter([data[at : at + CHUNK] for at in range(0, len(data), CHUNK)])
    return decoder(Feed(lambda _: next(pieces, b"")), LIMIT, LIMIT).read(lambda *_: cls)


def unchecked(data: bytes, cls: type[Any]) -> Any:
    """Decode a message with thriftpy2."""
    protocol: Any = TCyBinaryProtocol(TCyMemoryBuffer(data))
    protocol.read_message_begin()
    return protocol.read_struct(cls())


def written(method: str, body: Any) -> bytes:
    """Encode a message with thriftpy2."""
    buffer = TCyMemoryBuffer()
    protocol: Any = TCyBinaryProtocol(buffer)
    protocol.write_message_begin(method, 1, 7)
    protocol.write_struct(body)
    found: bytes = buffer.getvalue()
    return found


def repetitions(work: Callable[[], Any]) -> int:
    """Return the number of times that some work is done in a round."""
    started = time.process_time()
    work()
    return max(1, int(TARGET_SECONDS / max(time.process_time() - started, 1e-6)))


def measured(works: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Return the CPU microseconds of each work. In each round all are done in turn."""
    times = {name: repetitions(work) for name, work in works.items()}
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(ROUNDS):
        for name, work in works.items():
            gc.collect()
            started = time.process_time()
            for _ in range(times[name]):
                work()
            seconds[name].append((time.process_time() - started) / times[name])
    return {name: statistics.median(each) * 1e6 for name, each in seconds.items()}


def main() -> None:
    """Print one line for each message."""
    gc.set_threshold(50_000, 20, 50)  # as the server has it
    compiled = codec.DECODERS["binary"]
    print(f"{codec.IMPLEMENTATION} codec; CPU microseconds")
    print("| message | bytes | decode: thriftpy2, unchecked | pure | times | this | encode: thriftpy2 | pure | times | this |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name, (method, body) in messages().items():
        cls, data = type(body), written(method, body)
        assert decoded(data, cls, compiled) == decoded(data, cls, pure_binary.FastBinaryDecoder) == body
        assert write_message(DIALECT, method, 1, 7, body) == data
        works = {
            "unchecked": lambda data=data, cls=cls: unchecked(data, cls),
            "pure": lambda data=data, cls=cls: decoded(data, cls, pure_binary.FastBinaryDecoder),
            "this": lambda data=data, cls=cls: decoded(data, cls, compiled),
            "written": lambda method=method, body=body: written(method, body),
            "pure encoded": lambda method=method, body=body: pure_encoder.encode_binary(method, 1, 7, body, False),
            "encoded": lambda method=method, body=body: write_message(DIALECT, method, 1, 7, body),
        }
        found = measured(works)
        times = {"pure": found["pure"] / found["unchecked"], "pure encoded": found["pure encoded"] / found["written"]}
        cells = [f"{found[each]:,.0f}" + (f" | {times[each]:.1f}" if each in times else "") for each in works]
        print(f"| {name} | {len(data):,} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
