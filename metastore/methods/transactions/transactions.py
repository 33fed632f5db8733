"""Methods of transactions and write ids."""

from __future__ import annotations

from typing import Any

from metastore.idl import (
    AllocateTableWriteIdsResponse,
    GetOpenTxnsResponse,
    GetValidWriteIdsResponse,
    HeartbeatTxnRangeResponse,
    MaxAllocatedTableWriteIdResponse,
    OpenTxnsResponse,
    ReplayedTxnsForPolicyResult,
)
from metastore.methods.forms.entry import Handler
from metastore.methods.forms.unpack import required
from metastore.service.call.context import Call
from metastore.service.transactions import rebuilds, replication, transactions, write_ids
from metastore.service.transactions.commit import commit_transaction, latest_in_conflict


def _get_open_txns_req(call: Call, args: Any) -> GetOpenTxnsResponse:
    return transactions.get_open_transactions(call, args.getOpenTxnsRequest.excludeTxnTypes or ())


def _heartbeat_txn_range(call: Call, args: Any) -> HeartbeatTxnRangeResponse:
    low, high = required(call, args.txns.min, "txns.min"), required(call, args.txns.max, "txns.max")
    return transactions.heartbeat_range(call, low, high)


def _abort_txns(call: Call, args: Any) -> None:
    transactions.abort_transactions(call, args.rqst.txn_ids or ())


def _allocate_table_write_ids(call: Call, args: Any) -> AllocateTableWriteIdsResponse:
    found = write_ids.allocate_write_ids(call, args.rqst)
    return AllocateTableWriteIdsResponse(txnToWriteIds=[*found.items()])  # type: ignore[list-item]  # rows stand for structs, see wire/codec


def _get_valid_write_ids(call: Call, args: Any) -> GetValidWriteIdsResponse:
    request = args.rqst
    found = write_ids.get_valid_write_ids(call, request.fullTableNames or (), request.validTxnList, request.writeId)
    return GetValidWriteIdsResponse(tblValidWriteIds=found)


def _get_max_allocated_table_write_id(call: Call, args: Any) -> MaxAllocatedTableWriteIdResponse:
    found = write_ids.max_allocated_write_id(call, args.rqst.dbName, args.rqst.tableName)
    return MaxAllocatedTableWriteIdResponse(maxWriteId=found)


def _get_replayed_txns_for_policy(call: Call, args: Any) -> ReplayedTxnsForPolicyResult:
    found = replication.replayed_transactions(call, args.policyName)
    return ReplayedTxnsForPolicyResult(replTxnMapEntry={str(source): str(target) for source, target in found.items()})


METHODS: dict[str, Handler] = {
    "open_txns": lambda call, args: OpenTxnsResponse(txn_ids=transactions.open_transactions(call, args.rqst)),
    "commit_txn": lambda call, args: commit_transaction(call, args.rqst),
    "abort_txn": lambda call, args: transactions.abort_transaction(call, args.rqst),
    "abort_txns": _abort_txns,
    "heartbeat_txn_range": _heartbeat_txn_range,
    "get_open_txns": lambda call, args: transactions.get_open_transactions(call),
    "get_open_txns_req": _get_open_txns_req,
    "get_open_txns_info": lambda call, args: transactions.get_open_transactions_info(call),
    "get_latest_txnid_in_conflict": lambda call, args: latest_in_conflict(call, args.txnId),
    "seed_txn_id": lambda call, args: transactions.seed_transaction_id(
        call, required(call, required(call, args.rqst, "rqst").seedTxnId, "rqst.seedTxnId")
    ),
    "allocate_table_write_ids": _allocate_table_write_ids,
    "get_valid_write_ids": _get_valid_write_ids,
    "add_write_ids_to_min_history": lambda call, args: write_ids.add_to_history(call, args.txnId, args.writeIds or {}),
    "get_max_allocated_table_write_id": _get_max_allocated_table_write_id,
    "seed_write_id": lambda call, args: write_ids.seed_write_id(call, args.rqst.dbName, args.rqst.tableName, args.rqst.seedWriteId),
    "add_dynamic_partitions": lambda call, args: write_ids.add_dynamic_partitions(call, required(call, args.rqst, "rqst")),
    "update_transaction_statistics": lambda call, args: rebuilds.add_changed_rows(call, required(call, args.req, "req")),
    "repl_tbl_writeid_state": lambda call, args: replication.set_write_id_state(call, required(call, args.rqst, "rqst")),
    "get_replayed_txns_for_policy": _get_replayed_txns_for_policy,
    "get_lock_materialization_rebuild": lambda call, args: rebuilds.lock_rebuild(call, args.dbName, args.tableName, args.txnId),
    "heartbeat_lock_materialization_rebuild": lambda call, args: rebuilds.heartbeat_rebuild(call, args.dbName, args.tableName, args.txnId),
    "get_materialization_invalidation_info": lambda call, args: rebuilds.invalidation_info(
        call, required(call, args.creation_metadata, "creation_metadata"), args.validTxnList
    ),
}
