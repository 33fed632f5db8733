"""PostgreSQL through psycopg 3: many rows go as one array for each column, very many as a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.engine import URL
from sqlalchemy.sql.dml import Insert

from metastore.errors import MetaError
from metastore.store.answer import Answer
from metastore.store.drivers.contract import (
    FEW,
    MANY,
    Driver,
    ReferenceViolation,
    Retry,
    Row,
    Session,
    Unavailable,
    UniqueViolation,
    Unstorable,
    connected,
    inserting,
    on_conflict,
)

ADVISORY_LOCK = 0x6D657461
"""The migration lock: any number that no other program on the database uses."""
WORTH = 8
"""Rows from which on it is worth to look which values all of them have. A statement is remembered for each such set of columns."""


class PostgreSQLDriver(Driver):
    """PostgreSQL through psycopg 3."""

    name = "postgresql"
    settings = "SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan; SET jit = off"
    """Plans are for any parameters, so that none is made for each call, and kept while tables grow: one that reads a whole table, made when
    it was empty, would be used for 100,000 rows. Where there is no index, a plan then seems so dear that it would be compiled."""

    def __init__(self, url: URL) -> None:
        try:
            import psycopg

            from metastore.store.drivers import postgresql_cursor, postgresql_values
        except ImportError as error:
            raise MetaError("a PostgreSQL database needs psycopg: pip install 'metastore[postgresql]'") from error
        from sqlalchemy.dialects.postgresql import psycopg as dialect

        self.psycopg = psycopg
        self.connection, self.array = postgresql_cursor.Connection, postgresql_values.array
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
        if isinstance(error, (errors.DuplicateTable, errors.DuplicateObject)):
            return Retry  # of two that make a listener's table at one time, with IF NOT EXISTS even, one may be told that it is there
        if isinstance(error, (self.psycopg.OperationalError, self.psycopg.InterfaceError)):
            return Unavailable
        return None

    @contextmanager
    def migrating(self, url: URL) -> Iterator[Any]:
        with connected(url, "postgresql+psycopg") as connection:
            connection.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": ADVISORY_LOCK})
            yield connection

    def insert_keyed(self, session: Session, clause: Insert, params: dict[str, Any]) -> Answer:
        return session.enqueue(_returning_key(clause), **params)

    def ignoring(self, table: sa.Table) -> Insert:
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
    """Rows as parameters: an array for each column, or one value where all of many rows have it; one array at least."""

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
    """Return PostgreSQL's insert of rows that are given in that way."""
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
