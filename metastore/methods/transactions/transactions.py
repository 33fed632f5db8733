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
from metastore.methods.forms.entry import Shadowed, changes, reads
from metastore.methods.forms.rules import ADMIN, CREATE, OPEN, SEE, WRITES, MethodRule, found_by, get, needs, on_table
from metastore.methods.forms.unpack import required
from metastore.methods.interface import variants
from metastore.methods.transactions import transaction_rules as rules
from metastore.service.call.context import Call
from metastore.service.call.releases import Sign
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


METHODS = (
    changes(
        "open_txns",
        lambda call, args: OpenTxnsResponse(txn_ids=transactions.open_transactions(call, args.rqst)),
        needs(rules.replays("rqst", "replPolicy", "replSrcTxnIds"), fill=rules.as_caller),
    ),
    changes(
        "commit_txn",
        lambda call, args: commit_transaction(call, args.rqst),
        needs(
            rules.own_transactions(lambda args: [args.rqst.txnid]),
            rules.replays("rqst", "replPolicy", "replLastIdInfo", "writeEventInfos"),
            found_by("a right to change the table whose parameter it sets", rules.sets_parameter),
        ),
    ),
    changes(
        "abort_txn",
        lambda call, args: transactions.abort_transaction(call, args.rqst),
        needs(rules.own_transactions(lambda args: [args.rqst.txnid]), rules.replays("rqst", "replPolicy")),
    ),
    changes("abort_txns", _abort_txns, needs(rules.own_transactions(lambda args: args.rqst.txn_ids or ()))),
    reads(
        "heartbeat_txn_range",
        _heartbeat_txn_range,
        needs(found_by("one's own transactions", rules.own_range)),
        shadowed=Shadowed.AFTER_CHANGES,
    ),
    reads("get_open_txns", lambda call, args: transactions.get_open_transactions(call), OPEN, old_result=variants.OPEN_TXNS_OF_2_3),
    reads("get_open_txns_req", _get_open_txns_req, OPEN, sign=Sign.SINCE_4),
    reads(
        "get_open_txns_info",
        lambda call, args: transactions.get_open_transactions_info(call),
        MethodRule(keep=rules.kept_transactions, shows="one's own transactions"),
    ),
    reads(
        "get_latest_txnid_in_conflict",
        lambda call, args: latest_in_conflict(call, args.txnId),
        needs(rules.own_transactions(lambda args: [args.txnId])),
        shadowed=Shadowed.AFTER_CHANGES,
    ),
    changes(
        "seed_txn_id",
        lambda call, args: transactions.seed_transaction_id(
            call, required(call, required(call, args.rqst, "rqst").seedTxnId, "rqst.seedTxnId")
        ),
        ADMIN,
    ),
    changes(
        "allocate_table_write_ids",
        _allocate_table_write_ids,
        needs(
            on_table(WRITES, "rqst.dbName", "rqst.tableName", otherwise=CREATE),
            rules.own_transactions(lambda args: args.rqst.txnIds or ()),
            rules.replays("rqst", "replPolicy", "srcTxnToWriteIdList"),
        ),
    ),
    reads("get_valid_write_ids", _get_valid_write_ids, needs(rules.full_names("rqst.fullTableNames", (SEE,)))),
    changes(
        "add_write_ids_to_min_history",
        lambda call, args: write_ids.add_to_history(call, args.txnId, args.writeIds or {}),
        needs(rules.own_transactions(lambda args: [args.txnId]), rules.full_names("writeIds", (SEE,), CREATE)),
    ),
    reads("get_max_allocated_table_write_id", _get_max_allocated_table_write_id, needs(on_table(SEE, "rqst.dbName", "rqst.tableName"))),
    changes(
        "seed_write_id",
        lambda call, args: write_ids.seed_write_id(call, args.rqst.dbName, args.rqst.tableName, args.rqst.seedWriteId),
        ADMIN,
    ),
    changes(
        "add_dynamic_partitions",
        lambda call, args: write_ids.add_dynamic_partitions(call, required(call, args.rqst, "rqst")),
        needs(
            rules.own_transactions(lambda args: [get(args, "rqst.txnid")]),
            on_table(WRITES, "rqst.dbname", "rqst.tablename", otherwise=CREATE),
        ),
        old_request=variants.PARTITIONS_OF_2_3,
    ),
    changes(
        "update_transaction_statistics",
        lambda call, args: rebuilds.add_changed_rows(call, required(call, args.req, "req")),
        needs(found_by("INSERT, UPDATE, DELETE or ALTER on the table", rules.counts_rows)),
    ),
    changes("repl_tbl_writeid_state", lambda call, args: replication.set_write_id_state(call, required(call, args.rqst, "rqst")), ADMIN),
    reads("get_replayed_txns_for_policy", _get_replayed_txns_for_policy, ADMIN),
    changes(
        "get_lock_materialization_rebuild",
        lambda call, args: rebuilds.lock_rebuild(call, args.dbName, args.tableName, args.txnId),
        rules.REBUILDS,
    ),
    reads(
        "heartbeat_lock_materialization_rebuild",
        lambda call, args: rebuilds.heartbeat_rebuild(call, args.dbName, args.tableName, args.txnId),
        rules.REBUILDS,
        shadowed=Shadowed.AFTER_CHANGES,
    ),
    reads(
        "get_materialization_invalidation_info",
        lambda call, args: rebuilds.invalidation_info(call, required(call, args.creation_metadata, "creation_metadata"), args.validTxnList),
        needs(found_by("any privilege on its source tables", rules.table_used)),
    ),
)
