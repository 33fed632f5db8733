"""Methods of the notification log, and those with which clients report their own writes."""

from __future__ import annotations

from typing import Any

from metastore.idl import (
    CurrentNotificationEventId,
    FireEventResponse,
    GetAllWriteEventInfoRequest,
    NotificationEventResponse,
    NotificationEventsCountResponse,
    WriteEventInfo,
    WriteNotificationLogBatchResponse,
    WriteNotificationLogResponse,
)
from metastore.methods.forms import unpack
from metastore.methods.forms.entry import Handler
from metastore.service.call.context import Call
from metastore.service.operations import notifications


def _fire_listener_event(call: Call, args: Any) -> FireEventResponse:
    request = args.rqst
    name = unpack.table(call, request.dbName, request.tableName, request.catName)
    return FireEventResponse(eventIds=notifications.fire_listener_event(call, name, request))


def _add_write(call: Call, args: Any) -> WriteNotificationLogResponse:
    request = args.rqst
    notifications.add_write(call, unpack.table(call, request.db, request.table), request)
    return WriteNotificationLogResponse()


def _add_writes(call: Call, args: Any) -> WriteNotificationLogBatchResponse:
    request = args.rqst
    notifications.add_writes(call, unpack.table(call, request.db, request.table, request.catalog), request.requestList or [])
    return WriteNotificationLogBatchResponse()


def _writes(call: Call, args: Any) -> list[WriteEventInfo]:
    request: GetAllWriteEventInfoRequest = args.request
    return notifications.writes(call, unpack.required(call, request.txnId, "request.txnId"), request.dbName, request.tableName)


METHODS: dict[str, Handler] = {
    "get_next_notification": lambda call, args: NotificationEventResponse(events=notifications.get_next(call, args.rqst)),
    "get_current_notificationEventId": lambda call, args: CurrentNotificationEventId(eventId=notifications.current_id(call)),
    "get_notification_events_count": lambda call, args: NotificationEventsCountResponse(eventsCount=notifications.count(call, args.rqst)),
    "fire_listener_event": _fire_listener_event,
    "add_write_notification_log": _add_write,
    "add_write_notification_log_in_batch": _add_writes,
    "get_all_write_event_info": _writes,
}
