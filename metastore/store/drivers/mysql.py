"""MariaDB or MySQL through PyMySQL: few rows are sent in one statement, more in packets of the driver."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import URL
from sqlalchemy.sql.dml import Insert

from metastore.errors import MetaError
from metastore.store.drivers.answer import Answer
from metastore.store.drivers.contract import (
    FEW,
    Driver,
    GuardFailed,
    NoSuchTable,
    ReferenceViolation,
    Retry,
    Row,
    Session,
    Unavailable,
    UniqueViolation,
    Unstorable,
    Unwritable,
    connected,
)

MIGRATION_LOCK = "LEFT(CONCAT('metastore-', DATABASE()), 64)"
"""SQL for the name of the migration lock, cut to the longest allowed length."""
MIGRATION_PATIENCE = 300
"""Seconds for which one server waits until another has brought the schema up to date."""
MARK = "\x01"
LONGEST_LIST = 2**30 - 1
"""The longest list, in characters of four bytes. MySQL 8 has 32 bits for its bytes: a longer one in a UNION is cut after 255 of them."""
OPTIONS = ("unix_socket", "ssl_ca", "ssl_cert", "ssl_key", "ssl_verify_identity")
"""Names that the query of a URL may have. With any of the names for TLS, a connection is encrypted or fails."""
PADDED = "utf8mb4_bin"
"""A collation that fills up the shorter of two texts with spaces."""


def collation(version: str, present: str) -> str:
    """Return the collation by which a database compares texts as bytes, from the server's version and the database's present one.

    A database that was made on a MySQL before 8.0.17, which has only `PADDED`, keeps it on later ones: its texts have marks, see
    `mysql_connection`.
    """
    if "MariaDB" in version:
        return "utf8mb4_nopad_bin"
    release = re.match(r"(\d+)\.(\d+)\.(\d+)", version)
    is_older = release is not None and tuple(map(int, release.groups())) < (8, 0, 17)
    return PADDED if is_older or present == PADDED else "utf8mb4_0900_bin"


class MySQLDriver(Driver):
    """MariaDB or MySQL through PyMySQL, at READ COMMITTED."""

    name = "mysql"
    begin_snapshot = ("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
    notes_changes = True
    advice = "try again; it also breaks the connection on a request larger than its max_allowed_packet"

    def __init__(self, url: URL) -> None:
        try:
            import pymysql

            from metastore.store.drivers import mysql_connection
        except ImportError as error:
            raise MetaError("a MariaDB or MySQL database needs PyMySQL: pip install '.[mysql]' in the checkout of metastore") from error
        from sqlalchemy.dialects.mysql import pymysql as dialect

        self.pymysql, self.connection = pymysql, mysql_connection.MySQLConnection
        self.error = pymysql.err.Error
        self.plain_connection = mysql_connection.PlainConnection
        self.mark = ""
        """The mark of the connections."""
        self.dialect = dialect.dialect(paramstyle="pyformat")
        self.arguments: dict[str, Any] = {
            "host": url.host or "127.0.0.1",
            "port": url.port or 3306,
            "user": url.username or "",
            "password": url.password or "",
            "database": url.database,
        }
        if unknown := sorted(set(url.query).difference(OPTIONS)):
            text = (
                f"database {url.render_as_string()}: the URL has {', '.join(unknown)}, which is not known; it may have {', '.join(OPTIONS)}"
            )
            raise MetaError(text)
        if "unix_socket" in url.query:
            self.arguments["unix_socket"] = url.query["unix_socket"]
        try:
            tls = mysql_connection.demanded_tls(url.query)
        except OSError as error:
            files = ", ".join(f"{name} {url.query[name]}" for name in ("ssl_ca", "ssl_cert", "ssl_key") if name in url.query)
            raise MetaError(f"database {url.render_as_string()}: {files} can not be used: {error.strerror or error}") from error
        if tls is not None:
            self.arguments["ssl"] = tls

    def connect(self) -> Any:
        flags = self.pymysql.constants.CLIENT
        connection = self.connection(
            **self.arguments,
            autocommit=True,
            charset="utf8mb4",
            client_flag=flags.FOUND_ROWS | flags.MULTI_STATEMENTS,
            init_command="SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
        )
        cursor = connection.cursor()
        cursor.execute(f"SET SESSION group_concat_max_len = {LONGEST_LIST}; SELECT version(), @@collation_database")
        ((version, present),) = cursor.fetchall()
        connection.mark = self.mark = MARK if collation(version, present) == PADDED else ""
        return connection

    def _for_sqlalchemy(self) -> Any:
        return self.plain_connection(**self.arguments, charset="utf8mb4", client_flag=self.pymysql.constants.CLIENT.FOUND_ROWS)

    def lowest(self, prefix: str) -> str:
        return prefix + self.mark

    def convert(self, value: list[Any]) -> tuple[Any, ...]:
        return tuple(value) or (None,)

    @contextmanager
    def migrating(self, url: URL) -> Iterator[Any]:
        with connected(url, "mysql+pymysql", creator=self._for_sqlalchemy) as connection:
            if connection.execute(sa.text(f"SELECT GET_LOCK({MIGRATION_LOCK}, :patience)"), {"patience": MIGRATION_PATIENCE}).scalar() != 1:
                raise MetaError(
                    f"database {url.render_as_string()}: another server has been bringing its schema up to date for "
                    f"{MIGRATION_PATIENCE} s; wait for it, and start again"
                )
            version, present = connection.execute(sa.text("SELECT version(), @@collation_database")).one()
            connection.execute(sa.text(f"ALTER DATABASE CHARACTER SET utf8mb4 COLLATE {collation(version, present)}"))
            yield connection

    @classmethod
    @cache
    def ignoring(cls, table: sa.Table) -> Insert:
        return sa.insert(table).prefix_with("IGNORE")

    def insert_many(self, session: Session, table: sa.Table, columns: Sequence[str], rows: Sequence[Row], *, pipelined: bool) -> None:
        if pipelined and len(rows) <= FEW:
            self._enqueue_insert(session, table, columns, rows)
        else:
            super().insert_many(session, table, columns, rows, pipelined=pipelined)

    def upsert(self, session: Session, table: sa.Table, columns: Sequence[str], rows: Sequence[Row]) -> None:
        changes = ", ".join(f"`{column}` = VALUES(`{column}`)" for column in columns if column not in table.primary_key.columns)
        otherwise = f" ON DUPLICATE KEY UPDATE {changes}"
        if len(rows) <= FEW:
            self._enqueue_insert(session, table, columns, rows, otherwise=otherwise)
        else:
            with session.running(f"INSERT INTO {table.name}"):
                session.cursor.executemany(f"{_inserting_into(table, columns)}({_places(len(columns))}){otherwise}", rows)

    def insert_below(
        self, session: Session, above: Answer, table: sa.Table, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]
    ) -> None:
        if len(rows) <= FEW:
            self._enqueue_insert(session, table, columns, rows, first="LAST_INSERT_ID(), ")
        else:
            super().insert_below(session, above, table, columns, rows)

    def _enqueue_insert(
        self, session: Session, table: sa.Table, columns: Sequence[str], rows: Sequence[tuple[Any, ...]], *, first: str = "",
        otherwise: str = "",
    ) -> None:  # fmt: skip
        """Insert rows in one statement; `first` is put before the values of each row, `otherwise` after all rows."""
        row = f"({first}{_places(len(rows[0]))})"
        session.observe(f"INSERT INTO {table.name}")
        session.has_pending = True
        session.cursor.enqueue(
            f"{_inserting_into(table, columns)}{', '.join([row] * len(rows))}{otherwise}", [value for each in rows for value in each]
        )

    def classify(self, error: BaseException) -> type[Exception] | None:
        code = error.args[0] if error.args else None
        if code == 1062:
            return UniqueViolation
        if code == 1690 and "exp(" in str(error.args[1]):  # the guards of `store.fast_paths` overflow it
            return GuardFailed
        if code in (1451, 1452):
            return ReferenceViolation
        if code == 1146:
            return NoSuchTable
        if code in (1205, 1213, 1020):
            return Retry
        if code in (1406, 1366, 1153):
            return Unstorable
        if code in (1021, 1026, 1114, 1290, 1836) or (code == 1030 and "Got error 28 " in str(error.args[1])):
            return Unwritable  # the disk is full, or the database is read-only
        if code in (2006, 2013, 2055, 1053, 1927) or isinstance(error, self.pymysql.err.InterfaceError):
            return Unavailable
        return None


def _inserting_into(table: sa.Table, columns: Sequence[str]) -> str:
    return f"INSERT INTO `{table.name}` ({', '.join(f'`{column}`' for column in columns)}) VALUES "


def _places(count: int) -> str:
    return ", ".join(["%s"] * count)
