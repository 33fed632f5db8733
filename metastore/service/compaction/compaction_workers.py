"""Requests and reports of compaction workers: their entry, the transaction of their compaction, its end, their measurements.

Every change of a state is one conditional update, so that of two workers or servers one wins
(`rules.transactions.compactions.FOLLOWS`). Sources: Hive 4's NextCompactionFunction and CompactionTxnHandler.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from metastore.errors import InvalidOperation, MetaError, NoSuchTransaction, TransactionAborted
from metastore.idl import (
    CompactionInfoStruct,
    CompactionMetricsDataRequest,
    CompactionMetricsDataStruct,
    CompactionMetricsMetricType,
)
from metastore.rules.names import with_catalog
from metastore.rules.transactions.compactions import (
    ABORT_CLEANUP,
    DID_NOT_INITIATE,
    FAILED,
    FOLLOWS,
    INITIATED,
    METRICS,
    MINOR,
    MOST_DEATHS,
    READY,
    REFUSED,
    STATE_TEXTS,
    SUCCEEDED,
    TYPE_NUMBERS,
    TYPES,
    WORKING,
)
from metastore.rules.transactions.transactions import COMPACTION
from metastore.service.call.clock import now_ms
from metastore.service.call.context import Call, Metastore
from metastore.service.compaction.compactions import object_of
from metastore.store.catalog import statistics
from metastore.store.catalog.partitions import partitions as partition_rows
from metastore.store.catalog.tables import tables
from metastore.store.compaction import compaction_sources, compactions
from metastore.store.compaction.compactions import Clock, CompactedObject, QueueEntry
from metastore.store.core.database import Session
from metastore.store.transactions import components, transactions
from metastore.store.transactions.transactions import ABORTED as TRANSACTION_ABORTED
from metastore.store.transactions.transactions import COMPONENTS
from metastore.store.transactions.transactions import OPEN as TRANSACTION_OPEN


def find_next(call: Call, worker: str | None, version: str | None = None, pool: str | None = None) -> CompactionInfoStruct | None:
    """Give a worker the oldest entry of its pool; without a pool, the oldest that names none or has waited too long. None without one.

    An entry that a worker of the same version has put back is left out, see `put_back`.
    """
    pool = (pool or "").strip() or None
    before = now_ms() - int(call.config.compactor_pool_timeout * 1000)

    def work(session: Session) -> QueueEntry | None:
        entry = compactions.lock_next(session, INITIATED, pool, before, version)
        if entry is None:
            return None
        now = now_ms()
        compactions.update(
            session,
            [entry.id],
            [INITIATED],
            state=WORKING,
            worker=worker,
            worker_version=version,
            started_ms=now,
            heartbeat_ms=now,
        )
        return entry._replace(state=WORKING, worker=worker, worker_version=version, started=now)

    if not call.database.read(lambda session: compactions.peek(session, INITIATED, pool, before, version)):
        return None
    found = call.database.write(work)
    return None if found is None else _struct(call, found)


def _struct(call: Call, entry: QueueEntry) -> CompactionInfoStruct:
    return CompactionInfoStruct(
        id=entry.id,
        dbname=with_catalog(entry.catalog, entry.database, call.config.default_catalog),
        tablename=entry.table,
        partitionname=entry.partition,
        type=TYPE_NUMBERS[entry.type],
        runas=entry.run_as,
        properties=entry.properties,
        toomanyaborts=False,
        hasoldabort=False,
        state=entry.state,
        workerId=entry.worker,
        start=entry.started or 0,
        highestWriteId=entry.highest_write_id or 0,
        errorMessage=entry.error,
        enqueueTime=entry.enqueued,
        retryRetention=0,
        poolname=entry.pool,
        numberOfBuckets=entry.buckets or 0,
        orderByClause=entry.order_by,
    )


def _locked(session: Session, info: CompactionInfoStruct, states: Sequence[str], doing: str) -> QueueEntry:
    """Lock the entry that a worker names. MetaError if it is not in one of the states, or belongs to another worker by now."""
    entry = compactions.lock(session, info.id or 0)
    if entry is None:
        raise MetaError(f"No compaction with id {info.id}: it can not be {doing}; ask for other work")
    if entry.state not in states:
        raise MetaError(f"Compaction {entry.id} of {entry.object} is {STATE_TEXTS[entry.state]}: it can not be {doing}; ask for other work")
    if entry.state == WORKING and info.workerId is not None and info.workerId != entry.worker:
        raise MetaError(
            f"Compaction {entry.id} of {entry.object} is worked on by {entry.worker}: it can not be {doing} by {info.workerId}, "
            "which sent no heartbeat for too long; ask for other work"
        )
    return entry


def update_state(call: Call, info: CompactionInfoStruct, transaction: int) -> None:
    """Note the transaction of a worker's compaction, and the highest write id that it compacts.

    The transaction counts as one that writes to the object: its files are cleaned up when it is aborted. MetaError for an entry that is not
    the worker's (any more), NoSuchTransaction, TransactionAborted.

    With the state `INITIATED` the worker puts the entry back.
    """
    if info.state == INITIATED:
        put_back(call, info)
        return

    def work(session: Session) -> None:
        found = transactions.lock(session, transaction)()
        if found is not None and found.state == TRANSACTION_ABORTED:
            raise TransactionAborted(f"Transaction txnid:{transaction} was aborted: compaction {info.id} can not continue in it")
        if found is None or found.state != TRANSACTION_OPEN:
            raise NoSuchTransaction(f"No such transaction txnid:{transaction}: open one for compaction {info.id}")
        entry = _locked(session, info, [WORKING], "worked on")
        compactions.update(
            session,
            [entry.id],
            [WORKING],
            highest_write_id=info.highestWriteId,
            run_as=info.runas or entry.run_as,
            transaction_id=transaction,
            next_transaction_id=None,
            committed_ms=None,
            heartbeat_ms=now_ms(),
        )
        transactions.add_holds_of_many(session, [transaction], COMPONENTS)
        components.insert(session, [(transaction, (*entry.object, COMPACTION, info.highestWriteId))])

    call.database.write(work)


NOBODYS = {
    "worker": None,
    "worker_version": None,
    "started_ms": None,
    "heartbeat_ms": None,
    "transaction_id": None,
    "highest_write_id": None,
    "hadoop_job": None,
    "next_transaction_id": None,
    "committed_ms": None,
}
"""The values of the columns about a worker in an entry that no worker has."""


def put_back(call: Call, info: CompactionInfoStruct) -> None:
    """Give an entry back to the queue; with a reason (`errorMessage`) no worker of the same version gets it again. MetaError."""

    def work(session: Session) -> None:
        entry = _locked(session, info, FOLLOWS[INITIATED], "put back")
        version = entry.worker_version if info.errorMessage else None
        values = {**NOBODYS, "worker_version": version, "error": info.errorMessage}
        compactions.update(session, [entry.id], FOLLOWS[INITIATED], state=INITIATED, **values)

    call.database.write(work)


def take_from(metastore: Metastore, worker: str, reason: str) -> list[QueueEntry]:
    """Requeue the entry of a worker that has died, and return it; an entry with `MOST_DEATHS` dead workers has failed."""

    def work(session: Session) -> list[QueueEntry]:
        found = compactions.show(session, {"state": WORKING, "worker": worker})
        for each in found:
            deaths = each.retries + 1
            values = {"state": FAILED, "ended_ms": now_ms()} if deaths >= MOST_DEATHS else {"state": INITIATED, **NOBODYS}
            compactions.update(session, [each.id], [WORKING], **values, error=reason, retries=deaths)
        return found

    return metastore.database.write(work)


def set_job(call: Call, key: int, job: str | None) -> None:
    """Note the job that does a compaction. MetaError when no worker has it."""
    if not call.database.write(lambda session: compactions.update(session, [key], [WORKING], hadoop_job=job, heartbeat_ms=now_ms())):
        raise MetaError(f"Compaction {key} is not worked on: job {job} was not noted")


def mark_compacted(call: Call, info: CompactionInfoStruct) -> None:
    """Note that a worker has finished. Its files count once its transaction commits; the cleaner waits for older readers. MetaError."""

    def work(session: Session) -> None:
        entry = _locked(session, info, FOLLOWS[READY], "marked as compacted")
        now = now_ms()
        date = entry.next_transaction
        if date is None:
            date = following_transaction(entry, compactions.clock(session, entry.transaction))
        compactions.update(
            session,
            [entry.id],
            FOLLOWS[READY],
            state=READY,
            worker=None,
            error=None,
            retries=0,
            next_transaction_id=date,
            committed_ms=entry.committed if date is None or entry.committed is not None else now,
            highest_write_id=entry.highest_write_id if entry.highest_write_id is not None else info.highestWriteId,
        )

    call.database.write(work)


def following_transaction(entry: QueueEntry, clock: Clock) -> int | None:
    """Return the first transaction id that is sure to see the files of an entry's worker; None as long as its transaction is open."""
    if entry.transaction is not None and clock.state == TRANSACTION_OPEN:
        return None
    return (clock.last if clock.commit_id is None else clock.commit_id) + 1


def mark_cleaned(call: Call, info: CompactionInfoStruct) -> None:
    """Note that a cleaner has deleted the files that a compaction replaced, and forget the writes that it reached. MetaError."""

    def work(session: Session) -> None:
        entry = _locked(session, info, FOLLOWS[SUCCEEDED], "marked as cleaned")
        highest = info.highestWriteId or entry.highest_write_id
        aborted = compaction_sources.aborted_up_to(session, entry.object, highest) if highest else ()
        succeed(session, entry, highest, aborted)

    call.database.write(work)


def succeed(session: Session, entry: QueueEntry, highest: int | None, aborted: Sequence[int] = (), kept: Iterable[int] = ()) -> bool:
    """End an entry as succeeded; return whether it existed.

    The completed writes up to `highest` are forgotten, and the writes of `aborted` transactions except for the write ids `kept`.
    """
    changed = compactions.update(
        session,
        [entry.id],
        FOLLOWS[SUCCEEDED],
        state=SUCCEEDED,
        ended_ms=now_ms(),
        retry_after_ms=None,
        error=None,
    )
    if changed:
        compactions.delete_of_object(session, entry.object, ABORT_CLEANUP, [READY])
        if highest is not None:
            compaction_sources.delete_completed(session, entry.object, highest)
        if aborted:
            compaction_sources.delete_transactions(session, entry.object, aborted, sorted(kept))
    return changed > 0


def mark_failed(call: Call, info: CompactionInfoStruct) -> None:
    """Note that a compaction failed; one without an id could not even be queued. MetaError when it is not pending."""
    if info.id:
        _end(call, info, FAILED, "marked as failed")
    else:
        where = object_of(call, info.dbname, info.tablename, info.partitionname)
        did_not_initiate(call.metastore, where, TYPES.get(info.type, MINOR), info.errorMessage)


def mark_refused(call: Call, info: CompactionInfoStruct) -> None:
    """Note that a worker refused a compaction, as there was nothing to do. MetaError when it is not pending."""
    _end(call, info, REFUSED, "refused")


def _end(call: Call, info: CompactionInfoStruct, state: str, doing: str) -> None:
    def work(session: Session) -> None:
        entry = _locked(session, info, FOLLOWS[state], doing)
        compactions.update(session, [entry.id], FOLLOWS[state], state=state, ended_ms=now_ms(), error=info.errorMessage)

    call.database.write(work)


def did_not_initiate(metastore: Metastore, where: CompactedObject, kind: str, error: str | None) -> None:
    """Note in the history that a compaction could not be queued, with the reason."""
    now = now_ms()
    values = {"enqueued_ms": now, "started_ms": now, "ended_ms": now, "error": error}
    metastore.database.write(lambda session: compactions.insert(session, where, kind, DID_NOT_INITIATE, values))


def columns_with_statistics(call: Call, info: CompactionInfoStruct) -> list[str]:
    """Return the columns with statistics of a table or partition, so that a worker may gather them again."""
    where = object_of(call, info.dbname, info.tablename, info.partitionname)

    def work(session: Session) -> list[str]:
        table = tables.find(session, *where[:3])
        if table is None or table.id is None:
            return []
        if where.partition is None:
            return sorted(statistics.of_table(session, table.id, "hive"))
        if not partition_rows.existing(session, table.id, [where.partition]):
            return []
        return sorted(statistics.of_partitions(session, table.id, [where.partition], "hive").get(where.partition, ()))

    return call.database.read(work)


def update_metrics(call: Call, data: CompactionMetricsDataStruct) -> bool:
    """Store a metric of a worker that reaches its threshold, remove one that does not; return whether nobody else changed it meanwhile."""
    key = _metric(call, data.dbname, data.tblname, data.partitionname, data.type)
    value, threshold = data.metricvalue or 0, data.threshold or 0

    def work(session: Session) -> bool:
        version = compaction_sources.metric_version(session, key)
        if value < threshold:
            return version is None or compaction_sources.delete_metric(session, key)
        if version is None:
            compaction_sources.insert_metric(session, key, value, threshold)
            return True
        return compaction_sources.update_metric(session, key, version, value, threshold)

    return call.database.write(work)


def remove_metrics(call: Call, request: CompactionMetricsDataRequest) -> None:
    """Remove a metric if it exists."""
    key = _metric(call, request.dbName, request.tblName, request.partitionName, request.type)
    call.database.write(lambda session: compaction_sources.delete_metric(session, key))


def _metric(call: Call, database: str | None, table: str | None, partition: str | None, kind: int | None) -> tuple[str, str, str, str]:
    where = object_of(call, database, table, partition)
    if kind not in METRICS:
        raise InvalidOperation(f"Unexpected metric type {kind}: use one of {', '.join(CompactionMetricsMetricType._NAMES_TO_VALUES)}")  # noqa: SLF001
    return where.database, where.table, where.partition or "", CompactionMetricsMetricType._VALUES_TO_NAMES[kind]  # noqa: SLF001
