"""Pages of the compaction queue and its history."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from metastore.console.pages.asking import ROWS, catalog_of
from metastore.console.visit import Visit
from metastore.idl import CompactionType
from metastore.rules.transactions.compactions import SERVERS_OWN, STATE_TEXTS, TYPE_NUMBERS, WORKING
from metastore.service.operations.browsing import QueueEntry

LETTERS = {text: letter for letter, text in STATE_TEXTS.items()}
StateName = Literal[
    "", "initiated", "working", "ready for cleaning", "failed", "succeeded", "did not initiate", "refused", "aborted"
]  # fmt: skip
FROM_THE_END = 2**62


@dataclass(frozen=True, slots=True)
class Compaction:
    """An entry of the queue or its history; times in milliseconds."""

    id: int
    catalog: str
    database: str
    table: str
    partition: str | None
    type: str
    state: str
    pool: str | None
    enqueued: int
    started: int | None
    heartbeat: int | None
    ended: int | None
    next_attempt: int | None
    """When the cleaner tries again."""
    retries: int
    initiator: str | None
    worker: str | None
    job: str | None
    """The job of the worker; for a server's own worker, its progress."""
    transaction: int | None
    highest_write_id: int | None
    error: str | None

    ends_when_aborted: bool
    """Whether it is worked on by a server's own worker."""

    @property
    def object(self) -> str:
        """The compacted object, as one text."""
        return ".".join(part for part in (self.database, self.table, self.partition) if part)


def compaction_of(entry: QueueEntry) -> Compaction:
    """Return an entry as pages show it."""
    return Compaction(
        id=entry.id,
        catalog=entry.catalog,
        database=entry.database,
        table=entry.table,
        partition=entry.partition,
        type=CompactionType._VALUES_TO_NAMES[TYPE_NUMBERS[entry.type]].lower().replace("_", " "),  # noqa: SLF001  # no public name
        state=STATE_TEXTS.get(entry.state, entry.state),
        pool=entry.pool,
        enqueued=entry.enqueued,
        started=entry.started,
        heartbeat=entry.heartbeat,
        ended=entry.ended,
        next_attempt=entry.retry_after,
        retries=entry.retries,
        initiator=entry.initiator,
        worker=entry.worker,
        job=entry.hadoop_job,
        transaction=entry.transaction,
        highest_write_id=entry.highest_write_id,
        error=entry.error,
        ends_when_aborted=entry.state == WORKING and entry.worker_version == SERVERS_OWN,
    )


@dataclass(frozen=True, slots=True)
class Compactions:
    """A page of compactions, the last first."""

    state: str
    catalog: str
    database: str
    table: str
    rows: list[Compaction]
    next: int | None


def compactions(
    visit: Visit, state: StateName = "", catalog: str = "", database: str = "", table: str = "", before: int = FROM_THE_END
) -> Compactions:
    """List the compaction queue and its history, the last first; in a state, of a database or of a table if one is given."""
    where = catalog_of(visit, catalog)
    given = {"state": LETTERS.get(state), "database": database or None, "table": table or None}
    filters = {name: value for name, value in given.items() if value is not None}
    if database:
        filters["catalog"] = where
    page = visit.run("show_compactions_page", filters=filters, before=before, most=ROWS)
    return Compactions(state, where, database, table, [compaction_of(entry) for entry in page.rows], page.next)


def compaction(visit: Visit, id: int) -> Compaction:  # noqa: A002  # the name in the path
    """Show a compaction: its worker, its error, and when it is tried again."""
    return compaction_of(visit.run("show_compaction", id=id))
