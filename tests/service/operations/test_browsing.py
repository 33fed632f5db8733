"""Pages of all objects, on each database: in order, without gaps, from statements that read a page and no more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from metastore.errors import MetaError, NoSuchObject, NoSuchTransaction
from metastore.idl import AbortTxnRequest, CompactionRequest, CompactionType, OpenTxnRequest
from metastore.service.call.context import Call
from metastore.service.compaction.compactions import compact
from metastore.service.operations import browsing
from metastore.service.operations.browsing import Page
from metastore.service.transactions.transactions import abort_transaction, open_transactions
from tests.support.catalog.catalog import add_partitions, make_database, make_table

pytestmark = pytest.mark.on_one_database

FROM_THE_END = 2**62


def every(ask: Callable[[Any], Page], first: Any) -> tuple[list[Any], list[int]]:
    """Return all rows from the first page to the last, and the number of rows of each page."""
    rows, sizes, key = [], [], first
    while True:
        page = ask(key)
        rows += page.rows
        sizes.append(len(page.rows))
        if page.next is None:
            return rows, sizes
        key = page.next


def test_databases_come_page_by_page(call: Call) -> None:
    for name in ("b", "a", "c_1", "cx1", "cd"):
        make_database(call, name)
    rows, sizes = every(lambda key: browsing.databases(call, "hive", "", key, 2), "")
    assert [row.name for row in rows] == ["a", "b", "c_1", "cd", "cx1", "default"]
    assert sizes == [2, 2, 2]
    assert [row.name for row in browsing.databases(call, "hive", "_", "", 9).rows] == ["c_1"], "a line is not a pattern"
    assert browsing.databases(call, "hive", "%", "", 9) == ([], None)
    assert browsing.databases(call, "other", "", "", 9).rows == []


def test_tables_come_page_by_page(call: Call) -> None:
    for database in ("a", "b"):
        make_database(call, database)
        for name in ("orders", "customers", "or_x", "z"):
            make_table(call, name, database=database)
    names = ["customers", "or_x", "orders", "z"]
    rows, sizes = every(lambda key: browsing.tables(call, "hive", "a", ("", ""), key, 3), ("", ""))
    assert ([row.name for row in rows], sizes) == (names, [3, 1])
    rows, sizes = every(lambda key: browsing.tables(call, "hive", None, ("", ""), key, 3), ("", ""))
    assert [(row.database, row.name) for row in rows] == [(database, name) for database in "ab" for name in names]
    assert sizes == [3, 3, 2]
    rows, _ = every(lambda key: browsing.tables(call, "hive", None, ("b", "or"), key, 1), ("", ""))
    assert [(row.database, row.name) for row in rows] == [("b", "or_x"), ("b", "orders")]
    assert [row.name for row in browsing.tables(call, "hive", "a", ("", "r_"), ("", ""), 9).rows] == ["or_x"]


def test_partitions_come_page_by_page_and_by_filter(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    name = make_table(call, "t", keys=(("ds", "string"), ("hr", "int")))
    days = [f"2026-01-{day:02}" for day in range(1, 11)]
    add_partitions(call, name, [[day, str(hour)] for day in days for hour in range(12)])

    def names(text: str, part: str, most: int) -> tuple[list[str], list[int]]:
        def ask(key: str) -> Page:
            page = browsing.table_partitions(call, name, text, part, key, most)
            assert [struct.values for _, struct in page.rows] == [
                [each.partition("=")[2] for each in found.split("/")] for found, _ in page.rows
            ]
            return Page([found for found, _ in page.rows], page.next)

        return every(ask, "")

    whole, sizes = names("", "", 50)
    assert (len(whole), whole == sorted(whole), sizes) == (120, True, [50, 50, 20])
    monkeypatch.setattr(browsing, "CHUNK", 7)
    assert names("hr = 3", "", 4) == ([f"ds={day}/hr=3" for day in days], [4, 4, 2])
    assert names("ds = '2026-01-02'", "hr=1", 2) == (["ds=2026-01-02/hr=1", "ds=2026-01-02/hr=10", "ds=2026-01-02/hr=11"], [2, 1])
    assert names("(ds) in ('2026-01-09', '2026-01-02') and hr = 0", "", 1)[0] == ["ds=2026-01-02/hr=0", "ds=2026-01-09/hr=0"]
    monkeypatch.setattr(browsing, "LOOKED_AT", 14)
    found, sizes = names("hr = 11 and ds > '2026-01-09'", "", 9)
    assert (found, sum(sizes), len(sizes)) == (["ds=2026-01-10/hr=11"], 1, 9)
    with pytest.raises(MetaError):
        browsing.table_partitions(call, name, "nothing = 1", "", "", 9)
    with pytest.raises(NoSuchObject):
        browsing.table_partitions(call, name._replace(table="nothing"), "", "", "", 9)


def test_transactions_come_page_by_page(call: Call) -> None:
    for user in ("alice", "bob"):
        open_transactions(call, OpenTxnRequest(num_txns=3, user=user, hostname="h", agentInfo="x"))
    abort_transaction(call, AbortTxnRequest(txnid=2))
    rows, sizes = every(lambda key: browsing.open_or_aborted(call, "o", None, key, 2), 0)
    assert ([row.id for row in rows], sizes) == ([1, 3, 4, 5, 6], [2, 2, 1])
    assert [row.id for row in browsing.open_or_aborted(call, "o", "bob", 0, 9).rows] == [4, 5, 6]
    assert [row.id for row in browsing.open_or_aborted(call, "a", None, 0, 9).rows] == [2]
    view = browsing.transaction(call, 2)
    assert (view.row.user, view.row.state, view.writes, view.row.ended is not None) == ("alice", "a", [], True)
    with pytest.raises(NoSuchTransaction, match="no transaction 99"):
        browsing.transaction(call, 99)


def test_compactions_come_page_by_page(call: Call) -> None:
    for number in range(5):
        make_table(call, f"t{number}", parameters={"transactional": "true", "transactional_properties": "insert_only"})
        compact(call, CompactionRequest(dbname="default", tablename=f"t{number}", type=CompactionType.MINOR))
    rows, sizes = every(lambda key: browsing.compactions(call, {"state": "i"}, key, 2), FROM_THE_END)
    last = rows[0].id  # ids are not reused in a database that was emptied
    assert ([row.id for row in rows], sizes) == ([*range(last, last - 5, -1)], [2, 2, 1])
    assert [row.table for row in browsing.compactions(call, {"table": "t3", "database": "default"}, FROM_THE_END, 9).rows] == ["t3"]
    assert browsing.compactions(call, {"state": "f"}, FROM_THE_END, 9) == ([], None)
    assert browsing.compaction(call, last - 1).table == "t3"
    with pytest.raises(NoSuchObject, match=f"no compaction {last + 4}"):
        browsing.compaction(call, last + 4)


def test_events_come_page_by_page_the_last_first(logged: Call, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    name = make_table(logged, "t", keys=(("ds", "string"),))
    make_table(logged, "u")
    add_partitions(logged, name, [[f"{number}"] for number in range(4)])
    rows, sizes = every(lambda key: browsing.events(logged, {}, key, 2), None)
    found = [(row.first, row.last, row.type, row.table) for row in rows]
    assert found == [(3, 3, "ADD_PARTITION", "t"), (2, 2, "CREATE_TABLE", "u"), (1, 1, "CREATE_TABLE", "t")]
    assert sizes[0] == 2
    assert [row.type for row in browsing.events(logged, {"table": "t"}, None, 9).rows] == ["ADD_PARTITION", "CREATE_TABLE"]
    assert [row.table for row in browsing.events(logged, {"type": "CREATE_TABLE"}, None, 1).rows] == ["u"]
    monkeypatch.setattr(browsing, "EVENTS_LOOKED_AT", 2)
    looked, pages = every(lambda key: browsing.events(logged, {"table": "u"}, key, 9), None)
    assert [row.table for row in looked] == ["u"]
    assert len(pages) > 1, "a page looks at a part of the log, and the next one goes on"
    for key in range(1, rows[0].last + 1):
        assert browsing.event(logged, key).eventId == key
    with pytest.raises(NoSuchObject, match="no event 99"):
        browsing.event(logged, 99)
