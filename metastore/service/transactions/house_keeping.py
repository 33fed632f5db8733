"""End transactions and locks without a heartbeat, and remove the rows of transactions that nobody needs any more.

Each function may run in several servers at once; none waits for a client. `docs/transactions-inside.md` explains which rows are kept and
for how long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import structlog

from metastore.idl import TxnType
from metastore.listeners.events import AbortTransactions
from metastore.service.call.clock import now_ms
from metastore.service.call.context import Call, Client
from metastore.service.transactions.transactions import abort
from metastore.store.core import counters
from metastore.store.core.database import Session
from metastore.store.transactions import house_keeping as rows
from metastore.store.transactions import locks, rebuilds, transactions
from metastore.store.transactions.locks import Held
from metastore.store.transactions.transactions import OPEN, StoredTransaction

if TYPE_CHECKING:
    from metastore.config import Config
    from metastore.service.call.context import Metastore

log = structlog.get_logger()
T = TypeVar("T")

BATCH = 1000
"""Most transactions or locks that end in one database transaction, and rows that one removes."""
MAX_RANKED_COMPONENTS = 100 * BATCH
"""Components that are found at a time: all have to be ranked for it."""


class LockHolder(NamedTuple):
    """A lock, and its transaction or 0."""

    lock: int
    transaction: int


def late_holders(config: Config, found: Iterable[Held], now: int) -> set[LockHolder]:
    """Return the locks without a heartbeat for too long."""
    return {
        LockHolder(held.id, held.transaction)
        for held in found
        if (held.transaction_heartbeat or 0 if held.transaction else held.heartbeat) < since(config, now, held.transaction_type)
    }


def since(config: Config, now: int, kind: int | None) -> int:
    """Return the time in milliseconds before which the last heartbeat of a transaction of a type, or of a lock, is too old."""
    timeout = config.repl_txn_timeout if kind == TxnType.REPL_CREATED else config.txn_timeout
    return now - int(timeout * 1000)


def give_up(metastore: Metastore, holders: Iterable[LockHolder]) -> None:
    """Abort the transactions and remove the locks of holders that still have no recent heartbeat."""
    found = list(holders)
    abort_late(metastore, {each.transaction for each in found if each.transaction})
    keys = [each.lock for each in found if not each.transaction]
    if keys:
        metastore.database.write(lambda session: locks.expire(session, keys, since(metastore.config, now_ms(), None)))


def abort_late(metastore: Metastore, keys: Iterable[int]) -> list[int]:
    """Abort the transactions that are open and still without a heartbeat; return their ids."""
    wanted = sorted(keys)
    call = Call(metastore, Client("", user="metastore"), "house_keeping")

    def work(session: Session) -> list[int]:
        now = now_ms()

        def is_late(each: StoredTransaction) -> bool:
            return each.state == OPEN and each.heartbeat < since(metastore.config, now, each.type)

        late = [each for each in transactions.lock_many(session, wanted)() if is_late(each)]
        abort(call, session, late)
        return [each.id for each in late]

    aborted = metastore.database.write(work) if wanted else []
    if aborted and metastore.listeners.post:
        metastore.listeners.after(AbortTransactions(client=call.info, transactions=aborted), None)
    return aborted


def abort_timed_out(metastore: Metastore) -> int:
    """Abort all open transactions without a heartbeat for `txn_timeout`, or `repl_txn_timeout`; return their number."""
    config, database, count = metastore.config, metastore.database, 0
    while True:
        now = now_ms()
        oldest = since(config, now, None), since(config, now, TxnType.REPL_CREATED)
        keys = database.read(lambda session, oldest=oldest: transactions.timed_out(session, *oldest, most=BATCH))  # type: ignore[misc]
        if not keys:
            return count
        count += len(abort_late(metastore, keys))


def expire_locks(metastore: Metastore) -> int:
    """Remove all locks without a heartbeat for `txn_timeout`, and locks of ended transactions; return their number."""
    database, count = metastore.database, 0
    while True:
        oldest = since(metastore.config, now_ms(), None)
        keys = database.read(lambda session, oldest=oldest: locks.expired(session, oldest, BATCH))  # type: ignore[misc]  # bound now
        if not keys:
            break
        count += database.write(lambda session, keys=keys, oldest=oldest: locks.expire(session, keys, oldest))  # type: ignore[misc]
    while keys := database.read(lambda session: locks.orphans(session, BATCH)):
        count += database.write(lambda session, keys=keys: locks.expire(session, keys, now_ms() + 1))  # type: ignore[misc]
    return count


def keep_house(metastore: Metastore, _last_run: int | None = None) -> None:
    """Run all clean-ups of the transaction housekeeper."""
    counts = {"timed out transactions": abort_timed_out(metastore), "expired locks": expire_locks(metastore), **delete_ended(metastore)}
    removed = {name: count for name, count in counts.items() if count}
    if removed:
        log.info("house keeping", **{name.replace(" ", "_"): count for name, count in removed.items()})


def delete_ended(metastore: Metastore) -> dict[str, int]:
    """Remove rows that no open transaction, no compaction and no late retry of a client needs; return the number of each kind.

    Ended transactions stay for `txn_timeout`: a client that asks again gets the same answer. Transactions with writes stay until every open
    transaction sees their writes, and aborted ones until the cleaner has removed their files.
    """
    database = metastore.database
    before = since(metastore.config, now_ms(), None)

    def batches(find: Callable[[Session], list[T]], remove: Callable[[Session, list[T]], object]) -> int:
        count = 0
        while found := database.read(find):
            for start in range(0, len(found), BATCH):
                part = found[start : start + BATCH]
                database.write(lambda session, part=part: remove(session, part))  # type: ignore[misc]  # bound now
            count += len(found)
        return count

    def mark(session: Session, keys: list[int]) -> None:
        rows.mark(session, keys, counters.value(session, counters.TRANSACTION))

    batches(lambda session: rows.unmarked(session, BATCH), mark)
    min_open = database.read(transactions.min_open)
    counts = {
        "committed transactions": batches(
            lambda session: rows.committed_before(session, before, min_open, BATCH), rows.delete_transactions
        ),
        "aborted transactions": batches(lambda session: rows.empty_aborted(session, before, BATCH), rows.delete_transactions),
        "completed components": batches(lambda session: rows.superseded(session, min_open, MAX_RANKED_COMPONENTS), rows.delete_components),
        "rebuilds": database.autocommit(lambda session: rebuilds.expire(session, before)),
    }
    needed = database.read(lambda session: rows.lowest_needed(session, min_open))
    low = min_open if needed is None else min(needed, min_open)
    counts["write ids"] = batches(
        lambda session: rows.free_write_ids(session, low, BATCH), lambda session, found: rows.delete_write_ids(session, low, found)
    )
    return counts
