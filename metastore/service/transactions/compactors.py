"""End the transactions of compaction workers that are to do no more: their entry was aborted, or they have died."""

from __future__ import annotations

from collections.abc import Sequence

from metastore import log
from metastore.idl import AbortCompactionResponseElement
from metastore.service.call.context import Call
from metastore.service.compaction import compaction_workers, compactions
from metastore.service.transactions.transactions import abort_transactions, get_open_transactions_info


def abort_compactions(call: Call, keys: Sequence[int]) -> dict[int, AbortCompactionResponseElement]:
    """Take entries off the queue, with the transactions of servers' own workers on them; return the outcome of each."""
    answers, transactions = compactions.abort(call, keys)
    if transactions:
        abort_transactions(call, transactions)
    return answers


def bury(call: Call, worker: str, reason: str) -> None:
    """Abort the transactions of a worker of this server that has died, and put its entry back.

    The agent of these transactions is the worker's name. By it, a transaction that no entry names yet is also found.
    """
    opened = [each.id for each in get_open_transactions_info(call).open_txns if each.agentInfo == worker]
    if opened:
        abort_transactions(call, opened)
    for entry in compaction_workers.take_from(call.metastore, worker, reason):
        text = "the worker of a compaction died"
        log.get("metastore.compactor").error(
            text, id=entry.id, object=str(entry.object), worker=worker, deaths=entry.retries + 1, reason=reason
        )
