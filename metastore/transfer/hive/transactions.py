"""The transactional state of a Java metastore as records: Hive and other clients continue with its numbers.

Open transactions stay open under their ids. Their clients may continue at the new server, which aborts transactions without heartbeats.
Hive 3 keeps its counter of ids in a table, Hive 4 in a sequence: its last number is found from the transactions.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone

from metastore.transfer.hive.objects import CATALOG, Databases
from metastore.transfer.hive.schema import HiveSchema
from metastore.transfer.records import Record

OPEN, ABORTED, SELECT = "o", "a", "s"


def last_transaction(schema: HiveSchema) -> int:
    """Return the last transaction id that was given out, 0 for none."""
    counter = [row[0] for row in schema.rows("NEXT_TXN_ID", "NTXN_NEXT")]
    known = [row[0] for rows in schema.pages("TXNS", "TXN_ID") for row in rows]
    given = [row[0] for rows in schema.pages("TXN_TO_WRITE_ID", "T2W_TXNID") for row in rows] if not counter else []
    return int(max([0, *(number - 1 for number in counter), *known, *given]))


def positions(schema: HiveSchema, _: Databases) -> Iterator[Record]:
    """Yield the last numbers that were given out."""
    yield Record("position", ("transaction",), {"last": last_transaction(schema)})
    events = [row[0] - 1 for row in schema.rows("NOTIFICATION_SEQUENCE", "NEXT_EVENT_ID")]
    yield Record("position", ("notification",), {"last": max([0, *events])})


def transactions(schema: HiveSchema, _: Databases) -> Iterator[Record]:
    """Yield the transactions that Hive remembers."""
    columns = ("TXN_STATE", "TXN_TYPE", "TXN_USER", "TXN_HOST", "TXN_AGENT_INFO", "TXN_STARTED", "TXN_LAST_HEARTBEAT")
    for rows in schema.pages("TXNS", "TXN_ID", *columns):
        for key, state, kind, user, host, agent, started, heartbeat in rows:
            if key == 0:  # Hive 4 begins with this row, so that the table is not empty
                continue
            body = {
                "state": state, "type": kind or 0, "user": user, "host": host, "agent": agent, "started_ms": started,
                "ended_ms": None if state == OPEN else heartbeat, "commit_id": None,
            }  # fmt: skip
            yield Record("transaction", (key,), body)


def replicated(schema: HiveSchema, _: Databases) -> Iterator[Record]:
    """Yield the transactions that replicate others."""
    for policy, source, target in schema.rows("REPL_TXN_MAP", "RTM_REPL_POLICY", "RTM_SRC_TXN_ID", "RTM_TARGET_TXN_ID"):
        yield Record("replicated_transaction", (policy, source), {"transaction_id": target})


def components(schema: HiveSchema, _: Databases) -> Iterator[Record]:
    """Yield the components of transactions: intents of open and aborted ones, writes of committed ones."""
    columns = ("TC_TXNID", "TC_DATABASE", "TC_TABLE", "TC_PARTITION", "TC_OPERATION_TYPE", "TC_WRITEID")
    for key, database, table, partition, operation, write_id in schema.rows("TXN_COMPONENTS", *columns):
        if operation != SELECT:
            named = (key, CATALOG, database, table, partition, operation, write_id)
            yield Record("transaction_component", named, {"committed_ms": None, "commit_id": None})
    commits: dict[tuple[int, str, str, str | None], list[tuple[int | None, str]]] = {}
    sets = ("WS_TXNID", "WS_DATABASE", "WS_TABLE", "WS_PARTITION", "WS_COMMIT_ID", "WS_OPERATION_TYPE")
    for key, database, table, partition, commit, operation in schema.rows("WRITE_SET", *sets):
        commits.setdefault((key, database, table, partition), []).append((commit, operation))
    completed = ("CTC_TXNID", "CTC_DATABASE", "CTC_TABLE", "CTC_PARTITION", "CTC_TIMESTAMP", "CTC_WRITEID", "CTC_UPDATE_DELETE")
    for key, database, table, partition, time, write_id, changes in schema.rows("COMPLETED_TXN_COMPONENTS", *completed):
        known = commits.get((key, database, table, partition)) or [(None, "u" if changes == "Y" else "i")]
        for commit, operation in known:
            named = (key, CATALOG, database, table, partition, operation, write_id)
            yield Record("transaction_component", named, {"committed_ms": _milliseconds(time), "commit_id": commit})


def _milliseconds(time: datetime | None) -> int:
    """Return a time in UTC; Hive 2 does not note when a transaction was committed."""
    return 0 if time is None else int(time.replace(tzinfo=timezone.utc).timestamp() * 1000)


def write_id_positions(schema: HiveSchema, _: Databases) -> Iterator[Record]:
    """Yield the next write id of each table.

    The transaction of the last write id, and of the last change of a table as a whole, is not known where Hive has removed it. Then the
    last transaction of all is used: no snapshot of a later transaction is below it.
    """
    last = last_transaction(schema)
    owners: dict[tuple[str, str], int] = {}
    for transaction, database, table in schema.rows("TXN_TO_WRITE_ID", "T2W_TXNID", "T2W_DATABASE", "T2W_TABLE"):
        owners[database, table] = max(transaction, owners.get((database, table), 0))
    for database, table, next_ in schema.rows("NEXT_WRITE_ID", "NWI_DATABASE", "NWI_TABLE", "NWI_NEXT"):
        body = {"next": next_, "last_transaction": owners.get((database, table), last), "last_change": last}
        yield Record("write_id_position", (CATALOG, database, table), body)


def write_ids(schema: HiveSchema, _: Databases) -> Iterator[Record]:
    """Yield the write ids with their transactions."""
    columns = ("T2W_TXNID", "T2W_DATABASE", "T2W_TABLE", "T2W_WRITEID")
    for transaction, database, table, write_id in schema.rows("TXN_TO_WRITE_ID", *columns):
        yield Record("write_id", (CATALOG, database, table, write_id), {"transaction_id": transaction})


def min_history(schema: HiveSchema, _: Databases) -> Iterator[Record]:
    """Yield the lowest write ids that the snapshots of open transactions may still look behind."""
    for transaction, database, table, write_id in schema.rows("MIN_HISTORY_WRITE_ID", "MH_TXNID", "MH_DATABASE", "MH_TABLE", "MH_WRITEID"):
        yield Record("min_history", (transaction, CATALOG, database, table), {"write_id": write_id})


_COMPACTION = {
    "database": "DATABASE", "table": "TABLE", "partition": "PARTITION", "type": "TYPE", "state": "STATE", "pool": "POOL_NAME",
    "properties": "TBLPROPERTIES", "buckets": "NUMBER_OF_BUCKETS", "order_by": "ORDER_BY", "enqueued_ms": "ENQUEUE_TIME",
    "started_ms": "START", "ended_ms": "END", "cleaner_started_ms": "CLEANER_START", "committed_ms": "COMMIT_TIME",
    "initiator": "INITIATOR_ID", "initiator_version": "INITIATOR_VERSION", "worker": "WORKER_ID", "worker_version": "WORKER_VERSION",
    "run_as": "RUN_AS", "hadoop_job": "HADOOP_JOB_ID", "transaction_id": "TXN_ID", "highest_write_id": "HIGHEST_WRITE_ID",
    "next_transaction_id": "NEXT_TXN_ID", "error": "ERROR_MESSAGE",
}  # fmt: skip
"""Columns of both of Hive's tables, without their prefixes, by the fields of the body."""


def compactions(schema: HiveSchema, _: Databases) -> Iterator[Record]:
    """Yield the queue of compactions and its history. A worker's compaction stays with it until its heartbeat is too old."""
    for table, prefix in (("COMPACTION_QUEUE", "CQ_"), ("COMPLETED_COMPACTIONS", "CC_")):
        for rows in schema.pages(table, f"{prefix}ID", *(prefix + column for column in _COMPACTION.values())):
            for key, *values in rows:
                body = dict(zip(_COMPACTION, values, strict=True))
                for field in ("cleaner_started_ms", "committed_ms", "highest_write_id", "next_transaction_id", "transaction_id"):
                    body[field] = body[field] or None
                if body["next_transaction_id"] is not None:  # Hive's is the last id that does not see the commit
                    body["next_transaction_id"] += 1
                body["enqueued_ms"] = body["enqueued_ms"] or body["started_ms"] or 0
                heartbeat = body["started_ms"] if body["state"] == "w" else None
                body |= {"catalog": CATALOG, "heartbeat_ms": heartbeat, "retry_after_ms": None, "retries": 0}
                yield Record("compaction", (key,), body)
