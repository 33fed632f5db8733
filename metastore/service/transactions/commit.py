"""Commits of transactions. The first to commit wins: of two that changed one object at the same time the later one is aborted.

Source: Hive 4's CommitTxnFunction. `docs/transactions-inside.md` has the order in which rows are locked.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from metastore.errors import MetaError, TransactionAborted
from metastore.idl import CommitTxnKeyValue, CommitTxnRequest, TxnType
from metastore.listeners.events import AbortTransactions, CommitCompaction, CommitTransaction, Event
from metastore.rules.transactions.compactions import TYPE_NUMBERS
from metastore.rules.transactions.transactions import (
    COMPACTION,
    ROW_CHANGES,
    UPDATE,
    WITHOUT_CONFLICTS,
    Intent,
    RowChange,
    conflict,
    conflict_text,
)
from metastore.service.call.clock import now_ms
from metastore.service.call.context import Call
from metastore.service.transactions import fast_paths, replication
from metastore.service.transactions.transactions import abort, ended_error, is_replayed
from metastore.store.catalog.tables import tables
from metastore.store.compaction import compactions
from metastore.store.core import counters
from metastore.store.core.database import Session
from metastore.store.drivers.answer import Answer, Later
from metastore.store.drivers.contract import Row
from metastore.store.fast_paths import Ended
from metastore.store.transactions import components, transactions, write_ids
from metastore.store.transactions.transactions import ABORTED, COMMITTED, OF_COMPACTIONS, StoredTransaction
from metastore.store.transactions.write_ids import TableKey

KEY_PREFIX = "_meta"
"""The beginning of the names of the table parameters that a commit may set."""


def commit_transaction(call: Call, request: CommitTxnRequest) -> None:
    """Commit a transaction; a committed one is left unchanged. NoSuchTransaction; TransactionAborted, also for a lost conflict."""
    key, listeners = request.txnid, call.listeners
    done = _Outcome(fast_paths.try_commit(call, request))
    if done.committed is None:
        done = call.database.write(lambda session: _commit(call, session, request))
    fast_paths.ended(call, key)
    if done.lost:
        if listeners.post:
            listeners.after(AbortTransactions(client=call.info, transactions=[key]), None)
        raise TransactionAborted(done.lost)
    if done.committed is not None and listeners.post:
        listeners.after(CommitTransaction(client=call.info, transaction=done.committed.id, type=done.committed.type), None)


class _Outcome(NamedTuple):
    """The outcome of a commit. Both fields are empty for a transaction that had ended before."""

    committed: Ended | None = None
    lost: str = ""
    """The reason for which the transaction is aborted instead."""


def _commit(call: Call, session: Session, request: CommitTxnRequest) -> _Outcome:
    """Commit a transaction on the portable way, or abort it."""
    if request.replLastIdInfo is not None:
        replication.note_last_id(call, session, request.replLastIdInfo)
    parameters = _locked_parameters(session, request) if request.keyValue is not None else None
    replayed = is_replayed(request.replPolicy, request.txn_type)
    key = _replaying(session, request) if replayed else request.txnid
    if key is None:
        return _Outcome()
    locked = transactions.lock(session, key)
    turn = None if replayed else _early_turn(call, session, request)
    intents = _intents(components.of(session, key) if turn is None else turn.intents.rows)
    found = locked()
    if found is None or found.state == ABORTED:
        raise ended_error(key, found, session)
    if found.state == COMMITTED:
        return _Outcome()
    commit_id = None
    if not replayed and found.type not in WITHOUT_CONFLICTS and _row_changes(intents):
        commit_id, intents, lost = _judged(session, request, intents, turn)
        if lost:
            abort(call, session, [found])
            return _Outcome(lost=lost)
    _write_commit(session, found, {each.operation for each in intents}, commit_id)
    if replayed:
        _write_replayed(call, session, found, request)
    if call.listeners.transactional and (replayed or request.replPolicy is None):
        call.listeners.within(_events(call, session, found), session)
    if parameters is not None and request.keyValue is not None:
        tables.set_parameters(session, request.keyValue.tableId, parameters)
    return _Outcome(Ended(found.id, found.type))


def _replaying(session: Session, request: CommitTxnRequest) -> int | None:
    """Return the transaction that replays the one of a request, which is named by its id at the source; None if it has ended."""
    return transactions.targets(session, request.replPolicy or "", [request.txnid]).get(request.txnid)


def _early_turn(call: Call, session: Session, request: CommitTxnRequest) -> _Turn | None:
    """Ask for the turn in the tables that the client is known to change, before the transaction's components are read."""
    known = fast_paths.tables_with_row_changes(call, request.txnid)
    return _ask_turn(session, request.txnid, known, checks_conflicts=not request.exclWriteEnabled) if known else None


def _judged(
    session: Session, request: CommitTxnRequest, intents: Sequence[Intent], turn: _Turn | None
) -> tuple[int, Sequence[Intent], str]:
    """Wait for the turn in the tables that a transaction changes; return its commit id, its writes, and the reason why it loses, or ""."""
    commit_id, intents, committed = _turn(session, request.txnid, intents, turn, checks_conflicts=not request.exclWriteEnabled)
    lost = conflict(request.txnid, intents, committed)
    if lost is not None:
        return commit_id, intents, conflict_text(request.txnid, commit_id, *lost)
    write_ids.note_changes(session, {TableKey.of(each) for each in _row_changes(intents) if each.partition is None}, commit_id)
    return commit_id, intents, ""


def _write_commit(session: Session, found: StoredTransaction, operations: Collection[str], commit_id: int | None) -> None:
    """Write that a locked transaction, which did these operations, is committed."""
    now = now_ms()
    if COMPACTION in operations:
        components.delete(session, found.id, COMPACTION)
    if set(operations) - {COMPACTION}:
        components.complete(session, found.id, ROW_CHANGES, commit_id, now)
    transactions.end(session, [found], COMMITTED, now, commit_id)
    if found.type in OF_COMPACTIONS:
        following = counters.share(session, counters.TRANSACTION)() + 1
        compactions.note_commit(session, found.id, following, now)


def _write_replayed(call: Call, session: Session, found: StoredTransaction, request: CommitTxnRequest) -> None:
    """Note the writes of a replayed transaction at its source, and that it is replayed no longer."""
    written = [
        Intent(call.config.default_catalog, info.database, info.table, info.partition, UPDATE, info.writeId)
        for info in request.writeEventInfos or ()
    ]
    if written:
        components.insert_completed(session, found.id, written, now_ms())
    transactions.delete_target(session, request.replPolicy or "", request.txnid)


def _events(call: Call, session: Session, found: StoredTransaction) -> list[Event]:
    """Return the events of a commit: of the transaction, and of the compaction that a worker did in it."""
    events: list[Event] = [CommitTransaction(client=call.info, transaction=found.id, type=found.type)]
    entry = compactions.of_transaction(session, found.id) if found.type in OF_COMPACTIONS - {TxnType.SOFT_DELETE} else None
    if entry is not None:
        events.append(
            CommitCompaction(
                client=call.info,
                transaction=found.id,
                compaction=entry.id,
                type=TYPE_NUMBERS[entry.type],
                catalog=entry.catalog,
                database=entry.database,
                table=entry.table,
                partition=entry.partition,
            )
        )
    return events


def _intents(rows: Sequence[Row]) -> Sequence[Intent]:
    return [Intent(*row) for row in rows]


def _row_changes(intents: Sequence[Intent]) -> list[Intent]:
    return [each for each in intents if each.operation in ROW_CHANGES]


class _Turn(NamedTuple):
    """The pending answers of one round trip: held counters, the commit id, intents, commits of others since the beginning."""

    tables: frozenset[TableKey]
    held: Answer
    mark: Later[int]
    intents: Answer
    committed: Answer | None


def _ask_turn(session: Session, transaction: int, tables: frozenset[TableKey], *, checks_conflicts: bool) -> _Turn:
    return _Turn(
        tables,
        write_ids.lock_counters(session, tables),
        counters.share(session, counters.TRANSACTION),
        components.take(session, transaction),
        components.writes_since(session, [key[1:] for key in tables], transaction) if checks_conflicts else None,
    )


def _turn(
    session: Session, transaction: int, intents: Sequence[Intent], turn: _Turn | None, *, checks_conflicts: bool
) -> tuple[int, Sequence[Intent], list[RowChange]]:
    """Make others that change the same tables wait; return the commit id, the writes, and the commits since the transaction began.

    The writes are read again with each turn, as a table may have got another name while it was waited for. An earlier `turn` is used if it
    covers all tables. Without `checks_conflicts` no other commits are read.
    """
    while True:
        tables = frozenset(TableKey.of(each) for each in _row_changes(intents))
        if turn is not None and tables <= turn.tables and not write_ids.make_missing(session, tables, turn.held):
            return turn.mark(), intents, _writes(turn.committed)
        turn = _ask_turn(session, transaction, tables, checks_conflicts=checks_conflicts)
        intents = _intents(turn.intents.rows)


def _writes(committed: Answer | None) -> list[RowChange]:
    return [] if committed is None else [RowChange(*row) for row in committed.rows]


def _locked_parameters(session: Session, request: CommitTxnRequest) -> dict[str, str]:
    """Lock the table whose parameter the commit sets; return its parameters as they will be. MetaError."""
    wanted: CommitTxnKeyValue = request.keyValue  # type: ignore[assignment]  # the caller looked
    where = f"commit of txnid:{request.txnid} can not set parameter {wanted.key} of the table with id {wanted.tableId}"
    if not (wanted.key or "").startswith(KEY_PREFIX):
        raise MetaError(f"{where}: key should start with {KEY_PREFIX}")
    parameters = tables.lock_parameters(session, wanted.tableId)
    if parameters is None or wanted.key not in parameters:
        raise MetaError(f"{where}: the table does not exist or has no such parameter; set it before")
    return {**parameters, wanted.key: wanted.value}


def latest_in_conflict(call: Call, key: int) -> int:
    """Return the highest committed transaction that changed an object which an open one means to change too; 0 for none."""

    def work(session: Session) -> int:
        changes = _row_changes(_intents(components.of(session, key)))
        if not changes:
            return 0
        tables = {(each.database, each.table or "") for each in changes}
        committed = _writes(components.writes_since(session, tables, key))
        return max((each.transaction for each in committed if conflict(key, changes, [each]) is not None), default=0)

    return call.database.read(work)
