"""Connections to MariaDB and MySQL that send statements together, and cursors on them.

PyMySQL connects and escapes, and its errors are raised; `mysql_answers` reads the server's answers.

MySQL before 8.0.17 has no collation of utf8mb4 that compares bytes and respects spaces at the end of a text. In a database that was made
there (`mysql.collation`) a text that ends in a space, or in the mark itself, is stored with a mark after it. The mark is below a space,
with which such a database fills up the shorter of two texts: so a range by a prefix has to begin with the prefix and a mark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from ssl import VERIFY_X509_STRICT, SSLContext, create_default_context
from typing import Any

from pymysql import connections, err
from pymysql.constants import COMMAND, CR, SERVER_STATUS
from pymysql.converters import escape_string
from pymysql.cursors import RE_INSERT_VALUES

from metastore.store.drivers.answer import Answer
from metastore.store.drivers.mysql_answers import Answers, Result, Row

TOGETHER = 500_000
"""Characters of statements that are sent together, at most: the server takes no packet above its max_allowed_packet, by default 16 MiB."""
CHUNK = 65536
"""The number of bytes that are requested from the socket at once."""
Parameters = dict[str, Any] | Sequence[Any]
Asked = tuple[str, Answer | None]
"""A statement, and the answer that takes its result."""


@cache
def _tls() -> SSLContext:
    """Return the context that PyMySQL makes for each connection, which takes 20 ms: it reads the system's certificates."""
    unconnected: Any = connections.Connection(defer_connect=True)
    context: SSLContext = unconnected.ctx
    return context


def demanded_tls(query: Mapping[str, Any]) -> SSLContext | None:
    """Return the context that a URL's `ssl_ca`, `ssl_cert` and `ssl_key` ask for, None if it asks for none. OSError for files.

    It checks the server's certificate and its name; `ssl_verify_identity=false` leaves the name out. A server without TLS is refused.
    """
    if not any(name.startswith("ssl_") for name in query):
        return None
    context = create_default_context(cafile=query.get("ssl_ca"))
    context.verify_flags &= ~VERIFY_X509_STRICT  # the certificates that MySQL makes for itself lack some fields for that
    context.check_hostname = query.get("ssl_verify_identity", "true") != "false"
    if "ssl_cert" in query:
        context.load_cert_chain(query["ssl_cert"], query.get("ssl_key"))
    return context


class PlainConnection(connections.Connection):
    """A connection of PyMySQL's own, which shares the context of TLS with all others of its URL."""

    def _create_ssl_ctx(self, options: Any) -> SSLContext:
        """Return one context for all connections, the database URL's if it has one."""
        return options if isinstance(options, SSLContext) else _tls()


class MySQLConnection(PlainConnection):
    """A connection with the flag MULTI_STATEMENTS."""

    _sock: Any
    _next_seq_id: int
    _execute_command: Callable[[int, bytes], None]
    _force_close: Callable[[], None]
    mark = ""
    """The text that is stored after a value that ends in a space or in this text, if any."""

    def cursor(self, *_: Any, **__: Any) -> MySQLCursor:  # type: ignore[override] # it has the methods of a cursor that the store uses
        """Return a cursor."""
        return MySQLCursor(self)

    def ask(self, text: str, results: list[Result]) -> None:
        """Run statements with `;` between them and add their results. pymysql.Error for the first that fails: the others are not run.

        After any other error the connection is closed, as answers may still be on their way.
        """
        raw = text.encode(self.encoding)
        answers = None
        try:
            self._execute_command(COMMAND.COM_QUERY, raw)
            answers = Answers(self._receive, self._next_seq_id, self.mark)
            answers.read(results)
        except BaseException:
            if answers is None or not answers.ended:
                self._force_close()
            raise
        self.server_status = answers.status

    def _receive(self, size: int) -> bytes:
        """Receive and return at least `size` bytes."""
        parts = []
        try:
            while size > 0:
                part = self._sock.recv(CHUNK)
                if not part:
                    raise err.OperationalError(CR.CR_SERVER_LOST, "Lost connection to MySQL server during query")
                parts.append(part)
                size -= len(part)
        except OSError as error:
            raise err.OperationalError(CR.CR_SERVER_LOST, f"Lost connection to MySQL server during query ({error})") from error
        return b"".join(parts)


class MySQLCursor:
    """Runs statements with named (`%(name)s`) or positional (`%s`) parameters."""

    __slots__ = ("_at", "_connection", "_rows", "_waiting", "lastrowid", "rowcount")

    def __init__(self, connection: MySQLConnection) -> None:
        self._connection = connection
        self._waiting: list[Asked] = []
        self._rows: Sequence[Row] = ()
        self._at = 0
        self.rowcount = -1
        self.lastrowid: int | None = None

    def execute(self, query: str, args: Parameters | None = None) -> int:
        """Run a statement, after the pending ones; return the number of rows that it returned, found or changed. pymysql.Error."""
        waiting, self._waiting = self._waiting, []
        waiting.append((self.mogrify(query, args), None))
        self._run(waiting)
        return self.rowcount

    def executemany(self, query: str, args: Iterable[Parameters]) -> None:
        """Run a statement for each set of parameters, after the pending ones: inserts as one statement of many rows."""
        self.sync()
        insert = RE_INSERT_VALUES.match(query)
        if insert is None:
            for each in args:
                self.enqueue(query, each)
            self.sync()
            return
        before, values, after = insert[1] % (), insert[2], (insert[3] or "") % ()
        rows: list[str] = []
        length = 0
        for each in args:
            row = self.mogrify(values, each)
            if length + len(row) > TOGETHER and rows:
                self.execute(f"{before}{','.join(rows)}{after}")
                rows, length = [], 0
            rows.append(row)
            length += len(row)
        if rows:
            self.execute(f"{before}{','.join(rows)}{after}")

    def enqueue(self, query: str, args: Parameters | None = None) -> Answer:
        """Run a statement together with the next one."""
        answer = Answer(self._wait_for)
        self._waiting.append((self.mogrify(query, args), answer))
        return answer

    def _wait_for(self, _: Answer) -> None:
        self.sync()

    def discard_pending(self) -> None:
        """Drop the pending statements."""
        self._waiting.clear()

    def sync(self) -> None:
        """Run the pending statements."""
        waiting, self._waiting = self._waiting, []
        if waiting:
            self._run(waiting)

    def _run(self, asked: Sequence[Asked]) -> None:
        if len(asked) > 1 and sum(len(text) for text, _ in asked) > TOGETHER:
            for each in asked:
                self._run((each,))
            return
        results: list[Result] = []
        try:
            self._connection.ask(";".join([text for text, _ in asked]), results)
        finally:
            for (_, answer), result in zip(asked, results, strict=False):  # after an error there are no further results
                if answer is not None:
                    answer.settle(*result)
        self._rows, self.rowcount, self.lastrowid = results[-1]
        self._at = 0

    def mogrify(self, query: str, args: Parameters | None = None) -> str:
        """Return a statement with its parameters in it; without any, its text is unchanged."""
        if args is None:
            return query
        if isinstance(args, dict):
            return query % dict(zip(args, self._literals(args.values()), strict=True))
        return query % tuple(self._literals(args))

    def _literals(self, values: Iterable[Any]) -> list[str | int]:
        """Return the literals for values in a statement, with the mark where a text needs it."""
        connection = self._connection
        plain = not connection.server_status & SERVER_STATUS.SERVER_STATUS_NO_BACKSLASH_ESCAPES
        mark = connection.mark
        literals: list[str | int] = []
        for value in values:
            kind = type(value)
            if kind is int:
                literals.append(value)
            elif kind is str:
                text = value + mark if mark and value.endswith((" ", mark)) else value
                literals.append(f"'{escape_string(text)}'" if plain else connection.escape(text))
            elif kind is tuple:
                literals.append(f"({','.join(map(str, self._literals(value)))})")
            else:
                literals.append(connection.escape(value))
        return literals

    def fetchall(self) -> Sequence[Row]:
        """Return all rows of the last statement."""
        return self._rows

    def fetchone(self) -> Row | None:
        """Return the next row of the last statement, None when there is none."""
        if self._at >= len(self._rows):
            return None
        self._at += 1
        return self._rows[self._at - 1]

    def close(self) -> None:
        """Release the last result."""
        self._rows = ()
