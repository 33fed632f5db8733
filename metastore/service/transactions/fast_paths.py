"""Try calls on transactions in one round trip to the database, and keep the hints by which a fast path is chosen.

Each `try_*` function does the whole call, with its row in the notification log, and returns the result. If it returns None, nothing is
changed, and the caller takes the portable way. No other module uses the hints, or decides which listeners allow a fast path. A
transactional listener beside the notification log needs a session: with one, all calls but locks take the portable way. The statements are
in `store.fast_paths`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from metastore.idl import CommitTxnRequest, TxnType
from metastore.listeners.events import AbortTransactions, AllocateWriteIds, CommitTransaction, Event, OpenTransactions
from metastore.listeners.notifications.packing import EVENTS
from metastore.rules.transactions.transactions import ROW_CHANGES, WITHOUT_CONFLICTS, Intent
from metastore.service.call.clock import now_ms
from metastore.service.call.context import Call
from metastore.store import fast_paths
from metastore.store.core.caches import QuietQueue
from metastore.store.fast_paths import FIRST, LAST, WRITE_ID, Ended, LockAttempt
from metastore.store.operations.notifications import LogRow
from metastore.store.transactions.locks import Component, KnownWriteId, NewLock, reach
from metastore.store.transactions.transactions import RANGES, WRITE_IDS, Who
from metastore.store.transactions.write_ids import TableKey, is_range

MAX_ABORTED = EVENTS
"""Transactions that are aborted in one round trip: the log has them in one row."""
MAX_ALLOCATED = 1000
"""Transactions that get write ids in one round trip: the message of the log holds them all."""
MAX_NOTED_WRITE_IDS = 10
"""Largest batch whose write ids are remembered."""


def try_open(call: Call, count: int, kind: int, who: Who) -> list[int] | None:
    """Open transactions; return their ids ascending."""
    if not call.listeners.only_log:
        return None
    ends = [FIRST, LAST][:count]
    event = _row(call, kind, OpenTransactions(client=call.info, transactions=ends, type=kind))
    return fast_paths.of(call.database).try_open(call.database, count, kind, who, now_ms(), call.config.txn_max_open, event)


def opened(call: Call, transactions: Sequence[int], kind: int) -> None:
    """Note that the client opened transactions."""
    call.client.hints.opened(transactions, kind)


def try_commit(call: Call, request: CommitTxnRequest) -> Ended | None:
    """Commit an open transaction."""
    if request.replPolicy or request.keyValue or request.replLastIdInfo or not call.listeners.only_log:
        return None
    key, hint = request.txnid, call.client.hints.of(request.txnid).summary()
    if hint.row_changes and (hint.intent is None or hint.type in WITHOUT_CONFLICTS):
        return None
    event = _row(call, hint.type, CommitTransaction(client=call.info, transaction=key, type=TxnType.DEFAULT))
    checks_conflicts = not request.exclWriteEnabled
    return fast_paths.of(call.database).try_commit(call.database, key, hint, now_ms(), event, checks_conflicts=checks_conflicts)


def tables_with_row_changes(call: Call, transaction: int) -> frozenset[TableKey]:
    """Return the tables whose rows the client means to update or delete: a commit has to take its turn in them."""
    return call.client.hints.of(transaction).row_changes


def try_abort(call: Call, keys: Sequence[int]) -> list[int] | None:
    """Abort open transactions that wrote to no object, ids ascending: all of them or none. Return the ids."""
    if not 0 < len(keys) <= MAX_ABORTED or not call.listeners.only_log:
        return None
    hint = call.client.hints.of(keys[0]).summary()
    event = _row(call, hint.type if len(keys) == 1 else TxnType.DEFAULT, AbortTransactions(client=call.info, transactions=keys))
    return fast_paths.of(call.database).try_abort(call.database, keys, hint, now_ms(), event)


def ended(call: Call, transaction: int) -> None:
    """Note that a transaction has ended."""
    call.client.hints.ended(transaction)


def try_allocate(call: Call, key: TableKey, transactions: Sequence[int]) -> dict[int, int] | None:
    """Give open transactions, ids ascending, their first write ids in a table; return them by transaction."""
    count, hints = len(transactions), call.client.hints
    is_one = count == 1
    if not call.listeners.only_log or count > MAX_ALLOCATED or not (is_one or is_range(transactions)):
        return None
    hint = hints.find(transactions[0])
    if is_one and hint is not None and hint.holds & WRITE_IDS:
        return None
    event = AllocateWriteIds(
        client=call.info,
        catalog=key.catalog,
        database=key.database,
        table=key.table,
        transactions=transactions,
        write_ids=range(WRITE_ID, WRITE_ID + count),
    )
    in_batch = hint is None or bool(hint.holds & RANGES)
    row = call.listeners.log_row(event)
    first = fast_paths.of(call.database).try_allocate(call.database, key, transactions, row, in_batch=in_batch)
    return None if first is None else dict(zip(transactions, range(first, first + count), strict=True))


def allocated(call: Call, key: TableKey, write_ids: Mapping[int, int], seen: QuietQueue | None) -> None:
    """Note write ids that transactions have in a table, and the state of its database's lock queue (`seen`) before the request."""
    for transaction, number in write_ids.items():
        hint = call.client.hints.find(transaction)
        if hint is not None:
            hint.holds |= WRITE_IDS
            if len(write_ids) <= MAX_NOTED_WRITE_IDS:
                hint.write_ids[key] = KnownWriteId(number, seen)


def try_lock(call: Call, lock: NewLock, parts: Sequence[Component], intents: Sequence[Intent], types: Collection[int]) -> int | None:
    """Add an acquired lock, with its transaction's intents, if no lock of these types is in the way; return its id."""
    known = call.client.hints.of(lock.transaction_id).write_ids if intents else {}
    return fast_paths.of(call.database).try_lock(call.database, LockAttempt(lock, parts, intents, reach(parts, types), known))


def locked(call: Call, transaction: int, bits: int, intents: Sequence[Intent]) -> None:
    """Note that a transaction has a lock, and its intents."""
    hint = call.client.hints.of(transaction)
    hint.holds |= bits
    hint.intents += intents
    hint.row_changes |= {TableKey.of(each) for each in intents if each.operation in ROW_CHANGES}


def note_holds(call: Call, transaction: int, bits: int) -> None:
    """Note that there are rows of a transaction elsewhere (bits of `store.transactions`)."""
    call.client.hints.of(transaction).holds |= bits


def partitions_named(call: Call, transaction: int, bits: int, table: TableKey, intents: Sequence[Intent]) -> None:
    """Note the partitions of a table that a transaction means to write, in place of the table as a whole."""
    hint = call.client.hints.of(transaction)
    hint.intents = [each for each in hint.intents if TableKey.of(each) != table or each.partition is not None]
    locked(call, transaction, bits, intents)


def _row(call: Call, kind: int, event: Event) -> LogRow | None:
    """Return the row of an event in the log, None for read-only transactions."""
    return None if kind == TxnType.READ_ONLY else call.listeners.log_row(event)
