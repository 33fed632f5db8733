"""Answer one message: find the handler, run it, tell the listeners, encode the result or the error, log it.

It never reads from or writes to a socket, and no error of a handler leaves it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from thriftpy2.thrift import TApplicationException, TException, TMessageType, TPayload, TType

from metastore import errors, idl, log
from metastore.listeners.events import FunctionEnd
from metastore.service.context import Call, Client, Metastore
from metastore.wire.encoding import Encoded
from metastore.wire.errors import declared, failure, internal_error, note_dialect, speaks_2_3, unknown_method
from metastore.wire.methods.table import ALL, Handler
from metastore.wire.protocol import Dialect, Message, decode, write_encoded, write_message
from metastore.wire.settings import WireSettings
from metastore.wire.variants import OLD_REQUESTS, OLD_RESULTS

_DATABASE = frozenset({"db_name", "dbname", "dbName", "databaseName", "database_name", "db", "dbase"})
_TABLE = frozenset({"tbl_name", "tblName", "tableName", "tablename", "table_name", "tblname", "tab_name"})
_NAME = frozenset({"name", "functionName", "funcName", "roleName", "role_name"})
_MAX_LENGTH = 300
"""Of an object's name in the log; names come from clients."""


@dataclass(slots=True)
class Outcome:
    """What became of a message."""

    reply: bytes | None
    """None for a oneway method, which has none."""
    method: str
    object: str
    """What it was about, as `describe` tells it."""
    seconds: float
    result: str
    """"ok", or what went wrong."""


class Dispatcher:
    """Answers the messages of all connections of a process."""

    def __init__(self, metastore: Metastore, methods: Mapping[str, Handler], settings: WireSettings) -> None:
        self._metastore = metastore
        self._methods = methods
        self._settings = settings
        self._log = log.get("metastore.call").bind()

    def choose(self, method: str, _kind: int) -> type[TPayload] | None:
        """Return the argument struct of a method that has a handler."""
        if method not in self._methods:
            return None
        cls: type[TPayload] = getattr(idl.service, f"{method}_args")
        return cls

    def answer(self, message: Message, client: Client, dialect: Dialect) -> Outcome:
        """Run the call and return the reply, which is to be sent before the outcome is recorded: nobody has to wait for the log.

        Raises MissingArgument when the connection is to end instead.
        """
        started = time.perf_counter()
        method = message.name

        def outcome(reply: bytes | None, result: str, subject: str = "") -> Outcome:
            return Outcome(reply, method, subject, time.perf_counter() - started, result)

        handler = self._methods.get(method)
        if handler is None:
            oneway = method in ALL and getattr(idl.service, f"{method}_result").oneway
            reply = None if oneway else self._exception(message, dialect, unknown_method(method))
            return outcome(reply, "unknown method")
        if message.type not in (TMessageType.CALL, TMessageType.ONEWAY):
            error = TApplicationException(
                TApplicationException.INVALID_MESSAGE_TYPE, f"Message type {message.type} is no call of {method}"
            )
            return outcome(self._exception(message, dialect, error), "no call")
        note_dialect(client, method)
        call = Call(self._metastore, client, method)
        subject = ""
        failed: Exception | None = None
        try:
            args = self._arguments(message, dialect)
            subject = describe(method, args)  # before the handler, which may normalise names in its arguments
            reply = self._success(message, dialect, client, handler(call, args))
        except errors.MissingArgument as missing:
            self._tell_end(call, subject, missing)
            self.record(client, outcome(None, type(missing).__name__, subject))
            raise
        except Exception as raised:  # noqa: BLE001  # every error of a handler has a reply
            failed = raised
            reply = self._failure(message, dialect, client, raised)
        self._tell_end(call, subject, failed)
        sent = None if getattr(idl.service, f"{method}_result").oneway else reply
        return outcome(sent, "ok" if failed is None else type(failed).__name__, subject)

    def record(self, client: Client, outcome: Outcome) -> None:
        """Write the line of the log."""
        self._log.info(
            "call", client=client.address, user=client.user, method=outcome.method[:_MAX_LENGTH],
            object=outcome.object, ms=round(outcome.seconds * 1000, 3), outcome=outcome.result,
        )  # fmt: skip

    def _arguments(self, message: Message, dialect: Dialect) -> Any:
        if message.invalid_text is not None:
            raise errors.MetaError(f"{message.invalid_text} of {message.name} is no UTF-8; send text as UTF-8")
        old = OLD_REQUESTS.get(message.name)
        if old is not None and old.suspected(message.body):
            old.take(message.body, decode(message.raw, dialect.protocol, self._settings, old.args))
        request = _request(message.name)
        if request is not None and getattr(message.body, request) is None:
            text = f"{message.name} needs its request: set the argument {request}"
            if idl.MetaException in declared(message.name):
                raise errors.MetaError(text)
            raise TApplicationException(TApplicationException.INTERNAL_ERROR, f"Internal error processing {message.name}: {text}")
        return message.body

    def _success(self, message: Message, dialect: Dialect, client: Client, value: Any) -> bytes:
        """Encode a result. Raises TApplicationException if it is not what the method returns."""
        try:
            return self._encode(message, dialect, client, value)
        except Exception as error:
            self._log.error("result not encodable", method=message.name, client=client.address, exc_info=error)
            raise internal_error(message.name) from error

    def _encode(self, message: Message, dialect: Dialect, client: Client, value: Any) -> bytes:
        result = getattr(idl.service, f"{message.name}_result")()
        if isinstance(value, Encoded):
            return write_encoded(dialect, message.name, message.seqid, result, value)
        if value is not None:
            if message.name in OLD_RESULTS and speaks_2_3(client):
                result = _with_success(result, OLD_RESULTS[message.name](value))
            elif 0 in result.thrift_spec:
                result.success = value
            else:
                raise TypeError(f"{message.name} returns nothing, its handler returned {type(value).__name__}")
        return write_message(dialect, message.name, TMessageType.REPLY, message.seqid, result)

    def _failure(self, message: Message, dialect: Dialect, client: Client, error: Exception) -> bytes:
        if not isinstance(error, errors.MetastoreError | TException):
            self._log.error("call failed", method=message.name, client=client.address, exc_info=error)
        body = failure(message.name, error, client)
        if isinstance(body, TApplicationException):
            return self._exception(message, dialect, body)
        try:
            return write_message(dialect, message.name, TMessageType.REPLY, message.seqid, body)
        except Exception as inner:  # noqa: BLE001  # thriftpy2 raises many kinds
            self._log.error("error not encodable", method=message.name, client=client.address, exc_info=inner)
            return self._exception(message, dialect, internal_error(message.name))

    def _exception(self, message: Message, dialect: Dialect, error: TApplicationException) -> bytes:
        return write_message(dialect, message.name, TMessageType.EXCEPTION, message.seqid, error)

    def _tell_end(self, call: Call, subject: str, failed: Exception | None) -> None:
        if self._metastore.listeners.end:
            self._metastore.listeners.ended(FunctionEnd(call.info, subject, failed))


@cache
def _request(method: str) -> str | None:
    """Return the name of a method's only argument if that is a request struct: without it the method has nothing to go by."""
    fields = list(getattr(idl.service, f"{method}_args").thrift_spec.values())
    if len(fields) != 1 or fields[0][0] != TType.STRUCT or not fields[0][2].__name__.endswith("Request"):
        return None
    return str(fields[0][1])


def _with_success(result: Any, value: TPayload) -> Any:
    """Return a result struct whose `success` has another struct's type."""
    spec = {**result.thrift_spec, 0: (TType.STRUCT, "success", type(value), False)}
    out = type(type(result).__name__, (TPayload,), {"thrift_spec": spec})()
    out.success = value
    return out


def describe(method: str, args: Any) -> str:
    """Return the object that a call is about, as far as its arguments name it: "db.table", "db" or a name."""
    database, table, name = _paths(method)
    outer, inner = _first(args, database), _first(args, table) or _first(args, name)
    return (f"{outer}.{inner}" if outer and inner and outer != inner else outer or inner)[:_MAX_LENGTH]


def _first(args: Any, paths: tuple[tuple[str, ...], ...]) -> str:
    for path in paths:
        value = args
        for step in path:
            value = getattr(value, step, None)
            if value is None:
                break
        if isinstance(value, str) and value:
            return value
    return ""


Paths = tuple[tuple[str, ...], ...]


@cache
def _paths(method: str) -> tuple[Paths, Paths, Paths]:
    """Return where the arguments of a method hold names of databases, of tables and others, the outermost first."""
    found: tuple[list[tuple[str, ...]], ...] = ([], [], [])
    level: list[tuple[tuple[str, ...], Any]] = [((), getattr(idl.service, f"{method}_args"))]
    for _ in range(3):
        below = []
        for path, cls in level:
            for field in cls.thrift_spec.values():
                here = (*path, field[1])
                if field[0] == TType.STRUCT:
                    below.append((here, field[2]))
                elif field[0] == TType.STRING:
                    for names, out in zip((_DATABASE, _TABLE, _NAME), found, strict=True):
                        if field[1] in names:
                            out.append(here)
        level = below
    return tuple(found[0]), tuple(found[1]), tuple(found[2])
