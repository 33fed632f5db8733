"""Transactions: open, keep alive, abort, show which are open. Their commit is in `service.transactions.commit`.

Their writes are noted by `service.transactions.locks` and `service.transactions.write_ids`. Sources: Hive 4's OpenTxnsFunction,
AbortTxnsFunction. `docs/transactions-inside.md` has the order in which rows are locked.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from metastore.errors import MetaError, MetastoreError, NoSuchTransaction, TransactionAborted
from metastore.idl import (
    AbortTxnRequest,
    GetOpenTxnsInfoResponse,
    GetOpenTxnsResponse,
    HeartbeatTxnRangeResponse,
    OpenTxnRequest,
    TxnInfo,
    TxnState,
    TxnType,
)
from metastore.listeners.events import AbortTransactions, OpenTransactions
from metastore.rules.transactions.snapshots import aborted_bits
from metastore.service.call.clock import now_ms
from metastore.service.call.context import Call
from metastore.service.transactions import fast_paths
from metastore.store.core import counters
from metastore.store.core.database import Session
from metastore.store.transactions import components, transactions, write_ids
from metastore.store.transactions.transactions import ABORTED, COMMITTED, COMPONENTS, OPEN, RANGES, WROTE, StoredTransaction

LARGEST_RANGE = 1_000_000
"""Most ids that one heartbeat may name."""


def open_transactions(call: Call, request: OpenTxnRequest) -> list[int]:
    """Open transactions, at most `txn_max_open_batch`; return their ids ascending. MetaError for less than one, or for too many open.

    With a policy and the ids that the transactions have at their source, existing ones of them are returned.
    """
    sources = list(request.replSrcTxnIds or ()) if request.replPolicy is not None else []
    count = len(sources) or request.num_txns or 0
    if count <= 0:
        raise MetaError(f"Invalid input for number of txns: {count}; ask for one at least")
    count = min(count, call.config.txn_max_open_batch)
    kind = TxnType.REPL_CREATED if sources else request.txn_type or TxnType.DEFAULT
    who = (request.user, request.hostname, request.agentInfo)
    opened = None if sources else fast_paths.try_open(call, count, kind, who)
    if opened is None:
        opened = call.database.write(lambda session: _open(call, session, count, kind, who, request.replPolicy or "", sources))
    fast_paths.opened(call, opened, kind)
    if call.listeners.post:
        call.listeners.after(OpenTransactions(client=call.info, transactions=opened, type=kind), None)
    return opened


def _open(call: Call, session: Session, count: int, kind: int, who: transactions.Who, policy: str, sources: Sequence[int]) -> list[int]:
    """Open transactions on the portable way; existing replicas of the given ones stay."""
    if sources and (known := transactions.targets(session, policy, sources)):
        return sorted(known.values())
    taken = transactions.take_ids(session, count)
    lowest = transactions.lowest_open(session)
    opened = list(taken())
    if lowest is not None and opened[-1] - lowest >= call.config.txn_max_open:
        _check_number(session, count, call.config.txn_max_open)
    transactions.insert(session, opened, OPEN, kind, who, now_ms())
    if sources:
        transactions.insert_targets(session, policy, zip(sources, opened, strict=False))
    if call.listeners.transactional:
        call.listeners.within([OpenTransactions(client=call.info, transactions=opened, type=kind)], session)
    return opened


def _check_number(session: Session, more: int, most: int) -> None:
    """Raise MetaError when there would be more open transactions than allowed."""
    count = transactions.open_count(session)
    if count + more > most:
        raise MetaError(
            f"Maximum allowed number of open transactions ({most}) has been reached: {count} are open. "
            "End some, or raise the setting txn_max_open"
        )


def is_replayed(policy: str | None, kind: int | None) -> bool:
    """Return whether a request names a transaction by its id at the source; clients before Hive 4 send no type."""
    return policy is not None and kind in {None, TxnType.REPL_CREATED}


def abort_transaction(call: Call, request: AbortTxnRequest) -> None:
    """Abort a transaction; an aborted one is left unchanged. NoSuchTransaction for one that is unknown or committed."""
    key = request.txnid
    policy = request.replPolicy or "" if is_replayed(request.replPolicy, request.txn_type) else None
    aborted = fast_paths.try_abort(call, [key]) if policy is None else None
    if aborted is None:
        aborted = call.database.write(lambda session: _abort_one(call, session, key, policy))
    fast_paths.ended(call, key)
    if aborted and call.listeners.post:
        call.listeners.after(AbortTransactions(client=call.info, transactions=aborted), None)


def _abort_one(call: Call, session: Session, key: int, policy: str | None) -> list[int]:
    """Abort a transaction, with a policy the one that has the id `key` at its source; return its id, none if it was aborted before."""
    target = key if policy is None else transactions.targets(session, policy, [key]).get(key)
    if target is None:
        return []
    found = transactions.lock(session, target)()
    if found is not None and found.state == ABORTED:
        return []
    if found is None or found.state == COMMITTED:
        raise ended_error(target, found, session)
    abort(call, session, [found])
    if policy is not None:
        transactions.delete_target(session, policy, key)
    return [target]


def abort_transactions(call: Call, keys: Sequence[int]) -> list[int]:
    """Abort the transactions that are open and leave the others alone; return the ids of the aborted, ascending."""

    def work(session: Session) -> list[int]:
        found = [each for each in transactions.lock_many(session, keys)() if each.state == OPEN]
        abort(call, session, found)
        return [each.id for each in found]

    wanted = sorted(set(keys))
    aborted = fast_paths.try_abort(call, wanted)
    if aborted is None:
        aborted = call.database.write(work)
    if aborted and call.listeners.post:
        call.listeners.after(AbortTransactions(client=call.info, transactions=aborted), None)
    return aborted


def abort(call: Call, session: Session, found: Sequence[StoredTransaction]) -> None:
    """Abort locked open transactions and notify the transactional listeners. Their files are left for the abort cleaner."""
    if found:
        transactions.end(session, found, ABORTED, now_ms())
        notify_aborted(call, session, found)


def notify_aborted(call: Call, session: Session, found: Sequence[StoredTransaction]) -> None:
    """Notify the transactional listeners of transactions that are aborted."""
    keys = [each.id for each in found if each.type != TxnType.READ_ONLY]
    if keys and call.listeners.transactional:
        writers = [each.id for each in found if each.holds & COMPONENTS]
        written = components.databases(session, writers) if writers else {}
        call.listeners.within([AbortTransactions(client=call.info, transactions=keys, databases=written)], session)


def ended_error(key: int, found: StoredTransaction | None, session: Session) -> MetastoreError:
    """Return the error for a transaction that should be open and is not.

    Hive's own clients compare the texts; its servers forget a committed transaction that wrote nothing.
    """
    if found is None or (found.state == COMMITTED and not _wrote(session, found)):
        return NoSuchTransaction(f"No such transaction txnid:{key}")
    if found.state == ABORTED:
        return TransactionAborted(f"Transaction txnid:{key} already aborted")
    return NoSuchTransaction(f"Transaction txnid:{key} is already committed.")


def _wrote(session: Session, found: StoredTransaction) -> bool:
    """Return whether a transaction has intents or write ids."""
    return bool(found.holds & WROTE & ~RANGES) or (bool(found.holds & RANGES) and write_ids.is_in_range(session, found.id))


def heartbeat_transaction(call: Call, key: int) -> None:
    """Keep a transaction alive. NoSuchTransaction, TransactionAborted."""
    if not call.database.autocommit(lambda session: transactions.heartbeat(session, key, now_ms())):
        raise call.database.read(lambda session: ended_error(key, transactions.find(session, key), session))


def heartbeat_range(call: Call, low: int, high: int) -> HeartbeatTxnRangeResponse:
    """Keep all transactions from `low` to `high`, both included, alive; return the aborted, and the unknown or committed ones."""
    if high - low >= LARGEST_RANGE:
        raise MetaError(f"heartbeat for the transactions {low} to {high}: at most {LARGEST_RANGE} at a time")
    beaten = call.database.autocommit(lambda session: transactions.heartbeat_range(session, low, high, now_ms()))
    aborted: list[int] = []
    gone: list[int] = []
    if beaten < high - low + 1:
        states = call.database.read(lambda session: transactions.states(session, low, high))
        for key in range(low, high + 1):
            state = states.get(key)
            if state == ABORTED:
                aborted.append(key)
            elif state != OPEN:
                gone.append(key)
    return HeartbeatTxnRangeResponse(aborted=aborted, nosuch=gone)


def get_open_transactions(call: Call, without: Collection[int] = ()) -> GetOpenTxnsResponse:
    """Return the transactions that a reader that begins now does not see, except the types `without`."""
    found = call.database.read(lambda session: transactions.exceptions(session, without))
    ids = sorted(found.open + found.aborted)
    bits = aborted_bits(ids, frozenset(found.aborted)) if found.aborted else b""
    return GetOpenTxnsResponse(txn_high_water_mark=found.mark, open_txns=ids, min_open_txn=found.min_open, abortedBits=bits)


def get_open_transactions_info(call: Call) -> GetOpenTxnsInfoResponse:
    """Return the transactions that are open or aborted with their owners, ascending by id; times in milliseconds."""
    mark, found = call.database.read(transactions.shown)
    return GetOpenTxnsInfoResponse(
        txn_high_water_mark=mark,
        open_txns=[
            TxnInfo(
                id=each.id,
                state=TxnState.OPEN if each.state == OPEN else TxnState.ABORTED,
                user=each.user,
                hostname=each.host,
                agentInfo=each.agent,
                startedTime=each.started,
                lastHeartbeatTime=each.heartbeat,
            )
            for each in found
        ],
    )


def seed_transaction_id(call: Call, seed: int) -> None:
    """Let the next transaction have the id `seed`. MetaError when it is not above all ids."""
    if not call.database.write(lambda session: counters.raise_to(session, counters.TRANSACTION, seed - 1)):
        mark = call.database.read(lambda session: counters.value(session, counters.TRANSACTION))
        if mark != seed - 1:
            raise MetaError(f"Invalid txnId seed {seed}, the highWaterMark is {mark}: seed a higher one")
