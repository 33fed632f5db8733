"""PostgreSQL through psycopg 3: many rows are sent as one array for each column, very many as a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any
from uuid import uuid4

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.engine import URL
from sqlalchemy.sql.dml import Insert

from metastore.errors import MetaError
from metastore.store.drivers.answer import Answer
from metastore.store.drivers.contract import (
    FEW,
    MANY,
    Driver,
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
    inserting,
    on_conflict,
)

ADVISORY_LOCK = 0x6D657461
"""The migration lock: any number that no other program on the database uses."""
PREPARES = "prepared_statements"
"""The part of a URL's query that allows prepared statements, which get lost behind a pooler that divides sessions into transactions."""
WORTH = 8
"""The number of rows from which on equal values of a column are looked for. A statement is cached for each set of such columns."""


class PostgreSQLDriver(Driver):
    """PostgreSQL through psycopg 3."""

    name = "postgresql"
    begin_snapshot = ("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",)
    settings = "SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan; SET jit = off"
    """Plans are for any parameters, so that none is made for each call. They are kept while tables grow: a plan to read a whole table, made
    when it was empty, would be used for 100,000 rows. With such plans switched off, a plan without an index has a cost so high that it
    would be compiled. Statements that are not prepared are planned for their own parameters each time."""

    def __init__(self, url: URL) -> None:
        try:
            import psycopg

            from metastore.store.drivers import postgresql_cursor, postgresql_values
        except ImportError as error:
            raise MetaError("a PostgreSQL database needs psycopg: pip install '.[postgresql]' in the checkout of metastore") from error
        from sqlalchemy.dialects.postgresql import psycopg as dialect

        self.psycopg, self.error = psycopg, psycopg.Error
        self.connection, self.array = postgresql_cursor.PostgreSQLConnection, postgresql_values.array
        self.dialect = dialect.dialect(paramstyle="pyformat")  # type: ignore[no-untyped-call]  # SQLAlchemy's own
        self.prepares = self._prepares(url.query.get(PREPARES, "true"))
        # Arguments, which may name several hosts: the text of a URL can not.
        _, self.address = self.dialect.create_connect_args(self._plain(url))  # type: ignore[no-untyped-call]

    @staticmethod
    def _prepares(text: str | tuple[str, ...]) -> bool:
        if text not in ("true", "false"):
            raise MetaError(f"the database's URL has {PREPARES}={text}: write true or false")
        return text == "true"

    @staticmethod
    def _plain(url: URL) -> URL:
        """Return a URL without this driver's own options."""
        return url.difference_update_query([PREPARES])

    def connect(self) -> Any:
        connection = self.connection.connect(**self.address, autocommit=True, application_name="metastore", client_encoding="utf8")
        if self.prepares:
            connection.cursor().execute(self.settings)
        else:
            connection.prepares, connection.prepare_threshold = False, None
        return connection

    def check(self) -> None:
        """Raise MetaError if a pooler gives each transaction another connection, which loses prepared statements and settings."""
        if not self.prepares:
            return
        mark = uuid4().hex
        one, other = self.connect(), self.connect()
        try:
            one.cursor().execute(f"SET metastore.pooler = '{mark}'")
            other.cursor().execute("BEGIN")
            seen = [each.cursor().execute("SELECT current_setting('metastore.pooler', true)").fetchone()[0] for each in (other, one)]
            other.cursor().execute("ROLLBACK")
        finally:
            one.close()
            other.close()
        if seen[0] == mark or seen[1] != mark:
            raise MetaError(
                "PostgreSQL is reached through a pooler that gives each transaction another connection, as PgBouncer does with "
                f"pool_mode=transaction: prepared statements are lost there. Add ?{PREPARES}=false to the URL of the database, or let the "
                "pooler keep sessions"
            )

    def convert(self, value: list[Any]) -> Any:
        return self.array(value)

    def classify(self, error: BaseException) -> type[Exception] | None:
        errors = self.psycopg.errors
        if isinstance(error, errors.UniqueViolation):
            return UniqueViolation
        if isinstance(error, errors.ForeignKeyViolation):
            return ReferenceViolation
        if isinstance(error, errors.UndefinedTable):
            return NoSuchTable
        if isinstance(error, self.psycopg.DataError):
            return Unstorable
        if isinstance(error, (errors.SerializationFailure, errors.DeadlockDetected, errors.LockNotAvailable)):
            return Retry
        if isinstance(error, (errors.DuplicateTable, errors.DuplicateObject)):
            return Retry  # of two statements that make a listener's table at the same time, one may fail, even with IF NOT EXISTS
        if isinstance(error, (errors.DiskFull, errors.IoError)):
            return Unwritable
        if isinstance(error, (self.psycopg.OperationalError, self.psycopg.InterfaceError, errors.ReadOnlySqlTransaction)):
            return Unavailable  # the last message of a server that is a standby by now
        return None

    @contextmanager
    def migrating(self, url: URL) -> Iterator[Any]:
        with connected(self._plain(url), "postgresql+psycopg", connect_args={"prepare_threshold": None}) as connection:
            connection.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": ADVISORY_LOCK})
            yield connection

    def insert_keyed(self, session: Session, clause: Insert, params: dict[str, Any]) -> Answer:
        return session.enqueue(_returning_key(clause), **params)

    @classmethod
    @cache
    def ignoring(cls, table: sa.Table) -> Insert:
        return postgresql.insert(table).on_conflict_do_nothing()

    def insert_many(self, session: Session, table: sa.Table, columns: Sequence[str], rows: Sequence[Row], *, pipelined: bool) -> None:
        run: Callable[..., Any] = session.enqueue if pipelined else session.execute
        if len(rows) == 1:
            run(inserting(table, tuple(columns)), **dict(zip(columns, rows[0], strict=True)))
            return
        if len(rows) <= (MANY if pipelined else FEW):  # COPY takes two more round trips
            parameters = RowParameters(columns, rows)
            run(_inserting(table, parameters.arrays, parameters.scalars), **parameters.values)
            return
        with session.running(f"COPY {table.name}"), session.cursor.copy(f'COPY "{table.name}" ({_names(columns)}) FROM STDIN') as copy:
            for row in rows:
                copy.write_row(row)

    def upsert(self, session: Session, table: sa.Table, columns: Sequence[str], rows: Sequence[Row]) -> None:
        parameters = RowParameters(columns, rows)
        session.enqueue(_inserting(table, parameters.arrays, parameters.scalars, on_conflict(table, columns)), **parameters.values)


class RowParameters:
    """Rows as parameters: an array for each column, or one value if all of many rows have the same. At least one is an array."""

    def __init__(self, columns: Sequence[str], rows: Sequence[Row]) -> None:
        self.values: dict[str, Any] = {}
        scalars = []
        for column, values in zip(columns, zip(*rows, strict=True), strict=True):
            if len(values) >= WORTH and values.count(values[0]) == len(values):
                scalars.append(column)
                self.values[column] = values[0]
            else:
                self.values[column] = list(values)
        if len(scalars) == len(self.values):
            column = scalars.pop()
            self.values[column] = [self.values[column]] * len(rows)
        self.scalars = tuple(scalars)
        self.arrays = tuple(column for column in self.values if column not in scalars)


@cache
def _returning_key(clause: Insert) -> Insert:
    """Return an insert with RETURNING of its table's key."""
    table: Any = clause.table
    return clause.returning(*table.primary_key.columns)


@cache
def _inserting(table: sa.Table, arrays: tuple[str, ...], scalars: tuple[str, ...], otherwise: str = "") -> sa.TextClause:
    """Return PostgreSQL's insert of rows that are given as `RowParameters`."""
    values = [*(f'given."{column}"' for column in arrays), *(_value(table, column) for column in scalars)]
    return sa.text(
        f'INSERT INTO "{table.name}" ({_names((*arrays, *scalars))}) SELECT {", ".join(values)} FROM {_given(table, arrays)}{otherwise}'
    )


def _given(table: sa.Table, arrays: Sequence[str]) -> str:
    return f"unnest({', '.join(_value(table, column, '[]') for column in arrays)}) AS given({_names(arrays)})"


def _names(columns: Sequence[str]) -> str:
    return ", ".join(f'"{column}"' for column in columns)


def _value(table: sa.Table, column: str, kind: str = "") -> str:
    return f"CAST(:{column} AS {_TYPES.get(type(table.c[column].type), 'text')}{kind})"


_TYPES: dict[type[Any], str] = {sa.BigInteger: "bigint", sa.Integer: "integer", sa.Boolean: "boolean"}
"""Types of values by the column's type; all others are text."""
