"""Run the statements of `store/` on SQLite, PostgreSQL or MariaDB/MySQL: one unit of work for each request.

Statements are SQLAlchemy Core constructs that are compiled once per kind of database and then run on the bare driver connection, since
Core's own execution costs more than the query. Parameters and results are therefore plain text, bytes and integers; JSON is
encoded by the callers. This module never holds a rule of the metastore.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from itertools import count
from time import perf_counter
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import URL, make_url
from sqlalchemy.sql import ClauseElement

from metastore.call_time import here
from metastore.errors import InvalidObject, MetaError
from metastore.store.core.caches import Caches
from metastore.store.core.compiled import compiled_for
from metastore.store.core.contact import Contact
from metastore.store.core.kinds import KINDS, LOCK, kind_of
from metastore.store.core.pool import NoneIdle, Pool
from metastore.store.drivers import DRIVERS
from metastore.store.drivers.answer import Answer
from metastore.store.drivers.contract import (
    BrokenAtCommit,
    DatabaseUnreachable,
    Driver,
    NoSuchTable,
    ReferenceViolation,
    Retry,
    Row,
    Unavailable,
    UniqueViolation,
    Unstorable,
    Unwritable,
    inserting,
)

T = TypeVar("T")


ATTEMPTS = 20
"""The number of serialization failures, deadlocks and lost races for a key after which a unit of work is given up."""

BREAKS = 4
"""The number of broken connections after which a unit of work is given up: a request too large for the server breaks each of them."""

PATIENCE = 20.0
"""Seconds for which a unit of work tries to reach a database that has answered before: a restart is not noticed."""


class Session:
    """Statements on one connection. `params` are named as in the construct; a list is the parameter of an `Among`."""

    __slots__ = ("_before_commit", "_time", "cursor", "database", "has_pending")

    def __init__(self, database: Database, cursor: Any) -> None:
        self.database = database
        self._time = here.time
        self.cursor = cursor
        self.has_pending = False
        """Whether there may be statements that wait for the next one."""
        self._before_commit: dict[Callable[[Session, Collection[Any]], None], set[Any]] = {}

    @property
    def caches(self) -> Caches:
        """The process's memory of the database."""
        return self.database.caches

    def before_commit(self, work: Callable[[Session, Collection[T]], None], item: T) -> None:
        """Run `work` once, just before the commit, with all items given."""
        self._before_commit.setdefault(work, set()).add(item)

    def end(self) -> None:
        """Run the statements that are due before the commit."""
        for work, items in self._before_commit.items():
            work(self, items)

    @property
    def notes_changes(self) -> bool:
        """Whether fast paths use numbers of changes (see `Driver`), so that these have to be kept."""
        return self.database.driver.notes_changes

    def lowest(self, prefix: str) -> str:
        """Return the lower bound of all texts that begin with a prefix."""
        return self.database.driver.lowest(prefix)

    def observe(self, text: str) -> None:
        """Count a statement whose text a driver made, and pass it to the observers."""
        self.database.statements[kind_of(text)] += 1
        self._time.statements += 1
        if self.database.observer is not None:
            self.database.observer(text)

    @contextmanager
    def running(self, text: str) -> Iterator[None]:
        """Count a statement whose text a driver made, and note its duration."""
        self.observe(text)
        began = perf_counter()
        try:
            yield
        finally:
            self._time.round_trip(text, began)

    def _run(self, clause: ClauseElement, params: dict[str, Any]) -> None:
        text, values = self._statement(clause, params)
        began = perf_counter()
        try:
            self.cursor.execute(text, values)
        finally:
            self._time.round_trip(text, began)

    def _statement(self, clause: ClauseElement, params: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """Return a statement's text and its parameters in the form that the driver takes. `params` is changed in place."""
        database = self.database
        text, literals, kind = database.compiled[clause]
        for key, value in params.items():
            if type(value) is list:
                params[key] = database.driver.convert(value)
        database.statements[kind] += 1
        spent = self._time
        spent.statements += 1
        if kind == LOCK:
            spent.locking = True
        if database.observer is not None:
            database.observer(text)
        return text, {**literals, **params} if literals else params

    def rows(self, clause: ClauseElement, **params: Any) -> Sequence[Row]:
        """Return all rows of a query."""
        text, values = self._statement(clause, params)
        began = perf_counter()
        try:
            self.cursor.execute(text, values)
            rows: Sequence[Row] = self.cursor.fetchall()  # SQLite finds the rows here
        finally:
            self._time.round_trip(text, began)
        return rows

    def row(self, clause: ClauseElement, **params: Any) -> Row | None:
        """Return the first row of a query, or None."""
        self._run(clause, params)
        row: Row | None = self.cursor.fetchone()
        return row

    def number(self, clause: ClauseElement, **params: Any) -> int | None:
        """Return the first value of a query's first row as a number; None without rows, or for NULL."""
        row = self.row(clause, **params)
        return None if row is None or row[0] is None else int(row[0])

    def exists(self, clause: ClauseElement, **params: Any) -> bool:
        """Return whether a query has rows."""
        return self.row(clause, **params) is not None

    def column(self, clause: ClauseElement, **params: Any) -> list[Any]:
        """Return the first value of each row of a query."""
        return [row[0] for row in self.rows(clause, **params)]

    def execute(self, clause: ClauseElement, **params: Any) -> int:
        """Run a statement and return the number of rows that it matched."""
        self._run(clause, params)
        count: int = self.cursor.rowcount
        return count

    def enqueue(self, clause: ClauseElement, **params: Any) -> Answer:
        """Run a statement together with the next one, or when its answer is read: PostgreSQL and MariaDB get them in one packet.

        Its errors are raised by the call that runs it. It is not for a statement that locks rows to protect something outside of the
        database.
        """
        self.has_pending = True
        text, values = self._statement(clause, params)
        began = perf_counter()
        try:
            return self.database.driver.enqueue(self.cursor, text, values)
        finally:
            if self.database.driver.runs_at_once:
                self._time.round_trip(text, began)

    def executemany(self, clause: ClauseElement, params: Sequence[Mapping[str, Any]]) -> None:
        """Run one statement for each set of parameters, as one batch."""
        text, literals, _ = self.database.compiled[clause]
        with self.running(text):
            self.cursor.executemany(text, [{**literals, **p} for p in params] if literals else params)

    def insert(self, table: sa.Table, /, **values: Any) -> None:
        """Insert one row; values by column."""
        self.execute(inserting(table, tuple(values)), **values)

    def insert_keyed(self, table: sa.Table, /, **values: Any) -> Answer:
        """Insert one row, as `enqueue` does it; the answer has the key that the database gave it."""
        return self.database.driver.insert_keyed(self, inserting(table, tuple(values)), values)

    def insert_below(self, above: Answer, table: sa.Table, columns: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> None:
        """Insert rows, or none, that refer to the row inserted just before. Its key is their first column, which `rows` lack."""
        given = list(rows)
        if given:
            self.database.driver.insert_below(self, above, table, columns, given)

    def insert_missing(self, table: sa.Table, params: Sequence[Mapping[str, Any]]) -> None:
        """Insert the rows whose key is not there yet."""
        if params:
            self.executemany(self.database.driver.ignoring(table), params)

    def insert_many(self, table: sa.Table, columns: Sequence[str], rows: Iterable[Row]) -> None:
        """Insert many rows, or none, as one batch; values in the order of `columns`."""
        given = list(rows)
        if given:
            self.database.driver.insert_many(self, table, columns, given, pipelined=False)

    def enqueue_insert(self, table: sa.Table, columns: Sequence[str], rows: Iterable[Row]) -> None:
        """Like `insert_many`, but as `enqueue` does it: for rows that can not be there already."""
        given = list(rows)
        if given:
            self.database.driver.insert_many(self, table, columns, given, pipelined=True)

    def enqueue_upsert(self, table: sa.Table, columns: Sequence[str], rows: Iterable[Row]) -> None:
        """Insert rows, or none, as `enqueue` does. An existing row with the primary key of one gets its values instead.

        For rows that are locked, or that no other transaction can insert meanwhile.
        """
        given = list(rows)
        if given:
            self.database.driver.upsert(self, table, columns, given)


@contextmanager
def _timed(text: str = "") -> Iterator[None]:
    """Note the duration of a round trip; `text` is its last statement, "" if that is not known."""
    began = perf_counter()
    try:
        yield
    finally:
        here.time.round_trip(text, began)


def _parsed(text: str) -> URL:
    """Return the URL of a database. MetaError, which repeats nothing of it: a password may be at an unexpected place in it."""
    try:
        url = make_url(text)
    except (sa.exc.ArgumentError, ValueError) as error:
        raise MetaError("the URL of the database can not be read: write KIND://USER:PASSWORD@HOST/NAME") from error
    if "@" in (url.host or ""):
        raise MetaError("the URL of the database has more than one @: write %40 for one in the user's name or the password")
    return url


class Database:
    """A pool of connections to one database and the unit of work on them. Safe for threads; open it after a fork."""

    patience = PATIENCE
    """Seconds to keep trying an unreachable database; replicas use 0."""

    def __init__(self, url: str, pool_size: int = 16) -> None:
        parsed = _parsed(url)
        backend = parsed.get_backend_name()
        if backend not in DRIVERS:
            raise MetaError(f"database URL of kind {backend!r}: use one of {', '.join(sorted(DRIVERS))}")
        self.url = parsed
        self.driver: Driver = DRIVERS[backend](parsed)  # type: ignore[call-arg]  # every driver takes the URL
        self.observer: Callable[[str], None] | None = None
        self.statements = [0] * len(KINDS)
        """The number of statements of each kind that this process has run."""
        self.caches = Caches()
        self.compiled = compiled_for(self.driver.dialect)
        self.pool = Pool(self._connect, pool_size)
        self.contact = Contact(parsed.render_as_string())

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Raise the errors of the driver, or of SQLAlchemy for it, as a MetaError that names the database."""
        try:
            yield
        except (self.driver.error, sa.exc.DBAPIError) as error:
            reason = getattr(error, "orig", error)
            raise MetaError(
                f"database {self.url.render_as_string()}: {reason}; see that it runs and that its user may make tables"
            ) from error

    def _connect(self) -> Any:
        with self.contact.noted():
            return self.driver.connect()

    def close(self) -> None:
        """Close all idle connections."""
        self.pool.close()

    def read(self, work: Callable[[Session], T]) -> T:
        """Run queries, each of which sees all that is committed when it starts; for one query this is enough."""
        return self._attempt(work, ())

    def snapshot(self, work: Callable[[Session], T]) -> T:
        """Run queries that all see the state before the first. `work` may run more than once."""
        return self._attempt(work, self.driver.begin_snapshot)

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """Yield a session whose queries all see the state before the first, for as long as the caller likes; no query is retried.

        It serves long reads, a page at a time. The database keeps overwritten rows meanwhile. MetaError for a refusal of the database.
        """
        with self.explained():
            connection = self.pool.take()
            try:
                cursor = connection.cursor()
                for statement in self.driver.begin_snapshot:
                    cursor.execute(statement)
                try:
                    yield Session(self, cursor)
                finally:
                    with suppress(Exception):
                        self.driver.rollback(cursor)
            except self.driver.error:
                self.pool.distrust(connection)
                raise
            finally:
                self.pool.give(connection)

    def write(self, work: Callable[[Session], T]) -> T:
        """Run `work` in one transaction and commit; begin again when another transaction was in the way.

        `work` may therefore run more than once. An error that it raises rolls everything back and is passed on.
        """
        return self._changing(work, (self.driver.begin,))

    def autocommit(self, work: Callable[[Session], T]) -> T:
        """Run a single statement that changes rows; it commits by itself, so it takes one round trip. `work` may run more than once."""
        return self._changing(work, ())

    def _changing(self, work: Callable[[Session], T], begin: tuple[str, ...]) -> T:
        with self.driver.writing():
            result = self._attempt(work, begin)
        if self.contact.refusal:
            self.contact.accept()
        return result

    def _attempt(self, work: Callable[[Session], T], begin: tuple[str, ...]) -> T:
        """Run `work` until it succeeds: in a transaction that statements of `begin` begin, or else each statement by itself."""
        failing_since, conflicts, breaks = None, 0, 0
        for attempt in count():
            try:
                try:
                    connection = self.pool.take()
                except Exception as error:
                    raise DatabaseUnreachable from error
                try:
                    return self._transaction(connection, work, begin) if begin else self._plain(connection, work)
                except Exception as error:
                    self._judge(connection, error)
                    raise
                finally:
                    self.pool.give(connection)
            except Unstorable as error:
                raise InvalidObject(
                    f"database {self.url.get_backend_name()} can not store a value of the request: {error.__cause__}; shorten or correct it"
                ) from error
            except Unwritable as error:
                self.contact.refuse(str(error.__cause__))
                raise MetaError(
                    f"database {self.url.get_backend_name()} takes no changes: {error.__cause__}; nothing was changed. "
                    "Make room on its disk, or see that it may be written"
                ) from error
            except DatabaseUnreachable as error:
                failed: Exception = error
                failing_since = failing_since or time.monotonic()
                hopeless = isinstance(error.__cause__, NoneIdle) or not self.contact.was_made
                ended = hopeless or time.monotonic() - failing_since > self.patience
            except Unavailable as error:
                failed = error
                breaks += 1
                ended = breaks == BREAKS
            except (Retry, UniqueViolation) as error:
                failed = error
                conflicts += 1
                ended = conflicts == ATTEMPTS
            if ended:
                raise MetaError(f"database {self.url.get_backend_name()}: {failed.__cause__ or failed}; {self.driver.advice}") from failed
            pause = random.uniform(0, min(0.2, 0.002 * 2 ** min(attempt, 10)))  # noqa: S311  # spreads retries, guards nothing
            began = perf_counter()
            time.sleep(pause)
            here.time.wait_seconds += perf_counter() - began
        raise AssertionError

    def _plain(self, connection: Any, work: Callable[[Session], T]) -> T:
        cursor = connection.cursor()
        try:
            session = Session(self, cursor)
            result = work(session)
            session.end()
            if session.has_pending:
                with _timed():
                    self.driver.sync(cursor)
            return result
        finally:
            cursor.close()

    def _transaction(self, connection: Any, work: Callable[[Session], T], begin: tuple[str, ...]) -> T:
        cursor = connection.cursor()
        with _timed(begin[-1]) if self.driver.runs_at_once else nullcontext():
            for statement in begin:
                self.driver.enqueue(cursor, statement)
        try:
            session = Session(self, cursor)
            result = work(session)
            session.end()
        except BaseException as error:
            with suppress(Exception) if self.driver.classify(error) is Unavailable else nullcontext(), _timed("ROLLBACK"):
                self.driver.rollback(cursor)
            raise
        self._commit(cursor)
        return result

    def _commit(self, cursor: Any) -> None:
        try:
            with _timed("COMMIT"):
                cursor.execute("COMMIT")
        except Exception as error:
            with suppress(Exception), _timed("ROLLBACK"):
                self.driver.rollback(cursor)  # SQLite keeps a transaction open that it could not commit
            kind = self.driver.classify(error)
            if kind is Unavailable:
                raise BrokenAtCommit(
                    f"the connection to the database broke at commit: {error}; look whether the change was made"
                ) from error
            if kind is not None:
                raise kind from error
            raise

    def _broke(self, connection: Any) -> None:
        """Discard the other connections and the caches: the database may be a standby now that lacks its last changes."""
        self.pool.distrust(connection)
        self.caches.discard_changed()

    def _judge(self, connection: Any, error: Exception) -> None:
        """Raise the store's error for a driver's error, if it has one."""
        if isinstance(error, BrokenAtCommit):
            self._broke(connection)
        elif not isinstance(error, (UniqueViolation, ReferenceViolation, Retry)):
            kind = self.driver.classify(error)
            if kind is Unavailable:
                self._broke(connection)
            if kind is NoSuchTable:
                raise NoSuchTable(f"database {self.url.render_as_string()}: {error}; make the schema: metastore db upgrade") from error
            if kind is not None:
                raise kind from error
