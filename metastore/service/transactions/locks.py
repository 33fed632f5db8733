"""Locks: ask, ask again, keep alive, release, show. A lock lives as long as its transaction; without one it needs heartbeats.

A request is decided in one database transaction that holds the queues of its databases: servers that share a database agree. Holders whose
heartbeat is too old are given up by the next request that they would hold back, and by the housekeeper; until then a late heartbeat saves
them. Sources: Hive 4's TxnHandler, EnqueueLockFunction and CheckLockFunction.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import takewhile
from operator import attrgetter
from typing import NamedTuple

from metastore.errors import MetaError, NoSuchLock, TransactionOpen
from metastore.idl import LockComponent, LockRequest, LockResponse, LockState, ShowLocksResponseElement
from metastore.rules.names import normalize, with_catalog
from metastore.rules.transactions.locks import READ, WAITS_FOR, Blocked, Component, Earlier, blocker, waited_for
from metastore.rules.transactions.transactions import INSERT, ROW_CHANGES, UPDATE, Intent, operation_of
from metastore.rules.values.partition_names import canonical_name
from metastore.service.call.clock import now_ms
from metastore.service.call.context import Call
from metastore.service.call.names import database_name
from metastore.service.transactions import fast_paths, house_keeping
from metastore.service.transactions.transactions import ended_error, heartbeat_transaction
from metastore.store.core.database import Database, Session
from metastore.store.drivers.answer import Answer
from metastore.store.transactions import locks, transactions, write_ids
from metastore.store.transactions.locks import ACQUIRED, WAITING, Held, NewLock
from metastore.store.transactions.transactions import COMPONENTS, LOCKS, OPEN
from metastore.store.transactions.write_ids import TableKey

BEAT = 1000
"""Milliseconds in which asking again for a lock writes one heartbeat at most."""


class _Wanted(NamedTuple):
    """The request for a lock, its names normalised."""

    components: list[Component]
    transaction: int
    """0 for none."""
    intents: list[Intent]
    """The writes that the transaction announces, without write ids."""
    types: frozenset[int]
    """Types of locks that it waits for."""
    writers_wait: bool
    """Whether shared writers wait for each other, as for clients before Hive 4."""

    @property
    def bits(self) -> int:
        """The kinds of things that the transaction holds with the lock (bits of `store.transactions`)."""
        return LOCKS | (COMPONENTS if self.intents else 0)

    def new(self, request: LockRequest, state: str, now: int) -> NewLock:
        """Return the lock in a state."""
        return NewLock(self.transaction, state, request.user, request.hostname, request.agentInfo, now, now, int(self.writers_wait))


def lock(call: Call, request: LockRequest) -> LockResponse:
    """Ask for all components of a request at once. The lock is granted or waits, or is not acquired if the client does not want to wait.

    In a transaction it notes the intents of the components. MetaError for a request without components or with an incomplete one;
    NoSuchTransaction, TransactionAborted.
    """
    wanted = _wanted(call, request)
    key = fast_paths.try_lock(call, wanted.new(request, ACQUIRED, now_ms()), wanted.components, wanted.intents, wanted.types)
    answer = _lock(call, request, wanted) if key is None else LockResponse(lockid=key, state=LockState.ACQUIRED)
    if wanted.transaction and answer.state != LockState.NOT_ACQUIRED:
        fast_paths.locked(call, wanted.transaction, wanted.bits, wanted.intents)
    return answer


def _wanted(call: Call, request: LockRequest) -> _Wanted:
    """Return the components of a request. MetaError."""
    components = [_component(call, each) for each in request.component or ()]
    if not components:
        raise MetaError("A lock request needs at least one component")
    transaction = request.txnid or 0
    intents = _intents(request.component, components) if transaction else []
    before_hive_4 = request.zeroWaitReadEnabled is None  # only Hive 4's clients send the field
    return _Wanted(components, transaction, intents, waited_for(components, writers_wait=before_hive_4), before_hive_4)


def _lock(call: Call, request: LockRequest, wanted: _Wanted) -> LockResponse:
    """Ask for a lock on the portable way. Holders in its way whose heartbeat is too old are given up first."""
    while True:
        asked = call.database.write(lambda session: _add(call, session, request, wanted))
        if not asked.late:
            key = 0 if asked.added is None else asked.added.key
            return LockResponse(lockid=key, state=asked.state, errorMessage=asked.refusal)
        house_keeping.give_up(call.metastore, asked.late)


class _Asked(NamedTuple):
    """The answer to a request for a lock."""

    state: int
    """The state, of LockState."""
    added: Answer | None = None
    """The answer with the lock's key; None where none was added."""
    refusal: str | None = None
    late: Collection[house_keeping.LockHolder] = ()
    """Holders whose heartbeat is too old: they are to be given up, and the lock to be asked for again."""


def _add(call: Call, session: Session, request: LockRequest, wanted: _Wanted) -> _Asked:
    """Add a lock, unless a late holder is in its way or the client does not want to wait."""
    now, transaction = now_ms(), wanted.transaction
    held = transactions.add_holds(session, transaction, wanted.bits, now) if transaction else None
    tables = {TableKey.of(each) for each in wanted.intents}
    numbers = write_ids.of_transaction(session, transaction, tables) if tables else None
    met = _living(locks.overlapping(session, wanted.components, wanted.types))
    if held is not None and not held():
        raise ended_error(transaction, transactions.find(session, transaction), session)
    found = blocker(wanted.components, transaction, map(_earlier, met), writers_wait=wanted.writers_wait)
    if _may_wait_for_itself(transaction, found):
        met = _living(locks.overlapping(session, wanted.components, [*WAITS_FOR]))
        found = blocker(wanted.components, transaction, map(_earlier, met), writers_wait=wanted.writers_wait)
    if found is not None:
        late = house_keeping.late_holders(call.config, met, now)
        if any(each.lock == found.by.lock for each in late):
            return _Asked(LockState.NOT_ACQUIRED, late=late)
        if request.exclusiveCTAS or (request.zeroWaitReadEnabled and found.component.type == READ):
            return _Asked(LockState.NOT_ACQUIRED, refusal=_refusal(found))
    given = numbers() if numbers is not None else {}
    intents = [each._replace(write_id=given.get(TableKey.of(each))) for each in wanted.intents]
    state = ACQUIRED if found is None else WAITING
    added = locks.insert(session, wanted.new(request, state, now), wanted.components, intents)
    return _Asked(LockState.ACQUIRED if found is None else LockState.WAITING, added)


def check_lock(call: Call, key: int) -> LockResponse:
    """Keep a lock alive, grant it if nothing holds it back any more, and return its state. NoSuchLock.

    No earlier lock can appear any more, so the decision needs no turn in the lock queue.
    """
    while True:
        now = now_ms()
        own, before = call.database.read(lambda session: _with_earlier(session, key))
        if not own or (own[0].transaction and own[0].transaction_state != OPEN):
            raise _unknown(key)
        blocked = _held_back(own, before) if own[0].state != ACQUIRED else None
        if blocked is None or not _gives_up(call, before, blocked, now):
            break
    if blocked is None and own[0].state != ACQUIRED and not call.database.autocommit(lambda session: locks.acquire(session, key, now_ms())):
        raise _unknown(key)
    _beat(call, own[0], now)
    return LockResponse(lockid=key, state=LockState.ACQUIRED if blocked is None else LockState.WAITING)


def _with_earlier(session: Session, key: int) -> tuple[list[Held], list[Held]]:
    """Return the components of a lock, none for a missing one, and the components of earlier locks for which a waiting one may wait."""
    own = locks.of(session, key)
    if not own or own[0].state == ACQUIRED:
        return own, []
    wanted = [_of(each) for each in own]
    types = waited_for(wanted, writers_wait=bool(own[0].writers_wait))
    earlier = _living(locks.before(session, key, wanted, types))
    if _may_wait_for_itself(own[0].transaction, _held_back(own, earlier)):
        earlier = _living(locks.before(session, key, wanted, [*WAITS_FOR]))
    return own, earlier


def _may_wait_for_itself(transaction: int, found: Blocked | None) -> bool:
    """Return whether the blocker of a lock may wait for the lock's own transaction, whose locks of all types then count."""
    return bool(transaction) and found is not None and found.by.is_waiting


def _held_back(own: Sequence[Held], earlier: Sequence[Held]) -> Blocked | None:
    """Return the component that holds a lock back; None if nothing does."""
    first = own[0]
    return blocker([_of(each) for each in own], first.transaction, map(_earlier, earlier), writers_wait=bool(first.writers_wait))


def _gives_up(call: Call, earlier: Sequence[Held], blocked: Blocked, now: int) -> bool:
    """End the holders whose heartbeat is too old if one of them holds the lock back; return whether one did."""
    late = house_keeping.late_holders(call.config, earlier, now)
    is_late = any(each.lock == blocked.by.lock for each in late)
    if is_late:
        house_keeping.give_up(call.metastore, late)
    return is_late


def _beat(call: Call, own: Held, now: int) -> None:
    """Renew the heartbeat of a lock or of its transaction, unless it is recent."""
    if own.transaction:
        if (own.transaction_heartbeat or 0) + BEAT <= now:
            heartbeat_transaction(call, own.transaction)
    elif own.heartbeat + BEAT <= now and not call.database.autocommit(lambda session: locks.heartbeat(session, own.id, now)):
        raise _unknown(own.id)


def _living(found: Iterable[Held]) -> list[Held]:
    """Return the locks, except those of ended transactions."""
    return [each for each in found if not each.transaction or each.transaction_state == OPEN]


def _earlier(held: Held) -> Earlier:
    return Earlier(held.id, held.number, held.transaction, _of(held), held.state != ACQUIRED, bool(held.writers_wait))


def _of(held: Held) -> Component:
    return Component(held.catalog, held.database, held.table, held.partition, held.type)


def _component(call: Call, each: LockComponent | None) -> Component:
    """Return a component of a request, its names normalised."""
    database = getattr(each, "dbname", None)
    kind = getattr(each, "type", None)
    catalog, name = database_name(database, None, call.config.default_catalog)
    if each is None or name is None or kind not in WAITS_FOR:
        raise MetaError(f"Lock component on {database} needs dbname and a type of LockType, not {kind}")
    table, partition = each.tablename, each.partitionname
    where = None if table is None else normalize(table), None if partition is None else canonical_name(partition)
    return Component(catalog, name, *where, kind)


def _intents(sent: Sequence[LockComponent], wanted: Sequence[Component]) -> list[Intent]:
    """Return the intents of the components, without write ids.

    Where partitions are only known while writing, the table as a whole stands for them until `add_dynamic_partitions` names them.
    """
    out: dict[Intent, None] = {}
    whole: dict[TableKey, bool] = {}
    for each, component in zip(sent, wanted, strict=True):
        operation = None if each.isTransactional is False else operation_of(each.operationType, component.type)
        if operation is None:
            continue
        if each.isDynamicPartitionWrite:
            key = TableKey(component.catalog, component.database, component.table or "")
            whole[key] = whole.get(key, False) or operation in ROW_CHANGES
        else:
            out[Intent(*component[:4], operation, None)] = None
    for key, changes in whole.items():
        out[Intent(key.catalog, key.database, key.table or None, None, UPDATE if changes else INSERT, None)] = None
    return list(out)


def _refusal(found: Blocked) -> str:
    by = found.by
    parts = (by.component.catalog, by.component.database, by.component.table, by.component.partition)
    name = ".".join(part for part in parts if part is not None)
    return f"Unable to acquire the lock: it is held back by lock {by.lock} on {name}"


def _unknown(key: int) -> NoSuchLock:
    return NoSuchLock(f"No such lock lockid:{key}: it was released, or it expired without a heartbeat")


def unlock(call: Call, key: int) -> None:
    """Release a lock; one that is not there is released already. TransactionOpen for one that a transaction has acquired."""
    if not call.database.autocommit(lambda session: locks.release(session, key)) and call.database.read(
        lambda session: locks.exists(session, key)
    ):
        raise TransactionOpen(f"Unlocking lockid:{key} is not possible: it belongs to an open transaction and ends with it")


def heartbeat(call: Call, key: int, transaction: int) -> None:
    """Keep a lock and a transaction alive; 0 stands for none. NoSuchLock, NoSuchTransaction, TransactionAborted."""
    if transaction > 0:
        heartbeat_transaction(call, transaction)
    if key > 0 and not call.database.autocommit(lambda session: locks.heartbeat(session, key, now_ms())):
        raise _unknown(key)


def show_locks(
    call: Call, database: str | None = None, table: str | None = None, partition: str | None = None, transaction: int = 0
) -> list[ShowLocksResponseElement]:
    """Return the components of all living locks, or of those on one object or of one transaction, ascending by id.

    A table may be named `database.table`, as Hive does for `SHOW LOCKS`; its database then counts.
    """
    if table and "." in table:
        before, table = table.rsplit(".", 1)
        database = before.rsplit(".", 1)[-1]
    catalog, name = database_name(database or None, None, call.config.default_catalog)
    wanted_table = normalize(table) if table else None
    wanted_partition = canonical_name(partition) if partition else None
    rows = call.database.read(locks.all_of)
    if not rows:
        return []
    late = {each.lock for each in house_keeping.late_holders(call.config, rows, now_ms())}
    living = [held for held in _living(rows) if held.id not in late]
    places = _places(living)
    return [
        _element(call, held, places)
        for held in living
        if (name is None or (held.catalog, held.database) == (catalog, name))
        and wanted_table in (None, held.table)
        and wanted_partition in (None, held.partition)
        and transaction in (0, held.transaction)
    ]


def waiting_since(database: Database) -> dict[int, int]:
    """Return the times since which locks wait, in milliseconds, by the locks' ids."""
    return dict(database.read(locks.waiting))


_Places = Mapping[tuple[str, str], Mapping[str | None, Sequence[Held]]]
"""Components by catalog and database, and in these by table, ascending by id."""


def _places(living: Iterable[Held]) -> _Places:
    """Return components by their objects: a waiting one is compared only with those that it may overlap."""
    found: dict[tuple[str, str], dict[str | None, list[Held]]] = {}
    for held in living:
        found.setdefault((held.catalog, held.database), {}).setdefault(held.table, []).append(held)
    return found


def _before(held: Held, places: _Places) -> Iterator[Held]:
    """Yield the components of earlier locks that may overlap one, ascending by id."""
    inside = places[held.catalog, held.database]
    near = inside.values() if held.table is None else [inside[table] for table in (held.table, None) if table in inside]
    return takewhile(lambda other: other.id < held.id, merge(*near, key=attrgetter("id", "number")))


def _element(call: Call, held: Held, places: _Places) -> ShowLocksResponseElement:
    by = None
    if held.state != ACQUIRED:
        earlier = map(_earlier, _before(held, places))
        found = blocker([_of(held)], held.transaction, earlier, writers_wait=bool(held.writers_wait))
        by = found.by if found is not None else None
    return ShowLocksResponseElement(
        lockid=held.id,
        dbname=with_catalog(held.catalog, held.database, call.config.default_catalog),
        tablename=held.table,
        partname=held.partition,
        type=held.type,
        state=LockState.ACQUIRED if held.state == ACQUIRED else LockState.WAITING,
        txnid=held.transaction or None,
        lastheartbeat=0 if held.transaction else held.heartbeat,
        acquiredat=held.acquired if held.state == ACQUIRED else None,  # as in Hive; `waiting_since` has the time for waiting locks
        user=held.user,
        hostname=held.host,
        agentInfo=held.agent,
        lockIdInternal=held.number,
        blockedByExtId=by.lock if by else None,
        blockedByIntId=by.number if by else None,
    )
