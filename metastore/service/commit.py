"""Commits of transactions. The first to commit wins: of two that changed one object at the same time the later one is aborted.

Source: Hive 4's CommitTxnFunction. `docs/transactions.md` has the order in which rows are locked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from metastore.errors import MetaError, TransactionAborted
from metastore.idl import CommitTxnKeyValue, CommitTxnRequest, TxnType
from metastore.listeners.events import AbortTransactions, CommitCompaction, CommitTransaction, Event
from metastore.rules.compactions import TYPE_NUMBERS
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
from metastore.service.transactions import ended_error, is_replayed, tell_aborted
from metastore.store import at_once, compactions, components, counters, tables, transactions, write_ids
from metastore.store.answer import Answer
from metastore.store.database import Session
from metastore.store.drivers import Row
from metastore.store.transactions import ABORTED, COMMITTED, Transaction
from metastore.store.write_ids import Key

KEY_PREFIX = "_meta"
"""How the name of a table parameter begins that a commit may set."""


def commit_transaction(call: Call, request: CommitTxnRequest) -> None:
    """Commit a transaction; one that is committed already stays so. NoSuchTransaction; TransactionAborted, also for a lost conflict."""
    key, listeners = request.txnid, call.listeners
    replayed = is_replayed(request.replPolicy, request.txn_type)
    guess = None if replayed else call.client.work_in(key).changes

    def work(session: Session) -> tuple[int, int] | TransactionAborted | None:
        if request.replLastIdInfo is not None:
            replication.note_last_id(call, session, request.replLastIdInfo)
        parameters = _held_parameters(session, request) if request.keyValue is not None else None
        target = transactions.targets(session, request.replPolicy or "", [key]).get(key) if replayed else key
        if target is None:
            return None
        answer = transactions.lock_later(session, target)
        turn = _ask_turn(session, target, guess, judges=not request.exclWriteEnabled) if guess else None
        intents = _intents(components.of(session, target) if turn is None else turn.intents.rows)
        found = transactions.locked(answer)
        if found is None or found.state == ABORTED:
            raise ended_error(target, found, session)
        if found.state == COMMITTED:
            return None
        lost = _commit(call, session, found, intents, request, turn, replayed=replayed)
        if lost is not None:
            return lost
        if parameters is not None and request.keyValue is not None:
            tables.set_parameters(session, request.keyValue.tableId, parameters)
        return found.id, found.type

    done = _commit_at_once(call, request) or call.database.write(work)
    call.client.works.pop(key, None)
    if isinstance(done, TransactionAborted):
        if listeners.post:
            listeners.after(AbortTransactions(client=call.info, transactions=[key]), None)
        raise done
    if done is not None and listeners.post:
        listeners.after(CommitTransaction(client=call.info, transaction=done[0], type=done[1]), None)


def _commit_at_once(call: Call, request: CommitTxnRequest) -> tuple[int, int] | None:
    """Commit an open transaction in one round trip; return its id and type, None where that can not be done, or where it may lose."""
    key, listeners, work = request.txnid, call.listeners, call.client.work_in(request.txnid)
    if request.replPolicy or request.keyValue or request.replLastIdInfo or not listeners.only_log:
        return None
    once, intent = at_once.of(call.database), work.only_intent
    changes = bool(work.changes) if intent is None else intent.operation in CHANGES
    if changes and (not once.judges or intent is None or work.type in WITHOUT_CONFLICTS):
        return None
    if once.most_ended:
        told = listeners.log_row(CommitTransaction(client=call.info, transaction=key, type=TxnType.DEFAULT))
        if changes and intent is not None:
            return once.commit_if_first(call.database, key, work.guess, intent, now_ms(), told, judges=not request.exclWriteEnabled)
        return once.commit(call.database, key, work.guess, INSERT, intent, now_ms(), told)
    if listeners.transactional or not call.database.change(lambda session: transactions.end_free(session, key, COMMITTED, now_ms())):
        return None
    return key, TxnType.DEFAULT if request.txn_type is None else request.txn_type


def _committed(call: Call, session: Session, found: Transaction) -> list[Event]:
    """Return what a commit tells: of the transaction, and of the compaction that a worker did in it."""
    told: list[Event] = [CommitTransaction(client=call.info, transaction=found.id, type=found.type)]
    entry = compactions.of_transaction(session, found.id) if found.type == TxnType.COMPACTION else None
    if entry is not None:
        told.append(
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
    return told


def _commit(
    call: Call,
    session: Session,
    found: Transaction,
    intents: Sequence[Intent],
    request: CommitTxnRequest,
    turn: _Turn | None,
    *,
    replayed: bool,
) -> TransactionAborted | None:
    """Commit a locked open transaction that means to write `intents`, or abort it and return why."""
    now = now_ms()
    commit_id = None
    if not replayed and found.type not in WITHOUT_CONFLICTS and _changes(intents):
        commit_id, intents, committed = _turn(session, found.id, intents, turn, judges=not request.exclWriteEnabled)
        lost = conflict(found.id, intents, committed)
        if lost is not None:
            transactions.end(session, [found], ABORTED, now)
            tell_aborted(call, session, [found])
            return TransactionAborted(conflict_text(found.id, commit_id, *lost))
        once = at_once.of(call.database)
        if once.commits_changes and call.listeners.only_log and not found.holds & ~at_once.PLAIN and not request.replPolicy:
            told = call.listeners.log_row(CommitTransaction(client=call.info, transaction=found.id, type=found.type))
            once.commit_change(session, found.id, commit_id, INSERT, now, told)
            return None
        write_ids.note_changes(session, {Key.of(each) for each in _changes(intents) if each.partition is None}, commit_id)
    operations = {each.operation for each in intents}
    if COMPACTION in operations:
        components.delete(session, found.id, COMPACTION)
    if operations - {COMPACTION}:
        components.complete(session, found.id, CHANGES, commit_id, now)
    if replayed:
        written = [
            Intent(call.config.default_catalog, info.database, info.table, info.partition, UPDATE, info.writeId)
            for info in request.writeEventInfos or ()
        ]
        if written:
            components.insert_completed(session, found.id, written, now)
        transactions.forget_target(session, request.replPolicy or "", request.txnid)
    transactions.end(session, [found], COMMITTED, now, commit_id)
    if call.listeners.transactional and (replayed or request.replPolicy is None):
        call.listeners.within(_committed(call, session, found), session)
    return None


def _intents(rows: Sequence[Row]) -> list[Intent]:
    return [Intent(*row) for row in rows]


def _changes(intents: Sequence[Intent]) -> list[Intent]:
    return [each for each in intents if each.operation in CHANGES]


class _Turn(NamedTuple):
    """What is asked for together, that others who change or rename the same tables wait and that tells whom the change meets."""

    tables: frozenset[Key]
    held: Answer
    mark: Answer
    intents: Answer
    committed: Answer | None


def _ask_turn(session: Session, transaction: int, tables: frozenset[Key], *, judges: bool) -> _Turn:
    return _Turn(
        tables,
        write_ids.hold(session, tables),
        counters.share(session, counters.TRANSACTION),
        components.take(session, transaction),
        components.writes_since(session, [key[1:] for key in tables], transaction) if judges else None,
    )


def _turn(
    session: Session, transaction: int, intents: Sequence[Intent], turn: _Turn | None, *, judges: bool
) -> tuple[int, Sequence[Intent], list[Write]]:
    """Keep others who change the same tables waiting; return the commit id, what is written, and what was committed since it began.

    What is written is read anew with each turn, as a table may have got another name while it was waited for. A `turn` that was asked for
    already serves if it is for all the tables. Without `judges` nobody looks for what was committed.
    """
    while True:
        tables = frozenset(Key.of(each) for each in _changes(intents))
        if turn is not None and tables <= turn.tables and not write_ids.make_missing(session, tables, turn.held):
            return counters.last(turn.mark), intents, _writes(turn.committed)
        turn = _ask_turn(session, transaction, tables, judges=judges)
        intents = _intents(turn.intents.rows)


def _writes(committed: Answer | None) -> list[Write]:
    return [] if committed is None else [Write(*row) for row in committed.rows]


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


def latest_in_conflict(call: Call, key: int) -> int:
    """Return the highest committed transaction that changed an object which an open one means to change too; 0 for none."""

    def work(session: Session) -> int:
        changes = _changes(_intents(components.of(session, key)))
        if not changes:
            return 0
        tables = {(each.database, each.table or "") for each in changes}
        committed = _writes(components.writes_since(session, tables, key))
        return max((each.transaction for each in committed if conflict(key, changes, [each]) is not None), default=0)

    return call.database.read(work)
