"""Metrics of replication: the progress of Hive's scheduled dumps and loads. Source: Hive's ObjectStore and ReplicationMetricsMaintTask.

Nothing here looks into them. Times are in seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from metastore.errors import MetaError
from metastore.idl import GetReplicationMetricsRequest, ReplicationMetricList, ReplicationMetrics
from metastore.service.call.clock import now_s
from metastore.service.call.context import Call
from metastore.store.core.database import Session
from metastore.store.engines import replication_metrics as rows

if TYPE_CHECKING:
    from metastore.service.call.context import Metastore

_BATCH = 1000


def add(call: Call, metrics: ReplicationMetricList | None) -> None:
    """Store metrics. Metadata and progress of an execution that has some are replaced if they are sent. MetaError."""
    sent = None if metrics is None else metrics.replicationMetricList
    if sent is None:
        raise MetaError("The list of replication metrics is null: send one")
    for each in sent:
        if each is None or None in (each.scheduledExecutionId, each.policy, each.dumpExecutionId):
            raise MetaError("Replication metrics need scheduledExecutionId, policy and dumpExecutionId: send all three")
    now, ordered = now_s(), sorted(sent, key=lambda each: each.scheduledExecutionId)  # two calls lock in one order

    def work(session: Session) -> None:
        for each in ordered:
            _keep(session, each, now)

    call.database.write(work)


def _keep(session: Session, metrics: ReplicationMetrics, now: int) -> None:
    found = rows.lock(session, metrics.scheduledExecutionId)
    if found is None:
        rows.insert(session, metrics, now)
    else:
        metadata, progress = found
        rows.update(
            session, metrics.scheduledExecutionId, metrics.metadata or metadata, metrics.progress or progress, metrics.messageFormat
        )


def get(call: Call, request: GetReplicationMetricsRequest) -> ReplicationMetricList:
    """Return the metrics of a policy, the newest execution first, or of one execution; of one dump, if it is named too. MetaError."""
    policy, execution, dump = request.policy, request.scheduledExecutionId, request.dumpExecutionId
    if policy is not None:
        found = call.database.read(lambda session: rows.of_policy(session, policy))
    elif execution is not None:
        found = call.database.read(lambda session: rows.of_execution(session, execution))
    else:
        raise MetaError("Replication metrics are found by policy or scheduledExecutionId: set one of them")
    return ReplicationMetricList(replicationMetricList=[each for each in found if dump is None or each.dumpExecutionId == dump])


def delete_old(metastore: Metastore, _last_run: int | None = None) -> None:
    """Remove metrics that are older than `replication_metrics_age`: the periodic job."""
    database, before = metastore.database, now_s() - int(metastore.config.replication_metrics_age)
    while executions := database.read(lambda session: rows.old(session, before, _BATCH)):
        database.write(lambda session, executions=executions: rows.delete(session, executions))  # type: ignore[misc]  # bound now
