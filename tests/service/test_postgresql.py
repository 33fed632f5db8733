"""The cursors on PostgreSQL: what goes in comes out, what is wrong is psycopg's error, and a connection remembers so many statements."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

psycopg = pytest.importorskip("psycopg")

from metastore.store import postgresql  # noqa: E402  # needs psycopg


@pytest.fixture
def connection() -> Iterator[postgresql.Connection]:
    url = os.environ.get("METASTORE_TEST_POSTGRESQL")
    if url is None:
        pytest.skip("METASTORE_TEST_POSTGRESQL names no server")
    with postgresql.Connection.connect(url, autocommit=True) as opened:
        assert isinstance(opened, postgresql.Connection)
        yield opened


VALUES: list[tuple[str, Any]] = [
    ("int8", 2**62), ("int4", -5), ("text", "ä'\\ 😀 %(x)s $1"), ("text", ""), ("text", None), ("bool", True), ("bool", False),
    ("float8", 0.1), ("float8", -1e300), ("bytea", b"\0\\x\xff"), ("int8", None),
]


@pytest.mark.parametrize(("kind", "value"), VALUES)
def test_values_come_back(connection: postgresql.Connection, kind: str, value: Any) -> None:
    cursor = connection.cursor()
    for _ in range(3):  # at first unprepared, then prepared, then known
        assert cursor.execute(f"SELECT %(a)s::{kind}, 7 %% 4, %(a)s::{kind}", {"a": value}).fetchall() == [(value, 3, value)]
    assert len(connection.statements) == 1


def test_rows_one_by_one_and_how_many(connection: postgresql.Connection) -> None:
    cursor = connection.cursor().execute("SELECT generate_series(1, %(n)s)", {"n": 2})
    assert [cursor.fetchone(), cursor.fetchone(), cursor.fetchone()] == [(1,), (2,), None]
    assert cursor.rowcount == 2
    assert cursor.execute("CREATE TEMPORARY TABLE t (a int)", {}).rowcount == 0
    cursor.executemany("INSERT INTO t VALUES (%(a)s)", [{"a": number} for number in range(5)])
    with cursor.copy("COPY t FROM STDIN") as copy:
        copy.write_row((9,))
    assert cursor.execute("UPDATE t SET a = a + %(by)s", {"by": 1}).rowcount == 6


@pytest.mark.parametrize(
    ("query", "params", "error"),
    [
        ("SELECT %(a)s::text", {"a": "a\0b"}, psycopg.DataError),
        ("SELECT %(a)s::int4", {"a": 2**40}, psycopg.errors.NumericValueOutOfRange),
        ("SELECT 1 / %(a)s", {"a": 0}, psycopg.errors.DivisionByZero),
        ("SELECT %(a)s", {"a": object()}, TypeError),
        ("SELECT nothing FROM nowhere", {}, psycopg.errors.UndefinedTable),
        ("COMMIT PREPARED 'x'; nonsense", None, psycopg.errors.SyntaxError),
    ],
)  # fmt: skip
def test_errors_leave_the_connection_usable(
    connection: postgresql.Connection, query: str, params: dict[str, Any] | None, error: type[Exception]
) -> None:
    cursor = connection.cursor()
    for _ in range(3):
        with pytest.raises(error):
            cursor.execute(query, params)
    assert cursor.execute("SELECT 1", {}).fetchone() == (1,)


def test_a_statement_for_each_set_of_types(connection: postgresql.Connection) -> None:
    cursor = connection.cursor()
    for value in (1, "1", None, 1, "1", None, 1, "1", None):
        assert cursor.execute("SELECT coalesce(%(a)s::text, 'none')", {"a": value}).fetchone() == (str(value or "none"),)
    assert len(connection.statements) == 2  # text and NULL are of one type, the unknown


def test_the_oldest_statements_are_forgotten(connection: postgresql.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgresql, "MOST_STATEMENTS", 4)
    cursor = connection.cursor()
    for number in (*range(10), 0):
        for _ in range(3):
            assert cursor.execute(f"SELECT {number} + %(a)s", {"a": 1}).fetchone() == (number + 1,)
    assert len(connection.statements) == 4
    there = cursor.execute("SELECT count(*) FROM pg_prepared_statements").fetchone()
    assert there == (4,)


def test_a_connection_that_the_server_ends(connection: postgresql.Connection) -> None:
    cursor = connection.cursor()
    process = cursor.execute("SELECT pg_backend_pid()").fetchone()
    with psycopg.connect(os.environ["METASTORE_TEST_POSTGRESQL"], autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", process)
    with pytest.raises(psycopg.OperationalError):
        cursor.execute("SELECT %(a)s::int", {"a": 1})
    assert connection.broken


def test_other_threads_run_while_a_statement_does(connection: postgresql.Connection) -> None:
    ended = threading.Event()

    def wait() -> None:
        for _ in range(3):
            connection.cursor().execute("SELECT pg_sleep(%(s)s)", {"s": 0.3})
        ended.set()

    thread = threading.Thread(target=wait)
    thread.start()
    turns = 0
    while not ended.is_set():
        time.sleep(0.001)
        turns += 1
    thread.join()
    assert turns > 20


def plan(connection: postgresql.Connection) -> str:
    return " ".join(line for (line,) in connection.cursor().execute("EXPLAIN EXECUTE metastore_0(1)").fetchall())


def test_plans_that_were_made_for_an_empty_table_are_made_anew(connection: postgresql.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    cursor = connection.cursor().execute("CREATE TEMPORARY TABLE t (a int PRIMARY KEY)")
    cursor.execute("VACUUM t")
    for _ in range(10):
        cursor.execute("SELECT a FROM t WHERE a = %(a)s", {"a": 1})
    cursor.execute("INSERT INTO t SELECT generate_series(1, 10000)")
    assert "Seq Scan" in plan(connection)
    monkeypatch.setattr(postgresql, "PLANS_LAST", 0.0)
    assert "Index" in plan(connection)
