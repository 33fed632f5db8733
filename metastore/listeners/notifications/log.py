"""Write the events of a change into the notification log, inside the change's transaction, and make messages from its rows.

One statement for a change, however many events it has. An event has no id until a reader asks: only the events of
`fire_listener_event`, whose reply holds their ids, are numbered at once.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import orjson

from metastore.idl import NotificationEvent
from metastore.listeners.contract import TransactionalListener
from metastore.listeners.events import AcidWrite, BatchAcidWrite, Event, Insert, Reload
from metastore.listeners.notifications.messages import Notification, files, of
from metastore.listeners.notifications.packing import ONE, compressed, decompressed, pack, subject, unpack
from metastore.listeners.notifications.thrift_json import StructWriter
from metastore.rules.values.partition_names import make_partition_name
from metastore.store.core.database import Session
from metastore.store.operations import notifications

if TYPE_CHECKING:
    from metastore.config import Config

PLAIN, GZIP = "json-0.2", "gzip(json-2.0)"
SHORT = 1000
"""The largest length in bytes of a message that is stored plain in any format, and encoded when it is read: messages of transactions are
short and frequent."""


class NotificationLog(TransactionalListener):
    """Writes the rows of `notifications`, and of `write_notifications` for the files that transactions write."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self._format = PLAIN if config.event_message_format in PLAIN_NAMES else GZIP

    def within(self, event: Event, session: Session) -> None:
        """Write the events of one change."""
        self.within_all([event], session)

    def within_all(self, changes: Sequence[Event], session: Session) -> Sequence[int]:
        """Write the events of one transaction's changes; return the ids of those that are numbered at once."""
        writes = [write for event in changes for write in _writes(event)]
        if writes:
            notifications.insert_writes(session, self._write_rows(writes))
        rows = [row for event in changes for row in self._rows(event, SHORT)]
        if not rows:
            return ()
        if isinstance(changes[0], Insert | Reload):
            return notifications.insert_numbered(session, rows)
        notifications.insert(session, rows)
        return ()

    def plain_row(self, event: Event) -> notifications.LogRow:
        """Return the only row of a change. New ids in it are not compressed: a statement may put in ids that only the database knows."""
        (row,) = self._rows(event, None)
        return row

    def _rows(self, event: Event, short: int | None) -> list[notifications.LogRow]:
        now = int(time.time())
        if packed := pack(event):
            about = subject(event)
            return [self._row(now, about, payload, count) for count, payload in packed]
        return [self._row(now, each, self._message(_with_head(now, each.fields), short)) for each in of(event)]

    def _row(self, now: int, about: Notification, message: str, count: int = 1) -> notifications.LogRow:
        return notifications.LogRow(now, about.type, about.catalog, about.database, about.table, message, self._format, count)

    def _message(self, fields: dict[str, Any], short: int | None) -> str:
        text = orjson.dumps(fields)
        return text.decode() if self._format == PLAIN or short is None or len(text) <= short else compressed(text)

    def _write_rows(self, writes: Sequence[AcidWrite]) -> list[notifications.NewWrite]:
        now = int(time.time())
        writer = StructWriter()
        rows = []
        for write in writes:
            table, partition, request = write.table, write.partition, write.request
            keys = [key.name for key in table.partitionKeys]
            name = "" if partition is None else make_partition_name(keys, partition.values, self.config.default_partition_name)
            body = {
                "table": writer.text(table),
                "partition": None if partition is None else writer.partition(partition),
                "files": files(request.fileInfo),
            }
            rows.append(
                notifications.NewWrite(
                    request.txnId,
                    table.catName or "",
                    table.dbName,
                    table.tableName,
                    name,
                    request.writeId,
                    now,
                    orjson.dumps(body).decode(),
                )
            )
        return rows


def events_of(last: int, row: notifications.LogRow) -> Iterator[NotificationEvent]:
    """Yield the events of a row, whose last event has the id `last`. Their messages are in the format that the row names."""
    if row.events == 1 and not (row.message or "").startswith(ONE):
        is_short = row.message is not None and row.format == GZIP and row.message.startswith("{")
        yield _event(last, row, compressed(row.message.encode()) if is_short else row.message)
        return
    for id_, packed in enumerate(of(unpack(row.type, row.message)), last - row.events + 1):
        text = orjson.dumps(_with_head(row.time, packed.fields))
        yield _event(id_, row, text.decode() if row.format == PLAIN else compressed(text))


def message_text(event: NotificationEvent) -> str:
    """Return an event's message as JSON: decompressed, if its format is a compressed one."""
    text = event.message or ""
    return decompressed(text).decode() if event.messageFormat == GZIP and not text.startswith("{") else text


def _event(id_: int, row: notifications.LogRow, message: str | None) -> NotificationEvent:
    return NotificationEvent(
        eventId=id_,
        eventTime=row.time,
        eventType=row.type,
        dbName=row.database,
        tableName=row.table,
        message=message,
        messageFormat=row.format,
        catName=row.catalog,
    )


def _with_head(now: int, fields: Mapping[str, Any]) -> dict[str, Any]:
    return {"server": "", "servicePrincipal": "", "timestamp": now, **fields}


PLAIN_NAMES = frozenset(
    {
        PLAIN,
        "org.apache.hadoop.hive.metastore.messaging.json.JSONMessageEncoder",
        "org.apache.hadoop.hive.metastore.messaging.json.JSONMessageFactory",
    }
)
"""Values of the setting for plain JSON: our name, Hive 4's and Hive 3's class."""


def _writes(event: Event) -> Sequence[AcidWrite]:
    if isinstance(event, BatchAcidWrite):
        return event.writes
    return [event] if isinstance(event, AcidWrite) else ()
