"""Requests to the queue of compactions of the database `db`, and its answers."""

from metastore.idl import (
    CompactionInfoStruct,
    CompactionRequest,
    CompactionResponse,
    CompactionType,
    ShowCompactRequest,
    ShowCompactResponseElement,
)
from metastore.service.call.context import Call
from metastore.service.call.names import TableName
from metastore.service.compaction import compaction_workers as workers
from metastore.service.compaction import compactions

MAJOR, MINOR = CompactionType.MAJOR, CompactionType.MINOR
T = TableName("hive", "db", "t")


def ask(call: Call, table: str = "t", partition: str | None = None, kind: int = MAJOR, **options: object) -> CompactionResponse:
    return compactions.compact(
        call,
        CompactionRequest(dbname="db", tablename=table, partitionname=partition, type=kind, **options),  # type: ignore[arg-type]
    )


def shown(call: Call, **filters: object) -> list[ShowCompactResponseElement]:
    return compactions.show(call, ShowCompactRequest(**filters))  # type: ignore[arg-type]


def states(call: Call) -> dict[int, str]:
    return {each.id: each.state for each in shown(call)}  # type: ignore[misc]


def take(call: Call, worker: str = "w1", pool: str | None = None) -> CompactionInfoStruct:
    found = workers.find_next(call, worker, "4.0.1", pool)
    assert found is not None
    return found
