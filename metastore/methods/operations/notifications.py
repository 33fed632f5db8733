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
from metastore.methods.forms.entry import changes, reads
from metastore.methods.forms.rules import OPEN, WRITES, MethodRule, found_by, needs, on_table
from metastore.methods.interface import variants
from metastore.methods.transactions import transaction_rules as rules
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


METHODS = (
    reads(
        "get_next_notification",
        lambda call, args: NotificationEventResponse(events=notifications.get_next(call, args.rqst)),
        MethodRule(around=rules.next_events, shows="events of databases and tables that are shown; the others to `admin`"),
    ),
    reads("get_current_notificationEventId", lambda call, args: CurrentNotificationEventId(eventId=notifications.current_id(call)), OPEN),
    reads(
        "get_notification_events_count",
        lambda call, args: NotificationEventsCountResponse(eventsCount=notifications.count(call, args.rqst)),
        needs(
            found_by("any privilege on the database, the role `admin` for all", rules.counts_events),
            around=rules.counted_one_by_one,
            shows="the number of events of databases and tables that are shown",
        ),
    ),
    changes(
        "fire_listener_event",
        _fire_listener_event,
        needs(on_table(WRITES, "rqst.dbName", "rqst.tableName", "rqst.catName")),
        old_request=variants.EVENT_OF_2_3,
    ),
    changes(
        "add_write_notification_log",
        _add_write,
        needs(on_table(WRITES, "rqst.db", "rqst.table"), rules.own_transactions(lambda args: [args.rqst.txnId])),
    ),
    changes(
        "add_write_notification_log_in_batch",
        _add_writes,
        needs(
            on_table(WRITES, "rqst.db", "rqst.table", "rqst.catalog"),
            rules.own_transactions(lambda args: [each.txnId for each in args.rqst.requestList or () if each is not None]),
        ),
    ),
    reads("get_all_write_event_info", _writes, MethodRule(keep=rules.kept_writes, shows="writes to tables that are shown")),
)
