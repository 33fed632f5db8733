"""Pages of the notification log."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from metastore.console.pages.asking import ROWS, catalog_of
from metastore.console.visit import Visit
from metastore.idl import NotificationEvent
from metastore.listeners.notifications import message_text
from metastore.service.operations.browsing import LoggedEvents


@dataclass(frozen=True, slots=True)
class Events:
    """A page of the log, the last first. Events that one change wrote together are one row."""

    catalog: str
    database: str
    table: str
    type: str
    rows: list[Row]
    next: int | None


@dataclass(frozen=True, slots=True)
class Row:
    """Events of one change, with ids from `first` to `last`; time in milliseconds."""

    first: int
    last: int
    time: int
    type: str
    catalog: str | None
    database: str | None
    table: str | None


def events(visit: Visit, catalog: str = "", database: str = "", table: str = "", type: str = "", before: int = 0) -> Events:  # noqa: A002
    """List events, the last first; of one type, in a database or on a table if one is given."""
    where = catalog_of(visit, catalog)
    given = {"database": database.lower(), "table": table.lower(), "type": type.upper()}
    filters = {name: value for name, value in given.items() if value}
    if database:
        filters["catalog"] = where
    page = visit.run("show_events_page", filters=filters, before=before or None, most=ROWS)
    return Events(where, database, table, type, [_row(each) for each in page.rows], page.next)


def _row(each: LoggedEvents) -> Row:
    return Row(each.first, each.last, each.time * 1000, each.type, each.catalog, each.database, each.table)


@dataclass(frozen=True, slots=True)
class Event:
    """One event; time in milliseconds."""

    id: int
    time: int
    type: str
    catalog: str | None
    database: str | None
    table: str | None
    format: str | None
    message: str
    """The message as the log's readers get it, decompressed and indented where it is JSON."""


def event(visit: Visit, id: int) -> Event:  # noqa: A002  # the name in the path
    """Show an event with its message."""
    found: NotificationEvent = visit.run("show_event", id=id)
    text = message_text(found)
    return Event(
        id=found.eventId,
        time=found.eventTime * 1000,
        type=found.eventType,
        catalog=found.catName,
        database=found.dbName,
        table=found.tableName,
        format=found.messageFormat,
        message=_indented(text),
    )


def _indented(text: str) -> str:
    try:
        value: Any = json.loads(text)
    except ValueError:
        return text
    return json.dumps(value, indent=2, ensure_ascii=False)
