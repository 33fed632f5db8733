"""Methods of the compaction queue."""

from __future__ import annotations

from typing import Any

from metastore.errors import MetaError
from metastore.idl import (
    AbortCompactResponse,
    GetLatestCommittedCompactionInfoResponse,
    OptionalCompactionInfoStruct,
    ShowCompactResponse,
)
from metastore.methods.forms.entry import changes, reads
from metastore.methods.forms.rules import ALTER, CREATE, SEE, MethodRule, found_by, needs, on_table
from metastore.methods.forms.unpack import required
from metastore.methods.transactions import transaction_rules as rules
from metastore.rules.transactions.compactions import REFUSED, STATE_TEXTS
from metastore.service.call.context import Call
from metastore.service.compaction import compaction_workers, compactions
from metastore.service.transactions import compactors


def _compact(call: Call, args: Any) -> None:
    answer = compactions.compact(call, required(call, args.rqst, "rqst"))
    if answer.state == STATE_TEXTS[REFUSED] and args.rqst.initiatorId is None:  # this method has no reply for the reason
        raise MetaError(answer.errormessage or "")


def _find_next(call: Call, args: Any) -> OptionalCompactionInfoStruct:
    return OptionalCompactionInfoStruct(ci=compaction_workers.find_next(call, args.workerId))


def _find_next2(call: Call, args: Any) -> OptionalCompactionInfoStruct:
    request = required(call, args.rqst, "rqst")
    return OptionalCompactionInfoStruct(ci=compaction_workers.find_next(call, request.workerId, request.workerVersion, request.poolName))


def _submit(call: Call, args: Any) -> bool:
    return compactions.submit_for_cleanup(call, required(call, args.o1, "o1"), args.o2 or 0, args.o3 or 0)


def _abort(call: Call, args: Any) -> AbortCompactResponse:
    request = required(call, args.rqst, "rqst")
    return AbortCompactResponse(abortedcompacts=compactors.abort_compactions(call, request.compactionIds or ()))


def _latest(call: Call, args: Any) -> GetLatestCommittedCompactionInfoResponse:
    found = compactions.latest_committed(call, required(call, args.rqst, "rqst"))
    return GetLatestCommittedCompactionInfoResponse(compactions=found)


METHODS = (
    changes("compact", _compact, needs(on_table(ALTER, "rqst.dbname", "rqst.tablename", otherwise=CREATE), operation="ALTERTABLE_COMPACT")),
    changes(
        "compact2",
        lambda call, args: compactions.compact(call, required(call, args.rqst, "rqst")),
        needs(on_table(ALTER, "rqst.dbname", "rqst.tablename", otherwise=CREATE), operation="ALTERTABLE_COMPACT"),
    ),
    reads(
        "show_compact",
        lambda call, args: ShowCompactResponse(compacts=compactions.show(call, required(call, args.rqst, "rqst"))),
        MethodRule(keep=rules.kept_compactions, shows=rules.LOCKS_SHOWN, operation="SHOW_COMPACTIONS"),
    ),
    changes("find_next_compact", _find_next, rules.WORKER),
    changes("find_next_compact2", _find_next2, rules.WORKER),
    changes(
        "update_compactor_state",
        lambda call, args: compaction_workers.update_state(call, required(call, args.cr, "cr"), args.txn_id or 0),
        rules.WORKER,
    ),
    changes("set_hadoop_jobid", lambda call, args: compaction_workers.set_job(call, args.cq_id or 0, args.jobId), rules.WORKER),
    changes("mark_compacted", lambda call, args: compaction_workers.mark_compacted(call, required(call, args.cr, "cr")), rules.WORKER),
    changes("mark_cleaned", lambda call, args: compaction_workers.mark_cleaned(call, required(call, args.cr, "cr")), rules.WORKER),
    changes("mark_failed", lambda call, args: compaction_workers.mark_failed(call, required(call, args.cr, "cr")), rules.WORKER),
    changes("mark_refused", lambda call, args: compaction_workers.mark_refused(call, required(call, args.cr, "cr")), rules.WORKER),
    changes("submit_for_cleanup", _submit, rules.WORKER),
    changes(
        "abort_Compactions", _abort, needs(found_by("ownership or ALTER on the tables", rules.of_compactions), operation="ABORT_COMPACTION")
    ),
    reads("get_latest_committed_compaction_info", _latest, needs(on_table(SEE, "rqst.dbname", "rqst.tablename"))),
    reads(
        "find_columns_with_stats",
        lambda call, args: compaction_workers.columns_with_statistics(call, required(call, args.cr, "cr")),
        rules.WORKER,
    ),
    changes(
        "update_compaction_metrics_data",
        lambda call, args: compaction_workers.update_metrics(call, required(call, args.data, "data")),
        rules.WORKER,
    ),
    changes(
        "remove_compaction_metrics_data",
        lambda call, args: compaction_workers.remove_metrics(call, required(call, args.request, "request")),
        rules.WORKER,
    ),
)
