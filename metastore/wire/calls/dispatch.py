"""Answer one message: find the handler, run it, notify the listeners, encode the result or the error, log it.

This module never reads from or writes to a socket, and no error of a handler leaves it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from time import perf_counter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from thriftpy2.thrift import TApplicationException, TException, TMessageType, TPayload

from metastore import errors, log
from metastore.call_time import PARTS, here
from metastore.listeners.events import FunctionEnd
from metastore.methods.forms.entry import ALL, Method
from metastore.methods.interface import query_ids
from metastore.methods.interface.errors import failure, internal_error, reason, unknown_method
from metastore.methods.interface.signatures import Signature, signature
from metastore.methods.operations import fb303
from metastore.methods.operations.queries import QUERIES, ConsoleQuery
from metastore.service.authorization.decision import Decision
from metastore.service.call.context import Call, Client, Metastore
from metastore.service.call.long_lists import LongList
from metastore.service.operations.watched import SlowCall
from metastore.telemetry import audit
from metastore.telemetry.slow_calls import elements, shortened
from metastore.telemetry.telemetry import Telemetry
from metastore.wire.calls.guard import Guard
from metastore.wire.messages.large_replies import LargeReply, encoded
from metastore.wire.messages.protocol import Dialect, Message, decode, write_message
from metastore.wire.sockets.settings import WireSettings

if TYPE_CHECKING:
    from metastore.telemetry.traces import TracedCall, Traces

_CALLS = (TMessageType.CALL, TMessageType.ONEWAY)
_MAX_LENGTH = 300
"""The most characters of a method's or user's name in the log: clients choose the names."""


def _encode(dialect: Dialect, message: Message, kind: int, body: TPayload) -> bytes:
    """Return the reply to a message, and note how long that takes. Raises as `write_message` does."""
    began = perf_counter()
    try:
        return write_message(dialect, message.name, kind, message.seqid, body)
    finally:
        here.time.encoding_seconds += perf_counter() - began


@dataclass(slots=True)
class Outcome:
    """The outcome of a call."""

    method: str
    began: float
    """When it began, by `time.perf_counter`."""
    received: int = 0
    """Bytes of the request."""
    changes: bool = False
    """Whether its method changes something."""
    ended: float = 0.0
    """The time when its reply was ready."""
    parts: tuple[float, ...] = ()
    """The parts of its time, in seconds, in the order of `PARTS`; empty for a call that ran nothing."""
    reply: bytes | LargeReply | None = None
    """The encoded reply; None for a oneway method, which has no reply."""
    object: str = ""
    """The object of the call, as the method's signature describes it."""
    result: str = "ok"
    """"ok", or the class of the error."""
    reason: str = ""
    """The text of the error, for the log."""
    refused: bool = False
    """Whether the caller lacks a privilege, or named an object that it may not see."""
    ends: bool = False
    """Whether the connection is to end without a reply."""
    query: str = ""
    """The id of the query that the call was made for, "" if it is not known."""
    trace: str = ""
    """The id of its trace, "" if it is not sent to a collector."""


class Dispatcher:
    """Answers the messages of all connections of a process."""

    def __init__(
        self, metastore: Metastore, methods: Mapping[str, Method], settings: WireSettings, telemetry: Telemetry,
        traces: Traces | None = None,
    ) -> None:  # fmt: skip
        self._traces = traces
        self._metastore = metastore
        self._counts = telemetry.counts
        self._methods = {**methods, **{each.name: each for each in fb303.counting(self._counts.by_method)}}
        self._slow = telemetry.slow
        self._settings = settings
        self._guard = None if metastore.authorizer is None else Guard(metastore.authorizer)
        self._audit = None if settings.audit_log is None else audit.Audit(settings.audit_log, settings.audit_format)
        self._logs_changes, self._logs_reads = settings.log_calls in ("all", "changes"), settings.log_calls == "all"
        """Whether calls that succeed have a line in the log."""
        self._log = log.get("metastore.call").bind()

    def choose(self, method: str, _kind: int) -> type[TPayload] | None:
        """Return the argument struct of a method that has a handler."""
        return signature(method).args if method in self._methods else None

    def answer(self, message: Message, client: Client, dialect: Dialect) -> Outcome:
        """Run the call and return its outcome. Send the reply before the outcome is recorded: no client has to wait for the log."""
        method = message.name
        entry = self._methods.get(method)
        traced = None if self._traces is None else self._traces.begin(method, client)
        if entry is None or message.type not in _CALLS:
            outcome = Outcome(method, perf_counter(), len(message.raw))
            outcome.reply, outcome.result = self._refuse(message, dialect)
            outcome.ended = perf_counter()
        else:
            called = signature(method)

            def step(call: Call, outcome: Outcome) -> Any:
                args = self._arguments(message, dialect, entry, called)
                if entry.sign is not None:
                    client.release.note(entry.sign, vars(args).values())
                outcome.object = called.describe(args)  # before the handler, which may normalise names in its arguments
                if called.queries:
                    outcome.query = query_ids.find(called.queries, args)
                value = self._run(entry, call, args)
                outcome.reply = self._success(message, dialect, client, entry, called, value)
                return value

            def fail(outcome: Outcome, error: Exception) -> None:
                outcome.reply = self._failure(message, dialect, client, entry, error)
                outcome.ends = isinstance(error, errors.MissingArgument) and client.release.ends(for_4=entry.ends_for_4)

            outcome = self._frame(client, entry, len(message.raw), message.body, step, fail)
            if called.oneway or outcome.ends:
                outcome.reply = None
        if traced is not None:
            self._report(traced, client, outcome)
        return outcome

    def _frame(
        self, client: Client, entry: Method | ConsoleQuery, received: int, args: Any,
        step: Callable[[Call, Outcome], Any], fail: Callable[[Outcome, Exception], None],
    ) -> Outcome:  # fmt: skip
        """Run a call, over Thrift or from the console: note it, notify the listeners of its end, keep it if it was slow. Raises as `fail`
        does.

        `step` returns the method's value and notes its findings in the outcome; `fail` gets its error.
        """
        outcome = Outcome(entry.name, perf_counter(), received, entry.changes)
        client.running, client.running_since = outcome.method, outcome.began
        call = Call(self._metastore, client, outcome.method, from_replica=entry.replica)
        spent = here.time
        spent.begin()
        value: Any = None
        failed: Exception | None = None
        try:
            value = step(call, outcome)
        except Exception as raised:  # noqa: BLE001 # `fail` sorts the errors
            failed = raised
            outcome.result, outcome.reason = type(raised).__name__, reason(raised)
            fail(outcome, raised)
        if self._metastore.replica is not None and entry.changes:
            call.note_change()
        if self._metastore.listeners.end:
            self._metastore.listeners.ended(FunctionEnd(call.info, outcome.object, failed))
        outcome.refused = call.refused
        outcome.ended = perf_counter()
        seconds = outcome.ended - outcome.began
        outcome.parts = spent.parts(seconds)
        if seconds >= self._slow.threshold:
            self._note_slow(client, outcome, args, value, spent.statements)
        return outcome

    def _run(self, entry: Method | ConsoleQuery, call: Call, args: Any) -> Any:
        """Return a handler's value as far as the caller may see it."""
        return entry.handler(call, args) if self._guard is None else self._guard.run(entry.rule, entry.handler, call, args)

    def _report(self, traced: TracedCall, client: Client, outcome: Outcome) -> None:
        """End the span of a call."""
        outcome.trace = traced.trace
        traced.end(client, outcome.object, outcome.result, outcome.query, outcome.parts)

    def _note_slow(self, client: Client, outcome: Outcome, args: Any, value: Any, statements: int) -> None:
        """Keep and log a call that took long."""
        seconds = outcome.ended - outcome.began
        slow = SlowCall(
            began=time.time() - seconds, seconds=seconds, method=outcome.method, object=outcome.object,
            arguments=shortened(outcome.method, args), user=client.user and client.user[:_MAX_LENGTH],
            real_user=client.real_user and client.real_user[:_MAX_LENGTH], address=client.address, query=outcome.query,
            outcome=outcome.result, elements=elements(value), received=outcome.received, sent=len(outcome.reply or b""),
            statements=statements, worker=os.getpid(), **{f"{part}_seconds": took for part, took in zip(PARTS, outcome.parts, strict=True)},
        )  # fmt: skip
        self._counts.slow_call()
        self._slow.add(slow)
        self._log.warning("slow call", **asdict(slow))

    def run(self, client: Client, method: str, **arguments: Any) -> Any:
        """Run a method, or a console query, for a caller without Thrift. All else is as in `answer`, and the outcome is recorded.

        Raises MetastoreError, and any exception for a fault of the server.
        """
        query = QUERIES.get(method)
        entry = query if query is not None else self._methods[method]
        args: Any = SimpleNamespace(**arguments) if query is not None else signature(method).args(**arguments)
        traced = None if self._traces is None else self._traces.begin(method, client)
        value: Any = None
        failed: Exception | None = None

        def step(call: Call, outcome: Outcome) -> Any:
            nonlocal value
            outcome.object = query.describe(args) if query is not None else signature(method).describe(args)
            try:
                value = self._run(entry, call, args)
            except TException as raised:  # a refusal for which the method declares no exception, or an error that the client caused
                cause = raised.__cause__
                raise (cause if isinstance(cause, errors.MetastoreError) else errors.MetaError(str(raised))) from raised
            return value

        def fail(_outcome: Outcome, error: Exception) -> None:
            nonlocal failed
            failed = error

        outcome = self._frame(client, entry, 0, args, step, fail)
        if traced is not None:
            self._report(traced, client, outcome)
        self.record(client, outcome)
        if failed is not None:
            raise failed
        return value

    def administers(self, client: Client) -> bool:
        """Return whether a client may see facts about the server as a whole: every client where rights are not checked."""
        if self._metastore.authorizer is None:
            return True
        try:
            return Decision(Call(self._metastore, client, "show_settings"), self._metastore.authorizer, "QUERY").is_admin
        except errors.MetastoreError:  # the authorizer can not be asked
            return False

    def record(self, client: Client, outcome: Outcome) -> None:
        """Count the call, and write the lines that it is to have in the audit log and in the log."""
        client.calls += 1
        client.last_method, client.last_call, client.running = outcome.method, outcome.ended, ""
        seconds = outcome.ended - outcome.began
        self._counts.call(outcome.method, outcome.result, seconds, outcome.parts, outcome.received, len(outcome.reply or b""))
        request = ""
        if self._audit is not None and (outcome.refused or outcome.changes):
            result = "refused" if outcome.refused else outcome.result
            request = self._audit.record(client, outcome.method, outcome.object, result, seconds, outcome.query)
        if outcome.result != "ok" or (self._logs_changes if outcome.changes else self._logs_reads) or log.logs_everything():
            self._log_call(client, outcome, seconds, request)

    def _log_call(self, client: Client, outcome: Outcome, seconds: float, request: str) -> None:
        """Write the line of the log; `request` is the id that the audit log gave the call, "" for none."""
        more = {} if client.login is None else {"mechanism": client.mechanism, "real_user": client.real_user}
        if outcome.query:
            more["query"] = outcome.query
        if outcome.trace:
            more["trace"] = outcome.trace
        if request:
            more["request"] = request
        if outcome.reason:
            more["reason"] = outcome.reason
        self._log.info(
            "call", client=client.address, user=client.user, method=outcome.method[:_MAX_LENGTH],
            object=outcome.object, ms=int(seconds * 1e6) / 1000, outcome=outcome.result, **more,
        )  # fmt: skip

    def _refuse(self, message: Message, dialect: Dialect) -> tuple[bytes | None, str]:
        """Return the reply to a message that calls no method with a handler, and the reason; the reply is None for a oneway method."""
        method = message.name
        if method not in self._methods:
            oneway = method in ALL and signature(method).oneway
            return None if oneway else self._exception(message, dialect, unknown_method(method)), "unknown method"
        error = TApplicationException(TApplicationException.INVALID_MESSAGE_TYPE, f"Message type {message.type} is not a call of {method}")
        return self._exception(message, dialect, error), "no call"

    def _arguments(self, message: Message, dialect: Dialect, entry: Method, called: Signature) -> Any:
        if message.invalid_text is not None:
            raise errors.MetaError(f"{message.invalid_text} of {message.name} is not UTF-8; send text as UTF-8")
        old = entry.old_request
        if old is not None and old.suspected(message.body):
            old.take(message.body, decode(message.raw, dialect.protocol, self._settings, old.args))
        if called.request is not None and getattr(message.body, called.request) is None:
            raise errors.MetaError(f"{message.name} needs its request: set the argument {called.request}")
        return message.body

    def _success(
        self, message: Message, dialect: Dialect, client: Client, entry: Method, called: Signature, value: Any
    ) -> bytes | LargeReply:
        """Encode a result. Raises TApplicationException if it does not have the method's type, and if it is None where a value is due."""
        if value is None and called.returns:
            # Hive's clients raise the same for an empty result, without a reason.
            text = f"{message.name} has no value for {called.describe(message.body) or 'these arguments'}"
            raise TApplicationException(TApplicationException.MISSING_RESULT, text)
        if isinstance(value, LongList):
            return self._paged(message, dialect, called, value)
        try:
            result: Any = called.result()
            if value is not None:
                old = entry.old_result
                if old is not None and client.release.is_2_3:
                    result = old.result(success=old.value(value))
                elif called.returns:
                    result.success = value
                else:
                    raise TypeError(f"{message.name} returns nothing, its handler returned {type(value).__name__}")
            return _encode(dialect, message, TMessageType.REPLY, result)
        except Exception as error:
            self._log.error("result not encodable", method=message.name, client=client.address, exc_info=error)
            raise internal_error(message.name) from error

    def _paged(self, message: Message, dialect: Dialect, called: Signature, value: LongList) -> LargeReply:
        """Read and encode the pages of a result. Raises MetastoreError, and TApplicationException where they can not be encoded."""
        plain = Dialect(dialect.protocol, framed=False)

        def encode(page: list[Any]) -> bytes:
            result: Any = called.result()
            result.success = value.make(page)
            return write_message(plain, message.name, TMessageType.REPLY, message.seqid, result)

        try:
            return encoded(value, dialect.protocol, encode, framed=dialect.framed)
        except OverflowError as error:
            raise TApplicationException(TApplicationException.INTERNAL_ERROR, f"{message.name}: {error}") from error

    def _failure(self, message: Message, dialect: Dialect, client: Client, entry: Method, error: Exception) -> bytes:
        if not isinstance(error, errors.MetastoreError | TException):
            self._log.error("call failed", method=message.name, client=client.address, exc_info=error)
        body = failure(message.name, error, entry.old_meta_field if client.release.is_2_3 else "")
        if isinstance(body, TApplicationException):
            return self._exception(message, dialect, body)
        try:
            return _encode(dialect, message, TMessageType.REPLY, body)
        except Exception as inner:  # noqa: BLE001  # thriftpy2 raises many kinds
            self._log.error("error not encodable", method=message.name, client=client.address, exc_info=inner)
            return self._exception(message, dialect, internal_error(message.name))

    def _exception(self, message: Message, dialect: Dialect, error: TApplicationException) -> bytes:
        return _encode(dialect, message, TMessageType.EXCEPTION, error)
