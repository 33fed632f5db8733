"""Pass the messages of one client on to the primary, and its replies back, as they came. It knows no method but by its entry."""

from __future__ import annotations

from time import perf_counter

from thriftpy2.thrift import TMessageType, TPayload

from metastore import log
from metastore.client_connections import ClientConnection
from metastore.methods import METHODS
from metastore.service.call.context import Client
from metastore.shadow.asking import Beside, Exchange
from metastore.shadow.ignored import NOT_ASKED
from metastore.shadow.upstream import Caller, Upstream, exchange, framed
from metastore.wire.calls.dispatch import Outcome
from metastore.wire.messages.protocol import Dialect, Message, Unreadable
from metastore.wire.sockets.transport import EndOfStream, Malformed


def is_compared(method: str) -> bool:
    """Return whether the secondary is asked too: for methods that change nothing."""
    return method in METHODS and not METHODS[method].changes and method not in NOT_ASKED


class Relay:
    """Answers the messages of one connection, by a connection of its own to the primary."""

    def __init__(self, number: int, primary: Upstream, beside: Beside) -> None:
        self._number = number
        self._primary = primary
        self._beside = beside
        self._connection: ClientConnection | None = None
        self._exchange: Exchange | None = None
        self.spoke = False
        """Whether a message came since somebody looked."""

    def choose(self, _method: str, _kind: int) -> type[TPayload] | None:
        """Return None: no message is decoded here."""
        return None

    def answer(self, message: Message, client: Client, dialect: Dialect) -> Outcome:
        """Ask the primary. Where it does not answer, the client's connection ends, as its own to the primary would."""
        self.spoke = True
        outcome = Outcome(message.name, perf_counter(), len(message.raw))
        caller = Caller() if client.login is None else Caller(client.user, tuple(client.groups))
        try:
            if self._connection is None:
                self._connection = self._primary.open(dialect, caller)
            if message.type == TMessageType.ONEWAY:
                self._connection.send(framed(message.raw, dialect))
                return outcome
            reply = exchange(self._connection, dialect, message.raw, lambda *_: None).raw
        except (OSError, EndOfStream, Unreadable, Malformed) as error:
            log.get("metastore.shadow").warning("the primary did not answer", client=client.address, reason=str(error)[:300])
            outcome.ends, outcome.result = True, "unreachable"
            return outcome
        outcome.reply = framed(reply, dialect)
        if is_compared(message.name):
            self._exchange = Exchange(self._number, caller, dialect, message.name, bytes(message.raw), bytes(reply))
        return outcome

    def record(self, _client: Client, _outcome: Outcome) -> None:
        """Let the secondary be asked, now that the client has its reply."""
        if self._exchange is not None:
            self._beside.offer(self._exchange)
            self._exchange = None

    def close(self) -> None:
        """Close the connections that belong to the client."""
        if self._connection is not None:
            self._connection.close()
        self._beside.left(self._number)
