"""The cursors on PostgreSQL: values are read back unchanged, errors are psycopg's, and remembered statements are bounded."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.databases import databases

psycopg = pytest.importorskip("psycopg")

from metastore.store.drivers import postgresql_cursor, postgresql_values  # noqa: E402  # needs psycopg


def address() -> str:
    return databases.server("postgresql").render_as_string(hide_password=False)


@pytest.fixture
def connection() -> Iterator[postgresql_cursor.PostgreSQLConnection]:
    with postgresql_cursor.PostgreSQLConnection.connect(address(), autocommit=True) as opened:
        assert isinstance(opened, postgresql_cursor.PostgreSQLConnection)
        yield opened


VALUES: list[tuple[str, Any]] = [
    ("int8", 2**62),
    ("int4", -5),
    ("text", "ä'\\ 😀 %(x)s $1"),
    ("text", ""),
    ("text", None),
    ("bool", True),
    ("bool", False),
    ("float8", 0.1),
    ("float8", -1e300),
    ("bytea", b"\0\\x\xff"),
    ("int8", None),
]


@pytest.mark.parametrize(("kind", "value"), VALUES)
def test_values_come_back(connection: postgresql_cursor.PostgreSQLConnection, kind: str, value: Any) -> None:
    cursor = connection.cursor()
    for _ in range(3):  # at first unprepared, then prepared, then remembered
        assert cursor.execute(f"SELECT %(a)s::{kind}, 7 %% 4, %(a)s::{kind}", {"a": value}).fetchall() == [(value, 3, value)]
    assert len(connection.statements) == 1


LISTS: list[tuple[str, list[Any]]] = [
    ("text", ["a", None, "", "ä'\\ 😀 {,} NULL \"", "x" * 100_000]),
    ("text", []),
    ("text", [None, None]),
    ("text", ["only"]),
    ("int8", [1, -(2**62), None]),
    ("int4", [7]),
    ("bool", [True, False, None]),
]


@pytest.mark.parametrize(("kind", "items"), LISTS)
def test_lists_come_back(connection: postgresql_cursor.PostgreSQLConnection, kind: str, items: list[Any]) -> None:
    cursor = connection.cursor()
    for _ in range(3):
        asked = cursor.execute(f"SELECT %(x)s, unnest(%(a)s::{kind}[]), %(x)s", {"a": postgresql_values.array(items), "x": 5})
        assert asked.fetchall() == [(5, item, 5) for item in items]
    answer = cursor.enqueue(f"SELECT unnest(%(a)s::{kind}[])", {"a": postgresql_values.array(items)})
    assert answer.rows == [(item,) for item in items]


@pytest.mark.parametrize(("items", "error"), [(["a", "b\0"], psycopg.DataError), (["a", 1], TypeError)])
def test_lists_that_are_no_arrays(items: list[Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        postgresql_values.array(items)


def test_rows_one_by_one_and_how_many(connection: postgresql_cursor.PostgreSQLConnection) -> None:
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
    connection: postgresql_cursor.PostgreSQLConnection, query: str, params: dict[str, Any] | None, error: type[Exception]
) -> None:
    cursor = connection.cursor()
    for _ in range(3):
        with pytest.raises(error):
            cursor.execute(query, params)
    assert cursor.execute("SELECT 1", {}).fetchone() == (1,)


def test_a_statement_for_each_set_of_types(connection: postgresql_cursor.PostgreSQLConnection) -> None:
    cursor = connection.cursor()
    for value in (1, "1", None, 1, "1", None, 1, "1", None):
        assert cursor.execute("SELECT coalesce(%(a)s::text, 'none')", {"a": value}).fetchone() == (str(value or "none"),)
    assert len(connection.statements) == 2  # text and NULL are of one type, the unknown


def test_the_oldest_statements_are_forgotten(connection: postgresql_cursor.PostgreSQLConnection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgresql_cursor, "MAX_PREPARED_STATEMENTS", 4)
    cursor = connection.cursor()
    for number in (*range(10), 0):
        for _ in range(3):
            assert cursor.execute(f"SELECT {number} + %(a)s", {"a": 1}).fetchone() == (number + 1,)
    assert len(connection.statements) == 4
    there = cursor.execute("SELECT count(*) FROM pg_prepared_statements").fetchone()
    assert there == (4,)


@pytest.fixture
def filled(connection: postgresql_cursor.PostgreSQLConnection) -> postgresql_cursor.PostgreSQLCursor:
    """A cursor, and a table `t` that holds 0."""
    cursor = connection.cursor().execute("CREATE TEMPORARY TABLE t (a int PRIMARY KEY)")
    return cursor.execute("INSERT INTO t VALUES (0)")


ADD, ALL = "INSERT INTO t VALUES (%(a)s)", "SELECT array_agg(a ORDER BY a)::text FROM t"


def test_waiting_statements_go_before_the_next_one(filled: postgresql_cursor.PostgreSQLCursor) -> None:
    for first in range(10, 40, 10):  # at first unprepared, then prepared, then remembered
        filled.enqueue("BEGIN")
        filled.enqueue(ADD, {"a": first})
        filled.enqueue(ADD, {"a": first + 1})
        assert filled.execute(ALL, {}).fetchone()[0].endswith(f",{first},{first + 1}}}")
        filled.enqueue(ADD, {"a": first + 2})
        filled.execute("COMMIT")
    filled.enqueue(ADD, {"a": 50})
    filled.executemany(ADD, [{"a": 51}, {"a": 52}])
    filled.enqueue(ADD, {"a": 53})
    with filled.copy("COPY t FROM STDIN") as copy:
        copy.write_row((54,))
    filled.enqueue(ADD, {"a": 55})
    filled.sync()
    assert filled.execute(ALL).fetchone() == ("{0,10,11,12,20,21,22,30,31,32,50,51,52,53,54,55}",)


def test_only_prepared_statements_are_remembered_so(
    connection: postgresql_cursor.PostgreSQLConnection, filled: postgresql_cursor.PostgreSQLCursor
) -> None:
    for first in range(3):
        for number in range(3):
            filled.enqueue(ADD, {"a": 10 * first + number + 1})
        filled.sync()
    there = filled.execute("SELECT count(*) FROM pg_prepared_statements").fetchone()
    assert there == (len([name for name in connection.statements.values() if name]),) == (1,)


@pytest.mark.parametrize("known", [False, True])
def test_an_error_of_a_waiting_statement_is_raised_by_the_next(filled: postgresql_cursor.PostgreSQLCursor, known: bool) -> None:
    for number in range(3 * known):
        filled.execute(ADD, {"a": number + 1})
    filled.enqueue("BEGIN")
    filled.enqueue(ADD, {"a": 7})
    filled.enqueue(ADD, {"a": 7})
    filled.enqueue(ADD, {"a": 8})
    with pytest.raises(psycopg.errors.UniqueViolation):
        filled.execute("COMMIT")
    filled.enqueue(ADD, {"a": 9})
    filled.discard_pending()
    filled.execute("ROLLBACK")
    assert filled.execute(ALL).fetchone() == ("{0,1,2,3}" if known else "{0}",)
    with pytest.raises(TypeError):
        filled.enqueue(ADD, {"a": object()})
    filled.sync()
    assert filled.execute("SELECT 1", {}).fetchone() == (1,)


LONG = "x" * postgresql_cursor.LONG
TAKE = "SELECT pg_advisory_xact_lock(%(key)s), %(long)s::text"


def is_taken(key: int) -> bool:
    """Return whether a transaction holds an advisory lock within ten seconds."""
    with psycopg.connect(address(), autocommit=True) as other:
        for _ in range(1000):
            if other.execute("SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = %s", [key]).fetchone():
                return True
            time.sleep(0.01)
    return False


def test_a_long_statement_runs_while_the_caller_goes_on(filled: postgresql_cursor.PostgreSQLCursor) -> None:
    for first in range(10, 40, 10):  # at first unprepared, then prepared, then remembered
        filled.enqueue("BEGIN")
        filled.execute("SELECT 1", {})
        filled.enqueue(ADD, {"a": first})
        filled.enqueue(TAKE, {"key": 770 + first, "long": LONG})
        assert is_taken(770 + first)
        filled.enqueue(ADD, {"a": first + 1})
        filled.enqueue(TAKE, {"key": 771 + first, "long": LONG})
        assert is_taken(771 + first)
        assert filled.execute(ALL, {}).fetchone()[0].endswith(f",{first},{first + 1}}}")
        filled.execute("COMMIT")
    assert filled.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid BETWEEN 770 AND 801").fetchone() == (0,)


def test_a_long_statement_is_forgotten_with_its_transaction(filled: postgresql_cursor.PostgreSQLCursor) -> None:
    filled.execute("BEGIN")
    filled.enqueue(TAKE, {"key": 769, "long": LONG})
    filled.enqueue(ADD, {"a": 1})
    filled.enqueue("SELECT 1 / 0, %(long)s::text", {"long": LONG})
    filled.discard_pending()
    filled.execute("ROLLBACK")
    assert filled.execute(ALL).fetchone() == ("{0}",)
    filled.execute("BEGIN")
    filled.enqueue("SELECT 1 / 0, %(long)s::text", {"long": LONG})
    with pytest.raises(psycopg.errors.DivisionByZero):
        filled.execute(ALL)
    filled.execute("ROLLBACK")
    assert filled.execute(ALL).fetchone() == ("{0}",)


def test_outside_a_transaction_a_long_statement_waits_too(filled: postgresql_cursor.PostgreSQLCursor) -> None:
    filled.enqueue("INSERT INTO t SELECT 5 FROM (SELECT %(long)s::text) AS one", {"long": LONG})
    filled.discard_pending()
    assert filled.execute(ALL).fetchone() == ("{0}",)


@pytest.mark.parametrize("ends", ["sync", "discard_pending"])
def test_a_connection_ends_under_a_long_statement(connection: postgresql_cursor.PostgreSQLConnection, ends: str) -> None:
    cursor = connection.cursor().execute("BEGIN")
    process = cursor.execute("SELECT pg_backend_pid()").fetchone()
    cursor.enqueue(TAKE, {"key": 768, "long": LONG})
    assert is_taken(768)
    with psycopg.connect(address(), autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", process)
    with pytest.raises(psycopg.OperationalError):
        getattr(cursor, ends)()
    assert connection.closed


def test_a_connection_that_can_not_send_is_closed(connection: postgresql_cursor.PostgreSQLConnection) -> None:
    cursor = connection.cursor().execute("BEGIN")
    with socket.socket(fileno=os.dup(connection.pgconn.socket)) as broken:
        broken.shutdown(socket.SHUT_RDWR)
    with pytest.raises(psycopg.OperationalError):
        cursor.enqueue(TAKE, {"key": 775, "long": LONG * 1000})
    assert connection.closed
    cursor.discard_pending()  # it does not wait for an answer


def test_waiting_statements_may_be_long(connection: postgresql_cursor.PostgreSQLConnection) -> None:
    cursor = connection.cursor().execute("CREATE TEMPORARY TABLE t (a text)")
    text = "x" * 30_000_000
    cursor.enqueue("INSERT INTO t VALUES (%(a)s)", {"a": text})
    cursor.enqueue("SELECT a FROM t", {})
    assert cursor.execute("SELECT %(a)s || a FROM t", {"a": text}).fetchone() == (text + text,)


def test_a_connection_ends_under_waiting_statements(connection: postgresql_cursor.PostgreSQLConnection) -> None:
    cursor = connection.cursor()
    process = cursor.execute("SELECT pg_backend_pid()").fetchone()
    with psycopg.connect(address(), autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", process)
    cursor.enqueue("SELECT %(a)s::int", {"a": 1})
    with pytest.raises(psycopg.OperationalError):
        cursor.execute("COMMIT")
    assert connection.closed


def test_a_connection_is_closed_when_the_wait_for_answers_is_broken_off(
    connection: postgresql_cursor.PostgreSQLConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Interrupted:
        def poll(self) -> None:
            raise KeyboardInterrupt

    cursor = connection.cursor()
    monkeypatch.setattr(connection, "input", Interrupted())
    cursor.enqueue("SELECT pg_sleep(0.2)")
    with pytest.raises(KeyboardInterrupt):
        cursor.sync()
    assert connection.closed
    with pytest.raises(psycopg.OperationalError):
        cursor.execute("SELECT 1")


def test_a_connection_that_the_server_ends(connection: postgresql_cursor.PostgreSQLConnection) -> None:
    cursor = connection.cursor()
    process = cursor.execute("SELECT pg_backend_pid()").fetchone()
    with psycopg.connect(address(), autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", process)
    with pytest.raises(psycopg.OperationalError):
        cursor.execute("SELECT %(a)s::int", {"a": 1})
    assert connection.broken


@pytest.mark.parametrize("waits", [False, True])
def test_other_threads_run_while_a_statement_does(connection: postgresql_cursor.PostgreSQLConnection, waits: bool) -> None:
    ended = threading.Event()

    def wait() -> None:
        for _ in range(3):
            cursor = connection.cursor()
            if waits:
                cursor.enqueue("SELECT %(s)s", {"s": 1})
            cursor.execute("SELECT pg_sleep(%(s)s)", {"s": 0.3})
        ended.set()

    thread = threading.Thread(target=wait)
    thread.start()
    turns = 0
    while not ended.is_set():
        time.sleep(0.001)
        turns += 1
    thread.join()
    assert turns > 20


def plan(connection: postgresql_cursor.PostgreSQLConnection) -> str:
    return " ".join(line for (line,) in connection.cursor().execute("EXPLAIN EXECUTE metastore_0(1)").fetchall())


def test_plans_that_were_made_for_an_empty_table_are_made_again(
    connection: postgresql_cursor.PostgreSQLConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    cursor = connection.cursor().execute("CREATE TEMPORARY TABLE t (a int PRIMARY KEY)")
    cursor.execute("VACUUM t")
    for _ in range(10):
        cursor.execute("SELECT a FROM t WHERE a = %(a)s", {"a": 1})
    cursor.execute("INSERT INTO t SELECT generate_series(1, 10000)")
    assert "Seq Scan" in plan(connection)
    monkeypatch.setattr(postgresql_cursor, "PLANS_LAST", 0.0)
    assert "Index" in plan(connection)
