"""The common reports of a server's worker processes: counts, slow calls, connected clients.

It is made before the workers are forked, so that they share its memory. It never looks at the database.
"""

from __future__ import annotations

from metastore.service.operations.watched import ConnectedClient, SlowCall
from metastore.store.core import figures
from metastore.store.core.database import Database
from metastore.telemetry.clients import Clients
from metastore.telemetry.counts import Counts
from metastore.telemetry.slow_calls import SlowCalls


class Telemetry:
    """The parts of some worker processes; each writes its own, and any of them reads all."""

    def __init__(self, parts: int = 1, slow_call_threshold: float = 0.0) -> None:
        self.counts = Counts(parts)
        self.slow = SlowCalls(parts, slow_call_threshold)
        self.clients = Clients(parts)

    def take(self, part: int) -> None:
        """Write into a part from now on: at the beginning of a worker process."""
        self.counts.take(part)
        self.slow.take(part)
        self.clients.take(part)

    def died(self, part: int) -> None:
        """Note that the process of a part has died: its counts stay, its connections are gone."""
        self.counts.close_connections(part)
        self.clients.died(part)

    def publish(self, database: Database) -> None:
        """Write the clients and database figures of this process, for the others to read."""
        self.clients.publish()
        self.counts.publish(figures.totals(database), figures.levels(database))

    def slow_calls(self) -> list[SlowCall]:
        """Return the slow calls that are kept of all workers, the newest first."""
        return self.slow.all()

    def connected_clients(self) -> list[ConnectedClient]:
        """Return the clients that are connected to any worker and have begun to send calls, the longest connected ones first."""
        return self.clients.all()
