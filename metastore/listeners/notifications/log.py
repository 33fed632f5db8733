"""Write the events of a change into the notification log, inside the change's transaction. Never looks at what is in the log.

One statement for a change, however many events it has. An event has no id until a reader asks: only the events of
`fire_listener_event`, whose reply tells their ids, are numbered at once.
"""

from __future__ import annotations

import time
from base64 import b64encode
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import orjson
from isal import igzip

from metastore.idl import NotificationEvent
from metastore.listeners.contract import TransactionalListener
from metastore.listeners.events import AcidWrite, BatchAcidWrite, Event, Insert
from metastore.listeners.notifications.messages import Notification, files, of
from metastore.listeners.notifications.thrift_json import StructWriter
from metastore.rules.partition_names import make_partition_name
from metastore.store import notifications
from metastore.store.database import Session

if TYPE_CHECKING:
    from metastore.config import Config

PLAIN, GZIP = "json-0.2", "gzip(json-2.0)"
LEVEL = 0
"""Of ISA-L's compression: a message of 11 kB takes 10 us and becomes 2.0 kB; zlib's level 1 takes 42 us for 1.8 kB."""

SHORT = 1000
"""Characters of a message that is stored plain whatever its format, and gets it when it is read: transactions tell little, and often."""


class NotificationLog(TransactionalListener):
    """Writes the rows of `notifications`, and of `write_notifications` for the files that transactions write."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self._format = PLAIN if config.event_message_format in PLAIN_NAMES else GZIP

    def within(self, event: Event, session: Session) -> None:
        """Write what one change tells."""
        self.within_all([event], session)

    def within_all(self, changes: Sequence[Event], session: Session) -> Sequence[int]:
        """Write what changes of one transaction tell; return the ids of those that are numbered at once."""
        writes = [write for event in changes for write in _writes(event)]
        if writes:
            notifications.insert_writes(session, self._write_rows(writes))
        told = [each for event in changes for each in of(event)]
        if not told:
            return ()
        rows = self._rows(told, SHORT)
        if isinstance(changes[0], Insert):
            return notifications.insert_numbered(session, rows)
        notifications.insert(session, rows)
        return ()

    def plain_row(self, event: Event) -> notifications.New:
        """Return the row of a change that has one, its message plain: a statement may put into it what it alone knows."""
        (row,) = self._rows(list(of(event)), None)
        return row

    def _rows(self, told: Sequence[Notification], short: int | None) -> list[notifications.New]:
        now = int(time.time())
        head = {"server": "", "servicePrincipal": "", "timestamp": now}
        return [
            notifications.New(
                now, each.type, each.catalog, each.database, each.table, self._message({**head, **each.fields}, short), self._format
            )
            for each in told
        ]

    def _message(self, fields: dict[str, Any], short: int | None) -> str:
        text = orjson.dumps(fields)
        return text.decode() if self._format == PLAIN or short is None or len(text) <= short else _compressed(text)

    def _write_rows(self, writes: Sequence[AcidWrite]) -> list[notifications.NewWrite]:
        now = int(time.time())
        writer = StructWriter()
        rows = []
        for write in writes:
            table, partition, request = write.table, write.partition, write.request
            keys = [key.name for key in table.partitionKeys]
            name = "" if partition is None else make_partition_name(keys, partition.values, self.config.default_partition_name)
            body = {
                "table": writer.text(table), "partition": None if partition is None else writer.partition(partition),
                "files": files(request.fileInfo),
            }
            rows.append(notifications.NewWrite(
                request.txnId, table.catName or "", table.dbName, table.tableName, name, request.writeId, now, orjson.dumps(body).decode(),
            ))
        return rows


def in_its_format(event: NotificationEvent) -> NotificationEvent:
    """Give a stored event's message the format that the event names."""
    if event.messageFormat == GZIP and event.message is not None and event.message.startswith("{"):
        event.message = _compressed(event.message.encode())
    return event


def _compressed(text: bytes) -> str:
    return b64encode(igzip.compress(text, LEVEL, mtime=0)).decode()


PLAIN_NAMES = frozenset({
    PLAIN, "org.apache.hadoop.hive.metastore.messaging.json.JSONMessageEncoder",
    "org.apache.hadoop.hive.metastore.messaging.json.JSONMessageFactory",
})
"""Values of the setting for plain JSON: our name, Hive 4's and Hive 3's class."""


def _writes(event: Event) -> Sequence[AcidWrite]:
    if isinstance(event, BatchAcidWrite):
        return event.writes
    return [event] if isinstance(event, AcidWrite) else ()
