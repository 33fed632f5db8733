"""Methods of locks."""

from __future__ import annotations

from typing import Any

from metastore.idl import ShowLocksResponse
from metastore.methods.forms.entry import Handler
from metastore.service.call.context import Call
from metastore.service.transactions import locks


def _show_locks(call: Call, args: Any) -> ShowLocksResponse:
    request = args.rqst
    found = locks.show_locks(call, request.dbname, request.tablename, request.partname, request.txnid or 0)
    return ShowLocksResponse(locks=found)


METHODS: dict[str, Handler] = {
    "lock": lambda call, args: locks.lock(call, args.rqst),
    "check_lock": lambda call, args: locks.check_lock(call, args.rqst.lockid),
    "unlock": lambda call, args: locks.unlock(call, args.rqst.lockid),
    "heartbeat": lambda call, args: locks.heartbeat(call, args.ids.lockid or 0, args.ids.txnid or 0),
    "show_locks": _show_locks,
}
