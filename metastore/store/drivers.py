"""What differs between the databases: how to connect, begin, insert many rows, and read an error. Never begins a unit of work.

    UniqueViolation      a row with this key is there already
    ReferenceViolation   a row that others refer to was to go
    Retry                nothing was done: begin again
    Unavailable          the connection broke before anything was committed
    BrokenAtCommit       it broke while the commit was on its way
"""

from __future__ import annotations

import fcntl
import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import sqlalchemy as sa
from sqlalchemy.engine import URL, Dialect

from metastore.errors import MetaError
from metastore.store.answer import Answer

if TYPE_CHECKING:
    from metastore.store.database import Session

Row = tuple[Any, ...]
FEW, MANY = 200, 10_000
"""Rows that PostgreSQL is given as arrays in one statement, at once or later; more go by COPY, which nothing can go on beside.
MariaDB and MySQL are given few in one statement, later; more go in packets of their own."""


class UniqueViolation(Exception):
    """A row with this key is there already; the unit of work is begun again and then sees it."""


class ReferenceViolation(Exception):
    """A row that others refer to was to go, or one that is not there was referred to."""


class Unavailable(Exception):
    """The connection broke before anything was committed."""


class Unreachable(Unavailable):
    """No connection could be opened."""


class Unstorable(Exception):
    """A value is longer than its column, or of characters that the database does not hold."""


class BrokenAtCommit(MetaError):
    """The connection broke while the commit was on its way: nobody knows what became of it."""


class Driver:
    """What differs between the databases: how to connect, begin, insert many rows, and read an error."""

    name: str
    dialect: Dialect
    begin = "BEGIN"
    advice = "try again"
    """What to do when a unit of work failed again and again."""

    def connect(self) -> Any:
        """Open a driver connection in autocommit mode."""
        raise AssertionError(self.name)

    def convert(self, value: list[Any]) -> Any:
        """Return a list parameter in the form that `Among` is compiled for."""
        return value

    def classify(self, error: BaseException) -> type[Exception] | None:
        """Return UniqueViolation, ReferenceViolation, Unavailable or Retry for a driver's error, None for any other."""
        raise AssertionError(self.name, error)

    def later(self, cursor: Any, text: str, params: Mapping[str, Any] | None = None) -> Answer:
        """Run a statement, at once or together with the next one."""
        answer: Answer = cursor.later(text, params)
        return answer

    def flush(self, cursor: Any) -> None:
        """Run what waits for the next statement."""
        cursor.flush()

    def send(self, cursor: Any) -> None:
        """Let the database begin with what waits, if it can while the caller goes on."""

    def rollback(self, cursor: Any) -> None:
        """End the transaction; what waits for its next statement is not run."""
        cursor.forget()
        cursor.execute("ROLLBACK")

    def insert_many(self, session: Session, table: sa.Table, columns: Sequence[str], rows: Sequence[Row], *, later: bool) -> None:
        """Insert at least one row: all in one statement, or as one stream; `later` as in `Session.insert_later`."""
        each = [dict(zip(columns, row, strict=True)) for row in rows]
        if len(each) == 1:
            (session.later if later else session.execute)(session.inserting(table, columns), **each[0])
        else:
            session.executemany(session.inserting(table, columns), each)

    def upsert(self, session: Session, table: sa.Table, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Insert at least one row, or give the one with its primary key these values, as `Session.upsert_later` does: one statement."""
        raise AssertionError(self.name, session, table, columns, rows)

    def replace(
        self, session: Session, table: sa.Table, columns: Sequence[str], rows: Sequence[Row],
        same: Collection[str],  # noqa: ARG002  # who looks for the row as an insert does needs all columns
    ) -> None:  # fmt: skip
        """Give at least one row other values, as `Session.replace_later` does: one statement."""
        self.upsert(session, table, columns, rows)

    def insert_below(
        self, session: Session, above: Answer, table: sa.Table, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]
    ) -> None:
        """Insert at least one row, later; the first of the columns, which the rows lack, is the key of the row inserted just before."""
        self.insert_many(session, table, columns, [(above.key, *row) for row in rows], later=True)


class Retry(Exception):
    """A serialization failure or deadlock: nothing was done, begin again."""


def _on_conflict(table: sa.Table, columns: Sequence[str]) -> str:
    """Return what makes an insert of SQLite or PostgreSQL change the row that has its primary key."""
    keys = list(table.primary_key.columns.keys())
    changes = ", ".join(f'"{column}" = excluded."{column}"' for column in columns if column not in keys)
    return f" ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {changes}"


class SQLiteDriver(Driver):
    """SQLite in WAL mode. A lock file queues the writers of all processes; SQLite itself would poll."""

    name = "sqlite"
    begin = "BEGIN IMMEDIATE"

    def __init__(self, url: URL) -> None:
        from sqlalchemy.dialects import sqlite

        if not url.database or url.database == ":memory:":
            raise MetaError("database URL sqlite: names no file; worker processes share it, so write sqlite:///path/to/file.db")
        self.dialect = sqlite.dialect(paramstyle="named")
        self.path = Path(url.database).absolute()

    def connect(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(
            self.path, timeout=60, isolation_level=None, check_same_thread=False, cached_statements=512
        )
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA cache_size = -16000")
        return connection

    def convert(self, value: list[Any]) -> str:
        return orjson.dumps(value).decode()

    def later(self, cursor: Any, text: str, params: Mapping[str, Any] | None = None) -> Answer:
        answer = Answer()
        cursor.execute(text, params or {})
        answer.settle(cursor.fetchall() if cursor.description else (), cursor.rowcount, cursor.lastrowid)
        return answer

    def flush(self, cursor: Any) -> None:
        pass

    def rollback(self, cursor: Any) -> None:
        cursor.execute("ROLLBACK")

    def insert_many(self, session: Session, table: sa.Table, columns: Sequence[str], rows: Sequence[Row], *, later: bool) -> None:
        if len(rows) == 1:
            super().insert_many(session, table, columns, rows, later=later)
        else:
            self._insert(session, table, columns, rows)

    def upsert(self, session: Session, table: sa.Table, columns: Sequence[str], rows: Sequence[Row]) -> None:
        self._insert(session, table, columns, rows, _on_conflict(table, columns))

    def _insert(self, session: Session, table: sa.Table, columns: Sequence[str], rows: Sequence[Row], otherwise: str = "") -> None:
        names, places = ", ".join(f'"{column}"' for column in columns), ", ".join("?" * len(columns))
        text = f'INSERT INTO "{table.name}" ({names}) VALUES ({places}){otherwise}'
        session.observe(text)
        session.cursor.executemany(text, rows)

    def classify(self, error: BaseException) -> type[Exception] | None:
        code = getattr(error, "sqlite_errorname", "") or ""
        text = str(error)
        if code in ("SQLITE_CONSTRAINT_UNIQUE", "SQLITE_CONSTRAINT_PRIMARYKEY") or text.startswith("UNIQUE constraint"):
            return UniqueViolation
        if code == "SQLITE_CONSTRAINT_FOREIGNKEY" or text.startswith("FOREIGN KEY constraint"):
            return ReferenceViolation
        if code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")) or "is locked" in text:
            return Retry
        return None

    @contextmanager
    def writer(self) -> Iterator[None]:
        """Wait for this process's turn to write."""
        with Path(f"{self.path}.lock").open("wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


class PostgreSQLDriver(Driver):
    """PostgreSQL through psycopg 3."""

    name = "postgresql"
    settings = "SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan; SET jit = off"
    """Plans are for any parameters, so that none is made for each call, and kept while tables grow: one that reads a whole table, made when
    it was empty, would be used for 100,000 rows. Where there is no index, a plan then seems so dear that it would be compiled."""

    def __init__(self, url: URL) -> None:
        try:
            import psycopg

            from metastore.store import postgresql
        except ImportError as error:
            raise MetaError("a PostgreSQL database needs psycopg: pip install 'metastore[postgresql]'") from error
        from sqlalchemy.dialects.postgresql import psycopg as dialect

        self.psycopg = psycopg
        self.connection, self.array = postgresql.Connection, postgresql.array
        self.dialect = dialect.dialect(paramstyle="pyformat")  # type: ignore[no-untyped-call]  # SQLAlchemy's own
        self.conninfo = url.set(drivername="postgresql").render_as_string(hide_password=False)

    def connect(self) -> Any:
        connection = self.connection.connect(self.conninfo, autocommit=True, application_name="metastore", client_encoding="utf8")
        connection.cursor().execute(self.settings)
        return connection

    def convert(self, value: list[Any]) -> Any:
        return self.array(value)

    def classify(self, error: BaseException) -> type[Exception] | None:
        errors = self.psycopg.errors
        if isinstance(error, errors.UniqueViolation):
            return UniqueViolation
        if isinstance(error, errors.ForeignKeyViolation):
            return ReferenceViolation
        if isinstance(error, self.psycopg.DataError):
            return Unstorable
        if isinstance(error, (errors.SerializationFailure, errors.DeadlockDetected, errors.LockNotAvailable)):
            return Retry
        if isinstance(error, (self.psycopg.OperationalError, self.psycopg.InterfaceError)):
            return Unavailable
        return None

    def send(self, cursor: Any) -> None:
        cursor.send()

    def insert_many(self, session: Session, table: sa.Table, columns: Sequence[str], rows: Sequence[Row], *, later: bool) -> None:
        run: Callable[..., Any] = session.later if later else session.execute
        if len(rows) == 1:
            run(session.inserting(table, columns), **dict(zip(columns, rows[0], strict=True)))
            return
        if len(rows) <= (MANY if later else FEW):  # COPY takes two more round trips
            run(_inserting_arrays(table, tuple(columns)), **_arrays(columns, rows))
            return
        names = ", ".join(f'"{column}"' for column in columns)
        session.observe(f"COPY {table.name}")
        with session.cursor.copy(f'COPY "{table.name}" ({names}) FROM STDIN') as copy:
            for row in rows:
                copy.write_row(row)

    def upsert(self, session: Session, table: sa.Table, columns: Sequence[str], rows: Sequence[Row]) -> None:
        session.later(_inserting_arrays(table, tuple(columns), _on_conflict(table, columns)), **_arrays(columns, rows))

    def replace(self, session: Session, table: sa.Table, columns: Sequence[str], rows: Sequence[Row], same: Collection[str]) -> None:
        given = {column: values for column, values in _arrays(columns, rows).items() if column not in same}
        session.later(_updating_arrays(table, tuple(given)), **given)


def _arrays(columns: Sequence[str], rows: Sequence[Row]) -> dict[str, list[Any]]:
    return {column: list(values) for column, values in zip(columns, zip(*rows, strict=True), strict=True)}


@cache
def _inserting_arrays(table: sa.Table, columns: tuple[str, ...], otherwise: str = "") -> sa.TextClause:
    """Return PostgreSQL's insert of rows whose values are given as one array for each column."""
    names = ", ".join(f'"{column}"' for column in columns)
    return sa.text(f'INSERT INTO "{table.name}" ({names}) SELECT given.* FROM {_unnest(table, columns)} AS given{otherwise}')


@cache
def _updating_arrays(table: sa.Table, columns: tuple[str, ...]) -> sa.TextClause:
    """Return PostgreSQL's update of rows, found by their primary key, whose values are given in that way."""
    names = ", ".join(f'"{column}"' for column in columns)
    keys = table.primary_key.columns.keys()
    changes = ", ".join(f'"{column}" = given."{column}"' for column in columns if column not in keys)
    same = " AND ".join(f'"{table.name}"."{column}" = given."{column}"' for column in keys)
    return sa.text(f'UPDATE "{table.name}" SET {changes} FROM {_unnest(table, columns)} AS given({names}) WHERE {same}')


def _unnest(table: sa.Table, columns: Sequence[str]) -> str:
    return f"unnest({', '.join(_array(table, column) for column in columns)})"


def _array(table: sa.Table, column: str) -> str:
    return f"CAST(:{column} AS {_ARRAYS.get(type(table.c[column].type), 'text')}[])"


_ARRAYS: dict[type[Any], str] = {sa.BigInteger: "bigint", sa.Integer: "integer", sa.Boolean: "boolean"}
"""Element types of arrays by the column's type; all others are text."""


class MySQLDriver(Driver):
    """MariaDB or MySQL through PyMySQL, reading what is committed."""

    name = "mysql"
    advice = "try again; it also breaks the connection on a request larger than its max_allowed_packet"

    def __init__(self, url: URL) -> None:
        try:
            import pymysql

            from metastore.store import mysql
        except ImportError as error:
            raise MetaError("a MariaDB or MySQL database needs PyMySQL: pip install 'metastore[mysql]'") from error
        from sqlalchemy.dialects.mysql import pymysql as dialect

        self.pymysql, self.connection = pymysql, mysql.Connection
        self.dialect = dialect.dialect(paramstyle="pyformat")
        self.arguments: dict[str, Any] = {
            "host": url.host or "127.0.0.1", "port": url.port or 3306, "user": url.username or "", "password": url.password or "",
            "database": url.database,
        }
        if "unix_socket" in url.query:
            self.arguments["unix_socket"] = url.query["unix_socket"]

    def connect(self) -> Any:
        flags = self.pymysql.constants.CLIENT
        connection = self.connection(
            **self.arguments, autocommit=True, charset="utf8mb4", client_flag=flags.FOUND_ROWS | flags.MULTI_STATEMENTS,
            init_command="SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
        )
        connection.cursor().execute("SET SESSION group_concat_max_len = 1073741824")
        return connection

    def convert(self, value: list[Any]) -> tuple[Any, ...]:
        return tuple(value) or (None,)

    def insert_many(self, session: Session, table: sa.Table, columns: Sequence[str], rows: Sequence[Row], *, later: bool) -> None:
        if later and len(rows) <= FEW:
            self._insert_later(session, table, columns, rows)
        else:
            super().insert_many(session, table, columns, rows, later=later)

    def upsert(self, session: Session, table: sa.Table, columns: Sequence[str], rows: Sequence[Row]) -> None:
        changes = ", ".join(f"`{column}` = VALUES(`{column}`)" for column in columns if column not in table.primary_key.columns)
        otherwise = f" ON DUPLICATE KEY UPDATE {changes}"
        if len(rows) <= FEW:
            self._insert_later(session, table, columns, rows, otherwise=otherwise)
        else:
            session.observe(f"INSERT INTO {table.name}")
            session.cursor.executemany(f"{_inserting_into(table, columns)}({_places(len(columns))}){otherwise}", rows)

    def insert_below(
        self, session: Session, above: Answer, table: sa.Table, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]
    ) -> None:
        if len(rows) <= FEW:
            self._insert_later(session, table, columns, rows, first="LAST_INSERT_ID(), ")
        else:
            super().insert_below(session, above, table, columns, rows)

    def _insert_later(
        self, session: Session, table: sa.Table, columns: Sequence[str], rows: Sequence[tuple[Any, ...]], *, first: str = "",
        otherwise: str = "",
    ) -> None:  # fmt: skip
        """Insert rows in one statement; `first` stands before the values of each, `otherwise` after all."""
        row = f"({first}{_places(len(rows[0]))})"
        session.observe(f"INSERT INTO {table.name}")
        session.cursor.later(
            f"{_inserting_into(table, columns)}{', '.join([row] * len(rows))}{otherwise}", [value for each in rows for value in each]
        )

    def classify(self, error: BaseException) -> type[Exception] | None:
        code = error.args[0] if error.args else None
        if code == 1062:
            return UniqueViolation
        if code in (1451, 1452):
            return ReferenceViolation
        if code in (1205, 1213, 1020):
            return Retry
        if code in (1406, 1366, 1153):
            return Unstorable
        if code in (2006, 2013, 2055, 1053, 1927) or isinstance(error, self.pymysql.err.InterfaceError):
            return Unavailable
        return None


def _inserting_into(table: sa.Table, columns: Sequence[str]) -> str:
    return f"INSERT INTO `{table.name}` ({', '.join(f'`{column}`' for column in columns)}) VALUES "


def _places(count: int) -> str:
    return ", ".join(["%s"] * count)


DRIVERS: dict[str, type[Driver]] = {"sqlite": SQLiteDriver, "postgresql": PostgreSQLDriver, "mysql": MySQLDriver, "mariadb": MySQLDriver}
