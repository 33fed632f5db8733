"""The notification log as clients see it: read events, count them, report writes, forget old ones. Never decides the content of a message.

Source: Hive's ObjectStore.getNextNotification and getNotificationEventsCount, HMSHandler.fire_listener_event and
add_write_notification_log, and the cleaner of DbNotificationListener.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from copy import copy
from itertools import islice

from metastore.errors import MetaError, NoSuchObject
from metastore.idl import (
    FireEventRequest,
    InsertEventRequestData,
    NotificationEvent,
    NotificationEventRequest,
    NotificationEventsCountRequest,
    Partition,
    Table,
    WriteEventInfo,
    WriteNotificationLogRequest,
)
from metastore.listeners.events import AcidWrite, BatchAcidWrite, Event, Insert, Reload
from metastore.listeners.notifications import events_of
from metastore.rules.names import normalize
from metastore.service.call.context import Call, Metastore
from metastore.service.call.names import TableName, database_name
from metastore.service.catalog.partitions.partitions import get_partitions_by_names, partition_name
from metastore.service.catalog.tables.tables import find_table
from metastore.service.changes.change import change
from metastore.store.core.database import Session
from metastore.store.operations import notifications
from metastore.store.operations.notifications import BATCH, Filter


def _number(metastore: Metastore) -> None:
    """Give ids to committed events that have none. Without such events this costs one cheap read."""
    if metastore.database.read(notifications.pending):
        metastore.database.write(notifications.number)


def current_id(call: Call) -> int:
    """Return the id of the last event, 0 before the first."""
    return last_id(call.metastore)


def last_id(metastore: Metastore) -> int:
    """Return the id of the last event, 0 before the first; it needs no call."""
    found = metastore.database.read(notifications.last_id)
    return metastore.database.write(notifications.number) if found is None else found


def get_next(call: Call, request: NotificationEventRequest) -> list[NotificationEvent]:
    """Return the events after `lastEvent` that match the request, ascending by id, at most `maxEvents` and as the settings allow."""
    most = call.config.max_event_response
    if request.maxEvents is not None and 0 < request.maxEvents < most:
        most = request.maxEvents
    wanted = Filter(
        request.lastEvent or 0,
        catalog=_name(request.catName),
        database=_name(request.dbName),
        tables=_names(request.tableNames),
        types=request.eventTypeList or None,
        skipped=request.eventTypeSkipList or None,
    )
    _number(call.metastore)
    found = call.database.read(lambda session: notifications.find(session, wanted, most))
    events = (event for last, row in found for event in events_of(last, row) if event.eventId > wanted.after)
    return list(islice(events, most))


def count(call: Call, request: NotificationEventsCountRequest) -> int:
    """Return the number of events after `fromEventId`, up to `toEventId`, about a database (`*`: any) or about none; at most `limit`."""
    catalog, database = counted_database(call, request)
    wanted = Filter(
        request.fromEventId or 0,
        upto=request.toEventId,
        catalog=catalog,
        database=database,
        tables=_names(request.tableNames),
        with_unnamed=True,
    )
    _number(call.metastore)
    found = call.database.read(lambda session: notifications.count(session, wanted))
    return min(found, request.limit) if request.limit is not None and request.limit > 0 else found


def counted_database(call: Call, request: NotificationEventsCountRequest) -> tuple[str, str | None]:
    """Return catalog and database whose events a request counts, None for all of the catalog. MetaError where it names none."""
    if request.dbName is None:
        raise MetaError("get_notification_events_count needs dbName: * means all databases")
    catalog, database = database_name(request.dbName, request.catName, call.config.default_catalog)
    return catalog, None if database == "*" else database


def _name(name: str | None) -> str | None:
    return None if name is None else normalize(name)


def _names(names: Sequence[str] | None) -> list[str] | None:
    return [normalize(name) for name in names] if names else None


def fire_listener_event(call: Call, name: TableName, request: FireEventRequest) -> list[int]:
    """Notify listeners that a client wrote files into a table or its partitions, or read them again; return the ids of the events.

    NoSuchObject, MetaError.
    """
    data = request.data
    inserts: list[tuple[Sequence[str], InsertEventRequestData]] = []
    if data is not None and data.insertData is not None:
        inserts.append((request.partitionVals or [], data.insertData))
    elif data is not None and data.insertDatas is not None:
        for each in data.insertDatas:
            if each.partitionVal is None:
                raise MetaError(f"Partition values must be set when firing multiple insert events: one of {name} has none")
            inserts.append((each.partitionVal, each))
    elif data is None or data.refreshEvent is None:
        raise MetaError(f"event for {name} holds neither insertData nor insertDatas nor refreshEvent")
    table = find_table(call, name)
    if not inserts:
        return [] if data.refreshEvent is None else _report(call, [_reload(call, name, table, request)])
    for _, each in inserts:
        _check_files(name, each)
    found = _partitions(call, name, table, [values for values, _ in inserts])
    reported = [
        Insert(client=call.info, table=table, partition=_of(call, name, table, values, found), data=each) for values, each in inserts
    ]
    return _report(call, reported)


def _reload(call: Call, name: TableName, table: Table, request: FireEventRequest) -> Reload:
    """Return the event of a client that read a table or partitions again: the one that it names, or the existing ones of several."""
    one, several = request.partitionVals, request.batchPartitionValsForRefresh or []
    found = _partitions(call, name, table, [one] if one else several)
    if one:
        _of(call, name, table, one, found)
    seen = copy(table)
    seen.parameters = {**(table.parameters or {}), **(request.tblParams or {})}
    return Reload(client=call.info, table=seen, partitions=list(found.values()), refreshes=bool(request.data.refreshEvent))


def _report(call: Call, reported: Sequence[Event]) -> list[int]:
    """Notify all kinds of listeners of events that change nothing themselves, in one transaction."""
    listeners = call.listeners
    for event in reported:
        listeners.before(event)
    ids = call.database.write(lambda session: listeners.within(reported, session)) if listeners.transactional else []
    for event in reported:
        listeners.after(event, None)
    return ids


def _check_files(name: TableName, data: InsertEventRequestData) -> None:
    files, sums = data.filesAdded or [], data.filesAddedChecksum or []
    if sums and len(sums) != len(files):
        raise MetaError(f"Event about {name} names {len(files)} files and {len(sums)} checksums: send one for each file, or none")


def _partitions(call: Call, name: TableName, table: Table, values: Sequence[Sequence[str]]) -> Mapping[str, Partition]:
    """Return the partitions that exist, by name."""
    names = [partition_name(call, table, each) for each in values if each]
    if not names:
        return {}
    return {partition_name(call, table, each.values): each for each in get_partitions_by_names(call, name, names)}


def _of(call: Call, name: TableName, table: Table, values: Sequence[str] | None, found: Mapping[str, Partition]) -> Partition | None:
    if not values:
        return None
    wanted = partition_name(call, table, values)
    if wanted not in found:
        raise NoSuchObject(f"Partition {wanted} of {name} doesn't exist: add it before its files are reported")
    return found[wanted]


def add_write(call: Call, name: TableName, request: WriteNotificationLogRequest) -> None:
    """Record the files that an open transaction wrote into a table or a partition. NoSuchObject, MetaError."""
    _notify_writes(call, name, [request], batch=False)


def add_writes(call: Call, name: TableName, requests: Sequence[WriteNotificationLogRequest]) -> None:
    """Record the files that an open transaction wrote into partitions of one table. NoSuchObject, MetaError."""
    if requests:
        _notify_writes(call, name, requests, batch=True)


def _notify_writes(call: Call, name: TableName, requests: Sequence[WriteNotificationLogRequest], *, batch: bool) -> None:
    table = find_table(call, name)
    for request in requests:
        if request.fileInfo is None or request.txnId is None or request.writeId is None:
            raise MetaError(f"A write into {name} needs txnId, writeId and fileInfo: one of them was not sent")
        _check_files(name, request.fileInfo)
    found = _partitions(call, name, table, [request.partitionVals or [] for request in requests])
    writes = [
        AcidWrite(client=call.info, table=table, partition=_of(call, name, table, request.partitionVals, found), request=request)
        for request in requests
    ]
    with change(call, BatchAcidWrite(client=call.info, writes=writes) if batch else writes[0]) as current:
        if call.listeners.transactional:
            current.write(lambda session: None)


def writes(call: Call, transaction: int, database: str | None, table: str | None) -> list[WriteEventInfo]:
    """Return the files that a transaction wrote, as its writer reported; `*` or None stands for any database or table."""
    reported = call.database.read(lambda session: notifications.writes(session, transaction))
    wanted = [None if name in (None, "*") else _name(name) for name in (database, table)]
    found = [each for each in reported if wanted[0] in (None, each.database) and wanted[1] in (None, each.table)]
    return sorted(found, key=lambda each: (each.database, each.table))


def delete_old(metastore: Metastore, _: int | None = None) -> None:
    """Remove events that are too old or too many and the records of old transactions' writes, in small batches.

    Events get their ids first: readers that are too late see that something is missing.
    """
    _number(metastore)
    before = int(time.time() - metastore.config.event_time_to_live)
    keep = metastore.config.event_count_to_keep or None

    def events(session: Session) -> int:
        return notifications.delete_oldest(session, before, keep)

    def writes(session: Session) -> int:
        return notifications.delete_oldest_writes(session, before)

    for batch in (events, writes):
        while metastore.database.write(batch) == BATCH:
            pass
