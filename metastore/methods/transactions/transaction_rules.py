"""Entries of the methods of transactions, locks, compactions and the notification log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from functools import cache, partial
from typing import Any

from metastore.errors import MetaError
from metastore.idl import DataOperationType, LockType, NotificationEventRequest, NotificationEventsCountResponse
from metastore.listeners.notifications import NamedTable, named_beside
from metastore.methods.forms.rules import (
    ADMIN,
    ADMINISTER,
    ALTER,
    CREATE,
    DATABASE,
    DELETE,
    DROP,
    INSERT,
    SEE,
    SERVER,
    TABLE,
    UPDATE,
    WRITES,
    Ask,
    Decision,
    Handler,
    Want,
    database_name_of,
    get,
    hiding,
    named_by_text,
    needs,
    on_table,
    replaced,
)
from metastore.service.authorization.decision import LOCK, TRANSACTION, Hide, Sent
from metastore.service.authorization.lookups import compacted, is_lock_of_other, locked_table, of_others, of_others_between, table_of_key
from metastore.service.authorizer import Access, owner_of
from metastore.service.call.context import Call
from metastore.service.operations import notifications

_see = (SEE,)
OPERATIONS = {
    DataOperationType.INSERT: (INSERT,),
    DataOperationType.UPDATE: (UPDATE, DELETE),
    DataOperationType.DELETE: (DELETE,),
}
"""Privileges by the purpose of a lock; one of them is enough. Hive sends an INSERT OVERWRITE, and Trino a DELETE, as an update."""
EVENTS_READ_ON = 1_000
"""Events that are read at a time to find some that may be shown."""
MOST_IN_RANGE = 1_000_000
"""The most ids of a range that are looked up; the method itself refuses a longer range."""


def own_transactions(ids: Callable[[Any], Iterable[int | None]]) -> Ask:
    """Require that the transactions are the caller's own, or the role `admin`."""

    def find(call: Call, args: Any) -> Iterator[Want]:
        for each in of_others(call, [key for key in ids(args) if key]):
            yield Want((), TRANSACTION, name=str(each))

    return Ask("one's own transaction", find)


def own_range(call: Call, args: Any) -> Iterator[Want]:
    low, high = args.txns.min, args.txns.max
    if low is not None and high is not None and high - low < MOST_IN_RANGE:
        for each in of_others_between(call, low, high):
            yield Want((), TRANSACTION, name=str(each))


def own_lock(path: str) -> Ask:
    """Require that the lock is the caller's own, or the role `admin`."""

    def find(call: Call, args: Any) -> Iterator[Want]:
        key = get(args, path)
        if key and is_lock_of_other(call, key):
            yield Want((), LOCK, name=str(key))

    return Ask("one's own lock", find)


def replays(path: str, *fields: str) -> Ask:
    """Require the role `admin` where a request replays transactions of another metastore."""

    def find(_call: Call, args: Any) -> Iterator[Want]:
        if any(getattr(get(args, path), field, None) is not None for field in fields):
            yield Want((ADMINISTER,), SERVER)

    return Ask("the role `admin` to replay transactions of another metastore", find)


def locks_objects(call: Call, args: Any) -> Iterator[Want]:
    for each in args.rqst.component or ():
        where, name = database_name_of(call, each.dbname, None) if each is not None else (None, None)
        if name is None:
            continue
        reads = each.type == LockType.SHARED_READ
        if each.tablename is None:
            yield Want(_see if reads else (ALTER, DROP), DATABASE, where, name, otherwise=CREATE)
        else:
            wanted = OPERATIONS.get(each.operationType, _see if reads else WRITES)
            yield Want(wanted, TABLE, where, name, locked_table(call, where or "", name, each.tablename), otherwise=CREATE)


def full_names(path: str, privileges: tuple[str, ...], otherwise: str | None = None) -> Ask:
    """Require one of the privileges on the tables that a list, or the keys of a map, name as `database.table`."""

    def find(call: Call, args: Any) -> Iterator[Want]:
        names = get(args, path)
        for number, text in enumerate(list(names or ())):
            found = named_by_text(call, text)
            if found is not None:
                hide = _in_list(names, number, text.split(".")) if isinstance(names, list) else hiding(args, None, None)
                yield Want(privileges, TABLE, *found, hide=hide, otherwise=otherwise)

    return Ask(f"{'any privilege' if privileges == _see else ' or '.join(privileges)} on the tables", find)


def _in_list(names: list[str], number: int, parts: Sequence[str]) -> Hide:
    def hide(other: str | None, inner: str | None) -> Sent:
        database, table = (
            (part, None) if name is None else replaced(part, name) for part, name in zip(parts[-2:], (other, inner), strict=True)
        )
        names[number] = ".".join([*parts[:-2], database[0], table[0]])
        return database[1], table[1]

    return hide


def table_used(call: Call, args: Any) -> Iterator[Want]:
    made = args.creation_metadata
    for text in sorted(getattr(made, "tablesUsed", None) or ()):
        found = named_by_text(call, text)
        if found is not None:
            yield Want(_see, TABLE, *found, otherwise=CREATE)


def sets_parameter(call: Call, args: Any) -> Iterator[Want]:
    """Require the right to write to the table whose parameter a commit sets, too."""
    given = args.rqst.keyValue
    found = table_of_key(call, given.tableId or 0) if given is not None else None
    if found is not None:
        yield Want(WRITES, TABLE, *found, otherwise=CREATE, label=f"the table {given.tableId}")


def counts_rows(call: Call, args: Any) -> Iterator[Want]:
    found = table_of_key(call, args.req.tableId or 0)
    if found is not None:

        def hide(_database: str | None, _name: str | None) -> Sent:
            args.req.tableId = 0
            return None, None

        yield Want(WRITES, TABLE, *found, hide=hide)


def of_compactions(call: Call, args: Any) -> Iterator[Want]:
    for key, name in compacted(call, args.rqst.compactionIds or () if args.rqst is not None else ()):
        yield Want((ALTER,), TABLE, *name, otherwise=CREATE, label=f"the table of compaction {key}")


def counts_events(call: Call, args: Any) -> Iterator[Want]:
    try:
        where, name = notifications.counted_database(call, args.rqst)
    except MetaError:
        return  # the handler reports it
    yield Want((ADMINISTER,), SERVER) if name is None else Want(_see, DATABASE, where, name, hide=hiding(args, "rqst.dbName", None))


def as_caller(decision: Decision, args: Any) -> None:
    """Note the real caller that opens a transaction or requests a lock: only that user can continue it."""
    if decision.who.user is not None:
        args.rqst.user = decision.who.user


def seen(decision: Decision, rows: Sequence[Any], name_of: Callable[[Any], tuple[str | None, str | None, str | None]]) -> list[Any]:
    """Return the rows about a table, or about a database alone, that may be shown; rows about neither are for an admin only."""
    by_database: dict[tuple[str, str], set[str]] = {}
    default = decision.call.config.default_catalog
    names = [(catalog or default, database, name) for catalog, database, name in map(name_of, rows)]
    for catalog, database, name in names:
        if database is not None:
            found = by_database.setdefault((catalog, database), set())
            if name is not None:
                found.add(name)
    tables = {where: decision.tables(*where, sorted(found)) for where, found in by_database.items()}
    databases = decision.databases(by_database)
    shows_rest = any(database is None for _, database, _ in names) and decision.is_admin

    def is_shown(catalog: str, database: str | None, name: str | None) -> bool:
        if database is None:
            return shows_rest
        return (catalog, database) in databases if name is None else name in tables[catalog, database]

    return [row for row, name in zip(rows, names, strict=True) if is_shown(*name)]


def kept_locks(decision: Decision, _args: Any, value: Any) -> Any:
    table_of = cache(partial(locked_table, decision.call))

    def name_of(each: Any) -> tuple[str | None, str | None, str | None]:
        where, name = database_name_of(decision.call, each.dbname, None)
        return where, name, None if each.tablename is None else table_of(where or "", name or "", each.tablename)

    value.locks = seen(decision, value.locks or [], name_of)
    return value


def kept_compactions(decision: Decision, _args: Any, value: Any) -> Any:
    value.compacts = seen(
        decision, value.compacts or [], lambda each: (*database_name_of(decision.call, each.dbname, None), each.tablename)
    )
    return value


def kept_transactions(decision: Decision, _args: Any, value: Any) -> Any:
    if not decision.is_admin:
        value.open_txns = [each for each in value.open_txns if each.user is not None and each.user == decision.who.user]
    return value


def kept_writes(decision: Decision, _args: Any, value: Any) -> Any:
    return seen(decision, value, lambda each: (None, each.database, each.table))


def seen_events(decision: Decision, events: Sequence[Any]) -> list[Any]:
    """Return the events that may be shown: by their object, and by other objects in their messages."""
    shown = seen(decision, events, lambda each: (each.catName, each.dbName, each.tableName))
    return [each for each in shown if all(_is_shown(decision, named) for named in named_beside(each))]


def _is_shown(decision: Decision, named: NamedTable) -> bool:
    """Return whether the caller may know of a table that a message names; for an old name the rights under that name count."""
    where = named.catalog or decision.call.config.default_catalog, named.database
    if not named.was_own:
        return named.table in decision.tables(*where, [named.table])
    asked = Access(SEE, TABLE, *where, named.table, owner=owner_of(named.owner, named.owner_type))
    return decision.allowed([asked])[0]


def next_events(decision: Decision, args: Any, handler: Handler) -> Any:
    """Read on until there is an event to show, many at a time: a client takes an empty answer for the end of the log."""
    request, most = args.rqst, args.rqst.maxEvents
    while True:
        value = handler(decision.call, copy(args))
        events = value.events
        shown = seen_events(decision, events)
        value.events = shown[:most] if most is not None and most > 0 else shown
        if shown or not events:
            return value
        request.lastEvent, request.maxEvents = events[-1].eventId, max(most or 0, EVENTS_READ_ON)


def counted_one_by_one(decision: Decision, args: Any, handler: Handler) -> Any:
    """Count the events of a database that may be shown: one by one where the caller may not see all."""
    if decision.is_admin:
        return handler(decision.call, args)
    request, found = args.rqst, 0
    most = request.limit if request.limit is not None and request.limit > 0 else float("inf")
    where, name = notifications.counted_database(decision.call, request)
    asked = NotificationEventRequest(
        lastEvent=request.fromEventId, maxEvents=EVENTS_READ_ON, catName=where, dbName=name, tableNames=request.tableNames
    )
    while found < most and (events := notifications.get_next(decision.call, asked)):
        asked.lastEvent = events[-1].eventId
        counted = [each for each in events if request.toEventId is None or each.eventId <= request.toEventId]
        found += len(seen_events(decision, counted))
        if len(counted) < len(events):
            break
    return NotificationEventsCountResponse(eventsCount=int(min(found, most)))


WORKER = ADMIN
LOCKS_SHOWN = "entries of databases and tables that are shown"

REBUILDS = needs(own_transactions(lambda args: [args.txnId]), on_table(WRITES, "dbName", "tableName", otherwise=CREATE))
