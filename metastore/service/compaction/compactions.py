"""The compaction queue: ask for compactions, give them up, show them. Never hands one out, compacts or deletes a file.

An entry is initiated, worked on by one worker, ready for cleaning, and at last part of the history.
`rules.transactions.compactions.FOLLOWS` has the allowed transitions. Sources: Hive 4's CompactFunction,
ShowCompactHandler and AbortCompactionFunction.
"""

from __future__ import annotations

from collections.abc import Sequence

from metastore.idl import (
    AbortCompactionResponseElement,
    CompactionInfoStruct,
    CompactionRequest,
    CompactionResponse,
    GetLatestCommittedCompactionInfoRequest,
    ShowCompactRequest,
    ShowCompactResponseElement,
)
from metastore.rules.catalog.table_kinds import is_transactional, keeps_own_columns, table_label
from metastore.rules.names import with_catalog
from metastore.rules.transactions.compactions import (
    ABORTED,
    COMPACTED,
    DEFAULT_POOL,
    FOLLOWS,
    INITIATED,
    PENDING,
    QUEUED,
    READY,
    REFUSED,
    SERVERS_OWN,
    STATE_TEXTS,
    TYPE_NUMBERS,
    WORKING,
    read_order,
    type_letter,
    write_properties,
)
from metastore.rules.values.partition_names import canonical_name
from metastore.service.call.clock import now_ms
from metastore.service.call.context import Call
from metastore.service.call.names import table_name
from metastore.store.catalog.partitions import partitions
from metastore.store.catalog.tables import tables
from metastore.store.compaction import compactions
from metastore.store.compaction.compactions import CompactedObject, QueueEntry
from metastore.store.core.database import Session

DONE = "Successfully aborted compaction"
ABORT_REASON = "Compaction Aborted by Abort Comapction request."
"""Hive's own text."""


def object_of(call: Call, database: str | None, table: str | None, partition: str | None) -> CompactedObject:
    """Return the object of a request, its names normalised, a partition's name as it is stored. MetaError for a missing name."""
    name = table_name(database, table, None, call.config.default_catalog)
    return CompactedObject(*name, partition_of(partition))


def partition_of(name: str | None) -> str | None:
    if not name:
        return None
    return canonical_name(name)


def compact(call: Call, request: CompactionRequest) -> CompactionResponse:
    """Queue a compaction, unless an entry of the object waits, is worked on, or covers all finished writes. MetaError.

    A table that can not be compacted is refused in the reply, since the method declares no exception. A table or partition that is not
    there is queued, as by Hive's server.
    """
    where = object_of(call, request.dbname, request.tablename, request.partitionname)
    kind = type_letter(request.type)
    if reason := _reason_against(call, where):
        return CompactionResponse(id=-1, state=STATE_TEXTS[REFUSED], accepted=False, errormessage=reason)

    def work(session: Session) -> CompactionResponse:
        compactions.take_turn(session)
        found = scheduled(session, where)
        if found is not None:
            key, state = found
            message = f"Compaction is already scheduled with state='{STATE_TEXTS[state]}' and id={key}"
            if request.initiatorId is None:  # a client before Hive 4 gets the existing entry
                return CompactionResponse(id=key, state=STATE_TEXTS[state], accepted=False, errormessage=message)
            return CompactionResponse(id=-1, state=STATE_TEXTS[REFUSED], accepted=False, errormessage=message)
        key = compactions.insert(session, where, kind, INITIATED, _values(request))
        return CompactionResponse(id=key, state=STATE_TEXTS[INITIATED], accepted=True)

    return call.database.write(work)


def _reason_against(call: Call, where: CompactedObject) -> str | None:
    """Return the reason against a compaction of an object, None if it can be compacted or is not there."""

    def read(session: Session) -> str | None:
        table = tables.find(session, where.catalog, where.database, where.table or "")
        if table is None or keeps_own_columns(table):  # tables such as Iceberg's are compacted by their engines
            return None
        if not is_transactional(table):
            if where.partition is not None and table.partitionKeys and not partitions.existing(session, table.id or 0, [where.partition]):
                return None
            return f"{table_label(table)} is not transactional: there is nothing to compact"
        if table.partitionKeys and where.partition is None:
            return f"{table_label(table)} has partitions: name one, as each compaction is of one partition"
        if not table.partitionKeys and where.partition is not None:
            return f"{table_label(table)} has no partitions: leave out the partition name {where.partition}"
        return None

    return call.database.read(read)


def scheduled(session: Session, where: CompactedObject) -> tuple[int, str] | None:
    """Return the id and state of the entry that prevents an object from being queued again, None without one.

    A worker whose transaction is still open has not finished, even if it reports so: the next one would not see its files, and write the
    same rows once more.
    """
    found = compactions.of_object(session, where, PENDING)
    for key, state, _, is_open in found:
        if state in QUEUED or is_open:
            return key, state
    reached = {write_id: key for key, _, write_id, _ in found if write_id is not None}
    if reached:
        key = reached.get(compactions.watermark(session, where))
        return None if key is None else (key, READY)
    return None


def _values(request: CompactionRequest) -> dict[str, object]:
    return {
        "pool": (request.poolName or "").strip() or None,
        "properties": write_properties(request.properties),
        "run_as": request.runas,
        "buckets": request.numberOfBuckets or None,
        "order_by": request.orderByClause,
        "initiator": request.initiatorId,
        "initiator_version": request.initiatorVersion,
        "enqueued_ms": now_ms(),
    }


def submit_for_cleanup(call: Call, request: CompactionRequest, highest_write_id: int, transaction: int) -> bool:
    """Hand the files at the property `location` to the cleaner.

    They are deleted once all transactions that began before the end of `transaction` have ended.
    """
    where = object_of(call, request.dbname, request.tablename, request.partitionname)
    kind = type_letter(request.type)
    values = {**_values(request), "highest_write_id": highest_write_id, "transaction_id": transaction or None}
    call.database.write(lambda session: compactions.insert(session, where, kind, READY, values))
    return True


def abort(call: Call, keys: Sequence[int]) -> tuple[dict[int, AbortCompactionResponseElement], list[int]]:
    """Take entries off the queue that no worker has yet, or only a server's own worker; return the outcome of each.

    The second value is the list of these workers' transactions, which are to be aborted.
    """

    def work(session: Session) -> tuple[dict[int, str], list[int]]:
        found = compactions.lock_all(session, keys)
        taken = [each for each in found if each.state == INITIATED or (each.state == WORKING and each.worker_version == SERVERS_OWN)]
        done = {each.id for each in taken}
        if done:
            compactions.update(session, sorted(done), FOLLOWS[ABORTED], state=ABORTED, ended_ms=now_ms(), error=ABORT_REASON)
        messages = {
            each.id: DONE if each.id in done else f"Error while aborting compaction as compaction is in state-{STATE_TEXTS[each.state]}"
            for each in found
        }
        return messages, [each.transaction for each in taken if each.state == WORKING and each.transaction is not None]

    answers, transactions = call.database.write(work)
    messages = {key: answers.get(key, "No Such Compaction Id Available") for key in keys}
    elements = {
        key: AbortCompactionResponseElement(compactionId=key, status="Success" if message is DONE else "Error", message=message)
        for key, message in messages.items()
    }
    return elements, transactions


def show(call: Call, request: ShowCompactRequest) -> list[ShowCompactResponseElement]:
    """Return the queue and its history, filtered by the set fields; without an order the last change is first. MetaError."""
    database = request.dbName or None
    filters: dict[str, object] = {
        "id": request.id or None,
        "pool": request.poolName or None,
        "table": request.tbName.strip().lower() if request.tbName else None,
        "partition": partition_of(request.partName),
        "state": request.state or None,
        "type": None if request.type is None else type_letter(request.type),
    }
    if database is not None:
        where = object_of(call, database, "", None)
        filters |= {"catalog": where.catalog, "database": where.database}
    given = {name: value for name, value in filters.items() if value is not None}
    limit = request.limit if request.limit is not None and request.limit > 0 else None
    order = read_order(request.order)
    return [_element(call, entry) for entry in call.database.read(lambda session: compactions.show(session, given, order, limit))]


def _element(call: Call, entry: QueueEntry) -> ShowCompactResponseElement:
    highest = entry.highest_write_id or 0
    return ShowCompactResponseElement(
        dbname=with_catalog(entry.catalog, entry.database, call.config.default_catalog),
        tablename=entry.table,
        partitionname=entry.partition,
        type=TYPE_NUMBERS[entry.type],
        state=STATE_TEXTS[entry.state],
        workerid=entry.worker,
        start=entry.started,
        runAs=entry.run_as,
        hightestTxnId=highest,
        endTime=entry.ended,
        hadoopJobId=entry.hadoop_job,
        id=entry.id,
        errorMessage=entry.error,
        enqueueTime=entry.enqueued,
        workerVersion=entry.worker_version,
        initiatorId=entry.initiator,
        initiatorVersion=entry.initiator_version,
        cleanerStart=entry.cleaner_started,
        poolName=entry.pool or DEFAULT_POOL,
        nextTxnId=entry.next_transaction or 0,
        txnId=entry.transaction or 0,
        commitTime=entry.committed or 0,
        hightestWriteId=highest,
    )


def latest_committed(call: Call, request: GetLatestCommittedCompactionInfoRequest) -> list[CompactionInfoStruct]:
    """Return the last compaction of a table, or of each (named) partition, whose files can be read, if later than a given one."""
    where = object_of(call, request.dbname, request.tablename, None)
    wanted = {partition_of(name) for name in request.partitionnames or ()}
    rows = call.database.read(lambda session: compactions.latest(session, where, COMPACTED, request.lastCompactionId or 0))
    found: dict[str | None, CompactionInfoStruct] = {}
    for key, partition, kind in rows:
        if partition not in found and (not wanted or partition in wanted):
            found[partition] = CompactionInfoStruct(
                id=key,
                dbname=with_catalog(where.catalog, where.database, call.config.default_catalog),
                tablename=where.table,
                partitionname=partition,
                type=TYPE_NUMBERS[kind],
            )
    return list(found.values())
