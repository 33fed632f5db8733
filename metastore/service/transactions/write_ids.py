"""Write ids: allocate them, return those that a snapshot sees, note written partitions. Each numbers a transaction's writes to a table.

Sources: Hive 4's AllocateTableWriteIdsFunction, GetValidWriteIdsFunction, GetValidWriteIdsForTableFunction.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import chain

from metastore.errors import MetaError
from metastore.idl import (
    AddDynamicPartitions,
    AllocateTableWriteIdsRequest,
    LockType,
    TableValidWriteIds,
    TxnType,
)
from metastore.listeners.events import AllocateWriteIds
from metastore.rules.transactions.snapshots import Snapshot, aborted_bits, of_reply, parse_transactions
from metastore.rules.transactions.transactions import UPDATE, Intent, operation_of
from metastore.rules.values.partition_names import canonical_name
from metastore.service.call.clock import now_ms
from metastore.service.call.context import Call
from metastore.service.call.names import table_name
from metastore.service.transactions import fast_paths
from metastore.service.transactions.transactions import ended_error, get_open_transactions
from metastore.store.catalog import dependents
from metastore.store.core.database import Session
from metastore.store.transactions import components, locks, transactions, write_id_snapshots, write_ids
from metastore.store.transactions.transactions import COMPONENTS, HISTORY, OPEN, RANGES, WRITE_IDS, StoredTransaction
from metastore.store.transactions.write_id_snapshots import Mark
from metastore.store.transactions.write_ids import Range, TableKey

MAX_EXCEPTIONS = 1000
"""The most exceptions of a snapshot that are sent in a statement; with more, all write ids from the first one on are read and judged."""
READ_FOR_EXCEPTION = 4
"""The number of transactions whose write ids are read to save one exception in the statement."""


def key_of(call: Call, name: str) -> TableKey:
    """Return the table of a text `database.table` or `catalog.database.table`. MetaError."""
    parts = name.split(".")
    if len(parts) not in {2, 3}:
        raise MetaError(f"{name} is not a name of a table: write database.table")
    return TableKey(*table_name(parts[-2], parts[-1], parts[0] if len(parts) == 3 else None, call.config.default_catalog))


def allocate_write_ids(call: Call, request: AllocateTableWriteIdsRequest) -> dict[int, int]:
    """Give each transaction a write id in a table, or return the one that it has; by transaction, ascending. All or none.

    MetaError unless all are open and may write. With a policy and the ids at the source, those are taken over. If some transactions are not
    known under the policy, they were ended before, and none gets a write id.
    """
    key = TableKey(*table_name(request.dbName, request.tableName, None, call.config.default_catalog))
    sources = {each.txnId: each.writeId for each in request.srcTxnToWriteIdList or ()} if request.replPolicy is not None else {}
    if not sources and not request.txnIds:
        raise MetaError(f"Write ID allocation on {request.dbName}.{request.tableName} needs transactions: none was named")
    ids = sorted(set(request.txnIds or ()))
    seen = locks.last_seen(call.database, key)
    new = None if sources or request.reallocate else fast_paths.try_allocate(call, key, ids)
    have: dict[int, int] = {}
    if new is None:
        have, new = call.database.write(lambda session: _allocate(call, session, key, ids, sources, request))
    allocated = dict(sorted({**have, **new}.items())) if have else new
    fast_paths.allocated(call, key, allocated, seen)
    if new and call.listeners.post:
        call.listeners.after(_event(call, key, new), None)
    return allocated


def _allocate(
    call: Call, session: Session, key: TableKey, ids: Sequence[int], sources: Mapping[int, int], request: AllocateTableWriteIdsRequest
) -> tuple[dict[int, int], dict[int, int]]:
    """Allocate write ids on the portable way; return those that transactions had already, and the new ones. MetaError."""
    if sources:
        known = transactions.targets(session, request.replPolicy or "", list(sources))
        if len(known) < len(sources):
            return {}, {}
        ids = sorted(known.values())
    locked = transactions.lock_many(session, ids)
    ahead = write_ids.take(session, key, ids)  # before their write ids are read: on PostgreSQL nobody else waits for their rows
    held = write_ids.of_transactions(session, key, ids) if len(ids) > 1 and not request.reallocate else None
    found = _may_write(key, ids, locked())
    if request.reallocate:
        dependents.delete_write_ids(session, key, ids)
    elif held is None and found[0].holds & (WRITE_IDS | RANGES):
        held = write_ids.of_transactions(session, key, ids)
    have = {} if held is None else held()
    wanted = [id_ for id_ in ids if id_ not in have]
    numbers = ahead()[: len(wanted)]
    if have:  # unused ones are given back
        write_ids.set_next(session, key, numbers.stop)
    if wanted and sources and numbers[0] != min(sources.values()):
        numbers = _numbers_of_source(session, key, min(sources.values()), len(wanted))
    new = dict(zip(wanted, numbers, strict=True))
    if new:
        _insert_new(session, key, new, [each for each in found if each.id in new])
        if call.listeners.transactional:
            call.listeners.within([_event(call, key, new)], session)
    return have, new


def _may_write(key: TableKey, ids: Sequence[int], found: list[StoredTransaction]) -> list[StoredTransaction]:
    """Return the locked transactions. MetaError unless all are there, open, and not read-only."""
    if len(found) < len(ids) or any(each.state != OPEN or each.type == TxnType.READ_ONLY for each in found):
        raise MetaError(f"Write ID allocation failed on {key.database}.{key.table} as not all input txns in open state or read-only: {ids}")
    return found


def _numbers_of_source(session: Session, key: TableKey, first: int, count: int) -> range:
    """Return the write ids from `first` on, which a replicated table has at its source; the table's own until now are forgotten."""
    numbers = range(first, first + count)
    write_ids.set_next(session, key, numbers.stop)
    dependents.delete_write_ids(session, key)
    return numbers


def _insert_new(session: Session, key: TableKey, new: Mapping[int, int], owners: Sequence[StoredTransaction]) -> None:
    """Add new write ids, ascending, of locked transactions: as one range if they are consecutive and were opened together."""
    ids = list(new)
    if write_ids.is_range(ids) and all(each.holds & RANGES for each in owners):
        write_ids.insert_ranges(session, key, [Range(ids[0], ids[-1], new[ids[0]])])
        return
    write_ids.insert(session, key, new.items())
    if any(not each.holds & WRITE_IDS for each in owners):
        transactions.add_holds_of_many(session, ids, WRITE_IDS)


def _event(call: Call, key: TableKey, new: Mapping[int, int]) -> AllocateWriteIds:
    """Return the event of new write ids, by transaction."""
    return AllocateWriteIds(
        client=call.info, catalog=key.catalog, database=key.database, table=key.table, transactions=[*new], write_ids=[*new.values()]
    )


def get_valid_write_ids(
    call: Call, names: Sequence[str], valid_transactions: str | None = None, write_id: int | None = None
) -> list[TableValidWriteIds]:
    """Return for each table the write ids that a snapshot of transactions does not see.

    The snapshot is the given text, or the one of the transaction with a write id; without either, the present one. The high-water mark
    falls to the lowest id that is not seen when no id up to the mark is both seen and not compacted. MetaError.
    """
    keys = {name: key_of(call, name) for name in names}
    seen = _snapshot(call, list(keys.values()), valid_transactions, write_id)
    if not keys:
        return []
    marks, unseen, ranges = call.database.read(lambda session: _seen(session, set(keys.values()), seen))
    return [_table(name, seen, marks.get(key), unseen.get(key, []), ranges.get(key, ())) for name, key in keys.items()]


def _seen(session: Session, keys: Collection[TableKey], seen: Snapshot) -> write_id_snapshots.SeenTables:
    """Return the write id snapshots of tables. In most tables all write ids are seen, which the tables' counters show."""
    counted = write_id_snapshots.seen_whole(session, keys)
    whole = {key: mark for key, mark in counted.items() if mark.transaction <= seen.settled}
    left = counted.keys() - whole.keys()
    if not left:
        return write_id_snapshots.SeenTables(whole, {}, {})
    marks, unseen, ranges = _partly_seen(session, left, seen)
    return write_id_snapshots.SeenTables({**marks, **whole}, unseen, ranges)


def _partly_seen(session: Session, keys: Collection[TableKey], seen: Snapshot) -> write_id_snapshots.SeenTables:
    """Return the write id snapshots of tables in which transactions have write ids that may not be seen."""
    marks, later, ranges = write_id_snapshots.snapshot(session, keys, _database_mark(seen), seen.exceptions)
    return write_id_snapshots.SeenTables(
        {key: _raised(mark, seen, later.get(key, ())) for key, mark in marks.items()},
        {key: [pair for pair in pairs if not seen.is_valid(pair[1])] for key, pairs in later.items()},
        ranges,
    )


def _database_mark(seen: Snapshot) -> int:
    """Return the mark of the earlier snapshot for which the database is asked. Write ids of later transactions are judged here.

    Most exceptions are transactions that are still open. They are close together at the end, with little to read between them.
    """
    below = seen.exceptions[: bisect_right(seen.exceptions, seen.mark)]
    if len(below) > MAX_EXCEPTIONS:
        return seen.settled
    mark = seen.mark
    for count, exception in enumerate(reversed(below), 1):
        if seen.mark - exception < count * READ_FOR_EXCEPTION:
            mark = exception - 1
    return mark


def _raised(mark: Mark, seen: Snapshot, later: Sequence[tuple[int, int]]) -> Mark:
    """Return the write id snapshot of a table from an earlier one and the write ids of later transactions."""
    below = max((number for number, transaction in later if transaction <= seen.mark), default=None)
    return mark.raised(below, seen=any(seen.is_valid(transaction) for _, transaction in later))


def _judged(ranges: Sequence[tuple[int, int, int]], mark: Mark, seen: Snapshot) -> tuple[Mark, Callable[[int], Iterator[tuple[int, int]]]]:
    """Return the write id snapshot of a table with ranges of write ids, and a function for the unseen ones up to a write id.

    Seen ones are not looked at: they may be millions.
    """
    exceptions, top = seen.exceptions, seen.mark
    below, some = 0, mark.seen
    partly: list[Range] = []
    for first, last, number in ranges:
        place = bisect_left(exceptions, first)
        if last <= top and (place == len(exceptions) or exceptions[place] > last):
            below, some = max(below, number + last - first), True
        else:
            partly.append(Range(first, last, number))
            within = Range(first, min(last, top), number)
            if first <= within.last:
                below = max(below, within.of(within.last))
                some = some or len(within.among(exceptions)) <= within.last - first

    def unseen(high: int) -> Iterator[tuple[int, int]]:
        for each in partly:
            last = min(each.last, each.first + high - each.write_id)
            for id_ in chain(each._replace(last=min(last, top)).among(exceptions), range(max(each.first, top + 1), last + 1)):
                yield each.of(id_), id_

    return mark.raised(below, seen=some), unseen


def _snapshot(call: Call, keys: Sequence[TableKey], text: str | None, write_id: int | None) -> Snapshot:
    if text is not None:
        return parse_transactions(text)
    current = 0
    if write_id is not None and keys:
        owner = call.database.read(lambda session: write_ids.owner(session, keys[0], write_id))
        if owner is None:
            raise MetaError(f"invalid write id {write_id} for table {keys[0].database}.{keys[0].table}")
        current = owner
    return of_reply(get_open_transactions(call), current)


def _table(
    name: str, seen: Snapshot, mark: Mark | None, unseen: Sequence[tuple[int, int]], ranges: Sequence[tuple[int, int, int]]
) -> TableValidWriteIds:
    if mark is None:
        return TableValidWriteIds(fullTableName=name, writeIdHighWaterMark=0, invalidWriteIds=[], abortedBits=b"")
    mark, unseen_of_ranges = _judged(ranges, mark, seen)
    high = mark.last if mark.below is None else mark.below
    below = [(number, transaction) for number, transaction in unseen if number <= high]
    if ranges:
        below = sorted(chain(below, unseen_of_ranges(high)))
    aborted = frozenset(number for number, transaction in below if seen.is_aborted(transaction))
    invalid = [number for number, _ in below]
    min_open = next((number for number in invalid if number not in aborted), None)
    if not mark.seen and invalid:
        high = invalid[0]
        invalid = [high]
    return TableValidWriteIds(
        fullTableName=name,
        writeIdHighWaterMark=high,
        invalidWriteIds=invalid,
        minOpenWriteId=min_open,
        abortedBits=aborted_bits(invalid, aborted),
    )


def max_allocated_write_id(call: Call, database: str, table: str) -> int:
    """Return the last write id of a table, 0 before the first."""
    key = TableKey(*table_name(database, table, None, call.config.default_catalog))
    return call.database.read(lambda session: write_ids.last(session, key)) or 0


def seed_write_id(call: Call, database: str, table: str, seed: int) -> None:
    """Let the first write id of a table be the one after `seed`. MetaError when the table has had some."""
    key = TableKey(*table_name(database, table, None, call.config.default_catalog))

    def work(session: Session) -> None:
        if write_ids.last(session, key) is not None:
            raise MetaError(f"write ids of {key.database}.{key.table} can not begin after {seed}: the table has had some already")
        write_ids.seed(session, key, seed + 1)

    call.database.write(work)


def add_to_history(call: Call, transaction: int, lowest: Mapping[str, int]) -> None:
    """Note the lowest write ids, by table, that an open transaction may need: older files may not be cleaned. MetaError."""
    keys = {key_of(call, name): write_id for name, write_id in lowest.items()}

    def work(session: Session) -> None:
        if not transactions.add_holds(session, transaction, HISTORY, now_ms())():
            raise MetaError(ended_error(transaction, transactions.find(session, transaction), session).message)
        write_ids.insert_history(session, transaction, keys.items())

    if keys:
        call.database.write(work)
        fast_paths.note_holds(call, transaction, HISTORY)


def add_dynamic_partitions(call: Call, request: AddDynamicPartitions) -> None:
    """Note the partitions of a table that a transaction writes, in place of the table as a whole. NoSuchTransaction, TransactionAborted."""
    key = TableKey(*table_name(request.dbname, request.tablename, None, call.config.default_catalog))
    operation = UPDATE if request.operationType is None else operation_of(request.operationType, LockType.SHARED_WRITE)
    names = dict.fromkeys(canonical_name(name) for name in request.partitionnames or ())

    def work(session: Session) -> None:
        if not transactions.add_holds(session, request.txnid, COMPONENTS, now_ms())():
            raise ended_error(request.txnid, transactions.find(session, request.txnid), session)
        if operation is not None:
            components.insert(session, ((request.txnid, Intent(*key, name, operation, request.writeid)) for name in names))
        components.delete_whole_table(session, request.txnid, *key)

    call.database.write(work)
    intents = [] if operation is None else [Intent(*key, name, operation, request.writeid) for name in names]
    fast_paths.partitions_named(call, request.txnid, COMPONENTS, key, intents)
