"""Connections to PostgreSQL whose cursors call libpq through psycopg's own layer for it (`psycopg.pq`), without psycopg's machinery above.

A prepared statement costs the process 20 us instead of 60. A statement that can wait is sent with the next one, in libpq's pipeline mode:
six statements that are sent as two take 110 us instead of 170. Errors are psycopg's. This module never begins a transaction by itself.
"""

from __future__ import annotations

import re
import select
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import psycopg
from psycopg import errors, pq
from psycopg.adapt import Transformer

from metastore.store.drivers.answer import Answer
from metastore.store.drivers.postgresql_values import BinaryArray, encoded

MAX_PREPARED_STATEMENTS = 500
"""The largest number of texts that a connection remembers; the oldest one is forgotten first."""
PLANS_LAST = 2.0
"""Seconds for which the plans of prepared statements are kept: one that was made while its tables were empty is bad when they have grown,
and PostgreSQL itself makes it again only after it has analysed them, up to minutes later."""
LONG = 1024
"""Bytes of parameters from which on a statement is sent at once, although its result is not needed yet: PostgreSQL works on it for as long
as the system takes to send it."""
GOOD = (pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK, pq.ExecStatus.EMPTY_QUERY)
PLACEHOLDER = re.compile(r"%\(([^)]+)\)s|%%")
Statement = tuple[str, tuple[int, ...]]
"""A text and the types of its parameters."""


class PostgreSQLConnection(psycopg.Connection[Any]):
    """A connection that remembers the statements that it has run, with the names of the prepared ones."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.statements: dict[Statement, bytes | None] = {}
        self.prepares = True
        """Whether a statement is prepared when it is run again."""
        self.prepared = 0
        self.planned = time.monotonic()
        self.loading: Any = Transformer(self)
        """Turns results into values. It remembers the conversions by type."""
        self.input = select.poll()
        self.input.register(self.pgconn.socket, select.POLLIN)

    def cursor(self, *_: Any, **__: Any) -> PostgreSQLCursor:  # type: ignore[override] # it has the methods of a cursor that the store uses
        """Return a cursor."""
        cursor = PostgreSQLCursor(self)
        now = time.monotonic()
        if now - self.planned > PLANS_LAST:
            self.planned = now
            cursor.execute("DISCARD PLANS")
        return cursor

    def full_cursor(self) -> psycopg.Cursor[Any]:
        """Return a cursor of psycopg's."""
        return super().cursor()


class _Message(NamedTuple):
    """A statement as it is sent: the key by which it is remembered, its text and its parameters."""

    key: Statement
    text: bytes
    values: Sequence[Any]
    types: Sequence[int]
    formats: Sequence[pq.Format] | None


Asked = tuple[_Message, Answer | None]
"""A statement, and the answer that takes its result."""


class _Pipeline:
    """Statements that were sent in libpq's pipeline mode, some of them after their preparation."""

    __slots__ = ("asked", "prepared")

    def __init__(self) -> None:
        self.asked: list[Asked | None] = []
        self.prepared: dict[Statement, bytes] = {}


class PostgreSQLCursor:
    """Runs statements with named parameters (`%(name)s`) of type int, str, bool, float, bytes or None."""

    __slots__ = ("_at", "_connection", "_loads", "_pipeline", "_result", "_waiting")

    def __init__(self, connection: PostgreSQLConnection) -> None:
        self._connection = connection
        self._result: Any = None
        self._at = 0
        self._loads = False
        self._waiting: list[Asked] = []
        self._pipeline: _Pipeline | None = None

    def execute(self, query: str, params: Mapping[str, Any] | None = None) -> PostgreSQLCursor:
        """Run a statement and return the cursor; without `params` its text is sent unchanged. psycopg.Error, TypeError.

        Pending statements are sent with it, and their errors are raised here.
        """
        if self._waiting or self._pipeline is not None:
            self._waiting.append((_message(query, params), None))
            self.sync()
            return self
        pgconn = self._connection.pgconn
        if params is None:
            self._take(pgconn.exec_(query.encode()))
            return self
        key, text, values, types, formats = _message(query, params)
        statements = self._connection.statements
        name = statements.get(key)
        if name is not None:
            self._take(pgconn.exec_prepared(name, values, formats))
        elif key in statements and self._connection.prepares:
            name = self._new_name()
            self._take(pgconn.prepare(name, text, types))
            statements[key] = name
            self._take(pgconn.exec_prepared(name, values, formats))
        else:
            self._make_room(1)
            self._take(pgconn.exec_params(text, values, types, formats))
            statements[key] = None
        return self

    def enqueue(self, query: str, params: Mapping[str, Any] | None = None) -> Answer:
        """Run a statement together with the next one. DataError or TypeError at once, all other errors when it runs.

        In a transaction that has begun, a long one is sent at once, with the pending ones: PostgreSQL runs them while the caller goes on.
        """
        message = _message(query, params)
        answer = Answer(self._wait_for)
        self._waiting.append((message, answer))
        if sum(len(value) for value in message.values if value) >= LONG and self._may_send():
            self._send()
            self._go_out()
        return answer

    def _may_send(self) -> bool:
        return (
            self._pipeline is not None
            or self._waiting[0][0].text == b"BEGIN"
            or self._connection.pgconn.transaction_status == pq.TransactionStatus.INTRANS
        )

    def discard_pending(self) -> None:
        """Drop the pending statements; wait for running ones."""
        self._waiting.clear()
        pipeline, self._pipeline = self._pipeline, None
        if pipeline is not None:
            self._answers(pipeline)

    def sync(self) -> None:
        """Run the pending statements, in one round trip. psycopg.Error for the first that fails; those after it are not run."""
        if self._waiting:
            self._send()
        pipeline, self._pipeline = self._pipeline, None
        if pipeline is None:
            return
        for asked, result in zip(pipeline.asked, self._answers(pipeline), strict=True):
            self._take(result)
            if asked is not None and asked[1] is not None:
                asked[1].settle(self.fetchall(), self.rowcount)
        statements = self._connection.statements
        for asked in pipeline.asked:
            if asked is not None:
                statements.setdefault(asked[0].key, None)
        statements.update(pipeline.prepared)

    def _wait_for(self, _: Answer) -> None:
        self.sync()

    def _send(self) -> None:
        """Give the pending statements to libpq, which sends them with its next flush."""
        waiting, self._waiting = self._waiting, []
        pgconn, statements, pipeline = self._connection.pgconn, self._connection.statements, self._pipeline
        try:
            if pipeline is None:
                self._make_room(len(waiting))
                pgconn.enter_pipeline_mode()
                pipeline = self._pipeline = _Pipeline()
            for asked in waiting:
                key, text, values, types, formats = asked[0]
                name = statements.get(key) or pipeline.prepared.get(key)
                if name is None and key in statements and self._connection.prepares:
                    name = pipeline.prepared[key] = self._new_name()
                    pgconn.send_prepare(name, text, types)
                    pipeline.asked.append(None)
                if name is not None:
                    pgconn.send_query_prepared(name, values, formats)
                else:
                    pgconn.send_query_params(text, values, types, formats)
                pipeline.asked.append(asked)
        except BaseException:
            self._end()
            raise

    def _go_out(self) -> None:
        """Let libpq send as much as the system takes now."""
        try:
            self._connection.pgconn.flush()
        except BaseException:
            self._end()
            raise

    def _answers(self, pipeline: _Pipeline) -> list[Any]:
        """Return the results of sent statements; the connection is in its plain mode again."""
        pgconn = self._connection.pgconn
        try:
            pgconn.pipeline_sync()
            results = [self._next_result() for _ in pipeline.asked]
            self._next()  # the end of the pipeline
            pgconn.exit_pipeline_mode()
        except BaseException:
            self._end()
            raise
        return results

    def _end(self) -> None:
        """Close the connection: answers may still be on their way to it."""
        self._pipeline = None
        self._connection.close()

    def _next_result(self) -> Any:
        result = self._next()
        if result is None:
            raise errors.OperationalError(self._connection.pgconn.get_error_message())
        while self._next() is not None:
            pass
        return result

    def _next(self) -> Any:
        """Return the next result of a pipeline; None separates the results of two statements. Other threads run while it waits."""
        connection = self._connection
        pgconn = connection.pgconn
        while pgconn.flush():
            both = select.poll()
            both.register(pgconn.socket, select.POLLIN | select.POLLOUT)
            both.poll()
            pgconn.consume_input()
        while pgconn.is_busy():
            connection.input.poll()
            pgconn.consume_input()
        return pgconn.get_result()

    def _new_name(self) -> bytes:
        self._connection.prepared += 1
        return b"metastore_%d" % (self._connection.prepared - 1)

    def _make_room(self, number: int) -> None:
        statements = self._connection.statements
        while statements and len(statements) > MAX_PREPARED_STATEMENTS - number:
            oldest = statements.pop(next(iter(statements)))
            if oldest is not None:
                self._take(self._connection.pgconn.exec_(b"DEALLOCATE " + oldest))

    def _take(self, result: Any) -> None:
        """Keep a result. psycopg.Error for one that is an error."""
        if result.status not in GOOD:
            if self._connection.pgconn.status == pq.ConnStatus.BAD:
                raise errors.OperationalError(result.get_error_message())
            raise errors.error_from_result(result)
        self._result = result
        self._at = 0

    @property
    def rowcount(self) -> int:
        """The number of rows that the last statement returned or changed."""
        return int(self._result.command_tuples or 0)

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return all rows of the last statement."""
        number = self._result.ntuples
        rows: list[tuple[Any, ...]] = self._loading().load_rows(0, number, tuple) if number else []
        return rows

    def fetchone(self) -> tuple[Any, ...] | None:
        """Return the next row of the last statement, None when there is none."""
        if self._at >= self._result.ntuples:
            return None
        row: tuple[Any, ...] | None = self._loading().load_row(self._at, tuple)
        self._at += 1
        return row

    def _loading(self) -> Any:
        self._loads = True
        loading = self._connection.loading
        loading.set_pgresult(self._result)
        return loading

    def executemany(self, query: str, params: Iterable[Mapping[str, Any]]) -> None:
        """Run a statement for each set of parameters, without waiting for each."""
        self.sync()
        with self._connection.full_cursor() as cursor:
            cursor.executemany(query, params)

    def copy(self, query: str) -> Any:
        """Begin a COPY, by a cursor of psycopg."""
        self.sync()
        return self._connection.full_cursor().copy(query)

    def close(self) -> None:
        """Release the last result."""
        self._result = None
        if self._loads:
            self._connection.loading.set_pgresult(None)


def _message(query: str, params: Mapping[str, Any] | None) -> _Message:
    if params is None:
        return _Message((query, ()), query.encode(), (), (), None)
    text, names, plain = _parsed(query)
    if plain is not None:
        return plain
    values: list[bytes | None] = []
    types = []
    formats = None
    for each in names:
        value, kind = encoded(params[each])
        values.append(value)
        types.append(kind)
        if type(value) is BinaryArray:
            formats = formats or [pq.Format.TEXT] * len(names)
            formats[len(values) - 1] = pq.Format.BINARY
    return _Message((query, tuple(types)), text, values, types, formats)


@lru_cache(maxsize=5000)
def _parsed(query: str) -> tuple[bytes, tuple[str, ...], _Message | None]:
    """Return a statement with numbered placeholders, the names of its parameters by number, and its message if it has none."""
    numbers: dict[str, int] = {}

    def place(found: re.Match[str]) -> str:
        return f"${numbers.setdefault(found[1], len(numbers) + 1)}" if found[1] else "%"

    text = PLACEHOLDER.sub(place, query).encode()
    return text, tuple(numbers), None if numbers else _Message((query, ()), text, (), (), None)
