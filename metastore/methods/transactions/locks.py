"""Methods of locks."""

from __future__ import annotations

from typing import Any

from metastore.idl import ShowLocksResponse
from metastore.methods.forms.entry import Shadowed, changes, reads
from metastore.methods.forms.rules import MethodRule, found_by, needs
from metastore.methods.transactions import transaction_rules as rules
from metastore.service.call.context import Call
from metastore.service.transactions import locks


def _show_locks(call: Call, args: Any) -> ShowLocksResponse:
    request = args.rqst
    found = locks.show_locks(call, request.dbname, request.tablename, request.partname, request.txnid or 0)
    return ShowLocksResponse(locks=found)


METHODS = (
    changes(
        "lock",
        lambda call, args: locks.lock(call, args.rqst),
        needs(
            found_by("any privilege to read, the operation's to write; CREATE on the database of a missing object", rules.locks_objects),
            rules.own_transactions(lambda args: [args.rqst.txnid]),
            operation="LOCKTABLE",
            fill=rules.as_caller,
        ),
    ),
    reads(
        "check_lock",
        lambda call, args: locks.check_lock(call, args.rqst.lockid),
        needs(rules.own_lock("rqst.lockid"), operation="LOCKTABLE"),
        shadowed=Shadowed.AFTER_CHANGES,
    ),
    changes(
        "unlock", lambda call, args: locks.unlock(call, args.rqst.lockid), needs(rules.own_lock("rqst.lockid"), operation="UNLOCKTABLE")
    ),
    reads(
        "heartbeat",
        lambda call, args: locks.heartbeat(call, args.ids.lockid or 0, args.ids.txnid or 0),
        needs(rules.own_lock("ids.lockid"), rules.own_transactions(lambda args: [args.ids.txnid]), operation="LOCKTABLE"),
        shadowed=Shadowed.AFTER_CHANGES,
    ),
    reads("show_locks", _show_locks, MethodRule(keep=rules.kept_locks, shows=rules.LOCKS_SHOWN)),
)
