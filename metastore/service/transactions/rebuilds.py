"""Rebuilds of materialized views, by one transaction at a time, and the changes of the source tables since the last one.

Source: Hive's TxnHandler (lockMaterializationRebuild) and GetMaterializationInvalidationInfoFunction.
"""

from __future__ import annotations

import json

from metastore.errors import MetaError
from metastore.idl import CreationMetadata, LockResponse, LockState, Materialization, UpdateTransactionalStatsRequest
from metastore.rules.transactions.snapshots import NEVER, Snapshot, TableSnapshots, of_table_reply, parse_transactions, parse_write_ids
from metastore.rules.transactions.transactions import ROW_CHANGES
from metastore.service.call.clock import now_ms
from metastore.service.call.context import Call
from metastore.service.call.names import table_name
from metastore.service.transactions.transactions import ended_error
from metastore.service.transactions.write_ids import get_valid_write_ids, key_of
from metastore.store.catalog.tables import view_sources
from metastore.store.core.database import Session
from metastore.store.transactions import rebuilds, transactions
from metastore.store.transactions.transactions import REBUILD

RUNNING = frozenset("iwr")
"""States of compactions that have not ended; a letter of rules/transactions/compactions.py."""


def lock_rebuild(call: Call, database: str, table: str, transaction: int) -> LockResponse:
    """Let an open transaction rebuild a view: acquired, or not acquired while another does. MetaError when it is not open."""
    name = table_name(database, table, None, call.config.default_catalog)

    def work(session: Session) -> bool:
        now = now_ms()
        if not transactions.add_holds(session, transaction, REBUILD, now)():
            raise MetaError(ended_error(transaction, transactions.find(session, transaction), session).message)
        rebuilds.expire_one(session, name.database, name.table, now - int(call.config.txn_timeout * 1000))
        if rebuilds.find(session, name.database, name.table) is not None:
            return False
        rebuilds.insert(session, name.database, name.table, transaction, now)
        return True

    acquired = call.database.write(work)
    return LockResponse(lockid=transaction, state=LockState.ACQUIRED if acquired else LockState.NOT_ACQUIRED)


def heartbeat_rebuild(call: Call, database: str, table: str, transaction: int) -> bool:
    """Keep a rebuild alive; return whether the transaction does it."""
    name = table_name(database, table, None, call.config.default_catalog)
    return call.database.autocommit(lambda session: rebuilds.heartbeat(session, name.database, name.table, transaction, now_ms()))


def invalidation_info(call: Call, metadata: CreationMetadata, valid_transactions: str) -> Materialization | None:
    """Return whether rows of a view's sources were updated or deleted, or compacted, since it was made.

    None when that is not known, so that the view is rebuilt as a whole. MetaError.
    """
    if not metadata.tablesUsed:
        return None
    made = _made_from(metadata.validTxnList or "")
    if made is None:
        return None
    current = parse_transactions(valid_transactions)
    names = sorted(metadata.tablesUsed)
    replies = {each.fullTableName: of_table_reply(each) for each in get_valid_write_ids(call, names, valid_transactions)}
    then: dict[tuple[str, str, str], Snapshot] = {}
    for name in names:
        seen = made.tables.get(name)
        if seen is None or seen.min_open != replies[name].min_open:
            return None
        then[key_of(call, name)] = seen
    keys = [key_of(call, name) for name in names]

    def work(session: Session) -> Materialization:
        changed = any(
            key in then and current.is_valid(transaction) and not then[key].is_valid(NEVER if write_id is None else write_id)
            for key, transaction, write_id in rebuilds.committed(session, keys, ROW_CHANGES)
        )
        compacted = any(
            key in then and (state in RUNNING or (highest is not None and not then[key].is_valid(highest)))
            for key, state, highest in rebuilds.compacted(session, keys)
        )
        return Materialization(sourceTablesUpdateDeleteModified=changed, sourceTablesCompacted=compacted)

    return call.database.read(work)


def _made_from(text: str) -> TableSnapshots | None:
    """Return the snapshot that a view was made of: as Hive 3 writes it, or in the JSON of Hive 4; None for one of Iceberg tables."""
    if text.startswith("{"):
        try:
            values = json.loads(text)
        except ValueError as error:
            raise MetaError(f"validTxnList of the view is not JSON: {error}") from error
        if values.get("tableSnapshots"):
            return None
        text = values.get("validTxnList") or ""
    return parse_write_ids(text) if text else None


def add_changed_rows(call: Call, request: UpdateTransactionalStatsRequest) -> None:
    """Note the numbers of rows that a transaction inserts, updates and deletes in a table, for the materialized views made from it.

    Hive reports every insert. If that fails, it takes its statistics for useless.
    """
    counts = (request.insertCount or 0, request.updatedCount or 0, request.deletedCount or 0)
    if any(counts) and call.database.read(view_sources.has_views):
        call.database.write(lambda session: view_sources.add_changed_rows(session, request.tableId, counts))
