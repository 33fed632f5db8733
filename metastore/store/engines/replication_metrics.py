"""Rows of the metrics of replication, one for each execution of a scheduled query. One function per statement."""

from __future__ import annotations

import sqlalchemy as sa

from metastore.idl import ReplicationMetrics
from metastore.store.core.clauses import Among, bound
from metastore.store.core.database import Session
from metastore.store.schema.engines import replication_metrics

METRIC = replication_metrics.c
FIELDS = (METRIC.execution_id, METRIC.policy, METRIC.dump_execution_id, METRIC.metadata, METRIC.progress, METRIC.message_format)
LOCK = sa.select(METRIC.metadata, METRIC.progress).where(METRIC.execution_id == sa.bindparam("key")).with_for_update()
UPDATE = (
    sa.update(replication_metrics)
    .where(METRIC.execution_id == sa.bindparam("key"))
    .values(bound(("metadata", "progress", "message_format")))
)
ALL = sa.select(*FIELDS).order_by(METRIC.execution_id.desc())
BY_POLICY = ALL.where(METRIC.policy == sa.bindparam("key"))
BY_EXECUTION = ALL.where(METRIC.execution_id == sa.bindparam("key"))
OLD = (
    sa.select(METRIC.execution_id)
    .where(METRIC.start_time <= sa.bindparam("before"))
    .order_by(METRIC.start_time)
    .limit(sa.bindparam("most"))
)
DELETE = sa.delete(replication_metrics).where(Among(METRIC.execution_id, "keys"))


def lock(session: Session, execution: int) -> tuple[str | None, str | None] | None:
    """Lock the metrics of an execution until the transaction ends; return their metadata and progress, or None."""
    row = session.row(LOCK, key=execution)
    return None if row is None else (row[0], row[1])


def insert(session: Session, metrics: ReplicationMetrics, now: int) -> None:
    """Add metrics."""
    session.insert(
        replication_metrics, execution_id=metrics.scheduledExecutionId, policy=metrics.policy, dump_execution_id=metrics.dumpExecutionId,
        metadata=metrics.metadata, progress=metrics.progress, message_format=metrics.messageFormat, start_time=now,
    )  # fmt: skip


def update(session: Session, execution: int, metadata: str | None, progress: str | None, message_format: str | None) -> None:
    """Change the values of metrics."""
    session.execute(UPDATE, key=execution, metadata=metadata, progress=progress, message_format=message_format)


def of_policy(session: Session, policy: str) -> list[ReplicationMetrics]:
    """Return the metrics of a policy, the newest execution first."""
    return [ReplicationMetrics(*row) for row in session.rows(BY_POLICY, key=policy)]


def of_execution(session: Session, execution: int) -> list[ReplicationMetrics]:
    """Return the metrics of an execution, or none."""
    return [ReplicationMetrics(*row) for row in session.rows(BY_EXECUTION, key=execution)]


def old(session: Session, before: int, most: int) -> list[int]:
    """Return the executions of some metrics that began at or before a time."""
    return session.column(OLD, before=before, most=most)


def delete(session: Session, executions: list[int]) -> None:
    """Remove the metrics of executions."""
    session.execute(DELETE, keys=executions)
