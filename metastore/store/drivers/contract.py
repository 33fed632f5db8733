"""A driver's work for its database, and its reading of the database's errors. Never begins a unit of work.

UniqueViolation      a row with this key is there already
ReferenceViolation   a row that others refer to was to be removed
Retry                nothing was done: begin again
GuardFailed          a guard among the statements did not hold: nothing was done
Unavailable          the connection broke before anything was committed
Unwritable           the database takes no changes: nothing was done
NoSuchTable          the schema has not been made
BrokenAtCommit       the connection broke during the commit
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import Any, Protocol

import sqlalchemy as sa
from sqlalchemy.engine import URL, Connection, Dialect
from sqlalchemy.sql import ClauseElement
from sqlalchemy.sql.dml import Insert

from metastore.errors import MetaError
from metastore.store.drivers.answer import Answer

Row = tuple[Any, ...]
FEW, MANY = 200, 10_000
"""The largest numbers of rows that PostgreSQL gets as arrays in one statement: FEW at once, MANY later. More are sent by COPY, which runs
alone. MariaDB and MySQL get up to FEW in one statement, later. More are sent in packets of their own."""


class UniqueViolation(Exception):
    """A row with this key exists already; the unit of work is begun again and then sees it."""


class ReferenceViolation(Exception):
    """A row that others refer to was to be removed, or a missing one was referred to."""


class Retry(Exception):
    """A serialization failure or deadlock: nothing was done, begin again."""


class GuardFailed(Exception):
    """A guard among the statements of a unit of work did not hold: nothing was done."""


class Unavailable(Exception):
    """The connection broke before anything was committed."""


class DatabaseUnreachable(Unavailable):
    """No connection could be opened."""


class Unwritable(Exception):
    """The database takes no changes: its disk is full or fails, or it only reads. Nothing was done."""


class Unstorable(Exception):
    """A value is longer than its column, or has characters that the database can not store."""


class NoSuchTable(MetaError):
    """A table is not there: the schema has not been made."""


class BrokenAtCommit(MetaError):
    """The connection broke during the commit, whose outcome is unknown."""


class Session(Protocol):
    """The parts of `store.core.database.Session` that a driver uses."""

    cursor: Any
    has_pending: bool

    def observe(self, text: str) -> None: ...

    def running(self, text: str) -> AbstractContextManager[None]: ...

    def execute(self, clause: ClauseElement, **params: Any) -> int: ...

    def executemany(self, clause: ClauseElement, params: Sequence[Mapping[str, Any]]) -> None: ...

    def enqueue(self, clause: ClauseElement, **params: Any) -> Answer: ...


@cache
def inserting(table: sa.Table, columns: tuple[str, ...]) -> Insert:
    """Return the insert of one row; values are bound by the columns' names."""
    return sa.insert(table).values({column: sa.bindparam(column) for column in columns})


class Driver:
    """One kind of database: how to connect, begin, insert many rows, and read an error."""

    name: str
    dialect: Dialect
    error: type[Exception]
    """The class of all errors of the database's driver."""
    begin = "BEGIN"
    begin_snapshot: tuple[str, ...]
    """Begin a transaction that only reads, and whose queries all see the state at its beginning."""
    advice = "try again"
    """The advice when a unit of work failed again and again."""
    runs_at_once = False
    """Whether a statement that could wait for the next one runs at once."""
    notes_changes = False
    """Whether fast paths use `changes` of lock queues and `last_change` of tables, so that these have to be kept."""

    def connect(self) -> Any:
        """Open a driver connection in autocommit mode."""
        raise AssertionError(self.name)

    def check(self) -> None:
        """Raise MetaError if the database can not serve, for a reason that would show only under load."""

    def writing(self) -> AbstractContextManager[None]:
        """Wait for this process's turn to write, where only one may at a time."""
        return nullcontext()

    def migrating(self, url: URL) -> AbstractContextManager[Any]:
        """Hold the database's migration lock and return a SQLAlchemy connection in a transaction. MetaError where it can not be had."""
        raise AssertionError(self.name, url)

    def convert(self, value: list[Any]) -> Any:
        """Return a list parameter in the form that `Among` is compiled for."""
        return value

    def classify(self, error: BaseException) -> type[Exception] | None:
        """Return one of the errors above for a driver's error, None for any other."""
        raise AssertionError(self.name, error)

    def lowest(self, prefix: str) -> str:
        """Return the lower bound of all texts that begin with a prefix."""
        return prefix

    def enqueue(self, cursor: Any, text: str, params: Mapping[str, Any] | None = None) -> Answer:
        """Run a statement, at once or together with the next one."""
        answer: Answer = cursor.enqueue(text, params)
        return answer

    def sync(self, cursor: Any) -> None:
        """Run the pending statements."""
        cursor.sync()

    def rollback(self, cursor: Any) -> None:
        """End the transaction; pending statements are not run."""
        cursor.discard_pending()
        cursor.execute("ROLLBACK")

    def insert_keyed(self, session: Session, clause: Insert, params: dict[str, Any]) -> Answer:
        """Insert one row, later; the answer has the key that the database gave it."""
        return session.enqueue(clause, **params)

    @classmethod
    @cache
    def ignoring(cls, table: sa.Table) -> Insert:
        """Return the insert into all columns of a table that leaves a row with an existing key alone."""
        raise AssertionError(cls.name, table)

    def insert_many(self, session: Session, table: sa.Table, columns: Sequence[str], rows: Sequence[Row], *, pipelined: bool) -> None:
        """Insert at least one row: all in one statement, or as one stream; `pipelined` to insert as `Session.enqueue_insert` does."""
        each = [dict(zip(columns, row, strict=True)) for row in rows]
        if len(each) == 1:
            (session.enqueue if pipelined else session.execute)(inserting(table, tuple(columns)), **each[0])
        else:
            session.executemany(inserting(table, tuple(columns)), each)

    def upsert(self, session: Session, table: sa.Table, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Insert at least one row, or change the existing ones with the same primary keys, as `Session.enqueue_upsert`: one statement."""
        raise AssertionError(self.name, session, table, columns, rows)

    def insert_below(
        self, session: Session, above: Answer, table: sa.Table, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]
    ) -> None:
        """Insert at least one row, later. The first column, which `rows` lack, is the key of the row inserted just before."""
        self.insert_many(session, table, columns, [(above.key, *row) for row in rows], pipelined=True)


def on_conflict(table: sa.Table, columns: Sequence[str]) -> str:
    """Return the clause by which an insert of SQLite or PostgreSQL changes the existing row with the same primary key."""
    keys = list(table.primary_key.columns.keys())
    changes = ", ".join(f'"{column}" = excluded."{column}"' for column in columns if column not in keys)
    return f" ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {changes}"


@contextmanager
def connected(url: URL, driver: str, **options: Any) -> Iterator[Connection]:
    """Yield a SQLAlchemy connection in a transaction, of its own and not of a pool; `driver` as in SQLAlchemy's URLs."""
    engine = sa.create_engine(url.set(drivername=driver), poolclass=sa.NullPool, **options)
    try:
        with engine.begin() as connection:
            yield connection
    finally:
        engine.dispose()
