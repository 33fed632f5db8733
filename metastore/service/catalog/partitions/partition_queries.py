"""Select the partitions of a table for a call, and read their rows: at once, or page by page if they are many.

Pages are read in one snapshot of the database: a partition that is renamed meanwhile is neither missed nor met twice. Rows are first read
at once without a snapshot, whose round trips a small table need not cost. If there are too many rows, they are read again in pages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Generic, NamedTuple, TypeVar

import orjson

from metastore.errors import NoSuchObject, RequestTooLarge
from metastore.idl import Table
from metastore.listeners.events import ReadTable
from metastore.rules.filters.partitions import Selection
from metastore.service.call.context import Call
from metastore.service.call.long_lists import LongList, Taker
from metastore.service.call.names import TableName
from metastore.store.catalog.partitions import partitions
from metastore.store.catalog.tables import tables as table_rows
from metastore.store.core.database import Session
from metastore.store.drivers.contract import Row

T = TypeVar("T")
Items = TypeVar("Items")
AT_ONCE = 25_000
"""The most rows that are read at once; with more, all are read in pages."""
PAGE = 10_000
"""Rows of a page."""
MISSING = "{name} table not found"


class QueryPlan(NamedTuple):
    """The plan by which the partitions of a query are found."""

    prefixes: Sequence[str] | None = None
    """Beginnings of their names, ascending, none of which begins with another; None for any name."""
    select: Callable[[Sequence[Sequence[str]]], Selection] | None = None
    """A function from the values of partitions with such names to the selection; None for all of them."""


class PartitionQuery(NamedTuple):
    """Partitions that a call asks for."""

    plan: Callable[[Call, Table], QueryPlan]
    limit: int = -1
    """The most partitions of the result, ascending by name; all if it is negative."""
    missing: str = MISSING
    """The message to the client if the table is not there."""
    is_limited: bool = True
    """Whether the setting `limit_partition_request` applies."""
    may_ask_for_more: bool = False
    """Whether `limit` may exceed that setting as long as the result does not: Hive's clients expect it for values."""

    def first(self, limit: int) -> PartitionQuery:
        """Return the query with another limit: for the first partitions, ascending by name, or for all if it is negative."""
        return self._replace(limit=limit)


class Found(Generic[Items]):
    """The result of a query."""

    def __init__(self, items: Items, *, is_certain: bool) -> None:
        self.items = items
        self.is_certain = is_certain
        """Whether all items surely match. For a LongList it is known once its pages were read."""


Make = Callable[[Session, Table, Sequence[Row]], list[T]]
"""A function from rows (`partition_structs.FIELDS`) to partitions in the wanted form."""


def with_table(call: Call, name: TableName, work: Callable[[Session, Table], T], missing: str = MISSING) -> T:
    """Run queries on a table's partitions; the table is read in the same session. NoSuchObject."""

    def both(session: Session) -> T:
        table = _table(call, session, name, missing)
        if call.listeners.pre:
            call.listeners.before(ReadTable(client=call.info, table=table))
        return work(session, table)

    return call.database.read(both)


def find_all(call: Call, name: TableName, query: PartitionQuery, make: Make[T]) -> Found[list[T]]:
    """Return all partitions that a query selects in the wanted form, ascending by name. NoSuchObject; RequestTooLarge; MetaError of the
    plan.
    """
    found = _find_at_once(call, name, query, make)
    if found is not None:
        return found

    def work(session: Session) -> Found[list[T]]:
        every: Found[list[T]] = Found([], is_certain=True)
        for page in _pages(call, session, name, query, make):
            every.items += page.items
            every.is_certain &= page.is_certain
        return every

    return call.database.snapshot(work)


def find_in_pages(call: Call, name: TableName, query: PartitionQuery, make: Make[T]) -> Found[list[T] | LongList]:
    """Return the same as `find_all`. A long result is read while it is sent, and raises the same errors then."""
    at_once = _find_at_once(call, name, query, make)
    if at_once is not None:
        return Found(at_once.items, is_certain=at_once.is_certain)

    def read(taker: Taker) -> None:
        def work(session: Session) -> None:
            taker.begin()
            found.is_certain = True
            for page in _pages(call, session, name, query, make):
                found.is_certain &= page.is_certain
                if page.items:
                    taker.take(page.items)

        call.database.snapshot(work)

    found: Found[list[T] | LongList] = Found(LongList(read), is_certain=True)
    return found


def _table(call: Call, session: Session, name: TableName, missing: str) -> Table:
    table = table_rows.find(session, *name)
    if table is None:
        raise NoSuchObject(missing.format(name=name))
    return table


def _find_at_once(call: Call, name: TableName, query: PartitionQuery, make: Make[T]) -> Found[list[T]] | None:
    """Return the result of a query; None if more than `AT_ONCE` rows need a look."""

    def work(session: Session, table: Table) -> Found[list[T]] | None:
        plan = query.plan(call, table)
        _check_limit(call, session, table, query, plan)
        most = query.limit if plan.select is None and 0 <= query.limit <= AT_ONCE else AT_ONCE + 1
        rows: list[Row] = []
        for prefix in ("",) if plan.prefixes is None else plan.prefixes:
            if most > len(rows):
                rows += partitions.page(session, table, prefix, "", most - len(rows))
        if len(rows) > AT_ONCE:
            return None
        selected, unjudged = selected_by(plan, rows)
        if query.limit >= 0:
            del selected[query.limit :]
        if query.is_limited:
            check_count(call, table, len(selected))
        return Found(make(session, table, selected), is_certain=not unjudged)

    return with_table(call, name, work, query.missing)


def _pages(call: Call, session: Session, name: TableName, query: PartitionQuery, make: Make[T]) -> Iterator[Found[list[T]]]:
    table = _table(call, session, name, query.missing)
    plan = query.plan(call, table)
    count = 0
    for rows in _rows_in_pages(session, table, plan):
        selected, unjudged = selected_by(plan, rows)
        if query.limit >= 0:
            del selected[query.limit - count :]
        count += len(selected)
        if query.is_limited:
            check_count(call, table, count)
        yield Found(make(session, table, selected), is_certain=not unjudged)
        if count == query.limit:
            return


def _rows_in_pages(session: Session, table: Table, plan: QueryPlan) -> Iterator[Sequence[Row]]:
    for prefix in ("",) if plan.prefixes is None else plan.prefixes:
        rows = partitions.page(session, table, prefix, "", PAGE)
        while rows:
            yield rows
            rows = partitions.page(session, table, prefix, rows[-1][1], PAGE) if len(rows) == PAGE else ()


def selected_by(plan: QueryPlan, rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """Return the rows that a plan selects, among those with its name prefixes, and the rows that it can not evaluate."""
    if plan.select is None:
        return list(rows), []
    found = plan.select([orjson.loads(row[2]) for row in rows])
    return [rows[position] for position in found.positions], [rows[position] for position in found.unjudged]


def _check_limit(call: Call, session: Session, table: Table, query: PartitionQuery, plan: QueryPlan) -> None:
    """Refuse a request for more partitions than the settings allow before any is read, if their number is known then."""
    if call.config.limit_partition_request < 0 or not query.is_limited:
        return
    if query.limit >= 0:
        if not query.may_ask_for_more:
            check_count(call, table, query.limit)
    elif plan == QueryPlan():
        assert table.id is not None
        check_count(call, table, partitions.count(session, table.id))


def check_count(call: Call, table: Table, count: int) -> None:
    """Refuse more partitions than the setting allows. RequestTooLarge."""
    if 0 <= call.config.limit_partition_request < count:
        raise RequestTooLarge(
            f"Number of partitions scanned (={count}) on table '{table.tableName}' exceeds limit "
            f"(={call.config.limit_partition_request}). This is controlled on the metastore server by metastore.limit.partition.request"
        )
