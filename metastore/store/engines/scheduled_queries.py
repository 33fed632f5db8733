"""Rows of scheduled queries and of their executions. One function per statement; it never computes a time.

A change of a query or of one of its executions locks the query's row first. Times are in seconds.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import sqlalchemy as sa

from metastore.idl import QueryState, ScheduledQuery, ScheduledQueryKey
from metastore.store.core.clauses import Among, bound, constant
from metastore.store.core.database import Session
from metastore.store.drivers.contract import Row
from metastore.store.schema.engines import scheduled_executions, scheduled_queries

QUERY, EXECUTION = scheduled_queries.c, scheduled_executions.c
FIELDS = (
    QUERY.id,
    QUERY.namespace,
    QUERY.name,
    QUERY.enabled,
    QUERY.schedule,
    QUERY.user,
    QUERY.query,
    QUERY.next_time,
    QUERY.execution_id,
)
HERE = sa.and_(QUERY.namespace == sa.bindparam("namespace_key"), QUERY.name == sa.bindparam("name_key"))
FIND = sa.select(*FIELDS).where(HERE)
LOCK = FIND.with_for_update()
LOCK_BY_ID = sa.select(*FIELDS).where(QUERY.id == sa.bindparam("key")).with_for_update()
DUE = (
    sa.select(QUERY.id)
    .where(
        QUERY.namespace == sa.bindparam("namespace_key"),
        QUERY.next_time <= sa.bindparam("now"),
        QUERY.enabled == constant(1),
        QUERY.execution_id.is_(None),
    )
    .order_by(QUERY.next_time, QUERY.id)
    .limit(sa.bindparam("most"))
)
UPDATE = (
    sa.update(scheduled_queries).where(QUERY.id == sa.bindparam("key")).values(bound(("enabled", "schedule", "user", "query", "next_time")))
)
UNDER_WAY = sa.update(scheduled_queries).where(QUERY.id == sa.bindparam("key")).values(bound(("next_time", "execution_id")))
DELETE = sa.delete(scheduled_queries).where(QUERY.id == sa.bindparam("key"))
RUNNING = (QueryState.INITED, QueryState.EXECUTING)
FAILED = (QueryState.FAILED, QueryState.TIMED_OUT)
QUERY_OF = sa.select(EXECUTION.query_id).where(EXECUTION.id == sa.bindparam("key"))
STATE = sa.select(EXECUTION.state, EXECUTION.report_time).where(EXECUTION.id == sa.bindparam("key"))
LAST_STATES = (
    sa.select(EXECUTION.state)
    .where(EXECUTION.query_id == sa.bindparam("query_key"))
    .order_by(EXECUTION.id.desc())
    .limit(sa.bindparam("most"))
)
REPORT = (
    sa.update(scheduled_executions)
    .where(EXECUTION.id == sa.bindparam("key"))
    .values(
        state=sa.bindparam("state"),
        end_time=sa.bindparam("end_time"),
        report_time=sa.bindparam("report_time"),
        executor_query_id=sa.func.coalesce(sa.bindparam("executor_query_id"), EXECUTION.executor_query_id),
        error=sa.func.coalesce(sa.bindparam("error"), EXECUTION.error),
    )
)
SILENT = sa.select(EXECUTION.id).where(EXECUTION.report_time <= sa.bindparam("before")).order_by(EXECUTION.id).limit(sa.bindparam("most"))
OLD = (
    sa.select(EXECUTION.id)
    .where(EXECUTION.start_time <= sa.bindparam("before"), EXECUTION.report_time.is_(None))
    .order_by(EXECUTION.id)
    .limit(sa.bindparam("most"))
)
DELETE_EXECUTIONS = sa.delete(scheduled_executions).where(Among(EXECUTION.id, "keys"))


class StoredQuery(NamedTuple):
    """A scheduled query with its key, and the execution that is under way."""

    id: int
    query: ScheduledQuery
    execution: int | None


def _stored(row: Row | None) -> StoredQuery | None:
    if row is None:
        return None
    key, namespace, name, enabled, schedule, user, query, next_time, execution = row
    struct = ScheduledQuery(
        scheduleKey=ScheduledQueryKey(scheduleName=name, clusterNamespace=namespace), enabled=bool(enabled), schedule=schedule, user=user,
        query=query, nextExecution=next_time,
    )  # fmt: skip
    return StoredQuery(key, struct, execution)


def _values(query: ScheduledQuery) -> dict[str, Any]:
    return {
        "enabled": int(bool(query.enabled)),
        "schedule": query.schedule,
        "user": query.user,
        "query": query.query,
        "next_time": query.nextExecution,
    }


def find(session: Session, key: ScheduledQueryKey, *, locked: bool = False) -> StoredQuery | None:
    """Return a query, or None; on demand its row stays locked until the transaction ends."""
    return _stored(session.row(LOCK if locked else FIND, namespace_key=key.clusterNamespace, name_key=key.scheduleName))


def lock(session: Session, key: int) -> StoredQuery | None:
    """Lock a query's row until the transaction ends; return it, or None."""
    return _stored(session.row(LOCK_BY_ID, key=key))


def due(session: Session, namespace: str, now: int, most: int) -> list[int]:
    """Return the keys of some queries of a cluster that are due and not under way, the longest due first."""
    return session.column(DUE, namespace_key=namespace, now=now, most=most)


def insert(session: Session, query: ScheduledQuery) -> None:
    """Add a query."""
    key = query.scheduleKey
    session.insert(scheduled_queries, namespace=key.clusterNamespace, name=key.scheduleName, **_values(query))


def update(session: Session, key: int, query: ScheduledQuery) -> None:
    """Change everything but the name."""
    session.execute(UPDATE, key=key, **_values(query))


def delete(session: Session, key: int) -> None:
    """Remove a query with its executions."""
    session.execute(DELETE, key=key)


def set_under_way(session: Session, key: int, next_time: int | None, execution: int | None) -> None:
    """Note the next time at which a query is due, and its execution that is under way, None for none."""
    session.execute(UNDER_WAY, key=key, next_time=next_time, execution_id=execution)


def add_execution(session: Session, query: int, state: int, now: int, error: str | None = None) -> int:
    """Add an execution that begins now; return its key. Unless its state is one of `RUNNING`, it has ended as well."""
    runs = state in RUNNING
    return session.insert_keyed(
        scheduled_executions, query_id=query, state=state, start_time=now, end_time=None if runs else now,
        report_time=now if runs else None, error=error,
    ).key  # fmt: skip


def query_of(session: Session, execution: int) -> int | None:
    """Return the key of an execution's query, or None."""
    return session.number(QUERY_OF, key=execution)


def state_of(session: Session, execution: int) -> tuple[int, int | None] | None:
    """Return an execution's state and the time of its last report; None for one that is not there."""
    row = session.row(STATE, key=execution)
    return None if row is None else (row[0], row[1])


def report(session: Session, execution: int, state: int, now: int, executor_query_id: str | None, error: str | None) -> None:
    """Note the state of an execution, which ends unless the state is one of `RUNNING`. Fields that are None are not changed."""
    runs = state in RUNNING
    session.execute(
        REPORT, key=execution, state=state, end_time=None if runs else now, report_time=now if runs else None,
        executor_query_id=executor_query_id, error=error,
    )  # fmt: skip


def last_states(session: Session, query: int, most: int) -> list[int]:
    """Return the states of the last executions of a query, the newest first."""
    return session.column(LAST_STATES, query_key=query, most=most)


def silent(session: Session, before: int, most: int) -> list[int]:
    """Return some executions that run and have not reported since a time."""
    return session.column(SILENT, before=before, most=most)


def old(session: Session, before: int, most: int) -> list[int]:
    """Return some executions that began at or before a time and have ended."""
    return session.column(OLD, before=before, most=most)


def delete_executions(session: Session, keys: list[int]) -> None:
    """Remove executions."""
    session.execute(DELETE_EXECUTIONS, keys=keys)
