"""PostgreSQL through psycopg 3: many rows go as one array for each column, very many as a stream."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.engine import URL

from metastore.errors import MetaError
from metastore.store.drivers.contract import (
    FEW,
    MANY,
    Driver,
    ReferenceViolation,
    Retry,
    Row,
    Unavailable,
    UniqueViolation,
    Unstorable,
    on_conflict,
)

if TYPE_CHECKING:
    from metastore.store.answer import Answer
    from metastore.store.database import Session


class PostgreSQLDriver(Driver):
    """PostgreSQL through psycopg 3."""

    name = "postgresql"
    can_overwrite = True
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
        session.later(_inserting_arrays(table, tuple(columns), on_conflict(table, columns)), **_arrays(columns, rows))

    def overwrite(self, session: Session, table: sa.Table, columns: Sequence[str], rows: Sequence[Row], same: str) -> Answer:
        where = f'{on_conflict(table, columns)} WHERE "{table.name}"."{same}" = excluded."{same}"'
        return session.later(_inserting_arrays(table, tuple(columns), where), **_arrays(columns, rows))

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
