"""Show transactions, locks and compactions with Hive's columns, abort them, and queue compactions.

The names of Thrift's enum values are private in thriftpy2, which has no public way to them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime, timezone

from pyspark.sql import DataFrame

from metastore import idl
from metastore.client import Client
from metastore.idl import CompactionType, LockState, LockType, ShowCompactResponseElement, TxnState
from metastore.rules.transactions.compactions import STATE_TEXTS
from metastore.rules.values.partition_names import DEFAULT_PARTITION, make_partition_name
from metastore.spark.dialect.session import Names, SqlSession
from metastore.spark.grammar.statements import Abort, Compact, ShowCompactions, ShowLocks, Spec
from metastore.spark.grammar.tokens import WrongStatement
from metastore.spark.session.catalog import AcidTableInfo

WAITS = 0.2
"""Seconds between looks at a compaction that is waited for."""
_TRANSACTIONS = ("txnid", "state", "startedtime", "lastheartbeattime", "user", "host")
_LOCKS = (
    "lockid", "database", "table", "partition", "lock_state", "blocked_by", "lock_type", "transaction_id", "last_heartbeat", "acquired_at",
    "user", "hostname", "agent_info",
)  # fmt: skip
_COMPACTIONS = (
    "compactionid", "dbname", "tabname", "partname", "type", "state", "workerhost", "workerid", "enqueuetime", "starttime", "duration",
    "hadoopjobid", "errormessage", "initiatorhost", "initiatorid", "poolname", "txnid", "nexttxnid", "committime", "hightestwriteid",
)  # fmt: skip
_NONE = " --- "
"""Hive's text for a missing value."""


def frame(session: SqlSession, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> DataFrame:
    """Return rows of texts."""
    texts = [tuple(None if value is None else str(value) for value in row) for row in rows]
    return session.spark.createDataFrame(texts, ", ".join(f"`{name}` string" for name in columns))


def transactions(session: SqlSession, client: Client) -> DataFrame:
    """Return the rows of SHOW TRANSACTIONS: open and aborted ones."""
    rows = [
        (each.id, TxnState._VALUES_TO_NAMES[each.state], each.startedTime, each.lastHeartbeatTime, each.user, each.hostname)  # noqa: SLF001  # see above
        for each in client.get_open_txns_info().open_txns
    ]
    return frame(session, _TRANSACTIONS, rows)


def locks(session: SqlSession, names: Names, statement: ShowLocks) -> DataFrame:
    """Return the rows of SHOW LOCKS."""
    place = None if statement.table is None else names.place(statement.table)
    request = idl.ShowLocksRequest(
        dbname=statement.database if place is None else place[0],
        tablename=None if place is None else place[1],
        partname=None if statement.partition is None else partition_text(statement.partition),
        isExtended=True,
    )
    rows = [
        (
            each.lockid if each.lockIdInternal is None else f"{each.lockid}.{each.lockIdInternal}",
            each.dbname,
            each.tablename or "NULL",
            each.partname or "NULL",
            LockState._VALUES_TO_NAMES[each.state],  # noqa: SLF001  # see above
            "" if each.blockedByExtId is None else f"{each.blockedByExtId}.{each.blockedByIntId}",
            LockType._VALUES_TO_NAMES[each.type],  # noqa: SLF001  # see above
            each.txnid or "NULL",
            each.lastheartbeat,
            each.acquiredat or "NULL",
            each.user,
            each.hostname,
            each.agentInfo or "",
        )
        for each in names.client.show_locks(request).locks or []
    ]
    return frame(session, _LOCKS, rows)


def partition_text(spec: Spec) -> str:
    """Return values of partition columns as a name `k=v/..`."""
    return make_partition_name(list(spec), [DEFAULT_PARTITION if value is None else value for value in spec.values()])


def compactions(session: SqlSession, names: Names, statement: ShowCompactions) -> DataFrame:
    """Return the rows of SHOW COMPACTIONS. WrongStatement for an unknown type or state."""
    place = None if statement.table is None else names.place(statement.table)
    request = idl.ShowCompactRequest(
        id=statement.id,
        poolName=statement.pool,
        dbName=statement.database if place is None else place[0],
        tbName=None if place is None else place[1],
        partName=None if statement.partition is None else partition_text(statement.partition),
        type=None if statement.kind is None else _type(statement.kind),
        state=None if statement.state is None else _state(statement.state),
        limit=statement.limit,
        order=statement.order,
    )
    return frame(session, _COMPACTIONS, [_compaction(each) for each in names.client.show_compact(request).compacts])


def _type(text: str) -> int:
    found = CompactionType._NAMES_TO_VALUES.get(text.upper())  # noqa: SLF001  # see above
    if found is None:
        raise WrongStatement(f"there is no compaction of the type {text!r}; the types are MAJOR, MINOR, REBALANCE")
    return int(found)


def _state(text: str) -> str:
    found = next((letter for letter, said in STATE_TEXTS.items() if text.lower() in (said, letter)), None)
    if found is None:
        raise WrongStatement(f"no compaction has the state {text!r}; the states are {', '.join(STATE_TEXTS.values())}")
    return found


def _compaction(each: ShowCompactResponseElement) -> tuple[object, ...]:
    worker, initiator = _apart(each.workerid), _apart(each.initiatorId)
    ended, started = each.endTime or 0, each.start or 0
    return (
        each.id,
        each.dbname,
        each.tablename,
        each.partitionname or _NONE,
        CompactionType._VALUES_TO_NAMES.get(each.type, each.type),  # noqa: SLF001  # see above
        each.state,
        *worker,
        each.enqueueTime or _NONE,
        each.start or _NONE,
        ended - started if ended and started else _NONE,
        each.hadoopJobId or _NONE,
        each.errorMessage or _NONE,
        *initiator,
        each.poolName or "default",
        each.txnId or 0,
        each.nextTxnId or 0,
        each.commitTime or 0,
        each.hightestWriteId or 0,
    )


def _apart(name: str | None) -> tuple[str, str]:
    """Return host and thread from the name of a worker or initiator, divided as by Hive."""
    if not name:
        return _NONE, _NONE
    host, separator, thread = name.partition("-")
    return (host, thread) if separator else (name, _NONE)


def abort(session: SqlSession, client: Client, statement: Abort) -> DataFrame:
    """Abort transactions, or compactions that wait. NoSuchTxnException."""
    if statement.what == "TRANSACTIONS":
        client.abort_txns(idl.AbortTxnsRequest(txn_ids=statement.ids))
        return session.nothing()
    answer = client.abort_Compactions(idl.AbortCompactionRequest(compactionIds=statement.ids)).abortedcompacts
    rows = [(each.compactionId, each.status, each.message) for _, each in sorted((answer or {}).items())]
    return frame(session, ("compactionid", "status", "message"), rows)


def compact(session: SqlSession, names: Names, info: AcidTableInfo, statement: Compact) -> DataFrame:
    """Queue a compaction, and wait for its end where that is asked for. WrongStatement, WrongColumns; MetaException where it is refused."""
    if statement.partition is None and info.partition_columns.names:
        raise WrongStatement(
            f"{info.full_name} is partitioned: name one, ALTER TABLE .. PARTITION ({info.partition_columns.names[0]}='..') COMPACT"
        )
    partition = None
    if statement.partition is not None:
        partition = info.existing_partition(names.client, partition_text(statement.partition))
    request = idl.CompactionRequest(
        dbname=info.database,
        tablename=info.name,
        partitionname=partition,
        type=_type(statement.kind),
        poolName=statement.pool,
        properties=statement.properties or None,
        numberOfBuckets=statement.buckets,
        orderByClause=statement.order,
    )
    answer = names.client.compact2(request)
    if not answer.accepted:
        raise WrongStatement(f"{info.full_name}: the compaction was not queued: {answer.errormessage or answer.state}")
    state = answer.state
    while statement.waits:
        (entry, *_) = names.client.show_compact(idl.ShowCompactRequest(id=answer.id)).compacts
        state = entry.state
        if state not in (STATE_TEXTS["i"], STATE_TEXTS["w"]):
            break
        time.sleep(WAITS)
    if statement.waits and state in (STATE_TEXTS["f"], STATE_TEXTS["c"], STATE_TEXTS["a"], STATE_TEXTS["x"]):
        raise WrongStatement(
            f"{info.full_name}: compaction {answer.id} ended as {state}: {entry.errorMessage or 'SHOW COMPACTIONS shows more'}"
        )
    return frame(session, ("compactionid", "state"), [(answer.id, state)])


def moment(seconds: int | None) -> str:
    """Return a time as Hive's DESCRIBE shows it, `UNKNOWN` without one."""
    if not seconds:
        return "UNKNOWN"
    return datetime.fromtimestamp(seconds, tz=timezone.utc).strftime("%a %b %d %H:%M:%S UTC %Y")
