"""Look after the compaction queue: take entries back from silent workers, remove old history. Never ends a pending entry."""

from __future__ import annotations

import structlog

from metastore.rules.transactions.compactions import (
    ABORTED,
    DID_NOT_INITIATE,
    ENDED,
    FAILED,
    INITIATED,
    REFUSED,
    SUCCEEDED,
    WORKING,
    Past,
    surplus,
)
from metastore.service.call.clock import now_ms
from metastore.service.call.context import Metastore
from metastore.store.compaction import compactions

log = structlog.get_logger()


def housekeep(metastore: Metastore, since: int | None = None) -> None:
    """Requeue entries of workers without a heartbeat for `compactor_worker_timeout`, and remove history that is kept no longer.

    Only objects with an entry that ended after `since`, in milliseconds, have their history looked at.
    """
    config, database = metastore.config, metastore.database
    now = now_ms()
    heard = now - int(config.compactor_worker_timeout * 1000)
    if database.read(lambda session: compactions.is_silent(session, WORKING, heard)):
        count = database.write(lambda session: compactions.revoke(session, WORKING, INITIATED, heard))
        log.warning("compactions of silent workers go back to the queue", number=count, setting="compactor_worker_timeout")
    keep = {
        SUCCEEDED: config.compactor_history_succeeded,
        FAILED: max(config.compactor_history_failed, config.compactor_failures),
        DID_NOT_INITIATE: config.compactor_history_did_not_initiate,
        REFUSED: config.compactor_history_refused,
        ABORTED: config.compactor_history_refused,
    }
    old = now - int(config.compactor_history_time * 1000)
    past = database.read(lambda session: compactions.history(session, ENDED, 0 if since is None else since))
    gone = surplus((Past(*row) for row in past), keep, old)
    if gone:
        database.write(lambda session: compactions.delete(session, gone))
