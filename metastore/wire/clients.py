"""Know the clients that are connected to all worker processes: who they are and what they called last, in memory that the workers share.

It never decides who is let in. A call costs a tenth of a microsecond to note.
"""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass

from metastore.service.context import Client
from metastore.wire.counts import METHODS, OTHER
from metastore.wire.records import Records

PLACES = 10_000
"""Clients of one worker process that are known; those beyond are served all the same."""
_SIZE = 1600
_LONGEST = 100
"""Characters of a name, which comes from a client."""
_NUMBER_OF = {method: number for number, method in enumerate(METHODS)}
_OTHER = _NUMBER_OF[OTHER]


@dataclass(frozen=True, slots=True)
class ConnectedClient:
    """A connection that has spoken and is open; times are in seconds since 1970."""

    address: str
    user: str | None
    """Whom its calls act for, None for nobody."""
    real_user: str | None
    """Who logged in, where that is somebody else."""
    mechanism: str
    """How it logged in, "" if it did not."""
    transport: str
    """"plain", "tls", "sasl" or "http"."""
    worker: int
    """The process id of the worker that serves it."""
    since: float
    calls: int
    last_method: str
    """Of its last call; "" before the first."""
    last_call: float
    """When that ended, 0 before the first."""


class Clients:
    """The clients of some worker processes."""

    def __init__(self, parts: int = 1) -> None:
        self._records = Records(parts, PLACES, _SIZE, numbers=3)
        self.take(0)

    def take(self, part: int) -> None:
        """Note clients in a part from now on: at the beginning of a worker process."""
        self._records.take(part)
        self._lock = threading.Lock()
        self._free: list[int] = []
        self._next = 0

    def died(self, part: int) -> None:
        """Forget the clients of a process that has died."""
        self._records.clear(part)

    def enter(self, client: Client, transport: str) -> Presence | None:
        """Note a client that begins to speak; None if there are too many to note."""
        with self._lock:
            if self._free:
                place = self._free.pop()
            elif self._next < PLACES:
                place = self._next
                self._next += 1
            else:
                return None
        return Presence(self, place, client, transport)

    def all(self) -> list[ConnectedClient]:
        """Return all clients, those first that have been connected for longest."""
        found = [
            ConnectedClient(**values, calls=int(calls), last_method=METHODS[int(method)] if calls else "", last_call=last)
            for values, (calls, method, last) in self._records.read()
            if values
        ]
        return sorted(found, key=lambda each: each.since)

    def _leave(self, place: int) -> None:
        self._records.free(place)
        with self._lock:
            self._free.append(place)


class Presence:
    """One client's place; used by the thread that serves it."""

    __slots__ = ("_at", "_calls", "_clients", "_place", "_records", "_since", "_told", "_transport")

    def __init__(self, clients: Clients, place: int, client: Client, transport: str) -> None:
        self._clients = clients
        self._records = clients._records  # noqa: SLF001  # two classes of one matter
        self._place = place
        self._at = self._records.at(place)
        self._transport = transport
        self._since = time.time()
        self._calls = 0
        self._tell(client)

    def _tell(self, client: Client) -> None:
        self._told = (client.user, client.login)
        names = {
            "address": client.address, "user": client.user, "real_user": client.real_user, "mechanism": client.mechanism,
            "transport": self._transport,
        }  # fmt: skip
        short = {name: value[:_LONGEST] if value is not None else None for name, value in names.items()}
        self._records.write(self._place, {**short, "worker": os.getpid(), "since": self._since}, (self._calls, _OTHER, 0.0))

    def called(self, client: Client, method: str) -> None:
        """Note a call that has been answered."""
        if (client.user, client.login) != self._told:
            self._tell(client)
        self._calls += 1
        self._records.number(self._at, self._calls, _NUMBER_OF.get(method, _OTHER), time.time())

    def leave(self) -> None:
        """Forget the client: its connection ends."""
        self._clients._leave(self._place)  # noqa: SLF001  # see above
