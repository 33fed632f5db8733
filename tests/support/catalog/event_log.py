"""The notification log for tests: its events, their messages, and transactions that add some."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Mapping
from typing import Any

import orjson

from metastore.idl import (
    FireEventRequest,
    FireEventRequestData,
    InsertEventRequestData,
    NotificationEvent,
    NotificationEventRequest,
    WriteNotificationLogRequest,
)
from metastore.service.call.context import Call
from metastore.service.call.names import TableName
from metastore.service.operations import notifications
from tests.support.catalog.catalog import add_partitions, make_table


def events(call: Call, after: int = 0, **wanted: Any) -> list[NotificationEvent]:
    return notifications.get_next(call, NotificationEventRequest(lastEvent=after, **wanted))


def message(event: NotificationEvent) -> dict[str, Any]:
    text = gzip.decompress(base64.b64decode(event.message)) if event.messageFormat == "gzip(json-2.0)" else event.message
    found: dict[str, Any] = orjson.loads(text)
    return found


def newest(call: Call) -> tuple[str, Mapping[str, Any]]:
    """Return type and message of the last event."""
    event = events(call)[-1]
    return event.eventType, message(event)


def types(call: Call, after: int = 0) -> list[str]:
    return [event.eventType for event in events(call, after)]


def partitioned(call: Call, *values: str) -> TableName:
    name = make_table(call, "t", keys=[("k", "string")])
    add_partitions(call, name, [[value] for value in values])
    return name


def fire(values: list[str] | None = None, *several: list[str] | None, **data: Any) -> FireEventRequest:
    given = InsertEventRequestData(filesAdded=["file:/f"], replace=True, **data)
    if several:
        datas = [InsertEventRequestData(filesAdded=["file:/f"], partitionVal=each) for each in several]
        return FireEventRequest(successful=True, data=FireEventRequestData(insertDatas=datas), dbName="default", tableName="t")
    return FireEventRequest(
        successful=True,
        data=FireEventRequestData(insertData=given),
        dbName="default",
        tableName="t",
        partitionVals=values,
    )


def written(transaction: int, *files: str, values: list[str] | None = None) -> WriteNotificationLogRequest:
    return WriteNotificationLogRequest(
        txnId=transaction,
        writeId=4,
        db="default",
        table="t",
        partitionVals=values,
        fileInfo=InsertEventRequestData(filesAdded=list(files), subDirectoryList=["delta_4_4"] * len(files)),
    )
