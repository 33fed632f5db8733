"""Console queries, which no Thrift method answers: each with required privileges and a filter of its answer, like a method's entry.

They run as calls do (`Dispatcher.run`): authorization, log and audit apply to them. Nothing here changes anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

from metastore.errors import NoSuchObject
from metastore.methods.forms.rules import (
    ADMIN,
    OPEN,
    READ,
    SEE,
    TABLE,
    Around,
    Decision,
    Handler,
    MethodRule,
    Want,
    found_by,
    needs,
    on_database,
)
from metastore.methods.transactions.transaction_rules import seen, seen_events
from metastore.service.authorization.decision import TRANSACTION, Hide, Sent
from metastore.service.authorization.lookups import of_others
from metastore.service.call.context import Call
from metastore.service.call.names import TableName
from metastore.service.catalog import iceberg
from metastore.service.operations import browsing
from metastore.service.operations.browsing import Page
from metastore.service.transactions import locks

Names = Callable[[Any], tuple[str | None, str | None, str | None]]
"""A function from a row to the catalog, database and table that it is about."""

MOST_READ = 1_000
"""Rows that are read at a time where not all may be shown."""
LOOKS = 10
"""The most reads for one page of rows that may be shown."""


class ConsoleQuery(NamedTuple):
    """The entry of a query, which has no method."""

    name: str
    handler: Handler
    rule: MethodRule
    describe: Callable[[Any], str] = lambda _args: ""
    """A function from the arguments to the object that the query is about, for the log."""
    changes: bool = False
    replica: bool = False


def _filled(key: str, show: Callable[[Decision, Any, list[Any]], list[Any]], key_of: Callable[[Any], Any]) -> Around:
    """Return a function that reads on, from the value of the argument `key`, until it has a page of rows that may be shown."""

    def around(decision: Decision, args: Any, handler: Handler) -> Page:
        most, rows = args.most, list[Any]()
        asked = SimpleNamespace(**vars(args))
        asked.most = MOST_READ
        for _ in range(LOOKS):
            page: Page = handler(decision.call, asked)
            rows += show(decision, asked, page.rows)
            if len(rows) > most:
                return Page(rows[:most], key_of(rows[most - 1]))
            if page.next is None:
                return Page(rows, None)
            setattr(asked, key, page.next)
        return Page(rows, page.next)

    return around


def _about(names: Names) -> Callable[[Decision, Any, list[Any]], list[Any]]:
    return lambda decision, _args, rows: seen(decision, rows, names)


def _shown_databases(decision: Decision, args: Any, rows: Sequence[Any]) -> list[Any]:
    shown = decision.databases((args.catalog, row.name) for row in rows)
    return [row for row in rows if (args.catalog, row.name) in shown]


def _shown_tables(decision: Decision, args: Any, rows: list[Any]) -> list[Any]:
    return seen(decision, rows, lambda row: (args.catalog, row.database, row.name))


def _one_seen(
    show: Callable[[Decision, list[Any]], list[Any]], missing: Callable[[int], NoSuchObject]
) -> Callable[[Decision, Any, Any], Any]:
    """Return a filter that keeps one row, or raises the error of a missing one where it may not be shown."""

    def keep(decision: Decision, args: Any, value: Any) -> Any:
        if not show(decision, [value]):
            raise missing(args.id)
        return value

    return keep


def _own_transactions(decision: Decision, args: Any, handler: Handler) -> Page:
    """Show all transactions to an admin, to others their own."""
    if not decision.is_admin:
        if decision.who.user is None:
            return Page([], None)
        args.user = decision.who.user
    page: Page = handler(decision.call, args)
    return page


def _own_transaction(call: Call, args: Any) -> Iterator[Want]:
    for each in of_others(call, [args.id]):
        yield Want((), TRANSACTION, name=str(each))


def _of_table(_call: Call, args: Any) -> Iterator[Want]:
    yield Want((SEE,), TABLE, args.catalog, args.database, args.table, hide=_hide_table(args))


def _read_table(_call: Call, args: Any) -> Iterator[Want]:
    yield Want(READ, TABLE, args.catalog, args.database, args.table, hide=_hide_table(args))


def _hide_table(args: Any) -> Hide:
    def hide(other: str | None, inner: str | None) -> Sent:
        sent = args.database, args.table
        args.database, args.table = other or args.database, inner or args.table
        return sent

    return hide


def _table_name(args: Any) -> str:
    return f"{args.database}.{args.table}"


_NAMED: Names = lambda row: (row.catalog, row.database, row.table)  # noqa: E731  # of events and compactions
_SHOWN_COMPACTIONS = _filled("before", _about(_NAMED), lambda row: row.id)
_SHOWN_EVENTS = _filled("before", _about(_NAMED), lambda row: row.last)
_SHOWN_TABLES = _filled("after", _shown_tables, lambda row: (row.database, row.name))

_QUERIES = (
    ConsoleQuery(
        "show_databases_page",
        lambda call, args: browsing.databases(call, args.catalog, args.part, args.after, args.most),
        MethodRule(around=_filled("after", _shown_databases, lambda row: row.name)),
    ),
    ConsoleQuery(
        "show_tables_page",
        lambda call, args: browsing.tables(call, args.catalog, None, args.parts, args.after, args.most),
        MethodRule(around=_SHOWN_TABLES, operation="SHOWTABLES"),
    ),
    ConsoleQuery(
        "show_database_tables_page",
        lambda call, args: browsing.tables(call, args.catalog, args.database, args.parts, args.after, args.most),
        needs(on_database((SEE,), "database", "catalog"), around=_SHOWN_TABLES, operation="SHOWTABLES"),
        lambda args: str(args.database),
    ),
    ConsoleQuery(
        "show_partitions_page",
        lambda call, args: browsing.table_partitions(
            call, TableName(args.catalog, args.database, args.table), args.text, args.part, args.after, args.most
        ),
        needs(found_by("any privilege on the table", _of_table), operation="SHOWPARTITIONS"),
        _table_name,
    ),
    ConsoleQuery(
        "show_snapshots",
        lambda call, args: iceberg.snapshots(call, TableName(args.catalog, args.database, args.table)),
        needs(found_by("SELECT on the table", _read_table), operation="DESCTABLE"),
        _table_name,
    ),
    ConsoleQuery(
        "show_transactions_page",
        lambda call, args: browsing.open_or_aborted(call, args.state, args.user, args.after, args.most),
        MethodRule(around=_own_transactions),
    ),
    ConsoleQuery(
        "show_transaction",
        lambda call, args: browsing.transaction(call, args.id),
        needs(found_by("one's own transaction", _own_transaction)),
    ),
    ConsoleQuery(
        "show_compactions_page",
        lambda call, args: browsing.compactions(call, args.filters, args.before, args.most),
        MethodRule(around=_SHOWN_COMPACTIONS, operation="SHOW_COMPACTIONS"),
    ),
    ConsoleQuery(
        "show_compaction",
        lambda call, args: browsing.compaction(call, args.id),
        MethodRule(
            keep=_one_seen(lambda decision, rows: seen(decision, rows, _NAMED), browsing.no_compaction), operation="SHOW_COMPACTIONS"
        ),
    ),
    ConsoleQuery(
        "show_events_page",
        lambda call, args: browsing.events(call, args.filters, args.before, args.most),
        MethodRule(around=_SHOWN_EVENTS),
    ),
    ConsoleQuery(
        "show_event", lambda call, args: browsing.event(call, args.id), MethodRule(keep=_one_seen(seen_events, browsing.no_event))
    ),
    ConsoleQuery("show_waits", lambda call, _args: locks.waiting_since(call.database), OPEN),
    ConsoleQuery("show_jobs", lambda call, _args: browsing.leases(call), ADMIN),
    ConsoleQuery("show_settings", lambda call, _args: call.metastore.config, ADMIN),
    ConsoleQuery("show_state", lambda _call, args: args.look(), OPEN),
    ConsoleQuery("show_clients", lambda _call, args: args.look(), ADMIN),
    ConsoleQuery("show_slow_calls", lambda _call, args: args.look(), ADMIN),
)

QUERIES: dict[str, ConsoleQuery] = {each.name: each for each in _QUERIES}
"""The queries by name."""
