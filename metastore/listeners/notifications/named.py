"""Read from an event's message the tables that it names beside its own: the old name of a rename, and the parents of foreign keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import orjson

from metastore.idl import NotificationEvent, SQLForeignKey, Table
from metastore.listeners.notifications.log import message_text

KINDS = frozenset({"ALTER_TABLE", "ADD_FOREIGNKEY"})
"""Types of events that may name other tables."""


class NamedTable(NamedTuple):
    """A table that a message names, by its catalog, database and name."""

    catalog: str | None
    database: str
    table: str
    was_own: bool = False
    """Whether it is the old name of the event's own table, whose owner is then in the message."""
    owner: str | None = None
    owner_type: int | None = None


def named_beside(event: NotificationEvent) -> Iterator[NamedTable]:
    """Yield the tables that an event's message names and the event does not."""
    if event.eventType not in KINDS or not event.message:
        return
    message = orjson.loads(message_text(event))
    if event.eventType == "ALTER_TABLE":
        old = message.get("db") or "", message.get("table") or ""
        if old != (event.dbName, event.tableName):
            before = orjson.loads(message.get("tableObjBeforeJson") or "{}")
            yield NamedTable(event.catName, *old, True, _field(Table, before, "owner"), _field(Table, before, "ownerType"))
        return
    for key in map(orjson.loads, message.get("foreignKeyListJson") or ()):
        parent = _field(SQLForeignKey, key, "pktable_db") or "", _field(SQLForeignKey, key, "pktable_name") or ""
        if parent != (event.dbName, event.tableName):
            yield NamedTable(event.catName, *parent)


def _field(struct: Any, written: Mapping[str, Mapping[str, Any]], name: str) -> Any:
    """Return a field of a struct in the form of Thrift's JSON protocol."""
    number = next(number for number, spec in struct.thrift_spec.items() if spec[1] == name)
    return next(iter(written.get(str(number), {}).values()), None)
