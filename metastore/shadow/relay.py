"""Pass the messages of one client on to the primary, and its replies back, unchanged. All facts about methods are in their entries.

Where changes are sent to both sides, the secondary is asked before the client has its reply. Only one message at a time is sent to both, so
that each finds the same state on both sides.
"""

from __future__ import annotations

import threading
from contextlib import nullcontext
from time import perf_counter
from typing import NamedTuple

from thriftpy2.thrift import TApplicationException, TMessageType, TPayload

from metastore import log
from metastore.client_connections import ClientConnection
from metastore.methods import METHODS
from metastore.methods.forms.entry import Shadowed
from metastore.service.call.context import Client
from metastore.shadow.asking import Beside, Exchange
from metastore.shadow.comparing import is_unknown
from metastore.shadow.upstream import FAILURES, LIMITS, Caller, Line, Upstream, exchange, framed
from metastore.wire.calls.dispatch import Outcome
from metastore.wire.messages.protocol import Dialect, Message, decode


class Both(NamedTuple):
    """The secondary, if it gets changes too, and the lock that is held while a message of any client is sent to both sides."""

    secondary: Upstream
    turn: threading.Lock


def is_compared(method: str, *, with_changes: bool = False) -> bool:
    """Return whether the secondary is asked too, by the method's entry: `with_changes` also for changes, and methods that need them."""
    entry = METHODS.get(method)
    if entry is None or entry.shadowed is Shadowed.NEVER:
        return False
    return with_changes or not (entry.changes or entry.shadowed is Shadowed.AFTER_CHANGES)


class Relay:
    """Answers the messages of one connection, by a connection of its own to the primary."""

    def __init__(self, number: int, primary: Upstream, beside: Beside, both: Both | None) -> None:
        self._number = number
        self._primary = primary
        self._beside = beside
        self._connection: ClientConnection | None = None
        self._turn = nullcontext() if both is None else both.turn
        self._second = None if both is None else Line(both.secondary)
        self._exchange: Exchange | None = None
        self.spoke = False
        """Whether a message has arrived since the last reset by the reader of this flag."""

    def choose(self, _method: str, _kind: int) -> type[TPayload] | None:
        """Return None: no message is decoded here."""
        return None

    def answer(self, message: Message, client: Client, dialect: Dialect) -> Outcome:
        """Ask the primary. Where it does not answer, the client's connection ends, as a connection of its own to the primary would."""
        self.spoke = True
        outcome = Outcome(message.name, perf_counter(), len(message.raw))
        caller = Caller() if client.login is None else Caller(client.user, tuple(client.groups))
        with self._turn:
            try:
                if self._connection is None:
                    self._connection = self._primary.open(dialect, caller)
                if message.type == TMessageType.ONEWAY:
                    self._connection.send(framed(message.raw, dialect))
                    return outcome
                reply = exchange(self._connection, dialect, message.raw, lambda *_: None)
            except FAILURES as error:
                log.get("metastore.shadow").warning("the primary did not answer", client=client.address, reason=str(error)[:300])
                outcome.ends, outcome.result = True, "unreachable"
                return outcome
            outcome.reply = framed(reply.raw, dialect)
            if is_compared(message.name, with_changes=self._second is not None):
                other = None if self._second is None else self._ask_second(self._second, message, reply, dialect, caller)
                self._exchange = Exchange(self._number, caller, dialect, message.name, bytes(message.raw), bytes(reply.raw), other)
        return outcome

    def _ask_second(self, second: Line, message: Message, reply: Message, dialect: Dialect, caller: Caller) -> bytes:
        """Return the secondary's reply, or b"". For a method that the primary lacks it is not asked: the client will use another method."""
        if reply.type == TMessageType.EXCEPTION and is_unknown(decode(reply.raw, dialect.protocol, LIMITS, TApplicationException)):
            return b""
        try:
            return bytes(second.ask(dialect, caller, message.name, message.raw, lambda *_: None).raw)
        except FAILURES as error:
            log.get("metastore.shadow").warning("the secondary did not answer", method=message.name, reason=str(error)[:300])
            return b""

    def record(self, _client: Client, _outcome: Outcome) -> None:
        """Offer the exchange to be compared, now that the client has its reply. The secondary is asked then, unless it has been already."""
        if self._exchange is not None:
            self._beside.offer(self._exchange)
            self._exchange = None

    def close(self) -> None:
        """Close the connections that belong to the client."""
        for each in (self._connection, self._second):
            if each is not None:
                each.close()
        self._beside.left(self._number)
