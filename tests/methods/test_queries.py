"""The console's queries supplement the methods of the interface, and do not bypass them."""

from __future__ import annotations

from metastore.methods.forms.entry import ALL
from metastore.methods.forms.rules import ADMIN, OPEN
from metastore.methods.operations.queries import QUERIES


def test_no_query_takes_the_name_of_a_method() -> None:
    assert QUERIES.keys() & ALL == set()


def test_queries_read() -> None:
    assert [name for name, query in QUERIES.items() if query.changes] == []


def test_every_query_declares_its_readers() -> None:
    """Queries that are open to everybody return only counts that /metrics has too, times, and ids of locks, which everybody sees."""
    assert {name for name, query in QUERIES.items() if query.rule is OPEN} == {"show_state", "show_waits"}
    for_admins = {name for name, query in QUERIES.items() if query.rule is ADMIN}
    assert for_admins == {
        "show_clients",
        "show_jobs",
        "show_settings",
        "show_slow_calls",
    }
    assert [
        name
        for name, query in QUERIES.items()
        if query.rule not in (OPEN, ADMIN) and not (query.rule.asks or query.rule.keep or query.rule.around)
    ] == []
