"""Transactions: open, keep alive, commit, abort, show which are open. What they write is noted by `service.locks` and `service.write_ids`.

The first to commit wins: of two transactions that changed one object at the same time the later one is aborted. Sources: Hive 4's
OpenTxnsFunction, CommitTxnFunction, AbortTxnsFunction. `docs/transactions.md` has the order in which rows are locked.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from metastore.errors import MetaError, MetastoreError, NoSuchTransaction, TransactionAborted
from metastore.idl import (
    AbortTxnRequest,
    CommitTxnKeyValue,
    CommitTxnRequest,
    GetOpenTxnsInfoResponse,
    GetOpenTxnsResponse,
    HeartbeatTxnRangeResponse,
    OpenTxnRequest,
    TxnInfo,
    TxnState,
    TxnType,
)
from metastore.listeners.events import AbortTransactions, CommitCompaction, CommitTransaction, Event, OpenTransactions
from metastore.listeners.notifications.packing import EVENTS
from metastore.rules.compactions import TYPE_NUMBERS
from metastore.rules.snapshots import aborted_bits
from metastore.rules.transactions import (
    CHANGES,
    COMPACTION,
    INSERT,
    UPDATE,
    WITHOUT_CONFLICTS,
    Intent,
    Write,
    conflict,
    conflict_text,
)
from metastore.service import replication
from metastore.service.clock import now_ms
from metastore.service.context import Call
from metastore.store import at_once, compactions, components, counters, tables, transactions, write_ids
from metastore.store.answer import Answer
from metastore.store.database import Session
from metastore.store.transactions import ABORTED, COMMITTED, COMPONENTS, OPEN, WROTE, Transaction
from metastore.store.write_ids import Key

LARGEST_RANGE = 1_000_000
"""Most ids that one heartbeat may name."""

KEY_PREFIX = "_meta"
"""How the name of a table parameter begins that a commit may set."""


def open_transactions(call: Call, request: OpenTxnRequest) -> list[int]:
    """Open transactions, at most `txn_max_open_batch`; return their ids ascending. MetaError for less than one, or for too many open.

    With a policy and the ids that the transactions have at their source, those that are replicated already are returned.
    """
    sources = list(request.replSrcTxnIds or ()) if request.replPolicy is not None else []
    count = len(sources) or request.num_txns or 0
    if count <= 0:
        raise MetaError(f"Invalid input for number of txns: {count}; ask for one at least")
    count = min(count, call.config.txn_max_open_batch)
    kind = TxnType.REPL_CREATED if sources else request.txn_type or TxnType.DEFAULT
    who = (request.user, request.hostname, request.agentInfo)
    listeners, most = call.listeners, call.config.txn_max_open

    def work(session: Session) -> list[int]:
        if sources and (known := transactions.targets(session, request.replPolicy or "", sources)):
            return sorted(known.values())
        taken = transactions.take_ids(session, count)
        lowest = transactions.lowest_open(session)
        ids = transactions.taken_ids(taken, count)
        if lowest is not None and ids[-1] - lowest >= most:
            _check_number(session, len(ids), most)
        transactions.insert(session, ids, OPEN, kind, who, now_ms())
        opened = list(ids)
        if sources:
            transactions.insert_targets(session, request.replPolicy or "", zip(sources, opened, strict=False))
        if listeners.transactional:
            listeners.within([OpenTransactions(client=call.info, transactions=opened, type=kind)], session)
        return opened

    opened: list[int] = []
    if listeners.only_log and not sources and at_once.possible(call.database):
        told = None
        if kind != TxnType.READ_ONLY:
            told = listeners.log_row(OpenTransactions(client=call.info, transactions=[at_once.FIRST, at_once.LAST], type=kind))
        opened = call.database.change(
            lambda session: at_once.open_transactions(session, count, kind, who, now_ms(), most, told)
        )
    opened = opened or call.database.write(work)
    if listeners.post:
        listeners.after(OpenTransactions(client=call.info, transactions=opened, type=kind), None)
    return opened


def _check_number(session: Session, more: int, most: int) -> None:
    """Raise MetaError when there would be more open transactions than allowed."""
    count = transactions.open_count(session)
    if count + more > most:
        raise MetaError(
            f"Maximum allowed number of open transactions ({most}) has been reached: {count} are open. "
            "End some, or raise the setting txn_max_open"
        )


def commit_transaction(call: Call, request: CommitTxnRequest) -> None:
    """Commit a transaction; one that is committed already stays so. NoSuchTransaction; TransactionAborted, also for a lost conflict."""
    key, listeners = request.txnid, call.listeners
    replayed = _is_replayed(request.replPolicy, request.txn_type)
    changing, changed = call.client.changing
    guess = changed if changing == key and not replayed else None
    judges = not request.exclWriteEnabled

    def work(session: Session) -> tuple[int, int] | TransactionAborted | None:
        if request.replLastIdInfo is not None:
            replication.note_last_id(call, session, request.replLastIdInfo)
        parameters = _held_parameters(session, request) if request.keyValue is not None else None
        target = transactions.targets(session, request.replPolicy or "", [key]).get(key) if replayed else key
        if target is None:
            return None
        answer = transactions.lock_later(session, target)
        taken = components.take(session, target)
        turn = _ask_turn(session, target, guess, judges=judges) if guess else None
        intents = [Intent(*row) for row in taken.rows]
        found = transactions.locked(answer)
        if found is None or found.state == ABORTED:
            raise ended_error(target, found)
        if found.state == COMMITTED:
            return None
        lost = _commit(call, session, found, intents, request, turn, replayed=replayed)
        if lost is not None:
            return lost
        if parameters is not None and request.keyValue is not None:
            tables.set_parameters(session, request.keyValue.tableId, parameters)
        return found.id, found.type

    done = _commit_at_once(call, request) or call.database.write(work)
    if isinstance(done, TransactionAborted):
        if listeners.post:
            listeners.after(AbortTransactions(client=call.info, transactions=[key]), None)
        raise done
    if done is not None and listeners.post:
        listeners.after(CommitTransaction(client=call.info, transaction=done[0], type=done[1]), None)


def _commit_at_once(call: Call, request: CommitTxnRequest) -> tuple[int, int] | None:
    """Commit with one statement an open transaction that changed no row; return its id and type, None where that can not be done."""
    key, listeners = request.txnid, call.listeners
    if request.replPolicy or request.keyValue or request.replLastIdInfo or not listeners.only_log or call.client.changing[0] == key:
        return None
    if at_once.possible(call.database):
        told = listeners.log_row(CommitTransaction(client=call.info, transaction=key, type=TxnType.DEFAULT))
        return call.database.change(lambda session: at_once.commit(session, key, COMMITTED, INSERT, now_ms(), told))
    if listeners.transactional or not call.database.change(lambda session: transactions.end_free(session, key, COMMITTED, now_ms())):
        return None
    return key, TxnType.DEFAULT if request.txn_type is None else request.txn_type


def _committed(call: Call, session: Session, found: Transaction) -> list[Event]:
    """Return what a commit tells: of the transaction, and of the compaction that a worker did in it."""
    told: list[Event] = [CommitTransaction(client=call.info, transaction=found.id, type=found.type)]
    entry = compactions.of_transaction(session, found.id) if found.type == TxnType.COMPACTION else None
    if entry is not None:
        told.append(CommitCompaction(
            client=call.info, transaction=found.id, compaction=entry.id, type=TYPE_NUMBERS[entry.type], catalog=entry.catalog,
            database=entry.database, table=entry.table, partition=entry.partition,
        ))
    return told


def _is_replayed(policy: str | None, kind: int | None) -> bool:
    """Tell whether a request names a transaction by its id at the source; clients before Hive 4 send no type."""
    return policy is not None and kind in {None, TxnType.REPL_CREATED}


def _commit(
    call: Call, session: Session, found: Transaction, intents: Sequence[Intent], request: CommitTxnRequest, turn: _Turn | None,
    *, replayed: bool,
) -> TransactionAborted | None:
    """Commit a locked open transaction that means to write `intents`, or abort it and return why."""
    now = now_ms()
    commit_id = None
    changes = [] if replayed or found.type in WITHOUT_CONFLICTS else [each for each in intents if each.operation in CHANGES]
    if changes:
        commit_id, committed = _turn(session, found.id, changes, turn, judges=not request.exclWriteEnabled)
        lost = conflict(found.id, changes, committed)
        if lost is not None:
            transactions.end(session, [found], ABORTED, now)
            _tell_aborted(call, session, [found])
            return TransactionAborted(conflict_text(found.id, commit_id, *lost))
        if at_once.possible(call.database) and call.listeners.only_log and not found.holds & ~at_once.PLAIN and not request.replPolicy:
            told = call.listeners.log_row(CommitTransaction(client=call.info, transaction=found.id, type=found.type))
            at_once.commit_change(session, found.id, commit_id, COMMITTED, INSERT, now, told)
            return None
        writes = (Write(*each[:2], each.table or "", each.partition, found.id, commit_id, each.operation) for each in changes)
        components.insert_writes(session, dict.fromkeys(writes))
    if intents:
        kept = [each for each in intents if each.operation != COMPACTION]
        if kept:
            components.complete(session, found.id, dict.fromkeys(kept), CHANGES, now)
        components.delete(session, found.id)
    if replayed:
        written = [
            Intent(call.config.default_catalog, info.database, info.table, info.partition, UPDATE, info.writeId)
            for info in request.writeEventInfos or ()
        ]
        if written:
            components.complete(session, found.id, written, CHANGES, now)
        transactions.forget_target(session, request.replPolicy or "", request.txnid)
    transactions.end(session, [found], COMMITTED, now, commit_id)
    if call.listeners.transactional and (replayed or request.replPolicy is None):
        call.listeners.within(_committed(call, session, found), session)
    return None


class _Turn(NamedTuple):
    """What is asked for together, that others who change the same tables wait and that tells whom the change meets."""

    tables: frozenset[Key]
    held: Answer
    mark: Answer
    committed: Answer | None


def _ask_turn(session: Session, transaction: int, tables: frozenset[Key], *, judges: bool) -> _Turn:
    held = write_ids.hold(session, tables)
    mark = counters.share(session, counters.TRANSACTION)
    return _Turn(tables, held, mark, components.writes_since(session, [key[1:] for key in tables], transaction) if judges else None)


def _turn(
    session: Session, transaction: int, changes: Sequence[Intent], turn: _Turn | None, *, judges: bool
) -> tuple[int, list[Write]]:
    """Keep others who change the same tables waiting; return the commit id, and what was committed since the transaction began.

    A `turn` that was asked for already serves if it is for all the tables. Without `judges` nobody looks for what was committed.
    """
    tables = frozenset(Key.of(each) for each in changes)
    while True:
        if turn is None or not tables <= turn.tables:
            turn = _ask_turn(session, transaction, tables, judges=judges)
        committed = turn.committed.rows if turn.committed is not None else ()
        if not write_ids.make_missing(session, turn.tables, turn.held):
            return counters.last(turn.mark), [Write(*row) for row in committed]
        turn = None


def _held_parameters(session: Session, request: CommitTxnRequest) -> dict[str, str]:
    """Lock the table of which the commit sets a parameter; return its parameters as they will be. MetaError."""
    wanted: CommitTxnKeyValue = request.keyValue  # type: ignore[assignment]  # the caller looked
    where = f"commit of txnid:{request.txnid} can not set parameter {wanted.key} of the table with id {wanted.tableId}"
    if not (wanted.key or "").startswith(KEY_PREFIX):
        raise MetaError(f"{where}: key should start with {KEY_PREFIX}")
    parameters = tables.hold_parameters(session, wanted.tableId)
    if parameters is None or wanted.key not in parameters:
        raise MetaError(f"{where}: the table is not there or has no such parameter; set it before")
    return {**parameters, wanted.key: wanted.value}


def abort_transaction(call: Call, request: AbortTxnRequest) -> None:
    """Abort a transaction; one that is aborted already stays so. NoSuchTransaction for one that is unknown or committed."""
    key, listeners = request.txnid, call.listeners
    replayed = _is_replayed(request.replPolicy, request.txn_type)

    def work(session: Session) -> int | None:
        target = transactions.targets(session, request.replPolicy or "", [key]).get(key) if replayed else key
        if target is None:
            return None
        found = transactions.lock(session, target)
        if found is not None and found.state == ABORTED:
            return None
        if found is None or found.state == COMMITTED:
            raise ended_error(target, found)
        abort(call, session, [found])
        if replayed:
            transactions.forget_target(session, request.replPolicy or "", key)
        return target

    aborted = key if not replayed and _abort_at_once(call, key) else call.database.write(work)
    if aborted is not None and listeners.post:
        listeners.after(AbortTransactions(client=call.info, transactions=[aborted]), None)


def _abort_at_once(call: Call, key: int) -> bool:
    """Abort an open transaction that has no rows elsewhere with one statement; tell whether it was one."""
    listeners = call.listeners
    if at_once.possible(call.database) and listeners.only_log:
        told = listeners.log_row(AbortTransactions(client=call.info, transactions=[key]))
        return call.database.change(lambda session: at_once.abort(session, key, ABORTED, now_ms(), told)) is not None
    return not listeners.transactional and call.database.change(
        lambda session: transactions.end_free(session, key, ABORTED, now_ms())
    )


def _abort_all_at_once(call: Call, keys: Sequence[int]) -> bool:
    """Abort open transactions that have no rows elsewhere with one statement; tell whether all of them were such."""
    listeners = call.listeners
    if len(keys) == 1:
        return _abort_at_once(call, keys[0])
    if not 0 < len(keys) <= EVENTS or not listeners.only_log or not at_once.possible(call.database):
        return False
    told = listeners.log_row(AbortTransactions(client=call.info, transactions=keys))
    return call.database.change(lambda session: at_once.abort_all(session, keys, ABORTED, now_ms(), told))


def abort_transactions(call: Call, keys: Sequence[int]) -> list[int]:
    """Abort those of the transactions that are open and leave the others alone; return the ids of the aborted, ascending."""

    def work(session: Session) -> list[int]:
        found = [each for each in transactions.lock_many(session, keys) if each.state == OPEN]
        abort(call, session, found)
        return [each.id for each in found]

    wanted = sorted(set(keys))
    aborted = wanted if _abort_all_at_once(call, wanted) else call.database.write(work)
    if aborted and call.listeners.post:
        call.listeners.after(AbortTransactions(client=call.info, transactions=aborted), None)
    return aborted


def abort(call: Call, session: Session, found: Sequence[Transaction]) -> None:
    """Abort locked open transactions and tell the transactional listeners. What they wrote is left for the cleaner to find."""
    if found:
        transactions.end(session, found, ABORTED, now_ms())
        _tell_aborted(call, session, found)


def _tell_aborted(call: Call, session: Session, found: Sequence[Transaction]) -> None:
    keys = [each.id for each in found if each.type != TxnType.READ_ONLY]
    if keys and call.listeners.transactional:
        writers = [each.id for each in found if each.holds & COMPONENTS]
        written = components.databases(session, writers) if writers else {}
        call.listeners.within([AbortTransactions(client=call.info, transactions=keys, databases=written)], session)


def ended_error(key: int, found: Transaction | None) -> MetastoreError:
    """Return the error for a transaction that should be open and is not.

    Hive's own clients compare the texts; its servers forget a committed transaction that wrote nothing.
    """
    if found is None or (found.state == COMMITTED and not found.holds & WROTE):
        return NoSuchTransaction(f"No such transaction txnid:{key}")
    if found.state == ABORTED:
        return TransactionAborted(f"Transaction txnid:{key} already aborted")
    return NoSuchTransaction(f"Transaction txnid:{key} is already committed.")


def heartbeat_transaction(call: Call, key: int) -> None:
    """Keep a transaction alive. NoSuchTransaction, TransactionAborted."""
    if not call.database.change(lambda session: transactions.heartbeat(session, key, now_ms())):
        raise ended_error(key, call.database.read(lambda session: transactions.find(session, key)))


def heartbeat_range(call: Call, low: int, high: int) -> HeartbeatTxnRangeResponse:
    """Keep all transactions from `low` to `high`, both included, alive; tell which are aborted, and which unknown or committed."""
    if high - low >= LARGEST_RANGE:
        raise MetaError(f"heartbeat for the transactions {low} to {high}: at most {LARGEST_RANGE} at a time")
    beaten = call.database.change(lambda session: transactions.heartbeat_range(session, low, high, now_ms()))
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
    """Return which transactions a reader that begins now does not see; those of the types `without` are left out."""
    found = call.database.read(lambda session: transactions.exceptions(session, without))
    ids = sorted(found.open + found.aborted)
    bits = aborted_bits(ids, frozenset(found.aborted)) if found.aborted else b""
    return GetOpenTxnsResponse(txn_high_water_mark=found.mark, open_txns=ids, min_open_txn=found.min_open, abortedBits=bits)


def get_open_transactions_info(call: Call) -> GetOpenTxnsInfoResponse:
    """Return who opened the transactions that are open or aborted, ascending by id; times in milliseconds."""
    mark, found = call.database.read(transactions.shown)
    return GetOpenTxnsInfoResponse(txn_high_water_mark=mark, open_txns=[
        TxnInfo(
            id=each.id, state=TxnState.OPEN if each.state == OPEN else TxnState.ABORTED, user=each.user, hostname=each.host,
            agentInfo=each.agent, startedTime=each.started, lastHeartbeatTime=each.heartbeat,
        )
        for each in found
    ])


def latest_in_conflict(call: Call, key: int) -> int:
    """Return the highest committed transaction that changed an object which an open one means to change too; 0 for none."""

    def work(session: Session) -> int:
        changes = [each for each in (Intent(*row) for row in components.of(session, key)) if each.operation in CHANGES]
        if not changes:
            return 0
        tables = {(each.database, each.table or "") for each in changes}
        committed = [Write(*row) for row in components.writes_since(session, tables, key).rows]
        return max((each.transaction for each in committed if conflict(key, changes, [each]) is not None), default=0)

    return call.database.read(work)


def seed_transaction_id(call: Call, seed: int) -> None:
    """Let the next transaction have the id `seed`. MetaError when it is not above all ids."""
    if not call.database.write(lambda session: counters.raise_to(session, counters.TRANSACTION, seed - 1)):
        mark = call.database.read(lambda session: counters.value(session, counters.TRANSACTION))
        if mark != seed - 1:
            raise MetaError(f"Invalid txnId seed {seed}, the highWaterMark is {mark}: seed a higher one")


