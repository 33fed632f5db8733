"""All pages by path: the function that makes their content, and their template. A page has one path under `/ui` and `/api/v1`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from metastore.console.pages import catalogs, compactions, events, front, partitions, server, tables, transactions


@dataclass(frozen=True, slots=True)
class Page:
    """A page; the parameters of `look` after the visit are from its path and its query."""

    path: str
    look: Callable[..., Any]
    template: str
    title: str
    admin: bool = False
    """Whether it is for administrators alone: others do not see it in the navigation."""

    @property
    def twin(self) -> str:
        """The path of the same as JSON, below `/api/v1`."""
        return "/overview" if self.path == "/" else self.path


PAGES = (
    Page("/", front.front, "front.html", "Overview"),
    Page("/catalog", catalogs.catalog, "catalog.html", "Catalog"),
    Page("/database", catalogs.database, "database.html", "Database"),
    Page("/table", tables.table, "table.html", "Table"),
    Page("/partitions", partitions.partitions, "partitions.html", "Partitions"),
    Page("/partition", partitions.partition, "partition.html", "Partition"),
    Page("/statistics", partitions.statistics, "statistics.html", "Statistics"),
    Page("/transactions", transactions.transactions, "transactions.html", "Transactions"),
    Page("/transactions/{id:int}", transactions.transaction, "transaction.html", "Transaction"),
    Page("/locks", transactions.all_locks, "locks.html", "Locks"),
    Page("/locks/{id:int}", transactions.lock, "lock.html", "Lock"),
    Page("/compactions", compactions.compactions, "compactions.html", "Compactions"),
    Page("/compactions/{id:int}", compactions.compaction, "compaction.html", "Compaction"),
    Page("/events", events.events, "events.html", "Events"),
    Page("/events/{id:int}", events.event, "event.html", "Event"),
    Page("/clients", server.clients, "clients.html", "Clients", admin=True),
    Page("/slow-calls", server.slow_calls, "slow_calls.html", "Slow calls", admin=True),
    Page("/jobs", server.jobs, "jobs.html", "Jobs", admin=True),
    Page("/settings", server.all_settings, "settings.html", "Settings", admin=True),
)
