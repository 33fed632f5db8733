"""Operators' actions on the console: each first shows its effect, and then runs a method of the interface.

Rights are the method's: a user who may call it over Thrift may use it here. Nothing here decides that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from metastore.console.formats import link
from metastore.console.pages.asking import catalog_of, locks, on_wire
from metastore.console.pages.compactions import compaction
from metastore.console.visit import Visit
from metastore.console.waits import holders
from metastore.errors import InvalidOperation
from metastore.idl import AbortCompactionRequest, AbortTxnRequest, CompactionRequest, CompactionType, UnlockRequest

KINDS = {"major": CompactionType.MAJOR, "minor": CompactionType.MINOR, "rebalance": CompactionType.REBALANCE}
Kind = Literal["major", "minor", "rebalance"]


@dataclass(frozen=True, slots=True)
class ActionPlan:
    """The effect of an action, for the page that asks for a confirmation."""

    question: str
    consequences: list[str]


@dataclass(frozen=True, slots=True)
class ActionResult:
    """The result of an action, and where to look now."""

    text: str
    path: str


@dataclass(frozen=True, slots=True)
class Action:
    """An action: its name in the path, the text of its button, and its two steps, which take the same parameters."""

    name: str
    button: str
    plan: Callable[..., ActionPlan]
    run: Callable[..., ActionResult]


def _plan_abort(visit: Visit, id: int) -> ActionPlan:  # noqa: A002  # the name of the parameter
    found = holders(locks(visit)).get(f"transaction-{id}")
    consequences = ["Its writes are discarded, and its client's next call fails.", "Its locks are released."]
    if found is not None and found.holds_up:
        consequences.append(
            f"Transactions and locks that wait for it, directly or through others, and can continue: {len(found.holds_up)}."
        )
    return ActionPlan(f"Abort transaction {id}?", consequences)


def _abort(visit: Visit, id: int) -> ActionResult:  # noqa: A002
    visit.run("abort_txn", rqst=AbortTxnRequest(txnid=id))
    return ActionResult(f"Transaction {id} is aborted.", f"/ui/transactions/{id}")


def _plan_release(visit: Visit, id: int) -> ActionPlan:  # noqa: A002
    found = [each for each in locks(visit) if each.id == id]
    consequences = [f"It is on {each.object} ({each.type}, {each.state})." for each in found[:10]]
    consequences.append("Its client is not notified before its next call, and may continue without the lock.")
    return ActionPlan(f"Release lock {id}?", consequences)


def _release(visit: Visit, id: int) -> ActionResult:  # noqa: A002
    visit.run("unlock", rqst=UnlockRequest(lockid=id))
    return ActionResult(f"Lock {id} is released.", "/ui/locks")


def _plan_compact(visit: Visit, database: str, table: str, catalog: str = "", partition: str = "", kind: Kind = "major") -> ActionPlan:
    name = ".".join(part for part in (database, table, partition) if part)
    what = {
        "major": "A worker rewrites all its rows into one base.",
        "minor": "A worker joins its deltas; its base stays.",
        "rebalance": "A worker spreads its rows evenly over its buckets.",
    }
    return ActionPlan(f"Queue a {kind} compaction of {name}?", [what[kind], "Readers and writers continue meanwhile."])


def _compact(visit: Visit, database: str, table: str, catalog: str = "", partition: str = "", kind: Kind = "major") -> ActionResult:
    where = on_wire(visit, catalog_of(visit, catalog), database)
    request = CompactionRequest(dbname=where, tablename=table, partitionname=partition or None, type=KINDS[kind], initiatorId="console")
    answer: Any = visit.run("compact2", rqst=request)
    if not answer.accepted:
        raise InvalidOperation(answer.errormessage or f"The compaction of {database}.{table} was not accepted")
    return ActionResult(f"Compaction {answer.id} is queued.", f"/ui/compactions/{answer.id}")


def _plan_cancel(visit: Visit, id: int) -> ActionPlan:  # noqa: A002
    found = compaction(visit, id)
    which = f"It is {found.state}. It can be taken off while it waits for a worker, or while a process of a server runs it."
    return ActionPlan(f"Take compaction {id} of {found.object} off the queue?", [which])


def _cancel(visit: Visit, id: int) -> ActionResult:  # noqa: A002
    answer: Any = visit.run("abort_Compactions", rqst=AbortCompactionRequest(compactionIds=[id]))
    aborted = answer.abortedcompacts[id]
    if aborted.status != "Success":
        raise InvalidOperation(f"Compaction {id}: {aborted.message}")
    return ActionResult(f"Compaction {id} is off the queue.", f"/ui/compactions/{id}")


ACTIONS: dict[str, Action] = {
    each.name: each
    for each in (
        Action("abort-transaction", "Abort transaction", _plan_abort, _abort),
        Action("release-lock", "Release lock", _plan_release, _release),
        Action("compact", "Queue compaction", _plan_compact, _compact),
        Action("cancel-compaction", "Take off the queue", _plan_cancel, _cancel),
    )
}


def path_of(name: str, **parameters: object) -> str:
    """Return the path of the page that asks for the confirmation of an action."""
    return link(f"/ui/actions/{name}", **parameters)
