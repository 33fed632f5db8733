"""The clients that are connected to all worker processes, with their users and last calls, in memory that the workers share.

A call changes no shared memory: each worker writes the changes of its own clients every second. It never decides about a login.
"""

from __future__ import annotations

import os
import threading
import time

from metastore.service.call.context import Client
from metastore.service.operations.watched import ConnectedClient
from metastore.telemetry.records import Records

PLACES = 10_000
"""The largest number of clients of one worker process that are noted. Further clients are served all the same."""
_SIZE = 1600
_LONGEST = 100
"""Characters of a name, which a client sends."""


class Presence:
    """A connected client. Its worker replaces `client` if another user sends calls on the connection."""

    __slots__ = ("client", "place", "since", "transport", "written")

    def __init__(self, client: Client, transport: str, place: int) -> None:
        self.client = client
        self.transport = transport
        self.place = place
        self.since = time.time()
        self.written: tuple[object, ...] = ()
        """The values that were written last."""

    def describe(self) -> ConnectedClient:
        """Return the record of the client at this moment."""
        client = self.client
        last = time.time() - (time.perf_counter() - client.last_call) if client.calls else 0.0
        return ConnectedClient(
            address=client.address,
            user=client.user and client.user[:_LONGEST],
            real_user=client.real_user and client.real_user[:_LONGEST],
            mechanism=client.mechanism,
            transport=self.transport,
            worker=os.getpid(),
            since=self.since,
            calls=client.calls,
            last_method=client.last_method[:_LONGEST],
            last_call=last,
            running=client.running[:_LONGEST],
            running_seconds=time.perf_counter() - client.running_since if client.running else 0.0,
        )


class Clients:
    """The clients of some worker processes."""

    def __init__(self, parts: int = 1) -> None:
        self._records = Records(parts, PLACES, _SIZE)
        self.take(0)

    def take(self, part: int) -> None:
        """Note clients in a part from now on: at the beginning of a worker process."""
        self._records.take(part)
        self._lock = threading.Lock()
        self._present: set[Presence] = set()
        self._free: list[int] = []
        self._next = 0

    def died(self, part: int) -> None:
        """Forget the clients of a process that has died."""
        self._records.clear(part)

    def enter(self, client: Client, transport: str) -> Presence | None:
        """Note a client that begins to send calls; None if there are too many to note."""
        with self._lock:
            if self._free:
                place = self._free.pop()
            elif self._next < PLACES:
                place = self._next
                self._next += 1
            else:
                return None
            presence = Presence(client, transport, place)
            self._present.add(presence)
        return presence

    def leave(self, presence: Presence) -> None:
        """Forget a client whose connection ends."""
        with self._lock:
            self._present.discard(presence)
            self._records.free(presence.place)
            self._free.append(presence.place)

    def publish(self) -> None:
        """Write the changes of this worker's own clients, for the other workers to read."""
        with self._lock:
            for each in self._present:
                client = each.client
                written = (client.user, client.login, client.calls, client.running)
                if written != each.written or client.running:
                    each.written = written
                    self._records.write(each.place, each.describe())

    def all(self) -> list[ConnectedClient]:
        """Return all clients, the longest connected ones first."""
        self.publish()
        return sorted((ConnectedClient(**values) for values in self._records.read() if values), key=lambda each: each.since)
