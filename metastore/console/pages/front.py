"""The front page: the health of the server, problems first."""

from __future__ import annotations

import time
from dataclasses import dataclass

from metastore.console import waits
from metastore.console.formats import duration, link
from metastore.console.pages.asking import locks
from metastore.console.pages.compactions import Compaction, compaction_of
from metastore.console.visit import CallCount, ServerState, Visit
from metastore.rules.transactions.compactions import FAILED
from metastore.service.operations.observations import Observation

LONG = 3600.0
"""Seconds after which an open transaction is shown as a problem."""
RECENT = 24 * 3600.0
"""Seconds for which a failed compaction is shown."""
MOST_CALLED = 10


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that an operator may want to do something about, and where to look at it."""

    text: str
    path: str
    urgent: bool


@dataclass(frozen=True, slots=True)
class Front:
    """The health of the server."""

    version: str
    problems: list[Problem]
    open_transactions: int | None
    """The number of open transactions; None, like the next fields, where the database could not be asked."""
    oldest_transaction: float | None
    """Age of the oldest open transaction, in seconds."""
    locks: dict[str, int] | None
    compactions: dict[str, int] | None
    objects: dict[str, int] | None
    last_event: int | None
    connections: int
    calls: int
    failed_calls: int
    most_called: list[CallCount]


def front(visit: Visit) -> Front:
    """Show the health of the server, problems first."""
    state: ServerState = visit.run("show_state", look=visit.look)
    seen = state.seen
    problems = [Problem("The database can not be asked: calls fail. The server's log has the reason.", "/ui/settings", urgent=True)]
    if seen is not None:
        problems = [*_blockers(visit), *_ages(seen), *_failures(visit), *_idle_jobs(seen)]
    return Front(
        version=visit.version,
        problems=problems,
        open_transactions=seen.open_transactions if seen else None,
        oldest_transaction=seen.oldest_transaction if seen else None,
        locks=seen.locks if seen else None,
        compactions={name: number for name, (number, _) in seen.compactions.items()} if seen else None,
        objects=seen.objects if seen else None,
        last_event=seen.last_event if seen else None,
        connections=state.connections,
        calls=sum(each.calls for each in state.calls),
        failed_calls=sum(each.failed for each in state.calls),
        most_called=sorted(state.calls, key=lambda each: -each.calls)[:MOST_CALLED],
    )


def _blockers(visit: Visit) -> list[Problem]:
    out = []
    for holder in waits.roots(waits.holders(locks(visit)))[:5]:
        who = "@".join(part for part in (holder.user, holder.host) if part)
        waiters = f"{len(holder.holds_up)} {'others' if len(holder.holds_up) > 1 else 'other'}"
        path = f"/ui/transactions/{holder.transaction}" if holder.transaction else f"/ui/locks/{holder.lock}"
        text = f"{holder.name} of {who} holds up {waiters} on {', '.join(holder.contended[:3])}"
        out.append(Problem(text, path, urgent=True))
    return out


def _ages(seen: Observation) -> list[Problem]:
    out = []
    if seen.oldest_transaction > LONG:
        text = f"A transaction has been open for {duration(seen.oldest_transaction)}: files that it may read are not cleaned"
        out.append(Problem(text, "/ui/transactions", urgent=False))
    path = link("/ui/compactions", state="initiated")
    return out + [Problem(text[0].upper() + text[1:], path, urgent=False) for text in seen.unattended]


def _failures(visit: Visit) -> list[Problem]:
    page = visit.run("show_compactions_page", filters={"state": FAILED}, before=2**62, most=3)
    found: list[Compaction] = [compaction_of(entry) for entry in page.rows]
    since = (time.time() - RECENT) * 1000
    return [
        Problem(_failure(each.object, each.id, each.error), f"/ui/compactions/{each.id}", urgent=False)
        for each in found
        if (each.ended or 0) > since
    ]


def _failure(name: str, key: int, error: str | None) -> str:
    return f"Compaction {key} of {name} failed: {(error or 'no reason given')[:200]}"


def _idle_jobs(seen: Observation) -> list[Problem]:
    return [
        Problem(f"No server runs the job {name}: it is switched off on every server, or no server is up", "/ui/jobs", urgent=False)
        for name, seconds in seen.leases.items()
        if not seconds
    ]
