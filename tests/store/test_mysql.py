"""The cursors on MariaDB and MySQL: pending statements go with the next one, in their order, and their errors are raised there."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy.engine import URL

pymysql = pytest.importorskip("pymysql")

from metastore.store.drivers import mysql_connection  # noqa: E402  # see above
from metastore.store.drivers.contract import Unavailable  # noqa: E402  # see above
from metastore.store.drivers.mysql import MySQLDriver, collation  # noqa: E402  # see above
from metastore.store.drivers.mysql_answers import Answers  # noqa: E402  # see above
from tests.support.databases import databases  # noqa: E402  # see above

ADD, ALL = "INSERT INTO waiting VALUES (%(a)s, %(b)s)", "SELECT a, b FROM waiting ORDER BY a"


TEN = f"(SELECT 0{' UNION ALL SELECT 0' * 9})"
ENDLESS = f"SELECT 'some text' FROM {', '.join(f'{TEN} t{number}' for number in range(10))}"


@pytest.fixture(params=["mysql", databases.MYSQL8])
def url(request: pytest.FixtureRequest) -> URL:
    return databases.server(request.param)


@pytest.fixture
def driver(url: URL) -> MySQLDriver:
    return MySQLDriver(url)


@pytest.fixture
def connection(driver: MySQLDriver) -> Iterator[mysql_connection.MySQLConnection]:
    opened = driver.connect()
    yield opened
    if opened.open:
        opened.close()


@pytest.fixture
def cursor(connection: mysql_connection.MySQLConnection) -> mysql_connection.MySQLCursor:
    """A cursor, and a table `waiting` that holds 0."""
    opened = connection.cursor()
    opened.execute("CREATE TEMPORARY TABLE waiting (a int PRIMARY KEY, b longtext) ENGINE=InnoDB")
    opened.execute(ADD, {"a": 0, "b": "%s;'\"\\ä😀"})
    return opened


def test_the_names_of_pymysql_that_are_not_documented_are_there(connection: mysql_connection.MySQLConnection) -> None:
    """All such names that the driver uses exist. A release without one of them needs another driver; pyproject.toml bounds the version."""
    for name in ("_sock", "_next_seq_id", "_execute_command", "_force_close"):
        assert hasattr(connection, name), name
    for module, name in (
        (pymysql.connections, "TEXT_TYPES"),
        (pymysql.cursors, "RE_INSERT_VALUES"),
        (pymysql.protocol, "FieldDescriptorPacket"),
        (pymysql.converters, "decoders"),
        (pymysql.converters, "through"),
        (pymysql.converters, "escape_string"),
    ):
        assert hasattr(module, name), name


@pytest.fixture
def plain(driver: MySQLDriver) -> Iterator[Any]:
    """A cursor of PyMySQL's own, on a connection with the same settings."""
    flags = pymysql.constants.CLIENT
    opened = pymysql.connect(**driver.arguments, autocommit=True, charset="utf8mb4", client_flag=flags.FOUND_ROWS | flags.MULTI_STATEMENTS)
    with closing(opened):
        yield opened.cursor()


@pytest.mark.parametrize("encrypted", [True, False])
def test_a_login_by_the_server_s_default_way(driver: MySQLDriver, encrypted: bool) -> None:
    """The first login works too. MySQL 8 keeps a hash for later ones. Without it and without TLS, its public key encrypts the password."""
    driver.arguments["ssl_disabled"] = not encrypted
    with closing(driver.connect()) as opened:
        opened.cursor().execute("FLUSH PRIVILEGES")  # empties the server's cache of hashes
    for _ in range(2):
        with closing(driver.connect()) as opened:
            cursor = opened.cursor()
            cursor.execute("SELECT plugin FROM mysql.user WHERE user = 'metastore'")
            assert cursor.fetchone() == ("mysql_native_password" if "MariaDB" in opened.get_server_info() else "caching_sha2_password",)
            cursor.execute("SHOW STATUS LIKE 'Ssl_cipher'")
            assert encrypted or cursor.fetchone() == ("Ssl_cipher", "")
    driver.arguments["password"] = "wrong"
    with pytest.raises(pymysql.err.OperationalError, match="Access denied"):
        driver.connect()


def test_connections_share_the_context_of_tls(driver: MySQLDriver, url: URL) -> None:
    with closing(driver.connect()) as one, closing(driver.connect()) as other, driver.migrating(url) as third:
        assert one.ctx is other.ctx is third.connection.dbapi_connection.ctx


@pytest.mark.parametrize(("version", "present", "expected"), [
    ("10.11.6-MariaDB-0+deb12u1", "utf8mb4_bin", "utf8mb4_nopad_bin"), ("8.0.15", "utf8mb4_0900_ai_ci", "utf8mb4_bin"),
    ("8.0.17", "utf8mb4_0900_ai_ci", "utf8mb4_0900_bin"), ("8.4.3", "utf8mb4_0900_bin", "utf8mb4_0900_bin"),
    ("8.4.3", "utf8mb4_bin", "utf8mb4_bin"), ("5.7.44-log", "latin1_swedish_ci", "utf8mb4_bin"),
])  # fmt: skip
def test_a_database_keeps_its_collation_when_its_server_becomes_newer(version: str, present: str, expected: str) -> None:
    assert collation(version, present) == expected


def test_waiting_statements_go_before_the_next_one(cursor: mysql_connection.MySQLCursor) -> None:
    cursor.enqueue("BEGIN")
    cursor.enqueue(ADD, {"a": 1, "b": "; DROP TABLE waiting; --'%(a)s"})
    assert cursor.execute("UPDATE waiting SET a = a + %(by)s WHERE a = 1", {"by": 6}) == cursor.rowcount == 1
    cursor.enqueue(ADD, {"a": 2, "b": None})
    cursor.execute(ALL)
    rows = cursor.fetchall()
    assert rows == [(0, "%s;'\"\\ä😀"), (2, None), (7, "; DROP TABLE waiting; --'%(a)s")]
    cursor.enqueue(ADD, {"a": 3, "b": None})
    cursor.executemany(ADD, [{"a": 4, "b": "4"}, {"a": 5, "b": "5"}])
    cursor.enqueue(ADD, {"a": 6, "b": None})
    cursor.sync()
    cursor.sync()
    cursor.execute("COMMIT")
    cursor.execute("SELECT group_concat(a ORDER BY a) FROM waiting")
    assert cursor.fetchone() == ("0,2,3,4,5,6,7",)


def test_an_error_of_a_waiting_statement_is_raised_by_the_next(cursor: mysql_connection.MySQLCursor) -> None:
    for first in (True, False):
        cursor.enqueue("BEGIN")
        if not first:
            cursor.enqueue(ADD, {"a": 8, "b": None})
        cursor.enqueue(ADD, {"a": 0, "b": None})
        cursor.enqueue(ADD, {"a": 9, "b": None})
        with pytest.raises(pymysql.err.IntegrityError):
            cursor.execute("COMMIT")
        cursor.enqueue(ADD, {"a": 10, "b": None})
        cursor.discard_pending()
        cursor.execute("ROLLBACK")
    cursor.execute(ALL)
    assert [row[0] for row in cursor.fetchall()] == [0]


def test_long_rows_go_one_by_one(cursor: mysql_connection.MySQLCursor) -> None:
    cursor.execute("SELECT @@max_allowed_packet")
    (most,) = cursor.fetchone() or (0,)
    for key in (1, 2):
        cursor.enqueue(ADD, {"a": key, "b": "x" * (most * 2 // 3)})
    cursor.execute("SELECT a, length(b) FROM waiting WHERE a > 0")
    sizes = dict(cursor.fetchall())  # type: ignore[var-annotated]
    assert sizes == dict.fromkeys((1, 2), most * 2 // 3)


def test_answers_before_an_error_are_kept(cursor: mysql_connection.MySQLCursor) -> None:
    found, changed = cursor.enqueue(ALL), cursor.enqueue("UPDATE waiting SET b = %(b)s WHERE a = 0", {"b": "new"})
    cursor.enqueue(ADD, {"a": 0, "b": None})
    never = cursor.enqueue("UPDATE waiting SET b = 'never'")
    with pytest.raises(pymysql.err.IntegrityError):
        cursor.sync()
    assert found.rows == [(0, "%s;'\"\\ä😀")]
    assert (changed.count, never.rows, never.count) == (1, (), 0)
    cursor.execute(ALL)
    assert cursor.fetchone() == (0, "new")
    assert cursor.fetchone() is None


def test_one_statement_for_many_sets_of_parameters(cursor: mysql_connection.MySQLCursor) -> None:
    size = mysql_connection.TOGETHER // 3
    cursor.executemany(ADD, ({"a": key, "b": str(key) * size} for key in range(1, 8)))
    cursor.enqueue(ADD, {"a": 8, "b": "8"})
    cursor.executemany("UPDATE waiting SET a = a * %(by)s WHERE a = %(a)s", [{"a": key, "by": 10} for key in (7, 8, 9)])
    cursor.executemany("INSERT IGNORE INTO waiting VALUES (%(a)s, %(b)s)", [{"a": 80, "b": None}, {"a": 90, "b": None}])
    cursor.executemany(f"{ADD} ON DUPLICATE KEY UPDATE b = '%%s'", [{"a": 1, "b": None}, {"a": 2, "b": None}])
    cursor.executemany(ADD, [])
    cursor.execute("SELECT a, left(b, 2), length(b) FROM waiting WHERE a > 0 ORDER BY a")
    assert cursor.fetchall() == [
        (1, "%s", 2),
        (2, "%s", 2),
        *((key, str(key) * 2, size) for key in (3, 4, 5, 6)),
        (70, "77", size),
        (80, "8", 1),
        (90, None, None),
    ]


@pytest.mark.parametrize("mode", ["", "NO_BACKSLASH_ESCAPES"])
def test_parameters_are_written_as_pymysql_does(cursor: mysql_connection.MySQLCursor, plain: Any, mode: str) -> None:
    texts = ("", "'", "\\'", "\\", "a'b\"c", "\0\n\r\x1a\t", "%s %(a)s %%", "ä😀\u2028", "'; DROP TABLE waiting; --")
    values = (
        *texts,
        0,
        -1,
        2**63,
        True,
        False,
        None,
        1.5,
        -0.1,
        1e300,
        b"",
        b"\xff'\\",
        Decimal("1.10"),
        date(2024, 2, 29),
        (1,),
        (1, "'", None, True),
        ("a", b"b"),
        texts,
    )
    for each in (cursor, plain):
        each.execute(f"SET SESSION sql_mode = '{mode}'")
    for value in values:
        assert cursor.mogrify("a %s %% %s", [value, 1]) == plain.mogrify("a %s %% %s", (value, 1))
        assert cursor.mogrify("%(b)s %(a)s", {"a": 1, "b": value}) == plain.mogrify("%(b)s %(a)s", {"a": 1, "b": value})
    assert cursor.mogrify("%s %% %(a)s") == "%s %% %(a)s"
    cursor.execute(f"SELECT {', '.join(['%s'] * len(texts))}", texts)
    assert cursor.fetchone() == texts


TYPES = (
    "tinyint(1)",
    "tinyint unsigned",
    "smallint",
    "mediumint",
    "int",
    "bigint",
    "bigint unsigned",
    "decimal(30,5)",
    "float",
    "double",
    "bit(9)",
    "year",
    "date",
    "time(6)",
    "datetime",
    "datetime(6)",
    "timestamp NULL",
    "char(9)",
    "varchar(255)",
    "tinytext",
    "text",
    "mediumtext",
    "longtext",
    "json",
    "enum('a', 'ä😀')",
    "set('a', 'b')",
    "binary(3)",
    "varbinary(255)",
    "tinyblob",
    "blob",
    "mediumblob",
    "longblob",
)
VALUES = (
    (
        "1",
        "255",
        "-32768",
        "-8388608",
        "-2147483648",
        "-9223372036854775808",
        "18446744073709551615",
        "-1234567890123456789012345.67891",
        "-1.5",
        "1.7976931348623157e308",
        "b'101010101'",
        "1999",
        "'0999-12-31'",
        "'-838:59:58.999999'",
        "'2024-02-29 23:59:59'",
        "'2024-02-29 23:59:59.123456'",
        "'2030-01-02 03:04:05'",
        "'ä😀'",
        "'%s;''\"\\\\\\n\\0'",
        "'x'",
        "repeat('ä', 125)",
        "repeat('😀', 63)",
        "repeat('x', 65536)",
        "'{\"a\": [1, null]}'",
        "'ä😀'",
        "'a,b'",
        "x'ff00'",
        "x'ff27'",
        "x'00'",
        "repeat(x'fe', 251)",
        "repeat(x'fb', 65535)",
        "repeat(x'00', 70000)",
    ),
    (
        "0",
        "0",
        "32767",
        "8388607",
        "2147483647",
        "9223372036854775807",
        "0",
        "0",
        "0",
        "-0.1",
        "b'0'",
        "0",
        "'9999-12-31'",
        "'00:00:00'",
        "'1000-01-01'",
        "'1000-01-01 00:00:00.000001'",
        "'1970-01-02'",
        *["''"] * 6,
        "'null'",
        "'a'",
        "''",
        *["''"] * 6,
    ),
    ("NULL",) * len(TYPES),
)


@pytest.mark.parametrize("chunk", [1, 100, 7000, mysql_connection.CHUNK])
def test_values_are_those_of_pymysql(
    connection: mysql_connection.MySQLConnection, plain: Any, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The values are equal for any number of bytes that the socket returns at a time."""
    cursor: Any = connection.cursor()
    columns = ", ".join(f"c{number} {kind}" for number, kind in enumerate(TYPES))
    for each in (cursor, plain):
        each.execute(f"CREATE TEMPORARY TABLE kinds ({columns}) CHARACTER SET utf8mb4")
        each.execute(f"INSERT INTO kinds VALUES {', '.join(f'({chr(44).join(row)})' for row in VALUES)}")
    monkeypatch.setattr(mysql_connection, "CHUNK", chunk)
    for query in (
        "SELECT * FROM kinds",
        "SELECT * FROM kinds WHERE c0 = 7",
        "SELECT NULL, '', 'ä', 1, -1, 1.5, 1e0, true, now() - now(), date('2024-01-02'), x'41', 0x7fffffff + 1, current_user()",
        "SELECT sum(c4), avg(c4), max(c18), group_concat(c18), count(*), cast(max(c4) AS char), concat(max(c18), max(c29)) FROM kinds",
        "SELECT 1 UNION ALL SELECT 'ä' UNION ALL SELECT NULL",
        "SHOW DATABASES",
    ):
        values = []
        for each in (cursor, plain):
            assert each.execute(query) == each.rowcount
            rows = each.fetchall()
            values.append([[(type(value), value) for value in row] for row in rows])
        assert values[0] == values[1]
        assert cursor.lastrowid == plain.lastrowid
    assert len(values[0]) > 1


def test_a_long_list_in_a_union_is_whole(cursor: mysql_connection.MySQLCursor) -> None:
    cursor.execute(f"SELECT '1' UNION ALL SELECT group_concat(1) FROM {TEN} a, {TEN} b, {TEN} c")
    assert [len(text) for (text,) in cursor.fetchall()] == [1, 1999]


def test_a_row_may_be_longer_than_a_packet(cursor: mysql_connection.MySQLCursor) -> None:
    half = 0xFFFFFF // 2
    cursor.execute("SELECT @@max_allowed_packet")
    assert (cursor.fetchone() or (0,))[0] > half
    for first, second in ((half, half + 1), (half - 5, half - 4), (half - 4, half - 4)):  # the second fills a packet: an empty one follows
        answer = cursor.enqueue("SELECT repeat('x', %(first)s), repeat('y', %(second)s), 7", {"first": first, "second": second})
        assert [(len(x), len(y), z) for x, y, z in answer.rows] == [(first, second, 7)]
        assert answer.rows[0][:2] == ("x" * first, "y" * second)


def test_counts_and_keys_are_those_of_pymysql(connection: mysql_connection.MySQLConnection, plain: Any) -> None:
    statements = (
        "CREATE TEMPORARY TABLE keyed (id bigint AUTO_INCREMENT PRIMARY KEY, a int UNIQUE, b varchar(3))",
        "INSERT INTO keyed (a, b) VALUES (1, 'x')",
        "INSERT INTO keyed (a, b) VALUES (2, 'x'), (3, 'x')",
        "INSERT IGNORE INTO keyed (a, b) VALUES (3, 'x'), (4, 'too long')",
        "INSERT INTO keyed (a, b) VALUES (3, 'y') ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id)",
        "INSERT INTO keyed (a, b) VALUES (3, 'y') ON DUPLICATE KEY UPDATE b = 'y'",
        "INSERT INTO keyed VALUES (70000, 9, NULL)",
        "INSERT INTO keyed VALUES (9000000000000000000, 10, NULL)",
        "INSERT INTO keyed (a) VALUES (11)",
        "UPDATE keyed SET b = 'x' WHERE a < 3",
        "UPDATE keyed SET a = LAST_INSERT_ID(a) WHERE a = 2",
        "SELECT * FROM keyed ORDER BY id",
        "DO 1",
        "DELETE FROM keyed WHERE a = 1",
        "DELETE FROM keyed",
        "SELECT * FROM keyed",
    )
    results: Any = [
        [(cursor.execute(each), cursor.rowcount, cursor.lastrowid, list(cursor.fetchall())) for each in statements]
        for cursor in (connection.cursor(), plain)
    ]
    assert results[0] == results[1]
    cursor = connection.cursor()
    answers = [cursor.enqueue(each) for each in statements[1:4]]
    cursor.sync()
    last = results[0][8][2]
    assert [(each.count, each.key) for each in answers] == [(1, last + 1), (2, last + 2), (1, last + 4)]


@pytest.mark.parametrize("statement", [
    "SELEKT 1", "SELECT * FROM nowhere", "INSERT INTO waiting VALUES (0, NULL)", "INSERT INTO waiting VALUES (NULL, NULL)", "SELECT a + x",
    "LOAD DATA LOCAL INFILE '/etc/hostname' INTO TABLE waiting", "KILL 0", "SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'ä😀'",
    "SELECT a FROM waiting WHERE a = (SELECT 1 UNION SELECT 2)", "",
])  # fmt: skip
def test_errors_are_those_of_pymysql(cursor: mysql_connection.MySQLCursor, plain: Any, statement: str) -> None:
    plain.execute("CREATE TEMPORARY TABLE waiting (a int PRIMARY KEY, b longtext) ENGINE=InnoDB")
    plain.execute("INSERT INTO waiting VALUES (0, NULL)")
    errors = []
    for each in (cursor, plain):
        with pytest.raises(pymysql.err.Error) as raised:
            each.execute(statement)
        errors.append((raised.type, raised.value.args, vars(raised.value)))
    assert errors[0] == errors[1]
    assert cursor.execute(ALL) == 1


def _broken(cursor: mysql_connection.MySQLCursor, statement: str, driver: MySQLDriver) -> None:
    """Check that the connection is broken, at this statement and at later ones."""
    for each in (statement, "SELECT 1"):
        with pytest.raises(pymysql.err.Error) as raised:
            cursor.execute(each)
        assert driver.classify(raised.value) is Unavailable


def _kill(driver: MySQLDriver, number: int, when: Callable[[str | None], bool]) -> None:
    """End a connection as soon as the statement that it runs fulfils the condition."""
    with closing(driver.connect()) as other:
        cursor = other.cursor()
        while True:
            cursor.execute("SELECT info FROM information_schema.processlist WHERE id = %(id)s", {"id": number})
            ((text,),) = cursor.fetchall()
            if when(text):
                break
            time.sleep(0.01)
        cursor.execute("KILL CONNECTION %(id)s", {"id": number})


def test_a_connection_that_is_killed_while_idle_is_broken(connection: mysql_connection.MySQLConnection, driver: MySQLDriver) -> None:
    _kill(driver, connection.thread_id(), lambda text: text is None)
    _broken(connection.cursor(), "SELECT 1", driver)


@pytest.mark.parametrize(("statement", "received"), [("SELECT SLEEP(100)", 0), (ENDLESS, 20)])
def test_a_connection_that_is_killed_at_work_is_broken(
    connection: mysql_connection.MySQLConnection, driver: MySQLDriver, statement: str, received: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection is broken if it is killed before its answer or in the middle of the answer."""
    plain, parts = mysql_connection.MySQLConnection._receive, []

    def receive(self: mysql_connection.MySQLConnection, size: int) -> bytes:
        part = plain(self, size)
        if self is connection:
            parts.append(part)
        return part

    monkeypatch.setattr(mysql_connection.MySQLConnection, "_receive", receive)
    killer = threading.Thread(
        target=_kill, args=(driver, connection.thread_id(), lambda text: text == statement and len(parts) >= received)
    )
    killer.start()
    _broken(connection.cursor(), statement, driver)
    killer.join()
    assert len(parts) >= received


def test_nothing_is_read_after_an_interruption(
    connection: mysql_connection.MySQLConnection, driver: MySQLDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    cursor = connection.cursor()
    with monkeypatch.context() as context:
        context.setattr(mysql_connection.MySQLConnection, "_receive", _interrupt)
        with pytest.raises(KeyboardInterrupt):
            cursor.execute("SELECT 1")
    assert not connection.open
    _broken(cursor, "SELECT 2", driver)


def _interrupt(*_: object) -> bytes:
    raise KeyboardInterrupt


@pytest.mark.parametrize(("answer", "error", "text"), [
    (b"\x05\0\0\1\xfb/etc", RuntimeError, "LOAD DATA LOCAL"),
    (b"\x07\0\0\0\0\0\0\2\0\0\0", pymysql.err.OperationalError, "2013"),
    (b"\x07\0\0\5\0\0\0\2\0\0\0", pymysql.err.InternalError, "number wrong - got 5 expected 1"),
    (b"\x07\0\0\1\0\0\0\x0a\0\0\0\x07\0\0\3\0\0\0\2\0\0\0", pymysql.err.InternalError, "number wrong - got 3 expected 2"),
])  # fmt: skip
def test_replies_that_no_server_may_send(answer: bytes, error: type[Exception], text: str) -> None:
    given = iter([answer])
    answers = Answers(lambda _: next(given), 1)
    with pytest.raises(error, match=text):
        answers.read([])
    assert not answers.ended
