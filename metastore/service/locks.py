"""Locks: ask, ask again, keep alive, release, show. A lock without transaction lives by its heartbeat.

Every request is decided in one database transaction that holds the queues of its databases, so servers that share a database agree. A
lock whose heartbeat is too old is removed by the next request that it would hold back, and no sooner: until then a late heartbeat saves it.
Transactions are not looked at yet: their ids are only stored. Source: Hive 4's TxnHandler and CheckLockFunction.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from metastore.errors import MetaError, NoSuchLock, NoSuchTransaction
from metastore.idl import LockRequest, LockResponse, LockState, ShowLocksResponseElement
from metastore.rules.locks import WAITS_FOR, Component, Earlier, blocker
from metastore.rules.names import normalize
from metastore.service.context import Call
from metastore.service.names import database_name
from metastore.store import locks
from metastore.store.database import Session
from metastore.store.locks import ACQUIRED, Held

LAST = 2**63 - 1


def _now() -> int:
    return time.time_ns() // 1_000_000


def _oldest(call: Call, now: int) -> int:
    """Return the time in milliseconds before which a heartbeat is too old."""
    return now - int(call.config.txn_timeout * 1000)


def lock(call: Call, request: LockRequest) -> LockResponse:
    """Ask for all components of a request at once: granted, waiting, or not acquired where the client does not want to wait.

    MetaError for a request without components or with an incomplete one.
    """
    wanted = [_component(call, each) for each in request.component or ()]
    if not wanted:
        raise MetaError("A lock request needs at least one component")
    transaction = request.txnid or 0
    impatient = bool(request.zeroWaitReadEnabled or request.exclusiveCTAS)

    def work(session: Session) -> LockResponse:
        now = _now()
        held = blocker(wanted, transaction, _earlier(call, session, wanted, LAST, now))
        if held is not None and impatient:
            message = f"Unable to acquire the lock: it is held back by lock {held.lock} on {_text(held.component)}"
            return LockResponse(lockid=0, state=LockState.NOT_ACQUIRED, errorMessage=message)
        state = ACQUIRED if held is None else locks.WAITING
        key = locks.insert(session, transaction, state, (request.user, request.hostname, request.agentInfo), now, wanted)
        return LockResponse(lockid=key, state=LockState.ACQUIRED if held is None else LockState.WAITING)

    return call.database.write(work)


def check_lock(call: Call, key: int) -> LockResponse:
    """Keep a lock alive, grant it if nothing holds it back any more, and tell its state. NoSuchLock."""

    def work(session: Session) -> LockResponse:
        now = _now()
        own = locks.find(session, key)
        if not own:
            raise _unknown(key)
        free = own[0].state == ACQUIRED
        if not free:
            wanted = [_of(each) for each in own]
            free = blocker(wanted, own[0].transaction, _earlier(call, session, wanted, key, now)) is None
        granted = free and own[0].state != ACQUIRED
        if not (locks.acquire(session, key, now) if granted else locks.heartbeat(session, key, now)):
            raise _unknown(key)
        return LockResponse(lockid=key, state=LockState.ACQUIRED if free else LockState.WAITING)

    return call.database.write(work)


def _earlier(call: Call, session: Session, wanted: Sequence[Component], key: int, now: int) -> Iterable[Earlier]:
    """Take the turn in the databases' queues and return what was asked for there before the lock `key`; remove what is expired."""
    names = [each.database for each in wanted]
    locks.queue(session, [f"{each.catalog}.{each.database}" for each in wanted])
    found = locks.before(session, names, key)
    since = _oldest(call, now)
    expired = {held.id for held in found if held.heartbeat < since}
    if expired:
        locks.expire(session, sorted(expired), since)
        found = locks.before(session, names, key)
    return [_earlier_of(held) for held in found]


def _earlier_of(held: Held) -> Earlier:
    return Earlier(held.id, held.number, held.transaction, _of(held))


def _of(held: Held) -> Component:
    return Component(held.catalog, held.database, held.table, held.partition, held.type)


def _component(call: Call, each: object) -> Component:
    """Return a component of a request, its names normalised."""
    database = getattr(each, "dbname", None)
    kind = getattr(each, "type", None)
    catalog, name = database_name(database, None, call.config.default_catalog)
    if name is None or kind not in WAITS_FOR:
        raise MetaError(f"Lock component on {database} needs dbname and a type of LockType, not {kind}")
    table, partition = getattr(each, "tablename", None), getattr(each, "partitionname", None)
    return Component(catalog, name, None if table is None else normalize(table), _partition(partition), kind)


def _partition(name: str | None) -> str | None:
    """Return a partition name with its keys in lower case."""
    if name is None:
        return None
    return "/".join(key.lower() + mark + value for key, mark, value in (part.partition("=") for part in name.split("/")))


def _text(component: Component) -> str:
    parts = (component.catalog, component.database, component.table, component.partition)
    return ".".join(part for part in parts if part is not None)


def _unknown(key: int) -> NoSuchLock:
    return NoSuchLock(f"No such lock lockid:{key}: it was released, or it expired without a heartbeat")


def unlock(call: Call, key: int) -> None:
    """Release a lock; one that is not there is released already."""
    call.database.write(lambda session: locks.delete(session, key))


def heartbeat(call: Call, key: int, transaction: int) -> None:
    """Keep a lock and a transaction alive; 0 stands for none. NoSuchLock, NoSuchTransaction."""
    if key > 0 and not call.database.write(lambda session: locks.heartbeat(session, key, _now())):
        raise _unknown(key)
    if transaction > 0:
        raise NoSuchTransaction(f"No such transaction txnid:{transaction}")


def show_locks(
    call: Call, database: str | None = None, table: str | None = None, partition: str | None = None, transaction: int = 0
) -> list[ShowLocksResponseElement]:
    """Return the components of all living locks, or of those on one object or of one transaction, ascending by id."""
    rows = call.database.read(locks.all_of)
    since = _oldest(call, _now())
    living = [held for held in rows if held.heartbeat >= since]
    catalog, name = database_name(database or None, None, call.config.default_catalog)
    wanted_table = normalize(table) if table else None
    wanted_partition = _partition(partition or None)
    return [
        _element(held, living) for held in living
        if (name is None or (held.catalog, held.database) == (catalog, name))
        and wanted_table in (None, held.table) and wanted_partition in (None, held.partition)
        and transaction in (0, held.transaction)
    ]


def _element(held: Held, living: Sequence[Held]) -> ShowLocksResponseElement:
    by = None
    if held.state != ACQUIRED:
        by = blocker([_of(held)], held.transaction, (_earlier_of(other) for other in living if other.id < held.id))
    return ShowLocksResponseElement(
        lockid=held.id, dbname=held.database, tablename=held.table, partname=held.partition, type=held.type,
        state=LockState.ACQUIRED if held.state == ACQUIRED else LockState.WAITING, txnid=held.transaction or None,
        lastheartbeat=held.heartbeat, acquiredat=held.acquired, user=held.user, hostname=held.host, agentInfo=held.agent,
        lockIdInternal=held.number, blockedByExtId=by.lock if by else None, blockedByIntId=by.number if by else None,
    )
