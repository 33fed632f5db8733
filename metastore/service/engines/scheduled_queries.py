"""Scheduled queries: store them, hand out due ones, note their outcomes, give up executions without progress reports.

Executors, such as HiveServer2, ask with `poll` and report with `report`. A query has one execution under way at the most, and exactly one
poller gets it. Source: Hive's ObjectStore and ScheduledQueryExecutionsMaintTask.
"""

from __future__ import annotations

from copy import copy
from datetime import datetime
from typing import TYPE_CHECKING

import structlog

from metastore.errors import AlreadyExists, InvalidInput, InvalidOperation, MetaError, NoSuchObject
from metastore.idl import (
    QueryState,
    ScheduledQuery,
    ScheduledQueryKey,
    ScheduledQueryMaintenanceRequest,
    ScheduledQueryMaintenanceRequestType,
    ScheduledQueryPollResponse,
    ScheduledQueryProgressInfo,
)
from metastore.rules.engines import schedules
from metastore.service.call.clock import now_s, zone
from metastore.service.call.context import Call
from metastore.store.core.database import Session
from metastore.store.engines import scheduled_queries as rows
from metastore.store.engines.scheduled_queries import FAILED, RUNNING, StoredQuery

if TYPE_CHECKING:
    from metastore.config import Config
    from metastore.service.call.context import Metastore

log = structlog.get_logger()

LONGEST_ERROR = 1000
"""Characters that are kept of an executor's text about a failure."""
LATEST = 2**31 - 1
"""The last second that the interface can express."""
_BATCH = 1000
_NEXT_STATES = {
    QueryState.INITED: {QueryState.EXECUTING, QueryState.FINISHED, *FAILED},
    QueryState.EXECUTING: {QueryState.EXECUTING, QueryState.FINISHED, *FAILED},
}


def maintain(call: Call, request: ScheduledQueryMaintenanceRequest) -> None:
    """Add, change or remove a query. AlreadyExists, NoSuchObject, InvalidInput for its schedule, MetaError."""
    _check_switch(call.config)
    query = request.scheduledQuery
    if query is None:
        raise MetaError("The scheduled query is null: send one")
    key = checked_key(query.scheduleKey)
    kinds = ScheduledQueryMaintenanceRequestType
    if request.type == kinds.CREATE:
        _create(call, key, query)
    elif request.type == kinds.ALTER:
        _alter(call, key, query)
    elif request.type == kinds.DROP:
        call.database.write(lambda session: rows.delete(session, _locked(session, key).id))
    else:
        raise MetaError(f"There is no maintenance of type {request.type}: use 1 to create, 2 to alter, 3 to drop")


def get(call: Call, key: ScheduledQueryKey | None) -> ScheduledQuery:
    """Return a query. NoSuchObject, MetaError."""
    found = find(call, checked_key(key))
    if found is None:
        raise _missing(checked_key(key))
    return found


def find(call: Call, key: ScheduledQueryKey) -> ScheduledQuery | None:
    """Return a query, or None."""
    found = call.database.read(lambda session: rows.find(session, key))
    return None if found is None else found.query


def checked_key(key: ScheduledQueryKey | None) -> ScheduledQueryKey:
    """Return the name of a query and its cluster. MetaError when a part was not sent."""
    if key is None or key.scheduleName is None or key.clusterNamespace is None:
        raise MetaError("A scheduled query needs the names of itself and its cluster: set scheduleName and clusterNamespace")
    return key


def _text(key: ScheduledQueryKey) -> str:
    return f"{key.scheduleName}@{key.clusterNamespace}"


def _missing(key: ScheduledQueryKey) -> NoSuchObject:
    return NoSuchObject(f"There is no scheduled query {_text(key)}")


def _locked(session: Session, key: ScheduledQueryKey) -> StoredQuery:
    found = rows.find(session, key, locked=True)
    if found is None:
        raise _missing(key)
    return found


def _check_switch(config: Config) -> None:
    if not config.scheduled_queries:
        raise MetaError("Scheduled queries are switched off: set scheduled_queries")


def _create(call: Call, key: ScheduledQueryKey, query: ScheduledQuery) -> None:
    stored = copy(query)
    stored.nextExecution = _checked(call.config, query)

    def work(session: Session) -> None:
        if rows.find(session, key) is not None:
            raise AlreadyExists(f"Scheduled query {_text(key)} already exists")
        rows.insert(session, stored)

    call.database.write(work)


def _alter(call: Call, key: ScheduledQueryKey, query: ScheduledQuery) -> None:
    """Replace a query; a running execution continues. The time of the next execution is computed if none is sent."""
    stored, computed = copy(query), _checked(call.config, query)
    stored.nextExecution = computed if query.nextExecution is None else query.nextExecution
    call.database.write(lambda session: rows.update(session, _locked(session, key).id, stored))


def _checked(config: Config, query: ScheduledQuery) -> int | None:
    """Return the time when a query is due first, None for never. InvalidInput."""
    if query.schedule is None or query.query is None:
        raise InvalidInput(f"Scheduled query {_text(query.scheduleKey)} needs schedule and query; got {query.schedule} and {query.query}")
    return _next_time(config, query.schedule, now_s())


def _next_time(config: Config, schedule: str, after: int) -> int | None:
    """Return the next time after a given one when a schedule is due, both in seconds. InvalidInput.

    None for never, or for a time that the interface can not express.
    """
    found = schedules.next_time(schedule, datetime.fromtimestamp(after, zone(config.scheduled_query_time_zone)))
    time = None if found is None else int(found.timestamp())
    return None if time is None or time > LATEST else time


def poll(call: Call, namespace: str | None) -> ScheduledQueryPollResponse:
    """Begin an execution of a cluster's query that has been due for longest, and return it; an empty response if none is due. MetaError."""
    _check_switch(call.config)
    if namespace is None:
        raise MetaError("A poll needs the name of the cluster: set clusterNamespace")
    now = now_s()
    for key in call.database.read(lambda session: rows.due(session, namespace, now, _BATCH)):
        found = call.database.write(lambda session, key=key: _begin(call.config, session, key, now))  # type: ignore[misc]  # bound now
        if found is not None:
            return found
    return ScheduledQueryPollResponse()


def _begin(config: Config, session: Session, key: int, now: int) -> ScheduledQueryPollResponse | None:
    """Begin an execution of a query; None if another poller was there before, or the query was changed."""
    stored = rows.lock(session, key)
    if stored is None or stored.execution is not None:
        return None
    query = stored.query
    if not query.enabled or query.nextExecution is None or query.nextExecution > now:
        return None
    execution = rows.add_execution(session, key, QueryState.INITED, now)
    rows.set_under_way(session, key, _next_time(config, query.schedule or "", now), execution)
    text = f"/* schedule: {query.scheduleKey.scheduleName} */{query.query}"
    return ScheduledQueryPollResponse(scheduleKey=query.scheduleKey, executionId=execution, query=text, user=query.user)


def report(call: Call, info: ScheduledQueryProgressInfo | None) -> None:
    """Note an executor's report on an execution. InvalidOperation for one that is missing or ended, and for other states; MetaError."""
    _check_switch(call.config)
    if info is None or info.scheduledExecutionId is None or info.state is None:
        raise MetaError("A report needs the id of the execution and its state: set scheduledExecutionId and state")
    execution, state = info.scheduledExecutionId, info.state

    def work(session: Session) -> None:
        key = rows.query_of(session, execution)
        stored = None if key is None else rows.lock(session, key)
        found = None if stored is None else rows.state_of(session, execution)
        if stored is None or found is None:
            raise InvalidOperation(f"There is no execution {execution} of a scheduled query: it was removed, or its query was")
        if state not in _NEXT_STATES.get(found[0], ()):
            raise InvalidOperation(f"Invalid state change of execution {execution}: {_name(found[0])} to {_name(state)}")
        _note(call.config, session, stored, execution, info)

    call.database.write(work)


def _name(state: int) -> str:
    return QueryState._VALUES_TO_NAMES.get(state, str(state))  # noqa: SLF001  # thriftpy2's list of an enum


def _note(config: Config, session: Session, stored: StoredQuery, execution: int, info: ScheduledQueryProgressInfo) -> None:
    """Note the state of an execution whose query is locked, and its consequences for the query."""
    now, error = now_s(), info.errorMessage
    if error is not None and len(error) > LONGEST_ERROR:
        error = error.split("\n", 1)[0][:LONGEST_ERROR]
    rows.report(session, execution, info.state, now, info.executorQueryId, error)
    if info.state in RUNNING:
        return
    query = stored.query
    if info.state in FAILED:
        _punish(config, session, stored, now)
    rows.set_under_way(session, stored.id, query.nextExecution, None)


def _punish(config: Config, session: Session, stored: StoredQuery, now: int) -> None:
    """Switch a query off that fails again and again, or leave it out for a while, by the settings."""
    disable, skip = config.scheduled_query_disable_after, config.scheduled_query_skip_after
    if not disable and not skip:
        return
    query, failures = stored.query, 0
    for state in rows.last_states(session, stored.id, max(disable, skip)):
        if state not in FAILED:
            break
        failures += 1
    for _ in range(min(skip, failures) - 1):
        if query.nextExecution is not None:
            query.nextExecution = _next_time(config, query.schedule or "", query.nextExecution)
    if disable and failures >= disable:
        query.enabled = False
        rows.update(session, stored.id, query)
        rows.add_execution(session, stored.id, QueryState.AUTO_DISABLED, now, f"Disabled after {failures} failures in turn")
        log.info("scheduled query disabled", query=_text(query.scheduleKey), failures=failures)


def keep_house(metastore: Metastore, _last_run: int | None = None) -> None:
    """End the executions without progress reports, and remove old ones: the periodic job."""
    config, database = metastore.config, metastore.database
    if not config.scheduled_queries:
        return
    while silent := database.read(lambda session: rows.silent(session, now_s() - int(config.scheduled_query_timeout), _BATCH)):
        for execution in silent:
            if database.write(lambda session, execution=execution: _time_out(config, session, execution)):  # type: ignore[misc]  # bound now
                log.info("execution of a scheduled query timed out", execution=execution)
    before = now_s() - int(config.scheduled_query_history)
    while old := database.read(lambda session: rows.old(session, before, _BATCH)):
        database.write(lambda session, old=old: rows.delete_executions(session, old))  # type: ignore[misc]  # bound now


def _time_out(config: Config, session: Session, execution: int) -> bool:
    """End an execution unless it has reported meanwhile; return whether it was ended."""
    key = rows.query_of(session, execution)
    stored = None if key is None else rows.lock(session, key)
    found = None if stored is None else rows.state_of(session, execution)
    if stored is None or found is None or found[1] is None or found[1] > now_s() - int(config.scheduled_query_timeout):
        return False
    error = f"Query stuck in state {_name(found[0])}: its executor reported nothing for {config.scheduled_query_timeout:g} seconds"
    _note(config, session, stored, execution, ScheduledQueryProgressInfo(state=QueryState.TIMED_OUT, errorMessage=error))
    return True
