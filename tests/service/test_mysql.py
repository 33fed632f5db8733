"""The cursors on MariaDB: what waits goes with the next statement, in its order, and its errors are raised there."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from sqlalchemy.engine import make_url

pymysql = pytest.importorskip("pymysql")

from metastore.store import mysql  # noqa: E402  # needs pymysql
from metastore.store.drivers import MySQLDriver  # noqa: E402  # see above

ADD, ALL = "INSERT INTO waiting VALUES (%(a)s, %(b)s)", "SELECT a, b FROM waiting ORDER BY a"


@pytest.fixture
def cursor() -> Iterator[mysql.Cursor]:
    """A cursor, and a table `waiting` that holds 0."""
    url = os.environ.get("METASTORE_TEST_MYSQL")
    if url is None:
        pytest.skip("METASTORE_TEST_MYSQL names no server")
    with MySQLDriver(make_url(url)).connect() as connection, connection.cursor() as opened:
        opened.execute("CREATE TEMPORARY TABLE waiting (a int PRIMARY KEY, b longtext) ENGINE=InnoDB")
        opened.execute(ADD, {"a": 0, "b": "%s;'\"\\ä😀"})
        yield opened


def test_what_waits_goes_before_the_next_statement(cursor: mysql.Cursor) -> None:
    cursor.later("BEGIN")
    cursor.later(ADD, {"a": 1, "b": "; DROP TABLE waiting; --'%(a)s"})
    assert cursor.execute("UPDATE waiting SET a = a + %(by)s WHERE a = 1", {"by": 6}) == cursor.rowcount == 1
    cursor.later(ADD, {"a": 2, "b": None})
    cursor.execute(ALL)
    rows = cursor.fetchall()
    assert rows == ((0, "%s;'\"\\ä😀"), (2, None), (7, "; DROP TABLE waiting; --'%(a)s"))
    cursor.later(ADD, {"a": 3, "b": None})
    cursor.executemany(ADD, [{"a": 4, "b": "4"}, {"a": 5, "b": "5"}])
    cursor.later(ADD, {"a": 6, "b": None})
    cursor.flush()
    cursor.flush()
    cursor.execute("COMMIT")
    cursor.execute("SELECT group_concat(a ORDER BY a) FROM waiting")
    assert cursor.fetchone() == ("0,2,3,4,5,6,7",)


def test_an_error_of_what_waits_is_raised_by_the_next(cursor: mysql.Cursor) -> None:
    for first in (True, False):
        cursor.later("BEGIN")
        if not first:
            cursor.later(ADD, {"a": 8, "b": None})
        cursor.later(ADD, {"a": 0, "b": None})
        cursor.later(ADD, {"a": 9, "b": None})
        with pytest.raises(pymysql.err.IntegrityError):
            cursor.execute("COMMIT")
        cursor.later(ADD, {"a": 10, "b": None})
        cursor.forget()
        cursor.execute("ROLLBACK")
    cursor.execute(ALL)
    assert [row[0] for row in cursor.fetchall()] == [0]


def test_what_is_long_goes_one_by_one(cursor: mysql.Cursor) -> None:
    cursor.execute("SELECT @@max_allowed_packet")
    (most,) = cursor.fetchone() or (0,)
    for key in (1, 2):
        cursor.later(ADD, {"a": key, "b": "x" * (most * 2 // 3)})
    cursor.execute("SELECT a, length(b) FROM waiting WHERE a > 0")
    sizes = dict(cursor.fetchall())
    assert sizes == dict.fromkeys((1, 2), most * 2 // 3)
